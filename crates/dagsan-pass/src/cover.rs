//! Marks that others make superfluous.
//!
//! A mark is *covered* if its bytes are those of other marks that the same strand executes whenever it executes this one; of two
//! accesses to the same byte only the stronger one matters, so a write covers a read, and a read covers no write.
//!
//! - **Before it.** A mark is available at a point if it was executed on every way there since the last border. What is available at
//!   a mark is of the same strand. The address must be the same too: it is computed from the same values, and a block that
//!   computes one of them anew, in the next iteration of a loop, makes marks with that value unavailable.
//! - **After it.** Within a block and without a border in between, the marks that follow are executed if this one is: nothing
//!   between them can leave. So `x += 1` has one mark, the write's.
//!
//! The first rule is applied first, and the second rests on marks that are left alone; of those, the last of a chain is kept.
//! Had the same marks been the reason for each other, none would be.

use std::collections::HashMap;

use crate::flow::Flow;
use crate::model::{Function, Kind, Mark, Step};
use crate::sum::Product;

/// Beyond so many pairs of block and mark, only neighbours in a block are looked at.
const LIMIT: usize = 1 << 26;

/// So many marks that follow are looked at.
const FOLLOWING: usize = 64;

/// For each mark: is it superfluous?
pub fn covered(function: &Function, flow: &Flow) -> Vec<bool> {
    let mut covered = vec![false; function.marks.len()];
    if function.marks.len() * function.blocks.len() <= LIMIT {
        before(function, flow, &mut covered);
    }
    for block in &function.blocks {
        after(function, &block.steps, &mut covered);
    }
    covered
}

/// A set of marks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn none(count: usize) -> Set {
        Set(vec![0; count.div_ceil(64)])
    }

    fn all(count: usize) -> Set {
        Set(vec![u64::MAX; count.div_ceil(64)])
    }

    fn insert(&mut self, mark: usize) {
        self.0[mark / 64] |= 1 << (mark % 64);
    }

    fn has(&self, mark: usize) -> bool {
        self.0[mark / 64] >> (mark % 64) & 1 != 0
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Keeps what is in both.
    fn intersect(&mut self, other: &Set) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    /// Removes what is in the other.
    fn remove(&mut self, other: &Set) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }
}

/// By what is available.
fn before(function: &Function, flow: &Flow, covered: &mut [bool]) {
    let count = function.marks.len();
    // Marks whose addresses differ by constants.
    let mut related: HashMap<&[(Product, i64)], Vec<usize>> = HashMap::new();
    for (number, mark) in function.marks.iter().enumerate() {
        related.entry(&mark.at.terms).or_default().push(number);
    }
    if related.len() == count {
        return;
    }
    for others in related.values_mut() {
        others.sort_by_key(|&other| function.marks[other].at.constant);
    }
    let widest = function.marks.iter().map(|mark| mark.bytes).max().unwrap_or(0);
    // Marks with a value that the block computes.
    let mut renewed = vec![None; function.blocks.len()];
    for (number, mark) in function.marks.iter().enumerate() {
        for block in mark.at.leaves().filter_map(|leaf| function.leaves[leaf].block) {
            renewed[block].get_or_insert_with(|| Set::none(count)).insert(number);
        }
    }
    let at_start = |available: &[Set], block: usize| {
        let mut set = match &flow.predecessors[block][..] {
            // The entry has none, or else is no more than what comes from them.
            _ if block == 0 => Set::none(count),
            from => from.iter().fold(Set::all(count), |mut set, &from| {
                set.intersect(&available[from]);
                set
            }),
        };
        if let Some(renewed) = &renewed[block] {
            set.remove(renewed);
        }
        set
    };
    let mut at_end = vec![Set::all(count); function.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &flow.order {
            let mut set = at_start(&at_end, block);
            for step in &function.blocks[block].steps {
                match *step {
                    Step::Mark(mark) => set.insert(mark),
                    Step::Border => set.clear(),
                }
            }
            if set != at_end[block] {
                at_end[block] = set;
                changed = true;
            }
        }
    }
    for &block in &flow.order {
        let mut set = at_start(&at_end, block);
        for step in &function.blocks[block].steps {
            match *step {
                Step::Mark(number) => {
                    let mark = &function.marks[number];
                    let others = near(function, &related[&mark.at.terms[..]], mark, widest).iter();
                    let others = others.filter(|&&other| other != number && set.has(other));
                    covered[number] |= is_covered(mark, others.map(|&other| &function.marks[other]));
                    set.insert(number);
                }
                Step::Border => set.clear(),
            }
        }
    }
}

