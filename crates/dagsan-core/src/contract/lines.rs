//! The lines that contracted tasks have touched: a small shadow memory, in which a bag stands for who made an access.
//!
//! ```text
//!   slots, open addressing        entries, two chains for each line
//!   ┌──────┬───────┬────────┐     ┌──────┬─────────┬───────┬─────┬───────┬──────┐
//!   │ line │ plain │ atomic ├────►│ read │ written │ sites │ bag │ owner │ next ├──► …
//!   └──────┴───┬───┴────────┘     └──────┴─────────┴───────┴─────┴───────┴──────┘
//!              └─────────────────► …
//! ```
//!
//! The stack of an ended task is other memory. So entries for stacks have the name of the task whose stack it is, whoever has made the access, and are
//! dead when that has ended.
//!
//! As in SP-bags, a byte has at most one writer and one reader here. A new access replaces those that precede it, and that it covers;
//! of two parallel readers the first stays, as whatever comes later and is parallel to the second is parallel to it.
//!
//! Two atomic accesses do not race, so the same holds of a write that is atomic: of two parallel ones the first stays. But that they
//! [meet](crate::race::Meeting) must be told, by sites and kinds: an atomic access stands for, or replaces, those of its own site and
//! kind only, and none that is not atomic.

use std::ops::Range;

use super::bags::{Bag, Bags};
use super::set::{Side, SmallSet, Touched};
use crate::access::AccessKind;

/// Where an entry is.
type At = u32;

/// No entry.
const NONE: At = At::MAX;

/// No line has this number.
const NO_LINE: u64 = u64::MAX;

/// A chain that has become so long, or twice as long, and so on, is looked through for entries of one bag.
const LONG: usize = 4;

/// It should not become longer than this.
const CROWD: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Slot {
    line: u64,
    /// The first entries: of plain accesses, and of atomic ones.
    first: [At; 2],
}

const PLAIN: usize = 0;
const ATOMIC: usize = 1;

/// No entries.
const EMPTY: [At; 2] = [NONE; 2];

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
    /// The slots of the lines of the set that was looked at last.
    found: Vec<u32>,
    entries: Vec<Entry>,
    /// Entries that are free, as a chain.
    free: At,
    /// How many are not.
    live: usize,
    limit: usize,
    /// Has a chain become too long?
    crowded: bool,
}

impl Lines {
    /// Room for so many lines.
    pub(super) fn new(limit: usize) -> Lines {
        let slots = (2 * limit).next_power_of_two().max(2);
        Lines {
            slots: vec![Slot { line: NO_LINE, first: EMPTY }; slots].into(),
            shift: u64::BITS - slots.ilog2(),
            used: Vec::new(),
            found: Vec::new(),
            entries: Vec::new(),
            free: NONE,
            live: 0,
            limit,
            crowded: false,
        }
    }

