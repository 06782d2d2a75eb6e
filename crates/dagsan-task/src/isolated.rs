//! Isolated sections: mutual exclusion among all of them (papers 002 to 004).
//!
//! On one thread that needs no lock: a section cannot be left before its end, since nothing in it may wait or start a
//! task. The lock is for other workers, and for other threads with tasks of their own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{events, executor};

static SECTION: Mutex<()> = Mutex::new(());

/// Runs `body` while no other isolated section runs.
///
/// ```
/// use dagsan_task::{finish, isolated};
///
/// let sum = std::sync::atomic::AtomicU32::new(0);
/// finish(|scope| {
///     for i in 0..10 {
///         let sum = &sum;
///         scope.spawn(move |_| isolated(|| {
///             use std::sync::atomic::Ordering::Relaxed;
///             sum.store(sum.load(Relaxed) + i, Relaxed);
///         }));
///     }
/// });
/// assert_eq!(sum.into_inner(), 45);
/// ```
///
/// # Panics
/// In another isolated section. What starts a task in `body`, or has to wait there, panics too.
#[track_caller]
pub fn isolated<R>(body: impl FnOnce() -> R) -> R {
    let _section = Section::enter();
    body()
}

/// An isolated section; its end is that of this value.
struct Section {
    lock: Option<MutexGuard<'static, ()>>,
}

impl Section {
    #[inline(never)]
    #[track_caller]
    fn enter() -> Section {
        assert!(executor::isolated_begin(), "an isolated section begins in another one");
        // A section that has panicked leaves no broken promise with the lock: it guards nothing of its own.
        let lock = SECTION.lock().unwrap_or_else(PoisonError::into_inner);
        events::isolated_begin();
        Section { lock: Some(lock) }
    }

    /// The lock is given back in here, and not by code that is compiled into the user's crate: DagSan would see it.
    #[inline(never)]
    fn leave(&mut self) {
        events::isolated_end();
        executor::isolated_end();
        self.lock = None;
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        self.leave();
    }
}
