//! Blocks that a part of the program has freed (`part`), and that the allocator does not have back before the part is told; and pages, which the system does not have
//! back.
//!
//! Somebody else would get them, and what he does to them would be told before what the part has done. The part itself may have blocks again. It cannot wait for its order where it
//! frees them: the standard library does so with locks of its own.

use std::ffi::c_void;

use rustc_hash::FxHashMap;

/// So many bytes are a lot: the part had better be told.
const MANY: usize = 16 << 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Withheld {
    /// By the bytes that they have room for.
    blocks: FxHashMap<usize, Vec<*mut c_void>>,
    bytes: usize,
    /// Where they begin, and how many bytes they have.
    pages: Vec<(usize, usize)>,
}

impl Withheld {
    /// One more, with so much room. Are they a lot?
    pub fn put(&mut self, block: *mut c_void, room: usize) -> bool {
        self.blocks.entry(room).or_default().push(block);
        self.bytes += room;
        self.bytes > MANY
    }

    /// Pages, too.
    pub fn put_pages(&mut self, start: usize, size: usize) {
        self.pages.push((start, size));
    }

    /// The latest one that the C library's allocator could have chosen for so many bytes.
    pub fn take(&mut self, size: usize) -> Option<*mut c_void> {
        let room = room_for(size)?;
        let block = self.blocks.get_mut(&room)?.pop()?;
        self.bytes -= room;
        Some(block)
    }

    /// Those of another part, too.
    pub fn append(&mut self, other: &mut Withheld) {
        for (room, mut blocks) in other.blocks.drain() {
            self.blocks.entry(room).or_default().append(&mut blocks);
        }
        self.bytes += std::mem::take(&mut other.bytes);
        self.pages.append(&mut other.pages);
    }

    /// All pages, to be given back.
    pub fn take_pages(&mut self) -> impl Iterator<Item = (usize, usize)> {
        self.pages.drain(..)
    }

    /// All blocks, to be given back.
    pub fn take_all(&mut self) -> impl Iterator<Item = *mut c_void> {
        self.bytes = 0;
        self.blocks.drain().flat_map(|(_, blocks)| blocks)
    }
}

/// The room of a block for so many bytes: the C library has a word before each, and sizes that 16 divides. That of a large one is more by chance, and not known.
fn room_for(size: usize) -> Option<usize> {
    (size < 1 << 16).then(|| ((size + 8).next_multiple_of(16) - 8).max(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_to_who_asks_for_one_of_its_size() {
        let mut withheld = Withheld::default();
        let block = |number: usize| std::ptr::without_provenance_mut::<c_void>(number << 4);
        assert!(!withheld.put(block(1), 24) && !withheld.put(block(2), 40));
        assert_eq!((withheld.take(41), withheld.take(25), withheld.take(25)), (None, Some(block(2)), None));
        assert!(withheld.put(block(3), MANY));
        let mut other = Withheld::default();
        other.append(&mut withheld);
        assert_eq!((other.take_all().count(), withheld.take_all().count()), (2, 0));
        assert_eq!([0, 24, 25, 40, 41].map(room_for), [24, 24, 40, 40, 56].map(Some));
    }
}