    /// Has nothing been touched?
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Is there room for a set, whatever lines it has, and is none looked for too long?
    #[inline]
    pub(super) fn fits(&self, set: &SmallSet) -> bool {
        self.used.len() + set.len() <= self.limit && !self.crowded
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        for slot in self.used.drain(..) {
            self.slots[slot as usize].line = NO_LINE;
        }
        self.entries.clear();
        (self.free, self.live, self.crowded) = (NONE, 0, false);
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

    /// The first entries of a line.
    #[inline]
    fn first(&self, line: u64) -> [At; 2] {
        let Slot { line: known, first } = self.slots[self.slot(line)];
        if known == line { first } else { EMPTY }
    }

    /// The entries of a chain.
    #[inline]
    fn chain(&self, mut at: At) -> impl Iterator<Item = &Entry> {
        std::iter::from_fn(move || {
            let entry = self.entries.get(at as usize)?;
            at = entry.next;
            Some(entry)
        })
    }

    /// A strand has done this, for which there is room. Does something that is parallel to it conflict, in memory that is still there? Or is that atomic, as
    /// this is, and not known to `have_met`? If not, what was done to the lines can be [added](Lines::add) one after the other, but for those of the running task's
    /// own stack, which are not entered (`frames`); if it is `alone` there, they are not asked about.
    #[inline]
    pub(super) fn conflicts(
        &mut self,
        set: &SmallSet,
        (frames, alone): (&Range<u64>, bool),
        bags: &mut Bags,
        runs: impl Fn(Owner) -> bool,
        have_met: impl Fn(Side, Side) -> bool,
    ) -> bool {
        self.found.clear();
        for (line, touched) in set.plain() {
            let [plain, atomic] = if frames.contains(&line) {
                self.found.push(NONE);
                if alone { EMPTY } else { self.first(line) }
            } else {
                let slot = self.enter(line);
                self.found.push(slot as u32);
                self.slots[slot].first
            };
            if plain != NONE && self.conflict(plain, touched, bags, &runs)
                || atomic != NONE && self.conflict(atomic, touched, bags, &runs)
            {
                return true;
            }
        }
        set.atomic().any(|(line, touched)| {
            let [plain, atomic] = self.first(line);
            self.conflict(plain, touched, bags, &runs) || self.meets(atomic, touched, bags, &runs, &have_met)
        })
    }

    /// Is there a parallel entry in a chain that conflicts?
    #[inline]
    fn conflict(&self, at: At, touched: &Touched, bags: &mut Bags, runs: impl Fn(Owner) -> bool) -> bool {
        self.chain(at).any(|entry| {
            touched.conflicts(&entry.touched) && bags.is_parallel(entry.bag) && runs(entry.owner)
        })
    }

    /// Is there a parallel entry in a chain of atomic accesses that this one meets, which is news?
    fn meets(
        &self,
        at: At,
        touched: &Touched,
        bags: &mut Bags,
        runs: impl Fn(Owner) -> bool,
        have_met: impl Fn(Side, Side) -> bool,
    ) -> bool {
        self.chain(at).any(|entry| {
            let pairs = entry
                .touched
                .sides()
                .into_iter()
                .flat_map(|first| touched.sides().into_iter().map(move |second| (first, second)));
            let news = |((these, first), (those, second)): ((u64, Side), (u64, Side))| {
                let writes = first.1 == AccessKind::Write || second.1 == AccessKind::Write;
                these & those != 0 && writes && !have_met(first, second)
            };
            touched.conflicts(&entry.touched)
                && pairs.into_iter().any(news)
                && bags.is_parallel(entry.bag)
                && runs(entry.owner)
        })
    }

    /// The slot of a line, which may be new.
    #[inline]
    fn enter(&mut self, line: u64) -> usize {
        let slot = self.slot(line);
        if self.slots[slot].line != line {
            self.slots[slot] = Slot { line, first: EMPTY };
            self.used.push(slot as u32);
        }
        slot
    }

    /// A strand, which is in that bag by its own name, has done this to bytes of a line, the one of that number in the set that does not
    /// [conflict](Lines::conflicts); the bytes are `owner`'s. If a reader `stands` for others, one is enough. Returns the bytes that it has read, and that
    /// nobody here has written.
    #[inline]
    pub(super) fn add(
        &mut self,
        (number, touched): (usize, &Touched),
        (bag, owner, stands): (Bag, Owner, bool),
        bags: &mut Bags,
        runs: impl Fn(Owner) -> bool,
    ) -> u64 {
        let slot = self.found[number] as usize;
        let read = touched.read & !touched.written;
        let mut new = Touched { read, ..*touched };
        let first = self.slots[slot].first;
        if first == EMPTY {
            self.link((slot, PLAIN), Entry { touched: new, bag, owner, next: NONE });
            return read;
        }
        let (mut own, mut written, mut length) = (NONE, 0, 0);
        let [plain, atomic] = first;
        let (mut before, mut at) = (NONE, plain);
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
                if is_there && (stands || bags.is_left(*of)) {
                    new.read &= !known.read;
                }
            } else {
                known.read &= !(read | new.written);
                known.written &= !new.written;
                is_there &= !known.is_nothing();
            }
            if is_there {
                written |= known.written;
                (before, length) = (here, length + 1);
            } else {
                self.unlink((slot, PLAIN), before, here);
            }
            at = next;
        }
        if own != NONE {
            self.entries[own as usize].touched.absorb(&new);
        } else if !new.is_nothing() {
            self.link((slot, PLAIN), Entry { touched: new, bag, owner, next: NONE });
            self.has_grown((slot, PLAIN), length);
        }
        if atomic != NONE {
            written |= self.chain(atomic).fold(0, |all, entry| all | entry.touched.written);
        }
        read & !written
    }

    /// The same of atomic accesses to a line, all of one site.
    pub(super) fn add_atomic(
        &mut self,
        (line, touched): (u64, &Touched),
        (bag, owner, stands): (Bag, Owner, bool),
        bags: &mut Bags,
        runs: impl Fn(Owner) -> bool,
    ) {
        let (slot, mut new) = (self.enter(line), *touched);
        let (mut own, mut length) = (NONE, 0);
        let (mut before, mut at) = (NONE, self.slots[slot].first[ATOMIC]);
        while at != NONE {
            let Entry { touched: known, bag: of, owner: whose, next } = &mut self.entries[at as usize];
            let (here, next) = (at, *next);
            *of = bags.find(*of);
            let mut is_there = runs(*whose);
            if known.sites == touched.sites && is_there {
                if *of == bag {
                    if *whose == owner {
                        own = here;
                    }
                } else if bags.is_parallel(*of) {
                    if stands || bags.is_left(*of) {
                        new.read &= !known.read;
                        new.written &= !known.written;
                    }
                } else {
                    known.read &= !touched.read;
                    known.written &= !touched.written;
                    is_there = !known.is_nothing();
                }
            }
            if is_there {
                (before, length) = (here, length + 1);
            } else {
                self.unlink((slot, ATOMIC), before, here);
            }
            at = next;
        }
        if own != NONE {
            self.entries[own as usize].touched.absorb(&new);
        } else if !new.is_nothing() {
            self.link((slot, ATOMIC), Entry { touched: new, bag, owner, next: NONE });
            self.has_grown((slot, ATOMIC), length);
        }
    }

    /// A chain has got an entry, and had so many.
    #[inline]
    fn has_grown(&mut self, chain: (usize, usize), length: usize) {
        if length >= LONG && length.is_power_of_two() {
            self.shorten(chain);
        }
        self.crowded |= length > CROWD;
    }

    /// Whatever was done to these bytes of a line is of no interest any more.
    pub(super) fn forget(&mut self, line: u64, bytes: u64) {
        let slot = self.slot(line);
        if self.slots[slot].line != line {
            return;
        }
        for chain in [PLAIN, ATOMIC] {
            let (mut before, mut at) = (NONE, self.slots[slot].first[chain]);
            while at != NONE {
                let Entry { touched, next, .. } = &mut self.entries[at as usize];
                let (here, next) = (at, *next);
                *touched = touched.to(!bytes);
                if touched.is_nothing() {
                    self.unlink((slot, chain), before, here);
                } else {
                    before = here;
                }
                at = next;
            }
        }
    }

    fn link(&mut self, (slot, chain): (usize, usize), entry: Entry) {
        let first = &mut self.slots[slot].first[chain];
        let entry = Entry { next: *first, ..entry };
        *first = self.free;
        if self.free == NONE {
            *first = self.entries.len() as At;
            self.entries.push(entry);
        } else {
            let at = self.free as usize;
            self.free = self.entries[at].next;
            self.entries[at] = entry;
        }
        self.live += 1;
    }

    /// Takes an entry out of a chain of a slot. `before` is the one before it.
    fn unlink(&mut self, (slot, chain): (usize, usize), before: At, at: At) {
        let next = std::mem::replace(&mut self.entries[at as usize].next, self.free);
        self.free = at;
        match before {
            NONE => self.slots[slot].first[chain] = next,
            _ => self.entries[before as usize].next = next,
        }
        self.live -= 1;
    }

    /// Puts those entries of a chain together that have one bag, and if they are atomic one site. All have been found.
    #[cold]
    fn shorten(&mut self, (slot, chain): (usize, usize)) {
        let mut first = self.slots[slot].first[chain];
        while first != NONE {
            let (mut before, mut at) = (first, self.entries[first as usize].next);
            while at != NONE {
                let Entry { touched, bag, owner, next } = self.entries[at as usize];
                let one = &self.entries[first as usize];
                let alike = chain == PLAIN || touched.sites == one.touched.sites;
                if (bag, owner) == (one.bag, one.owner) && alike {
                    self.entries[first as usize].touched.absorb(&touched);
                    self.unlink((slot, chain), before, at);
                } else {
                    before = at;
                }
                at = next;
            }
            first = self.entries[first as usize].next;
        }
    }

    /// The bytes of a line that were accessed, in memory that is still there: not atomically, and atomically.
    pub(super) fn touched(&self, line: u64, runs: impl Fn(Owner) -> bool) -> [u64; 2] {
        self.first(line).map(|first| {
            let there = self.chain(first).filter(|entry| runs(entry.owner));
            there.fold(0, |all, entry| all | entry.touched.read | entry.touched.written)
        })
    }

    /// Has something been done to one of these lines?
    pub(super) fn touch(&self, lines: &Range<u64>) -> bool {
        if self.live == 0 {
            return false;
        }
        if lines.end.saturating_sub(lines.start) <= self.used.len() as u64 {
            return lines.clone().any(|line| self.first(line) != EMPTY);
        }
        self.used().any(|slot| slot.first != EMPTY && lines.contains(&slot.line))
    }

    fn used(&self) -> impl Iterator<Item = Slot> {
        self.used.iter().map(|&slot| self.slots[slot as usize])
    }

    /// What was done, by whom, and whether atomically, to memory that is still there.
    pub(super) fn iter(
        &self,
        runs: impl Fn(Owner) -> bool,
    ) -> impl Iterator<Item = (Bag, u64, Touched, bool)> {
        let chains = self
            .used()
            .flat_map(|Slot { line, first: [plain, atomic] }| [(line, plain, false), (line, atomic, true)]);
        let entries =
            chains.flat_map(|(line, at, atomic)| self.chain(at).map(move |entry| (line, entry, atomic)));
        entries
            .filter(move |(_, entry, _)| runs(entry.owner))
            .map(|(line, entry, atomic)| (entry.bag, line, entry.touched, atomic))
    }

    /// Bags have other names from here on. Entries that are free are asked about too.
    pub(super) fn rename(&mut self, mut name: impl FnMut(Bag) -> Bag) {
        self.entries.iter_mut().for_each(|entry| entry.bag = name(entry.bag));
    }
}

