//! Ranges behind an inner loop go on to where the outer loop is left.
//!
//! A range behind a loop is an access of the loop around it. It can go on if it is made in each iteration of that loop, is one
//! piece, and its length does not change there: its start then moves as any address does.
//!
//! ```text
//!   for k in 0..m {
//!       for j in 0..n { … b[k · n + j] … }      range: from b + k·n, n elements
//!   }                                           range: from b, stride n, m pieces of n elements
//! ```
//!
//! The length is that of the loop's last iteration, which is known if the loop is left when two numbers are equal: that
//! equation is solved for the number of iterations. Compilers ask before a loop whether it has iterations at all, or enough to
//! use vectors: such a *guard* may stand between the two loops if the outer one does not change its condition. Then either all
//! iterations come to the inner loop or none does, and behind the outer loop the condition is still there to be asked.
//!
//! Other ways out of the inner loop must leave the outer one too; on them the
//! range of the inner loop stays, beside what the iterations before have done.

use crate::model::{Condition, Equal};
use crate::sink::{Exit, Guard, Nest, Sunk};
use crate::sum::Sum;

/// Adds a range behind a loop to `all`, behind as many loops as possible.
pub fn as_far_as_possible(nest: &Nest<'_>, mut one: Sunk, all: &mut Vec<Sunk>) {
    let outer = (nest.number + 1..nest.flow.loops.len())
        .find(|&number| nest.flow.loops[number].body[nest.each().header])
        .and_then(|number| Nest::of(nest.function, nest.flow, number));
    if let Some(outer) = outer
        && let Some((way, risen)) = risen(nest, &outer, &one)
    {
        one.exits.retain(|exit| *exit != way);
        as_far_as_possible(&outer, risen, all);
    }
    if !one.exits.is_empty() {
        all.push(one);
    }
}

/// The same range behind the outer loop, and the way out of the inner one where it is not needed then.
fn risen(inner: &Nest<'_>, outer: &Nest<'_>, one: &Sunk) -> Option<(Exit, Sunk)> {
    let mut ways = one.exits.iter().filter(|exit| outer.each().body[exit.to]);
    let (Some(&way), None) = (ways.next(), ways.next()) else { return None };
    let is_only_way = inner.flow.predecessors[way.to] == [way.from];
    if !is_only_way || inner.flow.innermost[way.to] != Some(outer.number) {
        return None;
    }
    let (start, length) = piece(inner, one, way)?;
    if length.leaves().any(|leaf| outer.changes(leaf)) {
        return None;
    }
    let (above, mut guards) = guards(inner, outer)?;
    for guard in &one.guards {
        is_fixed(outer, guard.block).then_some(())?;
    }
    guards.extend(&one.guards);
    let exits = exits(outer, above, way.to);
    let risen = outer.range(one.members.clone(), one.kind, start, length, exits)?;
    Some((way, Sunk { guards, ..risen }))
}

/// The branches that decide whether an iteration of the outer loop comes to the inner one, from the inside, and the block
/// above them, which each iteration comes to. None if some may decide one way and then the other.
fn guards(inner: &Nest<'_>, outer: &Nest<'_>) -> Option<(usize, Vec<Guard>)> {
    let flow = inner.flow;
    let mut entries = flow.predecessors[inner.each().header].iter().filter(|&&from| !inner.each().body[from]);
    let (Some(&entry), None) = (entries.next(), entries.next()) else { return None };
    let (mut to, mut from) = (inner.each().header, entry);
    let mut guards = Vec::new();
    loop {
        if flow.innermost[from] != Some(outer.number) {
            return None;
        }
        let successors = &inner.function.blocks[from].successors;
        if successors.len() > 1 {
            let [yes, no] = successors[..] else { return None };
            if yes == no || !is_fixed(outer, from) {
                return None;
            }
            guards.push(Guard { block: from, holds: yes == to });
        }
        if outer.is_always_executed(from) {
            return Some((from, guards));
        }
        let [above] = flow.predecessors[from][..] else { return None };
        (to, from) = (from, above);
    }
}

/// Does the branch at the end of a block depend on nothing that the loop computes?
fn is_fixed(outer: &Nest<'_>, block: usize) -> bool {
    match outer.function.blocks[block].condition {
        Some(Condition::Given) => true,
        Some(Condition::ComputedIn(computed)) => !outer.each().body[computed],
        None => false,
    }
}

