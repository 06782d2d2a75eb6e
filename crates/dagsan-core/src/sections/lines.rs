//! Where the touches of a line are, by lock.
//!
//! ```text
//!   pages    line ─► [ first │ recent ]
//!                       │        └─► the entry that was asked for last
//!                       └─► entry of lock A ─► entry of lock B ─► …
//!   others   (line, lock) ─► entry              but for the first of a line
//! ```
//!
//! Most lines are touched under one lock, or under the same one many times: neither searches. A line of a thread's stack may be
//! touched under any number of locks. Who has many lines to look up has them fetched ahead ([`Lines::expect`]).

use rustc_hash::FxHashMap;

use super::known::Known;
use super::touches::{Line, Touches};
use crate::ids::LockId;
use crate::pages::{PAGE_LINES, Pages, Place, prefetch};

/// No entry.
const NONE: u32 = u32::MAX;

/// The entries of a line.
#[derive(Debug, Clone, Copy)]
struct Entries {
    first: u32,
    recent: u32,
}

impl Default for Entries {
    fn default() -> Entries {
        Entries { first: NONE, recent: NONE }
    }
}

/// What was touched of a line in sections of a lock.
#[derive(Debug)]
struct Entry {
    lock: LockId,
    /// The next of the same line; of those that are free, the next free one.
    next: u32,
    line: Line,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Lines {
    pages: Pages<Entries>,
    all: Vec<Entry>,
    free: u32,
    others: FxHashMap<(u64, LockId), u32>,
    /// How many lines have entries.
    len: usize,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { pages: Pages::new(), all: Vec::new(), free: NONE, others: FxHashMap::default(), len: 0 }
    }
}

impl Lines {
    /// How many lines were touched.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// These lines will soon be asked for: what was asked for last of each, and what that leads to, will be in the processor's cache
    /// then. Each look waits for the one before it, so all lines go by the first before any goes by the second.
    pub(super) fn expect(&self, lines: impl Iterator<Item = u64> + Clone, touches: &Touches, known: &Known) {
        for place in lines.clone().filter_map(|number| self.pages.lookup(number)) {
            prefetch(&raw const self.pages[place]);
        }
        let recent = lines.filter_map(|number| self.recent(number));
        recent.clone().for_each(|entry| prefetch(&raw const *entry));
        recent.clone().for_each(|entry| entry.line.expect(touches));
        recent.clone().for_each(|entry| entry.line.expect_older(touches, known));
        recent.for_each(|entry| entry.line.expect_sections(touches, known));
    }

    #[inline]
    fn recent(&self, number: u64) -> Option<&Entry> {
        let place = self.pages.lookup(number)?;
        self.all.get(self.pages[place].recent as usize)
    }

    /// What was touched of a line in sections of `lock`.
    #[inline]
    pub(super) fn of(&mut self, number: u64, lock: LockId) -> &mut Line {
        let place = self.pages.place(number);
        let at = match self.known(place, number, lock) {
            Some(at) => at,
            None => self.new_entry(place, number, lock),
        };
        self.pages[place].recent = at;
        &mut self.all[at as usize].line
    }

    /// The same, if anything was.
    pub(super) fn find(&mut self, number: u64, lock: LockId) -> Option<&mut Line> {
        let page = self.pages.find(number / PAGE_LINES)?;
        let at = self.known(Place::new(page, number), number, lock)?;
        Some(&mut self.all[at as usize].line)
    }

    #[inline]
    fn known(&self, place: Place, number: u64, lock: LockId) -> Option<u32> {
        let Entries { first, recent } = self.pages[place];
        let is_of = |at: u32| self.all.get(at as usize).is_some_and(|entry| entry.lock == lock);
        if is_of(recent) {
            return Some(recent);
        }
        if is_of(first) {
            return Some(first);
        }
        // There are others if the first has a next.
        self.all.get(first as usize).filter(|entry| entry.next != NONE)?;
        self.others.get(&(number, lock)).copied()
    }

    fn new_entry(&mut self, place: Place, number: u64, lock: LockId) -> u32 {
        let new = Entry { lock, next: NONE, line: Line::default() };
        let at = match self.all.get_mut(self.free as usize) {
            Some(free) => {
                let at = std::mem::replace(&mut self.free, free.next);
                *free = new;
                at
            }
            None => {
                self.all.push(new);
                self.all.len() as u32 - 1
            }
        };
        let entries = &mut self.pages[place];
        match self.all.get_mut(entries.first as usize) {
            Some(first) => {
                let next = std::mem::replace(&mut first.next, at);
                self.all[at as usize].next = next;
                self.others.insert((number, lock), at);
            }
            None => {
                entries.first = at;
                self.len += 1;
            }
        }
        at
    }

    /// The locks of a line: how many there are, up to `most`.
    pub(super) fn count(&self, number: u64, most: usize) -> usize {
        self.chain(number).take(most).count()
    }

    /// The locks of a line.
    pub(super) fn locks(&self, number: u64) -> impl Iterator<Item = LockId> {
        self.chain(number).map(|at| self.all[at as usize].lock)
    }

    fn chain(&self, number: u64) -> impl Iterator<Item = u32> {
        let page = self.pages.find(number / PAGE_LINES);
        let mut at = page.map_or(NONE, |page| self.pages[Place::new(page, number)].first);
        std::iter::from_fn(move || {
            let this = at;
            at = self.all.get(this as usize)?.next;
            Some(this)
        })
    }

    /// Changes what is known of a line, by lock. Of what has no touches any more nothing is left.
    pub(super) fn change(&mut self, number: u64, mut change: impl FnMut(&mut Line)) {
        let Some(page) = self.pages.find(number / PAGE_LINES) else { return };
        let place = Place::new(page, number);
        let chain: Vec<u32> = self.chain(number).collect();
        let (mut first, mut last) = (NONE, NONE);
        for &at in &chain {
            change(&mut self.all[at as usize].line);
            let Entry { lock, ref line, .. } = self.all[at as usize];
            let is_first = at == chain[0];
            if line.len() == 0 {
                if !is_first {
                    self.others.remove(&(number, lock));
                }
                self.all[at as usize].next = self.free;
                self.free = at;
                continue;
            }
            match self.all.get_mut(last as usize) {
                Some(last) => last.next = at,
                None => {
                    first = at;
                    self.others.remove(&(number, lock));
                }
            }
            last = at;
        }
        if let Some(last) = self.all.get_mut(last as usize) {
            last.next = NONE;
        } else if !chain.is_empty() {
            self.len -= 1;
        }
        self.pages[place] = Entries { first, recent: first };
    }

    /// The numbers of the touched lines from `first` to `last`.
    pub(super) fn between(&self, first: u64, last: u64) -> Vec<u64> {
        let pages = self.pages.between(first / PAGE_LINES, last / PAGE_LINES);
        let lines = pages.into_iter().flat_map(|page| {
            let start = page * PAGE_LINES;
            start.max(first)..=(start + PAGE_LINES - 1).min(last)
        });
        lines.filter(|&number| self.chain(number).next().is_some()).collect()
    }

    pub(super) fn clear(&mut self) {
        self.pages.clear();
        self.all.clear();
        // To clear a map costs as much as it could hold.
        self.others = FxHashMap::default();
        (self.free, self.len) = (NONE, 0);
    }
}
