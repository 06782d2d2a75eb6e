//! The access history: who touched these bytes last?
//!
//! A line of 64 bytes is a short list of *segments*: disjoint masks of bytes that were treated alike,
//! with the last writer and the accesses since. A line treated alike, the common case in array code, is
//! one segment, kept in place: 24 bytes.
//!
//! ```text
//!   page (4 KiB of memory): 64 lines
//!   ┌──────┬────────┬──────┬──────┐
//!   │ mask │ writer │ list │ more ├──► further segments, if the line was not treated alike
//!   └──────┴────────┴──┬───┴──────┘
//!      8       8     4 │    4 bytes
//!                      └──► readers since the write (see `lists`)
//! ```
//!
//! A new access is compared with what its bytes' segments remember, then remembered itself. What it
//! covers is dropped: if `a` precedes `b`, and all that conflicts with `a` conflicts with `b`, then
//! whatever later is parallel to `a` is parallel to `b` too, for a path from `b` would be one from `a`.
//! So per byte no race is missed, and all that are found are races. Once a byte is racy, not every
//! further race on it is found. Two accesses conflict if one writes, not both are atomic, and the locks of their
//! strands do not keep them apart: a plain write without locks is alone in covering whatever it follows.
//!
//! Finding out whether a reader can be dropped costs a query, and keeping it is never wrong: only
//! the latest is asked about, and all of them whenever their number has doubled. Then also those that
//! share a bag with a later one go: the engine will never tell them apart.

mod lists;
mod pages;
mod record;

pub(crate) use record::Record;

use crate::bytes::{Bytes, Location};
use crate::ids::StrandId;
use lists::{List, Lists};
use pages::{PAGE_LINES, Pages, Place};

/// What the history asks, and tells, while it takes in the accesses of a strand.
pub(crate) trait Judge {
    /// Does `strand` precede the strand of the accesses?
    fn precedes(&mut self, strand: StrandId) -> bool;

    /// A bag of strands that will all have the same answers (see [`crate::order::Order::bag`]).
    fn bag(&mut self, strand: StrandId) -> Option<u32>;

    /// Do the locks that the two strands held keep them apart?
    fn exclude(&self, a: StrandId, b: StrandId) -> bool;

    /// Does whoever excludes `a` by locks exclude `b` too?
    fn excludes_no_more(&self, a: StrandId, b: StrandId) -> bool;

    /// The two are parallel and conflict. Returns whether that is news: no race of these sites on these bytes was
    /// reported.
    fn race(&mut self, first: Record, second: Record, location: Location) -> bool;
}

/// What was done to some bytes, as far as it can matter.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// The last write that was not atomic, nor made with locks held, or [`Record::NO_WRITE`].
    writer: Record,
    /// The accesses that it does not cover.
    list: List,
}

const UNTOUCHED: State = State { writer: Record::NO_WRITE, list: List::EMPTY };

#[derive(Clone, Copy)]
struct Segment {
    mask: u64,
    state: State,
}

/// A line's first segment in place, and the number of its entry in `History::more`, or 0.
#[derive(Clone, Copy)]
struct Line {
    mask: u64,
    writer: Record,
    list: List,
    more: u32,
}

const _: () = assert!(size_of::<Line>() == 24);

const EMPTY_LINE: Line = Line { mask: 0, writer: Record::NO_WRITE, list: List::EMPTY, more: 0 };

impl Line {
    fn first(&self) -> Segment {
        Segment { mask: self.mask, state: State { writer: self.writer, list: self.list } }
    }

    fn set_first(&mut self, segment: Segment) {
        (self.mask, self.writer, self.list) = (segment.mask, segment.state.writer, segment.state.list);
    }
}

const PAGE_BYTES: u64 = PAGE_LINES * crate::LINE_BYTES;

/// The last transitions from one state to another, so that lines treated alike are judged once.
#[derive(Clone, Copy)]
struct Transition {
    from: State,
    access: Record,
    to: State,
}

const MEMO: usize = 64;

/// See the module's documentation.
pub(crate) struct History {
    pages: Pages,
    /// Entry 0 is not used.
    more: Vec<Vec<Segment>>,
    free_more: Vec<u32>,
    lists: Lists,
    memo: Box<[Option<Transition>; MEMO]>,
    scratch: Vec<Segment>,
}

impl History {
    pub(crate) fn new() -> History {
        History {
            pages: Pages::new(),
            more: vec![Vec::new()],
            free_more: Vec::new(),
            lists: Lists::new(),
            memo: Box::new([None; MEMO]),
            scratch: Vec::new(),
        }
    }

    /// Compares an access with what is remembered of its bytes, and remembers it.
    pub(crate) fn access(&mut self, at: Location, access: Record, judge: &mut impl Judge) {
        let place = self.pages.place(at.line);
        let line = self.pages[place];
        let covered = line.mask & !at.mask == 0;
        let alike = line.mask == at.mask || line.mask == 0 || (covered && access.is_plain_write());
        if line.more == 0 && alike {
            let hit = Location { mask: line.mask, ..at };
            let state = self.transition(line.first().state, access, hit, judge);
            self.pages[place].set_first(Segment { mask: at.mask, state });
        } else {
            self.access_segments(place, at, access, judge);
        }
    }

