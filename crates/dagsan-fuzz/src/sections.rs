//! An oracle of its own for sections of locks that depend on each other.
//!
//! The stream of dagsan-core finds out which sections depend on which as it goes, forgets what later sections stand for, and says
//! the rest in releases and acquires ([`dagsan_core::Stream::order_sections`]). Here the same is done by the definition, on the stream
//! without these: after the run, every two accesses are compared that were made in different sections of one lock. If they share
//! a byte that one of them writes, and the earlier section was over, an edge leads from the end of that section to the later access.
//! Which tasks are under a lock is worked out again, too.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::graph::{EdgeKind, EdgeSink, Edges, Graph, Node, NodeAccess, NodeId};
use dagsan_core::oracle::Oracle;
use dagsan_core::order::Isolation;
use dagsan_core::{
    AccessKind, Bytes, Consumer, Error, Event, LockId, LockMode, Run, ScopeId, Step, Strand, TaskId, TaskKind,
};

/// A section of a lock.
#[derive(Debug)]
struct Section {
    lock: LockId,
    mode: LockMode,
    /// The node it ended in, and how many nodes there were then.
    end: Option<(NodeId, usize)>,
}

/// How a task is in a section.
#[derive(Debug, Clone, Copy)]
struct In {
    section: usize,
    /// When the lock was taken.
    since: usize,
    own: bool,
}

/// Takes a stream without [`dagsan_core::Stream::order_sections`], and knows its races with it.
#[derive(Debug)]
pub struct DependentSections {
    graph: Graph,
    edges: Edges,
    sections: Vec<Section>,
    inside: BTreeMap<TaskId, BTreeMap<LockId, In>>,
    /// The sections that each node was in.
    of_node: BTreeMap<NodeId, Vec<usize>>,
    /// Events so far.
    time: usize,
    /// When each open finish was opened, by its scope.
    finishes: BTreeMap<ScopeId, usize>,
    /// The procedure instances and finishes that are open in each task, the innermost last.
    procedures: BTreeMap<TaskId, Vec<usize>>,
}

impl Default for DependentSections {
    fn default() -> DependentSections {
        let mut graph = Graph::default();
        let edges = Edges::new(&mut graph);
        DependentSections {
            graph,
            edges,
            sections: Vec::new(),
            inside: BTreeMap::new(),
            of_node: BTreeMap::new(),
            time: 0,
            finishes: BTreeMap::new(),
            procedures: BTreeMap::new(),
        }
    }
}

impl DependentSections {
    /// The bytes that race, isolated sections read as ordered.
    pub fn racy_bytes(mut self) -> BTreeSet<u64> {
        let nodes = &self.graph.nodes;
        let mut edges = Vec::new();
        for (&later, in_later) in &self.of_node {
            for (&earlier, in_earlier) in self.of_node.range(..later) {
                for (&a, &b) in in_earlier.iter().flat_map(|a| in_later.iter().map(move |b| (a, b))) {
                    let (first, second) = (&self.sections[a], &self.sections[b]);
                    let apart = a != b && first.lock == second.lock;
                    let exclusive = first.mode.max(second.mode) == LockMode::Exclusive;
                    if let Some((end, nodes_then)) = first.end
                        && apart
                        && exclusive
                        && nodes_then <= later.index()
                        && depends(&self.graph, &nodes[earlier.index()], &nodes[later.index()])
                    {
                        edges.push((end, later));
                    }
                }
            }
        }
        for (from, to) in edges {
            self.graph.edge(from, to, EdgeKind::Release);
        }
        Oracle::new(&self.graph, Isolation::Ordered).racy_bytes()
    }

    fn end(&mut self, task: TaskId, lock: LockId) -> Option<In> {
        let held = self.inside.get(&task)?.get(&lock).copied()?;
        if held.own {
            self.sections[held.section].end = Some((self.edges.current(task), self.graph.nodes.len()));
        }
        Some(held)
    }

    fn lock(&mut self, task: TaskId, lock: LockId, mode: LockMode, since: usize) {
        self.sections.push(Section { lock, mode, end: None });
        let section = self.sections.len() - 1;
        self.inside.entry(task).or_default().insert(lock, In { section, since, own: true });
    }

