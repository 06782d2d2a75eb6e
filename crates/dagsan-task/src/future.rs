//! Futures: tasks with a result. Made by [`Scope::future`](crate::Scope::future).
//!
//! A handle is a counted reference to the result, so it may be cloned, kept, and sent through promises: these are
//! *general* futures in the words of paper 001, where structured ones have a single get.
//!
//! The task writes its result before it ends; a get reads it after the event that joins the task.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::error::Failed;
use crate::events::Place;
use crate::executor;
use crate::latch::{Latch, State};
use crate::value::Value;

struct Shared<T> {
    latch: Latch,
    value: Value<T>,
}

/// A handle to the result of a task.
///
/// Handles may go to other tasks, and with them to other threads. A thread waits for tasks of its own only: got on
/// another thread than that of its task, a future that has not ended fails as one that never ends.
pub struct Future<T> {
    shared: Arc<Shared<T>>,
}

/// Why there is no result of a future.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
    /// Its task has panicked.
    #[error("{0} has panicked")]
    Panicked(String),
    /// Its task waits for ever, or is not of this thread. The text says who waits for what.
    #[error("{0}")]
    NeverEnds(Arc<str>),
}

impl<T> Future<T> {
    pub(crate) fn new(created: Place) -> Future<T> {
        Future { shared: Arc::new(Shared { latch: Latch::future(created), value: Value::none() }) }
    }

    pub(crate) fn latch(&self) -> &Latch {
        &self.shared.latch
    }

    /// Waits for the task, and returns its result.
    ///
    /// # Panics
    /// If the task has panicked, or waits for ever (see [`Future::try_get`]), and in an
    /// [isolated](crate::isolated()) section if the task has not ended.
    #[track_caller]
    pub fn get(&self) -> &T {
        self.try_get().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits for the task, and returns its result.
    ///
    /// # Errors
    /// If the task has panicked, and if no task of this thread can go on, so that this one never ends.
    ///
    /// # Panics
    /// In an [isolated](crate::isolated()) section, if the task has not ended.
    #[track_caller]
    pub fn try_get(&self) -> Result<&T, GetError> {
        let latch = &self.shared.latch;
        match executor::get(latch, Location::caller()) {
            // SAFETY: the latch is open.
            Ok(_) => unsafe { self.shared.value.get() }.ok_or_else(|| GetError::Panicked(latch.to_string())),
            Err(Failed::Deadlock(report)) => Err(GetError::NeverEnds(report)),
            Err(failed) => panic!("{failed}"),
        }
    }
}

impl<T> Clone for Future<T> {
    fn clone(&self) -> Future<T> {
        Future { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for Future<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Future").field("state", &self.shared.latch.state()).finish_non_exhaustive()
    }
}

/// The task's end of a future: opens the latch when it is dropped, with a value or, in a panic, without.
pub(crate) struct Completion<T> {
    shared: Arc<Shared<T>>,
    state: State,
}

impl<T> Completion<T> {
    pub(crate) fn of(future: &Future<T>) -> Completion<T> {
        Completion { shared: Arc::clone(&future.shared), state: State::Panicked }
    }

    pub(crate) fn complete(mut self, value: T) {
        // SAFETY: there is one completion, it is consumed, and its end opens the latch.
        unsafe { self.shared.value.set(value) };
        self.state = State::Open;
    }
}

impl<T> Drop for Completion<T> {
    fn drop(&mut self) {
        executor::open(&self.shared.latch, self.state);
    }
}
