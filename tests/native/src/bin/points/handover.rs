//! What is handed over through a lock: sections that depend on each other order what stands around them, as in this run;
//! sections that have nothing to do with each other order nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use dagsan_task::{finish, isolated};

use crate::Point;
use crate::shared::{Pointer, Shared, load, spawn, store};

pub const POINTS: &[Point] = points![
    handover_pool,
    handover_pool_kept,
    handover_memo,
    handover_memo_without,
    handover_queue,
    handover_queue_peeked,
    handover_option,
    handover_option_copied,
    handover_rwlock_arc,
    handover_rwlock_arc_behind,
    handover_latch,
    handover_latch_unasked,
    handover_flag,
    handover_flag_of_another_lock,
    handover_isolated,
    handover_isolated_unrelated,
    handover_parking_lot,
    handover_parking_lot_readers,
    handover_two_steps,
    handover_two_steps_broken,
    handover_within_nested_locks,
    handover_after_the_section,
    handover_freed_cell,
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn word() -> Pointer<u64> {
    Pointer(Box::leak(Box::new(0u64)))
}

/// Buffers are popped, used outside of the lock, and pushed back.
// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn handover_pool() {
    let pool = Mutex::new(vec![word()]);
    finish(|scope| {
        for value in 1..4 {
            let pool = &pool;
            spawn!(scope,
                let buffer = lock(pool).pop().unwrap_or_else(word);
                store!(buffer, value);
                lock(pool).push(buffer);
            );
        }
    });
}

/// One task goes on to use what it has pushed back.
// expect: race write/write on 8 bytes of heap by 1/2, up to locks
fn handover_pool_kept() {
    let pool = Mutex::new(vec![word()]);
    finish(|scope| {
        let pool = &pool;
        spawn!(scope,
            let buffer = lock(pool).pop().unwrap_or_else(word);
            lock(pool).push(buffer);
            store!(buffer, 1); // race (1)
        );
        spawn!(scope,
            let buffer = lock(pool).pop().unwrap_or_else(word);
            store!(buffer, 2); // race (2)
            lock(pool).push(buffer);
        );
    });
}

// expect: race-free, up to locks
fn handover_memo() {
    let memo: Mutex<HashMap<u64, Arc<Shared<u64>>>> = Mutex::new(HashMap::new());
    finish(|scope| {
        for _ in 0..3 {
            let memo = &memo;
            spawn!(scope,
                let known = lock(memo).get(&7).cloned();
                let value = known.unwrap_or_else(|| {
                    let new = Arc::new(Shared::new(0u64));
                    store!(new, 49);
                    lock(memo).insert(7, Arc::clone(&new));
                    new
                });
                load!(value)
            );
        }
    });
}

/// The value is filled in after it was put into the map.
// expect: race write/read on 8 bytes of heap by 1/2, up to locks
fn handover_memo_without() {
    let memo: Mutex<HashMap<u64, Arc<Shared<u64>>>> = Mutex::new(HashMap::new());
    finish(|scope| {
        let memo = &memo;
        spawn!(scope,
            let new = Arc::new(Shared::new(0u64));
            lock(memo).insert(7, Arc::clone(&new));
            store!(new, 49); // race (1)
            std::mem::forget(new);
        );
        spawn!(scope,
            let known = lock(memo).get(&7).cloned();
            if let Some(known) = known {
                load!(known); // race (2)
                std::mem::forget(known);
            }
        );
    });
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn handover_queue() {
    let queue = Mutex::new(VecDeque::new());
    finish(|scope| {
        let queue = &queue;
        spawn!(
            scope,
            for value in 0..3 {
                let job = word();
                store!(job, value);
                lock(queue).push_back(job);
            }
        );
        for _ in 0..3 {
            spawn!(scope,
                let job = lock(queue).pop_front();
                job.map(|job| store!(job, load!(job) + 1))
            );
        }
    });
}

/// The job stays in the queue, and two work on it.
// expect: race write/write on 8 bytes of heap by 1/2, up to locks
fn handover_queue_peeked() {
    let queue = Mutex::new(VecDeque::from([word()]));
    finish(|scope| {
        for value in 1..3 {
            let queue = &queue;
            spawn!(scope,
                let job = lock(queue).front().copied();
                job.map(|job| store!(job, value)) // race (1) race (2)
            );
        }
        let queue = &queue;
        spawn!(scope, lock(queue).clear());
    });
}

// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn handover_option() {
    let slot: Mutex<Option<Box<u64>>> = Mutex::new(None);
    finish(|scope| {
        let slot = &slot;
        spawn!(scope, *lock(slot) = Some(Box::new(5)));
        spawn!(scope,
            let taken = lock(slot).take();
            taken.map(|mut value| {
                *value += 1;
                *value
            })
        );
    });
}

