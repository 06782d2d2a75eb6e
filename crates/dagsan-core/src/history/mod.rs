//! The access history: who touched these bytes last?
//!
//! A line of 64 bytes is a short list of *segments*: disjoint masks of bytes that were treated alike,
//! with the last writer and the accesses since. A line treated alike, the common case in array code, is
//! one segment, kept in place: 16 bytes.
//!
//! ```text
//!   page (4 KiB of memory): 64 lines
//!   ┌──────┬───────┬──────┐
//!   │ mask │ state │ more ├──► if the line was not treated alike: a state for each word (see `words`), or further segments (`segments`)
//!   └──────┴───┬───┴──────┘
//!      8     4 │      4 bytes
//!              └──► writer, list (see `states`)
//!                            └──► readers since the write (see `lists`)
//! ```
//!
//! A new access is compared with what its bytes' segments remember, and then remembered itself: see `transitions`.

mod layers;
mod lists;
mod record;
mod segments;
mod states;
mod transitions;
mod words;

pub(crate) use record::Record;

use crate::bytes::{Bytes, Location};
use crate::ids::{StrandId, TaskId};
use crate::pages::{PAGE_LINES, Pages, Place, prefetch};
use layers::Accesses;
use segments::{Chain, Segments, Split};
use states::StateId;
use transitions::Transitions;
use words::{Block, Blocks, Words, bytes_of, words_of};

/// What the history asks, and tells, while it takes in the accesses of a strand.
pub(crate) trait Judge {
    /// Does `strand` precede the strand of the accesses?
    fn precedes(&mut self, strand: StrandId) -> bool;

    /// The same, but may say no if it would take long to find out.
    fn surely_precedes(&mut self, strand: StrandId) -> bool;

    /// The task of a strand; its strands precede each other.
    fn task(&self, strand: StrandId) -> TaskId;

    /// `strand` does not precede the strand of the accesses; does it follow that whatever comes later and is parallel to
    /// the latter is parallel to `strand` too? See [`crate::stand_in`].
    fn stands_in(&self, strand: StrandId) -> bool;

    /// A bag of strands that will all have the same answers (see [`crate::order::Order::bag`]).
    fn bag(&mut self, strand: StrandId) -> Option<u32>;

    /// Do the locks that the two strands held keep them apart?
    fn exclude(&self, a: StrandId, b: StrandId) -> bool;

    /// Does whoever excludes `a` by locks exclude `b` too?
    fn excludes_no_more(&self, a: StrandId, b: StrandId) -> bool;

    /// Two atomic accesses to the same bytes, one of them a write, that no lock keeps apart. They do not race.
    fn meet(&mut self, first: Record, second: Record);

    /// The two are parallel and conflict. Returns whether that is news: no race of these sites on these bytes was
    /// reported.
    fn race(&mut self, first: Record, second: Record, location: Location) -> bool;
}

/// A line's first segment in place, and where the others are. Of a line in words the layer and the cover (see `layers`).
#[derive(Clone, Copy)]
struct Line {
    mask: u64,
    state: StateId,
    more: More,
}

/// Where the rest of a line is.
///
/// ```text
///   [ 1 | block : 31 bits ]    or  [ 0 | chain : 31 bits ]    or 0
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
struct More(u32);

const IN_WORDS: u32 = 1 << 31;

impl More {
    const NOTHING: More = More(0);

    #[inline]
    fn block(self) -> Option<Block> {
        (self.0 & IN_WORDS != 0).then_some(Block(self.0 & !IN_WORDS))
    }

    /// The further segments; none of a line in words.
    #[inline]
    fn chain(self) -> Chain {
        if self.0 & IN_WORDS != 0 { Chain::EMPTY } else { Chain(self.0) }
    }

    fn in_words(block: Block) -> More {
        More(IN_WORDS | block.0)
    }
}

const _: () = assert!(size_of::<Line>() == 16);

const EMPTY_LINE: Line = Line { mask: 0, state: StateId::UNTOUCHED, more: More::NOTHING };

impl Default for Line {
    fn default() -> Line {
        EMPTY_LINE
    }
}

