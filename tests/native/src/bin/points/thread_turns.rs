//! Threads that keep each other from going on, if turns are not taken fairly, and locks that are read in the short way.
//!
//! As in `threads.rs`: the verdict is the same whoever comes first.

use std::sync::{Arc, Mutex, RwLock};
use std::thread;

use crate::Point;
use crate::shared::{load, store};
use crate::thread_shared::{join, lock, word, work};

pub const POINTS: &[Point] = points![
    read_lock_of_another,
    read_lock_of_both,
    polled_under_a_lock,
    polled_under_a_lock_of_its_own,
    readers_that_yield,
];

/// It holds a lock for reading, which the other one does not ask for.
// expect: race read/write on 8 bytes of heap by 1/2
fn read_lock_of_another() {
    let (data, guard) = (word(), Arc::new(RwLock::new(())));
    let reader = thread::spawn(work!(
        let _guard = guard.read().unwrap();
        load!(data) // race (1)
    ));
    let writer = thread::spawn(work!(store!(data, 1))); // race (2)
    join([reader, writer]);
}

// expect: race-free, up to locks and atomics
fn read_lock_of_both() {
    let (data, guard) = (word(), Arc::new(RwLock::new(())));
    let other = Arc::clone(&guard);
    let reader = thread::spawn(work!(
        let _guard = guard.read().unwrap();
        load!(data)
    ));
    let writer = thread::spawn(work!(
        let _guard = other.write().unwrap();
        store!(data, 1)
    ));
    join([reader, writer]);
}

/// Whoever polls has the lock whenever it lets others go on, and takes it again as soon as it has given it back.
// expect: race-free, up to locks
fn polled_under_a_lock() {
    let (data, ready) = (word(), Arc::new(Mutex::new(false)));
    let other = Arc::clone(&ready);
    let writer = thread::spawn(work!(
        store!(data, 1);
        *lock(&other) = true
    ));
    loop {
        let ready = lock(&ready);
        if *ready {
            break;
        }
        thread::yield_now();
    }
    load!(data);
    join([writer]);
}

/// The lock of the one is not that of the other.
// expect: race read/write on 8 bytes of heap by 0/1
fn polled_under_a_lock_of_its_own() {
    let (data, own, other) = (word(), Mutex::new(()), Mutex::new(()));
    let writer = thread::spawn(work!(
        let _other = lock(&other);
        store!(data, 1) // race (2)
    ));
    let held = lock(&own);
    load!(data); // race (1)
    thread::yield_now();
    drop(held);
    join([writer]);
}

/// Several have the lock at a time.
// expect: race-free, up to locks and atomics
fn readers_that_yield() {
    let guarded = &RwLock::new(0u64);
    thread::scope(|threads| {
        for number in 0..4 {
            threads.spawn(move || {
                for _ in 0..20 {
                    if number == 0 {
                        *guarded.write().unwrap() += 1;
                        thread::yield_now();
                    } else {
                        let value = guarded.read().unwrap();
                        thread::yield_now();
                        assert!(*value <= 20);
                    }
                }
            });
        }
    });
}
