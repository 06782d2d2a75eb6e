//! A finish: the jobs of a scope, which wait in a queue until its body has ended, and are then run one after the other.
//!
//! # When jobs run
//!
//! As on a pool with one worker. A job that the worker itself spawns waits until the worker has nothing else to do: the
//! end of the scope's body, or a `yield_now`. A job that comes from outside of the pool runs at once: the caller
//! may well wait for it, on a channel for instance. So a program that works with `RAYON_NUM_THREADS=1` works here.
//!
//! # Which task a job is
//!
//! A job becomes a task of the finish where it is spawned, and this task goes on when the job is run. The body of a scope is
//! a task too. Its frames are forgotten when it ends, which makes room for those of the jobs:
//!
//! ```text
//!   scope ─┬─ finish begins                                           finish ends ─►
//!          ├─► body ──┬───────┬──► ends
//!          │          ├─ job  │    ....... goes on ──► ends
//!          │          │       ├─ job       ....................... goes on ──► ends
//!  stack:  │ body     │       │  │ job                            │ job
//! ```
//!
//! A job for a finish that is not the innermost one cannot become its task where it is spawned: the inner finish would
//! join it. It becomes one when it is run, and gets a promise that was set where it was spawned. If a yield runs it while
//! the inner one is still open, it is a task that no scope joins, and sets a promise that its own finish gets.
//!
//! The outermost call of a thread has a finish as well, without a scope, for jobs that nobody joins. It is not
//! announced: only the end of the program joins them. A detached job that is spawned inside of a scope waits with the
//! jobs of the scope, as it would on the worker's deque, but is a task that no scope joins.

use std::collections::VecDeque;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::events::{self, Kind, Place, Task};
use crate::local::{self, Seat, Worker};
use crate::pool::PoolRef;
use crate::stack::{self, here};
use crate::tasks;
use crate::unwind::{Payload, discard};

/// When a job gets its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Before those that were spawned earlier.
    Lifo,
    /// In the same turn, but the oldest of those that ask for this order is run.
    Fifo,
}

/// The jobs that wait.
#[derive(Default)]
struct Queue {
    /// The last has the next turn. None: the turn of the oldest in `fifo`.
    turns: Vec<Option<Job>>,
    fifo: VecDeque<Job>,
}

impl Queue {
    fn push(&mut self, job: Job) {
        match job.request.order {
            Order::Lifo => self.turns.push(Some(job)),
            Order::Fifo => {
                self.turns.push(None);
                self.fifo.push_back(job);
            }
        }
    }

    fn pop(&mut self) -> Option<Job> {
        self.turns.pop()?.or_else(|| self.fifo.pop_front())
    }
}

/// What the task of a job is.
enum Origin {
    /// A task that has been started.
    Started(Task),
    /// To be started, after the promise.
    After(u64),
    /// To be started; where it was spawned is not checked, or not on this thread.
    Unknown,
}

/// Work that waits. It does not unwind, but tells how it ended.
pub(crate) type Work = Box<dyn FnOnce() -> Result<(), Payload> + Send>;

/// What is asked for.
pub(crate) struct Request {
    pub(crate) work: Work,
    pub(crate) order: Order,
    /// The workers that are to do it, or a certain one of them.
    pub(crate) pool: PoolRef,
    pub(crate) index: Option<usize>,
    pub(crate) place: Place,
    /// Does nobody join it? Then the pool hears of a panic.
    pub(crate) detached: bool,
}

struct Job {
    request: Request,
    origin: Origin,
}

/// See the module's documentation.
pub(crate) struct Finish {
    /// Is it announced?
    scope: bool,
    thread: ThreadId,
    /// The finish around it, of the same thread.
    outer: Option<NonNull<Finish>>,
    /// Where the stacks of its jobs begin.
    high: usize,
    queue: Mutex<Queue>,
    /// Promises that jobs which were run inside of an inner finish have set at their ends.
    strays: Mutex<Vec<u64>>,
    panic: Mutex<Option<Payload>>,
}

// SAFETY: `outer` is followed on the thread of the finish only; the rest may be shared.
unsafe impl Send for Finish {}
// SAFETY: as above.
unsafe impl Sync for Finish {}

impl Finish {
    fn new(scope: bool, high: usize) -> Finish {
        Finish {
            scope,
            thread: thread::current().id(),
            outer: local::with(|local| local.finish.get()),
            high,
            queue: Mutex::default(),
            strays: Mutex::default(),
            panic: Mutex::default(),
        }
    }

    /// That of a scope, still closed. [`close`](Finish::close), which runs the jobs, will be called in the frame at `high`.
    pub(crate) fn of_scope(high: usize) -> Finish {
        Finish::new(true, high)
    }

    /// Opens it. It must not move until it is closed.
    pub(crate) fn open(&self) {
        if self.scope {
            tasks::finish_begin();
        }
        local::with(|local| local.finish.set(Some(NonNull::from(self))));
    }