/// The pointer is copied, so both have it.
// expect: race write/write on 8 bytes of heap by 1/2, up to locks
fn handover_option_copied() {
    let slot: Mutex<Option<Pointer<u64>>> = Mutex::new(None);
    finish(|scope| {
        let slot = &slot;
        spawn!(scope,
            let value = word();
            *lock(slot) = Some(value);
            store!(value, 1); // race (1)
        );
        spawn!(scope,
            let value = *lock(slot);
            value.map(|value| store!(value, 2)) // race (2)
        );
    });
}

// expect: race-free, up to locks
fn handover_rwlock_arc() {
    let config = RwLock::new(Arc::new(Shared::new(1u64)));
    finish(|scope| {
        let config = &config;
        spawn!(scope,
            let new = Arc::new(Shared::new(0u64));
            store!(new, 2);
            *config.write().unwrap_or_else(PoisonError::into_inner) = new;
        );
        for _ in 0..2 {
            spawn!(scope,
                let config = Arc::clone(&config.read().unwrap_or_else(PoisonError::into_inner));
                load!(config)
            );
        }
    });
}

/// What is behind the pointer is changed by a reader.
// expect: race write/write on 8 bytes of heap by 2/3, up to locks
fn handover_rwlock_arc_behind() {
    let config = RwLock::new(Arc::new(Shared::new(1u64)));
    finish(|scope| {
        let config = &config;
        spawn!(scope,
            let new = Arc::new(Shared::new(0u64));
            *config.write().unwrap_or_else(PoisonError::into_inner) = new;
        );
        spawn!(scope,
            let config = Arc::clone(&config.read().unwrap_or_else(PoisonError::into_inner));
            store!(config, 2); // race (1)
            std::mem::forget(config);
        );
        spawn!(scope,
            let config = Arc::clone(&config.read().unwrap_or_else(PoisonError::into_inner));
            store!(config, 3); // race (2)
            std::mem::forget(config);
        );
    });
}

/// A latch: whoever finds it open comes after who has opened it.
// expect: race-free, up to locks
// expect locks=0:atomics=0: race
fn handover_latch() {
    let (data, open, bell) = (Shared::new(0u64), Mutex::new(false), Condvar::new());
    finish(|scope| {
        let (data, open, bell) = (&data, &open, &bell);
        spawn!(scope,
            store!(data, 1);
            *lock(open) = true;
            bell.notify_all();
        );
        spawn!(scope,
            let mut is_open = lock(open);
            while !*is_open {
                is_open = bell.wait(is_open).unwrap_or_else(PoisonError::into_inner);
            }
            drop(is_open);
            load!(data)
        );
    });
}

/// It takes the lock, and does not look.
// expect: race write/read on 8 bytes of stack by 1/2
fn handover_latch_unasked() {
    let (data, open) = (Shared::new(0u64), Mutex::new(false));
    finish(|scope| {
        let (data, open) = (&data, &open);
        spawn!(scope,
            store!(data, 1); // race (1)
            *lock(open) = true;
        );
        spawn!(scope,
            drop(lock(open));
            load!(data) // race (2)
        );
    });
}

// expect: race-free, up to locks
fn handover_flag() {
    let (data, ready, guard) = (Shared::new(0u64), Shared::new(false), Mutex::new(()));
    finish(|scope| {
        let (data, ready, guard) = (&data, &ready, &guard);
        spawn!(scope,
            store!(data, 1);
            let _guard = lock(guard);
            store!(ready, true);
        );
        spawn!(scope,
            let is_ready = {
                let _guard = lock(guard);
                load!(ready)
            };
            if is_ready {
                load!(data);
            }
        );
    });
}

/// The flag is written under one lock and read under another: it races itself, and orders nothing.
// expect: race write/read on 9 bytes of stack by 1/2
fn handover_flag_of_another_lock() {
    let (data, ready, one, two) = (Shared::new(0u64), Shared::new(false), Mutex::new(()), Mutex::new(()));
    finish(|scope| {
        let (data, ready, one, two) = (&data, &ready, &one, &two);
        spawn!(scope,
            store!(data, 1); // race (1)
            let _guard = lock(one);
            store!(ready, true); // race (1)
        );
        spawn!(scope,
            let is_ready = {
                let _guard = lock(two);
                load!(ready) // race (2)
            };
            if is_ready {
                load!(data); // race (2)
            }
        );
    });
}

