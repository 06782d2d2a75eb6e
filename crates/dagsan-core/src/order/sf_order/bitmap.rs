//! Immutable sets of futures, shared by all that know the same ones: `gp` and `cp` of the paper.

use std::sync::Arc;

/// The number of a future since the last quiescent point; 0 is what the main task began as.
pub(super) type FutureNumber = u32;

/// An immutable set of futures.
#[derive(Debug, Clone, Default)]
pub(super) struct Bitmap(Option<Arc<[u64]>>);

impl Bitmap {
    pub(super) fn words(&self) -> &[u64] {
        self.0.as_deref().unwrap_or_default()
    }

    #[inline]
    pub(super) fn contains(&self, future: FutureNumber) -> bool {
        let word = self.words().get(future as usize / 64);
        word.is_some_and(|word| word >> (future % 64) & 1 == 1)
    }

    pub(super) fn with(&self, future: FutureNumber) -> Bitmap {
        let at = future as usize / 64;
        let mut words = self.words().to_vec();
        words.resize(words.len().max(at + 1), 0);
        words[at] |= 1 << (future % 64);
        Bitmap(Some(words.into()))
    }

    /// The union: one of the two if it has the other in it.
    pub(super) fn union(&self, other: &Bitmap) -> Bitmap {
        if other.is_subset(self) {
            self.clone()
        } else if self.is_subset(other) {
            other.clone()
        } else {
            let (long, short) =
                if self.words().len() < other.words().len() { (other, self) } else { (self, other) };
            let mut words = long.words().to_vec();
            for (word, more) in words.iter_mut().zip(short.words()) {
                *word |= more;
            }
            Bitmap(Some(words.into()))
        }
    }

    fn is_subset(&self, other: &Bitmap) -> bool {
        match (&self.0, &other.0) {
            (None, _) => true,
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => true,
            // The last word of a bitmap is never 0.
            (Some(mine), _) => {
                mine.len() <= other.words().len()
                    && mine.iter().zip(other.words()).all(|(mine, theirs)| mine & !theirs == 0)
            }
        }
    }
}
