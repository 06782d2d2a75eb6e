//! Which words are locks, and for how long: on the stack, in blocks that are freed, counters, guards that change.

use std::hint::black_box;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Mutex, PoisonError, RwLock, RwLockWriteGuard};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Shared, load, spawn, store};

pub const POINTS: &[Point] = points![
    words_mutex_on_the_stack,
    words_mutex_around,
    words_flag_on_the_stack,
    words_flag_around,
    words_mutex_in_a_future,
    words_mutex_in_a_box,
    words_mutex_of_the_body,
    words_counter,
    words_counter_by_one,
    words_swap,
    words_swap_of_two,
    words_claimed_and_published,
    words_claimed_and_not_published,
    words_counter_by_updates,
    words_downgraded,
    words_downgraded_reads,
    words_parking_lot_downgraded,
    words_parking_lot_upgraded,
    words_parking_lot_upgraded_writes,
    words_parking_lot_upgraded_and_back,
    words_given_back_by_another,
    words_given_back_relaxed,
    words_given_back_after_a_fence,
    words_given_back_after_an_earlier_fence,
    words_given_back_after_two_fences,
    words_used_after_a_fence_gave_it_back,
    words_claimed_twice,
    words_given_back_by_a_subtraction,
    words_read_lock_around_tasks,
    words_write_lock_around_tasks,
];

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mutex each, at the same address one after the other.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_mutex_on_the_stack() {
    let data = Shared::new(0u64);
    finish(|scope| {
        for value in 1..3 {
            let data = &data;
            spawn!(scope,
                let own = Mutex::new(0u64);
                let mut guard = lock(black_box(&own));
                *guard += 1;
                store!(data, value); // race (1) race (2)
            );
        }
    });
}

// expect: race-free, up to locks
fn words_mutex_around() {
    let (data, shared) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        for value in 1..3 {
            let (data, shared) = (&data, &shared);
            spawn!(scope,
                let _guard = lock(black_box(shared));
                store!(data, value);
            );
        }
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn words_flag_on_the_stack() {
    let data = Shared::new(0u64);
    finish(|scope| {
        for value in 1..3 {
            let data = &data;
            spawn!(scope,
                let own = AtomicBool::new(false);
                let own = black_box(&own);
                own.load(Acquire);
                store!(data, value); // race (1) race (2)
                own.store(true, Release);
            );
        }
    });
}

// expect: race-free, up to atomics
fn words_flag_around() {
    let (data, flag) = (Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        for value in 1..3 {
            let (data, flag) = (&data, &flag);
            spawn!(scope,
                black_box(flag).load(Acquire);
                store!(data, value);
                flag.store(true, Release);
            );
        }
    });
}

/// On stacks of their own, which are used again.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_mutex_in_a_future() {
    let data = Shared::new(0u64);
    finish(|scope| {
        let data = &data;
        let start = |value| {
            scope.future(move |_| {
                let own = Mutex::new(());
                let guard = lock(black_box(&own));
                store!(data, value); // race (1) race (2)
                drop(guard);
                black_box(());
            })
        };
        // The last drop of a handle would be an order.
        std::mem::forget((start(1), start(2)));
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn words_mutex_in_a_box() {
    let data = Shared::new(0u64);
    finish(|scope| {
        for value in 1..3 {
            let data = &data;
            spawn!(scope,
                let own = black_box(Box::new(Mutex::new(())));
                let guard = lock(&own);
                store!(data, value); // race (1) race (2)
                drop(guard);
            );
        }
    });
}

/// The body of the scope and a task, each with a mutex of its own.
// expect: race write/write on 8 bytes of stack by 1/0
fn words_mutex_of_the_body() {
    #[inline(never)]
    fn own(data: &Shared<u64>, value: u64) {
        let own = Mutex::new(());
        let guard = lock(black_box(&own));
        store!(data, value); // race (1) race (2)
        drop(guard);
        black_box(());
    }
    let data = Shared::new(0u64);
    finish(|scope| {
        let data = &data;
        spawn!(scope, own(data, 1));
        own(data, 2);
    });
}

/// Adding and subtracting excludes nobody; the order is that of the run.
// expect: race-free, up to atomics
// expect atomics=0: race
fn words_counter() {
    let (data, count) = (Shared::new(0u64), AtomicU64::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, count) = (&data, &count);
            spawn!(scope,
                count.fetch_add(100, SeqCst);
                store!(data, value);
                count.fetch_sub(100, SeqCst);
            );
        }
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn words_counter_by_one() {
    let (data, count) = (Shared::new(0u64), AtomicU64::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, count) = (&data, &count);
            spawn!(scope,
                count.fetch_add(1, Relaxed);
                store!(data, value); // race (1) race (2)
                count.fetch_sub(1, Relaxed);
            );
        }
    });
}

