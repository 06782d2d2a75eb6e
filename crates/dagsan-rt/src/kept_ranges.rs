//! Strided reads of which every byte is kept (`shared`): asked once, and not again until one of the bytes is forgotten.
//!
//! A task per element that reads one field of all elements asks for thousands of pieces, each task for the same ones. Bytes that are kept stay kept until
//! `shared` forgets them, line by line. So the answer "all are kept" holds until a line between the first and the last piece is forgotten.
//!
//! ```text
//!   entries, by some bits of the start   [ start │ stride │ count │ width ]      one question each, answered by "yes"
//!   cover                                first line … last line of all entries: whoever forgets a line of these empties the table
//! ```
//!
//! Only reads: a write is always told. Nothing is kept where places are to be exact.

use std::cell::Cell;

use dagsan_core::AccessKind;

use crate::caches::caches;
use crate::shared::is_kept;

const ENTRIES: usize = 64;

/// A question with fewer pieces is answered sooner than it is looked up.
const FEW: usize = 16;

/// So many pieces of `width` bytes, each `stride` bytes behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strided {
    pub(crate) start: usize,
    pub(crate) stride: usize,
    pub(crate) count: usize,
    pub(crate) width: usize,
}

const NONE: Strided = Strided { start: 0, stride: 0, count: 0, width: 0 };

impl Strided {
    /// Its first and last line, if the pieces go upwards.
    fn lines(&self) -> Option<(u64, u64)> {
        let last =
            self.stride.checked_mul(self.count.checked_sub(1)?)?.checked_add(self.width.checked_sub(1)?)?;
        Some((self.start as u64 >> 6, self.start.checked_add(last)? as u64 >> 6))
    }

    /// Is every byte kept?
    fn all_kept(&self) -> bool {
        (0..self.count).all(|number| {
            let start = (self.start + self.stride * number) as u64;
            let last = start + self.width as u64 - 1;
            (start >> 6..=last >> 6).all(|line| {
                let from = if line == start >> 6 { start & 63 } else { 0 };
                let to = if line == last >> 6 { last & 63 } else { 63 };
                is_kept(line, (u64::MAX << from) & (u64::MAX >> (63 - to)), AccessKind::Read)
            })
        })
    }
}

/// See the module's documentation.
pub struct Ranges {
    entries: [Cell<Strided>; ENTRIES],
    /// First and last line; the first is larger if there are no entries.
    cover: Cell<(u64, u64)>,
}

// SAFETY: only the thread that runs for its worker asks and forgets, and whoever ends the program does neither.
unsafe impl Sync for Ranges {}

impl Ranges {
    pub(crate) const fn new() -> Ranges {
        Ranges { entries: [const { Cell::new(NONE) }; ENTRIES], cover: Cell::new(EMPTY) }
    }
}

const EMPTY: (u64, u64) = (u64::MAX, 0);

/// Those of this thread's worker.
#[inline(always)]
fn ranges() -> &'static Ranges {
    &caches().ranges
}

fn entry(asked: &Strided) -> &'static Cell<Strided> {
    // Fields of one structure begin a few bytes apart.
    &ranges().entries[(asked.start >> 2 ^ asked.start >> 12) % ENTRIES]
}

/// Is it known that every byte is kept? To be asked by the thread that owns the session.
#[inline]
pub(crate) fn knows(asked: &Strided) -> bool {
    asked.count >= FEW && entry(asked).get() == *asked
}

/// The running strand has nothing to tell of these pieces. If that is because all are kept, nobody has, until one is forgotten.
pub(crate) fn remember(asked: &Strided) {
    if asked.count < FEW {
        return;
    }
    let Some((first, last)) = asked.lines() else { return };
    if asked.all_kept() {
        entry(asked).set(*asked);
        let cover = &ranges().cover;
        let (low, high) = cover.get();
        cover.set((low.min(first), high.max(last)));
    }
}

/// Bytes of the line are kept no longer.
#[inline]
pub(crate) fn forget(line: u64) {
    let (first, last) = ranges().cover.get();
    if first <= line && line <= last {
        forget_all();
    }
}

/// Nothing is known any more.
#[cold]
pub(crate) fn forget_all() {
    let ranges = ranges();
    ranges.entries.iter().for_each(|entry| entry.set(NONE));
    ranges.cover.set(EMPTY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_pieces() {
        let pieces = Strided { start: 60, stride: 56, count: 3, width: 4 };
        assert_eq!(pieces.lines(), Some((0, 2)));
        assert_eq!(Strided { width: 21, ..pieces }.lines(), Some((0, 3)));
        assert_eq!(Strided { count: 0, ..pieces }.lines(), None);
        assert_eq!(Strided { stride: usize::MAX - 55, ..pieces }.lines(), None);
    }
}
