//! The part of the computation graph around a race: why nothing orders its two strands.
//!
//! Of a large program nobody wants to see everything. What says that two strands are parallel is the latest strand that comes before both,
//! the ways from there to each of them, and the ways on to the earliest strand that comes after both:
//!
//! ```text
//!               start
//!           down ╱ ╲ down
//!        (first)     (second)         no path from one to the other
//!             up ╲ ╱ up
//!                end
//! ```
//!
//! [`Around`] keeps nodes and edges, and no accesses. At a quiescent point the past is over, and no race reaches across it: the races found until
//! then get their neighbourhoods, and everything is forgotten. Where more strands than a limit are parallel, nothing is kept until the next
//! such point, and races there have no neighbourhood.

use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::edges::{EdgeKind, EdgeSink, Edges, NodeId};
use crate::ids::{StrandId, TaskId};
use crate::race::Race;
use crate::step::{Phase, Step};
use crate::stream::Strand;

/// So many races get a neighbourhood.
const RACES: usize = 64;
/// So many steps of a way are kept at each of its ends.
const STEPS: usize = 16;

/// A step of a way: an edge, or several of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStep {
    /// Why the strand that it leads to comes after the one before; of several edges, the last one's reason.
    pub kind: EdgeKind,
    /// The task of the strand that it leads to.
    pub task: TaskId,
    /// So many strands on the way are passed over.
    pub left_out: u32,
}

/// What is around a race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbourhood {
    /// The task of the latest strand that comes before both.
    pub start: TaskId,
    /// From there to the first and to the second strand.
    pub down: [Vec<PathStep>; 2],
    /// From each of them to the earliest strand that comes after both, if the run came that far.
    pub up: Option<[Vec<PathStep>; 2]>,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    kind: EdgeKind,
}

/// Nodes and edges since the last quiescent point. Nodes are numbered from `base`.
#[derive(Debug)]
struct Recent {
    base: u32,
    next: u32,
    /// The task of each node, and its strand if it touched memory.
    nodes: Vec<(TaskId, Option<StrandId>)>,
    edges: Vec<Edge>,
    /// Nothing is kept beyond so many nodes.
    limit: usize,
}

impl Recent {
    fn is_full(&self) -> bool {
        self.nodes.len() >= self.limit
    }

    /// Unless it is not kept.
    fn node_of(&mut self, node: NodeId) -> Option<&mut (TaskId, Option<StrandId>)> {
        self.nodes.get_mut(node.0.checked_sub(self.base)? as usize)
    }
}

impl EdgeSink for Recent {
    fn node(&mut self, task: TaskId) -> NodeId {
        if !self.is_full() {
            self.nodes.push((task, None));
        }
        self.next += 1;
        NodeId(self.next - 1)
    }

