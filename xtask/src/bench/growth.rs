//! `cargo xtask bench growth`: how the check's time and memory grow with a program, on the patterns in `kernels/growth/`.
//!
//! Each pattern is run at n, 2n, 4n and 8n times. What counts is processor time, which does not depend on what else the
//! machine does, and the peak of memory, both of the whole process: from its start to the written findings. A step from
//! one size to the next should cost about twice as much. Memory beyond that of the smallest size is what grows.
//!
//! The sizes of a pattern are run in turn, and of each the least counts: processor time grows with what others do to the caches, and
//! never shrinks. Short runs are repeated more often, until they have taken some seconds in all.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use dagsan_findings::FINDINGS_FILE;
use indicatif::ProgressBar;

use super::native::{Build, Page, process, target_directory};

/// Options of `bench growth`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only patterns whose name contains this
    #[arg(long, default_value = "")]
    pattern: String,
    /// Runs of which the best counts; more of those that are short
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Put the table into the page in docs/benchmarks
    #[arg(long)]
    write: bool,
}

const PAGE: Page = Page {
    name: "docs/benchmarks/growth.md",
    marks: ["<!-- measured: by cargo xtask bench growth --write -->\n", "<!-- end -->\n"],
};

/// How often the pattern is run, in multiples of its count.
const SIZES: [u64; 4] = [1, 2, 4, 8];

/// What a step may cost.
const MOST: f64 = 2.3;

/// A size is run until its runs have taken so many seconds, but not more often than so many times as others.
const ENOUGH: f64 = 2.0;
const OFTEN: u32 = 4;

/// A pattern that was measured.
struct Row {
    pattern: String,
    count: u64,
    /// The best times, in seconds, and the least peaks of memory, in MiB.
    seconds: [f64; SIZES.len()],
    mib: [f64; SIZES.len()],
}

/// Runs the benchmark and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let program = Build::Dagsan.make(root, "kernels/growth")?;
    let patterns = list(&program)?;
    let wanted: Vec<_> = patterns.iter().filter(|(name, _)| name.contains(&args.pattern)).collect();
    ensure!(!wanted.is_empty(), "no pattern is called {}", args.pattern);
    let bar = ProgressBar::new_spinner();
    let mut rows = Vec::new();
    for (pattern, count) in wanted {
        rows.push(measure(root, &program, pattern, *count, args.runs, &bar)?);
    }
    bar.finish_and_clear();
    let (table, verdict) = (table(&rows), verdict(&rows));
    println!("\n{table}\n{verdict}");
    if args.write {
        PAGE.write(root, &format!("`--runs {}`", args.runs), &format!("{table}\n{verdict}\n"))?;
    }
    Ok(())
}

/// The patterns of the program, and their counts.
fn list(program: &Path) -> Result<Vec<(String, u64)>> {
    let ended = process::run(Command::new(program).arg("list"))?;
    let pattern =
        |line: &str| Some((line.split_once('\t')?.0.to_owned(), line.split_once('\t')?.1.parse().ok()?));
    ended.stdout.lines().map(|line| pattern(line).with_context(|| format!("not a pattern: {line}"))).collect()
}

fn measure(
    root: &Path,
    program: &Path,
    pattern: &str,
    count: u64,
    runs: u32,
    bar: &ProgressBar,
) -> Result<Row> {
    let findings = target_directory(root).join("native").join("findings.json");
    let none = [f64::MAX; SIZES.len()];
    let mut row = Row { pattern: pattern.into(), count, seconds: none, mib: none };
    let mut spent = [0.0; SIZES.len()];
    for number in 1..=runs.max(1) * OFTEN {
        for (at, size) in SIZES.iter().enumerate() {
            if number > runs.max(1) && spent[at] > ENOUGH {
                continue;
            }
            let times = (count * size).to_string();
            bar.set_message(format!("{pattern}: {times} times, run {number}"));
            bar.tick();
            let mut command = Command::new(program);
            command.args([pattern, &times]).env(FINDINGS_FILE, &findings).env_remove("DAGSAN_OPTIONS");
            let ended = process::run(&mut command)?;
            // Some have races, which is their point.
            let ran = matches!(ended.status.code(), Some(0 | 66));
            ensure!(ran, "{pattern}, {times} times, ended with {}", ended.status);
            spent[at] += ended.cpu;
            row.seconds[at] = row.seconds[at].min(ended.cpu);
            row.mib[at] = row.mib[at].min(ended.peak as f64 / f64::from(1 << 20));
        }
    }
    Ok(row)
}

/// What each step from one size to the next costs.
fn steps(measured: &[f64]) -> impl Iterator<Item = f64> {
    measured.windows(2).map(|pair| pair[1] / pair[0])
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| pattern | n | s at n, 2n, 4n, 8n | steps | MiB at n, 2n, 4n, 8n | steps |\n|---|---|---|---|---|---|\n",
    );
    for Row { pattern, count, seconds, mib } in rows {
        let list = |numbers: &mut dyn Iterator<Item = f64>, digits: usize| {
            numbers.map(|number| format!("{number:.digits$}")).collect::<Vec<_>>().join(", ")
        };
        let times = [list(&mut seconds.iter().copied(), 2), list(&mut steps(seconds), 2)];
        let memory = [list(&mut mib.iter().copied(), 0), list(&mut steps(mib), 2)];
        text += &format!("| {pattern} | {count} | {} | {} |\n", times.join(" | "), memory.join(" | "));
    }
    text
}

/// The steps that are too large, or that none is.
fn verdict(rows: &[Row]) -> String {
    let large = |row: &&Row| steps(&row.seconds).chain(steps(&row.mib)).any(|step| step > MOST);
    let names: Vec<&str> = rows.iter().filter(large).map(|row| row.pattern.as_str()).collect();
    match names.as_slice() {
        [] => format!("every step at most {MOST}: met"),
        names => format!("every step at most {MOST}: missed by {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_and_judged() {
        let row = |pattern: &str, seconds| Row {
            pattern: pattern.into(),
            count: 10,
            seconds,
            mib: [10.0, 10.0, 11.0, 22.0],
        };
        let mut rows = vec![row("linear", [1.0, 2.0, 4.2, 8.0])];
        assert!(
            table(&rows)
                .contains("| linear | 10 | 1.00, 2.00, 4.20, 8.00 | 2.00, 2.10, 1.90 | 10, 10, 11, 22 |")
        );
        assert!(verdict(&rows).ends_with("met"));
        rows.push(row("quadratic", [1.0, 4.0, 16.0, 64.0]));
        assert!(verdict(&rows).ends_with("missed by quadratic"));
    }
}
