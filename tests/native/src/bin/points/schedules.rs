//! Results that depend on the schedule without a race, and what looks like it and does not.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock, mpsc};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{siblings, spawn};

pub const POINTS: &[Point] = points![
    schedule_id,
    schedule_count,
    schedule_id_seq_cst,
    schedule_load,
    schedule_load_after_the_join,
    schedule_load_by_the_parent,
    schedule_load_before_the_spawn,
    schedule_loads_alone,
    schedule_swap,
    schedule_exchange,
    schedule_exchange_in_one_task,
    schedule_last_store,
    schedule_same_store,
    schedule_stores_apart,
    schedule_flag_that_releases,
    schedule_future,
    schedule_promise,
    schedule_maximum,
    schedule_arcs,
    schedule_locks,
    schedule_channel,
    schedule_once,
    schedule_helper,
];

/// Which task gets which number depends on who comes first.
// expect: race-free
// result: depends
fn schedule_id() {
    let next = AtomicU64::new(0);
    siblings(|| _ = black_box(next.fetch_add(1, Relaxed))); // depends
}

/// The sum does not.
// expect: race-free
// result: the same
fn schedule_count() {
    let count = AtomicU64::new(0);
    siblings(|| {
        count.fetch_add(1, Relaxed);
    });
    black_box(count.load(Relaxed));
}

/// That one operation acquires what another has released is the order of one run.
// expect: race-free, up to atomics
// result: depends
fn schedule_id_seq_cst() {
    let next = AtomicU64::new(0);
    siblings(|| _ = black_box(next.fetch_add(1, SeqCst))); // depends
}

// expect: race-free
// result: depends
fn schedule_load() {
    let word = &AtomicU64::new(0);
    finish(|scope| {
        spawn!(scope, word.store(1, Relaxed));
        spawn!(scope, black_box(word.load(Relaxed))); // depends
    });
}

// expect: race-free
// result: the same
fn schedule_load_after_the_join() {
    let word = &AtomicU64::new(0);
    finish(|scope| spawn!(scope, word.store(1, Relaxed)));
    finish(|scope| spawn!(scope, black_box(word.load(Relaxed))));
}

// expect: race-free
// result: depends
fn schedule_load_by_the_parent() {
    let word = &AtomicU64::new(0);
    finish(|scope| {
        spawn!(scope, word.store(1, Relaxed));
        black_box(word.load(Relaxed)); // depends
    });
}

// expect: race-free
// result: the same
fn schedule_load_before_the_spawn() {
    let word = &AtomicU64::new(0);
    finish(|scope| {
        spawn!(scope, black_box(1));
        black_box(word.load(Relaxed));
        spawn!(scope, word.store(1, Relaxed));
    });
}

// expect: race-free
// result: the same
fn schedule_loads_alone() {
    let word = AtomicU64::new(7);
    siblings(|| _ = black_box(word.load(Relaxed)));
}

// expect: race-free
// result: depends
fn schedule_swap() {
    let word = AtomicU64::new(0);
    siblings(|| _ = black_box(word.swap(1, Relaxed))); // depends
}

/// Who comes first wins.
// expect: race-free
// result: depends
fn schedule_exchange() {
    let winner = AtomicU64::new(0);
    finish(|scope| {
        let winner = &winner;
        for task in 1..4 {
            spawn!(scope, black_box(winner.compare_exchange(0, task, Relaxed, Relaxed))); // depends
        }
    });
}

// expect: race-free
// result: the same
fn schedule_exchange_in_one_task() {
    let winner = AtomicU64::new(0);
    finish(|scope| {
        let winner = &winner;
        spawn!(scope, black_box(1));
        spawn!(
            scope,
            for task in 1..4 {
                _ = black_box(winner.compare_exchange(0, task, Relaxed, Relaxed));
            }
        );
    });
}

