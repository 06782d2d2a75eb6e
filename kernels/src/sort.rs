//! Mergesort with parallel merges, as cilksort: quarters are sorted in parallel, and merges are split in two.

use std::time::Duration;

use dagsan_task::procedure;

use crate::random::Random;
use crate::{check, timed};

/// Up to this length the library sorts, and merges are not split.
const CUTOFF: usize = 2048;

/// Sorts that many numbers.
pub fn run(size: usize) -> Result<Duration, String> {
    let mut random = Random(1);
    let mut numbers: Vec<u64> = (0..size).map(|_| random.next()).collect();
    let sum = |numbers: &[u64]| numbers.iter().fold(0, |sum: u64, number| sum.wrapping_add(*number));
    let before = sum(&numbers);
    let mut scratch = vec![0; size];
    let (time, ()) = timed(|| sort(&mut numbers, &mut scratch));
    check(numbers.is_sorted(), "not sorted")?;
    check(sum(&numbers) == before, "numbers were lost")?;
    Ok(time)
}

fn sort(numbers: &mut [u64], scratch: &mut [u64]) {
    if numbers.len() <= CUTOFF {
        numbers.sort_unstable();
        return;
    }
    let (half, quarter) = (numbers.len() / 2, numbers.len() / 4);
    procedure(|p| {
        let quarters =
            quarters(numbers, half, quarter).into_iter().zip(self::quarters(scratch, half, quarter));
        for (numbers, scratch) in quarters {
            _ = p.spawn(|| sort(numbers, scratch));
        }
    });
    procedure(|p| {
        let (low, high) = scratch.split_at_mut(half);
        let [a, b, c, d] = quarters(numbers, half, quarter);
        _ = p.spawn(|| merge(a, b, low));
        _ = p.spawn(|| merge(c, d, high));
    });
    let (low, high) = scratch.split_at(half);
    merge(low, high, numbers);
}

fn quarters(numbers: &mut [u64], half: usize, quarter: usize) -> [&mut [u64]; 4] {
    let (low, high) = numbers.split_at_mut(half);
    let ((a, b), (c, d)) = (low.split_at_mut(quarter), high.split_at_mut(quarter));
    [a, b, c, d]
}

fn merge(left: &[u64], right: &[u64], merged: &mut [u64]) {
    if merged.len() <= CUTOFF {
        merge_here(left, right, merged);
        return;
    }
    if left.len() < right.len() {
        merge(right, left, merged);
        return;
    }
    let cut = left.len() / 2;
    let other = right.partition_point(|&number| number < left[cut]);
    let (left_low, left_high) = left.split_at(cut);
    let (right_low, right_high) = right.split_at(other);
    let (low, high) = merged.split_at_mut(cut + other);
    procedure(|p| {
        _ = p.spawn(|| merge(left_low, right_low, low));
        _ = p.spawn(|| merge(left_high, right_high, high));
    });
}

fn merge_here(left: &[u64], right: &[u64], merged: &mut [u64]) {
    let (mut i, mut j) = (0, 0);
    for next in merged {
        if j == right.len() || (i < left.len() && left[i] <= right[j]) {
            *next = left[i];
            i += 1;
        } else {
            *next = right[j];
            j += 1;
        }
    }
}
