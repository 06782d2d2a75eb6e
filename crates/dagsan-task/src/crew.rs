//! The workers of a thread's outermost scope: the thread itself, and helpers.
//!
//! Each has a seat: a deque of jobs, from which the others steal, and an inbox of fibers that were woken. A fiber stays with
//! its worker, so that whoever wakes it puts it there. A thread's crew runs the tasks of that thread and no others:
//! when its outermost scope ends, all of them have ended, and no fiber is left with a helper.
//!
//! **A deadlock** is what the last worker finds who falls asleep: no job, no fiber in an inbox, and of those who sleep
//! (`sleepers.rs`) nobody's wait is over. Then no worker can do anything, ever, unless another thread sets a promise;
//! and a thread does not wait for others. Nobody can wake while the last one looks, since the bell is locked. Other threads
//! can set promises meanwhile: they take the sleeper from the list and put it into its inbox under the list's lock. So
//! lists are looked at first, inboxes afterwards: a sleeper is in one of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_deque::{Steal, Stealer, Worker};

use crate::bell::Bell;
use crate::job::Queued;
use crate::sleepers::{self, Sleepers, SleepingFiber};

/// See the module's documentation.
pub(crate) struct Crew {
    stealers: Box<[Stealer<Queued>]>,
    inboxes: Box<[Inbox]>,
    /// The seats that helpers have not taken.
    free: Mutex<Vec<Seat>>,
    pub(crate) bell: Bell,
}

/// What one worker has.
pub(crate) struct Seat {
    pub(crate) number: usize,
    pub(crate) deque: Worker<Queued>,
}

#[derive(Default)]
struct Inbox {
    /// Is there a fiber? Looked at often, so outside of the lock.
    full: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    ready: VecDeque<SleepingFiber>,
    /// Set if the wait of the worker itself, the main task, is in vain.
    in_vain: Option<Arc<str>>,
}

impl Inbox {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crew {
    /// A crew with that many seats, and the first of them.
    pub(crate) fn new(seats: usize) -> (Arc<Crew>, Seat) {
        let mut free: Vec<Seat> =
            (0..seats).rev().map(|number| Seat { number, deque: Worker::new_lifo() }).collect();
        let stealers = free.iter().rev().map(|seat| seat.deque.stealer()).collect();
        let Some(first) = free.pop() else { unreachable!("a crew has a seat") };
        let inboxes = (0..seats).map(|_| Inbox::default()).collect();
        (Arc::new(Crew { stealers, inboxes, free: Mutex::new(free), bell: Bell::new() }), first)
    }

    /// A seat for a helper, if the scope is still open.
    pub(crate) fn enter(&self) -> Option<Seat> {
        if !self.bell.enter() {
            return None;
        }
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// A fiber of that seat goes on. The caller rings.
    pub(crate) fn deliver(&self, seat: usize, fiber: SleepingFiber) {
        let inbox = &self.inboxes[seat];
        inbox.content().ready.push_back(fiber);
        // Relaxed: a hint. Before its worker sleeps it looks again, after the fence of the bell.
        inbox.full.store(true, Ordering::Relaxed);
    }

    /// The wait of the main task, at that seat, is in vain.
    fn deliver_failure(&self, seat: usize, report: Arc<str>) {
        self.inboxes[seat].content().in_vain = Some(report);
    }

    /// The first fiber in the inbox.
    #[inline]
    pub(crate) fn ready(&self, seat: usize) -> Option<SleepingFiber> {
        let inbox = &self.inboxes[seat];
        // Relaxed: see `deliver`.
        if !inbox.full.load(Ordering::Relaxed) {
            return None;
        }
        let mut content = inbox.content();
        let fiber = content.ready.pop_front();
        inbox.full.store(!content.ready.is_empty(), Ordering::Relaxed);
        fiber
    }

    /// Why the wait of the main task is in vain, if it is.
    pub(crate) fn take_failure(&self, seat: usize) -> Option<Arc<str>> {
        self.inboxes[seat].content().in_vain.take()
    }

    /// A job of another seat.
    pub(crate) fn steal(&self, seat: usize) -> Option<Queued> {
        let (before, after) = self.stealers.split_at(seat);
        for stealer in after.iter().skip(1).chain(before) {
            loop {
                match stealer.steal() {
                    Steal::Success(job) => return Some(job),
                    Steal::Empty => break,
                    Steal::Retry => std::hint::spin_loop(),
                }
            }
        }
        None
    }

    /// Is there something to do for that seat?
    pub(crate) fn has_work(&self, seat: usize) -> bool {
        // Relaxed: see `deliver`.
        self.inboxes[seat].full.load(Ordering::Relaxed) || self.has_jobs()
    }

    fn has_jobs(&self) -> bool {
        self.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    /// All workers are about to sleep. If that is a deadlock, the gets that wait are told, and can go on.
    pub(crate) fn last_awake(self: &Arc<Crew>) -> bool {
        if self.has_jobs() {
            return false;
        }
        let sleepers = sleepers::of(self);
        let woken = || self.inboxes.iter().any(|inbox| !inbox.content().ready.is_empty());
        let Some(report) = sleepers.filter(|_| !woken()).and_then(Sleepers::report) else {
            return false;
        };
        sleepers::fail(self, &report, |seat| self.deliver_failure(seat, report.clone()));
        true
    }
}
