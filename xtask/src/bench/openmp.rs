//! `cargo xtask bench openmp`: what the check of OpenMP programs costs beside Archer, on the kernels in `kernels/openmp/`, and which of their
//! seeded races either finds.
//!
//! Archer is ThreadSanitizer with the tool that LLVM's OpenMP runtime comes with, which tells it what tasks and barriers order. Each kernel is run
//! plainly with one thread and with one for each core, under Archer with one for each core, and under DagSan by default, in turn, several times; the best time and
//! the least peak of memory count. The time is that of the parallel work alone, as the kernel measures it.
//!
//! With their seeded races the kernels are run once under DagSan, which decides for all schedules, and several times under Archer.

mod builds;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use dagsan_findings::{FINDINGS_FILE, Findings};
use indicatif::ProgressBar;

use crate::bench::native::{Page, checked, process, table as text};
use builds::{Archer, Builds};
use table::{Found, Row};

/// Options of `bench openmp`.
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

const PAGE: Page = Page {
    name: "docs/benchmarks/openmp.md",
    marks: ["<!-- measured: by cargo xtask bench openmp --write -->\n", "<!-- end -->\n"],
};

/// How often Archer looks for a seeded race.
const TRIES: u32 = 3;

/// What ThreadSanitizer ends with if it has reported a race.
const RACE_OF_TSAN: i32 = 66;

/// Runs the benchmark and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let archer = Archer::find()?;
    let kernels = kernels(root, &args.kernel)?;
    let bar = ProgressBar::new_spinner();
    let mut rows = Vec::new();
    for source in &kernels {
        let builds = Builds::make(root, source)?;
        let name = builds.name.clone();
        let row = measure(&builds, &archer, args.runs, &bar);
        rows.push(row.with_context(|| name)?);
    }
    bar.finish_and_clear();
    let (costs, races) = (table::costs(&rows), table::races(&rows));
    let targets = table::targets(&rows, args.kernel.is_empty());
    println!("\n{}\n{}\n\n{}", text::text(&costs), targets.join("\n"), text::text(&races));
    if args.write {
        let targets: String = targets.iter().map(|target| format!("- {target}\n")).collect();
        let measured = format!("{}\n{targets}\n{}\n", text::markdown(&costs), text::markdown(&races));
        PAGE.write(root, &format!("`--runs {}`", args.runs), &measured)?;
    }
    Ok(())
}

/// The sources of the kernels that are wanted.
fn kernels(root: &Path, wanted: &str) -> Result<Vec<PathBuf>> {
    let directory = root.join("kernels").join("openmp");
    let cannot = || format!("cannot read {}", directory.display());
    let mut sources = Vec::new();
    for entry in fs::read_dir(&directory).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension().is_some_and(|extension| extension == "c") && name.contains(wanted) {
            sources.push(path);
        }
    }
    ensure!(!sources.is_empty(), "no kernel is called {wanted}");
    sources.sort();
    Ok(sources)
}

fn measure(builds: &Builds, archer: &Archer, runs: u32, bar: &ProgressBar) -> Result<Row> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let findings = builds.directory.join("findings.json");
    let mut row = Row::new(&builds.name);
    let step = |what: &str| {
        bar.set_message(format!("{}: {what}", builds.name));
        bar.tick();
    };
    for number in 1..=runs.max(1) {
        step(&format!("run {number} of {runs}"));
        let mut timed = |at: usize, command: &mut Command| -> Result<()> {
            let ended = process::run(command)?;
            ensure!(ended.status.success(), "{} ended with {}", table::HOW[at], ended.status);
            let of = |what: &str| ended.stdout.lines().find_map(|line| line.strip_prefix(what));
            let time = of("time ").and_then(|time| time.parse().ok());
            let time: f64 = time.with_context(|| format!("{} printed no time", table::HOW[at]))?;
            row.size = of("size ").unwrap_or_default().to_owned();
            row.seconds[at] = row.seconds[at].min(time);
            row.mib[at] = row.mib[at].min(ended.peak as f64 / f64::from(1 << 20));
            Ok(())
        };
        timed(0, plain(&builds.plain).env("OMP_NUM_THREADS", "1"))?;
        timed(1, plain(&builds.plain).env("OMP_NUM_THREADS", &cores))?;
        let under_archer = &mut plain(&builds.archer);
        // What it reports without a reason takes no time, and must not end the kernel.
        timed(2, archer.prepare(under_archer, "report_bugs=0").env("OMP_NUM_THREADS", &cores))?;
        timed(3, plain(&builds.dagsan).env(FINDINGS_FILE, &findings))?;
        row.tasks = checked(&findings)?.tasks;
    }
    step("seeded race");
    let ended = process::run(plain(&builds.dagsan_race).env(FINDINGS_FILE, &findings))?;
    let found = Findings::read(&findings)?;
    row.dagsan = ended.status.code() == Some(66) && !found.races.is_empty();
    for _ in 0..TRIES {
        row.archer.push(look(archer, &builds.archer_race, &cores)?);
        row.alarms.push(look(archer, &builds.archer, &cores)?);
    }
    Ok(row)
}

/// Does Archer report a race?
fn look(archer: &Archer, program: &Path, cores: &str) -> Result<Found> {
    let mut command = plain(program);
    archer.prepare(&mut command, &format!("exitcode={RACE_OF_TSAN}")).env("OMP_NUM_THREADS", cores);
    let ended = command.output().with_context(|| format!("cannot start {}", program.display()))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    Ok(match ended.status.code() {
        Some(RACE_OF_TSAN) if said.contains("data race") => Found::Race,
        Some(_) => Found::Nothing,
        None => Found::Crash,
    })
}

/// A program, without the variables that would change what it does.
fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let name_text = name.to_string_lossy();
        if ["OMP_", "KMP_", "TSAN_", "ARCHER_", "DAGSAN_"].iter().any(|start| name_text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command
}
