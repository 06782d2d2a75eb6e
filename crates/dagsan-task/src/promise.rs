//! Promises: values that are set once, by any task, and got by any number (paper 000).
//!
//! A set orders what its task did before it ahead of what a task does after a get, and nothing else. A promise that
//! nobody sets, and nobody waits for, is no error.

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

/// A value that is set once. Clones are handles to the same promise.
///
/// ```
/// use dagsan_task::{Promise, finish};
///
/// let (ping, pong) = (Promise::named("ping"), Promise::named("pong"));
/// finish(|scope| {
///     scope.spawn(|_| pong.set(ping.get() + 1)); // must wait, so that the next line runs
///     ping.set(1);
/// });
/// assert_eq!(*pong.get(), 2);
/// ```
///
/// Any thread may set a promise. But a thread waits for its own tasks only: if all of them wait when it is not set
/// yet, that is a deadlock, whatever other threads might do later.
pub struct Promise<T> {
    shared: Arc<Shared<T>>,
}

/// The promise is never set: no task of this thread can go on. The text says who waits for what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NeverSet(Arc<str>);

/// The promise had been set before. Gives the value back that came too late.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the promise had been set before")]
pub struct AlreadySet<T>(pub T);

impl<T> fmt::Debug for AlreadySet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlreadySet").finish_non_exhaustive()
    }
}

impl<T> Promise<T> {
    /// A promise that is not set. Messages name it by the place of this call.
    #[track_caller]
    pub fn new() -> Promise<T> {
        Promise::with(None, Location::caller())
    }

    /// A promise that is not set, with a name for messages.
    #[track_caller]
    pub fn named(name: impl Into<String>) -> Promise<T> {
        Promise::with(Some(name.into().into_boxed_str()), Location::caller())
    }

    fn with(name: Option<Box<str>>, created: Place) -> Promise<T> {
        Promise { shared: Arc::new(Shared { latch: Latch::promise(name, created), value: Value::none() }) }
    }

    /// Sets the promise. Tasks that wait for it can go on, and do so when the present one waits or ends.
    ///
    /// # Panics
    /// If the promise has been set before.
    #[track_caller]
    pub fn set(&self, value: T) {
        if self.try_set(value).is_err() {
            panic!("{} is set for the second time", self.shared.latch);
        }
    }

    /// Sets the promise, as [`Promise::set`].
    ///
    /// # Errors
    /// Gives the value back if the promise has been set before.
    pub fn try_set(&self, value: T) -> Result<(), AlreadySet<T>> {
        if !self.shared.latch.claim() {
            return Err(AlreadySet(value));
        }
        // SAFETY: claimed once, and opened below.
        unsafe { self.shared.value.set(value) };
        executor::open(&self.shared.latch, State::Open);
        Ok(())
    }

    /// Waits until the promise is set, and returns its value.
    ///
    /// # Panics
    /// If it is never set (see [`Promise::try_get`]), and in an [isolated](crate::isolated()) section if it is not set
    /// yet.
    #[track_caller]
    pub fn get(&self) -> &T {
        self.try_get().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until the promise is set, and returns its value.
    ///
    /// # Errors
    /// If no task of this thread can go on, so that the promise is never set.
    ///
    /// # Panics
    /// In an [isolated](crate::isolated()) section, if the promise is not set yet.
    #[track_caller]
    pub fn try_get(&self) -> Result<&T, NeverSet> {
        match executor::get(&self.shared.latch, Location::caller()) {
            Ok(_) => Ok(self.value()),
            Err(Failed::Deadlock(report)) => Err(NeverSet(report)),
            Err(failed) => panic!("{failed}"),
        }
    }

    /// The value of a promise that was seen to be set.
    fn value(&self) -> &T {
        // SAFETY: called when the latch was seen open.
        match unsafe { self.shared.value.get() } {
            Some(value) => value,
            None => unreachable!("the latch of a promise opens after its value was set"),
        }
    }

    /// Has the promise been set? The answer depends on the schedule, and orders nothing.
    pub fn is_set(&self) -> bool {
        self.shared.latch.state() == State::Open
    }
}

impl<T> Default for Promise<T> {
    #[track_caller]
    fn default() -> Promise<T> {
        Promise::new()
    }
}

impl<T> Clone for Promise<T> {
    fn clone(&self) -> Promise<T> {
        Promise { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise").field("state", &self.shared.latch.state()).finish_non_exhaustive()
    }
}
