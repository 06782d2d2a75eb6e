//! The part of a graph worth drawing: without the strands that only pass an order on.
//!
//! Every task event ends a strand, so most strands of a run touch nothing. One with a single edge in and a
//! single edge out, one of them of its own task, says no more than an edge between its neighbours would.
//!
//! ```text
//!   [writes x] ──► ( ) ──► ( ) ┈┈► [reads x]     becomes     [writes x] ┈┈► [reads x]
//! ```

use dagsan_core::graph::EdgeKind;

use super::{Picture, PictureEdge, PictureNode};

/// What is left to draw. Edges go by position in `nodes`, from lower to higher.
pub(super) struct Contracted<'a> {
    pub nodes: Vec<&'a PictureNode>,
    pub edges: Vec<PictureEdge>,
}

/// Leaves out the strands that only pass an order on.
pub(super) fn contract(picture: &Picture) -> Contracted<'_> {
    let mut edges: Vec<Option<PictureEdge>> = picture.edges.iter().copied().map(Some).collect();
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); picture.nodes.len()];
    let mut outgoing = incoming.clone();
    for (number, edge) in picture.edges.iter().enumerate() {
        outgoing[edge.from as usize].push(number);
        incoming[edge.to as usize].push(number);
    }
    let mut kept = Vec::new();
    let mut position = vec![0; picture.nodes.len()];
    // A node's edge in keeps its number when the node before is left out, because that one's edge out lives on.
    for (number, node) in picture.nodes.iter().enumerate() {
        if node.is_empty()
            && let ([one], [two]) = (&incoming[number][..], &outgoing[number][..])
            && let (Some(into), Some(out)) = (edges[*one], edges[*two])
            && (into.kind == EdgeKind::Continue || out.kind == EdgeKind::Continue)
        {
            let kind = if into.kind == EdgeKind::Continue { out.kind } else { into.kind };
            edges[*two] = Some(PictureEdge { from: into.from, to: out.to, kind });
            edges[*one] = None;
        } else {
            position[number] = kept.len() as u32;
            kept.push(node);
        }
    }
    let moved = |edge: PictureEdge| PictureEdge {
        from: position[edge.from as usize],
        to: position[edge.to as usize],
        kind: edge.kind,
    };
    Contracted { nodes: kept, edges: edges.into_iter().flatten().map(moved).collect() }
}
