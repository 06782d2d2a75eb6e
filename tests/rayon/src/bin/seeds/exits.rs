//! Searches that stop early, by a flag.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::Seed;
use crate::shared::Shared;

pub const SEEDS: &[Seed] = seeds![
    found_flag, found_flag_fixed;
    result_beside_flag, result_beside_flag_fixed;
    best_so_far, best_so_far_fixed;
];

/// A `bool` that is no atomic.
fn found_flag() {
    let found = Shared::new(false);
    (0..40u32).into_par_iter().for_each(|i| {
        // SAFETY: "it only ever becomes true".
        let found = unsafe { found.get() };
        if !*found && i * i == 625 { // race
            *found = true; // race
        }
    });
    black_box(found);
}

fn found_flag_fixed() {
    let found = AtomicBool::new(false);
    (0..40u32).into_par_iter().for_each(|i| {
        if !found.load(Ordering::Relaxed) && i * i == 625 {
            found.store(true, Ordering::Relaxed);
        }
    });
    black_box(found);
}

/// The flag is an atomic, and the result beside it is written by all who find something.
fn result_beside_flag() {
    let (found, result) = (AtomicBool::new(false), Shared::new(0));
    (0..40u32).into_par_iter().for_each(|i| {
        if i % 13 == 12 {
            found.store(true, Ordering::Relaxed);
            // SAFETY: "there is one result".
            unsafe { *result.get() = i }; // race
        }
    });
    black_box((found, result));
}

fn result_beside_flag_fixed() {
    let result = OnceLock::new();
    (0..40u32).into_par_iter().for_each(|i| {
        if i % 13 == 12 {
            // Any of them will do.
            _ = result.set(i);
        }
    });
    black_box(result);
}

/// The bound of a branch and bound, read without a lock.
fn best_so_far() {
    let best = Shared::new(u32::MAX);
    fn search(depth: u32, cost: u32, best: &Shared<u32>) {
        // SAFETY: "an old bound does no harm".
        let bound = unsafe { best.get() };
        if cost >= *bound { // race
            return;
        }
        if depth == 0 {
            *bound = cost; // race
            return;
        }
        rayon::join(|| search(depth - 1, cost + 2, best), || search(depth - 1, cost + 1, best));
    }
    search(4, 0, &best);
    black_box(best);
}

fn best_so_far_fixed() {
    fn search(depth: u32, cost: u32) -> u32 {
        if depth == 0 {
            return cost;
        }
        let (left, right) = rayon::join(|| search(depth - 1, cost + 2), || search(depth - 1, cost + 1));
        left.min(right)
    }
    black_box(search(4, 0));
}
