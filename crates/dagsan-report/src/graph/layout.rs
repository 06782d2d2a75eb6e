//! Where the nodes of a graph go on paper, and how its edges run between them.
//!
//! Nodes are put in rows by their longest path from the start. An edge that skips rows gets a *bend* in
//! each, a thin node of its own, so that it does not run across boxes. Which node of a row stands beside which
//! is the work of the `rust-sugiyama` crate: barycentres, for few crossings.
//!
//! ```text
//!   row 0        [a]            top
//!                /  \           ... the edge a→c keeps its x in row 1, at its bend
//!   row 1      [b]   ╎
//!                \  /
//!   row 2        [c]            bottom
//! ```
//!
//! The crate's own x coordinates (Brandes and Köpf) give a whole vertical line the width of its widest box,
//! which makes long edges as wide as boxes. So x is found here: each row in turn is moved as near to its neighbours
//! as the widths allow, which is isotonic regression, a few times down and up.

use rust_sugiyama::configure::{Config, CrossingMinimization, RankingType};

/// Free space between nodes of a row, shared by the two.
const ACROSS: f64 = 14.0;
/// Free space between rows.
const DOWN: f64 = 34.0;
/// How much of a row a bend takes, with the space beside it.
const BEND: f64 = 9.0;
/// How often all rows are moved. More changes nothing to be seen.
const SWEEPS: usize = 24;

/// The space of a row on paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub top: f64,
    pub bottom: f64,
}

impl Row {
    pub(super) fn middle(self) -> f64 {
        (self.top + self.bottom) / 2.0
    }
}

/// Where everything goes.
#[derive(Debug)]
pub(super) struct Layout {
    /// The middle of each node.
    pub x: Vec<f64>,
    /// The row of each node.
    pub row: Vec<usize>,
    /// All rows, from top to bottom.
    pub rows: Vec<Row>,
    /// For each edge, the x of its bends, in the rows between its ends.
    pub bends: Vec<Vec<f64>>,
    /// How wide the whole is.
    pub width: f64,
}

/// The row of each node. Edges go from lower to higher numbers.
pub(super) fn rows(nodes: usize, edges: &[(u32, u32)]) -> Vec<usize> {
    let mut incoming: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (to, from)).collect();
    incoming.sort_unstable();
    let mut row = vec![0; nodes];
    for (to, from) in incoming {
        row[to as usize] = row[to as usize].max(row[from as usize] + 1);
    }
    row
}

/// How many bends the edges need.
pub(super) fn bend_count(row: &[usize], edges: &[(u32, u32)]) -> usize {
    edges.iter().map(|&(from, to)| row[to as usize] - row[from as usize] - 1).sum()
}

/// Places nodes of the given widths and heights, in the given rows.
pub(super) fn layout(sizes: &[(f64, f64)], row: Vec<usize>, edges: &[(u32, u32)]) -> Layout {
    let mut widths: Vec<f64> = sizes.iter().map(|&(width, _)| width + ACROSS).collect();
    let mut vertex_row = row.clone();
    let mut steps = Vec::new();
    let mut bends: Vec<Vec<u32>> = Vec::new();
    for &(from, to) in edges {
        let between = row[from as usize] + 1..row[to as usize];
        let own: Vec<u32> = (widths.len() as u32..).take(between.len()).collect();
        widths.extend(own.iter().map(|_| BEND));
        vertex_row.extend(between);
        let path: Vec<u32> = [from].into_iter().chain(own.iter().copied()).chain([to]).collect();
        steps.extend(path.windows(2).map(|step| (step[0], step[1])));
        bends.push(own);
    }
    // Two edges between the same nodes are one to the layout.
    steps.sort_unstable();
    steps.dedup();

    let mut x = columns(&steps, &widths, &vertex_row, sizes.len());
    let left = x.iter().zip(&widths).map(|(x, width)| x - width / 2.0).fold(f64::INFINITY, f64::min);
    x.iter_mut().for_each(|x| *x -= left);
    let width = x.iter().zip(&widths).map(|(x, width)| x + width / 2.0).fold(0.0, f64::max);

    let mut heights = vec![0.0_f64; row.iter().max().map_or(0, |last| last + 1)];
    for (&row, &(_, height)) in row.iter().zip(sizes) {
        heights[row] = heights[row].max(height);
    }
    let mut top = 0.0;
    let stack = |height: f64| {
        let row = Row { top, bottom: top + height };
        top = row.bottom + DOWN;
        row
    };
    let rows = heights.into_iter().map(stack).collect();
    let bends = bends.iter().map(|own| own.iter().map(|&bend| x[bend as usize]).collect()).collect();
    x.truncate(sizes.len());
    Layout { x, row, rows, bends, width }
}