/// What is there after the join is what was stored last.
// expect: race-free
// result: depends
fn schedule_last_store() {
    let last = AtomicU64::new(0);
    finish(|scope| {
        let last = &last;
        for task in 1..4 {
            spawn!(scope, last.store(task, Relaxed)); // depends
        }
    });
    black_box(last.load(Relaxed));
}

// expect: race-free
// result: the same
fn schedule_same_store() {
    let found = AtomicBool::new(false);
    siblings(|| found.store(true, Relaxed));
    black_box(found.load(Relaxed));
}

// expect: race-free
// result: the same
fn schedule_stores_apart() {
    let words = [const { AtomicU64::new(0) }; 4];
    finish(|scope| {
        for word in &words {
            spawn!(scope, word.store(3, Relaxed); black_box(word.load(Relaxed)));
        }
    });
}

/// What the flag guards is in order, in this run; whether it is seen is not.
// expect: race-free, up to atomics
// result: depends
fn schedule_flag_that_releases() {
    let ready = &AtomicBool::new(false);
    finish(|scope| {
        spawn!(scope, ready.store(true, Release));
        spawn!(scope, black_box(ready.load(Acquire))); // depends
    });
}

// expect: race-free
// result: the same
fn schedule_future() {
    let word = AtomicU64::new(0);
    finish(|scope| {
        let word = &word;
        spawn!(scope, black_box(1));
        let future = scope.future(move |_| word.fetch_add(1, Relaxed));
        black_box(future.get());
        black_box(word.load(Relaxed));
    });
}

// expect: race-free, up to atomics
// result: the same
fn schedule_promise() {
    let word = AtomicU64::new(0);
    finish(|scope| {
        let word = &word;
        let promise = Arc::new(dagsan_task::Promise::new());
        let set = Arc::clone(&promise);
        spawn!(scope, word.store(1, Relaxed); set.set(()));
        spawn!(scope, promise.get(); black_box(word.load(Relaxed)));
    });
}

// expect: race-free
// result: the same
fn schedule_maximum() {
    let most = AtomicU64::new(0);
    finish(|scope| {
        let most = &most;
        for task in 1..4 {
            spawn!(scope, {
                most.fetch_add(task, Relaxed);
            });
        }
    });
    black_box(most.load(Relaxed));
}

/// Reference counts are the library's own.
// expect: race-free, up to atomics
// result: the same
fn schedule_arcs() {
    let shared = Arc::new(5u64);
    finish(|scope| {
        for _ in 0..3 {
            let shared = Arc::clone(&shared);
            spawn!(scope, black_box(*Arc::clone(&shared)));
        }
        drop(shared);
    });
}

/// So are the words of locks; that their sections come in some order, the verdict says otherwise.
// expect: race-free, up to locks
// result: the same
fn schedule_locks() {
    let (sum, other) = (Mutex::new(0u64), RwLock::new(0u64));
    siblings(|| {
        *sum.lock().unwrap() += 1;
        *other.write().unwrap() += 1;
        black_box(*other.read().unwrap());
    });
}

// expect: race-free, up to atomics
// result: the same
fn schedule_channel() {
    let (sender, receiver) = mpsc::channel();
    finish(|scope| {
        for task in 0..2 {
            let sender = sender.clone();
            spawn!(scope, sender.send(task).unwrap());
        }
        drop(sender);
    });
    black_box(receiver.iter().count());
}

// expect: race-free, up to atomics
// result: the same
fn schedule_once() {
    let cell = OnceLock::new();
    siblings(|| _ = black_box(*cell.get_or_init(|| 5u64)));
}

/// The place is the user's innermost line, where the operation is.
// expect: race-free
// result: depends
fn schedule_helper() {
    #[inline(never)]
    fn next(counter: &AtomicU64) -> u64 {
        counter.fetch_add(1, Relaxed) // depends
    }
    let counter = AtomicU64::new(0);
    siblings(|| _ = black_box(next(&counter)));
}
