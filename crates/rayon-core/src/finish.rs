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
//! A job becomes a task of the finish where it is spawned, and this task goes on when the job is run, where the body of
//! the scope had its frames:
//!
//! ```text
//!   scope ─── finish begins ── body ──┬───────┬──► ends                                    finish ends ─►
//!                                     ├─ job  │    ....... goes on ──► ends
//!                                     │       ├─ job       ....................... goes on ──► ends
//! ```
//!
//! A job for a finish that is not the innermost one, of rayon's or of dagsan-task's, would be joined by the inner one. It
//! becomes a task that no scope joins, and sets a promise at its end, which its own finish gets.
//!
//! The outermost call of a stack has a finish as well, without a scope, for jobs that nobody joins. It is not
//! announced: only the end of the program joins them. A detached job that is spawned inside of a scope waits with the
//! jobs of the scope, as it would on the worker's deque, but is a task that no scope joins.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use crate::events::{self, Kind, Place, Task};
use crate::local::{self, Context, Worker};
use crate::pool::{Pool, PoolRef};
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
    /// Its task, and who joins that. None: to be started when it is run, which is where it is spawned, or it was spawned on
    /// another thread.
    task: Option<(Task, Kind)>,
}

/// See the module's documentation.
pub(crate) struct Finish {
    /// Is it announced?
    scope: bool,
    /// By which number DagSan knows it, while it is open.
    number: Cell<u32>,
    thread: ThreadId,
    /// The finish around it, of the same thread.
    outer: Option<NonNull<Finish>>,
    /// What holds while it is open, and what to put back.
    context: Context,
    before: Cell<usize>,
    queue: Mutex<Queue>,
    /// Promises that jobs which another finish would have joined have set at their ends.
    strays: Mutex<Vec<u64>>,
    panic: Mutex<Option<Payload>>,
}

// SAFETY: `number` to `before` are used on the thread of the finish only; the rest may be shared.
unsafe impl Send for Finish {}
// SAFETY: as above.
unsafe impl Sync for Finish {}

impl Finish {
    fn new(scope: bool) -> Finish {
        Finish {
            scope,
            number: Cell::new(0),
            thread: local::thread(),
            outer: local::finish(),
            context: Context::copy(),
            before: Cell::new(0),
            queue: Mutex::default(),
            strays: Mutex::default(),
            panic: Mutex::default(),
        }
    }

    /// That of a scope, still closed.
    pub(crate) fn of_scope() -> Finish {
        Finish::new(true)
    }

    /// Opens it. It must not move until it is closed.
    pub(crate) fn open(&self) {
        events::in_order();
        if self.scope {
            self.number.set(tasks::finish_begin());
        }
        self.context.contain(self);
        // SAFETY: the finish does not move until it is closed. What it is opened by closes it, on the same stack.
        self.before.set(unsafe { self.context.set() });
    }

    /// Runs the jobs that wait, and those that these spawn; then closes it.
    pub(crate) fn close(&self) {
        while self.run_one() {}
        for promise in self.strays.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            events::promise_get(promise);
        }
        self.context.unset(self.before.get());
        if self.scope {
            tasks::finish_end();
        }
    }

    /// The thread that runs its jobs.
    pub(crate) fn thread(&self) -> ThreadId {
        self.thread
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a job wait, here or further out?
    pub(crate) fn has_jobs(&self) -> bool {
        events::in_order();
        // SAFETY: the finishes around an open one are open, so they live.
        !self.queue().turns.is_empty() || self.outer.is_some_and(|outer| unsafe { outer.as_ref() }.has_jobs())
    }

    /// Runs the next job, if one waits.
    fn run_one(&self) -> bool {
        events::in_order();
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
        events::in_order();
        if self.thread != local::thread() {
            return events::books(|| self.queue().push(Job { request, task: None }));
        }
        if !request.pool.is_current() {
            return self.run(Job { request, task: None });
        }
        let kind = self.kind(&request);
        let task = tasks::start(kind, request.place);
        events::books(|| self.queue().push(Job { request, task: Some((task, kind)) }));
    }

    /// Who joins the task of a job, if the running task starts it.
    fn kind(&self, request: &Request) -> Kind {
        if request.detached {
            Kind::Detached
        } else if events::innermost_finish() == self.number.get() {
            Kind::Async
        } else {
            Kind::Outer
        }
    }

    fn run(&self, job: Job) {
        let Job { request, task } = job;
        let kind = task.map_or_else(|| self.kind(&request), |(_, kind)| kind);
        let Request { work, pool, index, place, detached, .. } = request;
        let worker = index.map_or_else(|| Worker::of(&pool), |index| Worker::number(&pool, index));
        let context = Context::copy().with_worker(Some(worker));
        context.contain(self);
        let mut work = Some(work);
        let mut body = || {
            match work.take().map_or(Ok(()), |work| work()) {
                Err(payload) if detached => pool.handlers.panicked(payload),
                Err(payload) => self.panicked(payload),
                Ok(()) => {}
            }
            if detached {
                pool.job_ended();
            }
            if kind == Kind::Outer {
                let ended = events::promise_here();
                let mut strays = self.strays.lock().unwrap_or_else(PoisonError::into_inner);
                events::books(|| strays.push(ended));
            }
        };
        match task {
            Some((task, _)) => tasks::go_on(task, &context, &mut body),
            None => tasks::run(kind, place, &context, &mut body),
        }
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

/// A call of rayon's, while it lives. The outermost of a stack runs, at its end, the jobs that nobody joins.
pub(crate) struct Call(Option<Box<Finish>>);

impl Call {
    /// The call begins. If it `sits`, it is on a worker, one of the global pool if there is none.
    #[inline(never)]
    pub(crate) fn begin(sits: bool) -> Call {
        let stands = sits && local::worker().is_none();
        if local::finish().is_some() && !stands { Call(None) } else { Call::outermost(stands) }
    }

    #[cold]
    fn outermost(stands: bool) -> Call {
        let mut finish = Box::new(Finish::new(false));
        if stands {
            finish.context = Context::copy().with_worker(Some(Worker::of(Pool::global())));
        }
        finish.open();
        Call(Some(finish))
    }

    /// Spawns a job that nobody joins, from inside of this call.
    pub(crate) fn spawn(&self, request: Request) {
        if let Some(finish) = local::finish() {
            // SAFETY: it is the innermost open finish of this stack, which does not close meanwhile.
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
