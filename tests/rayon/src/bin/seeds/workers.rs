//! Memory that belongs to a worker, and memory that is believed to.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    slot_of_the_caller, slot_of_the_caller_fixed;
    slot_of_the_first, slot_of_the_first_fixed;
    buffer_that_is_lent, buffer_that_is_lent_fixed;
    buffer_in_a_static, buffer_in_a_static_fixed;
    tables_that_grow, tables_that_grow_fixed;
    buffers_that_shrink, buffers_that_shrink_fixed;
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

thread_local!(static BUFFER: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });

/// Sums squares by way of a buffer.
fn sum_of_squares(buffer: &mut [u64], item: u64) -> u64 {
    for (number, square) in (0..item).zip(buffer.iter_mut()) {
        *square = number * number; // race
    }
    buffer.iter().sum() // race
}

/// The buffer of the worker that starts the tasks is lent to them.
fn buffer_that_is_lent() {
    BUFFER.set(vec![0; 50]);
    BUFFER.with_borrow_mut(|buffer| {
        let raw = Raw::new(buffer);
        // SAFETY: "it is a thread-local variable".
        let sum_of = |item| sum_of_squares(unsafe { raw.slice(0, 50) }, item);
        black_box((0..50u64).into_par_iter().map(sum_of).sum::<u64>());
    });
}

fn buffer_that_is_lent_fixed() {
    let sum_of = |item| {
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(50, 0);
            sum_of_squares(buffer, item)
        })
    };
    black_box((0..50u64).into_par_iter().map(sum_of).sum::<u64>());
}

/// What is reached through a variable of the worker is the same for all.
fn buffer_in_a_static() {
    static TABLE: OnceLock<&Shared<[u64; 8]>> = OnceLock::new();
    thread_local!(static OWN: Cell<Option<&'static Shared<[u64; 8]>>> = const { Cell::new(None) });
    (0..20u64).into_par_iter().for_each(|item| {
        let table = OWN.get().unwrap_or_else(|| TABLE.get_or_init(|| Box::leak(Box::default()))); // race
        OWN.set(Some(table));
        // SAFETY: "it is a thread-local variable".
        unsafe { table.get()[0] += item }; // race
    });
}

fn buffer_in_a_static_fixed() {
    thread_local!(static OWN: Cell<Option<&'static Shared<[u64; 8]>>> = const { Cell::new(None) });
    (0..20u64).into_par_iter().for_each(|item| {
        let table = OWN.get().unwrap_or_else(|| Box::leak(Box::default()));
        OWN.set(Some(table));
        // SAFETY: nobody else has it.
        unsafe { table.get()[0] += item };
    });
}

/// A table of the worker, whose blocks come and go in the middle of tasks.
fn in_table(item: u64) {
    thread_local!(static TABLE: RefCell<HashMap<u64, String>> = RefCell::default());
    TABLE.with_borrow_mut(|table| {
        for number in 4 * item..4 * item + 4 {
            table.entry(number % 61).or_default().push_str("and so on");
        }
        if table.len() > 40 {
            *table = HashMap::new();
        }
        black_box(table.len());
    });
}

fn tables_that_grow() {
    let count = Shared::new(0u64);
    (0..64u64).into_par_iter().for_each(|item| {
        in_table(item);
        bump!(count); // race
    });
}

fn tables_that_grow_fixed() {
    (0..64u64).into_par_iter().for_each(in_table);
}

/// A buffer of the worker that is not there between tasks, or is another one.
fn in_buffer(item: usize) {
    thread_local!(static TAKEN: Cell<Vec<usize>> = const { Cell::new(Vec::new()) });
    let mut buffer = TAKEN.take();
    buffer.resize(30 + item % 7 * 10, item);
    buffer[item % 30] += 1;
    if item % 3 == 0 {
        buffer = Vec::new();
    } else {
        buffer.truncate(9);
        buffer.shrink_to_fit();
    }
    TAKEN.set(buffer);
}

fn buffers_that_shrink() {
    let count = Shared::new(0u64);
    (0..64usize).into_par_iter().for_each(|item| {
        in_buffer(item);
        bump!(count); // race
    });
}

fn buffers_that_shrink_fixed() {
    (0..64usize).into_par_iter().for_each(in_buffer);
}
