//! What a finish, or a procedure, knows of the tasks that it joins: how many run, and which panic came first.
//!
//! A join stands in the stack frame of `finish` or `procedure`, and tasks point to it. It stays there until the
//! executor has seen its last task end, which is what makes these pointers good; see `executor.rs`.
//!
//! With several workers, its tasks are on other threads. They read what does not change while the join is open (`outer`, `number`,
//! `context`), count themselves (`running`) and leave their panics; the rest is its owner's.
//!
//! ```text
//!   task ── finish ──► Join ── outer ──► Join ── outer ──► none     innermost finish first, across tasks
//!        └─ frame ───► Join ── outer ──► none                       procedures of this task only
//! ```

use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::events;
use crate::running::Running;

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Whatever can be dropped.
pub(crate) trait Anything {}
impl<T> Anything for T {}

type Leftovers = Vec<Box<dyn Anything>>;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Join {
    /// The next open finish, or procedure of the task, around this one.
    pub(crate) outer: Cell<Option<NonNull<Join>>>,
    /// The number of the innermost finish for DagSan, where this was opened: its own, if it is one.
    pub(crate) number: Cell<u32>,
    /// What rayon's code knew where this was opened; its tasks begin with that.
    pub(crate) context: Cell<usize>,
    /// How many of its tasks have not ended.
    pub(crate) running: Running,
    /// Procedures only: how many syncs it has seen.
    pub(crate) syncs: Cell<u64>,
    /// Procedures only: has it spawned since its last sync?
    pub(crate) unsynced: Cell<bool>,
    /// Procedures only: results that nobody wants, to be dropped after the next sync.
    leftovers: Cell<Option<Box<Leftovers>>>,
    /// Promises of its tasks that were started inside of a scope of rayon's, see `executor.rs`.
    strays: Cell<Vec<u64>>,
    /// The first panic, or null. Has no destructor: whoever opens a join takes it out.
    panic: AtomicPtr<Payload>,
}

impl Join {
    /// Keeps the payload if it is the first.
    pub(crate) fn panicked(&self, payload: Payload) {
        let payload = Box::into_raw(Box::new(payload));
        // Release, and Acquire in `take_panic`: the owner sees the payload.
        let kept =
            self.panic.compare_exchange(ptr::null_mut(), payload, Ordering::Release, Ordering::Relaxed);
        if kept.is_err() {
            // SAFETY: made above, and not given away.
            let payload = unsafe { Box::from_raw(payload) };
            // A payload may panic when it is dropped. That panic has a payload in turn, which is not given the chance.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                mem::forget(again);
            }
        }
    }

    /// The first panic, if there was one.
    pub(crate) fn take_panic(&self) -> Option<Payload> {
        // A look without a change is enough mostly: the tasks have ended, and what they did is seen.
        if self.panic.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let payload = NonNull::new(self.panic.swap(ptr::null_mut(), Ordering::Acquire))?;
        // SAFETY: from `Box::into_raw` in `panicked`, and only one can have taken it.
        Some(*unsafe { Box::from_raw(payload.as_ptr()) })
    }

    /// A task sets a promise at its end, to be got by this join.
    #[cold]
    pub(crate) fn await_stray(&self, promise: u64) {
        let mut strays = self.strays.take();
        events::books(|| strays.push(promise));
        self.strays.set(strays);
    }

    /// The promises that were not got yet.
    #[inline]
    pub(crate) fn take_strays(&self) -> Vec<u64> {
        self.strays.take()
    }

    /// Keeps a value until the next sync.
    pub(crate) fn leave(&self, value: Box<dyn Anything>) {
        let mut leftovers = self.leftovers.take().unwrap_or_default();
        leftovers.push(value);
        self.leftovers.set(Some(leftovers));
    }

    /// Drops what was left. A destructor that panics counts as a task that does.
    #[inline]
    pub(crate) fn drop_leftovers(&self) {
        let Some(leftovers) = self.leftovers.take() else { return };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(leftovers))) {
            self.panicked(payload);
        }
    }
}

/// The result of a body, unless that or a task has panicked.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn unwrap<R>(value: Option<R>, panic: Option<Payload>) -> R {
    match (panic, value) {
        (None, Some(value)) => value,
        (Some(payload), value) => {
            // Not during the unwinding: a destructor that panics would abort the program.
            drop(value);
            std::panic::resume_unwind(payload);
        }
        (None, None) => unreachable!("no value, and no panic"),
    }
}
