//! Helpers to start threads, and to wait for them.

use std::hint::{black_box, spin_loop};
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::shared::Pointer;

/// What a thread does; what the last expression gives is dropped.
#[collapse_debuginfo(yes)]
macro_rules! work {
    ($($body:tt)*) => {
        move || {
            // A read at the very beginning would be shown in the standard library, where optimised code makes it.
            std::hint::black_box(());
            _ = { $($body)* };
            // As in `spawn!` of `shared.rs`.
            std::hint::black_box(());
        }
    };
}

pub(crate) use work;

/// A word on the heap, which is never freed.
pub fn word() -> Pointer<u64> {
    Pointer(black_box(Box::leak(Box::new(0))))
}

/// Joins threads, one after the other.
pub fn join<const N: usize>(threads: [JoinHandle<()>; N]) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Two threads: the first does `one`, the second `two`. The handles are kept until both are started.
pub fn pair(one: impl FnOnce() + Send, two: impl FnOnce() + Send) {
    thread::scope(|threads| {
        let _one = threads.spawn(work!(one()));
        let _two = threads.spawn(work!(two()));
    });
}

/// Two threads that do the same, as number 0 and 1.
pub fn both(body: impl Fn(usize) + Sync) {
    pair(|| body(0), || body(1));
}

/// Spins until something is so.
pub fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        spin_loop();
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a thread, without a word on standard error.
pub fn fail() {
    resume_unwind(Box::new("on purpose"));
}
