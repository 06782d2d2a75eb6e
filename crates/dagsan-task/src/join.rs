//! What a finish, or a procedure, knows of the tasks that it joins: how many run, and which panic came first.
//!
//! A join stands in the stack frame of `finish` or `procedure`, and tasks point to it. It stays there until the
//! executor has seen its last task end, which is what makes these pointers good; see `executor.rs`.
//!
//! ```text
//!   task ── finish ──► Join ── outer ──► Join ── outer ──► none     innermost finish first, across tasks
//!        └─ frame ───► Join ── outer ──► none                       procedures of this task only
//! ```

use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Join {
    /// The next open finish, or procedure of the task, around this one.
    pub(crate) outer: Cell<Option<NonNull<Join>>>,
    /// How many of its tasks have not ended.
    pub(crate) running: Cell<usize>,
    /// Procedures only: how many syncs it has seen.
    pub(crate) syncs: Cell<u64>,
    /// Procedures only: has it spawned since its last sync?
    pub(crate) unsynced: Cell<bool>,
    panic: Cell<Option<Payload>>,
}

impl Join {
    /// Keeps the payload if it is the first.
    pub(crate) fn panicked(&self, payload: Payload) {
        match self.panic.take() {
            None => self.panic.set(Some(payload)),
            Some(first) => {
                self.panic.set(Some(first));
                // A payload may panic when it is dropped. That panic has a payload in turn, which is not given the
                // chance.
                if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                    mem::forget(again);
                }
            }
        }
    }

    /// Goes on with the first panic, if there was one.
    pub(crate) fn resume_panic(&self) {
        if let Some(payload) = self.panic.take() {
            resume_unwind(payload);
        }
    }

    /// The result of the body, unless the body or a task has panicked. The body's panic has been kept like any other.
    pub(crate) fn unwrap<R>(&self, value: Option<R>) -> R {
        match (self.panic.take(), value) {
            (None, Some(value)) => value,
            (Some(payload), value) => {
                // Not during the unwinding: a destructor that panics would abort the program.
                drop(value);
                resume_unwind(payload);
            }
            (None, None) => unreachable!("no value, and no panic"),
        }
    }
}
