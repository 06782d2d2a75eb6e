//! What the kernels of rayon and of threads have in common: how one is chosen, timed and checked.
//!
//! Included by each of these packages.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A program to measure.
pub struct Kernel {
    pub name: &'static str,
    pub size: usize,
    /// How long the work took, or what is wrong with the result.
    pub run: fn(usize) -> Result<Duration, String>,
}

/// The kernel that the arguments name, or the list of all.
pub fn main(kernels: &[Kernel]) -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "list" {
        kernels.iter().for_each(|kernel| println!("{} {}", kernel.name, kernel.size));
        return ExitCode::SUCCESS;
    }
    let kernel = kernels.iter().find(|kernel| kernel.name == name);
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
pub fn timed<R>(work: impl FnOnce() -> R) -> (Duration, R) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// Is the result right? If so, the time counts.
pub fn checked(time: Duration, right: bool) -> Result<Duration, String> {
    if right { Ok(time) } else { Err("the result is wrong".to_owned()) }
}

/// Numbers that look random: xorshift, by Marsaglia.
pub fn random() -> impl FnMut() -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}