    /// The general case of [`History::access`]: segments that overlap the access partly are split.
    fn access_segments(&mut self, place: Place, at: Location, access: Record, judge: &mut impl Judge) {
        let mut before = std::mem::take(&mut self.scratch);
        self.take_segments(place, &mut before);
        let mut after = Vec::with_capacity(before.len() + 2);
        let mut rest = at.mask;
        for segment in &before {
            let hit = segment.mask & at.mask;
            rest &= !hit;
            if hit != segment.mask {
                join(&mut after, Segment { mask: segment.mask & !hit, state: segment.state });
            }
            if hit != 0 {
                let location = Location { mask: hit, ..at };
                let state = self.transition(segment.state, access, location, judge);
                join(&mut after, Segment { mask: hit, state });
            }
        }
        if rest != 0 {
            let location = Location { mask: 0, ..at };
            let state = self.transition(UNTOUCHED, access, location, judge);
            join(&mut after, Segment { mask: rest, state });
        }
        self.put_segments(place, &after);
        before.clear();
        self.scratch = before;
    }

    fn transition(&mut self, from: State, access: Record, at: Location, judge: &mut impl Judge) -> State {
        let slot = memo_slot(from, access);
        if let Some(known) = self.memo[slot]
            && known.from == from
            && known.access == access
        {
            return known.to;
        }
        let mut raced = false;
        if from.writer != Record::NO_WRITE && races(from.writer, access, judge) {
            raced = true;
            judge.race(from.writer, access, at);
        }
        let mut repeated = Vec::new();
        if self.may_conflict(from.list, access, judge) {
            for earlier in self.lists.iter(from.list) {
                if races(earlier, access, judge) {
                    raced = true;
                    if !judge.race(earlier, access, at) {
                        repeated.push(earlier);
                    }
                }
            }
        }
        let to = if access.is_plain_write() {
            State { writer: access, list: List::EMPTY }
        } else {
            let list = self.without(from.list, repeated, judge);
            State { writer: from.writer, list: self.remember(list, access, judge) }
        };
        // A race is reported for every location, so only race-free transitions are taken from memory.
        self.memo[slot] = (!raced).then_some(Transition { from, access, to });
        to
    }

    /// May something in the list race with `access`? Most often one look at the list is enough.
    fn may_conflict(&self, list: List, access: Record, judge: &impl Judge) -> bool {
        let common = self.lists.with_common_locks(list);
        self.lists.may_conflict(list, access)
            && !common.is_some_and(|earlier| excluded(earlier, access, judge))
    }

    /// The list without `records`, which are in the order of the list. Accesses that race again as others did
    /// before are forgotten: their bytes are known to be racy, and with many such on both sides the reports
    /// would grow as the square.
    fn without(&mut self, list: List, records: Vec<Record>, judge: &impl Judge) -> List {
        if records.is_empty() {
            return list;
        }
        let mut records = records.into_iter().peekable();
        let kept: Vec<Record> =
            self.lists.iter(list).filter(|record| records.next_if_eq(record).is_none()).collect();
        self.list_of(kept, judge)
    }

    /// The list with `access` in it, and without some that it covers.
    fn remember(&mut self, mut list: List, access: Record, judge: &mut impl Judge) -> List {
        while let Some((latest, older)) = self.lists.head(list) {
            if !covers(access, latest, judge) || !judge.precedes(latest.strand()) {
                break;
            }
            list = older;
        }
        let len = self.lists.len(list);
        if len >= 8 && len.is_power_of_two() {
            list = self.without_covered(list, access, judge);
        }
        self.cons(access, list, judge)
    }

    /// The list without those that `access` covers, and those that a later one in their bag covers.
    fn without_covered(&mut self, list: List, access: Record, judge: &mut impl Judge) -> List {
        let mut in_bags: Vec<(u32, Record)> = Vec::new();
        let mut kept: Vec<Record> = Vec::new();
        for earlier in self.lists.iter(list) {
            if covers(access, earlier, judge) && judge.precedes(earlier.strand()) {
                continue;
            }
            if let Some(bag) = judge.bag(earlier.strand()) {
                if in_bags.iter().any(|&(other, later)| other == bag && covers(later, earlier, judge)) {
                    continue;
                }
                in_bags.push((bag, earlier));
            }
            kept.push(earlier);
        }
        if kept.len() as u32 == self.lists.len(list) {
            return list;
        }
        self.list_of(kept, judge)
    }

    fn list_of(&mut self, records: Vec<Record>, judge: &impl Judge) -> List {
        records.into_iter().rev().fold(List::EMPTY, |list, record| self.cons(record, list, judge))
    }

    fn cons(&mut self, record: Record, list: List, judge: &impl Judge) -> List {
        let same_locks = self.lists.head(list).is_some_and(|(next, _)| same_locks(record, next, judge));
        self.lists.cons(record, list, same_locks)
    }

