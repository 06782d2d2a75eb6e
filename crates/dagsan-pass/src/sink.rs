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
//!   by a constant with each iteration. They may be multiplied with what the loop does not change, so that the stride is known
//!   at run time only. Arithmetic is modulo 2^64 throughout, and narrower variables are not looked into.
//!
//! Marks of one line of the source that are executed together and differ by constants share a range if their bytes touch, as
//! those of an unrolled loop do: together they are as wide as the stride. A mark that is narrower than its stride becomes a
//! stride, a count and a width.
//!
//! A range behind an inner loop sinks further (`rise`), if its bounds are known there.

use std::collections::BTreeMap;

use crate::flow::{Flow, Loop};
use crate::model::{Function, Kind, Mark};
use crate::rise;
use crate::sum::{Product, Sum};

/// Marks of a loop that are executed together, as a range behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sunk {
    /// They stand for these. The first one names the place.
    pub members: Vec<usize>,
    pub kind: Kind,
    pub first: Sum,
    pub now: Sum,
    pub stride: Sum,
    pub width: Sum,
    pub exits: Vec<Exit>,
    /// Tells how many iterations there were.
    pub counter: Option<Induction>,
    /// They were executed only if these blocks have gone on to their first successor, or to their second one; that is the
    /// same in all iterations.
    pub guards: Vec<Guard>,
}

/// A branch whose condition does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    pub block: usize,
    /// Must the condition hold?
    pub holds: bool,
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
pub struct Induction {
    pub phi: usize,
    pub first: Sum,
    pub step: i64,
}

/// All that can sink. `gone` says which marks are not there any more.
pub fn sunk(function: &Function, flow: &Flow, gone: &[bool]) -> Vec<Sunk> {
    let mut all = Vec::new();
    for number in 0..flow.loops.len() {
        if let Some(nest) = Nest::of(function, flow, number) {
            for one in nest.marks(gone) {
                rise::as_far_as_possible(&nest, one, &mut all);
            }
        }
    }
    all
}

/// A loop that marks can sink out of.
pub struct Nest<'a> {
    pub function: &'a Function,
    pub flow: &'a Flow,
    pub number: usize,
    pub inductions: Vec<Induction>,
}

impl<'a> Nest<'a> {
    /// The loop of that number, if it is one.
    pub fn of(function: &'a Function, flow: &'a Flow, number: usize) -> Option<Nest<'a>> {
        let each = &flow.loops[number];
        let blocks = function.blocks.iter().zip(&each.body);
        // An edge that is there twice cannot be told from itself.
        let is_single = |&(from, to): &(usize, usize)| {
            let block = &function.blocks[from];
            block.branches && block.successors.iter().filter(|&&other| other == to).count() == 1
        };
        let can_sink = each.latches.len() == 1
            && !each.exits.is_empty()
            && each.exits.iter().all(is_single)
            && !blocks.filter(|&(_, &is_in)| is_in).any(|(block, _)| block.has_border());
        can_sink.then(|| Nest { function, flow, number, inductions: inductions(function, each) })
    }

    pub fn each(&self) -> &'a Loop {
        &self.flow.loops[self.number]
    }

    /// Does the loop compute it?
    pub fn changes(&self, leaf: usize) -> bool {
        is_computed_in(self.function, self.each(), leaf)
    }

    fn is_induction(&self, leaf: usize) -> bool {
        self.inductions.iter().any(|one| one.phi == leaf)
    }

    /// Is a block executed in each iteration, and once?
    pub fn is_always_executed(&self, block: usize) -> bool {
        self.flow.innermost[block] == Some(self.number) && self.flow.dominates(block, self.each().latches[0])
    }

    /// The exits, for what such a block does.
    pub fn exits(&self, block: usize) -> Vec<Exit> {
        let exit =
            |&(from, to): &(usize, usize)| Exit { from, to, included: self.flow.dominates(block, from) };
        self.each().exits.iter().map(exit).collect()
    }

    /// A sum in the first iteration, and by how much it grows with each; none if that differs, or if it is made of other
    /// things.
    pub fn course(&self, sum: &Sum) -> Option<(Sum, Sum)> {
        if !sum.leaves().all(|leaf| !self.changes(leaf) || self.is_induction(leaf)) {
            return None;
        }
        let (mut first, mut stride) = (sum.clone(), Sum::default());
        for one in &self.inductions {
            stride = stride.plus(&sum.factor(one.phi)?, one.step);
            first = first.with(one.phi, &one.first)?;
        }
        let is_constant = !stride.leaves().any(|leaf| self.changes(leaf));
        is_constant.then_some((first, stride))
    }

    /// What is executed in each iteration, as a range behind the loop; none if nothing tells how often it was.
    pub fn range(
        &self,
        members: Vec<usize>,
        kind: Kind,
        now: Sum,
        width: Sum,
        exits: Vec<Exit>,
    ) -> Option<Sunk> {
        let (first, stride) = self.course(&now)?;
        let counter = self.inductions.iter().find(|one| one.step != 0).cloned();
        // What moves by a constant tells by itself. What stands still was executed if there was an iteration before.
        let tells = match (stride.as_constant(), width.as_constant()) {
            (Some(0), _) => exits.iter().all(|exit| exit.included),
            (Some(_), Some(_)) => true,
            _ => false,
        };
        let guards = Vec::new();
        (tells || counter.is_some()).then_some(Sunk {
            members,
            kind,
            first,
            now,
            stride,
            width,
            exits,
            counter,
            guards,
        })
    }

    /// The marks of the loop that can sink.
    fn marks(&self, gone: &[bool]) -> Vec<Sunk> {
        let mut groups: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
        for &block in self.flow.order.iter().filter(|&&block| self.is_always_executed(block)) {
            let exits = self.exits(block);
            for mark in self.function.blocks[block].marks().filter(|&mark| !gone[mark]) {
                let Mark { kind, at, place, .. } = &self.function.marks[mark];
                groups.entry((*kind, *place, &at.terms, exits.clone())).or_default().push(mark);
            }
        }
        let mut all = Vec::new();
        for ((kind, _, terms, exits), marks) in groups {
            for (constant, width, members) in intervals(self.function, marks) {
                let now = Sum { terms: terms.to_vec(), constant };
                all.extend(self.range(members, kind, now, Sum::constant(width as i64), exits.clone()));
            }
        }
        all
    }
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
        let Some(step) = next.plus(&Sum::leaf(phi), -1).as_constant() else { continue };
        if others.iter().all(|(_, other)| other == first)
            && !first.leaves().any(|leaf| is_computed_in(function, each, leaf))
        {
            found.push(Induction { phi, first: first.clone(), step });
        }
    }
    found
}

