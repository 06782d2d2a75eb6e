//! `cargo xtask rayon-crates` and `thread-crates`: the test suites of well-known crates, plainly and under `cargo dagsan test`.
//!
//! Prints the tables of docs/rayon.md and docs/threads.md, and fails if a suite has a race, or if other tests pass than
//! plainly. The times are those of the tests alone: everything is built before.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::bench::native::{cargo_dagsan, succeed, target_directory};
use crate::suites::Scratch;
use crate::suites::subjects::{RAYON, Subject, THREADS};

/// Options of `rayon-crates` and `thread-crates`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only crates whose name contains this
    #[arg(long = "crate", default_value = "")]
    name: String,
    /// How often each suite is run under DagSan; the table has the last run
    #[arg(long, default_value_t = 1)]
    runs: u32,
}

/// How a test suite went.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    passed: u64,
    failed: u64,
    racy: u64,
    deadlocked: u64,
    /// Of those that passed, how many had tasks.
    with_tasks: u64,
    /// Has cargo said that all is well?
    success: bool,
}

impl Outcome {
    /// Did all tests pass, with this many?
    fn is_right(&self, passed: u64) -> bool {
        self.success && (self.passed, self.failed, self.racy, self.deadlocked) == (passed, 0, 0, 0)
    }
}

/// Crates that use rayon, with the newest one: what their authors have locked may be too old for the drop-in.
pub fn rayon(root: &Path, args: &Args) -> Result<()> {
    let newest = |package: &Path| {
        succeed(Command::new("cargo").args(["update", "--quiet", "rayon"]).current_dir(package))
    };
    run(root, args, &RAYON, "tasks", newest)
}

/// Crates whose tests have threads.
pub fn threads(root: &Path, args: &Args) -> Result<()> {
    run(root, args, &THREADS, "threads", |_| Ok(()))
}

/// Runs them all, and prints a row for each.
fn run(
    root: &Path,
    args: &Args,
    subjects: &[Subject],
    with: &str,
    prepare: impl Fn(&Path) -> Result<()>,
) -> Result<()> {
    let scratch = Scratch::new(root, "crates")?;
    let wanted: Vec<&Subject> = subjects.iter().filter(|subject| subject.name.contains(&args.name)).collect();
    ensure!(!wanted.is_empty(), "no crate of the list is called {}", args.name);
    let dagsan = cargo_dagsan(root)?;
    println!(
        "| crate | kind | tests | with {with} | verdict | plain | DagSan |\n|---|---|---|---|---|---|---|"
    );
    let mut wrong = Vec::new();
    for subject in &wanted {
        let name = subject.name;
        // Not all at once: two of them may need different versions of a third.
        let vendored = scratch.vendor(&[(name, subject.version)])?;
        let package = scratch.package(&vendored, name, subject.version)?;
        prepare(&package)?;
        let (plain, plain_time) = test(root, &package, subject, || Command::new("cargo"))?;
        ensure!(plain.is_right(plain.passed), "{name} fails its own tests plainly: {plain:?}");
        let (mut found, mut time) = (Outcome::default(), 0.0);
        for _ in 0..args.runs.max(1) {
            (found, time) = test(root, &package, subject, || Command::new(&dagsan))?;
            if !found.is_right(plain.passed) {
                break;
            }
        }
        ensure!(found.with_tasks > 0, "no test of {name} has had {with} to its end");
        let verdict = if found.is_right(plain.passed) {
            "race-free".to_owned()
        } else {
            wrong.push(name);
            format!("{} racy, {} failed, {} deadlocked", found.racy, found.failed, found.deadlocked)
        };
        println!(
            "| {name} {} | {} | {} | {} | {verdict} | {plain_time:.1} s | {time:.1} s |",
            subject.version, subject.kind, plain.passed, found.with_tasks,
        );
    }
    for subject in wanted {
        for (test, why) in subject.left_out {
            println!("left out of {}: `{test}`: {why}", subject.name);
        }
    }
    if !wrong.is_empty() {
        bail!("under DagSan other tests pass than plainly, or there are races: {}", wrong.join(", "));
    }
    Ok(())
}

/// Builds the tests, runs them, and takes the time of the latter.
fn test(
    root: &Path,
    package: &Path,
    subject: &Subject,
    cargo: impl Fn() -> Command,
) -> Result<(Outcome, f64)> {
    let name = subject.name;
    let command = |arguments: &[&str]| {
        let mut command = cargo();
        command.arg("test").args(arguments).args(subject.arguments).arg("--").args(subject.filters);
        for (test, _) in subject.left_out {
            command.args(["--skip", test]);
        }
        command.current_dir(package).env_remove("RUSTFLAGS");
        command.env("CARGO_TARGET_DIR", target_directory(root).join("suites").join("build"));
        command.output().with_context(|| format!("cannot start cargo for {name}"))
    };
    let built = command(&["--no-run"])?;
    ensure!(built.status.success(), "{name} does not build:\n{}", String::from_utf8_lossy(&built.stderr));
    let start = Instant::now();
    let output = command(&["--no-fail-fast"])?;
    let time = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stdout);
    let outcome = Outcome { success: output.status.success(), ..read(&said) };
    if !outcome.success {
        eprintln!("{name}:\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok((outcome, time))
}

/// Adds up what the test binaries say at their ends.
fn read(output: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in output.lines().filter(|line| line.starts_with("test result: ")) {
        let number = |after: &str| {
            let before = line.split(after).next().unwrap_or_default();
            let digits = before.rsplit(' ').next().unwrap_or_default();
            if line.contains(after) { digits.parse().unwrap_or(0) } else { 0 }
        };
        outcome.passed += number(" passed;");
        outcome.failed += number(" failed;");
        outcome.racy += number(" racy;");
        outcome.deadlocked += number(" deadlocked;");
        outcome.with_tasks += number(" of ");
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_binaries_are_added_up() {
        let output = "test a ... ok\n\
            test result: ok. 214 passed; 1 failed; 2 racy; 3 deadlocked; 1 ignored; race-free with tasks: 163 of 214 passed\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let read = read(output);
        let expected =
            Outcome { passed: 216, failed: 1, racy: 2, deadlocked: 3, with_tasks: 163, success: false };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_suite_is_right_if_the_same_tests_pass_and_cargo_says_so() {
        let right = Outcome { passed: 3, success: true, ..Outcome::default() };
        assert!(right.is_right(3) && !right.is_right(4));
        assert!(!Outcome { racy: 1, ..right }.is_right(3));
        assert!(!Outcome { passed: 3, ..Outcome::default() }.is_right(3), "a wrong exit code");
    }
}
