//! Order that atomic operations make: who acquires comes after the release that it sees.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, fence};
use std::sync::{Arc, mpsc};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, Shared, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    atomic_arc,
    atomic_flag,
    atomic_flag_seq_cst,
    atomic_fences,
    atomic_channel,
    atomic_sync_channel,
    atomic_pointer,
    atomic_update_continues_a_release,
    atomic_counter,
    atomic_maximum,
    atomic_relaxed_flag,
    atomic_store_ends_a_release,
    atomic_acquire_of_an_older_release,
    atomic_and_plain,
    plain_and_atomic,
    atomic_update_and_plain_read,
    atomic_byte_of_a_word,
];

/// The last one frees, and comes after all who have used it.
// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_arc() {
    let shared = Arc::new(Shared::new(5u64));
    finish(|scope| {
        for _ in 0..3 {
            let shared = Arc::clone(&shared);
            spawn!(scope, load!(shared));
        }
        spawn!(scope, load!(shared));
    });
}

// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_flag() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope, store!(data, 1); ready.store(true, Release););
        spawn!(scope, while !ready.load(Acquire) {} load!(data));
    });
}

// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_flag_seq_cst() {
    let (data, ready) = (Shared::new(0u64), AtomicU8::new(0));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope, store!(data, 1); ready.swap(7, SeqCst););
        spawn!(scope, while ready.fetch_add(1, SeqCst) == 0 {} load!(data));
    });
}

// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_fences() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope,
            store!(data, 1);
            fence(Release);
            ready.store(true, Relaxed);
        );
        spawn!(scope,
            while !ready.load(Relaxed) {}
            fence(Acquire);
            load!(data)
        );
    });
}

/// Channels take a lock now and then.
// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_channel() {
    let (sender, receiver) = mpsc::channel::<Box<Shared<u64>>>();
    finish(|scope| {
        spawn!(
            scope,
            for i in 0..40 {
                assert!(sender.send(Box::new(Shared::new(i))).is_ok());
            }
        );
        spawn!(
            scope,
            for i in 0..40 {
                assert!(receiver.try_recv().is_ok_and(|word| load!(word) == i));
            }
        );
    });
}

// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_sync_channel() {
    let (sender, receiver) = mpsc::sync_channel::<Vec<u64>>(4);
    finish(|scope| {
        spawn!(
            scope,
            for i in 0..4 {
                assert!(sender.send(vec![i; 10]).is_ok());
            }
        );
        spawn!(
            scope,
            for i in 0..4 {
                assert!(receiver.try_recv().is_ok_and(|words| black_box(words)[9] == i));
            }
        );
    });
}

// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_pointer() {
    let slot = AtomicPtr::new(ptr::null_mut::<u64>());
    finish(|scope| {
        let slot = &slot;
        spawn!(scope, slot.store(Box::into_raw(Box::new(black_box(5))), Release));
        spawn!(scope,
            // SAFETY: the other task has made it a box, and nobody else takes it.
            let word = unsafe { Box::from_raw(slot.swap(ptr::null_mut(), Acquire)) };
            assert_eq!(*black_box(word), 5);
        );
    });
}

/// A relaxed update in between keeps the release that it finds.
// expect: race-free, up to atomics
// expect atomics=0: race
fn atomic_update_continues_a_release() {
    let (data, count) = (Shared::new(0u64), AtomicU64::new(0));
    finish(|scope| {
        let (data, count) = (&data, &count);
        spawn!(scope, store!(data, 1); count.store(1, Release););
        spawn!(scope, count.fetch_add(1, Relaxed));
        spawn!(scope, assert_eq!(count.load(Acquire), 2); load!(data));
    });
}

// expect: race-free
fn atomic_counter() {
    let count = AtomicU64::new(0);
    siblings(|| {
        count.fetch_add(1, Relaxed);
    });
    assert_eq!(count.into_inner(), 3);
}

// expect: race-free
fn atomic_maximum() {
    let largest = AtomicU64::new(0);
    siblings(|| {
        let mut seen = largest.load(Relaxed);
        while let Err(other) = largest.compare_exchange_weak(seen, seen + 3, Relaxed, Relaxed) {
            seen = other;
        }
    });
    assert_eq!(largest.into_inner(), 9);
}

// expect: race write/read on 8 bytes of stack by 1/2
fn atomic_relaxed_flag() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope,
            store!(data, 1); // race (1)
            ready.store(true, Relaxed);
        );
        spawn!(scope,
            while !ready.load(Relaxed) {}
            load!(data) // race (2)
        );
    });
}

/// A relaxed store in between begins anew, and releases nothing.
// expect: race write/read on 8 bytes of stack by 1/3
fn atomic_store_ends_a_release() {
    let (data, count) = (Shared::new(0u64), AtomicU64::new(0));
    finish(|scope| {
        let (data, count) = (&data, &count);
        spawn!(scope,
            store!(data, 1); // race (1)
            count.store(1, Release);
        );
        spawn!(scope, count.store(2, Relaxed));
        spawn!(scope,
            assert_eq!(count.load(Acquire), 2);
            load!(data) // race (2)
        );
    });
}

/// What is written after the release is not published by it.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn atomic_acquire_of_an_older_release() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    finish(|scope| {
        let (data, ready) = (&data, &ready);
        spawn!(scope,
            ready.store(true, Release);
            store!(data, 1); // race (1)
        );
        spawn!(scope,
            while !ready.load(Acquire) {}
            load!(data) // race (2)
        );
    });
}

// expect: race atomic write/read on 8 bytes of stack by 1/2
fn atomic_and_plain() {
    let word = AtomicU64::new(0);
    let plain = Pointer(word.as_ptr());
    finish(|scope| {
        let word = &word;
        spawn!(scope, word.store(1, Relaxed)); // race (1)
        spawn!(scope, load!(plain)); // race (2)
    });
}

// expect: race write/atomic read on 8 bytes of stack by 1/2
fn plain_and_atomic() {
    let word = AtomicU64::new(0);
    let plain = Pointer(word.as_ptr());
    finish(|scope| {
        let word = &word;
        spawn!(scope, store!(plain, 1)); // race (1)
        spawn!(scope, black_box(word.load(SeqCst))); // race (2)
    });
}

// expect: race read/atomic write on 8 bytes of stack by 1/2
fn atomic_update_and_plain_read() {
    let word = AtomicU64::new(0);
    let plain = Pointer(word.as_ptr());
    finish(|scope| {
        let word = &word;
        spawn!(scope, load!(plain)); // race (1)
        spawn!(scope, word.fetch_add(1, AcqRel)); // race (2)
    });
}

// expect: race atomic write/write on 1 bytes of stack by 1/2
fn atomic_byte_of_a_word() {
    let word = AtomicU64::new(0);
    let plain = Pointer(word.as_ptr().cast::<u8>().wrapping_add(3));
    finish(|scope| {
        let word = &word;
        spawn!(scope, word.store(1, Release)); // race (1)
        spawn!(scope, store!(plain, 1)); // race (2)
    });
}
