//! `cargo xtask bench rayon`: what the check of programs with rayon costs, on the kernels in `kernels/rayon/`.
//!
//! As `bench native`, which see. rayon has one thread in all three builds; DagSan cuts parallel iterators down to single
//! items, the others into two or so.

use std::path::Path;

use anyhow::Result;

use crate::bench::native::{self, Aim, Args, Measure, Page, Suite};

const RAYON: Suite = Suite {
    package: "kernels/rayon",
    page: Page {
        name: "docs/benchmarks/rayon.md",
        marks: ["<!-- measured: by cargo xtask bench rayon --write -->\n", "<!-- end -->\n"],
    },
    aims: &[
        Aim { kernel: Some("map-reduce"), measure: Measure::Slowdown, most: 5.0 },
        Aim { kernel: None, measure: Measure::AgainstTsan, most: 0.5 },
    ],
};

/// Runs the benchmark and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    native::run_suite(root, args, &RAYON)
}
