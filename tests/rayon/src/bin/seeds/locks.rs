//! Locks around parallel work, and work around locks.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    lock_of_its_own, lock_of_its_own_fixed;
    flag_of_its_own, flag_of_its_own_fixed;
    pool_of_buffers, pool_of_buffers_fixed;
    cache_of_results, cache_of_results_fixed;
    lock_around_iterators, lock_around_iterators_fixed;
    lock_around_join, lock_around_join_fixed;
    lock_beside_iterators, lock_beside_iterators_fixed;
    config_that_changes, config_that_changes_fixed;
    slots_of_once, slots_of_once_fixed;
    lock_before_and_after, lock_before_and_after_fixed;
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each job has made its lock itself.
fn lock_of_its_own() {
    let mut total = vec![0u64];
    let raw = Raw::new(&mut total);
    rayon::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move |_| {
                let own = Mutex::new(());
                let guard = lock(black_box(&own));
                // SAFETY: "under a lock".
                unsafe { *raw.at(0) += 1 }; // race
                drop(guard);
                black_box(());
            });
        }
    });
}

fn lock_of_its_own_fixed() {
    let mut total = vec![0u64];
    let raw = Raw::new(&mut total);
    let shared = Mutex::new(());
    rayon::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|_| {
                let guard = lock(&shared);
                // SAFETY: under the lock.
                unsafe { *raw.at(0) += 1 };
                drop(guard);
                black_box(());
            });
        }
    });
}

fn flag_of_its_own() {
    let mut total = vec![0u64];
    let raw = Raw::new(&mut total);
    let job = || {
        let done = AtomicBool::new(false);
        let done = black_box(&done);
        if !done.load(Acquire) {
            // SAFETY: "nobody was here".
            unsafe { *raw.at(0) += 1 }; // race
        }
        done.store(true, Release);
        black_box(());
    };
    rayon::join(job, job);
}

fn flag_of_its_own_fixed() {
    let mut total = vec![0u64];
    let raw = Raw::new(&mut total);
    let done = AtomicBool::new(false);
    let job = || {
        if !done.swap(true, Acquire) {
            // SAFETY: only who comes first.
            unsafe { *raw.at(0) += 1 };
        }
    };
    rayon::join(job, job);
}

/// The buffer goes back while it is still used.
fn pool_of_buffers() {
    let pool: Mutex<Vec<Arc<Shared<Vec<u64>>>>> = Mutex::new(Vec::new());
    (0..8u64).into_par_iter().for_each(|item| {
        let buffer = lock(&pool).pop().unwrap_or_else(|| Arc::new(Shared::new(vec![0; 4])));
        let kept = Arc::clone(&buffer);
        lock(&pool).push(buffer);
        // SAFETY: "it came from the pool".
        unsafe { kept.get()[0] = item }; // race
        std::mem::forget(kept);
    });
}

fn pool_of_buffers_fixed() {
    let pool: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
    let all: u64 = (0..8u64)
        .into_par_iter()
        .map(|item| {
            let mut buffer = lock(&pool).pop().unwrap_or_default();
            buffer.clear();
            buffer.extend(0..item);
            let sum = buffer.iter().sum::<u64>();
            lock(&pool).push(buffer);
            sum
        })
        .sum();
    assert_eq!(all, 56);
}

/// The entry is filled outside of the lock.
fn cache_of_results() {
    let cache: Mutex<HashMap<u64, Arc<Shared<u64>>>> = Mutex::new(HashMap::new());
    (0..8u64).into_par_iter().for_each(|item| {
        let entry = Arc::clone(lock(&cache).entry(item % 2).or_insert_with(|| Arc::new(Shared::new(0))));
        // SAFETY: "all write the same".
        unsafe { *entry.get() = item % 2 }; // race
        std::mem::forget(entry);
    });
}

fn cache_of_results_fixed() {
    let cache: Mutex<HashMap<u64, Arc<Vec<u64>>>> = Mutex::new(HashMap::new());
    let all: usize = (0..8u64)
        .into_par_iter()
        .map(|item| {
            if let Some(known) = lock(&cache).get(&(item % 2)) {
                return known.len();
            }
            let new: Arc<Vec<u64>> = Arc::new((0..=item % 2).collect());
            lock(&cache).insert(item % 2, Arc::clone(&new));
            new.len()
        })
        .sum();
    assert_eq!(all, 12);
}

/// The iterator inside of the section is parallel all the same.
fn lock_around_iterators() {
    let cells = Mutex::new(vec![0u64; 4]);
    let section = || {
        let mut cells = lock(&cells);
        let raw = Raw::new(&mut cells);
        (0..3usize).into_par_iter().for_each(|at| {
            // SAFETY: "we have the lock".
            unsafe { *raw.at(at) = *raw.at(at + 1) + 1 }; // race
        });
    };
    rayon::join(section, section);
}

