//! `cargo xtask`: DagSan's own tasks, in Rust so that they run wherever the project builds.
//!
//! This file only dispatches. A new task is a module, a variant of [`Task`] and an arm of [`run`].

mod bench;
mod book;
mod fuzz;
mod judge;
mod suites;
mod test;
mod tidy;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ColorChoice, Parser, Subcommand};

/// DagSan's own tasks.
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", color = ColorChoice::Never)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
enum Task {
    /// Run everything that must pass before a commit, and stop at the first failure
    Test(test::Args),
    /// Measure and print
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Judge every engine by the oracle on random programs
    Fuzz(fuzz::Args),
    /// Judge engines, eliminations and explorations on random programs of the task language
    FuzzLanguage(fuzz::language::Args),
    /// Judge native programs under `cargo dagsan` by the oracle, on random programs
    FuzzNative(fuzz::native::Args),
    /// Judge OpenMP programs under `dagsan cc` by the oracle, on random programs
    FuzzOpenmp(fuzz::openmp::Args),
    /// Judge which bytes the pass marks by a reference, on random functions
    FuzzMarks(fuzz::marks::Args),
    /// Give damaged files to whatever reads files: findings, debug information, suppressions, baselines
    FuzzReaders(fuzz::readers::Args),
    /// Run one program and show what every engine and the oracle say of it
    Judge(judge::Args),
    /// Run rayon's own tests on the drop-in for rayon-core, without and under DagSan
    RayonSuite(suites::rayon::Args),
    /// Run the tests of well-known crates that use rayon under DagSan
    RayonCrates(suites::crates::Args),
    /// Run the tests of well-known crates that use threads under DagSan
    ThreadCrates(suites::crates::Args),
    /// Build the documentation as a book, by mdBook
    Book,
    /// Check what compilers do not: file heads and lengths, leftovers, links, pages of engines
    Tidy,
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not by returning it from `main`: with RUST_BACKTRACE set, that prints a backtrace of
            // xtask under every failed test.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let root = repository_root()?;
    match task {
        Task::Test(args) => test::run(&root, args),
        Task::Bench(bench) => bench::run(&root, &bench),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::FuzzLanguage(args) => fuzz::language::run(&args),
        Task::FuzzNative(args) => fuzz::native::run(&root, &args),
        Task::FuzzOpenmp(args) => fuzz::openmp::run(&root, &args),
        Task::FuzzMarks(args) => fuzz::marks::run(&root, &args),
        Task::FuzzReaders(args) => fuzz::readers::run(&root, &args),
        Task::Judge(args) => judge::run(&args),
        Task::RayonSuite(args) => suites::rayon::run(&root, &args),
        Task::RayonCrates(args) => suites::crates::rayon(&root, &args),
        Task::ThreadCrates(args) => suites::crates::threads(&root, &args),
        Task::Book => book::run(&root),
        Task::Tidy => tidy::run(&root),
    }
}

/// The directory of the workspace, wherever the command was started.
fn repository_root() -> Result<PathBuf> {
    // Cargo sets the variable for what it runs; the path of the build serves a bare binary.
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let parent = PathBuf::from(&manifest).parent().map(PathBuf::from);
    parent.with_context(|| format!("{manifest} has no parent; start xtask with `cargo xtask`"))
}
