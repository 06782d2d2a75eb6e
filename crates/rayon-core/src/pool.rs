//! Thread pools, which have no threads: what they are asked to run, the caller runs.
//!
//! A pool is a number of threads to tell, and handlers to call. `current_thread_index` is handed out in turn (`local.rs`),
//! but for broadcasts, which are one task per thread that there would be.
//!
//! Handlers for the start and the end of threads are called for every thread that there would be, on the thread that
//! builds the pool and on the one that drops it.

use std::error::Error;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, Range};
use std::panic::{Location, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::broadcast::{self, BroadcastContext};
use crate::builder::{ThreadPoolBuildError, ThreadPoolBuilder};
use crate::crew::Crew;
use crate::events::{self, Dependence, Place};
use crate::finish::{Call, Order};
use crate::local::{self, Worker};
use crate::scope::{self, Scope, ScopeFifo, scope, scope_fifo};
use crate::spawn;
use crate::unwind::{AbortOnDrop, Payload, halt};

/// What a pool calls.
#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) panic: Option<Box<dyn Fn(Payload) + Send + Sync>>,
    pub(crate) start: Option<Box<dyn Fn(usize) + Send + Sync>>,
    pub(crate) exit: Option<Box<dyn Fn(usize) + Send + Sync>>,
}

impl Handlers {
    /// A job that nobody joins has panicked, or a handler has: the handler of panics hears of it, or the process ends.
    #[cold]
    pub(crate) fn panicked(&self, payload: Payload) {
        let guard = AbortOnDrop;
        if let Some(handler) = &self.panic {
            handler(payload);
            mem::forget(guard);
        }
    }

    /// A thread starts.
    pub(crate) fn start(&self, index: usize) {
        self.call(self.start.as_deref(), index);
    }

    /// A thread ends.
    pub(crate) fn exit(&self, index: usize) {
        self.call(self.exit.as_deref(), index);
    }

    fn call(&self, handler: Option<&(dyn Fn(usize) + Send + Sync)>, index: usize) {
        if let Some(Err(payload)) = handler.map(|handler| halt(|| handler(index))) {
            self.panicked(payload);
        }
    }
}

/// What is behind a [`ThreadPool`].
pub(crate) struct Pool {
    /// The threads that there would be; without the first, if that is the one that has built the pool.
    threads: Range<usize>,
    /// The name of its first worker; the others follow.
    first: u64,
    /// Whose turn it is to be asked for.
    turn: AtomicUsize,
    pub(crate) handlers: Arc<Handlers>,
    /// Its threads, if the program has started some. They call the handlers themselves.
    crew: Crew,
    /// Promises of jobs that nobody has joined, set at their ends. The pool outlives its jobs, and so comes after them.
    ended: Mutex<Vec<u64>>,
}

/// A handle to a pool. To count them is not the program's business, and so done in this crate, which has no hooks.
pub(crate) struct PoolRef(ManuallyDrop<Arc<Pool>>);

impl PoolRef {
    fn new(pool: Pool) -> PoolRef {
        PoolRef(ManuallyDrop::new(Arc::new(pool)))
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Pool> {
        // SAFETY: no `Arc` is null.
        unsafe { NonNull::new_unchecked(Arc::as_ptr(&self.0).cast_mut()) }
    }

    /// One more handle.
    ///
    /// # Safety
    /// The pointer comes from [`PoolRef::as_ptr`], and the pool lives.
    pub(crate) unsafe fn from_ptr(pool: NonNull<Pool>) -> PoolRef {
        // SAFETY: the caller's promise.
        let pool = unsafe {
            Arc::increment_strong_count(pool.as_ptr());
            Arc::from_raw(pool.as_ptr())
        };
        PoolRef(ManuallyDrop::new(pool))
    }
}

impl Clone for PoolRef {
    #[inline(never)]
    fn clone(&self) -> PoolRef {
        PoolRef(self.0.clone())
    }
}

impl Drop for PoolRef {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: nobody uses it again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl Deref for PoolRef {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.0
    }
}

static GLOBAL: OnceLock<PoolRef> = OnceLock::new();

impl Pool {
    /// A pool, whose threads have been started if there are any.
    pub(crate) fn start(threads: Range<usize>, handlers: Arc<Handlers>, crew: Crew) -> PoolRef {
        static NAMES: AtomicU64 = AtomicU64::new(0);
        // Relaxed: each is a number that nobody else gets, and says nothing about other memory.
        let first = NAMES.fetch_add(threads.end as u64, Relaxed);
        let turn = AtomicUsize::new(0);
        let pool = PoolRef::new(Pool { threads, first, turn, handlers, crew, ended: Mutex::default() });
        // Nobody sits down for nothing: the global pool is built in the middle of things.
        if pool.crew.is_empty() && pool.handlers.start.is_some() {
            for index in pool.threads.clone() {
                let worker = Worker::number(&pool, index);
                local::on(Some(worker), &mut || pool.handlers.start(index));
            }
        }
        pool
    }

