//! The parallel executor: work stealing. Programs that are checked, and those with one worker, do not use it.
//!
//! ```text
//!   spawn ─► the worker's own deque;  the parent goes on
//!
//!   a task waits ─► is it over?  ──yes──► goes on
//!        ▲             │ no
//!        │             ▼
//!        ├── runs a fiber of its worker that was woken, or the job that came last, or the oldest one of another worker
//!        │             │ none
//!        │             ▼
//!        └── sleeps; the one below it on this worker goes on, which waits too ... the thread itself sleeps with it
//! ```
//!
//! Jobs move between workers until they begin. Then a task has a fiber, which stays with its worker: a task that waits
//! is woken there. What a task borrows, and the join that it points to, is good as in the serial executor: the join's owner does
//! not go on before the count of its tasks is 0.
//!
//! **Who runs on whose thread.** Outermost scopes make a crew (`crew.rs`), whose first worker is the thread itself. The body
//! of a scope stays on its thread, and need not be `Send`. Bodies of tasks go to other threads, and are.

use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

use crate::crew::{Crew, Seat};
use crate::error::{Failed, Refused};
use crate::events::{self, Place};
use crate::executor::{self, By, EXECUTOR, Executor};
use crate::helpers;
use crate::job::{Job, Queued};
use crate::sleepers::{self, Sleeper, SleepingFiber};
use crate::task::Wait;
use crate::workers;

/// How often an idle worker looks for work before it sleeps.
const LOOKS: u32 = 64;

/// A thread's place in a crew.
pub(crate) struct Post {
    crew: Arc<Crew>,
    seat: Seat,
}

/// Something to run.
enum Work {
    Fiber(SleepingFiber),
    Job(Queued),
}

impl Post {
    /// What this worker should do next.
    fn work(&self) -> Option<Work> {
        let Post { crew, seat } = self;
        let ready = || crew.ready(seat.number).map(Work::Fiber);
        ready().or_else(|| seat.deque.pop().or_else(|| crew.steal(seat.number)).map(Work::Job))
    }

    /// Looks for work for a while, without sleeping. Says whether there may be some, or `over` is true.
    fn linger(&self, over: impl Fn() -> bool) -> bool {
        (0..LOOKS).any(|_| {
            let found = self.crew.has_work(self.seat.number) || over();
            if !found {
                thread::yield_now();
            }
            found
        })
    }

    /// The thread sleeps until there may be work, or `over` is true.
    fn sleep(&self, over: impl Fn() -> bool) {
        let bell = &self.crew.bell;
        let ticket = bell.intend();
        if self.crew.has_work(self.seat.number) || over() {
            bell.stay(ticket);
        } else {
            bell.sleep(ticket, || self.crew.last_awake());
        }
    }
}

impl Executor {
    /// Is no scope of this thread open?
    fn is_outside(&self) -> bool {
        self.current.get().is_none() && self.main.finish.get().is_none() && self.main.frame.get().is_none()
    }

    /// A scope is about to be opened. What is wrong with the number of workers is said where the first task starts.
    pub(crate) fn opens(&self) {
        if self.is_outside() {
            // The executor is this thread's own.
            events::stay_here();
            self.parallel.set(workers::wanted().is_ok_and(|workers| workers > 1));
        }
    }

    /// A scope was closed.
    pub(crate) fn closed(&self) {
        if self.parallel.get() && self.is_outside() {
            self.leave_post();
            self.parallel.set(false);
        }
    }

    /// The post of this thread, if it has one.
    fn post(&self) -> Option<&Post> {
        // SAFETY: a post lives from `take_post` to `leave_post`, or in the frame of `serve`; both clear the cell when it
        // ends. Nobody holds a reference then: all tasks of the crew have ended, and the main task is not in `wait`.
        self.post.get().map(|post| unsafe { post.as_ref() })
    }

    /// The post of this thread, which makes a crew if it has none.
    fn take_post(&self) -> Result<&Post, workers::Error> {
        if self.post.get().is_none() {
            let helpers = helpers::take(workers::wanted()? - 1);
            let (crew, seat) = Crew::new(helpers + 1);
            helpers::call(&crew, helpers);
            self.post.set(Some(NonNull::from(Box::leak(Box::new(Post { crew, seat })))));
        }
        let Some(post) = self.post() else { unreachable!("made above") };
        Ok(post)
    }

    /// The outermost scope of this thread has ended, and so have all tasks of its crew.
    fn leave_post(&self) {
        if let Some(post) = self.post.take() {
            // SAFETY: from `Box::leak` in `take_post`, since a thread that helps has no scope outside of tasks. For
            // references see `post`.
            let post = unsafe { Box::from_raw(post.as_ptr()) };
            post.crew.bell.close();
        }
    }