    fn edge(&mut self, from: NodeId, to: NodeId, kind: EdgeKind) {
        // What lies before the quiescent point comes before everything.
        if !self.is_full() && from.0 >= self.base {
            self.edges.push(Edge { from: from.0 - self.base, to: to.0 - self.base, kind });
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Around {
    recent: Recent,
    edges: Edges,
    /// How many races have been looked at.
    known: usize,
    found: Vec<((StrandId, StrandId), Neighbourhood)>,
    left_out: bool,
}

impl Around {
    /// At the start of a program; at most `limit` strands are kept at a time.
    pub fn new(limit: usize) -> Around {
        let mut recent = Recent { base: 0, next: 0, nodes: Vec::new(), edges: Vec::new(), limit };
        let edges = Edges::new(&mut recent);
        Around { recent, edges, known: 0, found: Vec::new(), left_out: false }
    }

    /// A strand has touched memory.
    pub fn strand(&mut self, strand: &Strand) {
        let Some(&mut (_, before)) = self.recent.node_of(self.edges.current(strand.task)) else { return };
        if before.is_some_and(|before| before != strand.id) {
            // It goes on without a lock that was given back too early.
            self.edges.split(strand.task, &mut self.recent);
        }
        let at = self.edges.current(strand.task);
        if let Some((_, id)) = self.recent.node_of(at) {
            *id = Some(strand.id);
        }
    }

    /// An event, and the races so far.
    pub fn step(&mut self, step: &Step<'_>, races: &[Race]) {
        self.edges.step(step, &mut self.recent);
        if step.phase != Phase::Parallel {
            self.look(races);
            let recent = &mut self.recent;
            recent.nodes.clear();
            recent.edges.clear();
            // What comes begins where the main task is.
            recent.base = recent.next - 1;
            recent.nodes.push((step.event.task(), None));
        }
    }

    /// Gives the races that are new their neighbourhoods. To be called at the end of the program.
    pub fn look(&mut self, races: &[Race]) {
        // Some may have been withdrawn.
        self.known = self.known.min(races.len());
        let new = &races[self.known..];
        self.known = races.len();
        if new.is_empty() {
            return;
        }
        if self.recent.is_full() {
            self.left_out = true;
            return;
        }
        let strands = self.recent.nodes.iter().zip(0..);
        let nodes: FxHashMap<StrandId, u32> =
            strands.filter_map(|((_, strand), node)| Some(((*strand)?, node))).collect();
        let [before, after] =
            [Direction::Before, Direction::After].map(|way| Neighbours::new(&self.recent, way));
        for race in new {
            let pair = (race.first.strand, race.second.strand);
            if self.of(pair.0, pair.1).is_some() {
                continue;
            }
            if self.found.len() == RACES {
                self.left_out = true;
                break;
            }
            let (Some(&one), Some(&other)) = (nodes.get(&pair.0), nodes.get(&pair.1)) else { continue };
            let ends = [one, other];
            let Some((start, down)) = before.meet(ends) else { continue };
            let up = after.meet(ends).map(|(end, ways)| ways.map(|way| self.told(&turned(way, end))));
            let down = down.map(|way| self.told(&way));
            let start = self.recent.nodes[start as usize].0;
            self.found.push((pair, Neighbourhood { start, down, up }));
        }
    }

    /// The number of the neighbourhood of a race of these strands.
    pub fn of(&self, first: StrandId, second: StrandId) -> Option<usize> {
        self.found.iter().position(|(pair, _)| *pair == (first, second))
    }

    /// All neighbourhoods, in the order in which they were found.
    pub fn all(&self) -> impl Iterator<Item = &Neighbourhood> {
        self.found.iter().map(|(_, around)| around)
    }

    /// Has a race no neighbourhood, because there were too many strands or races?
    pub fn left_out(&self) -> bool {
        self.left_out
    }

    /// A way in few steps: what a task does on end is one, and the middle of a long way is passed over.
    fn told(&self, way: &[Way]) -> Vec<PathStep> {
        let mut steps: Vec<PathStep> = Vec::new();
        for &(kind, node) in way {
            let task = self.recent.nodes[node as usize].0;
            match steps.last_mut() {
                Some(last) if kind == EdgeKind::Continue && last.kind == kind => last.left_out += 1,
                _ => steps.push(PathStep { kind, task, left_out: 0 }),
            }
        }
        if steps.len() > 2 * STEPS {
            let tail = steps.len() - STEPS;
            let passed: u32 = steps.drain(STEPS..tail).map(|step| step.left_out + 1).sum();
            steps[STEPS].left_out += passed;
        }
        steps
    }
}

/// An edge of a way, and the node that it leads to.
type Way = (EdgeKind, u32);

/// A way that was walked against its edges, from `end`.
fn turned(way: Vec<Way>, end: u32) -> Vec<Way> {
    let mut before = end;
    let mut turned: Vec<Way> =
        way.into_iter().map(|(kind, node)| (kind, std::mem::replace(&mut before, node))).collect();
    turned.reverse();
    turned
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Before,
    After,
}

/// The nodes right before, or right after, each node.
struct Neighbours {
    direction: Direction,
    /// Where those of each node begin in `all`.
    starts: Vec<u32>,
    all: Vec<Way>,
}

impl Neighbours {
    fn new(recent: &Recent, direction: Direction) -> Neighbours {
        let turned = |edge: &Edge| match direction {
            Direction::Before => (edge.to, edge.from),
            Direction::After => (edge.from, edge.to),
        };
        let mut starts = vec![0; recent.nodes.len() + 1];
        for edge in &recent.edges {
            starts[turned(edge).0 as usize + 1] += 1;
        }
        for node in 0..recent.nodes.len() {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut all = vec![(EdgeKind::Continue, 0); recent.edges.len()];
        for edge in &recent.edges {
            let (of, other) = turned(edge);
            all[next[of as usize] as usize] = (edge.kind, other);
            next[of as usize] += 1;
        }
        Neighbours { direction, starts, all }
    }

    /// The nearest node that ways from both ends lead to, and the shortest ways from there back to each end.
    ///
    /// Edges go from lower to higher numbers. So nodes are visited in the order of their numbers, and when one is, all that was
    /// on a way from the ends to it has been.
    fn meet(&self, ends: [u32; 2]) -> Option<(u32, [Vec<Way>; 2])> {
        /// How far an end is, and which way.
        type Known = [Option<(u32, Way)>; 2];
        let key = |node: u32| match self.direction {
            Direction::Before => node,
            Direction::After => !node,
        };
        let mut known: FxHashMap<u32, Known> = FxHashMap::default();
        let mut heap = BinaryHeap::new();
        for (side, end) in ends.into_iter().enumerate() {
            let here: &mut Known = known.entry(end).or_default();
            // The way of the end itself is not looked at.
            here[side] = Some((0, (EdgeKind::Continue, end)));
            heap.push(key(end));
        }
        while let Some(node) = heap.pop().map(key) {
            let here = known[&node];
            if let [Some(_), Some(_)] = here {
                let ways = [0, 1].map(|side| {
                    let (mut at, mut way) = (node, Vec::new());
                    while at != ends[side]
                        && let Some((_, step)) = known[&at][side]
                    {
                        way.push(step);
                        at = step.1;
                    }
                    way
                });
                return Some((node, ways));
            }
            let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
            for &(kind, other) in &self.all[range] {
                let there = match known.entry(other) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        heap.push(key(other));
                        entry.insert(Known::default())
                    }
                };
                for side in [0, 1] {
                    let Some((far, _)) = here[side] else { continue };
                    if there[side].is_none_or(|(before, _)| far + 1 < before) {
                        there[side] = Some((far + 1, (kind, node)));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
