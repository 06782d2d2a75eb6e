//! An acquire fence, and what others do to a word after it was loaded, and before the fence.
//!
//! Threads take the parts of a play in turn. Whose turn it is says a number that is loaded and stored with relaxed order, which orders nothing.
//! After each point with a race comes its twin without.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;
use std::thread;

use crate::Point;
use crate::shared::{load, store};
use crate::thread_shared::{join, until, word, work};

pub const POINTS: &[Point] = points![
    released_after_the_load,
    released_before_the_last_load,
    loaded_after_a_relaxed_store,
    loaded_before_a_relaxed_store,
];

/// A word, and whose turn it is.
struct Stage {
    word: AtomicU64,
    turn: AtomicU64,
}

impl Stage {
    fn new() -> &'static Stage {
        Box::leak(Box::new(Stage { word: AtomicU64::new(7), turn: AtomicU64::new(0) }))
    }

    /// Does it in this turn.
    fn take(&self, turn: u64, part: impl FnOnce()) {
        until(|| self.turn.load(Relaxed) == turn);
        part();
        self.turn.store(turn + 1, Relaxed);
    }

    fn release(&self) {
        self.word.fetch_add(1, Release);
    }

    fn load(&self) {
        self.word.load(Relaxed);
    }
}

/// The reader has loaded what the first thread released, and what the second one released since is nothing to it.
// expect: race write/read on 8 bytes of heap by 2/3, up to atomics
fn released_after_the_load() {
    let (data, stage) = (word(), Stage::new());
    let first = thread::spawn(work!(stage.take(0, || stage.release())));
    let second = thread::spawn(work!(
        stage.take(2, || {
            store!(data, 1); // race (1)
            stage.release();
        })
    ));
    let reader = thread::spawn(work!(
        stage.take(1, || stage.load());
        stage.take(3, || fence(Acquire));
        load!(data) // race (2)
    ));
    join([first, second, reader]);
}

// expect: race-free, up to atomics
fn released_before_the_last_load() {
    let (data, stage) = (word(), Stage::new());
    let first = thread::spawn(work!(stage.take(0, || stage.release())));
    let second = thread::spawn(work!(
        stage.take(2, || {
            store!(data, 1);
            stage.release();
        })
    ));
    let reader = thread::spawn(work!(
        stage.take(1, || stage.load());
        stage.take(3, || {
            stage.load();
            fence(Acquire);
        });
        load!(data)
    ));
    join([first, second, reader]);
}

/// A store that is relaxed ends what was released before.
// expect: race write/read on 8 bytes of heap by 1/3
fn loaded_after_a_relaxed_store() {
    let (data, stage) = (word(), Stage::new());
    let first = thread::spawn(work!(
        stage.take(0, || {
            store!(data, 1); // race (1)
            stage.release();
        })
    ));
    let second = thread::spawn(work!(stage.take(1, || stage.word.store(9, Relaxed))));
    let reader = thread::spawn(work!(
        stage.take(2, || {
            stage.load();
            fence(Acquire);
        });
        load!(data) // race (2)
    ));
    join([first, second, reader]);
}

// expect: race-free, up to atomics
fn loaded_before_a_relaxed_store() {
    let (data, stage) = (word(), Stage::new());
    let first = thread::spawn(work!(
        stage.take(0, || {
            store!(data, 1);
            stage.release();
        })
    ));
    let second = thread::spawn(work!(stage.take(2, || stage.word.store(9, Relaxed))));
    let reader = thread::spawn(work!(
        stage.take(1, || stage.load());
        stage.take(3, || fence(Acquire));
        load!(data)
    ));
    join([first, second, reader]);
}
