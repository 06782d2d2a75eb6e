//! Threads and locks: mutexes, read-write locks, condition variables, barriers.
//!
//! As in `threads.rs`: after each point with a race comes its twin without, and the verdict is the same whoever comes first.
//! So a thread that is to have done something under a lock is waited for, and nobody takes a lock again after the race: its
//! next section would come after those that it depends on.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Barrier, Condvar, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::Point;
use crate::shared::{Pointer, Shared, load, store};
use crate::thread_shared::{both, fail, lock, pair, until, word, work};

pub const POINTS: &[Point] = points![
    mutex_on_one_side,
    mutex_on_both_sides,
    mutex_of_each,
    mutex_of_both,
    mutex_read_outside,
    mutex_read_inside,
    mutex_given_back,
    mutex_kept,
    mutex_not_asked,
    mutex_asked,
    mutex_slot_copied,
    mutex_slot_taken,
    mutex_refused,
    mutex_tried_again,
    mutex_poisoned_outside,
    mutex_poisoned_inside,
    rwlock_written_by_readers,
    rwlock_written_by_writers,
    rwlock_read_outside,
    rwlock_read_inside,
    rwlock_readers_only,
    rwlock_written_before,
    condvar_written_after,
    condvar_written_before,
    condvar_timed_out,
    condvar_waited,
    workers_of_one_result,
    workers_of_own_jobs,
    barrier_too_late,
    barrier_in_between,
    barrier_once,
    barrier_twice,
    barrier_leader_alone,
    barrier_leader_first,
];

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn mutex_on_one_side() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    pair(
        || {
            let _guard = lock(&guard);
            store!(data, 1); // race (1)
        },
        || store!(data, 2), // race (2)
    );
}

// expect: race-free, up to locks and atomics
fn mutex_on_both_sides() {
    let (data, guard) = (Shared::new(0usize), Mutex::new(()));
    both(|me| {
        let _guard = lock(&guard);
        store!(data, load!(data) + me);
    });
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn mutex_of_each() {
    let (data, guards) = (Shared::new(0usize), [Mutex::new(()), Mutex::new(())]);
    both(|me| {
        let _guard = lock(&guards[me]);
        store!(data, me); // race (1) race (2)
    });
}

/// Two locks each, in the same order, of which one is enough.
// expect: race-free, up to locks and atomics
fn mutex_of_both() {
    let (data, guards) = (Shared::new(0usize), [Mutex::new(()), Mutex::new(())]);
    both(|me| {
        let _guards = [lock(&guards[0]), lock(&guards[1])];
        store!(data, me);
    });
}

// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn mutex_read_outside() {
    let data = &mut Mutex::new(0u64);
    let (inside, data) = (Pointer(data.get_mut().unwrap()), &*data);
    thread::scope(|threads| {
        let _writer = threads.spawn(work!(*lock(data) = 1;)); // race (1)
        let _reader = threads.spawn(work!(load!(inside))); // race (2)
    });
}

