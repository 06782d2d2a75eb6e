//! Which edges an event adds to the computation graph: the definition of "precedes".

use rustc_hash::FxHashMap;

use crate::event::Event;
use crate::ids::{SyncId, TaskId};
use crate::step::{Phase, Step};

/// A node of the computation graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node as a table index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why one strand comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// The same task goes on.
    Continue,
    /// A task creates another.
    Spawn,
    /// A task joins one that has ended: finish, sync, get of a future, await, ewait.
    Join,
    /// From the set of a promise to a get of it.
    Promise,
    /// From a release of a synchronisation object to an acquire of it.
    Release,
    /// From an isolated section to the next one of the run. Not an edge if isolated is read as
    /// mutual exclusion.
    Isolation,
}

/// What takes the nodes and edges.
pub trait EdgeSink {
    /// Adds a node for a strand of `task`. Nodes are numbered in the order they are added.
    fn node(&mut self, task: TaskId) -> NodeId;

    /// Adds an edge to the latest node or, at a spawn, to the one before it.
    fn edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind);
}

/// Where each task is in the graph.
#[derive(Debug)]
pub struct Edges {
    /// The strand each task is in, or ended with.
    current: Vec<NodeId>,
    /// The strand that set each promise.
    sets: Vec<NodeId>,
    /// The last strand of the latest isolated section.
    isolated: Option<NodeId>,
    /// The kept releases of each object, those left out that come before another one of the same task or before
    /// the last quiescent point.
    releases: FxHashMap<SyncId, Vec<(TaskId, NodeId)>>,
}

impl Edges {
    /// At the start of a program.
    pub fn new(sink: &mut impl EdgeSink) -> Edges {
        let current = vec![sink.node(TaskId::MAIN)];
        Edges { current, sets: Vec::new(), isolated: None, releases: FxHashMap::default() }
    }

    /// The strand that `task` is in, or ended with.
    pub fn current(&self, task: TaskId) -> NodeId {
        self.current[task.index()]
    }

    /// What `task` does from here on is a node of its own, without an event.
    pub fn split(&mut self, task: TaskId, sink: &mut impl EdgeSink) {
        let before = self.current(task);
        let after = sink.node(task);
        sink.edge(before, after, EdgeKind::Continue);
        self.current[task.index()] = after;
    }

    /// Adds what the event adds.
    pub fn step(&mut self, step: &Step<'_>, sink: &mut impl EdgeSink) {
        let task = step.event.task();
        if let Event::TaskEnd { .. } = step.event {
            return;
        }
        let before = self.current(task);
        if let Event::Spawn { child, .. } = step.event {
            let first = sink.node(child);
            sink.edge(before, first, EdgeKind::Spawn);
            self.current.push(first);
        }
        let after = sink.node(task);
        sink.edge(before, after, EdgeKind::Continue);
        self.current[task.index()] = after;
        for &joined in step.joined {
            sink.edge(self.current(joined), after, EdgeKind::Join);
        }
        match step.event {
            // Until it is set nobody can get it: any node will do.
            Event::PromiseNew { .. } => self.sets.push(before),
            Event::PromiseSet { promise, .. } => self.sets[promise.index()] = before,
            Event::PromiseGet { promise, .. } => {
                sink.edge(self.sets[promise.index()], after, EdgeKind::Promise);
            }
            Event::IsolatedBegin { .. } => {
                if let Some(last) = self.isolated {
                    sink.edge(last, after, EdgeKind::Isolation);
                }
            }
            Event::IsolatedEnd { .. } => self.isolated = Some(before),
            Event::Release { sync, keep, .. } => {
                let releases = self.releases.entry(sync).or_default();
                releases.retain(|&(by, _)| keep && by != task);
                releases.push((task, before));
            }
            Event::Pass { from, to, keep, .. } => {
                let passed = self.releases.get(&from).cloned().unwrap_or_default();
                let releases = self.releases.entry(to).or_default();
                releases.retain(|_| keep);
                for (by, release) in passed {
                    // Of the same task, the later one stands for both.
                    match releases.iter_mut().find(|(other, _)| *other == by) {
                        Some((_, known)) => *known = release.max(*known),
                        None => releases.push((by, release)),
                    }
                }
            }
            Event::Acquire { sync, .. } => {
                for &(_, release) in self.releases.get(&sync).into_iter().flatten() {
                    sink.edge(release, after, EdgeKind::Release);
                }
            }
            _ => {}
        }
        if step.phase == Phase::Quiesced {
            self.releases.clear();
        }
    }
}
