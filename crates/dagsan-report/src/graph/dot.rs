//! The graph in the language of Graphviz.

use std::fmt::Write as _;

use super::{Picture, RACING, look};

/// The picture as a DOT file.
pub fn dot(picture: &Picture) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "digraph {} {{", quoted(&picture.title));
    out.push_str("  node [shape=box, fontname=\"monospace\", fontsize=10];\n");
    for (number, node) in picture.nodes.iter().enumerate() {
        let label = if node.is_empty() { node.task.to_string() } else { node.label().join("\n") };
        let shape = if node.is_empty() { ", shape=circle, fontsize=8, margin=0" } else { "" };
        let racing = if node.racing { format!(", color=\"{RACING}\", penwidth=2") } else { String::new() };
        let _ = writeln!(out, "  n{number} [label={}{shape}{racing}];", quoted(&label));
    }
    for edge in &picture.edges {
        let (name, colour, dashes) = look(edge.kind);
        let style = if dashes.is_some() { ", style=dashed" } else { "" };
        let _ = writeln!(
            out,
            "  n{} -> n{} [color=\"{colour}\"{style}, tooltip=\"{name}\", class=\"{name}\"];",
            edge.from, edge.to
        );
    }
    out.push_str("}\n");
    out
}

/// A DOT string; a line break in it is a line break of the label.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}
