//! Threads and what is made of atomics: spin locks, rings, values with versions, `Arc`s.
//!
//! As in `threads.rs`: after each point with a race comes its twin without, and the verdict is the same whoever comes first.
//! The orders of atomic operations are arguments here; what may race is in the points themselves.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
use std::thread;

use crate::Point;
use crate::shared::{Pointer, Shared, load, store};
use crate::thread_shared::{both, join, pair, until, work};

pub const POINTS: &[Point] = points![
    spin_lock_relaxed,
    spin_lock_acquired,
    spin_lock_given_back_relaxed,
    spin_lock_given_back,
    spin_lock_given_back_early,
    spin_lock_swapped,
    ticket_relaxed,
    ticket_acquired,
    peterson_relaxed,
    peterson_seq_cst,
    ring_relaxed,
    ring_released,
    ring_reused_relaxed,
    ring_reused,
    versions_of_plain,
    versions_of_atomic,
    mixed_plain_read,
    mixed_no_plain,
    mixed_plain_write,
    mixed_plain_after,
    arc_counted,
    arc_unique,
    arc_written_by_both,
    arc_written_by_the_last,
];

/// With a lock of one word.
fn locked(taken: &AtomicBool, acquire: Ordering, release: Ordering, body: impl FnOnce()) {
    while taken.compare_exchange_weak(false, true, acquire, Relaxed).is_err() {
        spin_loop();
    }
    body();
    taken.store(false, release);
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn spin_lock_relaxed() {
    let (data, taken) = (Shared::new(0), AtomicBool::new(false));
    both(|me| locked(&taken, Relaxed, Relaxed, || store!(data, me))); // race (1) race (2)
}

// expect: race-free, up to locks and atomics
fn spin_lock_acquired() {
    let (data, taken) = (Shared::new(0), AtomicBool::new(false));
    both(|me| locked(&taken, Acquire, Release, || store!(data, me)));
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn spin_lock_given_back_relaxed() {
    let (data, taken) = (Shared::new(0), AtomicBool::new(false));
    both(|me| locked(&taken, Acquire, Relaxed, || store!(data, me))); // race (1) race (2)
}

// expect: race-free, up to locks and atomics
fn spin_lock_given_back() {
    let (data, taken) = (Shared::new(0), AtomicBool::new(false));
    both(|me| {
        for _ in 0..2 {
            locked(&taken, AcqRel, SeqCst, || store!(data, load!(data) + me));
        }
    });
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn spin_lock_given_back_early() {
    let (data, taken) = (Shared::new(0), AtomicBool::new(false));
    both(|me| {
        locked(&taken, Acquire, Release, || ());
        store!(data, me); // race (1) race (2)
    });
}

/// Taken by a swap.
// expect: race-free, up to atomics
fn spin_lock_swapped() {
    let (data, taken) = (Shared::new(0), AtomicBool::new(false));
    both(|me| {
        until(|| !taken.swap(true, Acquire));
        store!(data, me);
        taken.store(false, Release);
    });
}

/// Whoever draws a number waits until it is called.
fn with_ticket(tickets: &[AtomicUsize; 2], acquire: Ordering, release: Ordering, body: impl FnOnce()) {
    let [drawn, called] = tickets;
    let mine = drawn.fetch_add(1, Relaxed);
    until(|| called.load(acquire) == mine);
    body();
    called.store(mine + 1, release);
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn ticket_relaxed() {
    let (data, tickets) = (Shared::new(0), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    both(|me| with_ticket(&tickets, Relaxed, Relaxed, || store!(data, me))); // race (1) race (2)
}

// expect: race-free, up to atomics
fn ticket_acquired() {
    let (data, tickets) = (Shared::new(0), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    both(|me| with_ticket(&tickets, Acquire, Release, || store!(data, me)));
}

/// Peterson's lock for two.
#[derive(Default)]
struct Peterson {
    wants: [AtomicBool; 2],
    last: AtomicUsize,
}

impl Peterson {
    fn with(&self, me: usize, order: Ordering, body: impl FnOnce()) {
        self.wants[me].store(true, order);
        self.last.store(me, order);
        until(|| !self.wants[1 - me].load(order) || self.last.load(order) != me);
        body();
        self.wants[me].store(false, order);
    }
}

// expect: race write/write on 8 bytes of stack by 1/2, up to atomics
fn peterson_relaxed() {
    let (data, lock) = (Shared::new(0), Peterson::default());
    both(|me| lock.with(me, Relaxed, || store!(data, me))); // race (1) race (2)
}

// expect: race-free, up to atomics
fn peterson_seq_cst() {
    let (data, lock) = (Shared::new(0), Peterson::default());
    both(|me| lock.with(me, SeqCst, || store!(data, me)));
}

/// A ring of two slots: how much was put into it, and how much was taken.
#[derive(Default)]
struct Ring {
    put: AtomicUsize,
    taken: AtomicUsize,
}

impl Ring {
    fn put(&self, acquire: Ordering, release: Ordering, write: impl Fn(usize)) {
        for item in 0..4 {
            until(|| item < self.taken.load(acquire) + 2);
            write(item % 2);
            self.put.store(item + 1, release);
        }
    }

    fn take(&self, acquire: Ordering, release: Ordering, read: impl Fn(usize)) {
        for item in 0..4 {
            until(|| item < self.put.load(acquire));
            read(item % 2);
            self.taken.store(item + 1, release);
        }
    }
}

// expect: race
fn ring_relaxed() {
    let (slots, ring) = ([Shared::new(0), Shared::new(0)], Ring::default());
    pair(
        || ring.put(Relaxed, Relaxed, |slot| store!(slots[slot], slot)), // race (1)
        || ring.take(Relaxed, Relaxed, |slot| _ = load!(slots[slot])),   // race (2)
    );
}

// expect: race-free, up to atomics
fn ring_released() {
    let (slots, ring) = ([Shared::new(0), Shared::new(0)], Ring::default());
    pair(
        || ring.put(Acquire, Release, |slot| store!(slots[slot], slot)),
        || ring.take(Acquire, Release, |slot| _ = load!(slots[slot])),
    );
}

/// What is put is released, what is taken is not: a slot is written again beside its reader.
// expect: race read/write on 8 bytes of stack by 2/1; race write/read on 8 bytes of stack by 1/2, up to atomics
fn ring_reused_relaxed() {
    let (slots, ring) = ([Shared::new(0), Shared::new(0)], Ring::default());
    pair(
        || ring.put(Acquire, Release, |slot| store!(slots[slot], slot)), // race (1) race (2)
        || ring.take(Acquire, Relaxed, |slot| _ = load!(slots[slot])),   // race (1) race (2)
    );
}

// expect: race-free, up to atomics
fn ring_reused() {
    let (slots, ring) = ([Shared::new(0), Shared::new(0)], Ring::default());
    pair(
        || ring.put(SeqCst, SeqCst, |slot| store!(slots[slot], load!(slots[slot]) + slot)),
        || ring.take(SeqCst, SeqCst, |slot| store!(slots[slot], load!(slots[slot]) + slot)),
    );
}

/// A value whose version is odd while it is written. The second version comes when the first is being read.
#[derive(Default)]
struct Versions {
    version: AtomicU64,
    seen: AtomicBool,
}

impl Versions {
    fn write_twice(&self, write: impl Fn(u64)) {
        for version in [0, 2] {
            until(|| version == 0 || self.seen.load(Relaxed));
            self.version.store(version + 1, Relaxed);
            fence(Release);
            write(version);
            self.version.store(version + 2, Release);
        }
    }

    fn read(&self, read: impl Fn()) {
        loop {
            let version = self.version.load(Acquire);
            if version != 0 && version.is_multiple_of(2) {
                self.seen.store(true, Relaxed);
                read();
                fence(Acquire);
                if self.version.load(Relaxed) == version {
                    break;
                }
            }
            spin_loop();
        }
    }
}

/// A sequence lock: what was read may be thrown away, but it was read beside a write.
// expect: race read/write on 8 bytes of stack by 2/1, up to atomics
fn versions_of_plain() {
    let (data, versions) = (Shared::new(0), Versions::default());
    pair(
        || versions.write_twice(|value| store!(data, value)), // race (2)
        || versions.read(|| _ = load!(data)),                 // race (1)
    );
}

// expect: race-free, up to atomics
fn versions_of_atomic() {
    let (data, versions) = (AtomicU64::new(0), Versions::default());
    pair(
        || versions.write_twice(|value| data.store(value, Relaxed)),
        || versions.read(|| _ = black_box(data.load(Relaxed))),
    );
}

// expect: race atomic write/read on 8 bytes of stack by 1/2, up to atomics
fn mixed_plain_read() {
    let data = &AtomicU64::new(0);
    let plain = Pointer(data.as_ptr());
    thread::scope(|threads| {
        let _writer = threads.spawn(work!(data.store(1, SeqCst))); // race (1)
        let _reader = threads.spawn(work!(load!(plain))); // race (2)
    });
}

// expect: race-free, up to atomics
fn mixed_no_plain() {
    let data = AtomicU64::new(0);
    pair(|| data.store(1, Relaxed), || _ = black_box(data.fetch_add(1, Relaxed)));
}

// expect: race write/atomic write on 8 bytes of stack by 0/1, up to atomics
fn mixed_plain_write() {
    let data = &AtomicU64::new(0);
    thread::scope(|threads| {
        let _counter = threads.spawn(work!(data.fetch_add(1, SeqCst))); // race (2)
        store!(Pointer(data.as_ptr()), 5); // race (1)
    });
}

// expect: race-free
fn mixed_plain_after() {
    let data = &AtomicU64::new(0);
    thread::scope(|threads| {
        threads.spawn(work!(data.fetch_add(1, Relaxed))).join().unwrap();
        store!(Pointer(data.as_ptr()), 5);
    });
}

/// The count is read without order.
// expect: race write/read on 8 bytes of heap by 0/1
fn arc_counted() {
    let shared = Arc::new(Shared::new(0u64));
    let clone = Arc::clone(&shared);
    let reader = thread::spawn(work!(
        load!(clone); // race (2)
        drop(clone);
    ));
    until(|| Arc::strong_count(&shared) == 1);
    store!(shared, 1); // race (1)
    join([reader]);
}

// expect: race-free, up to atomics
fn arc_unique() {
    let mut shared = Arc::new(Shared::new(0u64));
    let clone = Arc::clone(&shared);
    let reader = thread::spawn(work!(
        load!(clone);
        drop(clone);
    ));
    while Arc::get_mut(&mut shared).is_none() {
        thread::yield_now();
    }
    store!(shared, 1);
    join([reader]);
}

// expect: race write/write on 8 bytes of heap by 1/2
fn arc_written_by_both() {
    let shared = Arc::new(Shared::new(0u64));
    let clones = [0, 1].map(|me| (me, Arc::clone(&shared)));
    let threads = clones.map(|(me, clone)| thread::spawn(work!(store!(clone, me)))); // race (1) race (2)
    join(threads);
}

/// The last one gets the value itself.
// expect: race-free, up to atomics
fn arc_written_by_the_last() {
    let first = Arc::new(Shared::new(0u64));
    let threads = [Arc::clone(&first), first].map(|clone| {
        thread::spawn(work!(
            load!(clone);
            Arc::into_inner(clone).map(|last| store!(last, 1))
        ))
    });
    join(threads);
}
