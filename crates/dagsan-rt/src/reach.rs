//! Which blocks of the heap lead to which: words that look like pointers are followed, as leak checkers do.
//!
//! Every aligned word of the roots, and of the blocks that are reached, counts as a pointer if it points into a living block,
//! to its start or to its inside. Nothing says that a word is a pointer, or still one: a number may look like one, and
//! what a block was used for before may be left in it. So more may be found than there is.
//!
//! Only memory that is certain to be there is read: the roots, which the caller answers for, and blocks that live.

use std::ops::Range;

use rustc_hash::FxHashSet;

/// Do the roots lead to the block that starts at `wanted`, by way of the blocks that `block_at` finds for addresses? None if
/// that takes more than `words`, which is how many may be looked at; what is left of them is left.
///
/// # Safety
///
/// The roots can be read, and the blocks, as long as this runs.
pub unsafe fn lead_to(
    wanted: usize,
    roots: &[Range<usize>],
    block_at: impl Fn(usize) -> Option<Range<usize>>,
    words: &mut usize,
) -> Option<bool> {
    let mut seen = FxHashSet::default();
    let mut next: Vec<Range<usize>> = roots.to_vec();
    while let Some(range) = next.pop() {
        // SAFETY: a root or a living block.
        for word in unsafe { words_of(range) } {
            *words = words.checked_sub(1)?;
            let Some(block) = block_at(word) else { continue };
            if block.start == wanted {
                return Some(true);
            }
            if seen.insert(block.start) {
                next.push(block);
            }
        }
    }
    Some(false)
}

/// The aligned words of some memory.
///
/// # Safety
///
/// It can be read.
unsafe fn words_of(range: Range<usize>) -> impl Iterator<Item = usize> {
    let (start, end) = (range.start.next_multiple_of(WORD), range.end & !(WORD - 1));
    // SAFETY: the caller's promise. Another thread may be writing to the word: whatever is read is taken for a number.
    (start..end).step_by(WORD).map(|at| unsafe { (at as *const usize).read_volatile() })
}

const WORD: usize = size_of::<usize>();

#[cfg(test)]
mod tests {
    use super::*;

    fn range<T>(values: &[T]) -> Range<usize> {
        let start = values.as_ptr() as usize;
        start..start + size_of_val(values)
    }

    /// Does `root` lead to the block, by way of these blocks?
    fn leads(root: usize, to: &[usize], blocks: &[&[usize]], words: usize) -> Option<bool> {
        let blocks: Vec<Range<usize>> = blocks.iter().map(|block| range(block)).collect();
        let block_at = |address: usize| blocks.iter().find(|block| block.contains(&address)).cloned();
        let roots = [7, root];
        let mut left = words;
        // SAFETY: slices that live.
        unsafe { lead_to(range(to).start, &[range(&roots)], block_at, &mut left) }
    }

    #[test]
    fn pointers_are_followed_through_living_blocks() {
        let last = vec![1usize, 2, 3];
        let middle = vec![0, &raw const last[2] as usize];
        let first = vec![middle.as_ptr() as usize];
        let all: &[&[usize]] = &[&first, &middle, &last];
        let root = first.as_ptr() as usize;
        assert_eq!(leads(root, &last, all, 100), Some(true));
        assert_eq!(leads(root, &last, &[&first, &last], 100), Some(false), "the middle is gone");
        assert_eq!(leads(0, &last, all, 100), Some(false));
        assert_eq!(leads(root, &last, &[&first, &middle], 100), Some(false), "this is no living block");
        assert_eq!(leads(root, &last, all, 3), None, "it takes five words");
    }

    #[test]
    fn a_circle_ends_and_the_end_of_a_block_is_outside() {
        let mut circle = vec![0usize; 4];
        circle[1] = circle.as_ptr() as usize;
        let other = vec![0usize; 2];
        assert_eq!(leads(circle.as_ptr() as usize, &other, &[&circle, &other], 100), Some(false));
        assert_eq!(leads(range(&other).end, &other, &[&other], 100), Some(false));
    }
}
