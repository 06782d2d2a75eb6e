//! Marks of loops sink to where the loop is left, as ranges.
//!
//! In a loop without a border all iterations are of one strand, so its marks may as well stand behind it. There the number of
//! iterations is known, from the induction variables themselves: whatever way the loop is left, they have the values of the
//! iteration that left. A mark whose address moves by a constant with each iteration becomes one range per exit.
//!
//! ```text
//!   for i in first.. {                       first    the address in the first iteration
//!       …                                    now      the address in the iteration that leaves
//!       read a[i]      ← the mark            stride   by how much it moves
//!       if … break     ← included: a[i] was read
//!   }
//!   if … break before the read: not included, the last one read was that of the iteration before
//!
//!             first                   now         stride > 0, included
//!               [width) [width) … [width)
//! ```
//!
//! What must hold:
//! - there is no border in the loop, its only latch goes back to the header, and every exit is a branch;
//! - the mark is in no inner loop, and is executed in every iteration: its block dominates the latch. Then for each exit, it
//!   was executed in the last iteration if its block dominates the exit, and otherwise was not: a block that does not
//!   dominate the exit, and yet came before it, would have to be on some ways to the latch only;
//! - its address is a sum of values that the loop does not change, and of induction variables: phis of the header that grow
//!   by a constant with each iteration. Arithmetic is modulo 2^64 throughout, and narrower variables are not looked into.
//!
//! Marks of one line of the source that are executed together and differ by constants share a range if their bytes touch, as
//! those of an unrolled loop do: together they are as wide as the stride. A mark that is narrower than its stride becomes a
//! stride, a count and a width.

use std::collections::BTreeMap;

use crate::flow::{Flow, Loop};
use crate::linear::Linear;
use crate::model::{Function, Kind, Mark};

/// Marks of a loop that are executed together, as a range behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sunk {
    /// They stand for these. The first one names the place.
    pub members: Vec<usize>,
    pub kind: Kind,
    pub first: Linear,
    pub now: Linear,
    pub stride: i64,
    pub width: u64,
    pub exits: Vec<Exit>,
    /// An induction variable, and its first value: they differ from the second iteration on.
    pub moves: Option<(Linear, Linear)>,
}

/// Where a loop is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exit {
    pub from: usize,
    pub to: usize,
    /// Were the marks executed in the iteration that leaves?
    pub included: bool,
}

/// A phi that grows by a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Induction {
    phi: usize,
    first: Linear,
    step: i64,
}

/// All that can sink. `gone` says which marks are not there any more.
pub fn sunk(function: &Function, flow: &Flow, gone: &[bool]) -> Vec<Sunk> {
    let mut sunk = Vec::new();
    for (number, each) in flow.loops.iter().enumerate() {
        if can_sink(function, each) {
            let inductions = inductions(function, each);
            sink(function, flow, gone, number, &inductions, &mut sunk);
        }
    }
    sunk
}

fn can_sink(function: &Function, each: &Loop) -> bool {
    let blocks = || function.blocks.iter().zip(&each.body).filter(|&(_, &is_in)| is_in).map(|(block, _)| block);
    // An edge that is there twice cannot be told from itself.
    let is_single = |&(from, to): &(usize, usize)| {
        let block = &function.blocks[from];
        block.branches && block.successors.iter().filter(|&&other| other == to).count() == 1
    };
    each.latches.len() == 1
        && !each.exits.is_empty()
        && each.exits.iter().all(is_single)
        && !blocks().any(|block| block.has_border())
}

/// The induction variables of a loop with one latch.
fn inductions(function: &Function, each: &Loop) -> Vec<Induction> {
    let mut found = Vec::new();
    for (phi, leaf) in function.leaves.iter().enumerate() {
        if leaf.block != Some(each.header) || leaf.incoming.is_empty() {
            continue;
        }
        let (back, enter): (Vec<_>, Vec<_>) = leaf.incoming.iter().partition(|(from, _)| each.body[*from]);
        let [(_, next)] = back[..] else { continue };
        let Some(((_, first), others)) = enter.split_first() else { continue };
        let by = next.plus(&Linear::leaf(phi), -1);
        let is_outside = |&(leaf, _): &(usize, i64)| !is_computed_in(function, each, leaf);
        if by.terms.is_empty()
            && others.iter().all(|(_, other)| other == first)
            && first.terms.iter().all(is_outside)
        {
            found.push(Induction { phi, first: first.clone(), step: by.constant });
        }
    }
    found
}

