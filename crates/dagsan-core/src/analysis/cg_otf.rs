//! `cg-otf`: computation graphs checked while the program runs (paper 003, chapters 5 and 6).
//!
//! When a scope ends, the part of the graph inside it is checked by Algorithm 1 and replaced by one *master
//! node* that has the union of its sets. The paper does it for a finish; a sync block whose sync is a tree
//! join is as good.
//!
//! ```text
//!        ┌ a ─ b ┐                                 Outside of the scope, everything has the same order
//!   entry  c ─ d  exit    ──►   entry ─ M ─ exit   against all of a … e: a master node loses no race
//!        └ e ────┘                                 and makes none.
//! ```
//!
//! That holds if edges enter only from `entry` and leave only to `exit`. So a scope stays as it is if some
//! other edge *crosses* its border, or may do so later: if an isolated section ends in it (chapter 6), a
//! promise is set, something atomic released, a future created, a task posted; or if something in it waits for a task or promise of
//! outside. Its nodes then belong to the scope around it, and are checked with that one, at a
//! quiescent point, or at the end.
//!
//! What differs: the check goes on after the first race, and a racy scope is replaced too: its races have
//! been reported, and those with the outside are found on the master node. Of the accesses of a scope to one
//! byte, a master node keeps one that writes, or else one that reads.

use rustc_hash::FxHashMap;

use super::Analysis;
use super::cg::detect;
use super::sets::{self, Objects, Touch};
use crate::access::Run;
use crate::bytes::Bytes;
use crate::detector::Findings;
use crate::error::Error;
use crate::event::{Event, TaskKind};
use crate::graph::{EdgeKind, EdgeSink, Edges, NodeId};
use crate::ids::{ScopeId, TaskId};
use crate::step::{Phase, Step};
use crate::stream::Strand;
use crate::tasks::Tasks;

/// A scope that was opened: a finish or a sync block. Numbered from 0, the whole program, in the order of
/// opening.
#[derive(Debug)]
struct Unit {
    /// The unit around it.
    parent: u32,
    depth: u32,
    /// Does an edge cross its border, or may one do so later?
    crossed: bool,
    /// Its nodes, with those of the units inside that have ended.
    nodes: Vec<NodeId>,
}

const PROGRAM: u32 = 0;

impl Unit {
    fn program() -> Unit {
        Unit { parent: PROGRAM, depth: 0, crossed: false, nodes: Vec::new() }
    }
}

/// Where a task is.
#[derive(Debug)]
struct Place {
    /// The unit that joins the task.
    base: u32,
    /// The units that it has opened, innermost last. A block that ended without a tree join may still be
    /// there: then it counts as a part of what is below it.
    open: Vec<(ScopeId, u32)>,
}

impl Place {
    fn unit(&self) -> u32 {
        self.open.last().map_or(self.base, |&(_, unit)| unit)
    }
}

#[derive(Debug)]
struct Node {
    unit: u32,
    before: Vec<NodeId>,
    set: Vec<Touch>,
}

/// What is left of the graph.
#[derive(Debug)]
struct Remains {
    nodes: FxHashMap<NodeId, Node>,
    /// The number of the next node.
    next: u32,
    /// Nodes with smaller numbers precede everything that has a set.
    floor: u32,
    units: Vec<Unit>,
    /// The unit of each open scope.
    scopes: Vec<u32>,
    tasks: Tasks<Place>,
}

impl EdgeSink for Remains {
    fn node(&mut self, task: TaskId) -> NodeId {
        let (id, unit) = (NodeId(self.next), self.tasks[task].unit());
        self.next += 1;
        self.nodes.insert(id, Node { unit, before: Vec::new(), set: Vec::new() });
        self.units[unit as usize].nodes.push(id);
        id
    }

    fn edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind) {
        if from.0 < self.floor {
            return;
        }
        debug_assert!(self.nodes.contains_key(&from), "an edge out of a scope that was replaced");
        let (Some(source), Some(target)) = (self.nodes.get(&from), self.nodes.get(&to)) else { return };
        let (source, target) = (source.unit, target.unit);
        match kind {
            EdgeKind::Continue | EdgeKind::Spawn => {}
            EdgeKind::Join | EdgeKind::Promise | EdgeKind::Release | EdgeKind::Isolation => {
                self.cross(source, target);
            }
        }
        if let Some(node) = self.nodes.get_mut(&to) {
            node.before.push(from);
        }
    }
}

