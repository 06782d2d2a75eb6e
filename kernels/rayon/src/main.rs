//! Programs with rayon, to measure with: `kernels NAME`, `kernels NAME SIZE`, or `kernels list`.
//!
//! A kernel makes its input, does its parallel work, and checks the result. The time that is printed is that of the
//! work alone. All are in safe Rust, and as one would write them for speed: by rows, by chunks, by `join`.

mod bfs;
#[path = "../../harness.rs"]
mod harness;
mod histogram;
mod life;
mod map_reduce;
mod matmul;
mod nbody;
mod pipeline;
mod sort;
mod spmv;
mod tiles;
mod tree;
mod tsp;
mod word_count;

use std::process::ExitCode;

use harness::{Kernel, checked, random, timed};

const KERNELS: [Kernel; 13] = [
    Kernel { name: "par_sort", size: 4_000_000, run: sort::run },
    Kernel { name: "map-reduce", size: 32_000_000, run: map_reduce::run },
    Kernel { name: "nbody", size: 2_000, run: nbody::run },
    Kernel { name: "life", size: 2_048, run: life::run },
    Kernel { name: "tsp", size: 11, run: tsp::run },
    Kernel { name: "matmul", size: 768, run: matmul::run },
    Kernel { name: "spmv", size: 400_000, run: spmv::run },
    Kernel { name: "word-count", size: 800_000, run: word_count::run },
    Kernel { name: "tree", size: 1_000_000, run: tree::run },
    Kernel { name: "histogram", size: 24_000_000, run: histogram::run },
    Kernel { name: "bfs", size: 400_000, run: bfs::run },
    Kernel { name: "tiles", size: 8_192, run: tiles::run },
    Kernel { name: "pipeline", size: 500_000, run: pipeline::run },
];

fn main() -> ExitCode {
    harness::main(&KERNELS)
}
