//! Single operations, and programs of many small tasks, to measure with: `kernels NAME`, or `kernels list`.
//!
//! Operations are done by two tasks, beside each other: what a task does alone is not checked. Each task has its own objects, but for
//! the atomic and the `Arc`, which both share.

mod operations;
mod programs;

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Something that is done `count` times.
struct Cost {
    name: &'static str,
    count: usize,
    run: fn(usize) -> Duration,
}

const COSTS: [Cost; 9] = [
    Cost { name: "relaxed atomic operation", count: 1_000_000, run: operations::relaxed },
    Cost { name: "section of a mutex", count: 1_000_000, run: operations::mutex },
    Cost { name: "promise set and got", count: 1_000_000, run: operations::promise },
    Cost { name: "Arc cloned and dropped", count: 1_000_000, run: operations::arc },
    Cost { name: "task that reads one word", count: 1_000_000, run: programs::one_word },
    Cost { name: "task per byte", count: 1_000_000, run: programs::bytes },
    Cost { name: "spawn in one scope", count: 1_000_000, run: programs::spawns },
    Cost { name: "element of a column", count: 4096 * 4096, run: programs::columns },
    Cost { name: "random access in 512 MB", count: 1 << 23, run: programs::random_access },
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "list" {
        COSTS.iter().for_each(|cost| println!("{}\t{}", cost.name, cost.count));
        return ExitCode::SUCCESS;
    }
    match COSTS.iter().find(|cost| cost.name == name) {
        Some(cost) => {
            println!("time {:.9}", (cost.run)(cost.count).as_secs_f64());
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: kernels NAME, or kernels list");
            ExitCode::FAILURE
        }
    }
}

/// What is measured.
fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
