//! Programs with rayon, to measure with: `kernels NAME`, `kernels NAME SIZE`, or `kernels list`.
//!
//! A kernel makes its input, does its parallel work, and checks the result. The time that is printed is that of the
//! work alone. All are in safe Rust, and as one would write them for speed: by rows, by chunks, by `join`.

mod bfs;
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
use std::time::{Duration, Instant};

/// A program to measure.
struct Kernel {
    name: &'static str,
    size: usize,
    /// How long the work took, or what is wrong with the result.
    run: fn(usize) -> Result<Duration, String>,
}

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
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "list" {
        KERNELS.iter().for_each(|kernel| println!("{} {}", kernel.name, kernel.size));
        return ExitCode::SUCCESS;
    }
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
    let size = std::env::args().nth(2).and_then(|size| size.parse().ok());
    match kernel.map(|kernel| (kernel.run)(size.unwrap_or(kernel.size))) {
        Some(Ok(time)) => {
            println!("time {:.6}", time.as_secs_f64());
            ExitCode::SUCCESS
        }
        Some(Err(message)) => {
            eprintln!("error: {name}: {message}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("error: no kernel is called {name}: see kernels list");
            ExitCode::FAILURE
        }
    }
}

/// What is measured.
fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// Is the result right? If so, the time counts.
fn checked(time: Duration, right: bool) -> Result<Duration, String> {
    if right { Ok(time) } else { Err("the result is wrong".to_owned()) }
}

/// Numbers that look random: xorshift, by Marsaglia.
fn random() -> impl FnMut() -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}