// expect: race-free, up to atomics
// expect atomics=0: race
fn words_swap() {
    let (data, who) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, who) = (&data, &who);
            spawn!(scope,
                who.swap(value, SeqCst);
                store!(data, value.into());
                who.swap(0, SeqCst);
            );
        }
    });
}

/// Each has a word of its own.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_swap_of_two() {
    let (data, who) = (Shared::new(0u64), [AtomicU32::new(0), AtomicU32::new(0)]);
    finish(|scope| {
        for value in 0..2 {
            let (data, who) = (&data, &who);
            spawn!(scope,
                who[value].swap(1, SeqCst);
                store!(data, value as u64); // race (1) race (2)
                who[value].swap(0, SeqCst);
            );
        }
    });
}

// expect: race-free, up to atomics
fn words_claimed_and_published() {
    let (data, state) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for _ in 0..3 {
            let (data, state) = (&data, &state);
            spawn!(
                scope,
                if state.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
                    store!(data, 1);
                    state.store(2, Release);
                } else if state.load(Acquire) == 2 {
                    load!(data);
                }
            );
        }
    });
}

// expect: race write/read on 8 bytes of stack by 1/2
fn words_claimed_and_not_published() {
    let (data, state) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        let (data, state) = (&data, &state);
        spawn!(
            scope,
            if state.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                store!(data, 1); // race (1)
                state.store(2, Relaxed);
            }
        );
        spawn!(
            scope,
            if state.load(Acquire) == 2 {
                load!(data); // race (2)
            }
        );
    });
}

/// Compare-exchange in a loop counts: whoever gives back what it has added was not alone.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_counter_by_updates() {
    let (data, count) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, count) = (&data, &count);
            spawn!(scope,
                let mut seen = count.load(Relaxed);
                while let Err(now) = count.compare_exchange(seen, seen + 100, Acquire, Relaxed) {
                    seen = now;
                }
                store!(data, value); // race (1) race (2)
                count.fetch_sub(100, Release);
            );
        }
    });
}

/// Once the guard is a reader's, others may read too.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_downgraded() {
    let (data, guard) = (Shared::new(0u64), RwLock::new(0u64));
    finish(|scope| {
        for value in 1..3 {
            let (data, guard) = (&data, &guard);
            spawn!(scope,
                let guard = guard.write().unwrap_or_else(PoisonError::into_inner);
                let guard = RwLockWriteGuard::downgrade(guard);
                store!(data, value); // race (1) race (2)
                drop(guard);
            );
        }
    });
}

/// Written by a writer, read by the reader it becomes.
// expect: race-free, up to locks
fn words_downgraded_reads() {
    let (data, guard) = (Shared::new(0u64), RwLock::new(0u64));
    finish(|scope| {
        for value in 1..3 {
            let (data, guard) = (&data, &guard);
            spawn!(scope,
                let guard = guard.write().unwrap_or_else(PoisonError::into_inner);
                store!(data, value);
                let guard = RwLockWriteGuard::downgrade(guard);
                load!(data);
                drop(guard);
            );
        }
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn words_parking_lot_downgraded() {
    let (data, guard) = (Shared::new(0u64), parking_lot::RwLock::new(0u64));
    finish(|scope| {
        for value in 1..3 {
            let (data, guard) = (&data, &guard);
            spawn!(scope,
                let guard = parking_lot::RwLockWriteGuard::downgrade(guard.write());
                store!(data, value); // race (1) race (2)
                drop(guard);
            );
        }
    });
}

// expect: race-free, up to locks
fn words_parking_lot_upgraded() {
    let (data, guard) = (Shared::new(0u64), parking_lot::RwLock::new(0u64));
    finish(|scope| {
        for value in 1..3 {
            let (data, guard) = (&data, &guard);
            spawn!(scope,
                let guard = guard.upgradable_read();
                load!(data);
                let guard = parking_lot::RwLockUpgradableReadGuard::upgrade(guard);
                store!(data, value);
                drop(guard);
            );
        }
    });
}

/// One writes before it is alone, while others read.
// expect: race write/read on 8 bytes of stack by 2/3, up to locks
fn words_parking_lot_upgraded_writes() {
    let (data, guard) = (Shared::new(0u64), parking_lot::RwLock::new(0u64));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            let mut guard = parking_lot::RwLockUpgradableReadGuard::upgrade(guard.upgradable_read());
            *guard += 1;
        );
        spawn!(scope,
            let guard = guard.upgradable_read();
            store!(data, 1); // race (1)
            let mut guard = parking_lot::RwLockUpgradableReadGuard::upgrade(guard);
            *guard += 1;
        );
        spawn!(scope,
            let guard = guard.read();
            load!(data); // race (2)
            drop(guard);
        );
    });
}

