//! Threads of the standard library: what starts and joins of them order, what else does, and what does not.
//!
//! A thread is a task: the main one is 0, the others have numbers in the order in which they are started. After each point with a
//! race comes its twin without. Threads do share the memory of `shared.rs` here, but under DagSan they take turns, one at a
//! time; without it, what races is a word that stays alive, and nobody relies on its value.
//!
//! The verdict is the same whoever comes first: nobody asks whether a flag is set, but waits until it is, and handles are kept
//! until the race is over, since to drop that of a thread which has ended comes after the thread.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, Builder};
use std::time::Duration;

use crate::Point;
use crate::shared::{Pointer, Shared, at, buffer, load, store};
use crate::thread_shared::{both, fail, join, until, word, work};

pub const POINTS: &[Point] = points![
    spawn_one_word,
    spawn_own_words,
    spawn_bumps,
    spawn_bumps_in_turn,
    spawn_before_write,
    spawn_after_write,
    join_after_write,
    join_before_write,
    join_of_another,
    join_of_all,
    join_by_another_late,
    join_by_another,
    join_child_only,
    join_grandchild,
    builder_too_early,
    builder_joined,
    detached_relaxed,
    detached_released,
    finished_only,
    finished_and_joined,
    slots_all_the_first,
    slots_one_each,
    slots_one_wrong,
    slots_from_the_end,
    slots_summed_early,
    slots_summed,
    scope_open,
    scope_closed,
    scope_of_the_grandchild,
    scope_in_the_child,
    scope_that_another_ends_in,
    scope_that_ends_in_another,
    scope_overlapping,
    scope_disjoint,
    unpark_before_write,
    unpark_after_write,
    park_timed_out,
    park_until_told,
    sleep_and_read,
    sleep_and_join,
    local_of_another,
    local_of_each,
    local_buffer_lent,
    local_buffer_of_each,
    local_dropped_after_scope,
    local_dropped_before_join,
    panic_before_join,
    panic_and_join,
    unwound_before_join,
    unwound_and_joined,
];

// expect: race write/write on 8 bytes of heap by 1/2
fn spawn_one_word() {
    let data = word();
    let one = thread::spawn(work!(store!(data, 1))); // race (1)
    let two = thread::spawn(work!(store!(data, 2))); // race (2)
    join([one, two]);
}

// expect: race-free
fn spawn_own_words() {
    join([word(), word()].map(|own| thread::spawn(work!(store!(own, 1)))));
}

// expect: race
fn spawn_bumps() {
    let data = word();
    join([0; 2].map(|_| thread::spawn(work!(store!(data, load!(data) + 1))))); // race (1) race (2)
}

/// The first is over before the second starts.
// expect: race-free
fn spawn_bumps_in_turn() {
    let data = word();
    for _ in 0..2 {
        join([thread::spawn(work!(store!(data, load!(data) + 1)))]);
    }
}

// expect: race write/read on 8 bytes of static by 0/1
fn spawn_before_write() {
    static DATA: Shared<u64> = Shared::new(0);
    let reader = thread::spawn(work!(load!(DATA))); // race (2)
    store!(DATA, black_box(1)); // race (1)
    join([reader]);
}

// expect: race-free
fn spawn_after_write() {
    static DATA: Shared<u64> = Shared::new(0);
    store!(DATA, black_box(1));
    join([0; 2].map(|_| thread::spawn(work!(load!(DATA)))));
}

// expect: race write/write on 8 bytes of heap by 0/1
fn join_after_write() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1))); // race (2)
    store!(data, 2); // race (1)
    join([writer]);
}

// expect: race-free
fn join_before_write() {
    let data = word();
    join([thread::spawn(work!(store!(data, 1)))]);
    store!(data, 2);
}

// expect: race write/read on 8 bytes of heap by 1/0
fn join_of_another() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1))); // race (1)
    join([thread::spawn(work!(black_box(1)))]);
    load!(data); // race (2)
    join([writer]);
}

// expect: race-free
fn join_of_all() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1)));
    join([thread::spawn(work!(black_box(1))), writer]);
    load!(data);
}

