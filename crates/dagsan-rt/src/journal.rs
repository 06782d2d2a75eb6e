//! Which of several places in the code it was: what the detector is not told of the accesses to a line.
//!
//! A strand often reads a line of memory from several places: a loop that was unrolled, the steps of a sort. To the
//! detector that is one access, with the place that came first, or a line would fall into pieces that differ in
//! nothing but their place. The other places are kept here if places are to be exact (`log`), and looked at if the line is found to
//! be racy:
//!
//! ```text
//!   entries     … │ lines 7-9: e1, lines 7-8: e2 │ lines 7-9: … │           a ring: the oldest go
//!   pieces      … │ strand 12                    │ strand 13    │
//!
//!   the place of byte b in line 7:   of those entries that were made before b was touched, the one whose mask
//!                                    is the largest; if there is none, the place that came first
//! ```
//!
//! What a long run has pushed out is lost: then the place of another byte of the line is all there is.

use std::collections::VecDeque;

use dagsan_core::{AccessKind, StrandId};

use crate::log::Lines;
use crate::sites::Origin;

/// Some code touches lines that other code has touched before.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    lines: Lines,
    /// The bytes of each line that the strand knew.
    before: u64,
    kind: AccessKind,
    origin: Origin,
}

impl Entry {
    pub fn new(line: u64, before: u64, kind: AccessKind, origin: Origin) -> Entry {
        Entry { lines: Lines::new(line), before, kind, origin }
    }

    /// Has it stand for the line of another, if that is the next one and nothing else differs.
    fn lengthen(&mut self, other: &Entry) -> bool {
        (self.before, self.kind, self.origin) == (other.before, other.kind, other.origin)
            && self.lines.lengthen(other.lines.range().start)
    }
}

/// So many entries are kept: 32 MiB.
const CAPACITY: usize = 1 << 20;

/// So many strands are kept: where each has few entries, they would take more room than these.
const PIECES: usize = CAPACITY / 4;

/// Some accesses of a strand: these entries.
#[derive(Debug, Clone, Copy)]
struct Piece {
    strand: StrandId,
    start: u64,
    end: u64,
}

/// From where a byte was accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// From where the line was accessed first.
    First,
    /// From somewhere else.
    Later(Origin),
    /// It is not known any more.
    Forgotten,
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
    /// Latest entries, each at the place that its code and mask choose: a loop that was unrolled has many, which take turns.
    latest: Vec<u64>,
}

/// So many latest entries are at hand.
const LATEST: usize = 256;

impl Journal {
    /// An entry of the running strand, not the first of its lines.
    pub fn push(&mut self, entry: Entry) {
        self.latest.resize(LATEST, 0);
        let chosen = entry.before.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let latest = (chosen as usize + (entry.origin.code >> 4) as usize) % LATEST;
        let number = std::mem::replace(&mut self.latest[latest], self.next);
        // Of this strand, and still there.
        if number >= self.start.max(self.next.saturating_sub(CAPACITY as u64))
            && number < self.next
            && self.entries[number as usize % CAPACITY].lengthen(&entry)
        {
            self.latest[latest] = number;
            return;
        }
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
        while self.pieces.len() == PIECES || self.pieces.front().is_some_and(|piece| piece.start < oldest) {
            self.pieces.pop_front();
        }
    }

    /// From where the strand accessed the byte of the line, which it did from several places.
    pub fn place(&self, strand: StrandId, kind: AccessKind, line: u64, byte: u64) -> Place {
        let mut pieces = self.pieces.iter().rev().filter(|piece| piece.strand == strand);
        // If the strand came in pieces, each may have its own place for the byte.
        match (pieces.next(), pieces.next()) {
            (Some(piece), None) => self.place_in(piece.start..piece.end, kind, line, byte),
            _ => Place::Forgotten,
        }
    }

    fn place_in(&self, entries: std::ops::Range<u64>, kind: AccessKind, line: u64, byte: u64) -> Place {
        let entries = entries.map(|number| &self.entries[number as usize % CAPACITY]);
        let before = entries.filter(|entry| {
            entry.kind == kind && entry.lines.range().contains(&line) && entry.before & byte == 0
        });
        match before.max_by_key(|entry| entry.before.count_ones()) {
            Some(entry) => Place::Later(entry.origin),
            None => Place::First,
        }
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
        Origin { code: code << 2 | 1, caller: 0 }
    }

    /// Line 7 from three places: bytes 0 and 1, then 2, then 3.
    fn three_places(journal: &mut Journal, strand: u32) {
        let entry = |line, before, code| Entry::new(line, before, AccessKind::Read, origin(code));
        journal.push(entry(7, 0b0111, 5));
        journal.push(entry(8, 0b0001, 9));
        journal.push(entry(7, 0b0011, 3));
        journal.end_piece(Some(StrandId(strand)));
    }

    #[test]
    fn each_byte_has_its_place() {
        let mut journal = Journal::default();
        three_places(&mut journal, 1);
        journal.end_piece(Some(StrandId(2)));
        let at = |byte: u64| journal.place(StrandId(1), AccessKind::Read, 7, byte);
        let [later, last] = [3, 5].map(|code| Place::Later(origin(code)));
        assert_eq!([1, 2, 4, 8].map(at), [Place::First, Place::First, later, last]);
        assert_eq!(journal.place(StrandId(1), AccessKind::Write, 7, 8), Place::First);
        assert_eq!(journal.place(StrandId(2), AccessKind::Read, 7, 1), Place::Forgotten);
    }

    #[test]
    fn a_strand_in_pieces_has_no_certain_place() {
        let mut journal = Journal::default();
        three_places(&mut journal, 1);
        three_places(&mut journal, 1);
        assert_eq!(journal.place(StrandId(1), AccessKind::Read, 7, 4), Place::Forgotten);
    }

    fn knows(journal: &Journal, strand: u32) -> bool {
        journal.place(StrandId(strand), AccessKind::Read, 7, 4) != Place::Forgotten
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut journal = Journal::default();
        let strands = PIECES as u32 + 1;
        (0..strands).for_each(|strand| three_places(&mut journal, strand));
        assert_eq!([0, 1, 2, strands - 1].map(|strand| knows(&journal, strand)), [false, false, true, true]);
        journal.forget();
        assert!(!knows(&journal, strands - 1));
    }

    #[test]
    fn strands_with_many_entries_are_forgotten_with_the_first_of_them() {
        let mut journal = Journal::default();
        let last = CAPACITY as u32 / 6;
        for strand in 0..=last {
            let entry = Entry::new(9, 0, AccessKind::Write, origin(1));
            (0..3).for_each(|_| journal.push(entry));
            three_places(&mut journal, strand);
        }
        assert_eq!([0, 1, last].map(|strand| knows(&journal, strand)), [false, true, true]);
    }
}
