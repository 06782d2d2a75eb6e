//! Finish and async: [`finish`], [`Scope::spawn`], [`Scope::future`].
//!
//! As in X10 and Habanero (papers 003 and 004), a task belongs to the innermost finish around the code that starts it.
//! The scope is the permission to start tasks that borrow for `'scope`, not the choice of who joins them: through the
//! scope of an outer finish, an inner one may be given tasks too, and joins them all the same.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::Location;
use std::ptr::{self, NonNull};

use crate::call::{call_with, catch_with};
use crate::events::Kind;
use crate::executor::{self, By, Started};
use crate::future::{Completion, Future};
use crate::job::Job;
use crate::join::{self, Join};
use crate::latch::Latch;
use crate::parallel;

/// Runs `body`, and returns when all tasks have ended that were started in it: by `body`, by tasks that it has started,
/// and so on.
///
/// If `body` or a task panics, the others are still run to their end. Then `finish` goes on with the first panic.
///
/// ```
/// let mut halves = [0, 0];
/// let (left, right) = halves.split_at_mut(1);
/// dagsan_task::finish(|scope| {
///     scope.spawn(|_| left[0] = 1);
///     scope.spawn(|_| right[0] = 2);
/// });
/// assert_eq!(halves, [1, 2]);
/// ```
#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub fn finish<'scope, R>(body: impl FnOnce(&Scope<'scope>) -> R) -> R {
    let mut place = MaybeUninit::uninit();
    // SAFETY: `place` is not moved, and `finish_end` is called below; nothing in between unwinds, since what `body` does
    // is caught.
    let join = unsafe { executor::finish_begin(&mut place) };
    let result = match catch_with(body, Scope::of(join)) {
        Ok(result) => Some(result),
        Err(payload) => {
            executor::panicked(join, payload);
            None
        }
    };
    let panic = executor::finish_end(join, Location::caller());
    join::unwrap(result, panic)
}

/// A finish that is open, through which tasks are started. They may borrow what lives longer than `'scope`.
///
/// A task gets a scope of its own as its argument. Like everything in this crate that is about the present task, a
/// scope cannot be given to other tasks or threads.
///
/// ```compile_fail,E0277
/// dagsan_task::finish(|scope| scope.spawn(|_| scope.spawn(|_| {})));
/// ```
///
/// Nor can tasks borrow what dies before the finish ends:
///
/// ```compile_fail,E0373
/// dagsan_task::finish(|scope| {
///     let local = 1;
///     scope.spawn(|_| assert_eq!(local, 1));
/// });
/// ```
#[repr(transparent)]
pub struct Scope<'scope> {
    finish: Join,
    /// Invariant: a scope may not be taken for one with another lifetime. Neither `Send` nor `Sync`, because of the
    /// join.
    marker: PhantomData<Cell<&'scope mut ()>>,
}

impl<'scope> Scope<'scope> {
    fn of(finish: &Join) -> &Scope<'scope> {
        // SAFETY: a scope is a join, by `repr(transparent)`.
        unsafe { &*ptr::from_ref(finish).cast::<Scope<'scope>>() }
    }

