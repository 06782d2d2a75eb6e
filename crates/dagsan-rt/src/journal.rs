//! Which of several places in the code it was: what the detector is not told of the accesses to a line.
//!
//! A strand often reads a line of memory from several places: a loop that was unrolled, the steps of a sort. To the
//! detector that is one access, with the place that came first, or a line would fall into pieces that differ in
//! nothing but their place. The entries of the strand's log (`log`) with the other places are kept here, and
//! looked at if the line is found to be racy:
//!
//! ```text
//!   entries     … │ line 7: e4 e3 e1, line 9: f2 f1 │ line 7: … │           a ring: the oldest go
//!   pieces      … │ strand 12                       │ strand 13 │
//!
//!   the place of byte b in line 7:   the latest of e4 e3 e1 that was made before b was touched
//! ```
//!
//! What a long run has pushed out is lost: then the place of another byte of the line is all there is.

use std::collections::VecDeque;

use dagsan_core::{AccessKind, StrandId};

use crate::log::Entry;
use crate::sites::Origin;

/// So many entries are kept: 24 MiB.
const CAPACITY: usize = 1 << 20;

/// Some accesses of a strand: these entries.
#[derive(Debug, Clone, Copy)]
struct Piece {
    strand: StrandId,
    start: u64,
    end: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Vec<Entry>,
    /// How many entries there have been; entry n is at n % CAPACITY.
    next: u64,
    pieces: VecDeque<Piece>,
    /// Where the accesses of the running strand begin.
    start: u64,
}

impl Journal {
    /// An entry of the running strand, the latest first. The first one of a line has all its bytes in `before`.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if self.entries.len() < CAPACITY {
            self.entries.push(entry);
        } else {
            self.entries[self.next as usize % CAPACITY] = entry;
        }
        self.next += 1;
    }

    /// These were accesses of this strand, or of one that nobody will ask for.
    #[inline]
    pub fn end_piece(&mut self, strand: Option<StrandId>) {
        if self.start == self.next {
            return;
        }
        if let Some(strand) = strand {
            self.pieces.push_back(Piece { strand, start: self.start, end: self.next });
        }
        self.start = self.next;
        // The oldest piece goes with its first entry.
        let oldest = self.next.saturating_sub(CAPACITY as u64);
        while self.pieces.front().is_some_and(|piece| piece.start < oldest) {
            self.pieces.pop_front();
        }
    }

    /// From where the strand accessed the byte of the line, which it did from several places.
    pub fn origin(&self, strand: StrandId, kind: AccessKind, line: u64, byte: u64) -> Option<Origin> {
        let pieces = self.pieces.iter().rev().filter(|piece| piece.strand == strand);
        pieces.into_iter().find_map(|piece| self.origin_in(piece.start..piece.end, kind, line, byte))
    }

    fn origin_in(
        &self,
        entries: std::ops::Range<u64>,
        kind: AccessKind,
        line: u64,
        byte: u64,
    ) -> Option<Origin> {
        let mut latest = None;
        for number in entries {
            let entry = &self.entries[number as usize % CAPACITY];
            if entry.line() != line || entry.kind() != kind {
                continue;
            }
            if entry.is_first() {
                return (entry.before & byte != 0).then_some(latest.unwrap_or(entry.origin));
            }
            if latest.is_none() && entry.before & byte == 0 {
                latest = Some(entry.origin);
            }
        }
        None
    }

    /// Nobody will ask for what was.
    pub fn forget(&mut self) {
        self.pieces.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(code: u32) -> Origin {
        Origin { code, caller: 0 }
    }

    /// Line 7 from three places: bytes 0 and 1, then 2, then 3.
    fn three_places(journal: &mut Journal, strand: u32) {
        let read = AccessKind::Read;
        journal.push(Entry::new(7, read, false, 0b0111, origin(5)));
        journal.push(Entry::new(8, read, true, 0b0001, origin(9)));
        journal.push(Entry::new(7, read, false, 0b0011, origin(3)));
        journal.push(Entry::new(7, read, true, 0b1111, origin(1)));
        journal.end_piece(Some(StrandId(strand)));
    }

    #[test]
    fn each_byte_has_its_place() {
        let mut journal = Journal::default();
        three_places(&mut journal, 1);
        journal.end_piece(Some(StrandId(2)));
        let at = |byte: u64| journal.origin(StrandId(1), AccessKind::Read, 7, byte).map(|origin| origin.code);
        assert_eq!([1, 2, 4, 8, 16].map(at), [Some(1), Some(1), Some(3), Some(5), None]);
        assert_eq!(journal.origin(StrandId(2), AccessKind::Read, 7, 1), None);
        assert_eq!(journal.origin(StrandId(1), AccessKind::Write, 7, 1), None);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut journal = Journal::default();
        let strands = CAPACITY as u32 / 4 + 2;
        (0..strands).for_each(|strand| three_places(&mut journal, strand));
        let known = |strand| journal.origin(StrandId(strand), AccessKind::Read, 7, 1).is_some();
        assert_eq!([0, 1, 2, strands - 1].map(known), [false, false, true, true]);
        journal.forget();
        assert!(journal.origin(StrandId(strands - 1), AccessKind::Read, 7, 1).is_none());
    }
}
