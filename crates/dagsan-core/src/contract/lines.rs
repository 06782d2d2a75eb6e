//! The lines that contracted tasks have touched: a small shadow memory, in which a bag stands for who made an access.
//!
//! ```text
//!   slots, open addressing      entries, a chain for each line
//!   ┌──────┬───────┐           ┌──────┬─────────┬───────┬─────┬──────┐
//!   │ line │ first ├──────────►│ read │ written │ sites │ bag │ next ├──► …
//!   └──────┴───────┘           └──────┴─────────┴───────┴─────┴──────┘
//! ```
//!
//! As in SP-bags, a byte has at most one writer and one reader here. A new access replaces those that precede it, and that it covers;
//! of two parallel readers the first stays, as whatever comes later and is parallel to the second is parallel to it.

use super::bags::{Bag, Bags};
use super::set::{SmallSet, Touched};
use crate::bytes::Bytes;

/// Where an entry is.
type At = u32;

/// No entry.
const NONE: At = At::MAX;

/// No line has this number.
const NO_LINE: u64 = u64::MAX;

/// A chain that has become so long is looked through for entries of one bag.
const LONG: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Slot {
    line: u64,
    first: At,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    touched: Touched,
    bag: Bag,
    next: At,
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    slots: Box<[Slot]>,
    /// How far a hash is shifted to be the number of a slot.
    shift: u32,
    /// The slots in use, some of them without entries.
    used: Vec<u32>,
    entries: Vec<Entry>,
    /// Entries that are free, as a chain.
    free: At,
    /// How many are not.
    live: usize,
    limit: usize,
}

impl Lines {
    /// Room for so many lines.
    pub(super) fn new(limit: usize) -> Lines {
        let slots = (2 * limit).next_power_of_two().max(2);
        Lines {
            slots: vec![Slot { line: NO_LINE, first: NONE }; slots].into(),
            shift: u64::BITS - slots.ilog2(),
            used: Vec::new(),
            entries: Vec::new(),
            free: NONE,
            live: 0,
            limit,
        }
    }

    /// Has nothing been touched?
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Is there room for a set, whatever lines it has?
    #[inline]
    pub(super) fn fits(&self, set: &SmallSet) -> bool {
        self.used.len() + set.len() <= self.limit
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        for slot in self.used.drain(..) {
            self.slots[slot as usize].line = NO_LINE;
        }
        self.entries.clear();
        (self.free, self.live) = (NONE, 0);
    }

    /// The slot of a line, or where it would be.
    #[inline]
    fn slot(&self, line: u64) -> usize {
        let mut at = (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        // At most half of the slots are in use.
        loop {
            let known = self.slots[at].line;
            if known == line || known == NO_LINE {
                return at;
            }
            at = (at + 1) % self.slots.len();
        }
    }

    /// The first entry of a line.
    #[inline]
    fn first(&self, line: u64) -> At {
        let Slot { line: known, first } = self.slots[self.slot(line)];
        if known == line { first } else { NONE }
    }

    /// Does something that is parallel to the running strand conflict with what that has done?
    #[inline]
    pub(super) fn conflicts(&self, set: &SmallSet, bags: &mut Bags) -> bool {
        set.iter().any(|(line, touched)| {
            let mut at = self.first(line);
            while at != NONE {
                let entry = &self.entries[at as usize];
                if touched.conflicts(&entry.touched) && bags.is_parallel(entry.bag) {
                    return true;
                }
                at = entry.next;
            }
            false
        })
    }

    /// The running strand, which is in that bag, has done this to a line for which there is room, and does not conflict. Returns the bytes that it has
    /// read, and that nobody here has written.
    #[inline]
    pub(super) fn add(&mut self, line: u64, touched: &Touched, bag: Bag, bags: &mut Bags) -> u64 {
        let slot = self.slot(line);
        if self.slots[slot].line != line {
            self.slots[slot] = Slot { line, first: NONE };
            self.used.push(slot as u32);
        }
        let (bag, read) = (bags.find(bag), touched.read & !touched.written);
        let mut new = Touched { read, ..*touched };
        let (mut own, mut written, mut length) = (NONE, 0, 0);
        let (mut before, mut at) = (NONE, self.slots[slot].first);
        while at != NONE {
            let Entry { touched: known, bag: of, next } = &mut self.entries[at as usize];
            let (here, next) = (at, *next);
            written |= known.written;
            *of = bags.find(*of);
            if *of == bag {
                own = here;
            } else if bags.is_parallel(*of) {
                new.read &= !known.read;
            } else {
                known.read &= !(read | new.written);
                known.written &= !new.written;
            }
            if known.is_nothing() {
                self.unlink(slot, before, here);
            } else {
                (before, length) = (here, length + 1);
            }
            at = next;
        }
        if own != NONE {
            self.entries[own as usize].touched.absorb(&new);
        } else if !new.is_nothing() {
            self.link(slot, Entry { touched: new, bag, next: NONE });
            if length >= LONG {
                self.shorten(slot);
            }
        }
        read & !written
    }

    fn link(&mut self, slot: usize, entry: Entry) {
        let entry = Entry { next: self.slots[slot].first, ..entry };
        self.slots[slot].first = self.free;
        if self.free == NONE {
            self.slots[slot].first = self.entries.len() as At;
            self.entries.push(entry);
        } else {
            let at = self.free as usize;
            self.free = self.entries[at].next;
            self.entries[at] = entry;
        }
        self.live += 1;
    }

    /// Takes an entry out of the chain of a slot. `before` is the one before it.
    fn unlink(&mut self, slot: usize, before: At, at: At) {
        let next = std::mem::replace(&mut self.entries[at as usize].next, self.free);
        self.free = at;
        match before {
            NONE => self.slots[slot].first = next,
            _ => self.entries[before as usize].next = next,
        }
        self.live -= 1;
    }

    /// Puts those entries of a chain together that have one bag. All have been found.
    #[cold]
    fn shorten(&mut self, slot: usize) {
        let mut first = self.slots[slot].first;
        while first != NONE {
            let (mut before, mut at) = (first, self.entries[first as usize].next);
            while at != NONE {
                let Entry { touched, bag, next } = self.entries[at as usize];
                if bag == self.entries[first as usize].bag {
                    self.entries[first as usize].touched.absorb(&touched);
                    self.unlink(slot, before, at);
                } else {
                    before = at;
                }
                at = next;
            }
            first = self.entries[first as usize].next;
        }
    }

    /// The bytes are other memory from here on.
    pub(super) fn remove(&mut self, bytes: Bytes) {
        if self.live == 0 || bytes.is_empty() {
            return;
        }
        if bytes.len() / crate::LINE_BYTES <= self.used.len() as u64 {
            for (line, mask) in bytes.lines() {
                let slot = self.slot(line);
                if self.slots[slot].line == line {
                    self.remove_in(slot, mask);
                }
            }
            return;
        }
        for number in 0..self.used.len() {
            let slot = self.used[number] as usize;
            if let Some(mask) = bytes.within(self.slots[slot].line) {
                self.remove_in(slot, mask);
            }
        }
    }

    fn remove_in(&mut self, slot: usize, mask: u64) {
        let (mut before, mut at) = (NONE, self.slots[slot].first);
        while at != NONE {
            let Entry { touched, next, .. } = &mut self.entries[at as usize];
            let (here, next) = (at, *next);
            touched.read &= !mask;
            touched.written &= !mask;
            if touched.is_nothing() {
                self.unlink(slot, before, here);
            } else {
                before = here;
            }
            at = next;
        }
    }

    /// Has something been done to one of these lines?
    pub(super) fn touch(&self, lines: &std::ops::Range<u64>) -> bool {
        if self.live == 0 {
            return false;
        }
        if lines.end.saturating_sub(lines.start) <= self.used.len() as u64 {
            return lines.clone().any(|line| self.first(line) != NONE);
        }
        self.used().any(|slot| slot.first != NONE && lines.contains(&slot.line))
    }

    fn used(&self) -> impl Iterator<Item = Slot> {
        self.used.iter().map(|&slot| self.slots[slot as usize])
    }

    /// What was done, and by whom.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Bag, u64, Touched)> {
        self.used().flat_map(move |Slot { line, first }| {
            let mut at = first;
            std::iter::from_fn(move || {
                let Entry { touched, bag, next } = *self.entries.get(at as usize)?;
                at = next;
                Some((bag, line, touched))
            })
        })
    }

