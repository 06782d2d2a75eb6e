//! Marks that another one makes superfluous.
//!
//! A read is covered by a write of the same strand that has all its bytes: for two accesses of a strand to the same bytes, only the
//! stronger one matters. Within a block and without a border in between, the write that follows is of the same strand, and
//! it is executed if the read was: nothing between them can leave. So `x += 1` has one mark.
//!
//! ThreadSanitizer's pass does this too, whatever the sizes of the two. A read that is wider than the write keeps its mark here.

use crate::model::{Function, Kind, Mark, Step};

/// For each mark: is it superfluous?
pub fn covered(function: &Function) -> Vec<bool> {
    let mut covered = vec![false; function.marks.len()];
    for block in &function.blocks {
        // The writes between here and the next border, widest for each pointer.
        let mut writes: Vec<Mark> = Vec::new();
        for step in block.iter().rev() {
            let &Step::Mark(number) = step else {
                writes.clear();
                continue;
            };
            let mark = function.marks[number];
            match mark.kind {
                Kind::Write => writes.push(mark),
                Kind::Read => {
                    covered[number] =
                        writes.iter().any(|write| write.pointer == mark.pointer && write.bytes >= mark.bytes);
                }
            }
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use Step::Border;

    fn read(pointer: usize, bytes: u64) -> Mark {
        Mark { pointer, bytes, kind: Kind::Read }
    }

    fn write(pointer: usize, bytes: u64) -> Mark {
        Mark { pointer, bytes, kind: Kind::Write }
    }

    fn one_block(marks: Vec<Mark>, steps: Vec<Step>) -> Vec<bool> {
        covered(&Function { marks, blocks: vec![steps] })
    }

    #[test]
    fn a_write_covers_the_read_before_it() {
        let marks = vec![read(0, 8), write(0, 8)];
        assert_eq!(one_block(marks.clone(), vec![Step::Mark(0), Step::Mark(1)]), [true, false]);
        assert_eq!(one_block(marks, vec![Step::Mark(0), Border, Step::Mark(1)]), [false, false]);
    }

    #[test]
    fn a_write_covers_no_wider_read_and_no_other_pointer() {
        let marks = vec![read(0, 8), read(1, 1), read(0, 1), write(0, 1)];
        let steps = (0..4).map(Step::Mark).collect();
        assert_eq!(one_block(marks, steps), [false, false, true, false]);
    }

    #[test]
    fn a_write_in_another_block_may_not_be_executed() {
        let function = Function {
            marks: vec![read(0, 8), write(0, 8)],
            blocks: vec![vec![Step::Mark(0)], vec![Step::Mark(1)]],
        };
        assert_eq!(covered(&function), [false, false]);
    }

    #[test]
    fn a_read_after_the_write_is_left_to_the_runtime() {
        let marks = vec![write(0, 8), read(0, 8)];
        assert_eq!(one_block(marks, vec![Step::Mark(0), Step::Mark(1)]), [false, false]);
    }
}