/// The exits of the outer loop, for what is done at the beginning of `block`, if guards below `above` let it.
///
/// An iteration that leaves where it cannot come to from `block` has not done it. If it leaves elsewhere, it came through
/// `above`, and the guards have decided as always.
fn exits(outer: &Nest<'_>, above: usize, block: usize) -> Vec<Exit> {
    let each = outer.each();
    let mut reached = vec![false; each.body.len()];
    let mut open = vec![block];
    while let Some(at) = open.pop() {
        if each.body[at] && !std::mem::replace(&mut reached[at], true) {
            open.extend(outer.function.blocks[at].successors.iter().filter(|&&to| to != each.header));
        }
    }
    let included = |from: usize| reached[from] && outer.flow.dominates(above, from);
    each.exits.iter().map(|&(from, to)| Exit { from, to, included: included(from) }).collect()
}

/// Start and length of a range that is one piece, for a way out.
fn piece(inner: &Nest<'_>, one: &Sunk, way: Exit) -> Option<(Sum, Sum)> {
    let stride = one.stride.as_constant()?;
    if stride == 0 {
        return way.included.then(|| (one.first.clone(), one.width.clone()));
    }
    let width = one.width.as_constant()?;
    let by = i64::try_from(stride.unsigned_abs()).ok()?;
    if width < by || !(way.included || width == by) {
        return None;
    }
    let moved = moved(inner, inner.function.blocks[way.from].equal.as_ref()?, way, stride)?;
    // From the first piece to that of the last iteration, or to the one behind it.
    let (start, distance) = match (stride > 0, way.included) {
        (true, _) => (one.first.clone(), moved),
        (false, true) => (one.first.plus(&moved, 1), moved.scaled(-1)),
        (false, false) => (one.first.plus(&moved, 1).plus(&Sum::constant(by), 1), moved.scaled(-1)),
    };
    let last = if way.included { width } else { 0 };
    Some((start, distance.plus(&Sum::constant(last), 1)))
}

