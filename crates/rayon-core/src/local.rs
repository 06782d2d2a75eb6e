//! What a thread knows while it runs rayon code: the task, the worker it stands for, the finish that tasks belong to.
//!
//! Everything runs on the thread that calls, one thing inside the other, so each of these is set on the way in and put
//! back on the way out.
//!
//! # Which worker
//!
//! What a program does with the number of its worker depends on the schedule, but what it does to the memory of that worker
//! is no race: a worker runs one task at a time. So the numbers of a pool are handed out in turn to those who ask, as
//! another schedule would, and DagSan hears that the task is on that worker from then on. Tasks with different
//! numbers that touch the same byte still race. As in rayon, what a call runs at once (the first of a join, the body of a
//! scope) is on the worker of its caller, and what may be stolen (the second of a join, a job) is on another.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use crate::events::{self, Task};
use crate::finish::Finish;
use crate::pool::{Pool, PoolRef};

/// The worker thread that real rayon would be on.
#[derive(Clone, Copy)]
pub(crate) struct Worker {
    /// Lives as long as this is set: whoever sets it holds the pool.
    pool: NonNull<Pool>,
    /// Its number, if it has been asked for, or if it is for a certain worker to do.
    index: Option<usize>,
    /// Has DagSan heard of it from the running task?
    told: bool,
}

impl Worker {
    /// A worker of a pool, no matter which.
    pub(crate) fn of(pool: &PoolRef) -> Worker {
        Worker { pool: pool.as_ptr(), index: None, told: false }
    }

    /// A certain worker of a pool.
    pub(crate) fn number(pool: &PoolRef, index: usize) -> Worker {
        Worker { index: Some(index), ..Worker::of(pool) }
    }

    /// Another worker of the same pool, or the same.
    fn another(self) -> Worker {
        Worker { index: None, told: false, ..self }
    }

    /// The name that DagSan knows it by.
    fn name(self) -> u64 {
        self.pool().first() + self.index.unwrap_or(0) as u64
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

/// DagSan hears that this variable leads to what waits to be run, and so to everything.
pub(crate) fn announce() {
    with(|local| events::runtime_variable(ptr::from_ref(local).addr(), size_of::<Local>()));
}

/// The worker that this thread stands for.
pub(crate) fn worker() -> Option<Worker> {
    with(|local| local.worker.get())
}

/// Is it one of `pool`?
pub(crate) fn is_in(pool: &Pool) -> bool {
    worker().is_some_and(|worker| ptr::eq(worker.pool.as_ptr(), pool))
}

/// Its number, if there is one yet.
pub(crate) fn known_index() -> Option<usize> {
    worker()?.index
}

/// Its number, which it may get only now.
#[cold]
pub(crate) fn index() -> Option<usize> {
    let worker = worker()?;
    let index = worker.index.unwrap_or_else(|| worker.pool().next_index());
    let worker = Worker { index: Some(index), ..worker };
    with(|local| local.worker.set(Some(worker)));
    if !worker.told {
        tell();
    }
    Some(index)
}

/// The running task is on a worker whose number is known.
#[cold]
fn tell() {
    let checked = with(|local| local.scopes.get()) > 0;
    if let Some(worker) = worker().filter(|_| checked) {
        events::worker_begin(worker.name());
        with(|local| local.worker.set(Some(Worker { told: true, ..worker })));
    }
}

/// A task begins on the worker of the one that runs it.
#[inline]
pub(crate) fn same_worker() {
    if known_index().is_some() {
        tell();
    }
}

/// Puts a worker in place, and the one before it back when dropped. The pool must live until then.
pub(crate) struct Seat(Option<Worker>);

impl Seat {
    /// The running task is on `worker` from now on.
    pub(crate) fn take(worker: Option<Worker>) -> Seat {
        Seat::change();
        let seat = Seat(with(|local| local.worker.replace(worker)));
        same_worker();
        seat
    }

    /// Another worker goes on with the running task.
    #[inline]
    pub(crate) fn stolen() -> Seat {
        Seat::take(worker().map(Worker::another))
    }

    /// The running task leaves its worker.
    #[inline]
    fn change() {
        if let Some(worker) = worker().filter(|worker| worker.told) {
            events::worker_end(worker.name());
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        Seat::change();
        with(|local| local.worker.set(self.0));
        if let Some(worker) = self.0.filter(|worker| worker.told) {
            events::worker_begin(worker.name());
        }
    }
}

/// This thread is the first worker of `pool` for good, as in rayon. The pool then lives for good too.
pub(crate) fn stay(pool: &PoolRef) {
    let pool = ManuallyDrop::new(pool.clone());
    with(|local| local.worker.set(Some(Worker::number(&pool, 0))));
}
