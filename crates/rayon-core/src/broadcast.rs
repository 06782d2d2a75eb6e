//! [`broadcast`]: one task for every thread that the pool would have.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{Location, resume_unwind};
use std::sync::Arc;

use crate::events::Kind;
use crate::finish::{Call, Order, Request};
use crate::local::{self, Context, Worker};
use crate::pool::{Pool, PoolRef};
use crate::tasks;
use crate::unwind::{Payload, bind, halt};

/// Runs `op` once for every thread of the current pool, and returns the results in the order of the threads.
///
/// If one panics, the others are still run. Then `broadcast` goes on with the first panic.
#[track_caller]
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    broadcast_in(&Pool::current(), op)
}

/// Spawns `op` once for every thread of the current pool; nobody waits for it.
#[track_caller]
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    spawn_broadcast_in(&Pool::current(), op);
}

#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn broadcast_in<OP, R>(pool: &PoolRef, op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R,
{
    let place = Location::caller();
    let call = Call::begin(false);
    // Each task has a place of its own for its result.
    let mut results: Vec<Option<Result<R, Payload>>> = (0..pool.threads()).map(|_| None).collect();
    tasks::frame_begin();
    for (index, result) in results.iter_mut().enumerate() {
        let mut body = || *result = Some(halt(bind(&op, BroadcastContext::new(pool, index))));
        let context = Context::copy().with_worker(Some(Worker::number(pool, index)));
        tasks::run(Kind::Spawn, place, &context, &mut body);
    }
    tasks::frame_end();
    drop(call);
    results
        .into_iter()
        .flatten()
        .collect::<Result<Vec<R>, Payload>>()
        .unwrap_or_else(|payload| resume_unwind(payload))
}

#[track_caller]
pub(crate) fn spawn_broadcast_in<OP>(pool: &PoolRef, op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    let place = Location::caller();
    let call = Call::begin(false);
    let op = Arc::new(op);
    for index in 0..pool.threads() {
        let op = Arc::clone(&op);
        let work = Box::new(move || halt(|| BroadcastContext::with(|context| op(context))));
        call.spawn(Request {
            work,
            order: Order::Fifo,
            pool: pool.clone(),
            index: Some(index),
            place,
            detached: true,
        });
    }
}

/// What a broadcast closure learns about the thread that runs it.
pub struct BroadcastContext<'a> {
    pool: &'a Pool,
    index: usize,
    /// Neither `Send` nor `Sync`.
    marker: PhantomData<&'a mut dyn Fn()>,
}

impl<'a> BroadcastContext<'a> {
    /// That of the worker that this thread stands for, while `body` runs.
    pub(crate) fn with<R>(body: impl FnOnce(BroadcastContext<'_>) -> R) -> R {
        let pool = Pool::current();
        body(BroadcastContext::new(&pool, local::known_index().unwrap_or(0)))
    }

    pub(crate) fn new(pool: &'a Pool, index: usize) -> BroadcastContext<'a> {
        BroadcastContext { pool, index, marker: PhantomData }
    }

    /// The number of the thread.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many there are.
    #[inline]
    pub fn num_threads(&self) -> usize {
        self.pool.threads()
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastContext")
            .field("index", &self.index())
            .field("num_threads", &self.num_threads())
            .field("pool_id", &self.pool.id())
            .finish()
    }
}
