//! All schedules: the orders of isolated sections, and the choices of ewait, that can make a difference
//! (Nakade, paper 003, Algorithm 2).
//!
//! One run decides for every schedule of a program, as long as nothing but the task constructs orders it. Isolated
//! sections do more: the order in which they run is left open, and what follows may depend on it. Algorithm 2
//! runs the program once per order. [`explore()`] runs it once per order *that matters*: dynamic
//! partial-order reduction with sleep sets, where two sections depend on each other if they touch the same
//! bytes, one of them writing, unless sections do nothing to these bytes but what commutes (sums, for
//! example). With plain enumeration ([`Reduction::None`]) it is Algorithm 2 itself.
//!
//! Identical states are merged where that is right: at quiescent points, when every task has been joined into the
//! main task. In between, two orders of dependent sections may lead to the same memory, but not to the same
//! past: what a task did before its section is ordered before what another does after its own in one of
//! them, and races in the other.
//!
//! # Why it is right
//!
//! Two schedules that differ in the order of neighbouring independent sections lead to the same state: one of
//! them is run. What is left to see is that no race is lost that only the other one shows, as an
//! edge from every section to the next (the ordered reading) hides races. So the runs of a reduced
//! exploration have edges between *dependent* sections only (`observer.rs`). If two accesses are unordered
//! by these, then some equivalent schedule shows them unordered with all edges: put the sections before the
//! one access before those after the other, and the other way round. These demands do not
//! contradict each other, or the accesses would have been ordered. Conversely each edge left is in the
//! graph of every equivalent schedule.

mod explore;
mod footprint;
mod observer;
mod past;
mod schedule;
mod tree;
mod witness;

pub use explore::{Exploration, Limits, Reduction, Seen, Stopped, explore, replay, sections_commute};
pub use schedule::{BadSchedule, Replay, Schedule};
pub use witness::{Witness, witness};
