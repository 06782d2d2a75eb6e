//! Tasks for Rust: finish and async, spawn and sync, futures, promises, isolated sections.
//!
//! These are the constructs that DagSan knows. A program that is written with them can be checked by `cargo dagsan`: it
//! runs once, and the verdict holds for every schedule of that input. Without DagSan the crate is a small task library
//! with the same, serial, behaviour.
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
//! On the thread that starts them, depth first: a task runs at once, until it ends or has to wait. Then its parent goes
//! on. A task that can go on after a wait does so when some other task waits, in the order in which they became ready.
//! So all that happens is decided by the program and its input.
//!
//! Every task has a stack of its own, 1 MiB of address space unless `DAGSAN_TASK_STACK` says otherwise (bytes). A task
//! that needs more is stopped by the system with SIGSEGV. A process can have 30000 stacks, which is how many tasks may
//! be unfinished at a time; one more panics where it is started.
//!
//! # What goes wrong, and how it ends
//!
//! - **A panic in a task** does not reach its parent. The finish, or the procedure, that joins the task lets the others
//!   end, and then goes on with the first panic. So no panic is lost, also not that of a future whose
//!   [`try_get`](Future::try_get) was an error.
//! - **A deadlock**: nobody can go on. Every get that waits then fails, with a message that says who waits where and for
//!   what: [`Promise::get`] and [`Future::get`] panic, their `try_` forms return it.
//! - **A wait or a task in an isolated section** panics.
//!
//! # Threads
//!
//! Each thread runs its own tasks. Handles of promises and futures may be shared between threads, and set and got on
//! any; but a thread that has nothing left to run does not wait for other threads, it reports a deadlock.
//!
//! Tasks of one thread share its thread-local variables. A task that waits with a lock held makes another one that
//! takes the lock hang.

// The thin generic shells of this crate are instantiated in the user's, where they would be instrumented like the user's
// own code. What they do to the stack of the task that calls them is no business of a check.
#![cfg_attr(dagsan, feature(core_intrinsics, fn_traits, sanitize, unboxed_closures))]
#![cfg_attr(dagsan, allow(internal_features))]

mod call;
mod deadlock;
/// One interface for both task runtimes; the drop-in for rayon-core has to stand alone.
#[allow(dead_code, reason = "each task runtime uses a part of it")]
#[path = "../../rayon-core/src/events.rs"]
mod events;
mod executor;
mod fiber;
mod future;
mod isolated;
mod join;
mod latch;
mod procedure;
mod promise;
mod scope;
mod slot;
mod task;
mod value;

pub use future::{Future, GetError};
pub use isolated::isolated;
pub use procedure::{Procedure, Spawned, procedure};
pub use promise::{AlreadySet, NeverSet, Promise};
pub use scope::{Scope, finish};

/// By what DagSan knows whose tasks these are: added to their kind.
#[cfg(all(dagsan, not(test)))]
const RUNTIME: u32 = 0;

#[cfg(test)]
mod tests;
