//! Random programs as native Rust, against dagsan-task and rayon: what `cargo dagsan` checks is compared with the oracle.
//!
//! ```text
//!   Program ─ say ─► Said ─┬─ run in the executor's order ─► oracle ─► racy bytes ─ layout ─► racy addresses ─┐
//!                          └─ lower ─► operations ─┬─ as Rust ────────┬─► a process ─► findings ─► racy addresses ──┴─ equal?
//!                                                  └─ as text, which ─┘
//!                                                     is interpreted
//! ```
//!
//! [`say`] puts what Rust can say in the place of what it cannot, so that both sides judge the same program; no program
//! is left out. [`write_batch`] writes a crate of many programs, of which a process runs one. [`write_interpreter`] writes a crate that
//! runs any program whose text it is given: it is built once, and so is not bound by the compiler, which sees every program otherwise.
//!
//! [`say_threads`] makes threads of tasks. Then the program tells in which order it made its statements, and [`observed`] judges that run.
//!
//! [`say_joins`] makes joins of tasks, whose halves run beside each other if the runtime has several workers.
//!
//! What cannot be said: regions (their tasks become asyncs, and nobody awaits them), locks that are not given back, or held
//! while others may run (left out), atomic accesses that are not aligned words (made so), and frees of a part of a
//! block (they free all that the program accesses together with it).

mod joins;
mod layout;
mod lower;
mod nest;
#[path = "rust/batch/op.rs"]
mod op;
mod replay;
mod said;
mod threads;
mod write;

pub use joins::say_joins;
pub use layout::{Layout, Region};
pub use replay::{NoRun, Observed, observed};
pub use said::{Said, say};
pub use threads::say_threads;
pub use write::{interpreted, write_batch, write_interpreter};

use std::collections::BTreeSet;

use dagsan_core::graph::GraphBuilder;
use dagsan_core::oracle::Oracle;
use dagsan_core::order::Isolation;
use dagsan_core::{Error, Stream};

use crate::{Outcome, Schedule, run_in};

/// What the oracle says of a run in the order of the executor: how it went, and the bytes that race. Sections of locks that depend
/// on each other may be `ordered` as in the run.
pub fn expected(said: &Said, ordered: bool) -> Result<(Outcome, BTreeSet<u64>), Error> {
    let mut stream = Stream::new(GraphBuilder::new());
    if ordered {
        stream.order_sections();
    }
    let outcome = run_in(&said.judged(), Schedule::Cooperative, &mut stream)?;
    let graph = stream.into_consumer().into_graph();
    // There are no isolated sections in it: natively they are locks.
    Ok((outcome, Oracle::new(&graph, Isolation::MutualExclusion).racy_bytes()))
}
