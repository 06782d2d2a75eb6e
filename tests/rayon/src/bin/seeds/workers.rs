//! Memory that belongs to a worker, and memory that is believed to.

use std::hint::black_box;

use rayon::prelude::*;

use crate::Seed;
use crate::shared::Raw;

pub const SEEDS: &[Seed] = seeds![
    slot_of_the_caller, slot_of_the_caller_fixed;
    slot_of_the_first, slot_of_the_first_fixed;
];

/// A slot for each worker.
fn slots() -> Vec<u64> {
    vec![0; rayon::current_num_threads()]
}

fn own() -> usize {
    rayon::current_thread_index().unwrap_or(0)
}

/// The second half of a join may be stolen, and then is on another worker than the one that asked.
fn slot_of_the_caller() {
    let mut slots = slots();
    let raw = Raw::new(&mut slots);
    rayon::scope(|_| {
        let mine = own();
        rayon::join(
            // SAFETY: "we are on this worker".
            || unsafe { *raw.at(mine) += 1 }, // race
            // SAFETY: as above.
            || unsafe { *raw.at(mine) += 1 }, // race
        );
    });
    black_box(slots);
}

fn slot_of_the_caller_fixed() {
    let mut slots = slots();
    let raw = Raw::new(&mut slots);
    rayon::scope(|scope| {
        // SAFETY: the slot of this worker, which runs one task at a time.
        let count = || unsafe { *raw.at(own()) += 1 };
        for _ in 0..5 {
            scope.spawn(move |_| count());
        }
        let mine = own();
        // SAFETY: the first of the two stays on this worker.
        rayon::join(|| unsafe { *raw.at(mine) += 1 }, count);
        (0..20).into_par_iter().for_each(|_| count());
        count();
    });
    black_box(slots);
}

/// Every second task takes the first worker for its own.
fn slot_of_the_first() {
    let mut slots = slots();
    let raw = Raw::new(&mut slots);
    (0..20u64).into_par_iter().for_each(|item| {
        if item % 2 == 0 {
            // SAFETY: the slot of this worker.
            unsafe { *raw.at(own()) += item }; // race
        } else {
            // SAFETY: "it is as good as any".
            unsafe { *raw.at(0) += item }; // race
        }
    });
    black_box(slots);
}

fn slot_of_the_first_fixed() {
    let mut slots = slots();
    let raw = Raw::new(&mut slots);
    // SAFETY: the slot of this worker.
    (0..20u64).into_par_iter().for_each(|item| unsafe { *raw.at(own()) += item });
    // SAFETY: each worker has a slot.
    rayon::broadcast(|context| unsafe { *raw.at(context.index()) += 1 });
    black_box(slots);
}
