//! Finish and async: [`finish`], [`Scope::spawn`], [`Scope::future`].
//!
//! As in X10 and Habanero (papers 003 and 004), a task belongs to the innermost finish around the code that starts it.
//! The scope is the permission to start tasks that borrow for `'scope`, not the choice of who joins them: through the
//! scope of an outer finish, an inner one may be given tasks too, and joins them all the same.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use crate::events::Kind;
use crate::executor::{self, By, Started};
use crate::future::{Completion, Future};
use crate::join::Join;
use crate::latch::Latch;

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
pub fn finish<'scope, R>(body: impl FnOnce(&Scope<'scope>) -> R) -> R {
    let join = Join::default();
    // SAFETY: `join` is not moved, and `finish_end` is called below; nothing in between unwinds, since what `body` does
    // is caught.
    unsafe { executor::finish_begin(&join) };
    let scope = Scope { finish: &raw const join, marker: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let result = result.map_err(|payload| join.panicked(payload)).ok();
    executor::finish_end(&join, Location::caller());
    join.unwrap(result)
}

/// A finish that is open, through which tasks are started. They may borrow what lives longer than `'scope`.
///
/// A task gets a scope of its own as its argument. Like everything in this crate that is about the present task, a
/// scope cannot be given to other tasks or threads.
///
/// ```compile_fail
/// dagsan_task::finish(|scope| scope.spawn(|_| scope.spawn(|_| {})));
/// ```
///
/// Nor can tasks borrow what dies before the finish ends:
///
/// ```compile_fail
/// dagsan_task::finish(|scope| {
///     let local = 1;
///     scope.spawn(|_| assert_eq!(local, 1));
/// });
/// ```
pub struct Scope<'scope> {
    finish: *const Join,
    /// Invariant: a scope may not be taken for one with another lifetime. Neither `Send` nor `Sync`, because of the
    /// pointer.
    marker: PhantomData<Cell<&'scope mut ()>>,
}

impl<'scope> Scope<'scope> {
    /// Starts a task, which the innermost finish joins (an *async*). It runs at once, until it ends or must wait.
    ///
    /// # Panics
    /// In an [isolated](crate::isolated) section, or if there is no stack for the task.
    #[track_caller]
    pub fn spawn(&self, body: impl FnOnce(&Scope<'scope>) + Send + 'scope) {
        self.start(Kind::Async, None, body);
    }

    /// Starts a task with a result, for which any number of tasks can wait with [`Future::get`]. The innermost finish
    /// joins it too. It runs at once, until it ends or must wait.
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
    pub fn future<T: Send + Sync + 'scope>(
        &self,
        body: impl FnOnce(&Scope<'scope>) -> T + Send + 'scope,
    ) -> Future<T> {
        let future = Future::new(Location::caller());
        let completion = Completion::of(&future);
        self.start(Kind::Future, Some(future.latch()), move |scope| completion.complete(body(scope)));
        future
    }

    #[track_caller]
    fn start<F: FnOnce(&Scope<'scope>)>(&self, kind: Kind, latch: Option<&Latch>, body: F) {
        /// What the parent has for the child.
        struct Start<F> {
            body: ManuallyDrop<F>,
            finish: *const Join,
        }

        unsafe fn enter<'scope, F: FnOnce(&Scope<'scope>)>(start: *mut ()) {
            let start = start.cast::<Start<F>>();
            let mut taken = MaybeUninit::<Start<F>>::uninit();
            // SAFETY: `start` is the parent's, good while it is in `executor::start`, that is, now. The parent treats
            // the body as moved out of it from now on, so this is the only copy.
            let Start { body, finish } = unsafe {
                executor::move_bytes(start.cast(), taken.as_mut_ptr().cast(), size_of::<Start<F>>());
                taken.assume_init()
            };
            ManuallyDrop::into_inner(body)(&Scope { finish, marker: PhantomData });
        }

        let mut start = Start { body: ManuallyDrop::new(body), finish: self.finish };
        // SAFETY: `enter::<F>` takes the `Start<F>` that it is given. What the body borrows lives for `'scope`, which
        // contains the call of `finish` that made this scope; the task is joined by that finish, or by one inside it:
        // the executor checks that.
        let started = unsafe {
            let finish = By::Finish(&*self.finish);
            executor::start(kind, Location::caller(), finish, latch, enter::<F>, (&raw mut start).cast())
        };
        match started {
            Ok(Started::Ended | Started::Panicked | Started::Waits(_)) => {}
            Err(refused) => {
                // SAFETY: a refused task has not been entered, so its body is still here.
                unsafe { ManuallyDrop::drop(&mut start.body) };
                panic!("{refused}");
            }
        }
    }
}
