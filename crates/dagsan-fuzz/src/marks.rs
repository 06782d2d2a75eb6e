//! Random functions, of which a reference says exactly which bytes they touch: the judge of the marks that DagSan's pass puts
//! on accesses.
//!
//! ```text
//!   Function ─┬─ interpret ─► the bytes that each strand reads and writes, the memory, a hash of all that is read ──────┐
//!             └─ write_batch ─► Rust ─ cargo dagsan build ─► a process ─► its tables of the same bytes, memory, hash ──┴─ equal?
//! ```
//!
//! A function has pointers into a piece of memory of its own, numbers and flags, of which the compiler knows nothing. It runs as
//! a task beside others, and shows the tables of the runtime (`SEEN`, `WRITTEN`) while its strand is still there. All that
//! it reads goes into a hash, so that no read can be left out.
//!
//! The reference knows nothing of Rust, LLVM or the pass: it interprets the tree. Functions that would do what is not defined
//! (beyond the memory, misaligned, overlapping copies, overflow) are refused by it, and made anew.
//!
//! What it cannot see: accesses to memory outside of the function's piece, as its locals; in which order things are touched; accesses of
//! code without hooks. Where the compiler may leave an access out (a byte that is read again after a release) functions do not
//! have it.

mod ast;
mod batch;
mod exprs;
mod generate;
mod interpret;
mod loops;
mod memory;
mod shrink;
#[cfg(test)]
mod tests;
mod write;

pub use ast::{ARENA, Function, Input};
pub use batch::{BASE, initial_memory, write_batch};
pub use generate::{Processor, generate};
pub use interpret::{Expected, Refused, interpret};
pub use memory::{Shown, Touched};
pub use shrink::smaller;
pub use write::write;
