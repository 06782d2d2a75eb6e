//! `cg`: Algorithm 1 of Nakade, "Verification of Task Parallel Programs Using Predictive Analysis" (paper 003,
//! chapter 2), on the finished computation graph.
//!
//! Every node is compared with every later one of the topological order. If neither precedes the other and
//! their sets share a byte that one of them writes, there is a race. All constructs, in any order of
//! delivery, at quadratic cost; for comparison, and for doubt.
//!
//! What differs: the algorithm goes on after the first race, and reports for each byte of an access one earlier
//! access that it races with. And where the paper closes the graph, a bit for every two nodes, here
//! all nodes are compared with 64 later ones at a time, so that memory is linear:
//!
//! ```text
//!   leads[n]   bit i set  <=>  n is the i-th of the 64, or precedes it
//!              = the union of leads[s] over all edges n -> s, and n's own bit
//! ```

use super::Analysis;
use super::sets::{self, Objects, Touch};
use crate::access::Run;
use crate::bytes::Bytes;
use crate::detector::Findings;
use crate::error::Error;
use crate::graph::{EdgeKind, EdgeSink, Edges, NodeId};
use crate::ids::TaskId;
use crate::step::Step;
use crate::stream::Strand;

/// The graph: a set for each node, and the edges by the node they lead to.
#[derive(Debug, Default)]
pub(super) struct SetGraph {
    pub(super) sets: Vec<Vec<Touch>>,
    pub(super) edges: Vec<(u32, u32)>,
}

impl SetGraph {
    /// Bytes of memory held for the graph, and for the sets.
    pub(super) fn memory(&self) -> (usize, usize) {
        let graph =
            self.sets.capacity() * size_of::<Vec<Touch>>() + self.edges.capacity() * size_of::<(u32, u32)>();
        (graph, self.sets.iter().map(sets::memory).sum())
    }
}

impl EdgeSink for SetGraph {
    fn node(&mut self, _task: TaskId) -> NodeId {
        self.sets.push(Vec::new());
        NodeId(self.sets.len() as u32 - 1)
    }

    fn edge(&mut self, from: NodeId, to: NodeId, _kind: EdgeKind) {
        self.edges.push((from.0, to.0));
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Cg {
    graph: SetGraph,
    edges: Edges,
    objects: Objects,
}

impl Cg {
    /// At the start of a program.
    pub(crate) fn new() -> Cg {
        let mut graph = SetGraph::default();
        let edges = Edges::new(&mut graph);
        Cg { graph, edges, objects: Objects::default() }
    }
}

impl Analysis for Cg {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) {
        let node = self.edges.current(strand.task).index();
        self.objects.record(strand, runs, &mut self.graph.sets[node]);
    }

    fn event(&mut self, step: &Step<'_>, _found: &mut Findings) -> Result<(), Error> {
        self.edges.step(step, &mut self.graph);
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.objects.erase(bytes)
    }

    fn finish(&mut self, found: &mut Findings) {
        self.graph.sets.iter_mut().for_each(|set| sets::sort(set));
        let sets: Vec<&[Touch]> = self.graph.sets.iter().map(Vec::as_slice).collect();
        detect(&sets, &self.graph.edges, found);
    }

    fn memory(&self) -> (usize, usize) {
        let (graph, sets) = self.graph.memory();
        (graph, sets + self.objects.memory())
    }
}

/// Algorithm 1. The nodes are numbered in topological order; `sets` has the sorted set of each, `edges` are in
/// the order of the nodes that they lead to.
pub(super) fn detect(sets: &[&[Touch]], edges: &[(u32, u32)], found: &mut Findings) {
    debug_assert!(edges.is_sorted_by_key(|&(_, to)| to) && edges.iter().all(|(from, to)| from < to));
    // A node without accesses cannot conflict, whatever its order.
    let nodes: Vec<usize> = (0..sets.len()).filter(|&node| !sets[node].is_empty()).collect();
    let mut leads = vec![0u64; sets.len()];
    for (chunk, some) in nodes.chunks(64).enumerate() {
        leads.fill(0);
        for (bit, &node) in some.iter().enumerate() {
            leads[node] = 1 << bit;
        }
        let last = some[some.len() - 1] as u32;
        for &(from, to) in edges[..edges.partition_point(|&(_, to)| to <= last)].iter().rev() {
            leads[from as usize] |= leads[to as usize];
        }
        for (bit, &node) in some.iter().enumerate() {
            let mut set = sets[node].to_vec();
            let earlier = &nodes[..chunk * 64 + bit];
            found.stats.queries += earlier.len() as u64;
            for &other in earlier.iter().filter(|&&other| leads[other] >> bit & 1 == 0) {
                found.stats.checks += 1;
                sets::conflicts(sets[other], &mut set, |a, b, at| {
                    found.race(a.access(), b.access(), at);
                });
            }
        }
    }
}
