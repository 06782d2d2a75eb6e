//! Where the bytes of a program are in the memory of its process.
//!
//! Blocks that are never freed are in an *arena*: the lines that the program touches, one after the other, so that what
//! shares a line still does. It is a static or a block of the heap. A block that is freed has *pages* of its own, which
//! are unmapped and mapped again at the same address.
//!
//! ```text
//!   program   0x40 [..aa....]  0x10040 [bbcc....]  0x10080 [....dddd]      d is freed
//!   arena     0    [..aa....]  64      [bbcc....]  128     [........]
//!   pages     0    [....dddd] …
//! ```

use std::collections::BTreeMap;

use dagsan_core::{Bytes, LINE_BYTES};

use crate::program::{Program, Stmt};

const PAGE: u64 = 4096;

/// A part of a process's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// A static, or a block of the heap.
    Arena,
    /// Pages that can be freed.
    Pages,
}

/// Where the bytes of a program are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The place of each line among those that are touched.
    lines: BTreeMap<u64, u64>,
    /// Freed blocks by their start: their end, and where their pages start.
    freed: BTreeMap<u64, (u64, u64)>,
    pages: u64,
}

impl Layout {
    /// Gives every byte of the program a place.
    pub fn new(program: &Program) -> Layout {
        let mut layout = Layout::default();
        for stmt in program.walk() {
            let Some(bytes) = stmt.bytes() else { continue };
            layout.lines.extend(bytes.lines().map(|(line, _)| (line, 0)));
            if matches!(stmt, Stmt::Free { .. }) {
                layout.freed.insert(bytes.start(), (bytes.end(), 0));
            }
        }
        for (rank, place) in layout.lines.values_mut().enumerate() {
            *place = rank as u64 * LINE_BYTES;
        }
        for (start, (end, place)) in &mut layout.freed {
            *place = layout.pages;
            layout.pages += (start % LINE_BYTES + (*end - start)).next_multiple_of(PAGE);
        }
        layout
    }

    /// How many bytes a region has.
    pub fn size(&self, region: Region) -> u64 {
        match region {
            Region::Arena => self.lines.len() as u64 * LINE_BYTES,
            Region::Pages => self.pages,
        }
    }

    /// Where the byte at `address` is; all bytes of a range are side by side.
    pub fn place(&self, address: u64) -> (Region, u64) {
        if let Some((start, (end, place))) = self.freed.range(..=address).next_back()
            && address < *end
        {
            return (Region::Pages, place + start % LINE_BYTES + (address - start));
        }
        let line = self.lines.get(&(address / LINE_BYTES)).copied().unwrap_or(0);
        (Region::Arena, line + address % LINE_BYTES)
    }

    /// The pages of a block that is freed: where they start, and how many bytes they have.
    pub(super) fn pages_of(&self, block: Bytes) -> (u64, u64) {
        let start = block.start() % LINE_BYTES;
        let (_, at) = self.place(block.start());
        (at - start, (start + block.len()).next_multiple_of(PAGE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stay_whole_and_neighbours_stay_neighbours() {
        let program =
            Program::parse("w 0x7c+8; r 0x10042+2; r 0x10044+2; w 0x20004+4; free 0x20004+4").unwrap();
        let layout = Layout::new(&program);
        assert_eq!(layout.place(0x7c), (Region::Arena, 60));
        assert_eq!(layout.place(0x83), (Region::Arena, 67));
        assert_eq!((layout.place(0x10043).1, layout.place(0x10044).1), (128 + 3, 128 + 4));
        assert_eq!(layout.place(0x20006), (Region::Pages, 6));
        assert_eq!((layout.size(Region::Arena), layout.size(Region::Pages)), (256, PAGE));
        assert_eq!(layout.pages_of(Bytes::new(0x20004, 4).unwrap()), (0, PAGE));
    }
}
