//! Spawn and sync, as in Cilk: [`procedure`], [`Procedure::spawn`], [`Procedure::sync`].
//!
//! # Where results are
//!
//! Most tasks end before their parent goes on. Their result is moved into the handle that the parent gets, and nothing
//! is allocated. A task that has to wait is told of a slot on the heap instead:
//!
//! ```text
//!   spawn ─► task ─► ends   result ─► the parent's frame ─► Spawned::here
//!               └──► waits  ...       handle of a slot ◄──► Spawned::later
//!                    ends   result ──►┘
//! ```
//!
//! In the order that DagSan checks, the parent may not look at the result before the sync, though it is there. Moving
//! it about is not looking at it; that is done by code that DagSan does not see (`executor::move_bytes`). A handle that
//! is dropped before the sync leaves its result with the procedure, which drops it after the sync.
//!
//! With several workers a task that was spawned has not begun, as a rule, when its parent goes on: body and result are in a packet
//! on the heap, which both refer to.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::panic::{Location, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::call::{call, catch_with};
use crate::events::Kind;
use crate::executor::{self, By, Started};
use crate::job::Job;
use crate::join::{self, Anything, Join};
use crate::parallel;
use crate::slot::Slot;

/// Runs `body` as a procedure, which can spawn tasks. Returns when they have ended, as if it had called
/// [`Procedure::sync`] last.
///
/// If `body` or a task panics, the others are still run to their end. Then `procedure` goes on with the first panic.
///
/// ```
/// use dagsan_task::procedure;
///
/// fn fib(n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     procedure(|p| {
///         let x = p.spawn(|| fib(n - 1));
///         let y = fib(n - 2);
///         p.sync();
///         x.join() + y
///     })
/// }
/// assert_eq!(fib(10), 55);
/// ```
#[track_caller]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub fn procedure<'scope, R>(body: impl FnOnce(&Procedure<'scope>) -> R) -> R {
    let mut place = MaybeUninit::uninit();
    // SAFETY: `place` is not moved, and `frame_end` is called below; nothing in between unwinds, since what `body` does is
    // caught.
    let join = unsafe { executor::frame_begin(&mut place) };
    let result = match catch_with(body, Procedure::of(join)) {
        Ok(result) => Some(result),
        Err(payload) => {
            executor::panicked(join, payload);
            None
        }
    };
    let panic = executor::frame_end(join, Location::caller());
    join::unwrap(result, panic)
}

/// A procedure that runs. It spawns tasks, which may borrow what lives longer than `'scope`, and joins them.
///
/// Only the innermost procedure can spawn and sync, and only in the task that runs it.
///
/// ```compile_fail,E0277
/// dagsan_task::procedure(|p| p.spawn(|| p.sync()).join());
/// ```
#[repr(transparent)]
pub struct Procedure<'scope> {
    frame: Join,
    /// Invariant, as in `Scope`. Neither `Send` nor `Sync`, because of the join.
    marker: PhantomData<Cell<&'scope mut ()>>,
}

impl<'scope> Procedure<'scope> {
    fn of(frame: &Join) -> &Procedure<'scope> {
        // SAFETY: a procedure is a join, by `repr(transparent)`.
        unsafe { &*ptr::from_ref(frame).cast::<Procedure<'scope>>() }
    }

