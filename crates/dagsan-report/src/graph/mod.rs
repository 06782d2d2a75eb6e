//! Pictures of computation graphs: DOT for Graphviz, JSON for programs, SVG for the eye.
//!
//! A [`Picture`] is a graph with the names that the front end has for its tasks, locations and lines. Strands
//! that touched nothing are small circles with the number of their task; the others are boxes with what
//! they wrote and read. Strands of reported races are red. DOT and JSON have every strand, an SVG leaves out
//! those that only pass an order on.

mod around;
mod contract;
mod dot;
mod json;
mod layout;
mod svg;

use std::collections::HashSet;

use dagsan_core::graph::{EdgeKind, Graph};
use dagsan_core::order::Isolation;
use dagsan_core::{AccessKind, Location, SiteId, StrandId, TaskId};

pub use dot::dot;
pub use json::json;
pub use svg::{TooLarge, svg};

/// So many locations are named in a box, for reads and for writes each.
const SHOWN_LOCATIONS: usize = 3;

/// What a front end calls things.
pub trait Names {
    /// What the task is: "main", "async".
    fn task(&self, task: TaskId) -> String;
    /// The names of the variables and array elements that the location covers.
    fn locations(&self, location: Location) -> Vec<String>;
    /// The line of the access, if known.
    fn line(&self, site: SiteId) -> Option<usize>;
}

/// A computation graph, ready to be drawn.
#[derive(Debug)]
pub struct Picture {
    title: String,
    nodes: Vec<PictureNode>,
    edges: Vec<PictureEdge>,
}

#[derive(Debug)]
struct PictureNode {
    task: u32,
    what: String,
    strand: Option<u32>,
    isolated: bool,
    racing: bool,
    /// The first and the last line with an access.
    lines: Option<(usize, usize)>,
    reads: Vec<String>,
    writes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PictureEdge {
    from: u32,
    to: u32,
    kind: EdgeKind,
}

impl Picture {
    /// The picture of `graph`, in which the strands of `racing` are marked. The order of isolated sections is
    /// drawn only if it is read as an order.
    pub fn new(
        title: &str,
        graph: &Graph,
        names: &dyn Names,
        racing: &HashSet<StrandId>,
        isolation: Isolation,
    ) -> Picture {
        let nodes = graph.nodes.iter().map(|node| {
            let lines: Vec<usize> =
                node.accesses.iter().filter_map(|access| names.line(access.run.site)).collect();
            let named = |kind: AccessKind| {
                let of_kind = node.accesses.iter().filter(|access| access.run.kind == kind);
                let mut all: Vec<String> =
                    of_kind.flat_map(|access| names.locations(access.run.at)).collect();
                // One strand may touch an element from several places.
                let mut seen = HashSet::new();
                all.retain(|name| seen.insert(name.clone()));
                all
            };
            PictureNode {
                task: node.task.0,
                what: names.task(node.task),
                strand: node.strand.map(|strand| strand.0),
                isolated: node.isolated,
                racing: node.strand.is_some_and(|strand| racing.contains(&strand)),
                lines: lines.iter().min().copied().zip(lines.iter().max().copied()),
                reads: named(AccessKind::Read),
                writes: named(AccessKind::Write),
            }
        });
        let nodes = nodes.collect();
        let edges = graph
            .edges
            .iter()
            .filter(|edge| edge.kind != EdgeKind::Isolation || isolation == Isolation::Ordered);
        let edges =
            edges.map(|edge| PictureEdge { from: edge.from.0, to: edge.to.0, kind: edge.kind }).collect();
        Picture { title: title.to_owned(), nodes, edges }
    }
}

impl PictureNode {
    fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// The lines of the label of a box.
    fn label(&self) -> Vec<String> {
        let isolated = if self.isolated { ", isolated" } else { "" };
        let what = if self.what.is_empty() { String::new() } else { format!(" ({})", self.what) };
        let mut label = vec![format!("task {}{what}{isolated}", self.task)];
        match self.lines {
            Some((first, last)) if first == last => label.push(format!("line {first}")),
            Some((first, last)) => label.push(format!("lines {first}-{last}")),
            None => {}
        }
        for (verb, names) in [("writes", &self.writes), ("reads", &self.reads)] {
            if !names.is_empty() {
                let shown = &names[..names.len().min(SHOWN_LOCATIONS)];
                let more = names.len() - shown.len();
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                label.push(format!("{verb} {}{more}", shown.join(", ")));
            }
        }
        label
    }
}

/// The kinds of edges, as they are named and drawn everywhere: name, colour, dashes.
pub(crate) fn look(kind: EdgeKind) -> (&'static str, &'static str, Option<&'static str>) {
    match kind {
        EdgeKind::Continue => ("continue", "#444444", None),
        EdgeKind::Spawn => ("spawn", "#1f6fd0", None),
        EdgeKind::Join => ("join", "#2a8a3e", Some("6 3")),
        EdgeKind::Promise => ("promise", "#8a3ec0", Some("2 3")),
        EdgeKind::Release => ("release", "#00838f", Some("4 2")),
        EdgeKind::Isolation => ("isolation", "#c77700", Some("8 3 2 3")),
    }
}

const KINDS: [EdgeKind; 6] = [
    EdgeKind::Continue,
    EdgeKind::Spawn,
    EdgeKind::Join,
    EdgeKind::Promise,
    EdgeKind::Release,
    EdgeKind::Isolation,
];
/// What is part of a reported race.
const RACING: &str = "#d02020";

#[cfg(test)]
mod tests;
