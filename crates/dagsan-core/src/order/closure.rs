//! `closure`: the transitive closure of the computation graph, row by row.
//!
//! Every strand keeps the set of all strands before it, as a bitmap: the union of its predecessors'
//! sets and the predecessors themselves. A query tests one bit. It is the definition of "precedes",
//! and judges the other engines. A graph of n nodes (about one per event, two per spawn) takes n²/16 bytes,
//! and nothing is dropped at quiescent points.

use super::Order;
use super::strands::Strands;
use crate::error::Error;
use crate::graph::{EdgeKind, EdgeSink, Edges, NodeId};
use crate::ids::{StrandId, TaskId};
use crate::order::Isolation;
use crate::step::{Phase, Step};
use crate::stream::Strand;

/// For each node of a graph, the nodes that precede it.
#[derive(Debug)]
pub struct Closed {
    rows: Vec<Vec<u64>>,
    isolation: Isolation,
}

impl Closed {
    /// The closure of the empty graph.
    pub fn new(isolation: Isolation) -> Closed {
        Closed { rows: Vec::new(), isolation }
    }

    /// Is there a path from `a` to `b`?
    pub fn precedes(&self, a: NodeId, b: NodeId) -> bool {
        self.rows[b.index()].get(a.index() / 64).is_some_and(|word| word >> (a.index() % 64) & 1 == 1)
    }
}

impl EdgeSink for Closed {
    fn node(&mut self, _task: TaskId) -> NodeId {
        self.rows.push(Vec::new());
        NodeId(self.rows.len() as u32 - 1)
    }

    fn edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind) {
        if kind == EdgeKind::Isolation && self.isolation == Isolation::MutualExclusion {
            return;
        }
        let (before, rest) = self.rows.split_at_mut(to.index());
        let (source, row) = (&before[from.index()], &mut rest[0]);
        row.resize(row.len().max(source.len()).max(from.index() / 64 + 1), 0);
        for (word, bits) in row.iter_mut().zip(source) {
            *word |= bits;
        }
        row[from.index() / 64] |= 1 << (from.index() % 64);
    }
}

/// The closure as an order engine.
#[derive(Debug)]
pub struct Closure {
    closed: Closed,
    edges: Edges,
    strands: Strands<NodeId>,
    now: NodeId,
}

impl Closure {
    /// At the start of a program.
    pub fn new(isolation: Isolation) -> Closure {
        let mut closed = Closed::new(isolation);
        let edges = Edges::new(&mut closed);
        let now = edges.current(TaskId::MAIN);
        Closure { closed, edges, strands: Strands::new(), now }
    }
}

impl Order for Closure {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.edges.step(step, &mut self.closed);
        if step.phase == Phase::Quiesced {
            self.strands.forget();
        }
        Ok(())
    }

    fn now(&mut self, strand: &Strand) {
        self.now = self.edges.current(strand.task);
        self.strands.enter(strand.id, self.now);
    }

    fn precedes(&mut self, a: StrandId) -> bool {
        let a = self.strands[a];
        a == self.now || self.closed.precedes(a, self.now)
    }

    fn memory(&self) -> usize {
        self.closed.rows.iter().map(|row| row.capacity() * size_of::<u64>()).sum::<usize>()
            + self.closed.rows.capacity() * size_of::<Vec<u64>>()
            + self.strands.memory()
    }
}
