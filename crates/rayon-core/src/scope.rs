//! [`scope`]: a finish whose jobs are tasks; see `finish.rs`. Its body is a part of the task that calls.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{Location, resume_unwind};
use std::sync::Arc;

use crate::broadcast::BroadcastContext;
use crate::events::Place;
use crate::finish::{Call, Finish, Order, Request, Work};
use crate::pool::{Pool, PoolRef};
use crate::unwind::{Payload, bind, halt};

/// What is common to both kinds of scopes.
struct Base<'scope> {
    finish: Finish,
    /// That of its jobs.
    order: Order,
    pool: PoolRef,
    /// Invariant, `Send` and `Sync`: a scope may not be taken for one with another lifetime.
    #[allow(clippy::type_complexity)]
    marker: PhantomData<Box<dyn FnOnce(&Scope<'scope>) + Send + Sync + 'scope>>,
}

/// A scope, in which jobs are spawned that may borrow what lives longer than `'scope`.
pub struct Scope<'scope>(Base<'scope>);

/// The same, with jobs that are run in the order in which they were spawned.
pub struct ScopeFifo<'scope>(Base<'scope>);

/// Runs `op` in the current pool, and returns when all jobs that were spawned in the scope have ended.
///
/// If `op` or a job panics, the others are still run. Then `scope` goes on with the first panic.
#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    let _call = Call::begin(true);
    in_place(Pool::current(), op)
}

/// The same, with jobs that are run in the order in which they were spawned.
#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    let _call = Call::begin(true);
    in_place_fifo(Pool::current(), op)
}

/// A scope whose body stays with the caller, and whose jobs run in the current pool.
#[track_caller]
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    in_place(Pool::current(), op)
}

/// The same, with jobs that are run in the order in which they were spawned.
#[track_caller]
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    in_place_fifo(Pool::current(), op)
}

#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn in_place<'scope, R>(pool: PoolRef, op: impl FnOnce(&Scope<'scope>) -> R) -> R {
    let call = Call::begin(false);
    let scope = Scope(Base::new(pool, Order::Lifo));
    scope.0.finish.open();
    let result = halt(bind(op, &scope));
    scope.0.finish.close();
    drop(call);
    scope.0.end(result)
}

#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn in_place_fifo<'scope, R>(pool: PoolRef, op: impl FnOnce(&ScopeFifo<'scope>) -> R) -> R {
    let call = Call::begin(false);
    let scope = ScopeFifo(Base::new(pool, Order::Fifo));
    scope.0.finish.open();
    let result = halt(bind(op, &scope));
    scope.0.finish.close();
    drop(call);
    scope.0.end(result)
}

impl<'scope> Base<'scope> {
    fn new(pool: PoolRef, order: Order) -> Base<'scope> {
        Base { finish: Finish::of_scope(), order, pool, marker: PhantomData }
    }

    /// The result of the body, unless there was a panic: the body's, or else the first of a job.
    #[cfg_attr(dagsan, sanitize(thread = "off"))]
    fn end<R>(&self, result: Result<R, Payload>) -> R {
        match (result, self.finish.take_panic()) {
            (Ok(result), None) => result,
            (Err(payload), _) | (_, Some(payload)) => resume_unwind(payload),
        }
    }

    fn spawn<'job>(
        &self,
        index: Option<usize>,
        place: Place,
        work: Box<dyn FnOnce() -> Result<(), Payload> + Send + 'job>,
    ) where
        'scope: 'job,
    {
        // SAFETY: the lifetime alone changes. The finish runs the job before it closes, which is before `scope`
        // returns: within `'scope`, and while the scope that the job points to is there.
        let work =
            unsafe { mem::transmute::<Box<dyn FnOnce() -> Result<(), Payload> + Send + 'job>, Work>(work) };
        let pool = self.pool.clone();
        self.finish.spawn(Request { work, order: self.order, pool, index, place, detached: false });
    }

    /// Spawns a job of `scope`, which this is the inside of, for every thread of the pool.
    fn spawn_broadcast<'job, S: Sync>(
        &'job self,
        scope: &'job S,
        place: Place,
        body: impl Fn(&S, BroadcastContext<'_>) + Send + Sync + 'scope,
    ) where
        'scope: 'job,
    {
        let body = Arc::new(body);
        for index in 0..self.pool.threads() {
            let body = Arc::clone(&body);
            let run = move || body(scope, BroadcastContext::new(&self.pool, index));
            self.spawn(Some(index), place, Box::new(move || halt(run)));
        }
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("pool_id", &self.pool.id()).finish_non_exhaustive()
    }
}

impl<'scope> Scope<'scope> {
    /// Spawns a job.
    #[track_caller]
    pub fn spawn<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        self.0.spawn(None, Location::caller(), Box::new(move || halt(bind(body, self))));
    }

    /// Spawns a job for every thread of the pool.
    #[track_caller]
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        self.0.spawn_broadcast(self, Location::caller(), body);
    }
}

impl<'scope> ScopeFifo<'scope> {
    /// Spawns a job.
    #[track_caller]
    pub fn spawn_fifo<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        self.0.spawn(None, Location::caller(), Box::new(move || halt(bind(body, self))));
    }

    /// Spawns a job for every thread of the pool.
    #[track_caller]
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        self.0.spawn_broadcast(self, Location::caller(), body);
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug("Scope", f)
    }
}

impl fmt::Debug for ScopeFifo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug("ScopeFifo", f)
    }
}
