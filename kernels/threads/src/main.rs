//! Programs with threads, to measure with: `kernels NAME`, `kernels NAME SIZE`, or `kernels list`.
//!
//! A kernel makes its input, does its work with [`THREADS`] threads, and checks the result. The time that is printed is that of the
//! work alone. They are what programs with threads are made of: channels, locks, atomics, a barrier.

mod cache;
#[path = "../../harness.rs"]
mod harness;
mod pipeline;
mod pool;
mod sieve;
mod stencil;
mod striped;

use std::process::ExitCode;

use harness::{Kernel, checked, random, timed};

/// How many threads share the work.
const THREADS: usize = 4;

const KERNELS: [Kernel; 6] = [
    Kernel { name: "pool", size: 20_000, run: pool::run },
    Kernel { name: "pipeline", size: 40_000, run: pipeline::run },
    Kernel { name: "striped-locks", size: 1_000_000, run: striped::run },
    Kernel { name: "sieve", size: 50_000_000, run: sieve::run },
    Kernel { name: "cache", size: 400_000, run: cache::run },
    Kernel { name: "stencil", size: 1_024, run: stencil::run },
];

fn main() -> ExitCode {
    harness::main(&KERNELS)
}
