//! The computation graph of a run (papers 000, 002, 003): a node per strand, with what it read and
//! wrote, and an edge wherever one strand must come before another.
//!
//! `edges` says which edges each event adds, and is the definition of "precedes" for the whole
//! project. [`GraphBuilder`] keeps nodes and edges: for the oracle, and for engines that look
//! at the finished graph; [`Around`] what is around a race. Node numbers are a topological order.

mod around;
mod edges;

pub use around::{Around, Neighbourhood, PathStep};
pub use edges::{EdgeKind, EdgeSink, Edges, NodeId};

use crate::access::Run;
use crate::bytes::Bytes;
use crate::error::Error;
use crate::ids::{StrandId, TaskId};
use crate::locks::Held;
use crate::step::Step;
use crate::stream::{Consumer, Strand};

/// A strand of the run, whether it touched memory or not.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its task.
    pub task: TaskId,
    /// Its number, if it touched memory.
    pub strand: Option<StrandId>,
    /// Is it part of an isolated section?
    pub isolated: bool,
    /// The locks that its task held, sorted.
    pub locks: Box<[Held]>,
    /// What it read and wrote.
    pub accesses: Vec<NodeAccess>,
}

/// Bytes that a node read or wrote.
#[derive(Debug, Clone, Copy)]
pub struct NodeAccess {
    /// Which bytes, how, and from where.
    pub run: Run,
    /// How many of [`Graph::erasures`] came before it.
    pub erasures: usize,
}

/// An edge of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The strand that comes first.
    pub from: NodeId,
    /// The strand that comes second.
    pub to: NodeId,
    /// Why.
    pub kind: EdgeKind,
}

/// A computation graph. Edges go from lower to higher node numbers.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges.
    pub edges: Vec<Edge>,
    /// Memory that became other memory, in the order of the run.
    pub erasures: Vec<Bytes>,
}

impl EdgeSink for Graph {
    fn node(&mut self, task: TaskId) -> NodeId {
        let (isolated, locks) = (false, Box::default());
        self.nodes.push(Node { task, strand: None, isolated, locks, accesses: Vec::new() });
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind) {
        self.edges.push(Edge { from, to, kind });
    }
}

/// Builds the graph of a run from its stream.
#[derive(Debug)]
pub struct GraphBuilder {
    graph: Graph,
    edges: Edges,
}

impl Default for GraphBuilder {
    fn default() -> GraphBuilder {
        GraphBuilder::new()
    }
}

impl GraphBuilder {
    /// The graph of a program that has just started.
    pub fn new() -> GraphBuilder {
        let mut graph = Graph::default();
        let edges = Edges::new(&mut graph);
        GraphBuilder { graph, edges }
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph.
    pub fn into_graph(self) -> Graph {
        self.graph
    }
}

impl Consumer for GraphBuilder {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        let erasures = self.graph.erasures.len();
        let current = self.edges.current(strand.task);
        if self.graph.nodes[current.index()].strand.is_some_and(|before| before != strand.id) {
            // It goes on without a lock that was given back too early.
            self.edges.split(strand.task, &mut self.graph);
        }
        let node = &mut self.graph.nodes[self.edges.current(strand.task).index()];
        node.strand = Some(strand.id);
        node.isolated = strand.isolated;
        node.locks = strand.locks.into();
        node.accesses.extend(runs.iter().map(|&run| NodeAccess { run, erasures }));
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.edges.step(step, &mut self.graph);
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.graph.erasures.push(bytes);
        Ok(())
    }
}
