//! Buffers that are shared to save an allocation.

use std::hint::black_box;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    shared_scratch, shared_scratch_fixed;
    scratch_by_parity, scratch_by_parity_fixed;
    static_buffer, static_buffer_fixed;
    pushed_results, pushed_results_fixed;
];

/// One buffer for all items.
fn shared_scratch() {
    let mut scratch = vec![0u64; 8];
    let raw = Raw::new(&mut scratch);
    let sum_of = |item: u64| {
        // SAFETY: "it is overwritten before it is read".
        let scratch = unsafe { raw.slice(0, 8) };
        for (i, cell) in (0..).zip(scratch.iter_mut()) {
            *cell = item * i; // race
        }
        scratch.iter().sum::<u64>()
    };
    let total: u64 = (0..50u64).into_par_iter().map(sum_of).sum();
    black_box(total);
}

fn shared_scratch_fixed() {
    let total: u64 = (0..50u64)
        .into_par_iter()
        .map_init(
            || vec![0u64; 8],
            |scratch, item| {
                for (i, cell) in (0..).zip(scratch.iter_mut()) {
                    *cell = item * i;
                }
                scratch.iter().sum::<u64>()
            },
        )
        .sum();
    black_box(total);
}

/// Two buffers, "one for each of the two threads".
fn scratch_by_parity() {
    let mut buffers = vec![0u32; 2];
    let raw = Raw::new(&mut buffers);
    (0..20usize).into_par_iter().for_each(|item| {
        // SAFETY: "neighbours never run at the same time".
        unsafe { *raw.at(item % 2) = item as u32 }; // race
    });
    black_box(buffers);
}

fn scratch_by_parity_fixed() {
    let mut buffers = vec![0u32; 20];
    let raw = Raw::new(&mut buffers);
    (0..20usize).into_par_iter().for_each(|item| {
        // SAFETY: one for each item.
        unsafe { *raw.at(item) = item as u32 };
    });
    black_box(buffers);
}

/// A buffer in a static, as it was before there were threads.
fn static_buffer() {
    static BUFFER: Shared<[u8; 16]> = Shared::new([0; 16]);
    let format = |number: u8| {
        // SAFETY: "there is one caller at a time".
        let buffer = unsafe { BUFFER.get() };
        buffer[usize::from(number) % 4] = number; // race
        buffer[0] // race
    };
    let results: Vec<u8> = (0..30u8).into_par_iter().map(format).collect();
    black_box(results);
}

fn static_buffer_fixed() {
    static BUFFER: Mutex<[u8; 16]> = Mutex::new([0; 16]);
    let format = |number: u8| {
        let mut buffer = BUFFER.lock().unwrap();
        buffer[usize::from(number) % 4] = number;
        buffer[0]
    };
    let results: Vec<u8> = (0..30u8).into_par_iter().map(format).collect();
    black_box(results);
}

/// A vector that has room for all.
fn pushed_results() {
    let results = Shared::new(Vec::with_capacity(100));
    (0..100u32).into_par_iter().filter(|i| i % 7 == 0).for_each(|i| {
        // SAFETY: "it does not reallocate".
        unsafe { results.get() }.push(i); // race
    });
    black_box(results);
}

fn pushed_results_fixed() {
    let results: Vec<u32> = (0..100u32).into_par_iter().filter(|i| i % 7 == 0).collect();
    black_box(results);
}
