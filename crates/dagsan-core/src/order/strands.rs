//! A table with an entry per strand since the last quiescent point.

use crate::ids::StrandId;

/// Entries for the strands `base`, `base + 1`, …. Strands of quiescent times are never entered; as the
/// table is emptied at a quiescent point, there are no gaps.
#[derive(Debug)]
pub(crate) struct Strands<T> {
    base: u32,
    entries: Vec<T>,
}

impl<T> Strands<T> {
    pub(crate) fn new() -> Strands<T> {
        Strands { base: 0, entries: Vec::new() }
    }

    /// Enters `strand`, unless it is there already.
    #[inline]
    pub(crate) fn enter(&mut self, strand: StrandId, entry: T) {
        if self.entries.is_empty() {
            self.base = strand.0;
        }
        if self.next() == strand.0 {
            self.entries.push(entry);
        }
        debug_assert!(strand.0 < self.next(), "{strand} skips a number");
    }

    /// One more than the last number entered.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.base + self.entries.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn forget(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<T>()
    }
}

impl<T> std::ops::Index<StrandId> for Strands<T> {
    type Output = T;

    #[inline]
    fn index(&self, strand: StrandId) -> &T {
        &self.entries[(strand.0 - self.base) as usize]
    }
}
