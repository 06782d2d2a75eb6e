//! Who still has handles: a future or promise is dropped after the last get of it in the program.

use std::collections::BTreeMap;

use dagsan_core::{Consumer, Dropped, Error, PromiseId, TaskId};

use super::Runner;
use crate::program::{Program, Stmt};

/// The gets to come, by name.
#[derive(Debug, Default)]
struct Gets(BTreeMap<u32, u32>);

impl Gets {
    /// So many gets have been made now: are there no more to come?
    fn is_last(&mut self, name: u32, made: u32) -> bool {
        let left = self.0.entry(name).or_default();
        *left -= made;
        *left == 0
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Handles {
    futures: Gets,
    promises: Gets,
}

impl Handles {
    pub(super) fn of(program: &Program) -> Handles {
        let mut handles = Handles::default();
        for stmt in program.walk() {
            match *stmt {
                Stmt::GetFuture(name) => *handles.futures.0.entry(name).or_default() += 1,
                Stmt::Get(name) => *handles.promises.0.entry(name).or_default() += 1,
                _ => {}
            }
        }
        handles
    }
}

impl<C: Consumer> Runner<'_, '_, C> {
    /// A future has been created. The name may mean another one.
    pub(super) fn future_is_there(&mut self, name: u32, future: TaskId, named: bool) -> Result<(), Error> {
        let is_last = !named || self.handles.futures.is_last(name, 0);
        self.drop_if(is_last, Dropped::Future(future))
    }

    pub(super) fn future_was_got(&mut self, name: u32, future: TaskId) -> Result<(), Error> {
        let is_last = self.handles.futures.is_last(name, 1);
        self.drop_if(is_last, Dropped::Future(future))
    }

    pub(super) fn promise_was_set(&mut self, name: u32, promise: PromiseId) -> Result<(), Error> {
        let is_last = self.handles.promises.is_last(name, 0);
        self.drop_if(is_last, Dropped::Promise(promise))
    }

    pub(super) fn promise_was_got(&mut self, name: u32, promise: PromiseId) -> Result<(), Error> {
        let is_last = self.handles.promises.is_last(name, 1);
        self.drop_if(is_last, Dropped::Promise(promise))
    }

    fn drop_if(&mut self, is_last: bool, what: Dropped) -> Result<(), Error> {
        if is_last { self.stream.dropped(what) } else { Ok(()) }
    }
}
