//! Tasks for Rust: finish and async, spawn and sync, futures, promises, isolated sections.
//!
//! These are the constructs that DagSan knows. A program that is written with them can be checked by `cargo dagsan`: it
//! runs once, and the verdict holds for every schedule of that input. Without DagSan the crate is a task runtime, whose workers
//! steal tasks from each other.
//!
//! ```
//! use dagsan_task::{Promise, finish, isolated, procedure};
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! // Spawn and sync: results after the sync.
//! fn sum(numbers: &[u64]) -> u64 {
//!     if numbers.len() < 3 {
//!         return numbers.iter().sum();
//!     }
//!     let (left, right) = numbers.split_at(numbers.len() / 2);
//!     procedure(|p| {
//!         let left = p.spawn(|| sum(left));
//!         let right = sum(right);
//!         p.sync();
//!         left.join() + right
//!     })
//! }
//!
//! let numbers: Vec<u64> = (1..=100).collect();
//! let largest = AtomicU64::new(0);
//! let ready = Promise::named("ready");
//!
//! let total = finish(|scope| {
//!     // A future: a task with a result, got by whoever has the handle.
//!     let total = scope.future(|_| sum(&numbers));
//!
//!     // This task must wait, so its parent goes on first.
//!     scope.spawn(|_| assert_eq!(*ready.get(), 5050));
//!     scope.spawn({
//!         let total = total.clone();
//!         let ready = ready.clone();
//!         move |_| ready.set(*total.get())
//!     });
//!
//!     // Isolated sections exclude each other.
//!     for part in numbers.chunks(10) {
//!         let largest = &largest;
//!         scope.spawn(move |_| {
//!             let own = part.iter().copied().max().unwrap_or(0);
//!             isolated(|| largest.store(largest.load(Relaxed).max(own), Relaxed));
//!         });
//!     }
//!     *total.get()
//! }); // all tasks have ended here
//! assert_eq!((total, largest.into_inner()), (5050, 100));
//! ```
//!
//! # How tasks run
//!
//! The thread that opens an outermost scope is a worker until that ends, and is helped by threads that this crate keeps. There are
//! as many workers as the processor runs threads, or as the variable `DAGSAN_WORKERS` or [`with_workers`] say. A
//! worker puts the tasks that it starts into a deque of its own. Where a task waits, at the end of a scope, at a sync or
//! a get, its worker runs the task that it started last, or the oldest one of another worker. A task that has begun stays on its
//! thread.
//!
//! With one worker, and in programs that DagSan checks, tasks run on the thread that starts them, depth first: a task runs
//! at once, until it ends or has to wait. Then its parent goes on. A task that can go on after a wait does so when some other
//! task waits, in the order in which they became ready. So all that happens is decided by the program and its input.
//!
//! Every task has a stack of its own, 1 MiB of address space unless `DAGSAN_TASK_STACK` says otherwise (bytes). A task
//! that needs more is stopped by the system with SIGSEGV. A process can have 30000 stacks, which is how many tasks may
//! have begun and not ended at a time. One more panics: with one worker where it is started; with more it counts as a
//! task that has panicked.
//!
//! # What goes wrong, and how it ends
//!
//! - **A panic in a task** does not reach its parent. The finish, or the procedure, that joins the task lets the others
//!   end, and then goes on with the first panic (the first in time: with several workers, the schedule decides). So no panic
//!   is lost, also not that of a future whose [`try_get`](Future::try_get) was an error.
//! - **A deadlock**: nobody can go on. Every get that waits then fails, with a message that says who waits where and for
//!   what: [`Promise::get`] and [`Future::get`] panic, their `try_` forms return it.
//! - **A wait or a task in an isolated section** panics.
//!
//! # Threads
//!
//! Each thread runs its own tasks, those that are started in its scopes, with helpers of its own while its outermost scope is open.
//! There are as many helpers in the process as the largest scope has asked for: a scope that is opened while others have
//! them has fewer. Handles of promises and futures may be shared between threads, and set and got on any; but a thread that has
//! nothing left to run does not wait for other threads, it reports a deadlock.
//!
//! **Thread-local variables** belong to the worker: tasks that run on one thread share them, and other tasks may change them
//! while a task waits. A task that has begun finds the same ones to its end. A body that is given to `finish` or `procedure`
//! stays on its thread; bodies of tasks are `Send`, and may find the variables of any worker.
//!
//! A task that waits with a lock held makes another one that takes the lock hang, if both are on one worker. A task that spins
//! until another one has done something may spin for ever: with one worker always, with more if that one is in a deque of a
//! worker that does not wait.

// The thin generic shells of this crate are instantiated in the user's, where they would be instrumented like the user's
// own code. What they do to the stack of the task that calls them is no business of a check.
#![cfg_attr(dagsan, feature(core_intrinsics, fn_traits, sanitize, unboxed_closures))]
#![cfg_attr(dagsan, allow(internal_features))]

mod bell;
mod call;
mod crew;
mod deadlock;
mod error;
/// One interface for both task runtimes; the drop-in for rayon-core has to stand alone.
#[allow(dead_code, reason = "each task runtime uses a part of it")]
#[path = "../../rayon-core/src/events.rs"]
mod events;
mod executor;
mod fiber;
mod future;
mod helpers;
mod isolated;
mod job;
mod join;
mod latch;
mod parallel;
mod procedure;
mod promise;
mod running;
mod scope;
mod sleepers;
mod slot;
mod task;
mod value;
mod workers;

pub use future::{Future, GetError};
pub use isolated::isolated;
pub use procedure::{Procedure, Spawned, procedure};
pub use promise::{AlreadySet, NeverSet, Promise};
pub use scope::{Scope, finish};
pub use workers::with_workers;

/// By what DagSan knows whose tasks these are: added to their kind.
#[cfg(all(dagsan, not(test)))]
const RUNTIME: u32 = 0;

#[cfg(test)]
mod tests;
