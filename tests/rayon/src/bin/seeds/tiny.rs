//! Many tiny tasks: more lines than are kept together, stacks that come back, and what the first has done met by the last.

use std::hint::black_box;

use rayon::join;

use crate::Seed;
use crate::shared::Raw;

pub const SEEDS: &[Seed] = seeds![
    early_line_again, early_line_again_fixed;
    reads_then_a_write, reads_then_a_write_fixed;
    frame_by_grandchildren, frame_by_grandchildren_fixed;
    word_beside_frames, word_beside_frames_fixed;
    joined_within, joined_within_fixed;
];

/// Numbers in a line.
const LINE: usize = 8;
/// More lines than there is room for at a time.
const MANY: usize = 2500;

/// A task for each number below `count`, by halves.
fn each(count: usize, body: &(dyn Fn(usize) + Sync)) {
    fn go(from: usize, to: usize, body: &(dyn Fn(usize) + Sync)) {
        if to - from == 1 {
            return body(from);
        }
        let middle = (from + to) / 2;
        join(|| go(from, middle, body), || go(middle, to, body));
    }
    go(0, count, body);
}

/// Every task has a line, and the last one the fifth, too.
fn lines(again: usize) {
    let mut values = vec![0u64; MANY * LINE];
    let raw = Raw::new(&mut values);
    each(MANY, &|task| {
        let line = if task == MANY - 1 { again } else { task };
        // SAFETY: "every task has a line of its own".
        unsafe { *raw.at(line * LINE) += 1 }; // race
    });
    black_box(values);
}

fn early_line_again() {
    lines(5);
}

fn early_line_again_fixed() {
    lines(MANY - 1);
}

/// Everybody reads a few lines, and one of the last writes one.
fn table(written: usize) {
    let mut values = vec![1u64; 50 * LINE];
    let raw = Raw::new(&mut values);
    each(MANY, &|task| {
        // SAFETY: "nobody writes what is read".
        black_box(unsafe { *raw.at(task % 40 * LINE) }); // race
        if task == MANY - 100 {
            // SAFETY: as above.
            unsafe { *raw.at(written * LINE) = 2 }; // race
        }
    });
    black_box(values);
}

fn reads_then_a_write() {
    table(7);
}

fn reads_then_a_write_fixed() {
    table(45);
}

/// Children of children write to a frame of the first task's.
fn grandchildren(numbers: [usize; 4]) {
    let mut frame = [0u64; 4];
    let raw = Raw::new(&mut frame);
    let [a, b, c, d] = numbers.map(|number| {
        move || {
            // SAFETY: "all numbers differ".
            unsafe { *raw.at(number) += 1 }; // race
        }
    });
    join(|| join(a, b), || join(c, d));
    black_box(frame);
}

fn frame_by_grandchildren() {
    grandchildren([0, 1, 2, 1]);
}

fn frame_by_grandchildren_fixed() {
    grandchildren([0, 1, 2, 3]);
}

/// Tasks whose children write to their frames, one after the other at the same addresses; and two of them to a common word.
fn frames(others: [usize; 2]) {
    let mut words = [0u64; 2];
    let raw = Raw::new(&mut words);
    each(500, &|task| {
        let mut own = [task as u64; 40];
        let frame = Raw::new(&mut own);
        // SAFETY: two ends of an array.
        join(|| unsafe { *frame.at(0) += 1 }, || unsafe { *frame.at(39) += 1 });
        if let Some(word) = [400, 77].iter().position(|&other| other == task) {
            // SAFETY: "each has a word of its own".
            unsafe { *raw.at(others[word]) += 1 }; // race
        }
        black_box(own);
    });
    black_box(words);
}

fn word_beside_frames() {
    frames([1, 1]);
}

fn word_beside_frames_fixed() {
    frames([0, 1]);
}

/// What was joined on one side is not joined for the other.
fn sides(number: usize) {
    let mut values = [0u64; 16];
    let raw = Raw::new(&mut values);
    join(
        || {
            each(8, &|task| {
                // SAFETY: "the other side has another half".
                unsafe { *raw.at(task) += 1 }; // race
            });
            // SAFETY: as above.
            black_box(unsafe { *raw.at(3) });
        },
        || {
            // SAFETY: as above.
            unsafe { *raw.at(number) += 1 }; // race
        },
    );
    black_box(values);
}

fn joined_within() {
    sides(4);
}

fn joined_within_fixed() {
    sides(8);
}
