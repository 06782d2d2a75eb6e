//! The graph as an SVG picture.
//!
//! Laid out by [`super::layout`]; drawn here, with a legend. An SVG is for the eye: a graph too large to be
//! looked at is refused, with what to do instead.

use std::fmt::Write as _;

use super::contract::contract;
use super::layout::{Row, bend_count, layout, rows};
use super::{KINDS, Picture, PictureNode, RACING, look};

/// Nodes and bends of edges together: above this a layout takes seconds, and nobody reads it.
const LARGEST: usize = 50_000;
const MARGIN: f64 = 16.0;
const LINE: f64 = 14.0;
/// The width of a character of the 11-pixel monospace font, rounded up.
const CHARACTER: f64 = 6.8;
const CIRCLE: f64 = 22.0;
const LEGEND: f64 = 34.0;
const ARROW: f64 = 8.0;

/// The graph is too large to be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the graph is too large for an SVG: {nodes} nodes and {bends} bends of edges, together more than {}; \
     write it to a .dot file, for Graphviz, or to a .json file",
    LARGEST
)]
pub struct TooLarge {
    nodes: usize,
    bends: usize,
}

/// The picture as an SVG file.
pub fn svg(picture: &Picture) -> Result<String, TooLarge> {
    let drawn = contract(picture);
    let edges: Vec<(u32, u32)> = drawn.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let row = rows(drawn.nodes.len(), &edges);
    let (nodes, bends) = (drawn.nodes.len(), bend_count(&row, &edges));
    if nodes + bends > LARGEST {
        return Err(TooLarge { nodes, bends });
    }
    let labels: Vec<Vec<String>> = drawn.nodes.iter().map(|node| node.label()).collect();
    let sizes: Vec<(f64, f64)> =
        drawn.nodes.iter().zip(&labels).map(|(node, label)| size(node, label)).collect();
    let layout = layout(&sizes, row, &edges);

    let bottom = layout.rows.last().map_or(0.0, |row| row.bottom);
    let (width, height) = (layout.width.max(legend_width()) + 2.0 * MARGIN, bottom + LEGEND + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"monospace\" font-size=\"11\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escaped(&picture.title)
    );
    head(&mut out);
    let _ = writeln!(out, "<g transform=\"translate({MARGIN} {})\">", MARGIN + LEGEND);
    for ((edge, &(from, to)), bends) in drawn.edges.iter().zip(&edges).zip(&layout.bends) {
        let [from, to] = [from, to].map(|node| node as usize);
        let rows = &layout.rows[layout.row[from]..=layout.row[to]];
        let xs: Vec<f64> =
            [layout.x[from]].into_iter().chain(bends.iter().copied()).chain([layout.x[to]]).collect();
        let half = |node: usize| sizes[node].1 / 2.0;
        let (start, end) = (rows[0].middle() + half(from), rows[rows.len() - 1].middle() - half(to));
        let (name, colour, dashes) = look(edge.kind);
        let dashes = dashes.map_or(String::new(), |dashes| format!(" stroke-dasharray=\"{dashes}\""));
        let _ = writeln!(
            out,
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\"{dashes} marker-end=\"url(#{name})\"/>",
            path(&xs, rows, start, end)
        );
    }
    for (number, node) in drawn.nodes.iter().enumerate() {
        let (x, y) = (layout.x[number], layout.rows[layout.row[number]].middle());
        draw_node(&mut out, node, &labels[number], (x, y), sizes[number]);
    }
    out.push_str("</g>\n</svg>\n");
    Ok(out)
}

fn size(node: &PictureNode, label: &[String]) -> (f64, f64) {
    if node.is_empty() {
        return (CIRCLE, CIRCLE);
    }
    let longest = label.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    (longest as f64 * CHARACTER + 12.0, label.len() as f64 * LINE + 8.0)
}

/// The last words of the legend.
const IN_A_RACE: &str = "in a race";
/// From one kind of edge to the next.
const LEGEND_STEP: f64 = 112.0;

fn legend_width() -> f64 {
    KINDS.len() as f64 * LEGEND_STEP + IN_A_RACE.len() as f64 * CHARACTER
}

/// The arrow heads, one per colour, and the legend.
fn head(out: &mut String) {
    out.push_str("<defs>\n");
    for (name, colour, _) in KINDS.map(look) {
        let _ = writeln!(
            out,
            "<marker id=\"{name}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{colour}\"/></marker>"
        );
    }
    out.push_str("</defs>\n");
    let mut x = MARGIN;
    for (name, colour, dashes) in KINDS.map(look) {
        let dashes = dashes.map_or(String::new(), |dashes| format!(" stroke-dasharray=\"{dashes}\""));
        let _ = writeln!(
            out,
            "<path d=\"M{x} {MARGIN}h34\" stroke=\"{colour}\"{dashes} marker-end=\"url(#{name})\"/>\
             <text x=\"{}\" y=\"{}\">{name}</text>",
            x + 40.0,
            MARGIN + 4.0
        );
        x += LEGEND_STEP;
    }
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{}\" fill=\"{RACING}\">{IN_A_RACE}</text>", MARGIN + 4.0);
}

/// Straight down inside rows, and from column to column in the space between two of them.
fn path(xs: &[f64], rows: &[Row], start: f64, end: f64) -> String {
    let mut path = format!("M{:.1} {start:.1}", xs[0]);
    for (step, columns) in xs.windows(2).enumerate() {
        // The last bit is straight, and an arrow head there points down.
        let (leave, enter) = (rows[step].bottom, rows[step + 1].top - ARROW);
        let middle = (leave + enter) / 2.0;
        let (from, to) = (columns[0], columns[1]);
        let _ = write!(path, "V{leave:.1}C{from:.1} {middle:.1} {to:.1} {middle:.1} {to:.1} {enter:.1}");
    }
    let _ = write!(path, "V{end:.1}");
    path
}

fn draw_node(out: &mut String, node: &PictureNode, label: &[String], (x, y): (f64, f64), size: (f64, f64)) {
    let (stroke, fill) = if node.racing { (RACING, "#fdeaea") } else { ("#444444", "#f7f7f7") };
    let tip = escaped(&label.join("\n"));
    let _ = write!(out, "<g><title>{tip}</title>");
    if node.is_empty() {
        let _ = write!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" stroke=\"{stroke}\" fill=\"white\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"9\">{}</text>",
            CIRCLE / 2.0,
            y + 3.0,
            node.task
        );
    } else {
        let (left, top) = (x - size.0 / 2.0, y - size.1 / 2.0);
        let _ = write!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\" stroke=\"{stroke}\" fill=\"{fill}\"/>",
            size.0, size.1
        );
        for (number, line) in label.iter().enumerate() {
            let baseline = top + 15.0 + number as f64 * LINE;
            let _ = write!(out, "<text x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>", left + 6.0, escaped(line));
        }
    }
    out.push_str("</g>\n");
}

/// Text as it may stand in XML.
fn escaped(text: &str) -> String {
    // These two are characters, and not allowed there.
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
