//! Sums and maxima, into a cell that all tasks share.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    counter, counter_fixed;
    maximum, maximum_fixed;
    histogram, histogram_fixed;
    half_atomic, half_atomic_fixed;
    float_sum, float_sum_fixed;
];

/// `+=` on a shared cell.
fn counter() {
    let count = Shared::new(0u32);
    (0..100u32).into_par_iter().for_each(|i| {
        if i % 10 == 0 {
            // SAFETY: "it is only a statistic".
            unsafe { *count.get() += 1 }; // race
        }
    });
    black_box(count);
}

fn counter_fixed() {
    let count = (0..100u32).into_par_iter().filter(|i| i % 10 == 0).count();
    black_box(count);
}

/// Compare, then store.
fn maximum() {
    let largest = Shared::new(0u64);
    (0..64u64).into_par_iter().for_each(|i| {
        let value = (i * 29) % 64;
        // SAFETY: "it only ever grows".
        let largest = unsafe { largest.get() };
        if value > *largest { // race
            *largest = value; // race
        }
    });
    black_box(largest);
}

fn maximum_fixed() {
    let largest = AtomicU64::new(0);
    (0..64u64).into_par_iter().for_each(|i| _ = largest.fetch_max((i * 29) % 64, Ordering::Relaxed));
    black_box(largest);
}

/// Two items fall into one bin.
fn histogram() {
    let mut bins = vec![0u32; 8];
    let raw = Raw::new(&mut bins);
    (0..80usize).into_par_iter().for_each(|i| {
        // SAFETY: "bins are hit rarely".
        unsafe { *raw.at((i * i) % 8) += 1 }; // race
    });
    black_box(bins);
}

fn histogram_fixed() {
    let bins = (0..80usize)
        .into_par_iter()
        .fold(
            || vec![0u32; 8],
            |mut bins, i| {
                bins[(i * i) % 8] += 1;
                bins
            },
        )
        .reduce(|| vec![0; 8], |left, right| left.iter().zip(&right).map(|(left, right)| left + right).collect());
    black_box(bins);
}

/// Atomic writers, and a reader that is not.
fn half_atomic() {
    let total = AtomicU64::new(0);
    rayon::join(
        || (0..10u64).into_par_iter().for_each(|i| _ = total.fetch_add(i, Ordering::Relaxed)), // race
        // SAFETY: "an aligned word is read at once".
        || black_box(unsafe { *total.as_ptr() }), // race
    );
}

fn half_atomic_fixed() {
    let total = AtomicU64::new(0);
    rayon::join(
        || (0..10u64).into_par_iter().for_each(|i| _ = total.fetch_add(i, Ordering::Relaxed)),
        || black_box(total.load(Ordering::Relaxed)),
    );
}

/// A partial sum for each half, in one place.
fn float_sum() {
    let values: Vec<f64> = (0..32u32).map(f64::from).collect();
    let sum = Shared::new(0.0);
    let (left, right) = values.split_at(16);
    // SAFETY: "each half adds to it once".
    let add = |part: &[f64]| unsafe { *sum.get() += part.iter().sum::<f64>() }; // race
    rayon::join(|| add(left), || add(right));
    black_box(sum);
}

fn float_sum_fixed() {
    let values: Vec<f64> = (0..32u32).map(f64::from).collect();
    let (left, right) = values.split_at(16);
    let (left, right) = rayon::join(|| left.iter().sum::<f64>(), || right.iter().sum::<f64>());
    black_box(left + right);
}
