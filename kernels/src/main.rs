//! Task-parallel programs of the papers, to measure with: `kernels NAME [SIZE]`, or `kernels list`.
//!
//! A kernel makes its input, runs its tasks, and checks the result. The time that is printed is that of the tasks
//! alone. All are free of races and written as one would write them for speed: in safe Rust where slices can be split,
//! with a small unsafe type ([`shared::Shared`]) where tasks write to parts of one matrix.

mod fib;
mod jacobi;
mod matmul;
mod matrix;
mod nqueens;
mod quicksort;
mod random;
mod shared;
mod smith_waterman;
mod sort;
mod sparselu;
mod strassen;

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A program to measure.
struct Kernel {
    name: &'static str,
    /// The size if none is given; what it means is the kernel's matter.
    size: usize,
    /// How long the tasks took, or what is wrong with the size or the result.
    run: fn(usize) -> Result<Duration, String>,
}

const KERNELS: [Kernel; 9] = [
    Kernel { name: "matmul", size: 1024, run: matmul::run },
    Kernel { name: "quicksort", size: 10_000_000, run: quicksort::run },
    Kernel { name: "fib", size: 32, run: fib::run },
    Kernel { name: "strassen", size: 1024, run: strassen::run },
    Kernel { name: "sort", size: 4_000_000, run: sort::run },
    Kernel { name: "sparselu", size: 50, run: sparselu::run },
    Kernel { name: "jacobi", size: 2048, run: jacobi::run },
    Kernel { name: "nqueens", size: 12, run: nqueens::run },
    Kernel { name: "smith-waterman", size: 8192, run: smith_waterman::run },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let (name, size) = match arguments {
        [list] if list == "list" => {
            for Kernel { name, size, .. } in KERNELS {
                println!("{name} {size}");
            }
            return Ok(());
        }
        [name] => (name, None),
        [name, size] => (name, Some(size.parse::<usize>().map_err(|error| format!("{size}: {error}"))?)),
        _ => return Err("usage: kernels NAME [SIZE], or kernels list".into()),
    };
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
    let kernel = kernel.ok_or_else(|| format!("no kernel is called {name}: see kernels list"))?;
    let size = size.unwrap_or(kernel.size);
    let time = (kernel.run)(size).map_err(|message| format!("{name} {size}: {message}"))?;
    println!("time {:.6}", time.as_secs_f64());
    Ok(())
}

/// What is measured.
fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// An error unless `right`.
fn check(right: bool, message: impl Into<String>) -> Result<(), String> {
    if right { Ok(()) } else { Err(message.into()) }
}
