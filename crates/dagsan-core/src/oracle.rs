//! The oracle: the whole computation graph, closed, every pair of accesses to a byte compared.
//!
//! It is the definition of a determinacy race, word for word: two strands, neither before the other,
//! a common byte, at least one write, not both atomic, and no lock that keeps them apart. It is slow, short, and judges everything else.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::access::AccessKind;
use crate::graph::{EdgeSink, Graph, Node, NodeId};
use crate::ids::StrandId;
use crate::locks;
use crate::order::Isolation;
use crate::order::closure::Closed;
use crate::race::{Access, Race};

/// One node's access to one byte.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Touch {
    node: NodeId,
    kind: AccessKind,
    atomic: bool,
}

/// A byte of an object: an address, and how often the memory there had been given to something else.
type ByteOfObject = (u64, usize);

/// Knows every race of a finished graph.
pub struct Oracle<'a> {
    graph: &'a Graph,
    isolation: Isolation,
    closed: Closed,
    touches: FxHashMap<ByteOfObject, Vec<Touch>>,
    nodes: FxHashMap<StrandId, NodeId>,
}

impl<'a> Oracle<'a> {
    /// Closes `graph`, with isolated sections read as `isolation`.
    pub fn new(graph: &'a Graph, isolation: Isolation) -> Oracle<'a> {
        let mut closed = Closed::new(isolation);
        for node in &graph.nodes {
            closed.node(node.task);
        }
        // Edges lead to higher numbers: when the edges out of a node are added, its row is complete.
        let mut edges = graph.edges.clone();
        edges.sort_by_key(|edge| edge.from);
        for edge in edges {
            closed.edge(edge.from, edge.to, edge.kind);
        }
        let mut touches: FxHashMap<ByteOfObject, Vec<Touch>> = FxHashMap::default();
        let mut nodes = FxHashMap::default();
        for (number, node) in graph.nodes.iter().enumerate() {
            let id = NodeId(number as u32);
            nodes.extend(node.strand.map(|strand| (strand, id)));
            for access in &node.accesses {
                for address in access.run.at.addresses() {
                    let erased = &graph.erasures[..access.erasures];
                    let object = erased.iter().filter(|e| (e.start()..e.end()).contains(&address)).count();
                    let touch = Touch { node: id, kind: access.run.kind, atomic: access.run.atomic };
                    touches.entry((address, object)).or_default().push(touch);
                }
            }
        }
        Oracle { graph, isolation, closed, touches, nodes }
    }

    /// Every address with a race on it.
    pub fn racy_bytes(&self) -> BTreeSet<u64> {
        let racy = self.touches.iter().filter(|(_, touches)| {
            touches.iter().enumerate().any(|(i, &a)| touches[..i].iter().any(|&b| self.race(a, b)))
        });
        // One by one: to collect a set sorts it, and a program that sorts such numbers would be linked to this copy of the sort, which has no hooks.
        let mut addresses = BTreeSet::new();
        addresses.extend(racy.map(|(&(address, _), _)| address));
        addresses
    }

    /// Is a reported race one, on each of its bytes?
    pub fn confirms(&self, race: &Race) -> bool {
        let (Some(&first), Some(&second)) =
            (self.nodes.get(&race.first.strand), self.nodes.get(&race.second.strand))
        else {
            return false;
        };
        let touch = |node, by: &Access| Touch { node, kind: by.kind, atomic: by.atomic };
        let (first, second) = (touch(first, &race.first), touch(second, &race.second));
        race.location.addresses().all(|address| {
            (0..=self.graph.erasures.len()).any(|object| {
                self.touches.get(&(address, object)).is_some_and(|touches| {
                    touches.contains(&first) && touches.contains(&second) && self.race(first, second)
                })
            })
        })
    }

    fn race(&self, a: Touch, b: Touch) -> bool {
        let (locks_of_a, locks_of_b) = (&self.node(a).locks, &self.node(b).locks);
        let isolated =
            self.isolation == Isolation::MutualExclusion && self.node(a).isolated && self.node(b).isolated;
        let excluded = isolated || locks::exclude(locks_of_a, locks_of_b);
        a.node != b.node
            && (a.kind == AccessKind::Write || b.kind == AccessKind::Write)
            && !(a.atomic && b.atomic)
            && !excluded
            && !self.closed.precedes(a.node, b.node)
            && !self.closed.precedes(b.node, a.node)
    }

    fn node(&self, touch: Touch) -> &Node {
        &self.graph.nodes[touch.node.index()]
    }
}