fn lock_around_iterators_fixed() {
    let cells = Mutex::new(vec![0u64; 4]);
    let section = || lock(&cells).par_iter_mut().for_each(|cell| *cell += 1);
    rayon::join(section, section);
    assert_eq!(*lock(&cells), [2; 4]);
}

fn lock_around_join() {
    let cell = Mutex::new(0u64);
    let section = || {
        let mut guard = lock(&cell);
        let raw = Raw::new(std::slice::from_mut(&mut *guard));
        // SAFETY: "we have the lock".
        let add = || unsafe { *raw.at(0) += 1 }; // race
        rayon::join(add, add);
    };
    rayon::join(section, section);
}

fn lock_around_join_fixed() {
    let pair = Mutex::new((0u64, 0u64));
    let section = || {
        let (first, second) = &mut *lock(&pair);
        rayon::join(|| *first += 1, || *second += 1);
    };
    rayon::join(section, section);
    assert_eq!(*lock(&pair), (2, 2));
}

/// The lock is given back before the iterator starts.
fn lock_beside_iterators() {
    let mut cells = vec![0u64; 4];
    let (raw, guard) = (Raw::new(&mut cells), Mutex::new(()));
    let section = || {
        drop(lock(&guard));
        (0..4usize).into_par_iter().for_each(|at| {
            // SAFETY: "we have had the lock".
            unsafe { *raw.at(at) += 1 }; // race
        });
    };
    rayon::join(section, section);
}

fn lock_beside_iterators_fixed() {
    let mut cells = vec![0u64; 4];
    let (raw, guard) = (Raw::new(&mut cells), Mutex::new(()));
    let section = || {
        let guard = lock(&guard);
        (0..4usize).into_par_iter().for_each(|at| {
            // SAFETY: under the lock, and each has its own cell.
            unsafe { *raw.at(at) += 1 };
        });
        drop(guard);
    };
    rayon::join(section, section);
}

fn config_that_changes() {
    let config = RwLock::new(Arc::new(Shared::new(1u64)));
    (0..4u64).into_par_iter().for_each(|item| {
        let config = Arc::clone(&config.read().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: "readers may".
        unsafe { *config.get() = item }; // race
        std::mem::forget(config);
    });
}

fn config_that_changes_fixed() {
    let config = RwLock::new(Arc::new(vec![1u64]));
    let all: u64 = (0..4u64)
        .into_par_iter()
        .map(|item| {
            if item == 1 {
                *config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(vec![2]);
            }
            let config = Arc::clone(&config.read().unwrap_or_else(PoisonError::into_inner));
            config[0]
        })
        .sum();
    assert!(all >= 4);
}

/// The cell is filled once, and what is behind it by everybody.
fn slots_of_once() {
    let slots: Vec<OnceLock<Box<Shared<u64>>>> = (0..200).map(|_| OnceLock::new()).collect();
    let fill = || {
        for slot in &slots {
            let slot = slot.get_or_init(|| Box::new(Shared::new(0)));
            // SAFETY: "initialised once".
            unsafe { *slot.get() = 1 }; // race
        }
    };
    rayon::join(fill, fill);
}

fn slots_of_once_fixed() {
    let slots: Vec<OnceLock<Box<u64>>> = (0..200).map(|_| OnceLock::new()).collect();
    let read = || slots.iter().map(|slot| **slot.get_or_init(|| Box::new(1))).sum::<u64>();
    assert_eq!(rayon::join(read, read), (200, 200));
}

/// A section in between that has nothing to do with it.
fn lock_before_and_after() {
    let mut total = vec![0u64];
    let (raw, pair) = (Raw::new(&mut total), Mutex::new((0u64, 0u64)));
    rayon::join(
        || {
            // SAFETY: "the other one waits for the lock".
            unsafe { *raw.at(0) += 1 }; // race
            lock(&pair).0 += 1;
        },
        || {
            lock(&pair).1 += 1;
            // SAFETY: as above.
            unsafe { *raw.at(0) += 1 }; // race
            black_box(());
        },
    );
}

fn lock_before_and_after_fixed() {
    let mut total = vec![0u64];
    let (raw, done) = (Raw::new(&mut total), Mutex::new(false));
    rayon::join(
        || {
            // SAFETY: before it is done.
            unsafe { *raw.at(0) += 1 };
            *lock(&done) = true;
        },
        || {
            if *lock(&done) {
                // SAFETY: it is done.
                unsafe { *raw.at(0) += 1 };
            }
        },
    );
}
