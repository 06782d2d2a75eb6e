//! An array of atomics that grows and whose entries never move: others may read it while it grows.
//!
//! ```text
//!   number       0 … F-1      F … 3F-1          3F … 7F-1            F = 2^FIRST_BITS
//!              ┌───────────┬───────────────┬───────────────────┬──
//!   chunk      │ b: F      │ b+1: 2F       │ b+2: 4F           │    b = FIRST_BITS; there are no chunks
//!              └───────────┴───────────────┴───────────────────┴──  before that one
//!
//!   number + F, in binary   1 0 1 1 0 1      the place of the highest bit is the chunk,
//!                           ^ └─offset┘      the other bits are the offset in it
//! ```

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// One for each place that the highest bit of a `u32` can have: finding a chunk needs no check.
const CHUNKS: usize = 32;

/// Entries of `WIDTH` atomics each, zero at first.
#[derive(Debug)]
pub(super) struct Chunks<const WIDTH: usize, const FIRST_BITS: u32> {
    chunks: [OnceLock<Box<[[AtomicU64; WIDTH]]>>; CHUNKS],
}

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) chunk: u32,
    pub(super) offset: u32,
}

impl<const WIDTH: usize, const FIRST_BITS: u32> Chunks<WIDTH, FIRST_BITS> {
    /// Numbers are below this.
    pub(super) const MOST: u32 = u32::MAX - (1 << FIRST_BITS);

    pub(super) fn new() -> Self {
        Chunks { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// Where the entry of this number is.
    #[inline]
    pub(super) const fn spot(number: u32) -> Spot {
        debug_assert!(number < Self::MOST);
        let shifted = number.wrapping_add(1 << FIRST_BITS);
        // Never zero; said in a way that the compiler believes.
        let chunk = (shifted | 1).ilog2();
        Spot { chunk, offset: shifted ^ (1 << chunk) }
    }

    /// The opposite of [`Chunks::spot`].
    #[inline]
    pub(super) fn number(spot: Spot) -> u32 {
        (1 << spot.chunk) - (1 << FIRST_BITS) + spot.offset
    }

    /// An entry, if its chunk is there.
    #[inline]
    pub(super) fn get(&self, spot: Spot) -> Option<&[AtomicU64; WIDTH]> {
        self.chunks[spot.chunk as usize % CHUNKS].get()?.get(spot.offset as usize)
    }

    /// An entry, whose chunk is made if need be.
    #[inline]
    pub(super) fn make(&self, spot: Spot) -> &[AtomicU64; WIDTH] {
        let chunk = self.chunks[spot.chunk as usize % CHUNKS].get_or_init(|| zeros(1 << spot.chunk));
        &chunk[spot.offset as usize]
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.chunks.iter().filter_map(OnceLock::get).map(|chunk| size_of_val(&**chunk)).sum()
    }
}

/// Only by way of these two vectors is nothing written: the first one is memory that the system hands
/// out as zeros, the second one the same memory. So the part of a chunk that is never used is never
/// touched.
#[cold]
fn zeros<const WIDTH: usize>(size: usize) -> Box<[[AtomicU64; WIDTH]]> {
    let numbers = vec![[0u64; WIDTH]; size];
    let entries: Vec<_> = numbers.into_iter().map(|entry| entry.map(AtomicU64::new)).collect();
    entries.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Chunks<1, 3>;

    #[test]
    fn entries_lie_one_after_another() {
        let spots: Vec<_> = (0..24).map(Numbers::spot).collect();
        let expected = (0..24).map(|number| match number {
            0..8 => Spot { chunk: 3, offset: number },
            _ => Spot { chunk: 4, offset: number - 8 },
        });
        assert_eq!(spots, expected.collect::<Vec<_>>());
        for number in [0, 7, 8, 23, 24, 1000, Numbers::MOST - 1] {
            assert_eq!(Numbers::number(Numbers::spot(number)), number);
        }
    }

    #[test]
    fn chunks_are_made_when_needed() {
        let numbers = Numbers::new();
        assert!(numbers.get(Numbers::spot(0)).is_none() && numbers.memory() == 0);
        numbers.make(Numbers::spot(9));
        assert!(numbers.get(Numbers::spot(7)).is_none() && numbers.get(Numbers::spot(8)).is_some());
        assert_eq!(numbers.memory(), 16 * size_of::<u64>());
    }
}
