//! The blocks that the running strand has allocated: nobody else can have touched them, unless by luck.
//!
//! The free of a block is a write, and the history is told at once, as its addresses may come back as other memory. To be told, the strand is
//! delivered so far, and what it goes on with is new to it. But if the strand has allocated the block itself, nothing is remembered
//! of it that could race with the free: the write can wait for the end of the strand, like others. If the addresses come back meanwhile, it is forgotten, as what
//! is remembered of a block always is when its addresses come back: the new block may go to others by ways that are not seen, and they may free it.
//!
//! ```text
//!   entries, by some bits of the address   [ start of the block │ strand ]     one block each: of two, the later
//! ```

const ENTRIES: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub struct Fresh {
    blocks: Box<[(usize, u64)]>,
    /// Counts strands.
    strand: u64,
    /// Has the running strand freed such a block?
    freed: bool,
}

impl Fresh {
    pub fn new() -> Fresh {
        Fresh { blocks: vec![(0, 0); ENTRIES].into(), strand: 1, freed: false }
    }

    #[inline]
    fn entry(&mut self, start: usize) -> &mut (usize, u64) {
        // The allocator's blocks are at multiples of 16.
        &mut self.blocks[(start >> 4 ^ start >> 16) % ENTRIES]
    }

    /// The running strand has allocated a block. May a write to its addresses wait, of a block that was there before?
    #[inline]
    pub fn allocated(&mut self, start: usize) -> bool {
        let strand = self.strand;
        *self.entry(start) = (start, strand);
        self.freed
    }

    /// A block is freed. Has the running strand allocated it? It may say no where it has.
    #[inline]
    pub fn take(&mut self, start: usize) -> bool {
        let strand = self.strand;
        let fresh = std::mem::take(self.entry(start)) == (start, strand);
        self.freed |= fresh;
        fresh
    }

    /// The running strand ends, or may have.
    #[inline]
    pub fn end_strand(&mut self) {
        self.strand += 1;
        self.freed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_fresh_until_it_is_freed_or_the_strand_ends() {
        let mut fresh = Fresh::new();
        fresh.allocated(0x1000);
        assert!(!fresh.take(0x2000));
        assert!(fresh.take(0x1000) && !fresh.take(0x1000));
        assert!(fresh.allocated(0x1000));
        fresh.end_strand();
        assert!(!fresh.take(0x1000));
        assert!(!fresh.allocated(0x1000));
    }
}
