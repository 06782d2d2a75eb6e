//! Functions of the standard library that order something in code without hooks. DagSan's own pass has the program tell of them.

use std::ops::Range;

use crate::peek::peek;
use crate::session::{self, Session};
use crate::start;
use crate::state::is_active;
use crate::sync::Order;
use crate::threads;
use crate::turns;

/// The function of the standard library has returned that completes a `Once`, or waits until another thread has.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_once_called() {
    session::in_order();
    if is_active() && turns::is_mine() {
        session::called(start::frame(), Session::once_called);
    }
}

/// A function has returned that waits until another thread has completed a `Once`, which is a word.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_once_waited(once: usize) {
    session::in_order();
    if is_active() && turns::is_mine() {
        session::called(start::frame(), |session| {
            let task = session.told();
            session.acquire(once, Order::ACQUIRE, task);
        });
    }
}

/// `park` has returned.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_parked() {
    session::in_order();
    if is_active() && turns::is_mine() {
        session::called(start::frame(), |session| session.parked(this_thread()));
    }
}

/// A lock was taken that was not free at first, by one who has it alone. The word of a mutex or a read-write lock is the first in it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_contended(lock: usize) {
    session::in_order();
    if is_active() && turns::is_mine() {
        session::called(start::frame(), |session| session.contended(lock, false));
    }
}

/// The same by a reader.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_contended_reader(lock: usize) {
    session::in_order();
    if is_active() && turns::is_mine() {
        session::called(start::frame(), |session| session.contended(lock, true));
    }
}

/// The lock of standard output, or of standard error, was taken, by code without hooks: it will be given back by code with hooks.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_stream_locked(lock: usize) {
    if is_active()
        && turns::is_mine()
        && let Some((mutex, count)) = words_of_stream(lock)
    {
        session::called(start::frame(), |session| {
            // Otherwise sections would depend on each other by it, whatever the program does in them.
            session.owned.insert(count..count + FUTEX);
            session.contended(mutex, false);
        });
    }
}

/// The mutex and the count in a lock of a stream, which this thread holds: it can be taken again by who has it, which is counted, and beside the count, both four bytes wide, is
/// the mutex. None if it is not so in this version of the standard library.
fn words_of_stream(lock: usize) -> Option<(usize, usize)> {
    let is_output = stream_of(&std::io::stdout()) == lock;
    if !is_output && stream_of(&std::io::stderr()) != lock {
        return None;
    }
    // SAFETY: the lock lives as long as the program, and has at least a word for its holder, one for the state of a cell, the count and the mutex. This thread holds it, so
    // that others at most note in it that they wait.
    let words = || unsafe { (lock as *const [u32; LOCK_WORDS]).read_volatile() };
    let once = words();
    let twice = if is_output {
        let _again = std::io::stdout().lock();
        words()
    } else {
        let _again = std::io::stderr().lock();
        words()
    };
    let mut counts = (0..LOCK_WORDS).filter(|&at| twice[at] == once[at] + 1);
    let (count, others) = (counts.next()?, counts.count());
    let mutex = count ^ 1;
    let is_taken = (1..=2).contains(&once[mutex]) && (1..=2).contains(&twice[mutex]);
    (others == 0 && is_taken).then_some((lock + mutex * FUTEX, lock + count * FUTEX))
}

/// The words of such a lock that are looked at.
const LOCK_WORDS: usize = 24 / FUTEX;

/// Where the lock of a stream is: a handle to the stream is a reference to it.
fn stream_of<S>(stream: &S) -> usize {
    const { assert!(size_of::<S>() == size_of::<usize>()) };
    // SAFETY: a pointer, as its size says; it is only a number here.
    unsafe { std::mem::transmute_copy::<S, usize>(stream) }
}

/// A scoped thread is about to say that it has done all it has to do. What is counted is in here.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_scope_left(scope: usize) {
    session::in_order();
    if is_active() && turns::is_mine() {
        // SAFETY: the scope waits for this thread, which has not been counted out yet.
        let words = unsafe { (scope as *const [usize; threads::SCOPE_WORDS]).read_volatile() };
        threads::has_left_scope(words);
        session::called(start::frame(), |session| session.scope_left(scope));
    }
}

/// Where the standard library keeps what it has of this thread, the word of `unpark` among it.
fn this_thread() -> Range<usize> {
    const { assert!(size_of::<std::thread::Thread>() == size_of::<usize>()) };
    let thread = std::thread::current();
    // SAFETY: a pointer, as its size says; it is only a number here.
    let start = unsafe { std::mem::transmute_copy::<std::thread::Thread, usize>(&thread) };
    start..start + threads::THREAD_ROOM
}

/// The size of the words that the standard library waits on.
const FUTEX: usize = 4;

/// The bits of such a word that say who has it; the others say who waits.
const COUNTED: u64 = (1 << 30) - 1;

impl Session {
    /// What the running task has completed is released, and what others have it has seen.
    fn once_called(&mut self) {
        let task = self.told();
        for address in self.sync.watch.addresses(task) {
            self.acquire(address, Order::ACQUIRE, task);
        }
        self.release_changed();
    }

    /// The running task comes after those who have unparked its thread.
    fn parked(&mut self, thread: Range<usize>) {
        if self.stopped.is_some() {
            return;
        }
        let task = self.told();
        for address in self.sync.words.within(&thread, FUTEX) {
            self.acquire(address, Order::ACQUIRE, task);
        }
    }

    /// The running task has taken a lock.
    fn contended(&mut self, address: usize, by_reader: bool) {
        if self.stopped.is_some() || !self.sync.hygiene.locks {
            return;
        }
        let task = self.told();
        let Some(value) = peek(address, FUTEX, &self.image).map(|value| value & COUNTED) else { return };
        // Optimised code may come by here also where it has taken the lock at once.
        let is_known = self.sync.locks.held_by(task, address).is_some();
        if value == 0 || is_known || !by_reader && self.sync.locks.is_held(address) {
            return;
        }
        let word = self.sync.words.entry(address, FUTEX, value);
        // Readers have looked at it, and add 1.
        (word.last, word.seen_by) = (Some(value), by_reader.then_some(self.tasks.name()));
        let lock = self.holds(address, FUTEX, if by_reader { 1 } else { value }, task);
        self.event(lock);
    }

    /// Whoever loads one of the words of a scope comes after the running task.
    pub fn scope_left(&mut self, scope: usize) {
        if self.stopped.is_some() {
            return;
        }
        let task = self.told();
        for address in (0..threads::SCOPE_WORDS).map(|word| scope + word * size_of::<usize>()) {
            // It may be gone, if others have not waited for this thread.
            let Some(value) = peek(address, size_of::<usize>(), &self.image) else { continue };
            self.sync.words.entry(address, size_of::<usize>(), value);
            self.release(address, true, task);
        }
    }
}