// expect: race-free, up to locks
fn words_parking_lot_upgraded_and_back() {
    let (data, guard) = (Shared::new(0u64), parking_lot::RwLock::new(0u64));
    finish(|scope| {
        for value in 1..3 {
            let (data, guard) = (&data, &guard);
            spawn!(scope,
                let guard = parking_lot::RwLockUpgradableReadGuard::upgrade(guard.upgradable_read());
                store!(data, value);
                let guard = parking_lot::RwLockWriteGuard::downgrade_to_upgradable(guard);
                load!(data);
                drop(guard);
            );
        }
    });
}

/// A task holds the lock until another one opens it: a signal, and no section.
// expect: race write/read on 8 bytes of stack by 1/3, up to atomics
fn words_given_back_by_another() {
    let (data, gate) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        let (data, gate) = (&data, &gate);
        scope.spawn(move |scope| {
            black_box(gate.compare_exchange(0, 1, Acquire, Relaxed).is_ok());
            spawn!(scope, gate.store(0, Release));
            store!(data, 1); // race (1)
        });
        spawn!(scope,
            black_box(gate.compare_exchange(0, 1, Acquire, Relaxed).is_ok());
            load!(data); // race (2)
            gate.store(0, Release);
        );
    });
}

/// Given back without a release: nobody is sure to see what was done under it.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_given_back_relaxed() {
    let (data, word) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, word) = (&data, &word);
            spawn!(scope,
                while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {}
                store!(data, value); // race (1) race (2)
                word.store(0, Relaxed);
            );
        }
    });
}

/// Given back by a fence and a store.
// expect: race-free, up to locks
fn words_given_back_after_a_fence() {
    let (data, word) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, word) = (&data, &word);
            spawn!(scope,
                while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {}
                store!(data, value);
                std::sync::atomic::fence(Release);
                word.store(0, Relaxed);
            );
        }
    });
}

/// What follows is not under the lock.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_used_after_a_fence_gave_it_back() {
    let (data, word) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, word) = (&data, &word);
            spawn!(scope,
                while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {}
                std::sync::atomic::fence(Release);
                word.store(0, Relaxed);
                store!(data, value); // race (1) race (2)
            );
        }
    });
}

/// A fence that came before the lock was taken says nothing of what was done under it.
// expect: race write/write on 8 bytes of stack by 1/2
fn words_given_back_after_an_earlier_fence() {
    let (data, word) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, word) = (&data, &word);
            spawn!(scope,
                std::sync::atomic::fence(Release);
                while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {}
                store!(data, value); // race (1) race (2)
                word.store(0, Relaxed);
            );
        }
    });
}

/// One before and one after.
// expect: race-free, up to locks
fn words_given_back_after_two_fences() {
    let (data, word) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, word) = (&data, &word);
            spawn!(scope,
                std::sync::atomic::fence(Release);
                while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {}
                store!(data, value);
                std::sync::atomic::fence(Release);
                word.store(0, Relaxed);
            );
        }
    });
}

/// A claim that a third task takes back: both have claimed, and neither has waited.
// expect: race write/write on 8 bytes of stack by 1/3, up to atomics
fn words_claimed_twice() {
    let (data, word) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        let (data, word) = (&data, &word);
        spawn!(
            scope,
            if word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                store!(data, 1); // race (1)
            }
        );
        spawn!(scope, word.store(0, Release));
        spawn!(
            scope,
            if word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                store!(data, 2); // race (2)
            }
        );
    });
}

/// A lock that nobody counts, given back by a subtraction.
// expect: race-free, up to locks
fn words_given_back_by_a_subtraction() {
    let (data, word) = (Shared::new(0u64), AtomicU32::new(0));
    finish(|scope| {
        for value in 1..3 {
            let (data, word) = (&data, &word);
            spawn!(scope,
                while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {}
                store!(data, value);
                word.fetch_sub(1, Release);
            );
        }
    });
}

/// Tasks under a reader's lock are readers.
// expect: race write/write on 8 bytes of stack by 2/3
fn words_read_lock_around_tasks() {
    let (data, guard) = (Shared::new(0u64), RwLock::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            let _guard = guard.read();
            finish(|inner| spawn!(inner, store!(data, 1))); // race (1)
        );
        spawn!(scope,
            let _guard = guard.read();
            store!(data, 2); // race (2)
        );
    });
}

/// Tasks under a writer's lock are under it, whoever reads.
// expect: race-free, up to locks
fn words_write_lock_around_tasks() {
    let (data, guard) = (Shared::new(0u64), RwLock::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            let _guard = guard.write();
            finish(|inner| spawn!(inner, store!(data, 1)));
        );
        spawn!(scope,
            let _guard = guard.read();
            load!(data);
        );
    });
}
