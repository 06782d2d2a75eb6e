//! Random OpenMP programs, against the oracle: what `dagsan cc` and the runtime make of them is compared with what the specification says.
//!
//! ```text
//!   generate ─► tree ─ write ─► C ─ dagsan cc ─► a process ─┬─► findings ─► racy addresses ──────────────────────────┐
//!                 └──── code ─────────────────────────────► └─► trace ─ replay ─► events ─► oracle ─► racy addresses ─┴─ equal?
//! ```
//!
//! A program is written as C, or as a text that a program in C interprets: that one is compiled once.
//!
//! A process tells in which order it came to the ends of its statements, accesses left out. `replay` is an interpreter of the same
//! tree that does these steps in the same order, and tells a stream of them: which tasks are ordered is said there, by the words of the
//! specification, pair by pair, without any of the runtime's code. The order itself counts only where the verdict follows the run: for sections
//! of locks. But an order that cannot be, as a task that starts before one that it depends on has ended, is a failure, too.

mod code;
mod depend;
mod generate;
mod replay;
mod shrink;
#[cfg(test)]
mod tests;
mod tidy;
mod tree;
mod write;

pub use generate::generate;
pub use replay::{Expected, Impossible, Trace, replay};
pub use shrink::smaller;
pub use tree::{Clauses, Depend, Lock, Program, Stmt, Use};
pub use write::{interpreted, place, write_batch, write_interpreter};
