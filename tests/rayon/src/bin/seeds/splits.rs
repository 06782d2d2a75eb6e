//! Off by one, where something is cut in two or in many.

use std::hint::black_box;

use rayon::prelude::*;

use crate::Seed;
use crate::shared::Raw;

pub const SEEDS: &[Seed] = seeds![
    middle_in_both, middle_in_both_fixed;
    chunk_too_long, chunk_too_long_fixed;
    prefix_sums, prefix_sums_fixed;
    quicksort_pivot, quicksort_pivot_fixed;
    merge_ranges, merge_ranges_fixed;
];

fn halves(second_from: usize) {
    let mut values = vec![1u64; 40];
    let raw = Raw::new(&mut values);
    let middle = 20;
    rayon::join(
        // SAFETY: "the halves are disjoint".
        || (0..=middle).for_each(|i| unsafe { *raw.at(i) += 1 }), // race
        || (second_from..40).for_each(|i| unsafe { *raw.at(i) += 2 }), // race
    );
    black_box(values);
}

/// `0..=middle` and `middle..`.
fn middle_in_both() {
    halves(20);
}

fn middle_in_both_fixed() {
    halves(21);
}

fn chunks(length: impl Fn(usize) -> usize + Sync) {
    let mut values = vec![0u8; 103];
    let total = values.len();
    let raw = Raw::new(&mut values);
    let size = total.div_ceil(8);
    (0..8usize).into_par_iter().for_each(|chunk| {
        let start = chunk * size;
        // SAFETY: "chunks are disjoint".
        for cell in unsafe { raw.slice(start, length(size).min(total - start)) } {
            *cell = chunk as u8; // race
        }
    });
    black_box(values);
}

/// Rounded up twice.
fn chunk_too_long() {
    chunks(|size| size + 1);
}

fn chunk_too_long_fixed() {
    chunks(|size| size);
}

fn sums(block: usize, first: impl Fn(usize) -> usize + Sync) {
    let mut values: Vec<u64> = (0..64).collect();
    let raw = Raw::new(&mut values);
    (0..64 / block).into_par_iter().for_each(|number| {
        for i in first(number * block)..(number + 1) * block {
            // SAFETY: "a block adds up its own".
            unsafe { *raw.at(i) += *raw.at(i - 1) }; // race
        }
    });
    black_box(values);
}

/// Each block reads the last of the block before.
fn prefix_sums() {
    sums(16, |start| start.max(1));
}

fn prefix_sums_fixed() {
    sums(16, |start| start + 1);
}

/// Sorts `length` elements. `right` says where the right part begins, after the pivot's place.
fn quicksort(raw: Raw<i32>, start: usize, length: usize, right: fn(usize) -> usize) {
    if length < 2 {
        return;
    }
    // SAFETY: "the range is ours".
    let values = unsafe { raw.slice(start, length) };
    let pivot = values[length - 1]; // race
    let mut place = 0;
    for i in 0..length - 1 {
        if values[i] < pivot { // race
            values.swap(i, place); // race
            place += 1;
        }
    }
    values.swap(place, length - 1); // race
    let from = right(place).min(length);
    rayon::join(
        || quicksort(raw, start, place + 1 - usize::from(place + 1 == length), right),
        || quicksort(raw, start + from, length - from, right),
    );
}

/// The pivot is in both parts.
fn quicksort_pivot() {
    let mut values: Vec<i32> = (0..50).map(|i| (i * 37) % 101).collect();
    quicksort(Raw::new(&mut values), 0, 50, |place| place);
    black_box(values);
}

fn quicksort_pivot_fixed() {
    let mut values: Vec<i32> = (0..50).map(|i| (i * 37) % 101).collect();
    quicksort(Raw::new(&mut values), 0, 50, |place| place + 1);
    black_box(values);
}

fn merged(gap: usize) {
    let mut out = vec![0u32; 33];
    let raw = Raw::new(&mut out);
    let merge = |from: usize, to: usize| {
        for i in from..to {
            // SAFETY: "the outputs of two merges do not meet".
            unsafe { *raw.at(i) = i as u32 }; // race
        }
    };
    rayon::join(|| merge(0, 16), || merge(16 - gap, 32));
    black_box(out);
}

/// The second merge starts where the first has not ended.
fn merge_ranges() {
    merged(1);
}

fn merge_ranges_fixed() {
    merged(0);
}