const PAGE_BYTES: u64 = PAGE_LINES * crate::LINE_BYTES;

/// See the module's documentation.
pub(crate) struct History {
    pages: Pages<Line>,
    segments: Segments,
    blocks: Blocks,
    transitions: Transitions,
    /// Of a cover: did it precede that strand?
    asked: Option<(StateId, StrandId, bool)>,
    /// Room for the segments of a line.
    split: Box<Split>,
}

impl History {
    pub(crate) fn new() -> History {
        History {
            pages: Pages::new(),
            segments: Segments::new(),
            blocks: Blocks::default(),
            asked: None,
            transitions: Transitions::new(),
            split: Box::new(Split::EMPTY),
        }
    }

    /// There will soon be an access to `line`, and to so many `more`: they will be in the processor's cache then. It fetches the rest of
    /// many by itself.
    #[inline]
    pub(crate) fn expect(&self, line: u64, more: u32) {
        /// In one line of the cache.
        const TOGETHER: u32 = 64 / size_of::<Line>() as u32;
        const MOST: u32 = 32;
        if let Some(mut place) = self.pages.lookup(line) {
            let last = (place.slot + more.min(MOST)).min(PAGE_LINES as u32 - 1);
            place.slot -= place.slot % TOGETHER;
            while place.slot <= last {
                prefetch(&raw const self.pages[place]);
                place.slot += TOGETHER;
            }
        }
    }

    /// The same for what the line refers to, a while after [`History::expect`].
    #[inline]
    pub(crate) fn expect_segments(&self, line: u64) {
        if let Some(place) = self.pages.lookup(line) {
            let more = self.pages[place].more;
            if let Some(block) = more.block() {
                prefetch(self.blocks.get(block));
            } else if more != More::NOTHING {
                prefetch(self.segments.chunk(more.chain()));
            }
        }
    }

    /// There will soon be accesses to these lines, one by one: what is remembered of them will be in the processor's cache then, and `strand`
    /// is told whose accesses will be asked about. Each look waits for the one before it, so all lines go by the first before any goes by the
    /// second.
    pub(crate) fn expect_all(
        &self,
        lines: impl Iterator<Item = u64> + Clone,
        mut strand: impl FnMut(StrandId),
    ) {
        lines.clone().for_each(|line| self.expect(line, 0));
        lines.clone().for_each(|line| self.expect_segments(line));
        let lines = lines.filter_map(|line| self.pages.lookup(line)).map(|place| self.pages[place]);
        lines.clone().for_each(|line| self.transitions.expect(line.state));
        let in_words = |line: Line| line.more.block().map(|block| self.blocks.get(block).segments());
        let in_chain = |line: Line| self.segments.iter(line.more.chain()).map(|(_, state)| state);
        let others =
            |line: Line| in_words(line).into_iter().flatten().map(|(_, state)| state).chain(in_chain(line));
        let states = |line: Line| std::iter::once(line.state).chain(others(line));
        lines.clone().flat_map(others).for_each(|state| self.transitions.expect(state));
        lines.clone().flat_map(states).for_each(|state| self.transitions.expect_latest(state));
        lines.flat_map(states).for_each(|state| self.transitions.expect_older(state, &mut strand));
    }

    /// Compares an access with what is remembered of its bytes, and remembers it; then the same access to these
    /// bytes of the next lines, so many `more`.
    #[inline]
    pub(crate) fn access(&mut self, mut at: Location, more: u32, access: Record, judge: &mut impl Judge) {
        let end = at.line + u64::from(more) + 1;
        loop {
            let place = self.pages.place(at.line);
            let until = end.min((at.line / PAGE_LINES + 1) * PAGE_LINES);
            self.access_in_page(place, at, until, access, judge);
            if until == end {
                break;
            }
            at.line = until;
        }
    }

