//! Which promises there are, and when they were set.

use crate::error::Error;
use crate::ids::{PromiseId, TaskId, check_dense};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    /// Set in the quiescent period of this number.
    Set(u32),
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    states: Vec<State>,
}

impl Promises {
    /// A new one.
    pub(crate) fn create(&mut self, promise: PromiseId) -> Result<(), Error> {
        check_dense("promise", self.states.len(), promise.0)?;
        self.states.push(State::Empty);
        Ok(())
    }

    /// `task` sets it, in this quiescent period.
    pub(crate) fn set(&mut self, task: TaskId, promise: PromiseId, period: u32) -> Result<(), Error> {
        match self.states.get_mut(promise.index()) {
            None => Err(Error::UnknownPromise(promise)),
            Some(State::Set(_)) => Err(Error::AlreadySet { task, promise }),
            Some(state) => {
                *state = State::Set(period);
                Ok(())
            }
        }
    }

    /// `task` gets it. Returns the period in which it was set.
    pub(crate) fn get(&self, task: TaskId, promise: PromiseId) -> Result<u32, Error> {
        match self.states.get(promise.index()) {
            None => Err(Error::UnknownPromise(promise)),
            Some(State::Empty) => Err(Error::NotSet { task, promise }),
            Some(&State::Set(period)) => Ok(period),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}
