//! Futures and promises, as long as somebody has a handle to them.

use super::Structure;
use crate::error::Error;
use crate::ids::TaskId;
use crate::stream::Dropped;

impl Structure {
    pub(super) fn future_get(&mut self, by: TaskId, future: TaskId) -> Result<(), Error> {
        self.check_known(future)?;
        if !self.is_future(future) {
            return Err(Error::NotAFuture(future));
        }
        self.join_ended(by, future)
    }

    fn is_future(&self, task: TaskId) -> bool {
        let word = self.futures.get(task.index() / 64);
        word.is_some_and(|word| word >> (task.index() % 64) & 1 == 1)
    }

    /// Nobody will get this any more: a get would be an error.
    pub(crate) fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        match what {
            Dropped::Promise(promise) => self.promises.dropped(promise),
            Dropped::Future(task) if !self.is_future(task) => Err(Error::NotAFuture(task)),
            Dropped::Future(task) => {
                self.futures[task.index() / 64] &= !(1 << (task.index() % 64));
                if let Some(task) = self.tasks.get_mut(task) {
                    task.is_future = false;
                }
                Ok(())
            }
        }
    }
}
