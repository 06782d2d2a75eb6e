//! Blocks that tasks get from the allocator and give to others: what is in them was written by the task that asked.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::Seed;

pub const SEEDS: &[Seed] = seeds![
    zeroes_without_order, zeroes_without_order_fixed;
    table_made_on_demand, table_made_on_demand_fixed;
    vector_that_moves, vector_that_moves_fixed;
];

/// The pointer is there, but not what it points to.
fn zeroes_without_order() {
    let at = AtomicPtr::new(ptr::null_mut());
    rayon::join(
        || at.store(vec![0u64; black_box(100)].leak().as_mut_ptr(), Relaxed), // race
        || {
            let block = at.load(Relaxed);
            if !block.is_null() {
                // SAFETY: a block of a hundred, which is never freed.
                black_box(unsafe { *block.add(5) }); // race
            }
        },
    );
}

fn zeroes_without_order_fixed() {
    let at = AtomicPtr::new(ptr::null_mut());
    rayon::join(
        || at.store(vec![0u64; black_box(100)].leak().as_mut_ptr(), Release),
        || {
            let block = at.load(Acquire);
            if !block.is_null() {
                // SAFETY: a block of a hundred, which is never freed.
                black_box(unsafe { *block.add(5) });
            }
        },
    );
}

/// Whoever comes first makes the table; the others take it as it is.
fn table_made_on_demand() {
    let table = AtomicPtr::<u32>::new(ptr::null_mut());
    let count = |at: usize| {
        if table.load(Relaxed).is_null() {
            let made = vec![0u32; black_box(64)].leak().as_mut_ptr(); // race
            _ = table.compare_exchange(ptr::null_mut(), made, Relaxed, Relaxed);
        }
        // SAFETY: a table of 64, which is never freed; each task has its own entry.
        unsafe { *table.load(Relaxed).add(at) += 1 }; // race
    };
    rayon::join(|| count(0), || count(1));
}

fn table_made_on_demand_fixed() {
    let table = AtomicPtr::<u32>::new(ptr::null_mut());
    let count = |at: usize| {
        if table.load(Acquire).is_null() {
            let made = vec![0u32; black_box(64)].leak().as_mut_ptr();
            _ = table.compare_exchange(ptr::null_mut(), made, Release, Relaxed);
        }
        // SAFETY: a table of 64, which is never freed; each task has its own entry.
        unsafe { *table.load(Acquire).add(at) += 1 };
    };
    rayon::join(|| count(0), || count(1));
}

/// A vector grows, and the other task looks at what it held before.
fn vector_that_moves() {
    let at = AtomicPtr::new(ptr::null_mut());
    let mut grows = vec![1u64; 10];
    let hem = black_box(vec![1u64; 10]);
    rayon::join(
        || {
            grows.reserve_exact(black_box(1000)); // race
            at.store(grows.as_mut_ptr(), Relaxed);
        },
        || {
            let block = at.load(Relaxed);
            if !block.is_null() {
                // SAFETY: the vector lives longer than the tasks.
                black_box(unsafe { *block.add(5) }); // race
            }
        },
    );
    drop(hem);
}

fn vector_that_moves_fixed() {
    let at = AtomicPtr::new(ptr::null_mut());
    let mut grows = vec![1u64; 10];
    let hem = black_box(vec![1u64; 10]);
    rayon::join(
        || {
            grows.reserve_exact(black_box(1000));
            at.store(grows.as_mut_ptr(), Release);
        },
        || {
            let block = at.load(Acquire);
            if !block.is_null() {
                // SAFETY: the vector lives longer than the tasks.
                black_box(unsafe { *block.add(5) });
            }
        },
    );
    drop(hem);
}
