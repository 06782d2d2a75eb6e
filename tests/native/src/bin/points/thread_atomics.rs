//! Threads and atomics: flags, fences, counters, pointers.
//!
//! As in `threads.rs`: after each point with a race comes its twin without, and the verdict is the same whoever comes first.
//! Relaxed operations order nothing; here they often see to it that somebody comes late, so that the race is in every run.

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, fence};
use std::thread;

use crate::Point;
use crate::shared::{Pointer, Shared, load, store};
use crate::thread_shared::{both, pair, until, word, work};

pub const POINTS: &[Point] = points![
    flag_relaxed,
    flag_released,
    flag_released_only,
    flag_seq_cst,
    flag_set_before,
    flag_set_after,
    fence_not_released,
    fence_both,
    fence_not_acquired,
    fence_seq_cst,
    fence_too_early,
    fence_in_time,
    latch_relaxed,
    latch_released,
    release_overwritten,
    release_continued,
    pointer_relaxed,
    pointer_released,
    claim_unpublished,
    claim_published,
    turns_relaxed,
    turns_released,
    meeting_relaxed,
    meeting_released,
];

// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn flag_relaxed() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1); // race (1)
            ready.store(true, Relaxed);
        },
        || {
            until(|| ready.load(Relaxed));
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn flag_released() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1);
            ready.store(true, Release);
        },
        || {
            until(|| ready.load(Acquire));
            load!(data);
        },
    );
}

// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn flag_released_only() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1); // race (1)
            ready.store(true, Release);
        },
        || {
            until(|| ready.load(Relaxed));
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn flag_seq_cst() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1);
            ready.swap(true, SeqCst);
        },
        || {
            while !ready.load(SeqCst) {
                thread::yield_now();
            }
            load!(data);
        },
    );
}

// expect: race write/read on 8 bytes of stack by 0/1, up to atomics
fn flag_set_before() {
    let (data, ready) = (&Shared::new(0u64), &AtomicBool::new(false));
    thread::scope(|threads| {
        let _reader = threads.spawn(work!(
            until(|| ready.load(Acquire));
            load!(data) // race (2)
        ));
        ready.store(true, Release);
        store!(data, 1); // race (1)
    });
}

// expect: race-free, up to atomics
fn flag_set_after() {
    let (data, ready) = (&Shared::new(0u64), &AtomicBool::new(false));
    thread::scope(|threads| {
        let _reader = threads.spawn(work!(
            until(|| ready.load(Acquire));
            load!(data)
        ));
        store!(data, 1);
        ready.store(true, Release);
    });
}

// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn fence_not_released() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1); // race (1)
            ready.store(true, Relaxed);
        },
        || {
            until(|| ready.load(Relaxed));
            fence(Acquire);
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn fence_both() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1);
            fence(Release);
            ready.store(true, Relaxed);
        },
        || {
            until(|| ready.load(Relaxed));
            fence(Acquire);
            load!(data);
        },
    );
}

// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn fence_not_acquired() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1); // race (1)
            fence(SeqCst);
            ready.store(true, Relaxed);
        },
        || {
            until(|| ready.load(Relaxed));
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn fence_seq_cst() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1);
            fence(SeqCst);
            ready.store(true, Relaxed);
        },
        || {
            until(|| ready.load(Relaxed));
            fence(SeqCst);
            load!(data);
        },
    );
}