/// How far something has moved by `stride` in each iteration when the loop is left because two numbers are equal.
fn moved(inner: &Nest<'_>, equal: &Equal, way: Exit, stride: i64) -> Option<Sum> {
    if equal.to != way.to {
        return None;
    }
    // The difference is `first + step · iterations`, and 0 now.
    let (first, step) = inner.course(&equal.left.plus(&equal.right, -1))?;
    let step = step.as_constant().filter(|&step| step != 0)?;
    let factor = stride.checked_div(step).filter(|factor| factor.checked_mul(step) == Some(stride))?;
    Some(first.scaled(factor.checked_neg()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Flow;
    use crate::model::{Block, Function, Kind, Leaf, Mark, Step};
    use crate::sink::sunk;

    /// `0 → 1 { 2 { 2 } → 3 → 1 } → 4`; 2 is left when the inner variable, one step on, is `bound`. Leaf 0 is a pointer, 1 the
    /// outer variable, 2 the inner one, both from 0 in steps of 1; 3 and 4 are arguments. One read of 8 bytes in 2.
    fn nest(at: Sum, bound: Sum) -> Function {
        let block = |successors: &[usize]| Block {
            successors: successors.to_vec(),
            branches: true,
            ..Block::default()
        };
        let mut blocks: Vec<Block> = [&[1][..], &[2], &[2, 3], &[1, 4], &[]].map(block).into();
        blocks[2].steps.push(Step::Mark(0));
        let next = |leaf| Sum::leaf(leaf).plus(&Sum::constant(1), 1);
        blocks[2].equal = Some(Equal { to: 3, left: next(2), right: bound });
        let phi = |block, from, leaf| Leaf {
            block: Some(block),
            incoming: vec![(from, Sum::constant(0)), (if block == 2 { 2 } else { 3 }, next(leaf))],
        };
        let leaves = vec![Leaf::default(), phi(1, 0, 1), phi(2, 1, 2), Leaf::default(), Leaf::default()];
        let marks = vec![Mark { kind: Kind::Read, at, bytes: 8, alignment: 8, place: 0 }];
        Function { blocks, marks, leaves }
    }

    fn of(function: &Function) -> Vec<Sunk> {
        sunk(function, &Flow::of(function), &vec![false; function.marks.len()])
    }

    fn exits(one: &Sunk) -> Vec<(usize, usize)> {
        one.exits.iter().map(|exit| (exit.from, exit.to)).collect()
    }

    #[test]
    fn rows_become_a_stride() {
        // pointer + 8 · (n · outer + inner), for inner below n.
        let row = Sum::leaf(1).times(&Sum::leaf(3)).unwrap();
        let at = Sum::leaf(0).plus(&row, 8).plus(&Sum::leaf(2), 8);
        let [one] = &of(&nest(at, Sum::leaf(3)))[..] else { panic!("one range") };
        assert_eq!(exits(one), [(3, 4)]);
        assert_eq!((&one.first, &one.stride), (&Sum::leaf(0), &Sum::leaf(3).scaled(8)));
        assert_eq!(one.width, Sum::leaf(3).scaled(8));
    }

    #[test]
    fn what_each_iteration_does_again_is_done_once() {
        let at = Sum::leaf(0).plus(&Sum::leaf(2), 8);
        let [one] = &of(&nest(at, Sum::constant(64)))[..] else { panic!("one range") };
        assert_eq!(
            (exits(one), &one.stride, &one.width),
            (vec![(3, 4)], &Sum::constant(0), &Sum::constant(512))
        );
    }

    #[test]
    fn what_goes_down_starts_at_its_end() {
        let at = Sum::leaf(0).plus(&Sum::leaf(2), -8);
        let [one] = &of(&nest(at, Sum::constant(64)))[..] else { panic!("one range") };
        assert_eq!(one.first, Sum::leaf(0).plus(&Sum::constant(-504), 1));
        assert_eq!(one.width, Sum::constant(512));
    }

    #[test]
    fn a_length_that_changes_stays_inside() {
        // A triangle: the bound is the outer variable.
        let at = Sum::leaf(0).plus(&Sum::leaf(2), 8);
        let [one] = &of(&nest(at.clone(), Sum::leaf(1)))[..] else { panic!("one range") };
        assert_eq!(exits(one), [(2, 3)]);
        // And one that nothing tells.
        let mut function = nest(at, Sum::leaf(3));
        function.blocks[2].equal = None;
        let [one] = &of(&function)[..] else { panic!("one range") };
        assert_eq!(exits(one), [(2, 3)]);
    }

    #[test]
    fn a_guard_that_does_not_change_is_asked_behind_the_loop() {
        // 1 goes on to 2 or, past it, to 5, where the exit of 2 leads too.
        let guarded = |condition| {
            let mut function = nest(Sum::leaf(0).plus(&Sum::leaf(2), 8), Sum::leaf(3));
            function.blocks[1].successors = vec![5, 2];
            function.blocks[1].condition = Some(condition);
            function.blocks[3].successors = vec![5];
            function.blocks.push(Block { successors: vec![1, 4], branches: true, ..Block::default() });
            function.leaves[1].incoming[1].0 = 5;
            function
        };
        let [one] = &of(&guarded(Condition::Given))[..] else { panic!("one range") };
        assert_eq!(one.guards, [Guard { block: 1, holds: false }]);
        assert_eq!(one.exits, [Exit { from: 5, to: 4, included: true }]);
        let [one] = &of(&guarded(Condition::ComputedIn(1)))[..] else { panic!("one range") };
        assert_eq!((exits(one), one.guards.is_empty()), (vec![(2, 3)], true));
    }

    #[test]
    fn other_ways_out_must_leave_both() {
        let at = Sum::leaf(0).plus(&Sum::leaf(2), 8);
        // To the end of the function: there both ranges are needed.
        let mut function = nest(at.clone(), Sum::leaf(3));
        function.blocks[2].successors = vec![2, 3, 4];
        let found = of(&function);
        let [outer, inner] = &found[..] else { panic!("two ranges") };
        assert_eq!((exits(inner), exits(outer)), (vec![(2, 4)], vec![(2, 4), (3, 4)]));
        assert_eq!(outer.exits.iter().map(|exit| exit.included).collect::<Vec<_>>(), [false, true]);
        // To the rest of the outer loop.
        let mut function = nest(at, Sum::leaf(3));
        function.blocks[2].successors = vec![2, 3, 5];
        function.blocks.push(Block { successors: vec![3], branches: true, ..Block::default() });
        let [one] = &of(&function)[..] else { panic!("one range") };
        assert_eq!(exits(one), [(2, 3), (2, 5)]);
    }
}
