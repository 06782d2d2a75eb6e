//! What rayon's code knows of where it is: the worker it stands for, and the innermost open finish.
//!
//! Everything runs on the thread that calls, one thing inside the other. So this is a list, from the innermost call out, whose
//! entries lie in the frames of these calls. Its head is the *context* of the stack (`events.rs`): if a task of
//! dagsan-task waits in the middle of rayon's code, its list sleeps with its stack. A task of dagsan-task begins with the
//! list of the scope that joins it, and so ends before any entry of that does.
//!
//! # Which worker
//!
//! What a program does with the number of its worker depends on the schedule, but what it does to the memory of that worker
//! is no race: a worker runs one task at a time. So the numbers of a pool are handed out in turn to those who ask, as
//! another schedule would, and DagSan hears that the task is on that worker from then on. Tasks with different
//! numbers that touch the same byte still race. As in rayon, what a call runs at once (the first of a join, the body of a
//! scope) is on the worker of its caller, and what may be stolen (the second of a join, a job) is on another. Tasks of
//! dagsan-task do not leave their thread, and so are on the worker of the scope that joins them.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::thread::{self, ThreadId};

use crate::events;
use crate::finish::Finish;
use crate::pool::{Pool, PoolRef};

/// The worker thread that real rayon would be on.
#[derive(Clone, Copy)]
pub(crate) struct Worker {
    /// Lives as long as this is set: whoever sets it holds the pool.
    pool: NonNull<Pool>,
    /// Its number, if it has been asked for, or if it is for a certain worker to do.
    index: Option<usize>,
}

impl Worker {
    /// A worker of a pool, no matter which.
    pub(crate) fn of(pool: &PoolRef) -> Worker {
        Worker { pool: pool.as_ptr(), index: None }
    }

    /// A certain worker of a pool.
    pub(crate) fn number(pool: &PoolRef, index: usize) -> Worker {
        Worker { index: Some(index), ..Worker::of(pool) }
    }

    /// The name that DagSan knows it by, if it has a number.
    fn name(self) -> Option<u64> {
        self.index.map(|index| self.pool().first() + index as u64)
    }

    /// Its pool.
    pub(crate) fn pool(self) -> PoolRef {
        // SAFETY: the pointer comes from a reference, in `of`, and its pool lives as long as the worker is set.
        unsafe { PoolRef::from_ptr(self.pool) }
    }
}

/// An entry of the list: what holds inside of a call.
#[derive(Clone, Default)]
pub(crate) struct Context {
    worker: Cell<Option<Worker>>,
    /// None: the stack is not inside of any call of rayon's.
    finish: Cell<Option<NonNull<Finish>>>,
    /// How many calls of `join_context` are under way, if that matters.
    depth: Cell<u32>,
}

/// What the innermost entry says.
#[inline]
fn with<R>(action: impl FnOnce(&Context) -> R) -> Option<R> {
    let innermost = events::context() as *const Context;
    // SAFETY: null, or an entry that lives until it is taken away ([`Context::set`]).
    unsafe { innermost.as_ref() }.map(action)
}

impl Context {
    /// A copy of the innermost entry, to be changed and put in front of it.
    pub(crate) fn copy() -> Context {
        with(Clone::clone).unwrap_or_default()
    }

    pub(crate) fn with_worker(self, worker: Option<Worker>) -> Context {
        self.worker.set(worker);
        self
    }

    /// It holds inside of `finish`.
    pub(crate) fn contain(&self, finish: &Finish) {
        self.finish.set(Some(NonNull::from(finish)));
    }

    /// Is the innermost entry from now on. Returns the one before it, for [`Context::unset`].
    ///
    /// # Safety
    /// It stays where it is until it is unset, which is done on the same stack, when all entries that have come since then
    /// are gone.
    pub(crate) unsafe fn set(&self) -> usize {
        events::set_context(ptr::from_ref(self).addr())
    }

    /// Is not the innermost entry any more. What the running task has learned of its worker stays, if it was on one before.
    pub(crate) fn unset(&self, before: usize) {
        // SAFETY: as in `with`.
        let before_it = unsafe { (before as *const Context).as_ref() };
        match before_it.filter(|context| context.worker.get().is_some()) {
            Some(context) => context.worker.set(self.worker.get()),
            None => leave(),
        }
        events::set_context(before);
    }

