//! Memory, and numbers of the runtime's own, that come back while threads run: what orders some has nothing to do with what had them before.
//!
//! As in `threads.rs`, the twin without a race follows. Nobody comes after the first thread here, or it would be one: a relaxed flag only
//! says that it is through.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::Point;
use crate::shared::{load, store};
use crate::thread_shared::{join, lock, until, word, work};

pub const POINTS: &[Point] = points![
    wait_after_counts,
    wait_after_counts_and_release,
    wait_on_a_stack_that_was,
    wait_on_a_stack_that_was_and_release,
];

/// Counts that are gone, more than there are words in what comes next.
fn count() {
    let counts: Vec<Arc<u64>> = (0..32).map(Arc::new).collect();
    let others = counts.clone();
    drop(black_box(others));
    drop(black_box(counts));
}

/// A flag with a condition variable.
type Flag = (Mutex<bool>, Condvar);

fn wait((flag, changed): &Flag) {
    let mut is_set = lock(flag);
    while !*is_set {
        is_set = changed.wait(is_set).unwrap_or_else(PoisonError::into_inner);
    }
}

fn notify((flag, changed): &Flag) {
    *lock(flag) = true;
    changed.notify_all();
}

// expect: race write/read on 8 bytes of heap by 1/2, up to locks and atomics
fn wait_after_counts() {
    let (data, through, flag) = (word(), Arc::new(AtomicBool::new(false)), Arc::new(Flag::default()));
    let (is_through, other) = (Arc::clone(&through), Arc::clone(&flag));
    let first = thread::spawn(work!(
        store!(data, 1); // race (1)
        count();
        is_through.store(true, Relaxed)
    ));
    until(|| through.load(Relaxed));
    let second = thread::spawn(work!(
        notify(&other);
        load!(data) // race (2)
    ));
    wait(&flag);
    join([first, second]);
}

// expect: race-free, up to locks and atomics
fn wait_after_counts_and_release() {
    let (data, through, flag) = (word(), Arc::new(AtomicBool::new(false)), Arc::new(Flag::default()));
    let (is_through, other) = (Arc::clone(&through), Arc::clone(&flag));
    let first = thread::spawn(work!(
        store!(data, 1);
        count();
        is_through.store(true, Release)
    ));
    until(|| through.load(Acquire));
    let second = thread::spawn(work!(
        notify(&other);
        load!(data)
    ));
    wait(&flag);
    join([first, second]);
}

/// Waits for a flag on this thread's own stack, which another thread sets before it does `then`.
fn wait_on_stack(then: impl FnOnce() + Send) {
    let flag = &Flag::default();
    thread::scope(|threads| {
        let _other = threads.spawn(work!(
            notify(flag);
            then()
        ));
        wait(flag);
    });
}

/// The stack of the second thread is that of the fourth, which does not come after it.
// expect: race write/read on 8 bytes of heap by 2/5, up to locks and atomics
fn wait_on_a_stack_that_was() {
    let (data, through) = (word(), Arc::new(AtomicBool::new(false)));
    let is_through = Arc::clone(&through);
    let starts = thread::spawn(work!(
        until(|| is_through.load(Relaxed));
        let last = thread::spawn(work!(wait_on_stack(work!(load!(data))))); // race (2)
        join([last])
    ));
    let first = thread::spawn(work!(
        store!(data, 1); // race (1)
        wait_on_stack(|| ())
    ));
    join([first]);
    through.store(true, Relaxed);
    join([starts]);
}

// expect: race-free, up to locks and atomics
fn wait_on_a_stack_that_was_and_release() {
    let (data, through) = (word(), Arc::new(AtomicBool::new(false)));
    let is_through = Arc::clone(&through);
    let starts = thread::spawn(work!(
        until(|| is_through.load(Acquire));
        let last = thread::spawn(work!(wait_on_stack(work!(load!(data)))));
        join([last])
    ));
    let first = thread::spawn(work!(
        store!(data, 1);
        wait_on_stack(|| ())
    ));
    join([first]);
    through.store(true, Release);
    join([starts]);
}
