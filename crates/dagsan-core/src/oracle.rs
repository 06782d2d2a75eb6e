//! The oracle: the whole computation graph, closed, every pair of accesses to a byte compared.
//!
//! It is the definition of a determinacy race, word for word: two strands, neither before the other,
//! a common byte, at least one write. It is slow, short, and judges everything else.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::access::AccessKind;
use crate::graph::{EdgeSink, Graph, Node, NodeId};
use crate::ids::StrandId;
use crate::order::Isolation;
use crate::order::closure::Closed;
use crate::race::Race;

/// One node's access to one byte.
#[derive(Clone, Copy)]
struct Touch {
    node: NodeId,
    kind: AccessKind,
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
                    let touch = Touch { node: id, kind: access.run.kind };
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
        racy.map(|(&(address, _), _)| address).collect()
    }

    /// Is a reported race one, on each of its bytes?
    pub fn confirms(&self, race: &Race) -> bool {
        let (Some(&first), Some(&second)) =
            (self.nodes.get(&race.first.strand), self.nodes.get(&race.second.strand))
        else {
            return false;
        };
        let touched = |touches: &[Touch], node: NodeId, kind: AccessKind| {
            touches.iter().any(|touch| touch.node == node && touch.kind == kind)
        };
        race.location.addresses().all(|address| {
            (0..=self.graph.erasures.len()).any(|object| {
                self.touches.get(&(address, object)).is_some_and(|touches| {
                    touched(touches, first, race.first.kind)
                        && touched(touches, second, race.second.kind)
                        && self.race(
                            Touch { node: first, kind: race.first.kind },
                            Touch { node: second, kind: race.second.kind },
                        )
                })
            })
        })
    }

    fn race(&self, a: Touch, b: Touch) -> bool {
        let excluded =
            self.isolation == Isolation::MutualExclusion && self.node(a).isolated && self.node(b).isolated;
        a.node != b.node
            && (a.kind == AccessKind::Write || b.kind == AccessKind::Write)
            && !excluded
            && !self.closed.precedes(a.node, b.node)
            && !self.closed.precedes(b.node, a.node)
    }

    fn node(&self, touch: Touch) -> &Node {
        &self.graph.nodes[touch.node.index()]
    }
}
