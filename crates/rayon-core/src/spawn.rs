//! [`spawn`]: jobs that nobody joins.

use std::panic::Location;

use crate::finish::{Call, Order, Request};
use crate::pool::{Pool, PoolRef};
use crate::unwind::halt;

/// Spawns a job that nobody waits for. If it panics, the pool's handler hears of it, or the process ends.
#[track_caller]
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_in(Pool::current(), Order::Lifo, func);
}

/// The same, with jobs that are run in the order in which they were spawned.
#[track_caller]
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_in(Pool::current(), Order::Fifo, func);
}

#[track_caller]
pub(crate) fn spawn_in<F: FnOnce() + Send + 'static>(pool: PoolRef, order: Order, func: F) {
    let work = Box::new(move || halt(func));
    let request = Request { work, order, pool, index: None, place: Location::caller(), detached: true };
    Call::begin(false).spawn(request);
}
