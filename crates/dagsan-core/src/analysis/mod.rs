//! Graph engines: they look at the computation graph of the run, not at two strands at a time.
//!
//! An order engine answers while the program runs ([`crate::order`]). A graph engine collects nodes, their
//! read and write sets and the edges, and compares sets when it has enough of the graph: at the end
//! (`cg`, `zipper`), or when a scope ends (`cg-otf`). All read isolated sections as ordered. Which
//! edges there are is said by [`crate::graph::Edges`], as for the oracle.

mod cg;
mod cg_otf;
mod sets;
mod zipper;

pub(crate) use cg::Cg;
pub(crate) use cg_otf::CgOtf;
pub(crate) use zipper::Zipper;

use crate::access::Run;
use crate::bytes::Bytes;
use crate::detector::Findings;
use crate::error::Error;
use crate::step::Step;
use crate::stream::Strand;

/// What a graph engine is to the detector.
pub(crate) trait Analysis: Send {
    /// Accesses of a strand that does not run alone, as in [`crate::Consumer::accesses`].
    fn accesses(&mut self, strand: &Strand, runs: &[Run]);

    /// A task event.
    fn event(&mut self, step: &Step<'_>, found: &mut Findings) -> Result<(), Error>;

    /// The bytes become other memory.
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error>;

    /// Nothing more will come: finds the races that have not been found yet. Called once.
    fn finish(&mut self, found: &mut Findings);

    /// Bytes of memory held for the graph, and for the sets.
    fn memory(&self) -> (usize, usize);
}