    /// The part of an access that lies in one page.
    #[inline]
    fn access_in_page(
        &mut self,
        mut place: Place,
        mut at: Location,
        until: u64,
        access: Record,
        judge: &mut impl Judge,
    ) {
        // Lines that follow each other were most often treated alike: the last transition may be the next one too.
        let mut last = None;
        loop {
            let line = &mut self.pages[place];
            let covered = line.mask & !at.mask == 0;
            let alike = line.mask == at.mask || line.mask == 0 || (covered && access.is_plain_write());
            if line.more == More::NOTHING && alike {
                let from = line.state;
                line.state = match last {
                    Some((known, to)) if known == from => to,
                    _ => {
                        let hit = Location { mask: line.mask, ..at };
                        let to = self.transitions.step(from, access, hit, judge);
                        last = self.transitions.knows(from, access).then_some((from, to));
                        to
                    }
                };
                line.mask = at.mask;
            } else {
                self.access_parts(place, Accesses { at, first: access, then: None }, judge);
            }
            at.line += 1;
            if at.line == until {
                break;
            }
            place.slot += 1;
        }
    }

    /// The same for two accesses of a strand to a line: `then` has the bytes of the second.
    #[inline]
    pub(crate) fn access_twice(
        &mut self,
        at: Location,
        access: Record,
        then: (u64, Record),
        judge: &mut impl Judge,
    ) {
        let place = self.pages.place(at.line);
        self.access_parts(place, Accesses { at, first: access, then: Some(then) }, judge);
    }

    /// The general case of [`History::access`]: what overlaps the access partly is split.
    fn access_parts(&mut self, place: Place, accesses: Accesses, judge: &mut impl Judge) {
        if let Some(block) = self.pages[place].more.block()
            && self.access_words(place, block, accesses, judge)
        {
            return;
        }
        self.load(place);
        self.access_split(accesses.at, accesses.first, judge);
        if let Some((mask, access)) = accesses.then {
            self.access_split(Location { mask, ..accesses.at }, access, judge);
        }
        self.store(place);
        if let Some(block) = self.pages[place].more.block() {
            self.settle(place, block, &accesses, judge);
        }
    }

    fn access_split(&mut self, at: Location, access: Record, judge: &mut impl Judge) {
        let (split, transitions) = (&mut *self.split, &mut self.transitions);
        let (count, mut rest) = (split.len(), at.mask);
        for number in 0..count {
            let hit = split.mask(number) & at.mask;
            if hit != 0 {
                rest &= !hit;
                let state =
                    transitions.step(split.state(number), access, Location { mask: hit, ..at }, judge);
                split.change(number, hit, state);
            }
        }
        if rest != 0 {
            let state = transitions.step(StateId::UNTOUCHED, access, Location { mask: 0, ..at }, judge);
            split.add(rest, state);
        }
        split.tidy();
    }

    /// Those of the bytes that were accessed, and have not been written by anybody who is remembered.
    #[inline]
    pub(crate) fn unwritten(&self, at: Location) -> u64 {
        self.bytes_that(at, |state| self.transitions.is_unwritten(state))[1]
    }

    /// Those of the bytes that were written by somebody who is remembered.
    #[inline]
    pub(crate) fn written(&self, at: Location) -> u64 {
        self.bytes_that(at, |state| self.transitions.is_unwritten(state))[0]
    }

    /// Those of the bytes that were accessed, and only atomically by all who are remembered.
    pub(crate) fn only_atomic(&self, at: Location) -> u64 {
        self.bytes_that(at, |state| self.transitions.is_only_atomic(state))[1]
    }

    /// Those of the bytes that somebody who is remembered has accessed, and not atomically.
    pub(crate) fn plain(&self, at: Location) -> u64 {
        self.bytes_that(at, |state| self.transitions.is_only_atomic(state))[0]
    }