    /// The bytes become other memory.
    pub(crate) fn erase(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let (first, last) = (bytes.start() / PAGE_BYTES, (bytes.end() - 1) / PAGE_BYTES);
        if first == last {
            return self.erase_in_page(first, bytes);
        }
        for number in self.pages.between(first, last) {
            self.erase_in_page(number, bytes);
        }
    }

    fn erase_in_page(&mut self, number: u64, bytes: Bytes) {
        let Some(page) = self.pages.find(number) else { return };
        let start = bytes.start().max(number * PAGE_BYTES);
        let end = bytes.end().min((number * PAGE_BYTES).saturating_add(PAGE_BYTES));
        let Ok(part) = Bytes::new(start, end - start) else { return };
        for (line, mask) in part.lines() {
            let place = Place::new(page, line);
            let line = &mut self.pages[place];
            if line.mask & !mask == 0 && line.more == 0 {
                *line = EMPTY_LINE;
            } else {
                self.erase_in_line(place, mask);
            }
        }
        if part.len() == PAGE_BYTES {
            self.pages.remove(number);
        }
    }

    fn erase_in_line(&mut self, place: Place, mask: u64) {
        let mut segments = std::mem::take(&mut self.scratch);
        self.take_segments(place, &mut segments);
        for segment in &mut segments {
            segment.mask &= !mask;
        }
        segments.retain(|segment| segment.mask != 0);
        self.put_segments(place, &segments);
        segments.clear();
        self.scratch = segments;
    }

    /// Everything so far precedes everything to come.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.more.truncate(1);
        self.free_more.clear();
        self.lists.clear();
        self.memo.fill(None);
    }

    /// To be called between strands: drops what no line remembers any more.
    pub(crate) fn tidy(&mut self) {
        if !self.lists.wants_collection() {
            return;
        }
        let (pages, more) = (&mut self.pages, &mut self.more);
        self.lists.collect(|visit| {
            for line in pages.lines_mut() {
                visit(&mut line.list);
            }
            for segment in more.iter_mut().flatten() {
                visit(&mut segment.state.list);
            }
        });
        self.memo.fill(None);
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.pages.memory()
            + self.more.iter().map(|segments| segments.capacity() * size_of::<Segment>()).sum::<usize>()
            + self.lists.memory()
    }

    // ---- segments ----------------------------------------------------------------------------

    /// Moves the segments of a line into `into`; the line is empty afterwards.
    fn take_segments(&mut self, place: Place, into: &mut Vec<Segment>) {
        let line = std::mem::replace(&mut self.pages[place], EMPTY_LINE);
        if line.mask != 0 {
            into.push(line.first());
        }
        if line.more != 0 {
            into.append(&mut self.more[line.more as usize]);
            self.free_more.push(line.more);
        }
    }

    fn put_segments(&mut self, place: Place, segments: &[Segment]) {
        let Some((&first, rest)) = segments.split_first() else { return };
        let more = if rest.is_empty() {
            0
        } else {
            let at = self.free_more.pop().unwrap_or_else(|| {
                self.more.push(Vec::new());
                self.more.len() as u32 - 1
            });
            self.more[at as usize].extend_from_slice(rest);
            at
        };
        let line = &mut self.pages[place];
        line.set_first(first);
        line.more = more;
    }
}

/// Do locks keep the two apart?
#[inline]
fn excluded(a: Record, b: Record, judge: &impl Judge) -> bool {
    a.is_locked() && b.is_locked() && judge.exclude(a.strand(), b.strand())
}

/// Does `access` race with an earlier one?
#[inline]
fn races(earlier: Record, access: Record, judge: &mut impl Judge) -> bool {
    earlier.conflicts(access) && !excluded(earlier, access, judge) && !judge.precedes(earlier.strand())
}

/// Does whatever conflicts with `earlier` conflict with `later` too?
#[inline]
fn covers(later: Record, earlier: Record, judge: &impl Judge) -> bool {
    later.covers(earlier) && (!later.is_locked() || judge.excludes_no_more(later.strand(), earlier.strand()))
}

/// Do the locks of the two exclude the same?
#[inline]
fn same_locks(a: Record, b: Record, judge: &impl Judge) -> bool {
    match (a.is_locked(), b.is_locked()) {
        (true, true) => {
            judge.excludes_no_more(a.strand(), b.strand()) && judge.excludes_no_more(b.strand(), a.strand())
        }
        (a, b) => a == b,
    }
}

/// Adds a segment, to one of the same state if there is one.
fn join(segments: &mut Vec<Segment>, new: Segment) {
    match segments.iter_mut().find(|segment| segment.state == new.state) {
        Some(segment) => segment.mask |= new.mask,
        None => segments.push(new),
    }
}

fn memo_slot(from: State, access: Record) -> usize {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    (from.writer, from.list, access).hash(&mut hasher);
    (hasher.finish() >> 58) as usize
}