#[cfg(test)]
mod tests {
    use super::super::bags::Kind;
    use super::*;
    use crate::ids::SiteId;

    fn touched(read: u64, written: u64) -> Touched {
        Touched { read, written, sites: [SiteId::FIRST; 2] }
    }

    fn left(lines: &Lines) -> Vec<(u64, u64, u64)> {
        let mut all: Vec<_> =
            lines.iter(runs).map(|(_, line, done, _)| (line, done.read, done.written)).collect();
        all.sort_unstable();
        all
    }

    fn runs(owner: Owner) -> bool {
        owner == Owner::NOBODY
    }

    fn met(_: Side, _: Side) -> bool {
        unreachable!("nothing is atomic")
    }

    fn add_to(
        lines: &mut Lines,
        (line, touched): (u64, Touched),
        (bag, owner): (Bag, Owner),
        bags: &mut Bags,
    ) -> u64 {
        let mut set = SmallSet::default();
        set.push(line, touched);
        // To find the slot. Whether it conflicts is not asked here.
        lines.conflicts(&set, (&(0..0), false), bags, runs, met);
        let bag = bags.find(bag);
        lines.add((0, &touched), (bag, owner, true), bags, runs)
    }

    fn add(lines: &mut Lines, line: u64, touched: Touched, bag: Bag, bags: &mut Bags) -> u64 {
        add_to(lines, (line, touched), (bag, Owner::NOBODY), bags)
    }

    #[test]
    fn the_first_of_parallel_readers_stays_and_a_later_one_replaces_those_before_it() {
        let (mut lines, mut bags) = (Lines::new(8), Bags::default());
        let (ended, running) = (bags.serial(), bags.serial());
        bags.set(ended, Kind::Parallel);
        assert_eq!(add(&mut lines, 3, touched(0b11, 0), ended, &mut bags), 0b11);
        assert_eq!(add(&mut lines, 3, touched(0b110, 0), running, &mut bags), 0b110);
        assert_eq!(left(&lines), [(3, 0b11, 0), (3, 0b100, 0)]);
        bags.set(ended, Kind::Serial);
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
        add_to(&mut lines, (3, touched(0, 0b11)), (ended, task), &mut bags);
        bags.set(ended, Kind::Parallel);
        let mut set = SmallSet::default();
        set.push(3, touched(0b1, 0));
        assert!(
            lines.conflicts(&set, (&(0..0), false), &mut bags, |_| true, met)
                && !lines.conflicts(&set, (&(0..0), false), &mut bags, runs, met)
        );
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