    /// Those of the bytes that were accessed: of which something does not hold for all that is remembered, and of which it does. A line may have
    /// many segments, whose states are all over the memory: none is looked at in vain.
    #[inline]
    fn bytes_that(&self, at: Location, holds: impl Fn(StateId) -> bool) -> [u64; 2] {
        let mut sides = [0; 2];
        let Some(page) = self.pages.find(at.line / PAGE_LINES) else { return sides };
        let Line { mask, state, more } = self.pages[Place::new(page, at.line)];
        let mut put = |mask: u64, state| {
            if at.mask & mask != 0 {
                sides[usize::from(holds(state))] |= at.mask & mask;
            }
        };
        put(mask, state);
        if let Some(block) = more.block() {
            self.blocks.get(block).segments().for_each(|(words, state)| put(bytes_of(words), state));
            // What does not hold for one of the two layers does not hold.
            sides[1] &= !sides[0];
        } else {
            self.segments.iter(more.chain()).for_each(|(mask, state)| put(mask, state));
        }
        sides
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
            if line.mask & !mask == 0 && line.more == More::NOTHING {
                *line = EMPTY_LINE;
            } else if let Some(block) = line.more.block().filter(|_| mask == u64::MAX) {
                *line = EMPTY_LINE;
                self.blocks.release(block);
            } else {
                self.erase_in_line(place, mask);
            }
        }
        if part.len() == PAGE_BYTES {
            self.pages.remove(number);
        }
    }

    fn erase_in_line(&mut self, place: Place, mask: u64) {
        self.load(place);
        for number in 0..self.split.len() {
            self.split.remove(number, mask);
        }
        self.split.tidy();
        self.store(place);
    }

    /// Everything so far precedes everything to come.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.segments.clear();
        self.blocks.clear();
        self.transitions.clear();
        self.asked = None;
    }

    /// To be called between strands: drops what no line remembers any more.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        // All lines are looked at: that must not cost more than a few for each new state.
        if self.transitions.wants_collection(self.lines() / 4) {
            self.collect();
        }
    }

    #[cold]
    fn collect(&mut self) {
        let (pages, segments, blocks) = (&mut self.pages, &mut self.segments, &mut self.blocks);
        self.asked = None;
        self.transitions.collect(|visit| {
            pages.lines_mut().for_each(|line| visit(&mut line.state));
            segments.states_mut().for_each(&mut *visit);
            blocks.states_mut().for_each(&mut *visit);
        });
    }

    /// The strands that are remembered, sorted.
    pub(crate) fn strands(&mut self) -> Vec<StrandId> {
        self.collect();
        let mut strands: Vec<StrandId> = self.transitions.records().map(Record::strand).collect();
        strands.sort_unstable();
        strands.dedup();
        strands
    }

    /// What it costs to find out who is remembered, in lines to be looked at.
    #[inline]
    pub(crate) fn lines(&self) -> usize {
        self.pages.len() * PAGE_LINES as usize
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.pages.memory() + self.segments.memory() + self.blocks.memory() + self.transitions.memory()
    }

    /// Copies the segments of a line into `split`.
    #[inline]
    fn load(&mut self, place: Place) {
        let Line { mask, state, more } = self.pages[place];
        match more.block() {
            None => {
                self.split.start(mask, state);
                self.segments.load(more.chain(), &mut self.split);
            }
            Some(block) => {
                self.split.start(0, state);
                self.load_words(place, block);
            }
        }
    }

    /// Puts the segments in `split` in the place of a line's.
    #[inline]
    fn store(&mut self, place: Place) {
        let (line, split) = (&mut self.pages[place], &*self.split);
        let in_words = split.len() > 1 && split.masks().iter().all(|&mask| words_of(mask).is_some());
        let chain = line.more.chain();
        if in_words {
            let block = line.more.block().unwrap_or_else(|| self.blocks.new_block());
            let words = self.blocks.get_mut(block);
            *words = Words::UNTOUCHED;
            for (number, &mask) in split.masks().iter().enumerate() {
                words.set(words_of(mask).unwrap_or_default(), split.state(number));
            }
            *line = Line { more: More::in_words(block), ..EMPTY_LINE };
            self.segments.release(chain);
            return;
        }
        if let Some(block) = line.more.block() {
            self.blocks.release(block);
        }
        (line.mask, line.state) = match split.len() {
            0 => (0, StateId::UNTOUCHED),
            _ => (split.mask(0), split.state(0)),
        };
        line.more = More(self.segments.store(chain, split).0);
    }
}
