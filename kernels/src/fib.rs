//! Fibonacci numbers with a task per call: what a task costs.

use std::time::Duration;

use dagsan_task::procedure;

use crate::{check, timed};

/// Computes the number of that place.
pub fn run(size: usize) -> Result<Duration, String> {
    check(size <= 45, "more than 45 takes too long")?;
    let (time, number) = timed(|| fib(size as u64));
    let (expected, _) = (0..size).fold((0, 1), |(number, next), _| (next, number + next));
    check(number == expected, format!("got {number}, not {expected}"))?;
    Ok(time)
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    procedure(|p| {
        let x = p.spawn(|| fib(n - 1));
        let y = p.spawn(|| fib(n - 2));
        p.sync();
        x.join() + y.join()
    })
}
