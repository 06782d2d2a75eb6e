//! Random task programs, and the judge of engines.
//!
//! A [`Program`] is a tree of task constructs and memory accesses. [`generate()`] makes one from a seed,
//! [`run()`] executes it serially, depth first, and sends its events and accesses to a
//! [`dagsan_core::Stream`]; [`run_in()`] does so in other orders. [`shrink()`] makes a failing one small, and its text
//! form ([`Program::parse`], `Display`) keeps it as a regression test. [`rust`] makes native Rust of it.
//! [`marks`] has random functions, for which accesses get hooks.

mod contracted;
mod generate;
mod judge;
pub mod marks;
mod mix;
pub mod openmp;
mod orders;
mod pool;
mod program;
mod repeated;
mod run;
pub mod rust;
mod sections;
mod shared;
mod shrink;
pub mod source;
mod text;

pub use generate::{Size, generate};
pub use judge::{About, Court, Disagreement, Judgement, Verdict, judge, judge_in};
pub use orders::{Misordered, misordered};
pub use program::{Class, Program, Stmt, UnknownClass, Walk};
pub use run::{Ignore, Outcome, Schedule, run, run_in};
pub use shrink::shrink;
pub use text::{MAX_DEPTH, ParseError};