    /// The global pool, built if there is none.
    pub(crate) fn global() -> &'static PoolRef {
        // A builder that nothing was asked of cannot fail.
        let build = || ThreadPoolBuilder::new().into_pool().unwrap_or_else(|error| unreachable!("{error}"));
        GLOBAL.get_or_init(build)
    }

    /// Builds the global pool, unless there is one.
    pub(crate) fn set_global(
        build: impl FnOnce() -> Result<PoolRef, ThreadPoolBuildError>,
    ) -> Result<(), ThreadPoolBuildError> {
        if GLOBAL.get().is_some() {
            return Err(ThreadPoolBuildError::global_exists());
        }
        GLOBAL.set(build()?).map_err(|_| ThreadPoolBuildError::global_exists())
    }

    /// The pool that this thread is in, or the global one.
    pub(crate) fn current() -> PoolRef {
        local::worker().map_or_else(|| Pool::global().clone(), Worker::pool)
    }

    /// Is this thread one of the pool's?
    pub(crate) fn is_current(&self) -> bool {
        local::is_in(self)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.end
    }

    /// The name of its first worker.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number of a worker, of each in turn.
    pub(crate) fn next_index(&self) -> usize {
        // Relaxed: nothing else is read by way of it.
        self.turn.fetch_add(1, Relaxed) % self.threads()
    }

    /// Something of its own to tell pools apart by.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// A job that nobody joins has ended.
    pub(crate) fn job_ended(&self) {
        let global = GLOBAL.get().is_some_and(|global| std::ptr::eq(&**global, self));
        if !global {
            let promise = events::promise_new();
            events::promise_set(promise);
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            events::books(|| ended.push(promise));
        }
    }
}

impl PoolRef {
    /// Does something in the pool. It must not unwind.
    #[inline(never)]
    pub(crate) fn run(&self, body: &mut (dyn FnMut() + Send)) {
        if self.is_current() {
            return body();
        }
        let mut body = || local::on(Some(Worker::of(self)), body);
        let outside = local::finish().is_none() && !events::is_checked();
        if outside && !self.crew.is_empty() {
            self.crew.run(&mut body);
        } else {
            body();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for promise in self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            events::promise_get(promise);
        }
        if self.crew.is_empty() {
            for index in self.threads.clone() {
                self.handlers.exit(index);
            }
        }
    }
}

/// A pool of threads, in name.
pub struct ThreadPool {
    pub(crate) pool: PoolRef,
}

impl ThreadPool {
    /// Builds a pool.
    #[deprecated(note = "Use `ThreadPoolBuilder::build`")]
    #[allow(deprecated)]
    pub fn new(configuration: crate::Configuration) -> Result<ThreadPool, Box<dyn Error>> {
        configuration.build()
    }

