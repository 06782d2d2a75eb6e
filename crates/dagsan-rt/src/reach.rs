//! Which blocks of the heap lead to which: words that look like pointers are followed, as leak checkers do.
//!
//! Every aligned word of the roots, and of the blocks that are reached, counts as a pointer if it points into a living block,
//! to its start or to its inside. Nothing says that a word is a pointer, or still one: a number may look like one, and
//! what a block was used for before may be left in it. So more may be found than there is.
//!
//! Only memory that is certain to be there is read: the roots, which the caller answers for, and blocks that live.

use std::ops::Range;

/// Memory that is certain to be there, as long as this lives.
#[derive(Debug)]
pub struct Living<'a> {
    /// Sorted, and disjoint.
    blocks: &'a [Range<usize>],
}

impl<'a> Living<'a> {
    /// Blocks, sorted by address.
    ///
    /// # Safety
    ///
    /// They can be read until this is gone.
    pub unsafe fn new(blocks: &'a [Range<usize>]) -> Living<'a> {
        debug_assert!(blocks.is_sorted_by(|a, b| a.end <= b.start));
        Living { blocks }
    }

    /// The block that the address is in, by number.
    fn at(&self, address: usize) -> Option<usize> {
        let next = self.blocks.partition_point(|block| block.start <= address);
        next.checked_sub(1).filter(|&number| address < self.blocks[number].end)
    }

    /// Do the roots lead to the block that the address is in? None if that takes more than `words`, which is how many may be
    /// looked at; what is left of them is left.
    ///
    /// # Safety
    ///
    /// The roots can be read.
    pub unsafe fn lead_to(&self, address: usize, roots: &[Range<usize>], words: &mut usize) -> Option<bool> {
        let Some(wanted) = self.at(address) else { return Some(false) };
        let mut seen = vec![false; self.blocks.len()];
        let mut next: Vec<Range<usize>> = roots.to_vec();
        while let Some(range) = next.pop() {
            // SAFETY: a root or a living block.
            for word in unsafe { words_of(range) } {
                *words = words.checked_sub(1)?;
                match self.at(word) {
                    Some(number) if number == wanted => return Some(true),
                    Some(number) if !seen[number] => {
                        seen[number] = true;
                        next.push(self.blocks[number].clone());
                    }
                    _ => {}
                }
            }
        }
        Some(false)
    }
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

    /// Does `root` lead to the address, by way of these blocks?
    fn leads(root: usize, to: usize, blocks: &[&[usize]], words: usize) -> Option<bool> {
        let mut blocks: Vec<Range<usize>> = blocks.iter().map(|block| range(block)).collect();
        blocks.sort_by_key(|block| block.start);
        // SAFETY: slices that live.
        let living = unsafe { Living::new(&blocks) };
        let roots = [7, root];
        let mut left = words;
        // SAFETY: as above.
        unsafe { living.lead_to(to, &[range(&roots)], &mut left) }
    }

    #[test]
    fn pointers_are_followed_through_living_blocks() {
        let last = vec![1usize, 2, 3];
        let middle = vec![0, &raw const last[2] as usize];
        let first = vec![middle.as_ptr() as usize];
        let all: &[&[usize]] = &[&first, &middle, &last];
        let (root, to) = (first.as_ptr() as usize, &raw const last[1] as usize);
        assert_eq!(leads(root, to, all, 100), Some(true));
        assert_eq!(leads(root, to, &[&first, &last], 100), Some(false), "the middle is gone");
        assert_eq!(leads(0, to, all, 100), Some(false));
        assert_eq!(leads(root, to, &[&first, &middle], 100), Some(false), "this is no living block");
        assert_eq!(leads(root, to, all, 3), None, "it takes five words");
    }

    #[test]
    fn a_circle_ends_and_the_end_of_a_block_is_outside() {
        let mut circle = vec![0usize; 4];
        circle[1] = circle.as_ptr() as usize;
        let other = vec![0usize; 2];
        assert_eq!(
            leads(circle.as_ptr() as usize, other.as_ptr() as usize, &[&circle, &other], 100),
            Some(false)
        );
        assert_eq!(leads(range(&other).end, other.as_ptr() as usize, &[&other], 100), Some(false));
    }
}
