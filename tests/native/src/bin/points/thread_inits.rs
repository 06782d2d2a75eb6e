//! Threads and what is initialised once: `Once`, cells, lazy values, double-checked locking.
//!
//! As in `threads.rs`: after each point with a race comes its twin without, and the verdict is the same whoever comes first.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{LazyLock, Mutex, Once, OnceLock};

use crate::Point;
use crate::shared::{Shared, load, store};
use crate::thread_shared::{both, lock, pair, until};

pub const POINTS: &[Point] = points![
    init_twice,
    init_once,
    init_cell_changed,
    init_cell_read,
    init_cell_set_before,
    init_cell_set_after,
    init_lazy_shared,
    init_lazy_apart,
    init_checked_relaxed,
    init_checked_twice,
];

/// Each has a `Once` of its own.
// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn init_twice() {
    let (data, once) = (Shared::new(0), [Once::new(), Once::new()]);
    both(|me| once[me].call_once(|| store!(data, me))); // race (1) race (2)
}

// expect: race-free, up to atomics
fn init_once() {
    let (data, once) = (Shared::new(0), Once::new());
    both(|me| {
        once.call_once(|| store!(data, me));
        load!(data);
    });
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn init_cell_changed() {
    let cell = OnceLock::new();
    both(|me| store!(cell.get_or_init(|| Shared::new(0)), me)); // race (1) race (2)
}

// expect: race-free, up to atomics
fn init_cell_read() {
    let cell = OnceLock::new();
    both(|me| _ = load!(cell.get_or_init(|| Shared::new(me))));
}

/// What comes after the cell was set is not covered by it.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn init_cell_set_before() {
    let (data, cell) = (Shared::new(0u64), OnceLock::new());
    pair(
        || {
            cell.set(()).unwrap();
            store!(data, 1); // race (1)
        },
        || {
            until(|| cell.get().is_some());
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn init_cell_set_after() {
    let (data, cell) = (Shared::new(0u64), OnceLock::new());
    pair(
        || {
            store!(data, 1);
            cell.set(()).unwrap();
        },
        || {
            _ = cell.wait();
            load!(data);
        },
    );
}

type Table = LazyLock<Vec<Shared<usize>>>;

// expect: race write/write on 8 bytes of heap by 1/2, up to atomics
fn init_lazy_shared() {
    static TABLE: Table = Table::new(|| vec![Shared::new(0)]);
    both(|me| store!(TABLE[0], me)); // race (1) race (2)
}

// expect: race-free, up to atomics
fn init_lazy_apart() {
    static TABLE: Table = Table::new(|| vec![Shared::new(0), Shared::new(0)]);
    both(|me| store!(TABLE[me], me));
}

/// What is made under a lock, by who does not find it there.
#[derive(Default)]
struct Checked {
    ready: AtomicBool,
    guard: Mutex<()>,
    made: AtomicU64,
}

impl Checked {
    fn get(&self, order: Ordering, make: impl FnOnce()) {
        if !self.ready.load(order) {
            let _guard = lock(&self.guard);
            if !self.ready.load(Relaxed) {
                make();
                self.ready.store(true, Release);
            }
        }
        self.made.fetch_add(1, Relaxed);
    }
}

/// Double-checked locking. The second one comes late, without order, and needs no lock.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn init_checked_relaxed() {
    let (data, checked) = (Shared::new(0u64), Checked::default());
    pair(
        || checked.get(Relaxed, || store!(data, 7)), // race (1)
        || {
            until(|| checked.made.load(Relaxed) == 1);
            checked.get(Relaxed, || ());
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn init_checked_twice() {
    let (data, checked) = (Shared::new(0usize), Checked::default());
    both(|me| {
        checked.get(Acquire, || store!(data, me));
        load!(data);
    });
}