    /// The sections that `child` is in.
    fn start(&mut self, step: &Step<'_>, parent: TaskId, child: TaskId, kind: TaskKind) {
        // The end of this joins the child: a finish, or the procedure instance that has spawned it; none if that is the task.
        let opened = match kind {
            // Which finish is around a child is not known here: its class has no locks.
            TaskKind::Detached | TaskKind::Child => return,
            TaskKind::Spawn => self.procedures.get(&parent).and_then(|open| open.last()).copied(),
            _ => Some(self.finishes.get(&step.scope).copied().unwrap_or(0)),
        };
        let Some(locks) = self.inside.get(&parent) else { return };
        let under: BTreeMap<LockId, In> = locks
            .iter()
            .filter(|(_, held)| opened.map_or(!held.own, |opened| held.since < opened))
            .map(|(&lock, held)| (lock, In { own: false, ..*held }))
            .collect();
        self.inside.insert(child, under);
    }
}

impl Consumer for DependentSections {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        let task = strand.task;
        let inside = self.inside.get(&task).into_iter().flatten();
        let inside: Vec<usize> = inside.map(|(_, held)| held.section).collect();
        if !strand.quiescent && !inside.is_empty() {
            // Each delivery by itself depends on others.
            self.edges.split(task, &mut self.graph);
            self.of_node.insert(self.edges.current(task), inside);
        }
        let erasures = self.graph.erasures.len();
        let node = &mut self.graph.nodes[self.edges.current(task).index()];
        node.strand = Some(strand.id);
        node.isolated = strand.isolated;
        node.locks = strand.locks.into();
        node.accesses.extend(runs.iter().map(|&run| NodeAccess { run, erasures }));
        if !strand.locks.is_empty() {
            self.edges.split(task, &mut self.graph);
        }
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.time += 1;
        let task = step.event.task();
        match step.event {
            Event::Lock { lock, mode, .. } => self.lock(task, lock, mode, self.time),
            Event::Unlock { lock, .. } => {
                if let Some(held) = self.end(task, lock) {
                    self.inside.entry(task).or_default().remove(&lock);
                    // Tasks under it that have not been joined lose it.
                    if held.own {
                        self.lose(lock, held.since);
                    }
                }
            }
            Event::SetLockMode { lock, mode, .. } => {
                if let Some(held) = self.end(task, lock) {
                    self.sections.push(Section { lock, mode, end: None });
                    let section = self.sections.len() - 1;
                    self.inside.entry(task).or_default().insert(lock, In { section, ..held });
                }
            }
            Event::Spawn { parent, child, kind } => self.start(step, parent, child, kind),
            Event::FinishBegin { .. } => {
                self.finishes.extend(step.opened.map(|scope| (scope, self.time)));
                self.procedures.entry(task).or_default().push(self.time);
            }
            Event::FrameBegin { .. } => self.procedures.entry(task).or_default().push(self.time),
            Event::FinishEnd { .. } | Event::FrameEnd { .. } => {
                self.procedures.entry(task).or_default().pop();
            }
            _ => {}
        }
        self.edges.step(step, &mut self.graph);
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.graph.erasures.push(bytes);
        Ok(())
    }
}

impl DependentSections {
    /// The lock that was taken at `since` is given back: whoever is under it is so no longer.
    fn lose(&mut self, lock: LockId, since: usize) {
        for locks in self.inside.values_mut() {
            if locks.get(&lock).is_some_and(|held| !held.own && held.since == since) {
                locks.remove(&lock);
            }
        }
    }
}

/// Do the two share a byte of an object, one of them writing, not both atomically?
fn depends(graph: &Graph, a: &Node, b: &Node) -> bool {
    a.accesses.iter().any(|first| {
        b.accesses.iter().any(|second| {
            let same = |address: u64| {
                let between = &graph.erasures[first.erasures.min(second.erasures)..];
                let between = &between[..first.erasures.abs_diff(second.erasures)];
                !between.iter().any(|gone| (gone.start()..gone.end()).contains(&address))
            };
            let (x, y) = (&first.run, &second.run);
            let writes = |run: &Run| run.kind == AccessKind::Write;
            let conflict = if x.atomic && y.atomic { writes(x) != writes(y) } else { writes(x) || writes(y) };
            let common = if x.at.line == y.at.line { x.at.mask & y.at.mask } else { 0 };
            conflict && (0..64).any(|bit| common >> bit & 1 == 1 && same(x.at.line * 64 + bit))
        })
    })
}
