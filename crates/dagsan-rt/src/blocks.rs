//! The living blocks of the heap, and those freed lately: where they are, and who allocated them.
//!
//! ```text
//!   small blocks   by the page that they begin in ─► a list per page       an address is in a block of its page, or of the one before
//!   large blocks   by address, in order
//!   call stacks    a number each: many blocks have the same
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use rustc_hash::FxBuildHasher;

/// How many frames of an allocation are kept: enough to get out of the standard library.
pub const FRAMES: usize = 12;

/// A block of the heap.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    pub start: usize,
    pub size: usize,
    frames: [usize; FRAMES],
}

impl Block {
    /// The call stack that allocated it.
    pub fn frames(&self) -> &[usize] {
        let count = self.frames.iter().position(|&frame| frame == 0).unwrap_or(FRAMES);
        &self.frames[..count]
    }
}

/// A block in the list.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub start: usize,
    pub size: usize,
    stack: u32,
}

impl Entry {
    /// Is the address in it? Of a block without bytes, its start is taken for one.
    fn contains(&self, address: usize) -> bool {
        address >= self.start && address - self.start < self.size.max(1)
    }
}

/// The size of a page, and of the smallest block that is large.
const PAGE: usize = 1024;

/// See the module's documentation.
#[derive(Debug)]
pub struct Living {
    small: HashMap<usize, Vec<Entry>, FxBuildHasher>,
    large: BTreeMap<usize, Entry>,
}

impl Living {
    pub const NONE: Living = Living { small: HashMap::with_hasher(FxBuildHasher), large: BTreeMap::new() };

    pub fn insert(&mut self, entry: Entry) {
        if entry.size >= PAGE {
            self.large.insert(entry.start, entry);
            return;
        }
        let page = self.small.entry(entry.start / PAGE).or_default();
        // One that code without hooks has freed may be there.
        match page.iter_mut().find(|known| known.start == entry.start) {
            Some(known) => *known = entry,
            None => page.push(entry),
        }
    }

    /// Takes the block that begins there from the list.
    pub fn remove(&mut self, start: usize) -> Option<Entry> {
        if let Some(page) = self.small.get_mut(&(start / PAGE))
            // The latest are the likeliest.
            && let Some(at) = page.iter().rposition(|entry| entry.start == start)
        {
            return Some(page.swap_remove(at));
        }
        self.large.remove(&start)
    }

    /// The size of the block that begins there.
    pub fn size_of(&self, start: usize) -> Option<usize> {
        self.entry(start).filter(|entry| entry.start == start).map(|entry| entry.size)
    }

    /// The block that the address is in.
    fn entry(&self, address: usize) -> Option<&Entry> {
        let page = address / PAGE;
        let small =
            [page, page.wrapping_sub(1)].into_iter().filter_map(|page| self.small.get(&page)).flatten();
        let large = self.large.range(..=address).next_back().map(|(_, entry)| entry);
        small.chain(large).find(|entry| entry.contains(address))
    }

    /// The memory of the block that the address is in.
    pub fn at(&self, address: usize) -> Option<Range<usize>> {
        let Entry { start, size, .. } = *self.entry(address)?;
        Some(start..start + size).filter(|block| block.contains(&address))
    }
}

/// So many freed blocks are remembered.
const FREED: usize = 1024;

/// See the module's documentation.
#[derive(Debug)]
pub struct Blocks {
    pub living: Living,
    /// Those freed lately, the last one last.
    freed: VecDeque<Entry>,
    stacks: Vec<[usize; FRAMES]>,
    numbers: HashMap<[usize; FRAMES], u32, FxBuildHasher>,
}

impl Blocks {
    pub const NONE: Blocks = Blocks {
        living: Living::NONE,
        freed: VecDeque::new(),
        stacks: Vec::new(),
        numbers: HashMap::with_hasher(FxBuildHasher),
    };

    /// A block has been allocated.
    pub fn insert(&mut self, start: usize, size: usize, frames: [usize; FRAMES]) {
        let stack = *self.numbers.entry(frames).or_insert_with(|| {
            self.stacks.push(frames);
            self.stacks.len() as u32 - 1
        });
        self.living.insert(Entry { start, size, stack });
    }

    /// Keeps a freed block in mind for a while.
    pub fn remember(&mut self, block: Option<Entry>) {
        if self.freed.len() == FREED {
            self.freed.pop_front();
        }
        self.freed.extend(block);
    }

    /// The living block that the address is in, or the one that was the last to be freed.
    pub fn of(&self, address: usize) -> Option<Block> {
        let freed = || self.freed.iter().rev().find(|entry| entry.contains(address));
        let Entry { start, size, stack } = *self.living.entry(address).or_else(freed)?;
        Some(Block { start, size, frames: self.stacks[stack as usize] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_one_block_at_most() {
        let mut blocks = Blocks::NONE;
        for (start, size) in [(64, 16), (80, 0), (96, 8), (1020, 16), (8192, 3 * PAGE), (4 * 8192, 8)] {
            blocks.insert(start, size, [start; FRAMES]);
        }
        let starts = |address| blocks.of(address).map(|block| block.start);
        assert_eq!(
            [63, 64, 79, 80, 81, 95, 103, 104].map(starts),
            [None, Some(64), Some(64), Some(80), None, None, Some(96), None]
        );
        let [begun, large, last] = [1035, 8192 + 2 * PAGE, 8192 + 3 * PAGE].map(starts);
        assert_eq!((begun, large, last), (Some(1020), Some(8192), None));
        let living = &blocks.living;
        assert_eq!((living.at(70), living.at(80), living.at(200)), (Some(64..80), None, None));
        assert_eq!((living.size_of(96), living.size_of(97)), (Some(8), None));
    }

    #[test]
    fn a_freed_block_is_remembered_and_another_takes_its_place() {
        let mut blocks = Blocks::NONE;
        blocks.insert(64, 16, [1; FRAMES]);
        let freed = blocks.living.remove(64);
        blocks.remember(freed);
        assert!(blocks.living.remove(64).is_none());
        assert_eq!(blocks.of(70).map(|block| block.frames[0]), Some(1));
        blocks.insert(64, 8, [2; FRAMES]);
        assert_eq!(
            (blocks.of(70).map(|block| block.frames[0]), blocks.living.at(70)),
            (Some(2), Some(64..72))
        );
    }
}
