//! `cargo xtask bench rayon`: what the check of programs with rayon costs, on the kernels in `kernels/rayon/`.
//!
//! As `bench native`, which see. rayon has a thread for each core in the plain build and ThreadSanitizer's; DagSan has one, and cuts
//! parallel iterators down to single items.

use std::path::Path;

use anyhow::Result;

use crate::bench::native::{self, Aim, Args, Cores, Measure, Of, Page, Suite};

const RAYON: Suite = Suite {
    package: "kernels/rayon",
    page: Page {
        name: "docs/benchmarks/rayon.md",
        marks: ["<!-- measured: by cargo xtask bench rayon --write -->\n", "<!-- end -->\n"],
    },
    tables: &[Cores::All, Cores::One],
    aims: &[
        Aim { of: Of::Mean, measure: Measure::AgainstTsan, most: 0.5 },
        Aim { of: Of::Each, measure: Measure::AgainstTsan, most: 1.0 },
    ],
};

/// Runs the benchmark and prints the table.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    native::run_suite(root, args, &RAYON)
}
