//! Programs of many small tasks, or of many accesses that have little to do with each other.

use std::hint::black_box;
use std::time::Duration;

use rayon::prelude::*;

use crate::timed;

pub fn one_word(count: usize) -> Duration {
    let word = black_box(Box::new(1u64));
    timed(|| {
        (0..count).into_par_iter().for_each(|_| {
            black_box(*black_box(&*word));
        });
    })
}

pub fn bytes(count: usize) -> Duration {
    let mut bytes = vec![0u8; count];
    timed(|| bytes.par_iter_mut().for_each(|byte| *black_box(byte) += 1))
}

pub fn spawns(count: usize) -> Duration {
    timed(|| rayon::scope(|scope| (0..count).for_each(|number| scope.spawn(move |_| _ = black_box(number)))))
}

/// The sums of the columns of a square matrix, a task each.
pub fn columns(count: usize) -> Duration {
    let side = count.isqrt();
    let matrix: Vec<u32> = (0..count as u32).collect();
    timed(|| {
        let column =
            |column: usize| (0..side).map(|row| matrix[row * side + column]).fold(0, u32::wrapping_add);
        let sums: Vec<u32> = (0..side).into_par_iter().map(column).collect();
        black_box(sums);
    })
}

/// Reads from all over a large table, in tasks of some thousands.
pub fn random_access(count: usize) -> Duration {
    const WORDS: usize = 512 << 17;
    const EACH: usize = 1 << 13;
    let table: Vec<u64> = (0..WORDS as u64).collect();
    let walk = |task: usize| {
        let mut state = task as u64 * 2 + 1;
        (0..EACH).fold(0u64, |sum, _| {
            // Knuth's multiplier; the upper bits are the good ones.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum.wrapping_add(table[(state >> 32) as usize % WORDS])
        })
    };
    timed(|| {
        black_box((0..count / EACH).into_par_iter().map(walk).reduce(|| 0, u64::wrapping_add));
    })
}
