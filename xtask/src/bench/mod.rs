//! `cargo xtask bench`: measures, and prints. Nothing here passes or fails.

mod build;
mod costs;
mod growth;
mod history;
mod lang;
mod marks;
pub mod native;
mod openmp;
mod order;
mod papers;
mod rayon;
mod script;
mod shapes;
mod threads;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Subcommand;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Nanoseconds per event and per query of every order engine, over growing programs.
    Order(order::Args),
    /// Nanoseconds per run of bytes in the access history.
    History(history::Args),
    /// The task language: operations per second, and the slowdown by checks.
    Lang(lang::Args),
    /// Native programs: the check's cost beside the plain program and ThreadSanitizer.
    Native(native::Args),
    /// The same for programs with rayon.
    Rayon(native::Args),
    /// The same for programs with threads.
    Threads(native::Args),
    /// The same for OpenMP programs, beside Archer, and which seeded races either finds.
    Openmp(openmp::Args),
    /// How many marks the pass leaves in the kernels, and how many of them are executed.
    Marks(marks::Args),
    /// How long `cargo dagsan build` takes beside `cargo build`.
    Build(build::Args),
    /// What single operations, and programs of tiny tasks, cost beside the plain ones.
    Costs(costs::Args),
    /// How time and memory grow with native programs, pattern by pattern.
    Growth(growth::Args),
    /// The tables of papers 002 and 003, their figures beside ours.
    Papers(papers::Args),
}

/// Settings of the C library's allocator: memory that was freed is kept, and used again.
const KEEP_MEMORY: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "17179869184"), ("MALLOC_TRIM_THRESHOLD_", "17179869184")];

/// Runs a benchmark. One that measures inside this process does so in a process that keeps its memory: otherwise every run
/// would pay for new pages, which may cost more than what is measured and never costs the same; the best of several
/// runs has them.
pub fn run(root: &Path, bench: &Bench) -> anyhow::Result<()> {
    let elsewhere = matches!(
        bench,
        Bench::Native(_)
            | Bench::Rayon(_)
            | Bench::Threads(_)
            | Bench::Openmp(_)
            | Bench::Costs(_)
            | Bench::Growth(_)
            | Bench::Marks(_)
            | Bench::Build(_)
    );
    if !elsewhere && KEEP_MEMORY.iter().any(|(name, _)| std::env::var_os(name).is_none()) {
        let program = std::env::current_exe().context("cannot find xtask itself")?;
        let status = Command::new(program).args(std::env::args_os().skip(1)).envs(KEEP_MEMORY).status();
        ensure!(status.context("cannot start xtask again")?.success(), "the benchmark failed");
        return Ok(());
    }
    match bench {
        Bench::Order(args) => order::run(args),
        Bench::History(args) => history::run(args),
        Bench::Lang(args) => lang::run(args),
        Bench::Papers(args) => papers::run(args),
        Bench::Native(args) => native::run(root, args),
        Bench::Rayon(args) => rayon::run(root, args),
        Bench::Threads(args) => threads::run(root, args),
        Bench::Openmp(args) => openmp::run(root, args),
        Bench::Marks(args) => marks::run(root, args),
        Bench::Build(args) => build::run(root, args),
        Bench::Costs(args) => costs::run(root, args),
        Bench::Growth(args) => growth::run(root, args),
    }
}
