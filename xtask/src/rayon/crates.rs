//! `cargo xtask rayon-crates`: the test suites of well-known crates that use rayon, plainly and under `cargo dagsan test`.
//!
//! Prints the table of docs/rayon.md. The times are those of the tests alone: everything is built before.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::bench::native::{cargo_dagsan, succeed, target_directory};
use crate::rayon::Scratch;

/// Options of `rayon-crates`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only crates whose name contains this
    #[arg(long = "crate", default_value = "")]
    name: String,
}

/// A crate, and the tests of it that use rayon.
struct Subject {
    name: &'static str,
    version: &'static str,
    kind: &'static str,
    arguments: &'static [&'static str],
}

const SUBJECTS: [Subject; 8] = [
    Subject {
        name: "indexmap",
        version: "2.14.2",
        kind: "ordered maps",
        arguments: &["--features", "rayon", "--lib", "--tests"],
    },
    Subject {
        name: "petgraph",
        version: "0.8.3",
        kind: "graphs",
        arguments: &["--features", "rayon", "--test", "page_rank", "--test", "graphmap", "--test", "johnson"],
    },
    Subject {
        name: "dashmap",
        version: "6.2.1",
        kind: "concurrent maps",
        arguments: &["--features", "rayon", "--lib"],
    },
    Subject {
        name: "hashbrown",
        version: "0.17.1",
        kind: "hashing",
        arguments: &["--features", "rayon", "--test", "rayon"],
    },
    Subject {
        name: "jwalk",
        version: "0.9.0",
        kind: "directories",
        arguments: &["--test", "integration", "--test", "relative_paths"],
    },
    Subject { name: "mtpng", version: "0.4.1", kind: "images, compression", arguments: &["--lib"] },
    Subject {
        name: "nalgebra",
        version: "0.35.0",
        kind: "linear algebra",
        arguments: &["--features", "debug,compare,rand,macros,rayon", "--test", "lib", "core::matrix"],
    },
    Subject { name: "vtext", version: "0.2.0", kind: "text", arguments: &["--features", "rayon", "--lib"] },
];

/// How a test suite went.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    passed: u64,
    failed: u64,
    racy: u64,
    /// Of those that passed, how many had tasks.
    with_tasks: u64,
}

/// Runs them all, and prints a row for each.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let scratch = Scratch::new(root, "crates")?;
    let wanted: Vec<&Subject> = SUBJECTS.iter().filter(|subject| subject.name.contains(&args.name)).collect();
    ensure!(!wanted.is_empty(), "no crate of the list is called {}", args.name);
    let versions: Vec<(&str, &str)> = wanted.iter().map(|subject| (subject.name, subject.version)).collect();
    let vendored = scratch.vendor(&versions)?;
    let dagsan = cargo_dagsan(root)?;
    println!(
        "| crate | kind | tests | with tasks | verdict | plain | DagSan |\n|---|---|---|---|---|---|---|"
    );
    for subject in wanted {
        let package = scratch.package(&vendored, subject.name, subject.version)?;
        let cargo = || Command::new("cargo");
        // What its authors have locked may be too old for the drop-in.
        succeed(cargo().args(["update", "--quiet", "rayon"]).current_dir(&package))?;
        let (_, plain_time) = test(root, &package, subject, cargo)?;
        let (found, time) = test(root, &package, subject, || Command::new(&dagsan))?;
        ensure!(found.with_tasks > 0, "no test of {} has used rayon to its end", subject.name);
        let verdict = match (found.racy, found.failed) {
            (0, 0) => "race-free".to_owned(),
            (racy, failed) => format!("{racy} racy, {failed} failed"),
        };
        println!(
            "| {} {} | {} | {} | {} | {verdict} | {plain_time:.1} s | {time:.1} s |",
            subject.name,
            subject.version,
            subject.kind,
            found.passed + found.failed + found.racy,
            found.with_tasks,
        );
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
    let command = |arguments: &[&str]| {
        let mut command = cargo();
        command
            .arg("test")
            .args(arguments)
            .args(subject.arguments)
            .current_dir(package)
            .env_remove("RUSTFLAGS");
        command.env("CARGO_TARGET_DIR", target_directory(root).join("rayon").join("build"));
        command.output().with_context(|| format!("cannot start cargo for {}", subject.name))
    };
    let built = command(&["--no-run"])?;
    let name = subject.name;
    ensure!(built.status.success(), "{name} does not build:\n{}", String::from_utf8_lossy(&built.stderr));
    let start = Instant::now();
    let output = command(&["--no-fail-fast"])?;
    let time = start.elapsed().as_secs_f64();
    Ok((read(&String::from_utf8_lossy(&output.stdout)), time))
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
            test result: ok. 214 passed; 1 failed; 2 racy; 0 deadlocked; 1 ignored; race-free with tasks: 163 of 214 passed\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        assert_eq!(read(output), Outcome { passed: 216, failed: 1, racy: 2, with_tasks: 163 });
    }
}