/// A thread gets the handle of another, and joins it after it has read what that one writes.
// expect: race write/read on 8 bytes of heap by 1/2
fn join_by_another_late() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1))); // race (1)
    let reader = thread::spawn(work!(
        load!(data); // race (2)
        join([writer]);
    ));
    join([reader]);
}

// expect: race-free
fn join_by_another() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1)));
    let reader = thread::spawn(work!(
        join([writer]);
        load!(data)
    ));
    join([reader]);
}

/// The child does not wait for a child of its own, and gives the handle back.
// expect: race
fn join_child_only() {
    let data = word();
    let child = thread::spawn(move || thread::spawn(work!(store!(data, 1)))); // race (1)
    let grandchild = child.join().unwrap();
    load!(data); // race (2)
    join([grandchild]);
}

// expect: race-free
fn join_grandchild() {
    let data = word();
    join([thread::spawn(work!(join([thread::spawn(work!(store!(data, 1)))])))]);
    load!(data);
}

// expect: race read/write on 8 bytes of heap by 0/1
fn builder_too_early() {
    let data = word();
    let named = Builder::new().name("worker".to_owned());
    let writer = named.spawn(work!(store!(data, 1))).unwrap(); // race (2)
    load!(data); // race (1)
    join([writer]);
}

/// What the thread returns is the joiner's.
// expect: race-free
fn builder_joined() {
    let named = Builder::new().name("worker".to_owned()).stack_size(1 << 18);
    let maker = named.spawn(|| black_box(vec![thread::current().name().unwrap().len(); 8])).unwrap();
    let mut made = maker.join().unwrap();
    made[0] += 1;
    black_box(made);
}

/// Nobody joins it. The flag says that it is done, and orders nothing.
// expect: race read/write on 8 bytes of heap by 0/1, up to atomics
fn detached_relaxed() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let data = word();
    let _detached = thread::spawn(work!(
        store!(data, 1); // race (2)
        DONE.store(true, Relaxed);
    ));
    until(|| DONE.load(Relaxed));
    load!(data); // race (1)
}

// expect: race-free, up to atomics
fn detached_released() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let data = word();
    let _detached = thread::spawn(work!(
        store!(data, 1);
        DONE.store(true, Release);
    ));
    until(|| DONE.load(Acquire));
    load!(data);
}

/// That a thread has finished is a count, which is read without order.
// expect: race read/write on 8 bytes of heap by 0/1
fn finished_only() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1))); // race (2)
    while !writer.is_finished() {
        thread::yield_now();
    }
    load!(data); // race (1)
    join([writer]);
}

// expect: race-free
fn finished_and_joined() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1)));
    while !writer.is_finished() {
        thread::yield_now();
    }
    join([writer]);
    load!(data);
}

// expect: race
fn slots_all_the_first() {
    let (_slots, first) = buffer(0u64, 4);
    join([1, 2, 3, 4].map(|value| thread::spawn(work!(store!(first, value))))); // race (1) race (2)
}

// expect: race-free
fn slots_one_each() {
    let (_slots, first) = buffer(0usize, 4);
    join([0, 1, 2, 3].map(|index| thread::spawn(work!(store!(at(first, index), index)))));
}

/// The last one comes to the slot of the first again.
// expect: race write/write on 8 bytes of heap by 1/4
fn slots_one_wrong() {
    let (_slots, first) = buffer(0usize, 4);
    join([0, 1, 2, 3].map(|index| thread::spawn(work!(store!(at(first, index % 3), index))))); // race (1) race (2)
}

// expect: race-free
fn slots_from_the_end() {
    let (_slots, first) = buffer(0usize, 4);
    join([0, 1, 2, 3].map(|index| thread::spawn(work!(store!(at(first, 3 - index), index)))));
}

// expect: race
fn slots_summed_early() {
    let (_slots, first) = buffer(0usize, 3);
    let threads = [0, 1, 2].map(|index| thread::spawn(work!(store!(at(first, index), 1)))); // race (2)
    black_box((0..3).map(|index| load!(at(first, index))).sum::<usize>()); // race (1)
    join(threads);
}