/// The fence comes before what it ought to release.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn fence_too_early() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            fence(Release);
            store!(data, 1); // race (1)
            ready.store(true, Relaxed);
        },
        || {
            until(|| ready.load(Acquire));
            load!(data); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn fence_in_time() {
    let (data, ready) = (Shared::new(0u64), AtomicBool::new(false));
    pair(
        || {
            store!(data, 1);
            fence(AcqRel);
            ready.store(true, Relaxed);
        },
        || {
            until(|| ready.load(Acquire));
            load!(data);
        },
    );
}

// expect: race
fn latch_relaxed() {
    let (words, done) = (&[word(), word(), word()], &AtomicUsize::new(0));
    thread::scope(|threads| {
        let _threads = words.map(|own| {
            threads.spawn(work!(
                store!(own, 1); // race (2)
                done.fetch_add(1, Relaxed)
            ))
        });
        until(|| done.load(Relaxed) == 3);
        words.iter().for_each(|each| _ = load!(each)); // race (1)
    });
}

/// The last of three releases is read, and the others are part of its sequence.
// expect: race-free, up to atomics
fn latch_released() {
    let (words, done) = (&[word(), word(), word()], &AtomicUsize::new(0));
    thread::scope(|threads| {
        let _threads = words.map(|own| {
            threads.spawn(work!(
                store!(own, 1);
                done.fetch_add(1, Release)
            ))
        });
        until(|| done.load(Acquire) == 3);
        words.iter().for_each(|each| _ = load!(each));
    });
}

/// A store of another thread begins anew, and releases nothing.
// expect: race write/read on 8 bytes of stack by 1/3, up to atomics
fn release_overwritten() {
    let (data, step) = (&Shared::new(0u64), &AtomicU64::new(0));
    thread::scope(|threads| {
        let _first = threads.spawn(work!(
            store!(data, 1); // race (1)
            step.store(1, Release);
        ));
        let _second = threads.spawn(work!(
            until(|| step.load(Relaxed) == 1);
            step.store(2, Relaxed);
        ));
        let _third = threads.spawn(work!(
            until(|| step.load(Acquire) == 2);
            load!(data) // race (2)
        ));
    });
}

/// An update continues what it finds.
// expect: race-free, up to atomics
fn release_continued() {
    let (data, step) = (&Shared::new(0u64), &AtomicU64::new(0));
    thread::scope(|threads| {
        let _first = threads.spawn(work!(
            store!(data, 1);
            step.store(1, Release);
        ));
        let _second = threads.spawn(work!(
            until(|| step.load(Relaxed) == 1);
            step.fetch_add(1, Relaxed)
        ));
        let _third = threads.spawn(work!(
            until(|| step.load(Acquire) == 2);
            load!(data)
        ));
    });
}

// expect: race write/read on 8 bytes of heap by 1/2, up to atomics
fn pointer_relaxed() {
    let (data, slot) = (word(), AtomicPtr::new(ptr::null_mut()));
    pair(
        || {
            store!(data, 1); // race (1)
            slot.store(data.at(), Relaxed);
        },
        || {
            until(|| !slot.load(Relaxed).is_null());
            load!(Pointer(slot.load(Relaxed))); // race (2)
        },
    );
}

// expect: race-free, up to atomics
fn pointer_released() {
    let slot = AtomicPtr::new(ptr::null_mut());
    pair(
        || slot.store(Box::into_raw(Box::new(black_box(5u64))), Release),
        || {
            until(|| !slot.load(Relaxed).is_null());
            // SAFETY: the other thread has made it a box, and nobody else takes it.
            let taken = unsafe { Box::from_raw(slot.swap(ptr::null_mut(), Acquire)) };
            assert_eq!(*black_box(taken), 5);
        },
    );
}

/// Who comes first writes; the other one sees that somebody does, and does not wait.
// expect: race write/read on 8 bytes of stack by 1/2, up to atomics
fn claim_unpublished() {
    let (data, state) = (Shared::new(0usize), AtomicUsize::new(0));
    both(|me| {
        if state.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
            store!(data, me); // race (1)
        } else {
            load!(data); // race (2)
        }
    });
}

// expect: race-free, up to atomics
fn claim_published() {
    let (data, state) = (Shared::new(0usize), AtomicUsize::new(0));
    both(|me| {
        if state.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
            store!(data, me);
            state.store(2, Release);
        } else {
            until(|| state.load(Acquire) == 2);
            load!(data);
        }
    });
}

// expect: race
fn turns_relaxed() {
    let (data, turn) = (Shared::new(0usize), AtomicUsize::new(0));
    both(|me| {
        until(|| turn.load(Relaxed) == me);
        store!(data, load!(data) + 1); // race (1) race (2)
        turn.store(1 - me, Relaxed);
    });
}

// expect: race-free, up to atomics
fn turns_released() {
    let (data, turn) = (Shared::new(0usize), AtomicUsize::new(0));
    both(|me| {
        for _ in 0..3 {
            until(|| turn.load(Acquire) == me);
            store!(data, load!(data) + 1);
            turn.store(1 - me, Release);
        }
    });
    assert_eq!(load!(data), 6);
}

/// A barrier by hand.
// expect: race
fn meeting_relaxed() {
    let (words, arrived) = ([Shared::new(0), Shared::new(0)], AtomicUsize::new(0));
    both(|me| {
        store!(words[me], me); // race (1) race (2)
        arrived.fetch_add(1, Relaxed);
        until(|| arrived.load(Relaxed) == 2);
        load!(words[1 - me]); // race (1) race (2)
    });
}

// expect: race-free, up to atomics
fn meeting_released() {
    let (words, arrived) = ([Shared::new(0), Shared::new(0)], AtomicUsize::new(0));
    both(|me| {
        store!(words[me], me);
        arrived.fetch_add(1, Release);
        until(|| arrived.load(Acquire) == 2);
        load!(words[1 - me]);
    });
}