/// Of marks in the order of their constants, those that may have bytes of a mark.
fn near<'a>(function: &Function, others: &'a [usize], mark: &Mark, widest: u64) -> &'a [usize] {
    let (start, end) = range(mark);
    let constant = |&other: &usize| i128::from(function.marks[other].at.constant);
    let first = others.partition_point(|other| constant(other) + i128::from(widest) <= start);
    let behind = others.partition_point(|other| constant(other) < end);
    &others[first..behind.max(first)]
}

/// By what follows in the block.
fn after(function: &Function, steps: &[Step], covered: &mut [bool]) {
    let mut following: HashMap<&[(Product, i64)], Vec<&Mark>> = HashMap::new();
    for step in steps.iter().rev() {
        let &Step::Mark(number) = step else {
            following.clear();
            continue;
        };
        let mark = &function.marks[number];
        if covered[number] {
            continue;
        }
        let others = following.entry(&mark.at.terms).or_default();
        covered[number] = is_covered(mark, others.iter().copied());
        if !covered[number] {
            others.truncate(FOLLOWING - 1);
            others.insert(0, mark);
        }
    }
}

/// Do others, at addresses that differ from it by constants, have all bytes of a mark?
fn is_covered<'a>(mark: &Mark, others: impl Iterator<Item = &'a Mark>) -> bool {
    let (start, end) = range(mark);
    let is_enough = |other: &&Mark| mark.kind == Kind::Read || other.kind == Kind::Write;
    let mut parts: Vec<(i128, i128)> = others.filter(is_enough).map(range).collect();
    parts.sort_unstable();
    let reached = parts
        .iter()
        .fold(start, |reached, &(from, to)| if from <= reached { reached.max(to) } else { reached });
    reached >= end
}