// expect: race-free
fn slots_summed() {
    let (_slots, first) = buffer(0usize, 3);
    join([0, 1, 2].map(|index| thread::spawn(work!(store!(at(first, index), 1)))));
    assert_eq!((0..3).map(|index| load!(at(first, index))).sum::<usize>(), 3);
}

// expect: race write/write on 8 bytes of stack by 0/1, up to atomics
fn scope_open() {
    let data = &Shared::new(0u64);
    thread::scope(|threads| {
        let _writer = threads.spawn(work!(store!(data, 1))); // race (2)
        store!(data, 2); // race (1)
    });
}

// expect: race-free, up to atomics
fn scope_closed() {
    let data = &Shared::new(0u64);
    thread::scope(|threads| _ = threads.spawn(work!(store!(data, 1))));
    load!(data);
}

/// The child starts a thread in the same scope, which is not over with the child.
// expect: race
fn scope_of_the_grandchild() {
    let data = &Shared::new(0u64);
    thread::scope(|threads| {
        let child = threads.spawn(move || threads.spawn(work!(store!(data, 1)))); // race (1)
        let _grandchild = child.join().unwrap();
        load!(data); // race (2)
    });
}

// expect: race-free, up to atomics
fn scope_in_the_child() {
    let data = &Shared::new(0u64);
    thread::scope(|threads| {
        let child = threads.spawn(move || thread::scope(|inner| _ = inner.spawn(work!(store!(data, 1)))));
        child.join().unwrap();
        load!(data);
    });
}

/// The last thread of the outer scope wakes whoever has opened it, who waits for the inner one. That is no order.
// expect: race write/write on 8 bytes of stack by 1/0, up to atomics
fn scope_that_another_ends_in() {
    let data = &Shared::new(0u64);
    thread::scope(|outer| {
        outer.spawn(work!(store!(data, 1))); // race (1)
        thread::scope(|inner| _ = inner.spawn(work!(black_box(()))));
        store!(data, 2); // race (2)
    });
}

// expect: race-free, up to atomics
fn scope_that_ends_in_another() {
    let data = &Shared::new(0u64);
    thread::scope(|outer| {
        outer.spawn(work!(black_box(())));
        thread::scope(|inner| _ = inner.spawn(work!(store!(data, 1))));
        store!(data, 2);
    });
}

// expect: race write/write on 8 bytes of heap by 1/2, up to atomics
fn scope_overlapping() {
    let (_words, first) = buffer(0usize, 8);
    both(|me| {
        for index in [0..5, 4..8][me].clone() {
            store!(at(first, index), me); // race (1) race (2)
        }
    });
}

// expect: race-free, up to atomics
fn scope_disjoint() {
    let mut words = [0u64; 8];
    thread::scope(|threads| {
        for half in words.chunks_mut(4) {
            threads.spawn(work!(black_box(half).fill(1)));
        }
    });
    assert_eq!(words, [1; 8]);
}

// expect: race write/read on 8 bytes of heap by 0/1, up to atomics
fn unpark_before_write() {
    let data = word();
    let reader = thread::spawn(work!(
        thread::park();
        load!(data) // race (2)
    ));
    reader.thread().unpark();
    store!(data, 1); // race (1)
    join([reader]);
}

// expect: race-free, up to atomics
fn unpark_after_write() {
    let data = word();
    let reader = thread::spawn(work!(
        thread::park();
        load!(data)
    ));
    store!(data, 1);
    reader.thread().unpark();
    join([reader]);
}

/// Nobody has unparked it.
// expect: race write/read on 8 bytes of heap by 0/1
fn park_timed_out() {
    let data = word();
    let reader = thread::spawn(work!(
        thread::park_timeout(Duration::from_millis(1));
        load!(data) // race (2)
    ));
    store!(data, 1); // race (1)
    join([reader]);
}

/// The main thread waits. It parks at least once, so that the flag need not order anything.
// expect: race-free, up to atomics
fn park_until_told() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let (data, main) = (word(), thread::current());
    let writer = thread::spawn(work!(
        store!(data, 1);
        TOLD.store(true, Relaxed);
        main.unpark();
    ));
    thread::park();
    while !TOLD.load(Relaxed) {
        thread::park();
    }
    load!(data);
    join([writer]);
}