fn is_computed_in(function: &Function, each: &Loop, leaf: usize) -> bool {
    function.leaves[leaf].block.is_some_and(|block| each.body[block])
}

/// Marks that are executed together: kind, line, the address without its constant, and the exits.
type Key<'a> = (Kind, usize, &'a [(Product, i64)], Vec<Exit>);

/// The bytes of marks that differ by constants: start, length, and the marks; those that touch are one.
fn intervals(function: &Function, mut marks: Vec<usize>) -> Vec<(i64, u64, Vec<usize>)> {
    marks.sort_by_key(|&mark| function.marks[mark].at.constant);
    let mut intervals: Vec<(i64, u64, Vec<usize>)> = Vec::new();
    for number in marks {
        let mark = &function.marks[number];
        let start = mark.at.constant;
        if let Some((known, length, members)) = intervals.last_mut()
            && let Some(distance) =
                start.checked_sub(*known).and_then(|distance| u64::try_from(distance).ok())
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
    pub(crate) fn function(step: i64, marks: Vec<(usize, Mark)>) -> Function {
        let block = |successors: &[usize]| Block {
            successors: successors.to_vec(),
            branches: true,
            ..Block::default()
        };
        let mut blocks: Vec<Block> = [&[1][..], &[2, 4], &[3], &[1, 5], &[], &[]].map(block).into();
        for (number, (block, _)) in marks.iter().enumerate() {
            blocks[*block].steps.push(Step::Mark(number));
        }
        let next = Sum::leaf(1).plus(&Sum::constant(step), 1);
        let leaves = vec![
            Leaf::default(),
            Leaf { block: Some(1), incoming: vec![(0, Sum::constant(0)), (3, next)] },
            Leaf { block: Some(2), ..Leaf::default() },
        ];
        Function { blocks, marks: marks.into_iter().map(|(_, mark)| mark).collect(), leaves }
    }

    /// A read at `leaf 0 + factor · leaf + constant`.
    fn read(leaf: usize, factor: i64, constant: i64, bytes: u64) -> Mark {
        let at = Sum::leaf(0).plus(&Sum::leaf(leaf), factor).plus(&Sum::constant(constant), 1);
        Mark { kind: Kind::Read, at, bytes, alignment: 8, place: 0 }
    }

    fn of(function: &Function) -> Vec<Sunk> {
        sunk(function, &Flow::of(function), &vec![false; function.marks.len()])
    }

    #[test]
    fn a_mark_is_included_in_exits_behind_it_alone() {
        let [one] = &of(&function(1, vec![(2, read(1, 8, 0, 8))]))[..] else { panic!("one range") };
        assert_eq!((&one.stride, &one.width), (&Sum::constant(8), &Sum::constant(8)));
        assert_eq!(one.first, Sum::leaf(0));
        let included: Vec<(usize, bool)> = one.exits.iter().map(|exit| (exit.from, exit.included)).collect();
        assert_eq!(included, [(1, false), (3, true)]);
    }

    #[test]
    fn neighbours_share_a_range() {
        let marks = vec![(2, read(1, 8, 8, 8)), (2, read(1, 8, 0, 8)), (2, read(1, 8, 32, 8))];
        let sunk = of(&function(2, marks));
        let found: Vec<_> =
            sunk.iter().map(|one| (one.stride.constant, one.first.constant, one.width.constant)).collect();
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
        assert_eq!((one.stride.as_constant(), one.counter.is_some()), (Some(0), true));
        assert_eq!(of(&function(0, vec![(2, still())])), []);
        // Where it is always included, nothing needs to move.
        assert_eq!(of(&function(0, vec![(1, still())])).len(), 1);
    }

    #[test]
    fn a_stride_may_be_known_at_run_time_only() {
        // The induction variable times leaf 3, which is an argument.
        let mut function = function(2, vec![(2, read(1, 0, 0, 8))]);
        function.leaves.push(Leaf::default());
        let product = Sum::leaf(1).times(&Sum::leaf(3)).unwrap();
        function.marks[0].at = function.marks[0].at.plus(&product, 8);
        let [one] = &of(&function)[..] else { panic!("one range") };
        assert_eq!(one.stride, Sum::leaf(3).scaled(16));
        assert_eq!(one.first, Sum::leaf(0));
        // Not if the loop computes it.
        function.leaves[3].block = Some(2);
        assert_eq!(of(&function), []);
    }

    #[test]
    fn edges_that_cannot_be_changed_keep_marks_inside() {
        let mut function = function(1, vec![(2, read(1, 8, 0, 8))]);
        function.blocks[3].branches = false;
        assert_eq!(of(&function), []);
    }
}
