//! `cargo xtask bench native`: what the check of native programs costs, on the kernels in `kernels/`.
//!
//! Each kernel is run plainly, under rustc's ThreadSanitizer and under DagSan, in turn, several times. Of each the best
//! time and the least peak of memory count. The time is that of the tasks alone, as the kernel measures it: making the
//! input and checking the result are left out, and so are the start of the program and the writing of findings.
//!
//! What counts is each tool as its user would run it: on all cores that it can use. Kernels of dagsan-task have one worker in all three builds, as
//! ThreadSanitizer cannot follow its fibers on several: fib runs out of memory. Where the plain program and ThreadSanitizer use more, a second table has all
//! three on one core, which is kind to ThreadSanitizer: it then has no other thread to compare with.

mod builds;
mod cores;
pub mod process;
pub mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use dagsan_findings::{End, FINDINGS_FILE, Findings, Stats};
use indicatif::ProgressBar;

pub use builds::{Build, TARGET, cargo_dagsan, forget_programs, succeed, target_directory};
pub use cores::Cores;
pub use table::{Aim, Measure, Of};

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
    /// How they are run: a table each.
    pub tables: &'static [Cores],
    /// What should come out of the first one.
    pub aims: &'static [Aim],
}

const NATIVE: Suite = Suite {
    package: "kernels",
    page: Page {
        name: "docs/benchmarks/native.md",
        marks: ["<!-- measured: by cargo xtask bench native --write -->\n", "<!-- end -->\n"],
    },
    // The executor of dagsan-task is serial: more cores are no use to the plain program and to ThreadSanitizer.
    tables: &[Cores::All],
    aims: &[
        Aim { of: Of::Kernel("fib"), measure: Measure::NsPerTask, most: 150.0 },
        Aim { of: Of::Kernel("jacobi"), measure: Measure::Slowdown, most: 5.0 },
        Aim { of: Of::Kernel("quicksort"), measure: Measure::Slowdown, most: 3.0 },
        Aim { of: Of::Kernel("sort"), measure: Measure::Slowdown, most: 3.0 },
        Aim { of: Of::Mean, measure: Measure::Slowdown, most: 2.5 },
        Aim { of: Of::Mean, measure: Measure::AgainstTsan, most: 0.4 },
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
    let mut rows: Vec<Vec<Row>> = suite.tables.iter().map(|_| Vec::new()).collect();
    for (name, size) in &wanted {
        for (cores, rows) in suite.tables.iter().zip(&mut rows) {
            let row = measure(root, &programs, name, *size, *cores, args.runs, &bar);
            rows.push(row.with_context(|| format!("{name}, {cores}"))?);
        }
    }
    bar.finish_and_clear();
    let mut measured = String::new();
    for (number, (cores, rows)) in suite.tables.iter().zip(&rows).enumerate() {
        let lines = table::table(rows);
        let aims = if number == 0 { suite.aims } else { &[] };
        let targets = table::targets(aims, rows, wanted.len() == kernels.len());
        println!("\n{cores}:\n{}\n{}", table::text(&lines), targets.join("\n"));
        let targets: Vec<String> = targets.iter().map(|target| format!("- {target}\n")).collect();
        measured += &format!("{cores}:\n\n{}\n{}\n", table::markdown(&lines), targets.concat());
    }
    if args.write {
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
    cores: Cores,
    runs: u32,
    bar: &ProgressBar,
) -> Result<Row> {
    let _cores = cores.confine()?;
    let findings = target_directory(root).join("native").join("findings.json");
    let mut row = Row { kernel: kernel.into(), size, tasks: 0, seconds: [f64::MAX; 3], mib: [f64::MAX; 3] };
    for number in 1..=runs.max(1) {
        for (build, program) in programs {
            bar.set_message(format!("{kernel}, {cores}: {}, run {number} of {runs}", build.name()));
            bar.tick();
            let mut command = Command::new(program);
            // Reports do not matter here, nor do they take time.
            command.arg(kernel).env("TSAN_OPTIONS", "report_bugs=0").env(FINDINGS_FILE, &findings);
            // As many threads as there are cores for them.
            command.env_remove("RAYON_NUM_THREADS").env("DAGSAN_WORKERS", "1");
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
        let head = format!("\n{}, {} cores, {how}:\n\n", date()?, cores::count());
        fs::write(&path, [before, start, &head, measured, end, after].concat())
            .with_context(|| format!("cannot write {name}"))
    }
}
