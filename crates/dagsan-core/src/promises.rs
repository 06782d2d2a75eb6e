//! Which promises there are, and when they were set.

use crate::error::Error;
use crate::ids::{PromiseId, TaskId, check_dense};
use crate::table::Table;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    /// Set in the quiescent period of this number.
    Set(u32),
    /// Nobody has a handle any more.
    Dropped,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Promises {
    states: Table<State>,
}

impl Default for Promises {
    fn default() -> Promises {
        Promises { states: Table::new(0) }
    }
}

impl Promises {
    /// A new one. Those that were dropped are looked for when `recent` have come.
    pub(crate) fn create(&mut self, promise: PromiseId, recent: usize) -> Result<(), Error> {
        check_dense("promise", self.states.next() as usize, promise.0)?;
        if self.states.wants_collection(recent) {
            self.states.retain(|_, state| *state != State::Dropped);
        }
        self.states.push(State::Empty);
        Ok(())
    }

    /// `task` sets it, in this quiescent period.
    pub(crate) fn set(&mut self, task: TaskId, promise: PromiseId, period: u32) -> Result<(), Error> {
        match self.states.get_mut(promise.0) {
            None | Some(State::Dropped) => Err(Error::UnknownPromise(promise)),
            Some(State::Set(_)) => Err(Error::AlreadySet { task, promise }),
            Some(state) => {
                *state = State::Set(period);
                Ok(())
            }
        }
    }

    /// `task` gets it. Returns the period in which it was set.
    pub(crate) fn get(&self, task: TaskId, promise: PromiseId) -> Result<u32, Error> {
        match self.states.get(promise.0) {
            None | Some(State::Dropped) => Err(Error::UnknownPromise(promise)),
            Some(State::Empty) => Err(Error::NotSet { task, promise }),
            Some(&State::Set(period)) => Ok(period),
        }
    }

    /// Nobody will set it or get it any more.
    pub(crate) fn dropped(&mut self, promise: PromiseId) -> Result<(), Error> {
        match self.states.get_mut(promise.0) {
            None | Some(State::Dropped) => Err(Error::UnknownPromise(promise)),
            Some(state) => {
                *state = State::Dropped;
                Ok(())
            }
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.states.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_dropped_do_not_add_up() {
        let mut promises = Promises::default();
        for number in 0..1_000_000 {
            let promise = PromiseId(number);
            promises.create(promise, 1000).unwrap();
            promises.set(TaskId::MAIN, promise, 7).unwrap();
            // Some stay.
            if number % 100_000 != 0 {
                promises.dropped(promise).unwrap();
            }
        }
        assert!(promises.memory() < 1 << 15, "{}", promises.memory());
        assert_eq!(promises.get(TaskId::MAIN, PromiseId(300_000)), Ok(7));
        for promise in [PromiseId(300_001), PromiseId(999_999)] {
            assert_eq!(promises.get(TaskId::MAIN, promise), Err(Error::UnknownPromise(promise)));
            assert_eq!(promises.dropped(promise), Err(Error::UnknownPromise(promise)));
        }
    }
}