// expect: race-free, up to locks and atomics
fn mutex_read_inside() {
    let data = Mutex::new(0u64);
    pair(|| *lock(&data) = 1, || _ = black_box(*lock(&data)));
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn mutex_given_back() {
    let (data, guard) = (Shared::new(0usize), Mutex::new(()));
    both(|me| {
        drop(lock(&guard));
        store!(data, me); // race (1) race (2)
    });
}

// expect: race-free, up to locks and atomics
fn mutex_kept() {
    let (data, guard) = (Shared::new(0usize), Mutex::new(()));
    both(|me| {
        let guard = lock(&guard);
        store!(data, me);
        drop(guard);
    });
}

/// It takes the lock, and does not look at what it guards.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn mutex_not_asked() {
    let (data, ready) = (Shared::new(0u64), Mutex::new(false));
    pair(
        || {
            store!(data, 1); // race (1)
            *lock(&ready) = true;
        },
        || {
            drop(lock(&ready));
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to locks and atomics
fn mutex_asked() {
    let (data, ready) = (Shared::new(0u64), Mutex::new(false));
    pair(
        || {
            store!(data, 1);
            *lock(&ready) = true;
        },
        || {
            while !*lock(&ready) {
                thread::yield_now();
            }
            load!(data);
        },
    );
}

/// What another thread puts into a slot.
fn taken<T>(slot: &Mutex<Option<T>>) -> T {
    loop {
        let taken = lock(slot).take();
        match taken {
            Some(value) => return value,
            None => thread::yield_now(),
        }
    }
}

/// Who has put the pointer into the slot still uses it.
// expect: race write/write on 8 bytes of heap by 1/2, up to locks and atomics
fn mutex_slot_copied() {
    let slot = Mutex::new(None);
    pair(
        || {
            let value = word();
            *lock(&slot) = Some(value);
            store!(value, 1); // race (1)
        },
        || store!(taken(&slot), 2), // race (2)
    );
}

// expect: race-free, up to locks and atomics
fn mutex_slot_taken() {
    let slot = Mutex::new(None);
    pair(|| *lock(&slot) = Some(Box::new(5u64)), || *black_box(taken(&slot)) += 1);
}

/// It does not get the lock, and goes on all the same. The flags order nothing.
// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn mutex_refused() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    let (held, refused) = (AtomicBool::new(false), AtomicBool::new(false));
    pair(
        || {
            let _guard = lock(&guard);
            store!(data, 1); // race (1)
            held.store(true, Relaxed);
            until(|| refused.load(Relaxed));
        },
        || {
            until(|| held.load(Relaxed));
            assert!(guard.try_lock().is_err());
            store!(data, 2); // race (2)
            refused.store(true, Relaxed);
        },
    );
}

// expect: race-free, up to locks and atomics
fn mutex_tried_again() {
    let (data, guard) = (Shared::new(0usize), Mutex::new(()));
    both(|me| {
        let _guard = loop {
            match guard.try_lock() {
                Ok(guard) => break guard,
                Err(_) => thread::yield_now(),
            }
        };
        store!(data, me);
    });
}

/// Somebody panics under the lock; the other one does not take it.
// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn mutex_poisoned_outside() {
    let data = &mut Mutex::new(0u64);
    let (inside, data) = (Pointer(data.get_mut().unwrap()), &*data);
    thread::scope(|threads| {
        let fails = threads.spawn(work!(
            let mut data = lock(data);
            *data = 1; // race (1)
            fail();
        ));
        let _writer = threads.spawn(work!(store!(inside, 2))); // race (2)
        assert!(fails.join().is_err());
    });
}

// expect: race-free, up to locks and atomics
fn mutex_poisoned_inside() {
    let data = &Mutex::new(0u64);
    thread::scope(|threads| {
        let fails = threads.spawn(work!(
            let mut data = lock(data);
            *data = 1;
            fail();
        ));
        let _writer = threads.spawn(work!(*lock(data) += 2));
        assert!(fails.join().is_err());
    });
    assert!(data.is_poisoned());
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn rwlock_written_by_readers() {
    let (data, guard) = (Shared::new(0usize), RwLock::new(()));
    both(|me| {
        let _guard = guard.read();
        store!(data, me); // race (1) race (2)
    });
}

// expect: race-free, up to locks and atomics
fn rwlock_written_by_writers() {
    let (data, guard) = (Shared::new(0usize), RwLock::new(()));
    both(|me| {
        let _guard = guard.write();
        store!(data, me);
    });
}

/// A reader of the guarded value, without the lock.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn rwlock_read_outside() {
    let data = &mut RwLock::new(0u64);
    let (inside, data) = (Pointer(data.get_mut().unwrap()), &*data);
    thread::scope(|threads| {
        let _writer = threads.spawn(work!(*data.write().unwrap() = 1;)); // race (1)
        let _reader = threads.spawn(work!(load!(inside))); // race (2)
    });
}

// expect: race-free, up to locks and atomics
fn rwlock_read_inside() {
    let data = RwLock::new(0u64);
    pair(|| *data.write().unwrap() = 1, || _ = black_box(*data.read().unwrap()));
}

/// Readers order nothing, whatever they read.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn rwlock_readers_only() {
    let (data, ready) = (Shared::new(0u64), RwLock::new(false));
    pair(
        || {
            store!(data, 1); // race (1)
            black_box(*ready.read().unwrap());
        },
        || {
            black_box(*ready.read().unwrap());
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to locks and atomics
fn rwlock_written_before() {
    let (data, ready) = (Shared::new(0u64), RwLock::new(false));
    pair(
        || {
            store!(data, 1);
            *ready.write().unwrap() = true;
        },
        || {
            while !*ready.read().unwrap() {
                thread::yield_now();
            }
            load!(data);
        },
    );
}

// expect: race write/read on 8 bytes of stack by 0/1, up to locks and atomics
fn condvar_written_after() {
    let (data, open, bell) = (&Shared::new(0u64), &Mutex::new(false), &Condvar::new());
    thread::scope(|threads| {
        let _reader = threads.spawn(work!(
            drop(bell.wait_while(lock(open), |open| !*open));
            load!(data) // race (2)
        ));
        *lock(open) = true;
        bell.notify_all();
        store!(data, 1); // race (1)
    });
}

// expect: race-free, up to locks and atomics
fn condvar_written_before() {
    let (data, open, bell) = (&Shared::new(0u64), &Mutex::new(false), &Condvar::new());
    thread::scope(|threads| {
        let _reader = threads.spawn(work!(
            drop(bell.wait_while(lock(open), |open| !*open));
            load!(data)
        ));
        store!(data, 1);
        *lock(open) = true;
        bell.notify_all();
    });
}

/// Nobody has notified it.
// expect: race write/read on 8 bytes of stack by 0/1, up to atomics
fn condvar_timed_out() {
    let (data, open, bell) = (&Shared::new(0u64), &Mutex::new(false), &Condvar::new());
    thread::scope(|threads| {
        let _reader = threads.spawn(work!(
            drop(bell.wait_timeout(lock(open), Duration::from_millis(1)));
            load!(data) // race (2)
        ));
        store!(data, 1); // race (1)
    });
}

/// It looks again whenever the time is over.
// expect: race-free, up to locks and atomics
fn condvar_waited() {
    let (data, open, bell) = (&Shared::new(0u64), &Mutex::new(false), &Condvar::new());
    thread::scope(|threads| {
        let _reader = threads.spawn(work!(
            let mut is_open = lock(open);
            while !*is_open {
                is_open = bell.wait_timeout(is_open, Duration::from_millis(1)).unwrap().0;
            }
            drop(is_open);
            load!(data)
        ));
        store!(data, 1);
        *lock(open) = true;
    });
}

/// Three workers, of which each takes one job from a queue, and does it.
fn workers<T: Send>(jobs: [T; 3], does: impl Fn(T) + Sync) {
    let (queue, bell, does) = (&Mutex::new(VecDeque::new()), &Condvar::new(), &does);
    thread::scope(|threads| {
        let _workers = [0; 3].map(|_| {
            threads.spawn(work!(
                let queue = bell.wait_while(lock(queue), |queue| VecDeque::is_empty(queue));
                let job = queue.unwrap_or_else(PoisonError::into_inner).pop_front();
                job.map(does)
            ))
        });
        for job in jobs {
            lock(queue).push_back(job);
            bell.notify_one();
        }
    });
}

// expect: race
fn workers_of_one_result() {
    let result = Shared::new(0u64);
    workers([1, 2, 3], |job| store!(result, job)); // race (1) race (2)
}

// expect: race-free, up to locks and atomics
fn workers_of_own_jobs() {
    workers([word(), word(), word()], |job| store!(job, load!(job) + 1));
}

// expect: race
fn barrier_too_late() {
    let (words, barrier) = ([Shared::new(0), Shared::new(0)], Barrier::new(2));
    both(|me| {
        store!(words[me], me); // race (1) race (2)
        load!(words[1 - me]); // race (1) race (2)
        barrier.wait();
    });
}

// expect: race-free, up to atomics
fn barrier_in_between() {
    let (words, barrier) = ([Shared::new(0), Shared::new(0)], Barrier::new(2));
    both(|me| {
        store!(words[me], me);
        barrier.wait();
        load!(words[1 - me]);
    });
}

/// The other one may not have read yet what is written again.
// expect: race
fn barrier_once() {
    let (words, barrier) = ([Shared::new(0), Shared::new(0)], Barrier::new(2));
    both(|me| {
        store!(words[me], me);
        barrier.wait();
        let other = load!(words[1 - me]); // race (1) race (2)
        store!(words[me], other); // race (1) race (2)
    });
}

// expect: race-free, up to atomics
fn barrier_twice() {
    let (words, barrier) = ([Shared::new(0), Shared::new(0)], Barrier::new(2));
    both(|me| {
        for _ in 0..3 {
            store!(words[me], me);
            barrier.wait();
            load!(words[1 - me]);
            barrier.wait();
        }
    });
}

/// The leader writes after the barrier, where the other one reads.
// expect: race
fn barrier_leader_alone() {
    let (data, barrier) = (Shared::new(0), Barrier::new(2));
    both(|me| {
        if barrier.wait().is_leader() {
            store!(data, me); // race (1)
        } else {
            load!(data); // race (2)
        }
    });
}

// expect: race-free, up to atomics
fn barrier_leader_first() {
    let (data, barrier) = (Shared::new(0), Barrier::new(2));
    both(|me| {
        if barrier.wait().is_leader() {
            store!(data, me);
        }
        barrier.wait();
        load!(data);
    });
}
