//! `cargo xtask bench threads`: what the check of programs with threads costs, on the kernels in `kernels/threads/`.
//!
//! As `bench native`, which see. The kernels have four threads in all builds; under DagSan these take turns.

use std::path::Path;

use anyhow::Result;

use crate::bench::native::{self, Aim, Args, Cores, Measure, Of, Page, Suite};

const THREADS: Suite = Suite {
    package: "kernels/threads",
    page: Page {
        name: "docs/benchmarks/threads.md",
        marks: ["<!-- measured: by cargo xtask bench threads --write -->\n", "<!-- end -->\n"],
    },
    tables: &[Cores::All, Cores::One],
    aims: &[Aim { of: Of::Mean, measure: Measure::AgainstTsan, most: 0.7 }],
};

/// Runs the benchmark and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    native::run_suite(root, args, &THREADS)
}
