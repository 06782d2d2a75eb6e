//! Locks: accesses under a common one exclude each other, and nothing else follows from it.
//!
//! The order in which locks are taken is an order of this run too, as that of any release and acquire. To see that a lock
//! is what keeps a point silent, both have to be switched off.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::Ordering::{self, Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, PoisonError, RwLock};

use dagsan_task::{finish, isolated};

use crate::Point;
use crate::shared::{Shared, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    lock_mutex,
    lock_rwlock,
    lock_parking_lot_mutex,
    lock_parking_lot_rwlock,
    lock_spin,
    lock_spin_seq_cst,
    lock_spin_update,
    lock_try,
    lock_guard_through_calls,
    lock_nested,
    lock_readers_and_a_writer,
    lock_isolated,
    lock_write_under_read_locks,
    lock_write_under_parking_lot_read_locks,
    lock_different,
    lock_different_spin,
    lock_in_one_task_only,
    lock_isolated_in_one_task_only,
    lock_makes_no_order,
    lock_spin_makes_no_order,
    lock_given_back_before,
    lock_nested_inner_only,
];

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_mutex() {
    let count = Mutex::new(0u64);
    siblings(|| *lock(&count) += 1);
    assert_eq!(*lock(&count), 3);
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_rwlock() {
    let count = RwLock::new(0u64);
    siblings(|| *count.write().unwrap_or_else(PoisonError::into_inner) += 1);
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_parking_lot_mutex() {
    let count = parking_lot::Mutex::new(0u64);
    siblings(|| *count.lock() += 1);
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_parking_lot_rwlock() {
    let count = parking_lot::RwLock::new(0u64);
    siblings(|| *count.write() += 1);
}

/// As in a textbook.
struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
    acquire: Ordering,
    release: Ordering,
}

// SAFETY: whoever uses the value has the lock.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    fn new(value: T, acquire: Ordering, release: Ordering) -> SpinLock<T> {
        SpinLock { taken: AtomicBool::new(false), value: UnsafeCell::new(value), acquire, release }
    }

    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        while self.taken.compare_exchange_weak(false, true, self.acquire, Ordering::Relaxed).is_err() {}
        // SAFETY: the lock is ours.
        let result = body(unsafe { &mut *self.value.get() });
        self.taken.store(false, self.release);
        result
    }
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_spin() {
    let count = SpinLock::new(0u64, Acquire, Release);
    siblings(|| count.with(|count| *black_box(count) += 1));
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_spin_seq_cst() {
    let count = SpinLock::new(0u64, SeqCst, SeqCst);
    siblings(|| count.with(|count| *black_box(count) += 1));
}

/// Taken by a swap, given back by an and: that may be a lock, but nothing says so. It orders as in this run.
// expect: race-free, up to atomics
// expect atomics=0: race
fn lock_spin_update() {
    let (count, taken) = (Shared::new(0u64), AtomicU32::new(0));
    siblings(|| {
        while taken.swap(1, Acquire) != 0 {}
        store!(count, load!(count) + 1);
        taken.fetch_and(0, Release);
    });
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_try() {
    let count = Mutex::new(0u64);
    siblings(|| match count.try_lock() {
        Ok(mut count) => *count += 1,
        Err(_) => unreachable!("nobody has it"),
    });
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_guard_through_calls() {
    #[inline(never)]
    fn outer(mut guard: std::sync::MutexGuard<'_, Vec<u64>>) -> std::sync::MutexGuard<'_, Vec<u64>> {
        inner(&mut guard);
        guard
    }
    #[inline(never)]
    fn inner(words: &mut Vec<u64>) {
        words.push(1);
    }
    let words = Mutex::new(Vec::new());
    siblings(|| {
        let mut guard = outer(lock(&words));
        guard[0] += 1;
    });
    assert_eq!(*lock(&words), [4, 1, 1]);
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_nested() {
    let (one, two) = (Mutex::new(0u64), Mutex::new(0u64));
    siblings(|| {
        let mut one = lock(&one);
        let mut two = lock(&two);
        *one += 1;
        *two += 1;
        drop(one);
        *two += 1;
    });
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn lock_readers_and_a_writer() {
    let word = RwLock::new(1u64);
    finish(|scope| {
        let word = &word;
        spawn!(scope, black_box(*word.read().unwrap_or_else(PoisonError::into_inner)));
        spawn!(scope, *word.write().unwrap_or_else(PoisonError::into_inner) += 1);
        spawn!(scope, black_box(*word.read().unwrap_or_else(PoisonError::into_inner)));
    });
}

// expect: race-free, up to locks
fn lock_isolated() {
    let count = Shared::new(0u64);
    siblings(|| isolated(|| store!(count, load!(count) + 1)));
    assert_eq!(load!(count), 3);
}

// expect: race write/write on 8 bytes of stack by 1/2
fn lock_write_under_read_locks() {
    let (word, guard) = (Shared::new(0u64), RwLock::new(()));
    finish(|scope| {
        let (word, guard) = (&word, &guard);
        spawn!(scope,
            let _reads = guard.read().unwrap_or_else(PoisonError::into_inner);
            store!(word, 1); // race (1)
        );
        spawn!(scope,
            let _reads = guard.read().unwrap_or_else(PoisonError::into_inner);
            store!(word, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn lock_write_under_parking_lot_read_locks() {
    let (word, guard) = (Shared::new(0u64), parking_lot::RwLock::new(()));
    finish(|scope| {
        let (word, guard) = (&word, &guard);
        spawn!(scope,
            let _reads = guard.read();
            store!(word, 1); // race (1)
        );
        spawn!(scope,
            let _reads = guard.read();
            store!(word, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn lock_different() {
    let (word, one, two) = (Shared::new(0u64), Mutex::new(()), Mutex::new(()));
    finish(|scope| {
        let (word, one, two) = (&word, &one, &two);
        spawn!(scope,
            let _one = lock(one);
            store!(word, 1); // race (1)
        );
        spawn!(scope,
            let _two = lock(two);
            store!(word, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn lock_different_spin() {
    let word = Shared::new(0u64);
    let [one, two] = [(); 2].map(|()| SpinLock::new((), Acquire, Release));
    finish(|scope| {
        let (word, one, two) = (&word, &one, &two);
        spawn!(
            scope,
            one.with(|()| {
                store!(word, 1); // race (1)
            })
        );
        spawn!(
            scope,
            two.with(|()| {
                store!(word, 2); // race (2)
            })
        );
    });
}

// expect: race write/read on 8 bytes of stack by 1/2
fn lock_in_one_task_only() {
    let (word, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (word, guard) = (&word, &guard);
        spawn!(scope,
            let _guard = lock(guard);
            store!(word, 1); // race (1)
        );
        spawn!(scope, load!(word)); // race (2)
    });
}

// expect: race write/read on 8 bytes of stack by 1/2
fn lock_isolated_in_one_task_only() {
    let word = Shared::new(0u64);
    finish(|scope| {
        let word = &word;
        spawn!(scope, isolated(|| store!(word, 1))); // race (1)
        spawn!(scope, load!(word)); // race (2)
    });
}

/// The first task gives the lock back before the second takes it, in this run; that hides nothing, as nothing is handed over.
// expect: race write/write on 8 bytes of stack by 1/2
// expect locks=0: race-free, up to atomics
fn lock_makes_no_order() {
    let (word, guard) = (Shared::new(0u64), Mutex::new(0u64));
    finish(|scope| {
        let (word, guard) = (&word, &guard);
        spawn!(scope,
            store!(word, 1); // race (1)
            drop(lock(guard));
        );
        spawn!(scope,
            drop(lock(guard));
            store!(word, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
// expect locks=0: race-free, up to atomics
fn lock_spin_makes_no_order() {
    let (word, guard) = (Shared::new(0u64), SpinLock::new(0u64, Acquire, Release));
    finish(|scope| {
        let (word, guard) = (&word, &guard);
        spawn!(scope,
            store!(word, 1); // race (1)
            guard.with(|_| ());
        );
        spawn!(scope,
            guard.with(|_| ());
            store!(word, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn lock_given_back_before() {
    let (word, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (word, guard) = (&word, &guard);
        spawn!(scope,
            drop(lock(guard));
            store!(word, 1); // race (1)
        );
        spawn!(scope,
            let _guard = lock(guard);
            store!(word, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn lock_nested_inner_only() {
    let (word, outer, inner) = (Shared::new(0u64), Mutex::new(()), Mutex::new(()));
    finish(|scope| {
        let (word, outer, inner) = (&word, &outer, &inner);
        spawn!(scope,
            let outer = lock(outer);
            let _inner = lock(inner);
            drop(outer);
            store!(word, 1); // race (1)
        );
        spawn!(scope,
            let _outer = lock(outer);
            drop(lock(inner));
            store!(word, 2); // race (2)
        );
    });
}