impl Remains {
    fn new() -> Remains {
        Remains {
            nodes: FxHashMap::default(),
            next: 0,
            floor: 0,
            units: vec![Unit::program()],
            scopes: vec![PROGRAM],
            tasks: Tasks::new(Place { base: PROGRAM, open: Vec::new() }),
        }
    }

    /// An edge leads, or may lead, from inside `a` to inside `b`: marks every unit that contains only one of
    /// them.
    fn cross(&mut self, mut a: u32, mut b: u32) {
        while a != b {
            let deeper =
                if self.units[a as usize].depth >= self.units[b as usize].depth { &mut a } else { &mut b };
            let unit = &mut self.units[*deeper as usize];
            unit.crossed = true;
            *deeper = unit.parent;
        }
    }

    fn open(&mut self, task: TaskId, scope: ScopeId) {
        let parent = self.tasks[task].unit();
        let unit = self.units.len() as u32;
        let depth = self.units[parent as usize].depth + 1;
        self.units.push(Unit { parent, depth, crossed: false, nodes: Vec::new() });
        self.enter(scope, unit);
        self.tasks[task].open.push((scope, unit));
    }

    fn enter(&mut self, scope: ScopeId, unit: u32) {
        if self.scopes.len() <= scope.index() {
            self.scopes.resize(scope.index() + 1, PROGRAM);
        }
        self.scopes[scope.index()] = unit;
    }

    /// Ends the unit of `scope`, and with it what is left open above it.
    fn close(&mut self, task: TaskId, scope: ScopeId) -> Option<u32> {
        while let Some((open, unit)) = self.tasks[task].open.pop() {
            // The latest of that number is meant: numbers of scopes are used again.
            if open == scope {
                return Some(unit);
            }
            self.dissolve(unit);
        }
        None
    }

    /// The unit has ended, and is a part of the one around it from now on.
    fn dissolve(&mut self, unit: u32) {
        let Unit { parent, ref mut nodes, .. } = self.units[unit as usize];
        let mut nodes = std::mem::take(nodes);
        self.units[parent as usize].nodes.append(&mut nodes);
    }

    /// Checks the nodes of a unit that has ended, and puts a master node in their place, before `exit`.
    fn collapse(&mut self, unit: u32, exit: NodeId, found: &mut Findings) {
        let Unit { parent, ref mut nodes, .. } = self.units[unit as usize];
        let mut inside = std::mem::take(nodes);
        inside.sort_unstable();
        self.check(&inside, found);
        // The first node inside is the one that the entry leads to.
        let Some(&master) = inside.first() else { return };
        let mut all = Vec::new();
        for node in &inside[1..] {
            all.extend(self.nodes.remove(node).into_iter().flat_map(|node| node.set));
        }
        if let Some(node) = self.nodes.get_mut(&master) {
            all.append(&mut node.set);
            (node.unit, node.set) = (parent, sets::union(all));
        }
        self.units[parent as usize].nodes.push(master);
        if let Some(node) = self.nodes.get_mut(&exit) {
            node.before.retain(|before| inside.binary_search(before).is_err());
            node.before.push(master);
        }
    }

    /// Algorithm 1 on these nodes, which are sorted.
    fn check(&mut self, inside: &[NodeId], found: &mut Findings) {
        for node in inside {
            if let Some(node) = self.nodes.get_mut(node) {
                sets::sort(&mut node.set);
            }
        }
        let nodes: Vec<&Node> = inside.iter().filter_map(|node| self.nodes.get(node)).collect();
        debug_assert_eq!(nodes.len(), inside.len());
        let mut edges = Vec::new();
        for (to, node) in nodes.iter().enumerate() {
            // What comes from outside comes from the entry, and orders nothing inside.
            let from = node.before.iter().filter_map(|before| inside.binary_search(before).ok());
            edges.extend(from.map(|from| (from as u32, to as u32)));
        }
        let sets: Vec<&[Touch]> = nodes.iter().map(|node| node.set.as_slice()).collect();
        detect(&sets, &edges, found);
    }

    fn check_all(&mut self, found: &mut Findings) {
        let mut all: Vec<NodeId> = self.nodes.keys().copied().collect();
        all.sort_unstable();
        self.check(&all, found);
    }

