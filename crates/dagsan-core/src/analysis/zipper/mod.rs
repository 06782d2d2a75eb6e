//! `zipper`: Storey et al., "Optimized Sound and Complete Data Race Detection in Structured Parallel Programs"
//! (paper 002), on the finished graph.
//!
//! Without its isolation edges the graph is that of async/finish and spawn/sync, and a depth-first traversal with
//! S-bags and P-bags knows its order (paper 002, section 2.3; see `bags`). The isolated sections are a
//! chain 1, 2, 3, … laid across it. Let *below(n)* be the first section that n comes before, or is in, by
//! edges that are no isolation edges, and *above(n)* the last section that comes before n, or has n in it:
//!
//! ```text
//!     a ──► section 2 ─┐            below(a) = 2
//!                      ▼
//!               section 3 ──► b     above(b) = 3        a precedes b, as 2 < 3
//! ```
//!
//! The bags know every other way, so of two nodes that they call parallel
//!
//! ```text
//!     a precedes b   <=>   below(a) < above(b)
//! ```
//!
//! The paper keeps nodes in two *zippers*, indexed by below and above, and the part of a branch without
//! sections apart ("lambda"); pairs found in one zipper on the way down are looked up in the other on the way
//! up. It loses sections outside of the branch (see docs/engines/zipper.md). What differs:
//!
//! - below and above are worked out for all nodes first, by one walk over the edges down and one up. There is
//!   no lambda, and no section is lost.
//! - The zippers are kept per location (`teeth`): a node meets only those that touched the same bytes,
//!   and of those only the ones that no other covers. Pairs of nodes are never listed: the paper's M² is gone.
//! - A section may have many nodes, and start tasks; the run need not have been depth first.
//!
//! Futures, promises and regions are not supported: the bags do not know their order.

mod teeth;

use super::Analysis;
use super::cg::SetGraph;
use super::sets::Objects;
use crate::access::Run;
use crate::bytes::Bytes;
use crate::detector::Findings;
use crate::error::Error;
use crate::event::Event;
use crate::graph::{EdgeKind, EdgeSink, Edges, NodeId};
use crate::ids::{ScopeId, TaskId};
use crate::order::bags::Bags;
use crate::step::Step;
use crate::stream::Strand;
use teeth::{Span, Teeth};

/// What a task did, as far as the traversal has to know.
#[derive(Debug, Clone, Copy)]
enum Item {
    /// A node with accesses.
    Node(NodeId),
    Spawn(TaskId),
    /// A join of all that ended in a scope.
    Join(ScopeId),
}

/// The graph without isolation edges.
struct Plain<'a>(&'a mut SetGraph);

impl EdgeSink for Plain<'_> {
    fn node(&mut self, task: TaskId) -> NodeId {
        self.0.node(task)
    }

    fn edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind) {
        if kind != EdgeKind::Isolation {
            self.0.edge(from, to, kind);
        }
    }
}

/// The first and the last node of an isolated section. The last is missing if the section never ended.
#[derive(Debug, Clone, Copy)]
struct Section {
    first: NodeId,
    last: Option<NodeId>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Zipper {
    graph: SetGraph,
    edges: Edges,
    objects: Objects,
    /// In the order of the run.
    sections: Vec<Section>,
    /// What the tasks did, in the order of the run.
    items: Vec<(TaskId, Item)>,
    bags: Bags,
    /// The scope that joins each task. Scopes are numbered anew, as the stream uses their numbers again.
    joined_by: Vec<ScopeId>,
    /// The new number of each open scope.
    scopes: Vec<ScopeId>,
    next_scope: u32,
}

impl Zipper {
    /// At the start of a program.
    pub(crate) fn new() -> Zipper {
        let mut graph = SetGraph::default();
        let edges = Edges::new(&mut graph);
        Zipper {
            graph,
            edges,
            objects: Objects::default(),
            sections: Vec::new(),
            items: Vec::new(),
            bags: Bags::new(),
            joined_by: vec![crate::structure::ROOT],
            scopes: vec![crate::structure::ROOT],
            next_scope: 1,
        }
    }

    fn open(&mut self, scope: ScopeId) -> Result<(), Error> {
        let new = ScopeId(self.next_scope);
        self.next_scope = new.0.checked_add(1).ok_or(Error::TooMany("scopes"))?;
        if self.scopes.len() <= scope.index() {
            self.scopes.resize(scope.index() + 1, new);
        }
        self.scopes[scope.index()] = new;
        self.bags.open(new);
        Ok(())
    }

    /// For each node, the isolated sections around it.
    fn spans(&self) -> Vec<Span> {
        let mut spans = vec![Span::EMPTY; self.graph.sets.len()];
        for (number, section) in (1..).zip(&self.sections) {
            spans[section.first.index()].above = number;
            if let Some(last) = section.last {
                spans[last.index()].below = number;
            }
        }
        // The edges are in the order of the nodes they lead to, which is topological.
        for &(from, to) in &self.graph.edges {
            spans[to as usize].above = spans[to as usize].above.max(spans[from as usize].above);
        }
        for &(from, to) in self.graph.edges.iter().rev() {
            spans[from as usize].below = spans[from as usize].below.min(spans[to as usize].below);
        }
        spans
    }

