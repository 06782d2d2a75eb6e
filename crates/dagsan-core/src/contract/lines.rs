//! The lines that contracted tasks have touched: a small shadow memory, in which a bag stands for who made an access.
//!
//! ```text
//!   slots, open addressing      entries, a chain for each line
//!   ┌──────┬───────┐           ┌──────┬─────────┬───────┬─────┬───────┬──────┐
//!   │ line │ first ├──────────►│ read │ written │ sites │ bag │ owner │ next ├──► …
//!   └──────┴───────┘           └──────┴─────────┴───────┴─────┴───────┴──────┘
//! ```
//!
//! The stack of an ended task is other memory. So entries for stacks have the name of the task whose stack it is, whoever has made the access, and are
//! dead when that has ended.
//!
//! As in SP-bags, a byte has at most one writer and one reader here. A new access replaces those that precede it, and that it covers;
//! of two parallel readers the first stays, as whatever comes later and is parallel to the second is parallel to it.

use super::bags::{Bag, Bags};
use super::set::{SmallSet, Touched};

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

/// A task that runs, or did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    /// Its level.
    pub(super) level: u32,
    /// Which of the tasks at that level it is.
    pub(super) number: u32,
}

impl Owner {
    /// Of memory that is no contracted task's stack.
    pub(super) const NOBODY: Owner = Owner { level: 0, number: 0 };
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    touched: Touched,
    bag: Bag,
    owner: Owner,
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

    /// Does something that is parallel to the running strand conflict with what that has done, in memory that is still there?
    #[inline]
    pub(super) fn conflicts(&self, set: &SmallSet, bags: &mut Bags, runs: impl Fn(Owner) -> bool) -> bool {
        set.iter().any(|(line, touched)| {
            let mut at = self.first(line);
            while at != NONE {
                let entry = &self.entries[at as usize];
                if touched.conflicts(&entry.touched) && bags.is_parallel(entry.bag) && runs(entry.owner) {
                    return true;
                }
                at = entry.next;
            }
            false
        })
    }

    /// A strand, which is in that bag, has done this to bytes of a line for which there is room; they are `owner`'s, and it does not conflict. Returns the
    /// bytes that it has read, and that nobody here has written.
    #[inline]
    pub(super) fn add(
        &mut self,
        (line, touched): (u64, &Touched),
        (bag, owner): (Bag, Owner),
        bags: &mut Bags,
        runs: impl Fn(Owner) -> bool,
    ) -> u64 {
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
            let Entry { touched: known, bag: of, owner: whose, next } = &mut self.entries[at as usize];
            let (here, next) = (at, *next);
            *of = bags.find(*of);
            let mut is_there = runs(*whose);
            if *of == bag {
                if *whose == owner {
                    own = here;
                }
            } else if bags.is_parallel(*of) {
                new.read &= if is_there { !known.read } else { u64::MAX };
            } else {
                known.read &= !(read | new.written);
                known.written &= !new.written;
                is_there &= !known.is_nothing();
            }
            if is_there {
                written |= known.written;
                (before, length) = (here, length + 1);
            } else {
                self.unlink(slot, before, here);
            }
            at = next;
        }
        if own != NONE {
            self.entries[own as usize].touched.absorb(&new);
        } else if !new.is_nothing() {
            self.link(slot, Entry { touched: new, bag, owner, next: NONE });
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
                let Entry { touched, bag, owner, next } = self.entries[at as usize];
                let one = &self.entries[first as usize];
                if (bag, owner) == (one.bag, one.owner) {
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

    /// What was done, and by whom, to memory that is still there.
    pub(super) fn iter(&self, runs: impl Fn(Owner) -> bool) -> impl Iterator<Item = (Bag, u64, Touched)> {
        let entries = self.used().flat_map(move |Slot { line, first }| {
            let mut at = first;
            std::iter::from_fn(move || {
                let entry = self.entries.get(at as usize)?;
                at = entry.next;
                Some((line, entry))
            })
        });
        entries
            .filter(move |(_, entry)| runs(entry.owner))
            .map(|(line, entry)| (entry.bag, line, entry.touched))
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
        let mut all: Vec<_> =
            lines.iter(runs).map(|(_, line, done)| (line, done.read, done.written)).collect();
        all.sort_unstable();
        all
    }

    fn runs(owner: Owner) -> bool {
        owner == Owner::NOBODY
    }

    fn add(lines: &mut Lines, line: u64, touched: Touched, bag: Bag, bags: &mut Bags) -> u64 {
        lines.add((line, &touched), (bag, Owner::NOBODY), bags, runs)
    }

    #[test]
    fn the_first_of_parallel_readers_stays_and_a_later_one_replaces_those_before_it() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let (ended, running) = (bags.serial(), bags.serial());
        bags.set_parallel(ended, true);
        assert_eq!(add(&mut lines, 3, touched(0b11, 0), ended, &mut bags), 0b11);
        assert_eq!(add(&mut lines, 3, touched(0b110, 0), running, &mut bags), 0b110);
        assert_eq!(left(&lines), [(3, 0b11, 0), (3, 0b100, 0)]);
        bags.set_parallel(ended, false);
        add(&mut lines, 3, touched(0b111, 0b1), running, &mut bags);
        assert_eq!(left(&lines), [(3, 0b110, 0b1)]);
    }

    #[test]
    fn a_reader_hears_of_writers() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let (one, two) = (bags.serial(), bags.serial());
        add(&mut lines, 3, touched(0, 0b10), one, &mut bags);
        assert_eq!(add(&mut lines, 3, touched(0b111, 0b100), two, &mut bags), 0b1);
    }

    #[test]
    fn a_stack_is_gone_with_its_task() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let (ended, running) = (bags.serial(), bags.serial());
        let task = Owner { level: 1, number: 1 };
        lines.add((3, &touched(0, 0b11)), (ended, task), &mut bags, |_| true);
        bags.set_parallel(ended, true);
        let mut set = SmallSet::default();
        set.push(3, touched(0b1, 0));
        assert!(lines.conflicts(&set, &mut bags, |_| true) && !lines.conflicts(&set, &mut bags, runs));
        assert!(left(&lines).is_empty());
        assert_eq!(add(&mut lines, 3, touched(0b1, 0), running, &mut bags), 0b1);
        assert_eq!(lines.live, 1);
    }

    #[test]
    fn lines_are_touched_by_what_was_done_to_them() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let bag = bags.serial();
        assert!(!lines.touch(&(0..1000)));
        add(&mut lines, 3, touched(1, 2), bag, &mut bags);
        assert!(!lines.touch(&(1..3)) && lines.touch(&(3..4)) && lines.touch(&(0..1000)));
        lines.clear();
        assert!(!lines.touch(&(3..4)));
    }

    #[test]
    fn long_chains_are_shortened() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let all: Vec<Bag> = (0..20).map(|_| bags.serial()).collect();
        for (bit, &bag) in all.iter().enumerate() {
            add(&mut lines, 0, touched(0, 1 << bit), bag, &mut bags);
            bags.union(all[0], bag);
        }
        assert!(lines.live <= LONG + 1, "{}", lines.live);
        assert_eq!(left(&lines).iter().fold(0, |all, done| all | done.2), (1 << 20) - 1);
    }
}