    /// Runs the jobs that wait, and those that these spawn; then closes it.
    pub(crate) fn close(&self) {
        while self.run_one() {}
        for promise in self.strays.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            events::promise_get(promise);
        }
        local::with(|local| local.finish.set(self.outer));
        if self.scope {
            tasks::finish_end();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a job wait, here or further out?
    pub(crate) fn has_jobs(&self) -> bool {
        // SAFETY: the finishes around an open one are open, so they live.
        !self.queue().turns.is_empty() || self.outer.is_some_and(|outer| unsafe { outer.as_ref() }.has_jobs())
    }

    /// Runs the next job, if one waits.
    fn run_one(&self) -> bool {
        // The queue is free again when the job runs.
        let next = self.queue().pop();
        match next {
            Some(job) => {
                self.run(job);
                true
            }
            None => false,
        }
    }

    /// Runs the next job, of this finish or one further out.
    pub(crate) fn run_any(&self) -> bool {
        // SAFETY: as in `has_jobs`.
        self.run_one() || self.outer.is_some_and(|outer| unsafe { outer.as_ref() }.run_any())
    }

    /// Spawns a job. Its work was allocated before; what it holds lives until the finish has closed, and so does the
    /// finish.
    pub(crate) fn spawn(&self, request: Request) {
        let on_thread = self.thread == thread::current().id();
        let innermost = on_thread
            && local::with(|local| local.finish.get()).is_some_and(|top| ptr::eq(top.as_ptr(), self));
        if request.detached {
            tasks::detach();
        }
        let at_once = innermost && !request.pool.is_current();
        let origin = if at_once {
            Origin::Unknown
        } else if innermost {
            Origin::Started(tasks::start(self.kind(&request), request.place, self.high))
        } else if on_thread {
            let promise = events::promise_new();
            events::promise_set(promise);
            Origin::After(promise)
        } else {
            Origin::Unknown
        };
        let job = Job { request, origin };
        if at_once {
            self.run(job);
        } else {
            self.queue().push(job);
        }
    }

    /// Who joins the task of a job. Where no scope is announced, that is the end of the program in any case.
    fn kind(&self, request: &Request) -> Kind {
        if self.scope && request.detached { Kind::Detached } else { Kind::Async }
    }

    fn run(&self, job: Job) {
        let kind = self.kind(&job.request);
        let Job { request: Request { work, pool, index, place, detached, .. }, origin } = job;
        let before = local::with(|local| local.finish.replace(Some(NonNull::from(self))));
        let inside = before.is_some_and(|inner| !ptr::eq(inner.as_ptr(), self));
        let stray = inside && !detached && !matches!(origin, Origin::Started(_));
        let kind = if stray { Kind::Detached } else { kind };
        let mut work = Some(work);
        let mut body = || {
            let worker = index.map_or_else(|| Worker::of(&pool), |index| Worker::number(&pool, index));
            let _seat = Seat::take(Some(worker));
            match work.take().map_or(Ok(()), |work| work()) {
                Err(payload) if detached => pool.handlers.panicked(payload),
                Err(payload) => self.panicked(payload),
                Ok(()) => {}
            }
            if detached {
                pool.job_ended();
            }
            if stray {
                let promise = events::promise_new();
                events::promise_set(promise);
                self.strays.lock().unwrap_or_else(PoisonError::into_inner).push(promise);
            }
        };
        match origin {
            Origin::Started(task) => {
                // A yield may be deeper in the stack than the end of the scope.
                events::set_stack(task, stack::low(), here!());
                tasks::go_on(task, &mut body);
            }
            Origin::Unknown => tasks::run(kind, place, &mut body),
            Origin::After(promise) => tasks::run(kind, place, &mut || {
                events::promise_get(promise);
                body();
            }),
        }
        local::with(|local| local.finish.set(before));
    }

    /// Keeps the first panic.
    #[cold]
    pub(crate) fn panicked(&self, payload: Payload) {
        let mut panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        match *panic {
            None => *panic = Some(payload),
            Some(_) => discard(payload),
        }
    }

    /// The first panic.
    pub(crate) fn take_panic(&self) -> Option<Payload> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A call of rayon's, while it lives. The outermost of a thread runs, at its end, the jobs that nobody joins.
pub(crate) struct Call(Option<Box<Finish>>);

impl Call {
    /// The call begins; it will be dropped in the frame at `high`.
    #[inline(never)]
    pub(crate) fn begin(high: usize) -> Call {
        match local::with(|local| local.finish.get()) {
            Some(_) => Call(None),
            None => Call::outermost(high),
        }
    }

    #[cold]
    fn outermost(high: usize) -> Call {
        local::announce();
        let finish = Box::new(Finish::new(false, high));
        finish.open();
        Call(Some(finish))
    }

    /// Spawns a job that nobody joins, from inside of this call.
    pub(crate) fn spawn(&self, request: Request) {
        if let Some(finish) = local::with(|local| local.finish.get()) {
            // SAFETY: it is the innermost open finish of this thread, which does not close meanwhile.
            unsafe { finish.as_ref() }.spawn(request);
        }
    }
}

impl Drop for Call {
    #[inline(never)]
    fn drop(&mut self) {
        if let Some(finish) = &self.0 {
            finish.close();
        }
    }
}