    fn do_work(&self, work: Work) {
        let fiber = match work {
            Work::Fiber(fiber) => fiber.0,
            Work::Job(Queued(job)) => match self.fiber() {
                Ok(fiber) => {
                    // SAFETY: the job lives until its entry is called, and this worker has it alone. A fiber from the pool
                    // was not freed.
                    let (Job { place, finish, spawner, entry, .. }, task) =
                        unsafe { (job.as_ref(), &fiber.as_ref().task) };
                    task.prepare(place, *finish, *spawner, *entry, job.as_ptr().cast());
                    fiber
                }
                // SAFETY: as above, and it will not be entered.
                Err(refused) => return unsafe { discard(job, &refused) },
            },
        };
        self.run(fiber, |_| events::current());
    }

    /// Waits, as a worker of a crew.
    #[cold]
    pub(crate) fn wait_in_crew(&self, wait: Wait, place: Place) -> Result<(), Failed> {
        let Some(post) = self.post() else { return self.wait_long(wait, place) };
        while !wait.is_over() {
            if self.isolated.get() {
                return Err(Failed::Isolated(wait.describe()));
            }
            if let Some(work) = post.work() {
                self.do_work(work);
                continue;
            }
            let fiber = self.current.get();
            if fiber.is_none() && post.linger(|| wait.is_over()) {
                continue;
            }
            let sleeper = Sleeper {
                crew: Arc::clone(&post.crew),
                seat: post.seat.number,
                fiber: fiber.map(SleepingFiber),
                wait,
                place,
                started: self.task().started.get(),
            };
            let Some(key) = sleepers::enter(sleeper) else { break };
            let in_vain = match fiber {
                Some(fiber) => {
                    // SAFETY: the running fiber is not freed.
                    let fiber = unsafe { fiber.as_ref() };
                    fiber.sleep();
                    fiber.task.deadlock.take()
                }
                None => {
                    post.sleep(|| wait.is_over());
                    sleepers::leave(key);
                    post.crew.take_failure(post.seat.number)
                }
            };
            if let Some(report) = in_vain {
                return Err(Failed::Deadlock(report));
            }
        }
        Ok(())
    }
}

/// There is no stack for the task: it counts as one that panics.
///
/// # Safety
/// The job was not entered, and is the caller's.
#[cold]
unsafe fn discard(job: NonNull<Job>, refused: &Refused) {
    // SAFETY: the caller's promise.
    let Job { discard, finish, spawner, .. } = *unsafe { job.as_ref() };
    // SAFETY: as above.
    let outcome = executor::caught(|| unsafe { discard(job.as_ptr().cast()) });
    let payload = outcome.err().unwrap_or_else(|| Box::new(refused.to_string()));
    executor::leave_panic(finish, spawner, payload);
    executor::end_task(finish, spawner);
}

/// A helper works for a crew, until its scope has ended.
pub(crate) fn serve(crew: Arc<Crew>) {
    let Some(seat) = crew.enter() else { return };
    let post = Post { crew, seat };
    EXECUTOR.with(|executor| {
        executor.parallel.set(true);
        executor.post.set(Some(NonNull::from(&post)));
        let over = || post.crew.bell.is_over();
        while !over() {
            match post.work() {
                Some(work) => executor.do_work(work),
                None if post.linger(over) => {}
                None => post.sleep(over),
            }
        }
        executor.post.set(None);
        executor.parallel.set(false);
    });
}

/// Does the present thread run its tasks in parallel?
#[inline(never)]
pub(crate) fn is_parallel() -> bool {
    EXECUTOR.with(|executor| executor.parallel.get())
}

/// Hands a task in, which any worker may run.
///
/// # Safety
/// The job is the first part of what its `entry` takes, and lives until that or `discard` is called, once, on any thread.
/// What the body borrows outlives the join in `by`. A refused job stays the caller's.
#[inline(never)]
pub(crate) unsafe fn submit(by: By<'_>, mut job: NonNull<Job>) -> Result<(), Box<Refused>> {
    EXECUTOR.with(|executor| {
        let spawner = executor.spawner(by)?;
        let finish = executor.task().finish.get();
        let post = executor.take_post().map_err(Refused::from)?;
        for join in [spawner, finish].into_iter().flatten() {
            // SAFETY: open, so it lives; see `executor.rs`.
            let join = unsafe { join.as_ref() };
            join.running.started();
        }
        // SAFETY: the job is the caller's until it is pushed.
        let job_mut = unsafe { job.as_mut() };
        (job_mut.finish, job_mut.spawner) = (finish, spawner);
        post.seat.deque.push(Queued(job));
        post.crew.bell.ring(false);
        Ok(())
    })
}