    /// Starts a task, which the next sync joins. With one worker it runs at once, until it ends or must wait; with more, when
    /// one of them has nothing else to do. Its result can be had after the sync, with [`Spawned::join`].
    ///
    /// # Panics
    /// In an [isolated](crate::isolated()) section, inside another procedure that was called by this one, or if there is
    /// no stack for the task.
    #[track_caller]
    #[cfg_attr(dagsan, sanitize(thread = "off"))]
    pub fn spawn<'p, T, F>(&'p self, body: F) -> Spawned<'p, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        /// What parent and child have for each other.
        #[repr(C)]
        struct Start<F, T> {
            body: ManuallyDrop<F>,
            result: MaybeUninit<T>,
        }

        /// Gives up the slot of a task that panics.
        struct GiveUp;
        impl Drop for GiveUp {
            fn drop(&mut self) {
                drop(executor::take_slot());
            }
        }

        #[cfg_attr(dagsan, sanitize(thread = "off"))]
        unsafe fn enter<T, F: FnOnce() -> T>(start: *mut (), _: Option<NonNull<Join>>) {
            let start = start.cast::<Start<F, T>>();
            let mut body = MaybeUninit::<F>::uninit();
            // SAFETY: `start` is the parent's, good while it is in `executor::start`, that is, now. The parent treats
            // the body as moved out of it from now on, so this is the only copy.
            let body = unsafe {
                executor::move_bytes(
                    (&raw const (*start).body).cast(),
                    body.as_mut_ptr().cast(),
                    size_of::<F>(),
                );
                body.assume_init()
            };
            let give_up = GiveUp;
            let value = ManuallyDrop::new(call(body));
            match executor::take_slot() {
                // SAFETY: not redirected, so the parent is still in `executor::start`, and `start` is good. The value
                // is not used here again.
                None => unsafe {
                    executor::move_bytes(
                        (&raw const value).cast(),
                        (&raw mut (*start).result).cast(),
                        size_of::<T>(),
                    );
                },
                // SAFETY: the value is not used here again.
                Some(slot) => unsafe { slot.fill((&raw const value).cast(), size_of::<T>()) },
            }
            mem::forget(give_up);
        }

        let frame = &self.frame;
        if cfg!(not(dagsan)) && parallel::is_parallel() {
            let result = Outcome::Shared(self.hand_in(body));
            return Spawned { result, syncs: executor::syncs(frame), frame };
        }
        let mut start = Start { body: ManuallyDrop::new(body), result: MaybeUninit::<T>::uninit() };
        // SAFETY: `enter::<T, F>` takes the body of the `Start<F, T>` that it is given, and sets the result. What the
        // body borrows lives for `'scope`, which contains the call of `procedure` that made this one and joins the task.
        let started = unsafe {
            let by = By::Frame(frame);
            executor::start(Kind::Spawn, Location::caller(), by, None, enter::<T, F>, (&raw mut start).cast())
        };
        let result = match started {
            // SAFETY: the task has ended without a panic and without being redirected, so it has set the result.
            Ok(Started::Ended) => Outcome::Here(unsafe { start.result.assume_init() }),
            Ok(Started::Panicked) => Outcome::None,
            Ok(Started::Waits(fiber)) => {
                let (slot, childs) = Slot::new();
                executor::redirect(fiber, childs);
                Outcome::Later(Later { slot, marker: PhantomData })
            }
            Err(refused) => {
                // SAFETY: a refused task has not been entered, so its body is still here.
                unsafe { ManuallyDrop::drop(&mut start.body) };
                panic!("{refused}");
            }
        };
        Spawned { result, syncs: executor::syncs(frame), frame }
    }

    /// Starts a task that any worker may run.
    #[track_caller]
    fn hand_in<'p, T, F>(&'p self, body: F) -> Arc<dyn Result<T> + 'p>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        unsafe fn enter<T, F: FnOnce() -> T>(job: *mut (), _: Option<NonNull<Join>>) {
            // SAFETY: a job of this type from below, entered once: its reference is ours.
            let packet = unsafe { Arc::from_raw(job.cast_const().cast::<Packet<F, T>>()) };
            // SAFETY: the body is taken by the task only, and this is the one time that it begins.
            let body = unsafe { (*packet.body.get()).assume_init_read() };
            let value = body();
            // SAFETY: the parent looks at the result after the task has ended.
            unsafe { *packet.result.get() = Some(value) };
        }

        unsafe fn discard<T, F>(job: *mut ()) {
            // SAFETY: a job of this type from below, which was not entered.
            let packet = unsafe { Arc::from_raw(job.cast_const().cast::<Packet<F, T>>()) };
            // SAFETY: so the body is still there.
            unsafe { (*packet.body.get()).assume_init_drop() };
        }

        let packet = Arc::new(Packet {
            job: UnsafeCell::new(Job::new(Location::caller(), enter::<T, F>, discard::<T, F>)),
            body: UnsafeCell::new(MaybeUninit::new(body)),
            result: UnsafeCell::new(None),
        });
        let job = Arc::into_raw(packet.clone()).cast_mut().cast::<()>();
        // SAFETY: a packet begins with its job. Body and result are `Send`. What the body borrows lives for `'scope`, see
        // `spawn`.
        let submitted =
            unsafe { parallel::submit(By::Frame(&self.frame), NonNull::new_unchecked(job.cast())) };
        if let Err(refused) = submitted {
            // SAFETY: a refused job is ours.
            unsafe { discard::<T, F>(job) };
            panic!("{refused}");
        }
        packet
    }

    /// Waits for all tasks that this procedure has spawned. If one of them has panicked, goes on with the first panic.
    ///
    /// # Panics
    /// If a task has panicked; inside another procedure that was called by this one; and in an
    /// [isolated](crate::isolated()) section if a task has not ended.
    #[track_caller]
    pub fn sync(&self) {
        match executor::sync(&self.frame, Location::caller()) {
            Ok(None) => {}
            Ok(Some(payload)) => resume_unwind(payload),
            Err(failed) => panic!("{failed}"),
        }
    }
}