    /// All that was precedes all that comes: only the units that the main task has open are left.
    fn forget(&mut self) {
        self.nodes.clear();
        self.floor = self.next;
        self.tasks.forget_others();
        self.units.truncate(1);
        self.units[0] = Unit::program();
        let open = std::mem::take(&mut self.tasks[TaskId::MAIN].open);
        for (scope, _) in open {
            self.open(TaskId::MAIN, scope);
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct CgOtf {
    remains: Remains,
    edges: Edges,
    objects: Objects,
}

impl CgOtf {
    /// At the start of a program.
    pub(crate) fn new() -> CgOtf {
        let mut remains = Remains::new();
        let edges = Edges::new(&mut remains);
        CgOtf { remains, edges, objects: Objects::default() }
    }
}

impl Analysis for CgOtf {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) {
        if let Some(node) = self.remains.nodes.get_mut(&self.edges.current(strand.task)) {
            self.objects.record(strand, runs, &mut node.set);
        }
    }

    fn event(&mut self, step: &Step<'_>, found: &mut Findings) -> Result<(), Error> {
        let (task, remains) = (step.event.task(), &mut self.remains);
        if let Some(scope) = step.opened {
            remains.open(task, scope);
        }
        if let Event::Spawn { .. } = step.event {
            let base = remains.scopes[step.scope.index()];
            remains.tasks.push(Place { base, open: Vec::new() });
        }
        let closed = step.closed.and_then(|scope| remains.close(task, scope));
        // To be asked before the edges of the tree join itself are added.
        let collapses = closed.is_some_and(|unit| !remains.units[unit as usize].crossed);
        self.edges.step(step, remains);
        match step.event {
            // Who gets, awaits or follows these comes later, and may be anywhere.
            Event::Spawn { child, kind: TaskKind::Future | TaskKind::Post(_), .. } => {
                remains.cross(remains.tasks[child].base, PROGRAM);
            }
            Event::PromiseSet { .. } | Event::IsolatedEnd { .. } | Event::Release { .. } => {
                remains.cross(remains.tasks[task].unit(), PROGRAM);
            }
            Event::TaskEnd { .. } => {
                while let Some((_, unit)) = remains.tasks[task].open.pop() {
                    remains.dissolve(unit);
                }
            }
            _ => {}
        }
        match closed {
            Some(unit) if collapses => remains.collapse(unit, self.edges.current(task), found),
            Some(unit) => remains.dissolve(unit),
            None => {}
        }
        if step.phase == Phase::Quiesced {
            remains.check_all(found);
            self.objects.forget();
        }
        if step.phase != Phase::Parallel {
            remains.forget();
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.objects.erase(bytes)
    }

    fn finish(&mut self, found: &mut Findings) {
        self.remains.check_all(found);
    }

    fn memory(&self) -> (usize, usize) {
        let Remains { nodes, units, scopes, tasks, .. } = &self.remains;
        let sets = nodes.values().map(|node| sets::memory(&node.set)).sum::<usize>() + self.objects.memory();
        let graph = nodes.capacity() * size_of::<(NodeId, Node)>()
            + nodes.values().map(|node| node.before.capacity() * size_of::<NodeId>()).sum::<usize>()
            + units.capacity() * size_of::<Unit>()
            + units.iter().map(|unit| unit.nodes.capacity() * size_of::<NodeId>()).sum::<usize>()
            + scopes.capacity() * size_of::<u32>()
            + tasks.memory()
            + tasks.iter().map(|place| place.open.capacity() * size_of::<(ScopeId, u32)>()).sum::<usize>();
        (graph, sets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::AccessKind::{self, Write};
    use crate::access::AccessSet;
    use crate::ids::{PromiseId, RegionId, SiteId};
    use crate::order::{self, Options};
    use crate::stream::{Consumer, Stream};

    const MAIN: TaskId = TaskId::MAIN;

    /// The engine alone, and the races it has found so far.
    struct Probe {
        engine: CgOtf,
        found: Findings,
    }

    impl Consumer for Probe {
        fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
            self.engine.accesses(strand, runs);
            Ok(())
        }
        fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
            self.engine.event(step, &mut self.found)
        }
        fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
            self.engine.erase(bytes)
        }
    }

    struct Case {
        stream: Stream<Probe>,
    }

    impl Case {
        /// A task that is never joined keeps the program from being quiescent.
        fn new() -> Case {
            let probe = Probe { engine: CgOtf::new(), found: Findings::new(10) };
            let mut run = Case { stream: Stream::new(probe) };
            run.task(MAIN, TaskKind::Async, |_, _| {});
            run
        }

        fn event(&mut self, event: Event) {
            self.stream.event(event).unwrap();
        }

        fn access(&mut self, task: TaskId, address: u64, kind: AccessKind) {
            let mut set = AccessSet::new();
            set.record(Bytes::new(address, 1).unwrap(), kind, SiteId::new(task.0).unwrap());
            self.stream.accesses(task, &set).unwrap();
        }

        fn task(&mut self, parent: TaskId, kind: TaskKind, body: impl FnOnce(&mut Case, TaskId)) {
            let child = TaskId(self.stream.structure().task_count());
            self.event(Event::Spawn { parent, child, kind });
            body(self, child);
            self.event(Event::TaskEnd { task: child });
        }

        /// A finish with two tasks that write different bytes, and something else; how many nodes with
        /// accesses it leaves.
        fn finish(&mut self, inside: impl FnOnce(&mut Case)) -> usize {
            self.event(Event::FinishBegin { task: MAIN });
            for address in 0..2 {
                self.task(MAIN, TaskKind::Async, |run, task| run.access(task, address, Write));
            }
            inside(self);
            self.event(Event::FinishEnd { task: MAIN });
            let nodes = &self.stream.consumer().engine.remains.nodes;
            nodes.values().filter(|node| !node.set.is_empty()).count()
        }

        fn races(&self) -> usize {
            self.stream.consumer().found.races().len()
        }
    }

    #[test]
    fn a_finish_becomes_a_master_node() {
        let mut run = Case::new();
        assert_eq!(run.finish(|_| {}), 1);
        // Entry, master node, exit; the first task, and the main task before it.
        assert_eq!(run.stream.consumer().engine.remains.nodes.len(), 5);
        assert_eq!(run.finish(|run| run.task(MAIN, TaskKind::Spawn, |_, _| {})), 2);
        assert_eq!(run.races(), 0, "the second finish follows the first");
    }

    #[test]
    fn races_are_found_inside_a_scope_and_on_its_master_node() {
        let mut run = Case::new();
        run.finish(|run| run.task(MAIN, TaskKind::Async, |run, task| run.access(task, 0, Write)));
        assert_eq!(run.races(), 1, "found as the finish ends");
        run.event(Event::FinishBegin { task: MAIN });
        run.task(MAIN, TaskKind::Async, |run, task| run.access(task, 7, Write));
        run.finish(|run| run.access(MAIN, 7, Write));
        assert_eq!(run.races(), 1);
        run.event(Event::FinishEnd { task: MAIN });
        assert_eq!(run.races(), 2, "between a task and the master node of the finish beside it");
    }

    #[test]
    fn a_scope_that_edges_may_cross_stays_as_it_is() {
        let promise = PromiseId(0);
        let region = RegionId(0);
        let isolated = |run: &mut Case, task: TaskId| {
            run.event(Event::IsolatedBegin { task });
            run.event(Event::IsolatedEnd { task });
        };
        let mut run = Case::new();
        run.event(Event::PromiseNew { task: MAIN, promise });
        run.event(Event::RegionNew { task: MAIN, region });
        assert_eq!(run.finish(|run| isolated(run, MAIN)), 2);
        assert_eq!(run.finish(|run| run.task(MAIN, TaskKind::Future, |_, _| {})), 4);
        assert_eq!(run.finish(|run| run.task(MAIN, TaskKind::Post(region), |_, _| {})), 6);
        assert_eq!(run.finish(|run| run.event(Event::PromiseSet { task: MAIN, promise })), 8);
        assert_eq!(run.finish(|run| run.event(Event::PromiseGet { task: MAIN, promise })), 10);
        run.event(Event::IsolatedBegin { task: MAIN });
        assert_eq!(run.finish(|_| {}), 11, "the section is around the finish, not in it");
    }

    #[test]
    fn nothing_is_kept_beyond_a_quiescent_point() {
        let engine = order::find("cg-otf").unwrap();
        let mut stream = Stream::new(crate::Detector::new(engine, Options::default()));
        let mut most = (0, 0);
        for round in 0..1_000 {
            let task = TaskId(round + 1);
            stream.event(Event::FinishBegin { task: MAIN }).unwrap();
            stream.event(Event::Spawn { parent: MAIN, child: task, kind: TaskKind::Async }).unwrap();
            stream.event(Event::TaskEnd { task }).unwrap();
            stream.event(Event::FinishEnd { task: MAIN }).unwrap();
            if round == 9 {
                most = stream.consumer().memory();
            }
        }
        assert_eq!(stream.consumer().memory(), most);
    }
}
