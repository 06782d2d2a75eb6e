//! Small rayon programs with a race of a kind that people write, each with its correct twin: `seeds NAME` runs one,
//! `seeds --list` names them.
//!
//! The twin of `NAME` is `NAME_fixed`. A race must be found in each that is not a twin, on the lines with `// race`, and
//! none in a twin, however many threads rayon is told to use. `crates/dagsan/tests/rayon` sees to that.

use std::process::ExitCode;

/// A list of seeds, from the functions' names.
macro_rules! seeds {
    ($($name:ident, $fixed:ident;)*) => {
        &[$((stringify!($name), $name as fn()), (stringify!($fixed), $fixed as fn())),*]
    };
}

/// One more in a cell, unprotected; it counts as made where the macro is used.
#[collapse_debuginfo(yes)]
macro_rules! bump {
    ($cell:expr) => {{
        // SAFETY: whether somebody else does so is what these programs are about.
        unsafe { *$cell.get() += 1 }
    }};
}

mod ahead;
mod aliases;
mod blocks;
mod caches;
mod disjoint;
mod exits;
mod libraries;
mod locks;
mod nests;
mod reductions;
mod scopes;
mod scratch;
mod shared;
mod splits;
mod tiny;
mod waits;
mod workers;

/// A name, and what it runs.
type Seed = (&'static str, fn());

const SEEDS: [&[Seed]; 16] = [
    ahead::SEEDS,
    aliases::SEEDS,
    blocks::SEEDS,
    caches::SEEDS,
    disjoint::SEEDS,
    exits::SEEDS,
    libraries::SEEDS,
    locks::SEEDS,
    nests::SEEDS,
    reductions::SEEDS,
    scopes::SEEDS,
    scratch::SEEDS,
    splits::SEEDS,
    tiny::SEEDS,
    waits::SEEDS,
    workers::SEEDS,
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    if wanted == "--list" {
        SEEDS.into_iter().flatten().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    match SEEDS.into_iter().flatten().find(|(name, _)| *name == wanted) {
        Some((_, run)) => {
            run();
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("there is no seed `{wanted}`: `seeds --list` names them");
            ExitCode::from(64)
        }
    }
}