fn is_computed_in(function: &Function, each: &Loop, leaf: usize) -> bool {
    function.leaves[leaf].block.is_some_and(|block| each.body[block])
}

/// Marks that are executed together: kind, line, the address without its constant, and the exits.
type Key<'a> = (Kind, usize, &'a [(usize, i64)], Vec<Exit>);

/// Sinks the marks of one loop.
fn sink(
    function: &Function,
    flow: &Flow,
    gone: &[bool],
    number: usize,
    inductions: &[Induction],
    sunk: &mut Vec<Sunk>,
) {
    let each = &flow.loops[number];
    let own = flow.order.iter().copied().filter(|&block| flow.innermost[block] == Some(number));
    let always = own.filter(|&block| flow.dominates(block, each.latches[0]));
    let mut groups: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
    for block in always {
        let exits: Vec<Exit> = each
            .exits
            .iter()
            .map(|&(from, to)| Exit { from, to, included: flow.dominates(block, from) })
            .collect();
        for mark in function.blocks[block].marks().filter(|&mark| !gone[mark]) {
            let Mark { kind, at, place, .. } = &function.marks[mark];
            let is_known = |&(leaf, _): &(usize, i64)| {
                !is_computed_in(function, each, leaf) || inductions.iter().any(|one| one.phi == leaf)
            };
            if at.terms.iter().all(is_known) {
                groups.entry((*kind, *place, &at.terms, exits.clone())).or_default().push(mark);
            }
        }
    }
    let moves = inductions.iter().find(|one| one.step != 0);
    let moves = moves.map(|one| (Linear::leaf(one.phi), one.first.clone()));
    for ((kind, _, terms, exits), marks) in groups {
        let now = Linear { terms: terms.to_vec(), constant: 0 };
        let first = inductions.iter().fold(now.clone(), |at, one| at.with(one.phi, &one.first));
        let stride = inductions.iter().fold(0i64, |stride, one| {
            stride.wrapping_add(now.factor(one.phi).wrapping_mul(one.step))
        });
        // What stands still was executed if there was an iteration before, which something must tell.
        if stride == 0 && moves.is_none() && exits.iter().any(|exit| !exit.included) {
            continue;
        }
        for (constant, width, members) in intervals(function, marks) {
            let by = Linear::constant(constant);
            sunk.push(Sunk {
                members,
                kind,
                first: first.plus(&by, 1),
                now: now.plus(&by, 1),
                stride,
                width,
                exits: exits.clone(),
                moves: moves.clone(),
            });
        }
    }
}

