//! Marks of neighbours become one.
//!
//! Within a block and without a border in between, marks are executed together. Those of the same kind whose bytes touch or
//! overlap, and that belong to the same line of the source, are one mark for all of these bytes, where the last of them stood.
//! The report names a line for a mark, so marks of different lines stay apart.

use std::collections::HashMap;

use crate::inline::question;
use crate::model::{Function, Mark, Step};
use crate::sum::Sum;

/// A mark that stands for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The one that was executed last, in whose place it stands.
    pub last: usize,
    /// All of them.
    pub members: Vec<usize>,
    pub mark: Mark,
}

/// All that can be merged. `gone` says which marks are not there any more.
pub fn merged(function: &Function, gone: &[bool]) -> Vec<Merged> {
    let mut merged = Vec::new();
    for block in &function.blocks {
        for steps in block.steps.split(|&step| step == Step::Border) {
            let mut groups: HashMap<_, Vec<(usize, usize)>> = HashMap::new();
            for (at, step) in steps.iter().enumerate() {
                if let &Step::Mark(number) = step
                    && !gone[number]
                {
                    let mark = &function.marks[number];
                    let group = groups.entry((&mark.at.terms, mark.kind, mark.place)).or_default();
                    group.push((at, number));
                }
            }
            for group in groups.into_values().filter(|group| group.len() > 1) {
                neighbours(function, group, &mut merged);
            }
        }
    }
    merged.sort_by_key(|one| one.last);
    merged
}

/// Merges what can be of a group, given as places in the block and marks.
fn neighbours(function: &Function, mut group: Vec<(usize, usize)>, merged: &mut Vec<Merged>) {
    group.sort_by_key(|&(_, number)| function.marks[number].at.constant);
    let mut open: Option<(usize, Merged)> = None;
    for (at, number) in group {
        let mark = &function.marks[number];
        if let Some((last_at, one)) = &mut open
            && let Some(both) = union(&one.mark, mark)
        {
            one.mark = both;
            one.members.push(number);
            if at > *last_at {
                (*last_at, one.last) = (at, number);
            }
            continue;
        }
        let next = Merged { last: number, members: vec![number], mark: mark.clone() };
        let finished = open.replace((at, next));
        merged.extend(finished.map(|(_, one)| one).filter(|one| one.members.len() > 1));
    }
    merged.extend(open.map(|(_, one)| one).filter(|one| one.members.len() > 1));
}

/// One mark for two, if they touch and it is not too large to be in line. The first one begins first.
fn union(first: &Mark, second: &Mark) -> Option<Mark> {
    let distance = u64::try_from(second.at.constant.checked_sub(first.at.constant)?).ok()?;
    if distance > first.bytes {
        return None;
    }
    let bytes = first.bytes.max(distance.checked_add(second.bytes)?);
    // What is known of either address is known of the other.
    let of_second =
        if distance == 0 { second.alignment } else { second.alignment.min(1 << distance.trailing_zeros()) };
    let alignment = first.alignment.max(of_second);
    question(bytes, alignment)?;
    let at = Sum { constant: first.at.constant, ..first.at.clone() };
    Some(Mark { at, bytes, alignment, ..*first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Block, Kind, Leaf};

    fn mark(kind: Kind, offset: i64, bytes: u64, place: usize) -> Mark {
        let at = Sum::leaf(0).plus(&Sum::constant(offset), 1);
        Mark { kind, at, bytes, alignment: 4, place }
    }

    fn read(offset: i64, bytes: u64) -> Mark {
        mark(Kind::Read, offset, bytes, 0)
    }

    /// The marks that stand for several: offset, bytes, where.
    fn in_order(marks: Vec<Mark>, border: Option<usize>) -> Vec<(i64, u64, usize)> {
        let mut steps: Vec<Step> = (0..marks.len()).map(Step::Mark).collect();
        if let Some(at) = border {
            steps.insert(at, Step::Border);
        }
        let gone = vec![false; marks.len()];
        let function = Function {
            marks,
            blocks: vec![Block { steps, ..Block::default() }],
            leaves: vec![Leaf::default()],
        };
        let merged = merged(&function, &gone).into_iter();
        merged.map(|one| (one.mark.at.constant, one.mark.bytes, one.last)).collect()
    }

    #[test]
    fn what_touches_is_one_and_stands_last() {
        assert_eq!(in_order(vec![read(8, 4), read(0, 4), read(4, 4)], None), [(0, 12, 2)]);
        assert_eq!(in_order(vec![read(4, 4), read(0, 8)], None), [(0, 8, 1)]);
        assert_eq!(in_order(vec![read(0, 4), read(8, 4)], None), []);
    }

    #[test]
    fn borders_kinds_and_lines_keep_apart() {
        assert_eq!(in_order(vec![read(0, 4), read(4, 4)], Some(1)), []);
        assert_eq!(in_order(vec![read(0, 4), mark(Kind::Write, 4, 4, 0)], None), []);
        assert_eq!(in_order(vec![read(0, 4), mark(Kind::Read, 4, 4, 1)], None), []);
    }

    #[test]
    fn what_is_known_of_one_address_is_known_of_all() {
        let aligned = Mark { alignment: 16, ..read(8, 8) };
        let both = union(&Mark { alignment: 1, ..read(0, 8) }, &aligned).unwrap();
        assert_eq!((both.alignment, both.bytes), (8, 16));
        let odd = union(&Mark { alignment: 1, ..read(4, 4) }, &aligned).unwrap();
        assert_eq!((odd.alignment, odd.bytes), (4, 12));
    }

    #[test]
    fn none_is_larger_than_what_can_be_in_line() {
        let marks: Vec<Mark> = (0..20).map(|at| read(at * 8, 8)).collect();
        for (_, bytes, _) in in_order(marks, None) {
            assert!((9..=57).contains(&bytes), "{bytes}");
        }
    }
}