/// The x of every vertex: nodes first, then bends. Steps go from one row to the next.
fn columns(steps: &[(u32, u32)], widths: &[f64], row: &[usize], nodes: usize) -> Vec<f64> {
    let config = Config {
        // Every edge goes to the next row already: there is nothing to rank or to bend.
        ranking_type: RankingType::Up,
        dummy_vertices: false,
        c_minimization: CrossingMinimization::Barycenter,
        // Costs far more time than the few crossings it saves are worth.
        transpose: false,
        ..Config::default()
    };
    let vertices: Vec<(u32, (f64, f64))> = (0..).zip(widths.iter().map(|&width| (width, 1.0))).collect();
    let mut x = vec![0.0; widths.len()];
    for (positions, _, _) in rust_sugiyama::from_vertices_and_edges(&vertices, steps, &config) {
        for (vertex, (middle, _)) in positions {
            x[vertex] = middle;
        }
    }
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); row.iter().max().map_or(0, |last| last + 1)];
    for (vertex, &row) in row.iter().enumerate() {
        rows[row].push(vertex);
    }
    for row in &mut rows {
        row.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
        // From here on only the order counts. Rows start packed, each around the middle of the paper.
        let mut edge = -row.iter().map(|&vertex| widths[vertex]).sum::<f64>() / 2.0;
        for &vertex in &*row {
            x[vertex] = edge + widths[vertex] / 2.0;
            edge += widths[vertex];
        }
    }

    let mut neighbours: Vec<Vec<(usize, f64)>> = vec![Vec::new(); widths.len()];
    for &(from, to) in steps {
        let [from, to] = [from, to].map(|vertex| vertex as usize);
        // Long edges shall be straight; what is between two nodes may slant.
        let weight = match (from >= nodes, to >= nodes) {
            (true, true) => 8.0,
            (false, false) => 1.0,
            _ => 2.0,
        };
        neighbours[from].push((to, weight));
        neighbours[to].push((from, weight));
    }
    for sweep in 0..SWEEPS {
        let order: Vec<&Vec<usize>> =
            if sweep % 2 == 0 { rows.iter().collect() } else { rows.iter().rev().collect() };
        for row in order {
            move_row(row, widths, &neighbours, &mut x);
        }
    }
    x
}

/// Moves the vertices of a row as near to the mean of their neighbours as their order and widths allow.
fn move_row(row: &[usize], widths: &[f64], neighbours: &[Vec<(usize, f64)>], x: &mut [f64]) {
    /// Vertices that touch each other, and move as one: where the first would like to be, and how many.
    struct Block {
        wish: f64,
        weight: f64,
        vertices: usize,
    }
    // With x = y + offset, "no overlap" is "y does not fall": the nearest such y is isotonic regression, which
    // pools neighbours that would overlap and gives them the mean of their wishes.
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(row.len());
    let mut blocks: Vec<Block> = Vec::new();
    for (at, &vertex) in row.iter().enumerate() {
        if at > 0 {
            offset += (widths[row[at - 1]] + widths[vertex]) / 2.0;
        }
        offsets.push(offset);
        let weight: f64 = neighbours[vertex].iter().map(|&(_, weight)| weight).sum();
        let wish: f64 = neighbours[vertex].iter().map(|&(other, weight)| x[other] * weight).sum();
        let (wish, weight) = if weight > 0.0 { (wish / weight, weight) } else { (x[vertex], 1.0) };
        let mut block = Block { wish: wish - offset, weight, vertices: 1 };
        while let Some(before) = blocks.pop_if(|before| before.wish > block.wish) {
            let weight = before.weight + block.weight;
            let wish = (before.wish * before.weight + block.wish * block.weight) / weight;
            block = Block { wish, weight, vertices: before.vertices + block.vertices };
        }
        blocks.push(block);
    }
    let places = blocks.iter().flat_map(|block| std::iter::repeat_n(block.wish, block.vertices));
    for ((&vertex, offset), wish) in row.iter().zip(offsets).zip(places) {
        x[vertex] = wish + offset;
    }
}