// expect: race-free, up to locks
fn handover_isolated() {
    let (data, ready) = (Shared::new(0u64), Shared::new(false));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope,
            store!(data, 1);
            isolated(|| store!(ready, true));
        );
        spawn!(
            scope,
            if isolated(|| load!(ready)) {
                load!(data);
            }
        );
    });
}

// expect: race write/read on 8 bytes of stack by 1/2
fn handover_isolated_unrelated() {
    let (data, ready, other) = (Shared::new(0u64), Shared::new(false), Shared::new(false));
    finish(|scope| {
        let (data, ready, other) = (&data, &ready, &other);
        spawn!(scope,
            store!(data, 1); // race (1)
            isolated(|| store!(ready, true));
        );
        spawn!(scope,
            isolated(|| load!(other));
            load!(data) // race (2)
        );
    });
}

// expect: race-free, up to locks
fn handover_parking_lot() {
    let (data, slot) = (Shared::new(0u64), parking_lot::RwLock::new(false));
    finish(|scope| {
        let (data, slot) = (&data, &slot);
        spawn!(scope,
            store!(data, 1);
            *slot.write() = true;
        );
        spawn!(
            scope,
            if *slot.read() {
                load!(data);
            }
        );
    });
}

/// Two readers order nothing, whatever they read.
// expect: race write/read on 8 bytes of stack by 1/2
fn handover_parking_lot_readers() {
    let (data, slot) = (Shared::new(0u64), parking_lot::RwLock::new(false));
    finish(|scope| {
        let (data, slot) = (&data, &slot);
        spawn!(scope,
            store!(data, 1); // race (1)
            std::hint::black_box(*slot.read());
        );
        spawn!(scope,
            std::hint::black_box(*slot.read());
            load!(data) // race (2)
        );
    });
}

/// From the first to the third by way of the second.
// expect: race-free, up to locks
fn handover_two_steps() {
    let (data, one, two) = (Shared::new(0u64), Mutex::new(0), Mutex::new(0));
    finish(|scope| {
        let (data, one, two) = (&data, &one, &two);
        spawn!(scope,
            store!(data, 1);
            *lock(one) = 1;
        );
        spawn!(scope,
            let value = *lock(one);
            *lock(two) = value;
        );
        spawn!(
            scope,
            if *lock(two) == 1 {
                load!(data);
            }
        );
    });
}

// expect: race write/read on 8 bytes of stack by 1/3, up to locks
fn handover_two_steps_broken() {
    let (data, one, two) = (Shared::new(0u64), Mutex::new(0), Mutex::new(0));
    finish(|scope| {
        let (data, one, two) = (&data, &one, &two);
        spawn!(scope,
            store!(data, 1); // race (1)
            *lock(one) = 1;
        );
        spawn!(scope, *lock(two) = 1);
        spawn!(scope,
            std::hint::black_box(*lock(two));
            load!(data) // race (2)
        );
    });
}

/// What is pushed is filled in later in the same section, after another lock was taken and given back.
// expect: race-free, up to locks
fn handover_within_nested_locks() {
    let (list, log) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    finish(|scope| {
        let (list, log) = (&list, &log);
        spawn!(scope,
            let mut list = lock(list);
            let item = word();
            list.push(item);
            lock(log).push("pushed");
            store!(item, 1);
        );
        spawn!(scope,
            let item = lock(list).pop();
            item.map(|item| load!(item))
        );
    });
}

// expect: race write/read on 8 bytes of heap by 1/2, up to locks
fn handover_after_the_section() {
    let list = Mutex::new(Vec::new());
    finish(|scope| {
        let list = &list;
        spawn!(scope,
            let item = word();
            lock(list).push(item);
            store!(item, 1); // race (1)
        );
        spawn!(scope,
            let item = lock(list).pop();
            item.map(|item| load!(item)) // race (2)
        );
    });
}

/// The second section works on another cell, at the same address.
// expect: race write/read on 8 bytes of stack by 1/2
fn handover_freed_cell() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            store!(data, 1); // race (1)
            let _guard = lock(guard);
            drop(std::hint::black_box(Box::new(5u64)));
        );
        spawn!(scope,
            let guard = lock(guard);
            drop(std::hint::black_box(Box::new(6u64)));
            drop(guard);
            load!(data) // race (2)
        );
    });
}
