//! `cargo xtask bench native`: what the check of native programs costs, on the kernels in `kernels/`.
//!
//! Each kernel is run plainly, under rustc's ThreadSanitizer and under DagSan, in turn, several times. Of each the best
//! time and the least peak of memory count. The time is that of the tasks alone, as the kernel measures it: making the
//! input and checking the result are left out, and so are the start of the program and the writing of findings.
//!
//! Tasks run on one thread in all three. That is kind to ThreadSanitizer, which then has no other thread to compare with.

mod builds;
pub mod process;
pub mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use dagsan_findings::{End, FINDINGS_FILE, Findings, Stats};
use indicatif::ProgressBar;

pub use builds::{Build, TARGET, cargo_dagsan, forget_programs, succeed, target_directory};
pub use table::{Aim, Measure};

use table::Row;

/// Options of `bench native`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only kernels whose name contains this
    #[arg(long, default_value = "")]
    kernel: String,
    /// Runs of which the best counts
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Put the table into the page in docs/benchmarks
    #[arg(long)]
    write: bool,
}

/// A page with a table that was measured.
pub struct Page {
    /// Its path.
    pub name: &'static str,
    /// What the table stands between.
    pub marks: [&'static str; 2],
}

/// Kernels that are measured together.
pub struct Suite {
    /// Where they are.
    pub package: &'static str,
    /// Where the table is kept.
    pub page: Page,
    /// What should come out.
    pub aims: &'static [Aim],
}

const fn aim(kernel: Option<&'static str>, measure: Measure, most: f64) -> Aim {
    Aim { kernel, measure, most }
}

const NATIVE: Suite = Suite {
    package: "kernels",
    page: Page {
        name: "docs/benchmarks/native.md",
        marks: ["<!-- measured: by cargo xtask bench native --write -->\n", "<!-- end -->\n"],
    },
    aims: &[
        aim(Some("matmul"), Measure::Slowdown, 1.7),
        aim(Some("strassen"), Measure::Slowdown, 3.5),
        aim(Some("sparselu"), Measure::Slowdown, 3.0),
        aim(Some("smith-waterman"), Measure::Slowdown, 2.5),
        aim(Some("quicksort"), Measure::Slowdown, 2.6),
        aim(Some("fib"), Measure::NsPerTask, 80.0),
        aim(None, Measure::Slowdown, 3.0),
        aim(None, Measure::AgainstTsan, 0.5),
    ],
};

/// Runs the benchmark and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    run_suite(root, args, &NATIVE)
}

/// Measures the kernels of a suite, and prints the table.
pub fn run_suite(root: &Path, args: &Args, suite: &Suite) -> Result<()> {
    let mut programs = Vec::new();
    for build in Build::ALL {
        programs.push((build, build.make(root, suite.package)?));
    }
    let kernels = list(&programs[Build::Plain as usize].1)?;
    let wanted: Vec<_> = kernels.iter().filter(|(name, _)| name.contains(&args.kernel)).collect();
    ensure!(!wanted.is_empty(), "no kernel is called {}", args.kernel);
    let bar = ProgressBar::new_spinner();
    let mut rows = Vec::new();
    for (name, size) in &wanted {
        rows.push(measure(root, &programs, name, *size, args.runs, &bar).with_context(|| name.clone())?);
    }
    bar.finish_and_clear();
    let lines = table::table(&rows);
    let targets = table::targets(suite.aims, &rows, wanted.len() == kernels.len());
    println!("\n{}\n{}", table::text(&lines), targets.join("\n"));
    if args.write {
        let targets: Vec<String> = targets.iter().map(|target| format!("- {target}\n")).collect();
        let measured = format!("{}\n{}\n", table::markdown(&lines), targets.concat());
        suite.page.write(root, &format!("`--runs {}`", args.runs), &measured)?;
    }
    Ok(())
}

/// The kernels of the program, and their sizes.
pub fn list(program: &Path) -> Result<Vec<(String, u64)>> {
    let ended = process::run(Command::new(program).arg("list"))?;
    let kernel =
        |line: &str| Some((line.split_once(' ')?.0.to_owned(), line.split_once(' ')?.1.parse().ok()?));
    ended.stdout.lines().map(|line| kernel(line).with_context(|| format!("not a kernel: {line}"))).collect()
}

fn measure(
    root: &Path,
    programs: &[(Build, PathBuf)],
    kernel: &str,
    size: u64,
    runs: u32,
    bar: &ProgressBar,
) -> Result<Row> {
    let findings = target_directory(root).join("native").join("findings.json");
    let mut row = Row { kernel: kernel.into(), size, tasks: 0, seconds: [f64::MAX; 3], mib: [f64::MAX; 3] };
    for number in 1..=runs.max(1) {
        for (build, program) in programs {
            bar.set_message(format!("{kernel}: {}, run {number} of {runs}", build.name()));
            bar.tick();
            let mut command = Command::new(program);
            // Reports do not matter here, nor do they take time.
            command.arg(kernel).env("TSAN_OPTIONS", "report_bugs=0").env(FINDINGS_FILE, &findings);
            // One thread in all three.
            command.env("RAYON_NUM_THREADS", "1");
            let ended = process::run(command.env_remove("DAGSAN_OPTIONS"))?;
            if *build == Build::Dagsan {
                row.tasks = checked(&findings)?.tasks;
            }
            ensure!(ended.status.success(), "{} ended with {}", build.name(), ended.status);
            let time = ended.stdout.lines().find_map(|line| line.strip_prefix("time ")?.parse().ok());
            let time: f64 = time.with_context(|| format!("{} printed no time", build.name()))?;
            let at = *build as usize;
            row.seconds[at] = row.seconds[at].min(time);
            row.mib[at] = row.mib[at].min(ended.peak as f64 / f64::from(1 << 20));
        }
    }
    Ok(row)
}

/// What a run took that was checked to its end, and in which no race was found.
pub fn checked(path: &Path) -> Result<Stats> {
    let findings = Findings::read(path)?;
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    match findings.end {
        End::Exited => {}
        other => bail!("the run was not checked to its end: {other:?}"),
    }
    ensure!(findings.races.is_empty(), "the kernel has a race: {:?}", findings.races[0]);
    Ok(findings.stats)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn date() -> Result<String> {
    Ok(process::run(Command::new("date").arg("+%F"))?.stdout.trim().to_owned())
}

impl Page {
    /// Puts the table in the place of what was measured before, under the date and `how` it was measured.
    pub fn write(&self, root: &Path, how: &str, measured: &str) -> Result<()> {
        let Page { name, marks: [start, end] } = self;
        let path = root.join(name);
        let page = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let parts = page.split_once(start).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
        let (before, after) = parts.with_context(|| format!("{name} has no place for the table"))?;
        let head = format!("\n{}, {} cores, {how}:\n\n", date()?, cores());
        fs::write(&path, [before, start, &head, measured, end, after].concat())
            .with_context(|| format!("cannot write {name}"))
    }
}
