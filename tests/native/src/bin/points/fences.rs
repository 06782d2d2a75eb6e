//! Fences, and words by the hundred: what an atomic operation is about may come long before it.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Shared, load, spawn, store};

pub const POINTS: &[Point] = points![
    words_many_once_locks,
    words_many_once_locks_unsynchronised,
    words_many_flags,
    words_once_with_locks_inside,
    words_fence_before_a_task,
    words_fence_before_a_lock,
    words_fence_too_early,
    words_fence_of_another,
    words_many_fenced_loads,
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// expect: race-free, up to atomics
// expect once=0: race
fn words_many_once_locks() {
    let cells: Vec<OnceLock<Box<u64>>> = (0..300).map(|_| OnceLock::new()).collect();
    finish(|scope| {
        for _ in 0..2 {
            let cells = &cells;
            spawn!(
                scope,
                black_box(cells.iter().map(|cell| **cell.get_or_init(|| Box::new(3))).sum::<u64>())
            );
        }
    });
}

/// What comes after the initialisation is not released by it.
// expect: race write/write on 2400 bytes of heap by 1/2, up to atomics
fn words_many_once_locks_unsynchronised() {
    let cells: Vec<(OnceLock<u64>, Shared<u64>)> = (0..300).map(|_| Default::default()).collect();
    finish(|scope| {
        for _ in 0..2 {
            let cells = &cells;
            spawn!(
                scope,
                for (once, data) in cells {
                    once.get_or_init(|| 3);
                    store!(data, 1); // race (1) race (2)
                }
            );
        }
    });
}

// expect: race-free, up to atomics
fn words_many_flags() {
    let cells: Vec<(AtomicBool, Shared<u64>)> = (0..300).map(|_| Default::default()).collect();
    finish(|scope| {
        let cells = &cells;
        spawn!(
            scope,
            for (flag, data) in cells {
                store!(data, 1);
                flag.store(true, Release);
            }
        );
        spawn!(
            scope,
            for (flag, data) in cells {
                if flag.load(Acquire) {
                    load!(data);
                }
            }
        );
    });
}

/// The initialisation ends several strands.
// expect: race-free, up to locks and atomics
fn words_once_with_locks_inside() {
    let (cell, count) = (OnceLock::<Box<u64>>::new(), Mutex::new(0u64));
    finish(|scope| {
        for _ in 0..2 {
            let (cell, count) = (&cell, &count);
            spawn!(scope,
                let value = cell.get_or_init(|| {
                    for _ in 0..5 {
                        *lock(count) += 1;
                    }
                    Box::new(7)
                });
                *lock(count) += **value;
            );
        }
    });
}

/// A fence releases what was before it, whatever happens until the store.
// expect: race-free, up to atomics
fn words_fence_before_a_task() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope,
            store!(data, 1);
            fence(Release);
            finish(|inner| spawn!(inner, black_box(0)));
            ready.store(true, Relaxed);
        );
        spawn!(
            scope,
            if ready.load(Acquire) {
                load!(data);
            }
        );
    });
}

// expect: race-free, up to atomics
fn words_fence_before_a_lock() {
    let (data, ready, guard) = (Shared::new(0u64), AtomicBool::new(false), Mutex::new(()));
    finish(|scope| {
        let (data, ready, guard) = (&data, &ready, &guard);
        spawn!(scope,
            store!(data, 1);
            fence(SeqCst);
            drop(lock(guard));
            ready.store(true, Relaxed);
        );
        spawn!(scope,
            let is_ready = ready.load(Relaxed);
            drop(lock(guard));
            fence(SeqCst);
            if is_ready {
                load!(data);
            }
        );
    });
}

/// What comes after the fence is not released.
// expect: race write/read on 8 bytes of stack by 1/3, up to atomics
fn words_fence_too_early() {
    let (data, early, ready) = (Shared::new(0u64), Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        let (data, early, ready) = (&data, &early, &ready);
        spawn!(scope,
            store!(early, 1);
            fence(Release);
            finish(|inner| spawn!(inner, black_box(0)));
            store!(data, 1); // race (1)
            ready.store(true, Relaxed);
        );
        spawn!(
            scope,
            if ready.load(Acquire) {
                load!(early);
                load!(data); // race (2)
            }
        );
    });
}

/// A fence of one task does nothing for the stores of another.
// expect: race write/read on 8 bytes of stack by 1/3
fn words_fence_of_another() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope,
            store!(data, 1); // race (1)
            fence(Release);
        );
        spawn!(scope, ready.store(true, Relaxed));
        spawn!(
            scope,
            if ready.load(Acquire) {
                load!(data); // race (2)
            }
        );
    });
}

// expect: race-free, up to atomics
fn words_many_fenced_loads() {
    let cells: Vec<(AtomicBool, Shared<u64>)> = (0..300).map(|_| Default::default()).collect();
    finish(|scope| {
        let cells = &cells;
        for task in 0..2 {
            spawn!(
                scope,
                for (flag, data) in &cells[150 * task..][..150] {
                    store!(data, 1);
                    flag.store(true, Release);
                }
            );
        }
        spawn!(scope,
            let all = cells.iter().filter(|(flag, _)| flag.load(Relaxed)).count();
            fence(Acquire);
            if all == 300 {
                cells.iter().for_each(|(_, data)| _ = load!(data));
            }
        );
    });
}