/// The bytes of marks that differ by constants: start, length, and the marks; those that touch are one.
fn intervals(function: &Function, mut marks: Vec<usize>) -> Vec<(i64, u64, Vec<usize>)> {
    marks.sort_by_key(|&mark| function.marks[mark].at.constant);
    let mut intervals: Vec<(i64, u64, Vec<usize>)> = Vec::new();
    for number in marks {
        let mark = &function.marks[number];
        let start = mark.at.constant;
        if let Some((known, length, members)) = intervals.last_mut()
            && let Some(distance) = start.checked_sub(*known).and_then(|distance| u64::try_from(distance).ok())
            && distance <= *length
        {
            *length = (*length).max(distance + mark.bytes);
            members.push(number);
        } else {
            intervals.push((start, mark.bytes, vec![number]));
        }
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Block, Leaf, Step};

    /// `0 → 1 { 2 → 3 → 1 }`, left by 1 to 4 and by 3 to 5. Leaf 0 is a pointer, 1 an induction variable from 0 in steps of
    /// `step`, 2 is computed in block 2.
    fn function(step: i64, marks: Vec<(usize, Mark)>) -> Function {
        let block = |successors: &[usize]| Block { successors: successors.to_vec(), branches: true, ..Block::default() };
        let mut blocks: Vec<Block> = [&[1][..], &[2, 4], &[3], &[1, 5], &[], &[]].map(block).into();
        for (number, (block, _)) in marks.iter().enumerate() {
            blocks[*block].steps.push(Step::Mark(number));
        }
        let next = Linear::leaf(1).plus(&Linear::constant(step), 1);
        let leaves = vec![
            Leaf::default(),
            Leaf { block: Some(1), incoming: vec![(0, Linear::constant(0)), (3, next)] },
            Leaf { block: Some(2), ..Leaf::default() },
        ];
        Function { blocks, marks: marks.into_iter().map(|(_, mark)| mark).collect(), leaves }
    }

    /// A read at `leaf 0 + factor · leaf + constant`.
    fn read(leaf: usize, factor: i64, constant: i64, bytes: u64) -> Mark {
        let at = Linear::leaf(0).plus(&Linear::leaf(leaf), factor).plus(&Linear::constant(constant), 1);
        Mark { kind: Kind::Read, at, bytes, alignment: 8, place: 0 }
    }

    fn of(function: &Function) -> Vec<Sunk> {
        sunk(function, &Flow::of(function), &vec![false; function.marks.len()])
    }

    #[test]
    fn a_mark_is_included_in_exits_behind_it_alone() {
        let [one] = &of(&function(1, vec![(2, read(1, 8, 0, 8))]))[..] else { panic!("one range") };
        assert_eq!((one.stride, one.width), (8, 8));
        assert_eq!(one.first, Linear::leaf(0));
        let included: Vec<(usize, bool)> = one.exits.iter().map(|exit| (exit.from, exit.included)).collect();
        assert_eq!(included, [(1, false), (3, true)]);
    }

    #[test]
    fn neighbours_share_a_range() {
        let marks = vec![(2, read(1, 8, 8, 8)), (2, read(1, 8, 0, 8)), (2, read(1, 8, 32, 8))];
        let sunk = of(&function(2, marks));
        let found: Vec<_> = sunk.iter().map(|one| (one.stride, one.first.constant, one.width)).collect();
        assert_eq!(found, [(16, 0, 16), (16, 32, 8)]);
        assert_eq!(sunk[0].members, [1, 0]);
    }

    #[test]
    fn marks_in_other_places_of_the_loop_have_other_counts() {
        let sunk = of(&function(1, vec![(1, read(1, 8, 0, 8)), (3, read(1, 8, 8, 8))]));
        assert_eq!(sunk.len(), 2);
    }

    #[test]
    fn what_the_loop_computes_in_other_ways_stays() {
        assert_eq!(of(&function(1, vec![(2, read(2, 8, 0, 8))])), []);
    }

    #[test]
    fn nothing_sinks_past_a_border() {
        let mut function = function(1, vec![(2, read(1, 8, 0, 8))]);
        function.blocks[3].steps.push(Step::Border);
        assert_eq!(of(&function), []);
    }

    #[test]
    fn a_mark_on_some_ways_stays() {
        // 2 is on one side of a branch.
        let mut function = function(1, vec![(2, read(1, 8, 0, 8))]);
        function.blocks[1].successors = vec![2, 3, 4];
        assert_eq!(of(&function), []);
    }

    #[test]
    fn what_stands_still_needs_to_know_whether_there_was_an_iteration() {
        let still = || read(1, 0, 0, 8);
        let [one] = &of(&function(1, vec![(2, still())]))[..] else { panic!("one range") };
        assert_eq!((one.stride, one.moves.is_some()), (0, true));
        assert_eq!(of(&function(0, vec![(2, still())])), []);
        // Where it is always included, nothing needs to move.
        assert_eq!(of(&function(0, vec![(1, still())])).len(), 1);
    }

    #[test]
    fn edges_that_cannot_be_changed_keep_marks_inside() {
        let mut function = function(1, vec![(2, read(1, 8, 0, 8))]);
        function.blocks[3].branches = false;
        assert_eq!(of(&function), []);
    }
}