    /// Bags have other names from here on. Entries that are free are asked about too.
    pub(super) fn rename(&mut self, mut name: impl FnMut(Bag) -> Bag) {
        self.entries.iter_mut().for_each(|entry| entry.bag = name(entry.bag));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SiteId;

    fn touched(read: u64, written: u64) -> Touched {
        Touched { read, written, sites: [SiteId::FIRST; 2] }
    }

    fn left(lines: &Lines) -> Vec<(u64, u64, u64)> {
        let mut all: Vec<_> = lines.iter().map(|(_, line, done)| (line, done.read, done.written)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn the_first_of_parallel_readers_stays_and_a_later_one_replaces_those_before_it() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let (ended, running) = (bags.serial(), bags.serial());
        bags.set_parallel(ended, true);
        assert_eq!(lines.add(3, &touched(0b11, 0), ended, &mut bags), 0b11);
        assert_eq!(lines.add(3, &touched(0b110, 0), running, &mut bags), 0b110);
        assert_eq!(left(&lines), [(3, 0b11, 0), (3, 0b100, 0)]);
        bags.set_parallel(ended, false);
        lines.add(3, &touched(0b111, 0b1), running, &mut bags);
        assert_eq!(left(&lines), [(3, 0b110, 0b1)]);
    }

    #[test]
    fn a_reader_hears_of_writers() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let (one, two) = (bags.serial(), bags.serial());
        lines.add(3, &touched(0, 0b10), one, &mut bags);
        assert_eq!(lines.add(3, &touched(0b111, 0b100), two, &mut bags), 0b1);
    }

    #[test]
    fn what_is_gone_leaves_no_entry() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let bag = bags.serial();
        for line in 1..4 {
            lines.add(line, &touched(1, 2), bag, &mut bags);
        }
        lines.remove(Bytes::new(64, 128).unwrap());
        assert!(left(&lines) == [(3, 0, 2)] || left(&lines) == [(3, 1, 2)]);
        assert!(!lines.touch(&(1..3)) && lines.touch(&(0..1000)));
        lines.remove(Bytes::new(0, 1 << 20).unwrap());
        assert!(lines.is_empty() && !lines.touch(&(0..1000)));
    }

    #[test]
    fn long_chains_are_shortened() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let all: Vec<Bag> = (0..20).map(|_| bags.serial()).collect();
        for (bit, &bag) in all.iter().enumerate() {
            lines.add(0, &touched(0, 1 << bit), bag, &mut bags);
            bags.union(all[0], bag);
        }
        assert!(lines.live <= LONG + 1, "{}", lines.live);
        assert_eq!(left(&lines).iter().fold(0, |all, done| all | done.2), (1 << 20) - 1);
    }
}
