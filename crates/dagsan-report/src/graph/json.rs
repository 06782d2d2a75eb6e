//! The graph as JSON: every node with all it read and wrote, every edge with its kind.

use serde::Serialize;

use super::{Picture, look};

#[derive(Serialize)]
struct JsonGraph<'a> {
    title: &'a str,
    nodes: Vec<JsonNode<'a>>,
    edges: Vec<JsonEdge>,
}

#[derive(Serialize)]
struct JsonNode<'a> {
    id: usize,
    task: u32,
    kind: &'a str,
    strand: Option<u32>,
    lines: Option<(usize, usize)>,
    isolated: bool,
    racing: bool,
    writes: &'a [String],
    reads: &'a [String],
}

#[derive(Serialize)]
struct JsonEdge {
    from: u32,
    to: u32,
    kind: &'static str,
}

/// The picture as JSON. Edges go from lower to higher numbers.
pub fn json(picture: &Picture) -> Result<String, serde_json::Error> {
    let nodes = picture.nodes.iter().enumerate().map(|(id, node)| JsonNode {
        id,
        task: node.task,
        kind: &node.what,
        strand: node.strand,
        lines: node.lines,
        isolated: node.isolated,
        racing: node.racing,
        writes: &node.writes,
        reads: &node.reads,
    });
    let edges =
        picture.edges.iter().map(|edge| JsonEdge { from: edge.from, to: edge.to, kind: look(edge.kind).0 });
    let graph = JsonGraph { title: &picture.title, nodes: nodes.collect(), edges: edges.collect() };
    Ok(serde_json::to_string_pretty(&graph)? + "\n")
}
