//! What a thread knows while it runs rayon code: the task, the worker it stands for, the finish that tasks belong to.
//!
//! Everything runs on the thread that calls, one thing inside the other, so each of these is set on the way in and put
//! back on the way out.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use crate::events::Task;
use crate::finish::Finish;
use crate::pool::{Pool, PoolRef};

/// The worker thread that real rayon would be on.
#[derive(Clone, Copy)]
pub(crate) struct Worker {
    /// Lives as long as this is set: whoever sets it holds the pool.
    pool: NonNull<Pool>,
    pub(crate) index: usize,
}

impl Worker {
    /// The worker of a pool.
    pub(crate) fn of(pool: &PoolRef, index: usize) -> Worker {
        Worker { pool: pool.as_ptr(), index }
    }

    /// Its pool.
    pub(crate) fn pool(self) -> PoolRef {
        // SAFETY: the pointer comes from a reference, in `of`, and its pool lives as long as the worker is set.
        unsafe { PoolRef::from_ptr(self.pool) }
    }
}

/// See the module's documentation.
pub(crate) struct Local {
    /// The running task; 0 is the main one.
    pub(crate) task: Cell<Task>,
    pub(crate) worker: Cell<Option<Worker>>,
    /// The innermost open finish. None: the thread is not inside of any call of rayon's.
    pub(crate) finish: Cell<Option<NonNull<Finish>>>,
    /// How many scopes DagSan has been told of that are open.
    pub(crate) scopes: Cell<usize>,
    /// Is the check to go on when they are closed, because of tasks that nobody joins?
    pub(crate) detached: Cell<bool>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            task: Cell::new(0),
            worker: Cell::new(None),
            finish: Cell::new(None),
            scopes: Cell::new(0),
            detached: Cell::new(false),
        }
    };
}

/// That of this thread. Needs no destructor, so it is there until the thread has ended.
#[inline]
pub(crate) fn with<R>(action: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(action)
}

/// The worker that this thread stands for.
pub(crate) fn worker() -> Option<Worker> {
    with(|local| local.worker.get())
}

/// Its number, if it is one of `pool`.
pub(crate) fn index_in(pool: &Pool) -> Option<usize> {
    worker().filter(|worker| ptr::eq(worker.pool.as_ptr(), pool)).map(|worker| worker.index)
}

/// Puts a worker in place, and the one before it back when dropped. The pool must live until then.
pub(crate) struct Seat(Option<Worker>);

impl Seat {
    /// This thread is `worker` from now on.
    pub(crate) fn take(worker: Option<Worker>) -> Seat {
        Seat(with(|local| local.worker.replace(worker)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        with(|local| local.worker.set(self.0));
    }
}

/// This thread is the first worker of `pool` for good, as in rayon. The pool then lives for good too.
pub(crate) fn stay(pool: &PoolRef) {
    let pool = ManuallyDrop::new(pool.clone());
    with(|local| local.worker.set(Some(Worker::of(&pool, 0))));
}
