//! rayon-core's interface, for programs that are checked by DagSan.
//!
//! `cargo dagsan` compiles this source in place of that of rayon-core, so a program that uses rayon is checked as it is.
//! Everything runs depth first, on the thread that calls, but for the second of a join, which DagSan may be asked to run on another thread meanwhile; what counts is the logical
//! structure, and that is told to DagSan, task by task:
//!
//! | rayon | DagSan |
//! |---|---|
//! | `join(a, b)` | a frame; `a` is spawned, `b` is what follows; a sync |
//! | `scope` | a finish; its body and each job are an async |
//! | `spawn` | a task that only the end of the program joins |
//! | `broadcast` | a frame; each call is spawned; a sync |
//! | `install` | a call |
//!
//! Built without `--cfg dagsan` it is a serial rayon-core that tells nobody.
//!
//! The names, and what the functions promise, are those of rayon-core 1.12 and 1.13. The source compiles in the edition
//! of either, 2021, and with the standard library alone.

// The thin generic shells of this crate are instantiated in the program, where they would be instrumented like the
// program's own code. What they do to the stack of the task that calls them is no business of a check.
#![cfg_attr(dagsan, feature(sanitize, core_intrinsics, unboxed_closures, fn_traits))]
#![cfg_attr(dagsan, allow(internal_features))]

mod broadcast;
mod builder;
mod crew;
#[allow(dead_code, reason = "each task runtime uses a part of it")]
mod events;
mod finish;
mod join;
mod local;
mod pool;
mod scope;
mod spawn;
mod split;
mod stack;
mod tasks;
mod unwind;

pub use self::broadcast::{BroadcastContext, broadcast, spawn_broadcast};
#[allow(deprecated)]
pub use self::builder::{Configuration, initialize};
pub use self::builder::{ThreadPoolBuildError, ThreadPoolBuilder};
pub use self::crew::ThreadBuilder;
pub use self::join::{join, join_context};
pub use self::pool::{ThreadPool, Yield, yield_local, yield_now};
pub use self::pool::{current_num_threads, max_num_threads};
pub use self::pool::{current_thread_has_pending_tasks, current_thread_index};
pub use self::scope::{Scope, in_place_scope, scope};
pub use self::scope::{ScopeFifo, in_place_scope_fifo, scope_fifo};
pub use self::spawn::{spawn, spawn_fifo};
pub use self::split::FnContext;

/// By what DagSan knows whose tasks these are: added to their kind.
#[cfg(all(dagsan, not(test)))]
const RUNTIME: u32 = 0x100;

#[cfg(test)]
mod tests;
