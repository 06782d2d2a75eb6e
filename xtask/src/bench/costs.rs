//! `cargo xtask bench costs`: what single operations cost beyond the plain ones, and programs of many small tasks beside the plain
//! program, on what is in `kernels/costs/`.
//!
//! rayon has one thread in the plain program, so that both do all of it one after the other; DagSan is run as its user would run it. Of
//! each the best of several runs counts.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use dagsan_findings::FINDINGS_FILE;
use indicatif::ProgressBar;

use super::native::table::{markdown, text};
use super::native::{Build, Page, checked, process, target_directory};

/// Options of `bench costs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what has this in its name
    #[arg(long, default_value = "")]
    cost: String,
    /// Runs of which the best counts
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Put the table into the page in docs/benchmarks
    #[arg(long)]
    write: bool,
}

/// For programs that nothing checks.
const ONE_THREAD: [(&str, &str); 2] = [("RAYON_NUM_THREADS", "1"), ("DAGSAN_WORKERS", "1")];

const PAGE: Page = Page {
    name: "docs/benchmarks/costs.md",
    marks: ["<!-- measured: by cargo xtask bench costs --write -->\n", "<!-- end -->\n"],
};

/// What a cost should be at most.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Aim {
    /// Nanoseconds beyond the plain operation.
    Beyond(f64),
    /// Of the plain program's time.
    Ratio(f64),
}

/// The aims of operations.
const OPERATIONS: [(&str, f64); 4] = [
    ("relaxed atomic operation", 20.0),
    ("section of a mutex", 250.0),
    ("promise set and got", 300.0),
    ("Arc cloned and dropped", 150.0),
];

/// The aim of the others, which are programs.
const RATIO: f64 = 30.0;

/// Those of which a task is counted. If it takes less than so many nanoseconds, it may cost more.
const TASKS: [&str; 3] = ["task that reads one word", "task per byte", "spawn in one scope"];
const TINY: f64 = 20.0;

/// Something that was measured.
struct Row {
    name: String,
    count: u64,
    /// Nanoseconds each.
    plain: f64,
    dagsan: f64,
    mib: [f64; 2],
}

impl Row {
    fn aim(&self) -> Aim {
        let operation = OPERATIONS.iter().find(|(name, _)| *name == self.name);
        operation.map_or(Aim::Ratio(RATIO), |(_, most)| Aim::Beyond(*most))
    }

    fn verdict(&self) -> String {
        let (measured, most, what) = match self.aim() {
            Aim::Beyond(most) => (self.dagsan - self.plain, most, "ns beyond plain"),
            Aim::Ratio(most) => (self.dagsan / self.plain, most, "of plain"),
        };
        let is_tiny = TASKS.contains(&self.name.as_str()) && self.plain < TINY;
        let verdict = match measured <= most {
            true => "met",
            false if is_tiny => "excepted, a task is tiny",
            false => "missed",
        };
        format!("at most {most} {what}: {verdict}")
    }
}

/// Runs the benchmark and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let [plain, dagsan] = [Build::Plain, Build::Dagsan].map(|build| build.make(root, "kernels/costs"));
    let (plain, dagsan) = (plain?, dagsan?);
    let costs = list(&plain)?;
    let wanted: Vec<_> = costs.iter().filter(|(name, _)| name.contains(&args.cost)).collect();
    ensure!(!wanted.is_empty(), "no cost is called {}", args.cost);
    let bar = ProgressBar::new_spinner();
    let mut rows = Vec::new();
    for (name, count) in wanted {
        let mut row =
            Row { name: name.clone(), count: *count, plain: f64::MAX, dagsan: f64::MAX, mib: [f64::MAX; 2] };
        for number in 1..=args.runs.max(1) {
            bar.set_message(format!("{name}, run {number} of {}", args.runs));
            bar.tick();
            let each = |seconds: f64| seconds * 1e9 / *count as f64;
            let (seconds, mib) = measure(root, Command::new(&plain).envs(ONE_THREAD), name, false)?;
            (row.plain, row.mib[0]) = (row.plain.min(each(seconds)), row.mib[0].min(mib));
            let (seconds, mib) = measure(root, &mut Command::new(&dagsan), name, true)?;
            (row.dagsan, row.mib[1]) = (row.dagsan.min(each(seconds)), row.mib[1].min(mib));
        }
        rows.push(row);
    }
    bar.finish_and_clear();
    let lines = table(&rows);
    println!("\n{}", text(&lines));
    if args.write {
        PAGE.write(root, &format!("`--runs {}`", args.runs), &format!("{}\n", markdown(&lines)))?;
    }
    Ok(())
}

/// What there is, and how often each is done.
fn list(program: &Path) -> Result<Vec<(String, u64)>> {
    let ended = process::run(Command::new(program).arg("list"))?;
    let cost =
        |line: &str| Some((line.split_once('\t')?.0.to_owned(), line.split_once('\t')?.1.parse().ok()?));
    ended.stdout.lines().map(|line| cost(line).with_context(|| format!("not a cost: {line}"))).collect()
}

/// The seconds that a run took, and its peak of memory in MiB.
fn measure(root: &Path, command: &mut Command, name: &str, is_checked: bool) -> Result<(f64, f64)> {
    let findings = target_directory(root).join("native").join("findings.json");
    command.arg(name).env(FINDINGS_FILE, &findings).env_remove("DAGSAN_OPTIONS");
    let ended = process::run(command)?;
    ensure!(ended.status.success(), "{name} ended with {}", ended.status);
    if is_checked {
        checked(&findings).with_context(|| name.to_owned())?;
    }
    let time = ended.stdout.lines().find_map(|line| line.strip_prefix("time ")?.parse().ok());
    Ok((time.with_context(|| format!("{name} printed no time"))?, ended.peak as f64 / f64::from(1 << 20)))
}

const HEAD: [&str; 8] = [
    "what",
    "times",
    "plain, ns",
    "dagsan, ns",
    "beyond plain, ns",
    "dagsan/plain",
    "MiB plain/dagsan",
    "aim",
];

fn table(rows: &[Row]) -> Vec<[String; 8]> {
    let mut lines = vec![HEAD.map(String::from)];
    for row in rows {
        let [plain, dagsan, beyond] =
            [row.plain, row.dagsan, row.dagsan - row.plain].map(|ns| format!("{ns:.1}"));
        let ratio = format!("{:.1}", row.dagsan / row.plain);
        let mib = row.mib.map(|mib| format!("{mib:.0}")).join("/");
        let (name, count) = (row.name.clone(), row.count.to_string());
        lines.push([name, count, plain, dagsan, beyond, ratio, mib, row.verdict()]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_judged_by_nanoseconds_and_programs_by_their_ratio() {
        let row =
            |name: &str, dagsan| Row { name: name.into(), count: 10, plain: 5.0, dagsan, mib: [4.0, 5.0] };
        let rows =
            ["section of a mutex", "element of a column", "task per byte"].map(|name| row(name, 255.0));
        let lines = table(&rows);
        assert_eq!(lines[1][4..], ["250.0", "51.0", "4/5", "at most 250 ns beyond plain: met"]);
        assert_eq!(lines[2][7], "at most 30 of plain: missed");
        assert_eq!(lines[3][7], "at most 30 of plain: excepted, a task is tiny");
    }
}
