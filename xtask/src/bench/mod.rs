//! `cargo xtask bench`: measures, and prints. Nothing here passes or fails.

mod order;
mod script;
mod shapes;

use clap::Subcommand;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Nanoseconds per event and per query of every order engine, over growing programs.
    Order(order::Args),
}

/// Runs a benchmark.
pub fn run(bench: &Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Order(args) => order::run(args),
    }
}