/// The bytes of a mark, relative to the rest of its address.
fn range(mark: &Mark) -> (i128, i128) {
    let start = i128::from(mark.at.constant);
    (start, start + i128::from(mark.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Block, Leaf};
    use crate::sum::Sum;
    use Step::Border;

    fn mark(kind: Kind, leaf: usize, offset: i64, bytes: u64) -> Mark {
        let at = Sum::leaf(leaf).plus(&Sum::constant(offset), 1);
        Mark { kind, at, bytes, alignment: 1, place: 0 }
    }

    fn read(leaf: usize, offset: i64, bytes: u64) -> Mark {
        mark(Kind::Read, leaf, offset, bytes)
    }

    fn write(leaf: usize, offset: i64, bytes: u64) -> Mark {
        mark(Kind::Write, leaf, offset, bytes)
    }

    /// Blocks with their steps and successors. Leaf 0 and 1 are arguments, 2 is computed in block 1.
    fn covered_in(marks: Vec<Mark>, blocks: &[(&[Step], &[usize])]) -> Vec<bool> {
        let block = |&(steps, successors): &(&[Step], &[usize])| Block {
            steps: steps.to_vec(),
            successors: successors.to_vec(),
            ..Block::default()
        };
        let leaves = vec![Leaf::default(), Leaf::default(), Leaf { block: Some(1), ..Leaf::default() }];
        let function = Function { marks, blocks: blocks.iter().map(block).collect(), leaves };
        covered(&function, &Flow::of(&function))
    }

    fn one_block(marks: Vec<Mark>, steps: &[Step]) -> Vec<bool> {
        covered_in(marks, &[(steps, &[])])
    }

    const M: fn(usize) -> Step = Step::Mark;

    #[test]
    fn a_write_covers_the_read_before_it() {
        let marks = vec![read(0, 0, 8), write(0, 0, 8)];
        assert_eq!(one_block(marks.clone(), &[M(0), M(1)]), [true, false]);
        assert_eq!(one_block(marks, &[M(0), Border, M(1)]), [false, false]);
    }

    #[test]
    fn a_write_covers_no_wider_read_and_no_other_address() {
        let marks = vec![read(0, 0, 8), read(1, 0, 1), read(0, 0, 1), write(0, 0, 1)];
        assert_eq!(one_block(marks, &[M(0), M(1), M(2), M(3)]), [false, false, true, false]);
    }

    #[test]
    fn a_read_covers_no_write() {
        assert_eq!(one_block(vec![read(0, 0, 8), write(0, 0, 8)], &[M(1), M(0)]), [true, false]);
        assert_eq!(one_block(vec![write(0, 0, 4), read(0, 0, 8)], &[M(0), M(1)]), [false, false]);
    }

    #[test]
    fn two_that_are_equal_leave_one() {
        assert_eq!(one_block(vec![write(0, 0, 8), write(0, 0, 8)], &[M(0), M(1)]), [false, true]);
    }

    #[test]
    fn several_cover_one_together() {
        let marks = vec![read(0, 0, 4), write(0, 4, 4), read(0, 0, 8), read(0, 1, 8)];
        assert_eq!(one_block(marks, &[M(0), M(1), M(2), M(3)]), [false, false, true, false]);
    }

    #[test]
    fn what_is_on_all_ways_covers() {
        let marks = || vec![read(0, 0, 8), read(0, 0, 8), read(0, 0, 8)];
        // On both sides of a branch, and after it.
        let both = [(&[][..], &[1, 2][..]), (&[M(0)], &[3]), (&[M(1)], &[3]), (&[M(2)], &[])];
        assert_eq!(covered_in(marks(), &both), [false, false, false], "by either, but by no single one");
        let first = [(&[M(0)][..], &[1, 2][..]), (&[M(1)], &[3]), (&[], &[3]), (&[M(2)], &[])];
        assert_eq!(covered_in(marks(), &first), [false, true, true]);
        let one_side = [(&[][..], &[1, 2][..]), (&[M(0)], &[3]), (&[], &[3]), (&[M(2)], &[])];
        assert_eq!(covered_in(marks(), &one_side), [false, false, false]);
        let border = [(&[M(0)][..], &[1, 2][..]), (&[Border], &[3]), (&[], &[3]), (&[M(2)], &[])];
        assert_eq!(covered_in(marks(), &border), [false, false, false]);
    }

    #[test]
    fn the_next_iteration_has_other_addresses() {
        // Leaf 2 is new in each iteration of 1, leaf 0 is not.
        let marks = vec![read(2, 0, 8), read(2, 0, 8), read(0, 0, 8), read(0, 0, 8)];
        let blocks = [(&[M(2)][..], &[1][..]), (&[M(0), M(3)], &[2, 3]), (&[], &[1]), (&[M(1)], &[])];
        assert_eq!(covered_in(marks, &blocks), [false, true, false, true]);
        // Not by what the same mark did in the iteration before.
        let alone = [(&[][..], &[1][..]), (&[M(0)], &[1, 2]), (&[], &[])];
        assert_eq!(covered_in(vec![read(2, 0, 8)], &alone), [false]);
    }

    #[test]
    fn a_mark_in_a_loop_is_its_own_only_reason() {
        // What comes round the loop is itself.
        let blocks = [(&[][..], &[1][..]), (&[M(0)], &[1, 2]), (&[], &[])];
        assert_eq!(covered_in(vec![read(0, 0, 8)], &blocks), [false]);
    }
}
