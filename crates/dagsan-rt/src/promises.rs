//! The promises that the stream knows, and the handles to them and to futures.

use dagsan_core::{Dropped, Event, PromiseId, TaskId};
use rustc_hash::FxHashMap;

use crate::session::Session;
use crate::tasks::Handle;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Promises {
    /// By the numbers that the task runtime has for them.
    known: FxHashMap<u64, PromiseId>,
    /// How many the stream has ever known.
    count: u32,
}

impl Session {
    /// The running task sets a promise. The stream hears of a promise when it is set: it may have been made while nothing
    /// was checked.
    pub fn promise_set(&mut self, promise: u64) {
        let task = self.told();
        self.promise_set_by(task, promise);
    }

    /// The running task or its shadow does.
    pub fn promise_set_by(&mut self, task: TaskId, promise: u64) {
        let number = PromiseId(self.promises.count);
        self.promises.count += 1;
        self.promises.known.insert(promise, number);
        self.event(Event::PromiseNew { task, promise: number });
        self.event(Event::PromiseSet { task, promise: number });
    }

    /// The running task gets a promise that has been set. One that the stream has not heard of was set while nothing
    /// was checked, and so before all that is.
    pub fn promise_get(&mut self, promise: u64) {
        // First: when all is told, there may be nothing parallel any more, and no promise known.
        let task = self.told();
        self.promise_get_by(task, promise);
    }

    /// The running task or its shadow does.
    pub fn promise_get_by(&mut self, task: TaskId, promise: u64) {
        if let Some(&promise) = self.promises.known.get(&promise) {
            self.event(Event::PromiseGet { task, promise });
        }
    }

    /// Nobody has a handle to the promise any more.
    pub fn promise_drop(&mut self, promise: u64) {
        if let Some(promise) = self.promises.known.remove(&promise) {
            self.dropped(Dropped::Promise(promise));
        }
    }

    /// Nobody has a handle to the future any more. One that was made while nothing was checked is not known.
    pub fn future_drop(&mut self, future: Handle) {
        if future != Handle::MAIN {
            self.dropped(Dropped::Future(future.task()));
        }
    }

    /// Nothing is parallel to the present: what was set is before all that comes, as is a set that nobody has heard of.
    pub fn forget_promises(&mut self) {
        for (_, promise) in std::mem::take(&mut self.promises.known) {
            self.dropped(Dropped::Promise(promise));
        }
    }

    fn dropped(&mut self, what: Dropped) {
        if self.stopped.is_none()
            && let Err(error) = self.stream.dropped(what)
        {
            self.stop(&error);
        }
    }
}