// expect: race read/write on 8 bytes of heap by 0/1
fn sleep_and_read() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1))); // race (2)
    thread::sleep(Duration::from_millis(2));
    load!(data); // race (1)
    join([writer]);
}

// expect: race-free
fn sleep_and_join() {
    let data = word();
    let writer = thread::spawn(work!(store!(data, 1)));
    thread::sleep(Duration::from_millis(2));
    join([writer]);
    load!(data);
}

thread_local! {
    static WORD: Cell<u64> = const { Cell::new(0) };
    static BUFFER: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// By its address, the variable of the main thread.
// expect: race
fn local_of_another() {
    let word = Pointer(WORD.with(Cell::as_ptr));
    let writer = thread::spawn(work!(store!(word, 1))); // race (2)
    store!(word, 2); // race (1)
    join([writer]);
    black_box(WORD.get());
}

// expect: race-free
fn local_of_each() {
    let writer = thread::spawn(work!(WORD.set(black_box(1))));
    WORD.set(black_box(2));
    join([writer]);
    assert_eq!(WORD.get(), 2);
}

// expect: race write/write on 8 bytes of heap by 0/1
fn local_buffer_lent() {
    BUFFER.set(vec![0; 8]);
    let lent = BUFFER.with_borrow_mut(|buffer| Pointer(buffer.as_mut_ptr()));
    let writer = thread::spawn(work!(store!(lent, 1))); // race (2)
    BUFFER.with_borrow_mut(|buffer| buffer[0] = 2); // race (1)
    join([writer]);
    BUFFER.take();
}

// expect: race-free, up to atomics
fn local_buffer_of_each() {
    both(|_| BUFFER.with_borrow_mut(|buffer| buffer.extend(0..black_box(8))));
}

static DROPPED: AtomicBool = AtomicBool::new(false);

/// Does something when it is dropped.
struct Last(Box<dyn Fn()>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0();
        DROPPED.store(true, Relaxed);
    }
}

/// The end of a scope does not wait for the destructors of thread-local variables. The handle is gone before the thread is.
// expect: race
fn local_dropped_after_scope() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    let data = word();
    thread::scope(|threads| {
        drop(threads.spawn(work!(
            until(|| BEGUN.load(Relaxed));
            LAST.set(Some(Last(Box::new(move || store!(data, 1))))); // race (1)
        )));
        BEGUN.store(true, Relaxed);
    });
    load!(data); // race (2)
    until(|| DROPPED.load(Relaxed));
}

/// A join does.
// expect: race-free
fn local_dropped_before_join() {
    let data = word();
    join([thread::spawn(work!(LAST.set(Some(Last(Box::new(move || store!(data, 1)))))))]);
    assert!(DROPPED.load(Relaxed) && load!(data) == 1);
}

// expect: race read/write on 8 bytes of heap by 0/1
fn panic_before_join() {
    let data = word();
    let writer = thread::spawn(work!(
        store!(data, 1); // race (2)
        fail();
    ));
    load!(data); // race (1)
    assert!(writer.join().is_err());
}

// expect: race-free
fn panic_and_join() {
    let data = word();
    let writer = thread::spawn(work!(
        store!(data, 1);
        fail();
    ));
    assert!(writer.join().is_err());
    load!(data);
}

/// What is dropped while the thread unwinds.
// expect: race read/write on 8 bytes of heap by 0/1
fn unwound_before_join() {
    let data = word();
    let writer = thread::spawn(work!(
        let _last = Last(Box::new(move || store!(data, 1))); // race (2)
        fail();
    ));
    load!(data); // race (1)
    assert!(writer.join().is_err());
}

// expect: race-free
fn unwound_and_joined() {
    let data = word();
    let writer = thread::spawn(work!(
        let _last = Last(Box::new(move || store!(data, 1)));
        fail();
    ));
    assert!(writer.join().is_err());
    load!(data);
}