/// A task of a procedure that any worker may run: parent and child have a reference each.
#[repr(C)]
struct Packet<F, T> {
    job: UnsafeCell<Job>,
    /// Taken by the task when it begins.
    body: UnsafeCell<MaybeUninit<F>>,
    /// Set by the task before it ends, and taken by the parent after it.
    result: UnsafeCell<Option<T>>,
}

/// A result that the parent may take, whatever the task was.
trait Result<T> {
    /// The result, if the task has not panicked.
    ///
    /// # Safety
    /// The task has been joined.
    unsafe fn take(&self) -> Option<T>;
}

impl<F, T> Result<T> for Packet<F, T> {
    unsafe fn take(&self) -> Option<T> {
        // SAFETY: the task has ended, and what it did is seen, by the count of its join. Nobody else has the result.
        unsafe { (*self.result.get()).take() }
    }
}

enum Outcome<'p, T> {
    /// The task had ended when its parent went on.
    Here(T),
    /// The task had to wait.
    Later(Later<T>),
    /// Any worker may run the task, or have run it.
    Shared(Arc<dyn Result<T> + 'p>),
    /// The task has panicked, or the result has been taken.
    None,
}

/// The slot of a result.
struct Later<T> {
    slot: Slot,
    marker: PhantomData<T>,
}

impl<T> Later<T> {
    /// The result, if it is there and has not been taken.
    fn take(&self) -> Option<T> {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: the task fills the slot with a `T`.
        unsafe { self.slot.take(value.as_mut_ptr().cast()).then(|| value.assume_init()) }
    }
}

impl<T> Drop for Later<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// The result of a task that a procedure has spawned, to be had after the next [`Procedure::sync`].
#[must_use = "a result that is not wanted is `()`"]
pub struct Spawned<'p, T> {
    result: Outcome<'p, T>,
    /// How many syncs there were before.
    syncs: u64,
    frame: &'p Join,
}

impl<T> Spawned<'_, T> {
    /// The result of the task.
    ///
    /// # Panics
    /// If the procedure has not synced since it spawned the task, or if the task has panicked.
    #[inline]
    #[track_caller]
    #[cfg_attr(dagsan, sanitize(thread = "off"))]
    pub fn join(mut self) -> T {
        assert!(
            self.synced(),
            "the result of a spawned task is asked for before the sync that joins the task"
        );
        let value = match mem::replace(&mut self.result, Outcome::None) {
            Outcome::Here(value) => Some(value),
            Outcome::Later(later) => later.take(),
            // SAFETY: synced since.
            Outcome::Shared(result) => unsafe { result.take() },
            Outcome::None => None,
        };
        value
            .unwrap_or_else(|| panic!("the result of a spawned task is asked for, and the task has panicked"))
    }

    fn synced(&self) -> bool {
        executor::syncs(self.frame) != self.syncs
    }
}

impl<T> Drop for Spawned<'_, T> {
    fn drop(&mut self) {
        if self.synced() || !mem::needs_drop::<T>() {
            return;
        }
        let result = mem::replace(&mut self.result, Outcome::None);
        let leftover: Box<dyn Anything + '_> = Box::new(result);
        // SAFETY: `T` lives for the `'scope` of the procedure, and the leftovers are dropped before that returns, which
        // is within `'scope`.
        let leftover = unsafe { mem::transmute::<Box<dyn Anything + '_>, Box<dyn Anything>>(leftover) };
        executor::leave(self.frame, leftover);
    }
}

impl<T> fmt::Debug for Spawned<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").field("synced", &self.synced()).finish_non_exhaustive()
    }
}