    /// Starts a task, which the innermost finish joins (an *async*). With one worker it runs at once, until it ends or must
    /// wait; with more, when one of them has nothing else to do.
    ///
    /// # Panics
    /// In an [isolated](crate::isolated()) section, or if there is no stack for the task.
    #[track_caller]
    #[cfg_attr(dagsan, sanitize(thread = "off"))]
    pub fn spawn(&self, body: impl FnOnce(&Scope<'scope>) + Send + 'scope) {
        self.start(Kind::Async, None, body);
    }

    /// Starts a task with a result, for which any number of tasks can wait with [`Future::get`]. The innermost finish
    /// joins it too. It runs as a task of [`Scope::spawn`] does.
    ///
    /// ```
    /// let total = dagsan_task::finish(|scope| {
    ///     let left = scope.future(|_| 20);
    ///     let right = scope.future(|_| 22);
    ///     left.get() + right.get()
    /// });
    /// assert_eq!(total, 42);
    /// ```
    ///
    /// # Panics
    /// As [`Scope::spawn`].
    #[track_caller]
    #[cfg_attr(dagsan, sanitize(thread = "off"))]
    pub fn future<T: Send + Sync + 'scope>(
        &self,
        body: impl FnOnce(&Scope<'scope>) -> T + Send + 'scope,
    ) -> Future<T> {
        let future = Future::new(Location::caller());
        let completion = Completion::of(&future);
        self.start(Kind::Future, Some(future.latch()), move |scope| {
            completion.complete(call_with(body, scope));
        });
        future
    }

    #[track_caller]
    #[cfg_attr(dagsan, sanitize(thread = "off"))]
    fn start<F: FnOnce(&Scope<'scope>)>(&self, kind: Kind, latch: Option<&Latch>, body: F) {
        #[cfg_attr(dagsan, sanitize(thread = "off"))]
        unsafe fn enter<'scope, F: FnOnce(&Scope<'scope>)>(from: *mut (), finish: Option<NonNull<Join>>) {
            let mut body = MaybeUninit::<F>::uninit();
            // SAFETY: `from` is the parent's, good while it is in `executor::start`, that is, now. The parent treats
            // the body as moved out of it from now on, so this is the only copy.
            let body = unsafe {
                executor::move_bytes(from.cast(), body.as_mut_ptr().cast(), size_of::<F>());
                body.assume_init()
            };
            let Some(finish) = finish else { unreachable!("a scope is that of a finish") };
            // SAFETY: open until this task has ended.
            call_with(body, Scope::of(unsafe { finish.as_ref() }));
        }

        if cfg!(not(dagsan)) && parallel::is_parallel() {
            return self.hand_in(body);
        }
        let mut body = ManuallyDrop::new(body);
        let by = By::Finish(&self.finish);
        // SAFETY: `enter::<F>` takes the `F` that it is given. What the body borrows lives for `'scope`, which contains
        // the call of `finish` that made this scope; the task is joined by that finish, or by one inside it: the
        // executor checks that.
        let started = unsafe {
            executor::start(kind, Location::caller(), by, latch, enter::<F>, (&raw mut body).cast())
        };
        match started {
            Ok(Started::Ended | Started::Panicked | Started::Waits(_)) => {}
            Err(refused) => {
                // SAFETY: a refused task has not been entered, so its body is still here.
                unsafe { ManuallyDrop::drop(&mut body) };
                panic!("{refused}");
            }
        }
    }
    /// Starts a task that any worker may run.
    #[track_caller]
    fn hand_in<F: FnOnce(&Scope<'scope>)>(&self, body: F) {
        /// A job and its body, in a box.
        #[repr(C)]
        struct Boxed<F> {
            job: Job,
            body: F,
        }

        unsafe fn enter<'scope, F: FnOnce(&Scope<'scope>)>(job: *mut (), finish: Option<NonNull<Join>>) {
            // SAFETY: a job of this type from below, entered once.
            let Boxed { body, .. } = *unsafe { Box::from_raw(job.cast::<Boxed<F>>()) };
            let Some(finish) = finish else { unreachable!("a scope is that of a finish") };
            // SAFETY: open until this task has ended.
            body(Scope::of(unsafe { finish.as_ref() }));
        }

        unsafe fn discard<F>(job: *mut ()) {
            // SAFETY: a job of this type from below, which was not entered.
            drop(unsafe { Box::from_raw(job.cast::<Boxed<F>>()) });
        }

        let job = Job::new(Location::caller(), enter::<F>, discard::<F>);
        let job = NonNull::from(Box::leak(Box::new(Boxed { job, body }))).cast::<Job>();
        // SAFETY: `Boxed` begins with its job. The body is `Send`: `spawn` and `future` ask for it. For what it borrows see
        // `start`.
        if let Err(refused) = unsafe { parallel::submit(By::Finish(&self.finish), job) } {
            // SAFETY: a refused job is ours.
            unsafe { discard::<F>(job.as_ptr().cast()) };
            panic!("{refused}");
        }
    }
}