    /// Does something with this as the innermost entry. `body` must not unwind.
    #[inline]
    pub(crate) fn around(&self, body: impl FnOnce()) {
        // SAFETY: unset below, with nothing in between that unwinds, and what sets others in there does as this does.
        let before = unsafe { self.set() };
        body();
        events::set_context(before);
    }
}

thread_local! {
    /// The worker that this thread is for good, if it is one.
    static STAYS: Cell<Option<Worker>> = const { Cell::new(None) };
}

/// The worker that this stack stands for.
pub(crate) fn worker() -> Option<Worker> {
    with(|context| context.worker.get()).flatten().or_else(|| STAYS.get())
}

/// The innermost open finish. It does not close before the caller returns.
pub(crate) fn finish() -> Option<NonNull<Finish>> {
    with(|context| context.finish.get()).flatten()
}

/// Is the worker one of `pool`?
pub(crate) fn is_in(pool: &Pool) -> bool {
    worker().is_some_and(|worker| ptr::eq(worker.pool.as_ptr(), pool))
}

/// The number of the worker, if there is one yet.
pub(crate) fn known_index() -> Option<usize> {
    worker()?.index
}

/// Its number, which it may get only now.
#[cold]
pub(crate) fn index() -> Option<usize> {
    let worker = worker()?;
    let index = worker.index.unwrap_or_else(|| worker.pool().next_index());
    with(|context| context.worker.set(Some(Worker { index: Some(index), ..worker })));
    arrive();
    Some(index)
}

/// DagSan hears that the running task is on a worker, if its number is known.
#[inline]
fn arrive() {
    if let Some(name) = worker().and_then(Worker::name) {
        events::worker_begin(name);
    }
}

/// It hears that it is there no longer.
#[inline]
fn leave() {
    if let Some(name) = worker().and_then(Worker::name) {
        events::worker_end(name);
    }
}

/// A task runs in a context of its own. `body` must not unwind.
#[inline]
pub(crate) fn task(context: &Context, body: &mut dyn FnMut()) {
    context.around(|| {
        arrive();
        body();
    });
}

/// The running task goes on on `worker`, until `body` has returned, which must not unwind.
pub(crate) fn on(worker: Option<Worker>, body: &mut dyn FnMut()) {
    leave();
    Context::copy().with_worker(worker).around(|| {
        arrive();
        body();
        leave();
    });
    arrive();
}

/// What holds for what may be on another worker of the same pool, or on the same.
pub(crate) fn elsewhere() -> Context {
    Context::copy().with_worker(worker().map(|worker| Worker { index: None, ..worker }))
}

/// The same, until `body` has returned, which must not unwind.
pub(crate) fn stolen(body: &mut dyn FnMut()) {
    on(worker().map(|worker| Worker { index: None, ..worker }), body);
}

/// The same on another thread, which stands for the one that the finish around is of.
pub(crate) fn offered(context: &Context, body: &mut dyn FnMut()) {
    // SAFETY: it is open as long as the thread waits that has offered this.
    let thread = context.finish.get().map(|finish| unsafe { finish.as_ref() }.thread());
    let before = STANDS_FOR.replace(thread);
    context.around(|| {
        arrive();
        body();
        leave();
    });
    STANDS_FOR.set(before);
}

thread_local! {
    /// The thread that this one stands for, if it is another.
    static STANDS_FOR: Cell<Option<ThreadId>> = const { Cell::new(None) };
}

/// The thread that runs this, as far as the program can tell.
pub(crate) fn thread() -> ThreadId {
    STANDS_FOR.get().unwrap_or_else(|| thread::current().id())
}

/// This thread is the first worker of `pool` for good, as in rayon. The pool then lives for good too.
pub(crate) fn stay(pool: &PoolRef) {
    let pool = ManuallyDrop::new(pool.clone());
    STAYS.set(Some(Worker::number(&pool, 0)));
}

/// One level deeper, while it lives.
pub(crate) struct Deeper {
    /// In a place of its own, since this may be moved.
    context: Box<Context>,
    before: usize,
}

impl Deeper {
    pub(crate) fn enter() -> Deeper {
        let context = Box::new(Context::copy());
        context.depth.set(context.depth.get() + 1);
        // SAFETY: boxed, and unset when this is dropped, which is when the call that has it returns.
        let before = unsafe { context.set() };
        Deeper { context, before }
    }

    /// How many levels there are.
    pub(crate) fn depth(&self) -> u32 {
        self.context.depth.get()
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        events::set_context(self.before);
    }
}