    /// Runs `op` in the pool.
    #[cfg_attr(dagsan, sanitize(thread = "off"))]
    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        let (mut op, mut result) = (Some(op), None);
        self.pool.run(&mut || {
            let _call = Call::begin(false);
            result = op.take().map(halt);
        });
        match result {
            Some(Ok(value)) => value,
            Some(Err(payload)) => resume_unwind(payload),
            None => unreachable!("a pool runs what it is given"),
        }
    }

    /// Runs `op` once for every thread.
    #[track_caller]
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        broadcast::broadcast_in(&self.pool, op)
    }

    /// How many threads it was asked to have.
    pub fn current_num_threads(&self) -> usize {
        self.pool.threads()
    }

    /// The number of this thread, if it is one of the pool's. What a task does with it depends on the schedule.
    #[track_caller]
    pub fn current_thread_index(&self) -> Option<usize> {
        self.pool.is_current().then(|| ask(Location::caller())).flatten()
    }

    /// Do jobs wait for this thread, if it is one of the pool's?
    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        self.pool.is_current().then(has_pending_tasks)
    }

    /// [`join`](crate::join()) in the pool.
    pub fn join<A, B, RA, RB>(&self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| crate::join(oper_a, oper_b))
    }

    /// [`scope`](crate::scope()) in the pool.
    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope(op))
    }

    /// [`scope_fifo`](crate::scope_fifo()) in the pool.
    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| scope_fifo(op))
    }

    /// A scope whose body stays with the caller, and whose jobs run in the pool.
    #[track_caller]
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        scope::in_place(self.pool.clone(), op)
    }

    /// The same, with jobs run in the order in which they were spawned.
    #[track_caller]
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        scope::in_place_fifo(self.pool.clone(), op)
    }

    /// [`spawn`](crate::spawn()) in the pool.
    #[track_caller]
    pub fn spawn<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        spawn::spawn_in(self.pool.clone(), Order::Lifo, op);
    }

    /// [`spawn_fifo`](crate::spawn_fifo()) in the pool.
    #[track_caller]
    pub fn spawn_fifo<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        spawn::spawn_in(self.pool.clone(), Order::Fifo, op);
    }

    /// Spawns `op` once for every thread.
    #[track_caller]
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        broadcast::spawn_broadcast_in(&self.pool, op);
    }

    /// Runs a job that waits, if this thread is one of the pool's.
    pub fn yield_now(&self) -> Option<Yield> {
        self.pool.is_current().then(run_pending_task)
    }

    /// The same: there is no other thread to take a job from.
    pub fn yield_local(&self) -> Option<Yield> {
        self.yield_now()
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("num_threads", &self.current_num_threads())
            .field("id", &self.pool.id())
            .finish()
    }
}

/// As many threads as a pool can have: as many as in rayon.
pub fn max_num_threads() -> usize {
    u16::MAX.into()
}

/// How many threads the current pool was asked to have.
pub fn current_num_threads() -> usize {
    Pool::current().threads()
}

/// The number of this thread in its pool. What a task does with it depends on the schedule.
#[track_caller]
pub fn current_thread_index() -> Option<usize> {
    ask(Location::caller())
}

/// The number of this thread. DagSan hears that a task asks for it.
fn ask(place: Place) -> Option<usize> {
    local::worker()?;
    let bridge = place.file().ends_with("par_bridge.rs");
    events::schedule_dependent(place, if bridge { Dependence::Bridge } else { Dependence::Worker });
    // A par_bridge wants to know whether it is inside of itself, and on one thread it is.
    if bridge { Some(local::known_index().unwrap_or(0)) } else { local::index() }
}

/// Do jobs wait for this thread, if it is in a pool?
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    local::worker().map(|_| has_pending_tasks())
}

/// Runs a job that waits, if this thread is in a pool.
pub fn yield_now() -> Option<Yield> {
    local::worker().map(|_| run_pending_task())
}

/// The same: there is no other thread to take a job from.
pub fn yield_local() -> Option<Yield> {
    yield_now()
}

/// What a yield has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// A job was run.
    Executed,
    /// None waits.
    Idle,
}

fn has_pending_tasks() -> bool {
    // SAFETY: it is the innermost open finish of this stack, which does not close meanwhile.
    local::finish().is_some_and(|finish| unsafe { finish.as_ref() }.has_jobs())
}

fn run_pending_task() -> Yield {
    // SAFETY: as above.
    let ran = local::finish().is_some_and(|finish| unsafe { finish.as_ref() }.run_any());
    if ran { Yield::Executed } else { Yield::Idle }
}