    /// The items by task: those of task t are `items[starts[t]..starts[t + 1]]`.
    fn items_by_task(&self) -> (Vec<usize>, Vec<Item>) {
        let mut starts = vec![0; self.joined_by.len() + 1];
        for (task, _) in &self.items {
            starts[task.index() + 1] += 1;
        }
        for task in 1..starts.len() {
            starts[task] += starts[task - 1];
        }
        let mut order: Vec<u32> = (0..self.items.len() as u32).collect();
        order.sort_by_key(|&at| self.items[at as usize].0);
        (starts, order.iter().map(|&at| self.items[at as usize].1).collect())
    }
}

impl Analysis for Zipper {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) {
        let node = self.edges.current(strand.task);
        let touches = &mut self.graph.sets[node.index()];
        if touches.is_empty() {
            self.items.push((strand.task, Item::Node(node)));
        }
        self.objects.record(strand, runs, touches);
    }

    fn event(&mut self, step: &Step<'_>, _found: &mut Findings) -> Result<(), Error> {
        let task = step.event.task();
        let before = self.edges.current(task);
        self.edges.step(step, &mut Plain(&mut self.graph));
        if let Some(scope) = step.opened {
            self.open(scope)?;
        }
        match step.event {
            Event::Spawn { child, .. } => {
                self.bags.start()?;
                self.joined_by.push(self.scopes[step.scope.index()]);
                self.items.push((task, Item::Spawn(child)));
            }
            Event::IsolatedBegin { .. } => {
                self.sections.push(Section { first: self.edges.current(task), last: None });
            }
            Event::IsolatedEnd { .. } => {
                if let Some(section) = self.sections.last_mut() {
                    section.last = Some(before);
                }
            }
            _ => {}
        }
        for scope in step.drained {
            self.items.push((task, Item::Join(self.scopes[scope.index()])));
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.objects.erase(bytes)
    }

    /// The traversal: a created task runs at once, whatever the order of the run was. A task that never
    /// ended was joined by nobody, and ends where it stopped.
    fn finish(&mut self, found: &mut Findings) {
        let spans = self.spans();
        let (starts, items) = self.items_by_task();
        let mut teeth = Teeth::default();
        let mut stack = vec![(TaskId::MAIN, starts[0])];
        while let Some((task, at)) = stack.last_mut() {
            let task = *task;
            if *at == starts[task.index() + 1] {
                stack.pop();
                if task != TaskId::MAIN {
                    self.bags.end(task, self.joined_by[task.index()]);
                }
                continue;
            }
            *at += 1;
            match items[*at - 1] {
                Item::Spawn(child) => stack.push((child, starts[child.index()])),
                Item::Join(scope) => self.bags.join_scope(task, scope),
                Item::Node(node) => {
                    for touch in &self.graph.sets[node.index()] {
                        teeth.touch(touch, spans[node.index()], &mut self.bags, found);
                    }
                }
            }
        }
    }

    fn memory(&self) -> (usize, usize) {
        let (graph, sets) = self.graph.memory();
        let graph = graph
            + self.bags.memory()
            + self.items.capacity() * size_of::<(TaskId, Item)>()
            + self.sections.capacity() * size_of::<Section>()
            + (self.joined_by.capacity() + self.scopes.capacity()) * size_of::<ScopeId>();
        (graph, sets + self.objects.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessKind::Write;
    use crate::access::AccessSet;
    use crate::event::TaskKind;
    use crate::ids::SiteId;
    use crate::order::{self, Options};
    use crate::stream::Stream;
    use crate::{Detector, Error};

    const MAIN: TaskId = TaskId::MAIN;

    fn write(stream: &mut Stream<Detector>, task: TaskId) -> Result<(), Error> {
        let mut set = AccessSet::new();
        set.record(Bytes::new(0, 1).unwrap(), Write, SiteId::new(task.0).unwrap());
        stream.accesses(task, &set)
    }

    fn isolated(stream: &mut Stream<Detector>, task: TaskId) -> Result<(), Error> {
        stream.event(Event::IsolatedBegin { task })?;
        stream.event(Event::IsolatedEnd { task })
    }

    /// Task 1 writes and then has a section, if `early` the first; the main task has the other one, and
    /// then writes.
    fn races(early: bool) -> Result<usize, Error> {
        let mut stream = Stream::new(Detector::new(order::find("zipper")?, Options::default()));
        let child = TaskId(1);
        stream.event(Event::Spawn { parent: MAIN, child, kind: TaskKind::Async })?;
        write(&mut stream, child)?;
        for task in if early { [child, MAIN] } else { [MAIN, child] } {
            isolated(&mut stream, task)?;
        }
        write(&mut stream, MAIN)?;
        stream.event(Event::TaskEnd { task: child })?;
        let mut detector = stream.into_consumer();
        detector.finish()?;
        Ok(detector.races().len())
    }

    #[test]
    fn sections_order_what_is_around_them_as_they_ran() {
        assert_eq!(races(true), Ok(0));
        assert_eq!(races(false), Ok(1));
    }

    /// A task that waits for ever, as in a deadlock: what it did is judged.
    #[test]
    fn a_task_that_never_ends() -> Result<(), Error> {
        let mut stream = Stream::new(Detector::new(order::find("zipper")?, Options::default()));
        let child = TaskId(1);
        stream.event(Event::FinishBegin { task: MAIN })?;
        stream.event(Event::Spawn { parent: MAIN, child, kind: TaskKind::Async })?;
        stream.event(Event::FinishBegin { task: child })?;
        write(&mut stream, child)?;
        stream.event(Event::IsolatedBegin { task: child })?;
        write(&mut stream, MAIN)?;
        let mut detector = stream.into_consumer();
        assert_eq!(detector.races(), [], "nothing is known before the end");
        detector.finish()?;
        assert_eq!(detector.races().len(), 1);
        Ok(())
    }
}
