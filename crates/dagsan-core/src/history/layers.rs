//! Lines in words (`words`): one question for all that is remembered of a line.
//!
//! Divide and conquer touches the same memory on each level, whole lines at a time, and writes elements here and there. What is remembered
//! of a line then is of several strands; but each level follows the one before. So a line in words may have a *cover*: an access by a
//! strand `c` such that all that the block remembers precedes `c`, or is `c`'s. If `c` precedes the strand `t` of a new access, so does all of that: a path from
//! it to `c`, and one from `c` to `t`, are a path. Nothing races, and no word need be looked at.
//!
//! Above the block there may be a *layer*: bytes that `c` has read. What `t` reads then takes its place in one store, however many states are below.
//!
//! ```text
//!   line    mask    bytes that c has read, and that is not in the block yet          state   c's access, or untouched: no cover
//!   block   what is remembered besides: a state for each word
//! ```
//!
//! - What `t` reads becomes the layer, what it writes goes into the block, and `t`'s access is the cover. Where the layer has been read or
//!   written by `t` it is dropped, as a reader is that precedes the new one (`transitions`); elsewhere it goes down into the block first.
//! - Where `c` does not precede `t`, or an access is atomic or holds locks, the layer goes down, the line has no cover, and word by word
//!   what is there makes its transition.
//! - A line gets a cover when all that was touched of it is touched by one strand which all of it precedes.
//!
//! Bytes that are a part of a word make the line one of segments again.

use super::record::Record;
use super::states::StateId;
use super::words::{Block, bytes_of, words_of};
use super::{History, Judge, Line, More};
use crate::bytes::Location;
use crate::ids::StrandId;
use crate::pages::Place;

/// One or two accesses of a strand to a line.
#[derive(Clone, Copy)]
pub(super) struct Accesses {
    pub(super) at: Location,
    pub(super) first: Record,
    pub(super) then: Option<(u64, Record)>,
}

impl Accesses {
    /// What is read and what is written, and by which accesses, if they are plain and there is no byte that is both.
    #[inline]
    fn parted(&self) -> Option<[(u64, Record); 2]> {
        let first = (self.at.mask, self.first);
        let second = self.then.unwrap_or((0, self.first));
        if !first.1.is_plain() || !second.1.is_plain() || first.0 & second.0 != 0 {
            return None;
        }
        match (first.1.is_write(), second.1.is_write()) {
            (false, true) => Some([first, second]),
            (true, false) => Some([second, first]),
            (false, false) if second.0 == 0 => Some([first, second]),
            (true, true) if second.0 == 0 => Some([second, first]),
            _ => None,
        }
    }

    fn last(&self) -> Record {
        self.then.map_or(self.first, |(_, access)| access)
    }

    fn mask(&self) -> u64 {
        self.at.mask | self.then.map_or(0, |(mask, _)| mask)
    }
}

impl History {
    /// Takes in accesses to a line that is in words. Returns whether it could: they may have a part of a word, and then nothing was done.
    #[inline]
    pub(super) fn access_words(
        &mut self,
        place: Place,
        block: Block,
        accesses: Accesses,
        judge: &mut impl Judge,
    ) -> bool {
        let Line { state: cover, .. } = self.pages[place];
        if cover != StateId::UNTOUCHED
            && let Some([read, written]) = accesses.parted()
            && self.covered(cover, accesses.first.strand(), judge)
        {
            self.access_covered(place, block, accesses.at, read, written, judge)
        } else {
            self.access_each(place, block, accesses, judge)
        }
    }

    /// Does the cover of a line precede the strand that is now?
    #[inline]
    fn covered(&mut self, cover: StateId, now: StrandId, judge: &mut impl Judge) -> bool {
        match self.asked {
            Some((asked, then, answer)) if asked == cover && then == now => answer,
            _ => {
                let answer = judge.surely_precedes(self.transitions.latest(cover).strand());
                self.asked = Some((cover, now, answer));
                answer
            }
        }
    }

    /// Accesses that all follow the cover.
    fn access_covered(
        &mut self,
        place: Place,
        block: Block,
        at: Location,
        (read, reader): (u64, Record),
        (written, writer): (u64, Record),
        judge: &mut impl Judge,
    ) -> bool {
        let stays = self.pages[place].mask & !(read | written);
        let (Some(stays), Some(words)) = (words_of(stays), words_of(written)) else { return false };
        self.push_down(place, block, stays);
        let mut state_of =
            |access| self.transitions.step(StateId::UNTOUCHED, access, Location { mask: 0, ..at }, judge);
        let line = &mut self.pages[place];
        if words != 0 {
            let state = state_of(writer);
            if words == u16::MAX {
                *line = Line { mask: written, state, more: More::NOTHING };
                self.blocks.release(block);
                return true;
            }
            self.blocks.get_mut(block).set(words, state);
            line.state = state;
        }
        if read != 0 {
            line.state = state_of(reader);
        }
        line.mask = read;
        true
    }

    /// Accesses of whole words, whatever is in them.
    fn access_each(
        &mut self,
        place: Place,
        block: Block,
        accesses: Accesses,
        judge: &mut impl Judge,
    ) -> bool {
        let (then, second) = accesses.then.unwrap_or((0, accesses.first));
        let words = [self.pages[place].mask, accesses.at.mask, then].map(words_of);
        let [Some(layer), Some(first), Some(then)] = words else { return false };
        self.push_down(place, block, layer);
        for (mut rest, access) in [(first, accesses.first), (then, second)] {
            while let Some((words, state)) = self.blocks.get(block).first_of(rest) {
                let mask = if state == StateId::UNTOUCHED { 0 } else { bytes_of(words) };
                let state = self.transitions.step(state, access, Location { mask, ..accesses.at }, judge);
                self.blocks.get_mut(block).set(words, state);
                rest &= !words;
            }
        }
        self.settle(place, block, &accesses, judge);
        true
    }

    /// After accesses to a line in words: is it alike by now, or has it a cover?
    pub(super) fn settle(&mut self, place: Place, block: Block, accesses: &Accesses, judge: &mut impl Judge) {
        let line = &mut self.pages[place];
        (line.mask, line.state) = (0, StateId::UNTOUCHED);
        let words = self.blocks.get(block);
        let touched = words.touched();
        if let Some((all, state)) = words.first_of(touched)
            && all == touched
        {
            *line = Line { mask: bytes_of(touched), state, more: More::NOTHING };
            return self.blocks.release(block);
        }
        let is_cover = bytes_of(touched) & !accesses.mask() == 0
            && accesses.parted().is_some()
            && words.segments().all(|(_, state)| self.transitions.all_precede(state, judge));
        if is_cover {
            let nowhere = Location { mask: 0, ..accesses.at };
            line.state = self.transitions.step(StateId::UNTOUCHED, accesses.last(), nowhere, judge);
        }
    }

    /// These words of the layer go into the block.
    #[inline]
    fn push_down(&mut self, place: Place, block: Block, mut rest: u16) {
        if rest == 0 {
            return;
        }
        let cover = self.pages[place].state;
        while let Some((words, state)) = self.blocks.get(block).first_of(rest) {
            let state = self.transitions.under(state, cover);
            self.blocks.get_mut(block).set(words, state);
            rest &= !words;
        }
    }

    /// Copies a line that is in words into `split`, as segments.
    pub(super) fn load_words(&mut self, place: Place, block: Block) {
        let Line { mask: mut layer, state: cover, .. } = self.pages[place];
        for (words, state) in self.blocks.get(block).segments() {
            self.split.add(bytes_of(words), state);
        }
        for number in 0..self.split.len() {
            let hit = self.split.mask(number) & layer;
            if hit != 0 {
                layer &= !hit;
                let state = self.transitions.under(self.split.state(number), cover);
                self.split.change(number, hit, state);
            }
        }
        if layer != 0 {
            self.split.add(layer, cover);
        }
        self.split.tidy();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::access::{AccessKind, Run};
    use crate::bytes::Bytes;
    use crate::ids::{SiteId, TaskId};

    /// A graph of strands: of each, which others precede it, a bit each.
    struct Graph {
        before: Vec<u64>,
        now: usize,
        racy: BTreeSet<u64>,
    }

    impl Judge for Graph {
        fn precedes(&mut self, strand: StrandId) -> bool {
            strand.0 as usize == self.now || self.before[self.now] >> strand.0 & 1 == 1
        }

        fn surely_precedes(&mut self, strand: StrandId) -> bool {
            self.precedes(strand)
        }

        fn task(&self, strand: StrandId) -> TaskId {
            TaskId(strand.0)
        }

        fn stands_in(&self, _: StrandId) -> bool {
            false
        }

        fn bag(&mut self, _: StrandId) -> Option<u32> {
            None
        }

        fn exclude(&self, _: StrandId, _: StrandId) -> bool {
            false
        }

        fn excludes_no_more(&self, _: StrandId, _: StrandId) -> bool {
            true
        }

        fn meet(&mut self, _: Record, _: Record) {}

        fn race(&mut self, _: Record, _: Record, at: Location) -> bool {
            self.racy.extend(at.addresses());
            true
        }
    }

    struct Random(u64);

    impl Random {
        fn bits(&mut self) -> u64 {
            let half = |state: &mut u64| {
                *state =
                    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *state >> 32
            };
            half(&mut self.0) << 32 | half(&mut self.0)
        }

        fn below(&mut self, end: usize) -> usize {
            (self.bits() >> 32) as usize % end
        }

        fn words(&mut self) -> u64 {
            bytes_of((self.bits() >> 32) as u16)
        }
    }

    fn record(strand: usize, kind: AccessKind) -> Record {
        let (at, site) = (Location { line: 0, mask: 1 }, SiteId::new(1).unwrap());
        Record::new(StrandId(strand as u32), &Run { at, kind, site, atomic: false }, false)
    }

    /// Strands that follow most of the others touch whole lines, or words, now and then some bytes. Every byte against every other access.
    #[test]
    fn lines_in_words_race_as_their_bytes_do() {
        let (mut covered, mut racy) = (0, 0);
        for seed in 0..3000 {
            let mut random = Random(seed);
            let strands = 2 + random.below(38);
            let mut judge = Graph { before: Vec::new(), now: 0, racy: BTreeSet::new() };
            let mut history = History::new();
            let (mut all, mut expected) = (Vec::new(), BTreeSet::new());
            let order = [60, 90, 100][random.below(3)];
            for now in 0..strands {
                let direct: Vec<usize> = (0..now).filter(|_| random.below(100) < order).collect();
                let before = direct.iter().fold(0, |all, &at| all | 1 << at | judge.before[at]);
                judge.before.push(before);
                judge.now = now;
                for _ in 0..1 + random.below(2) {
                    let written = match random.below(8) {
                        0 => 0,
                        1 => u64::MAX,
                        2 => random.bits(),
                        _ => random.words(),
                    };
                    let read = !written & [u64::MAX, u64::MAX, random.words(), 0][random.below(4)];
                    let mut sides = [(written, AccessKind::Write), (read, AccessKind::Read)];
                    if random.below(2) == 0 {
                        sides.reverse();
                    }
                    let [one, two] = sides.map(|(mask, kind)| (mask, record(now, kind)));
                    let at = Location { line: 7, mask: one.0 };
                    match (one.0, two.0) {
                        (0, 0) => continue,
                        (_, 0) => history.access(at, 0, one.1, &mut judge),
                        (0, mask) => history.access(Location { mask, ..at }, 0, two.1, &mut judge),
                        _ => history.access_twice(at, one.1, two, &mut judge),
                    }
                    for (mask, access) in [one, two] {
                        for &(other, earlier) in &all {
                            let earlier: Record = earlier;
                            if access.conflicts(earlier) && !judge.precedes(earlier.strand()) {
                                expected.extend(Location { line: 7, mask: mask & other }.addresses());
                            }
                        }
                        all.push((mask, access));
                    }
                }
                let touched = all.iter().fold(0, |bytes, &(mask, _)| bytes | mask);
                let whole = Location { line: 7, mask: !0 };
                assert_eq!(history.written(whole) | history.unwritten(whole), touched, "seed {seed}");
                assert_eq!(history.written(whole) & history.unwritten(whole), 0, "seed {seed}");
                let place = history.pages.place(7);
                let line = history.pages[place];
                covered += usize::from(line.more.block().is_some() && line.state != StateId::UNTOUCHED);
                if random.below(40) == 0 {
                    history.collect();
                }
                if random.below(60) == 0 {
                    let gone =
                        Bytes::new(7 * 64 + random.below(32) as u64, 1 + random.below(31) as u64).unwrap();
                    history.erase(gone);
                    let (_, gone) = gone.lines().next().unwrap();
                    all.iter_mut().for_each(|(mask, _)| *mask &= !gone);
                }
            }
            assert_eq!(judge.racy, expected, "seed {seed}");
            racy += usize::from(!expected.is_empty());
        }
        assert!(covered > 3000 && racy > 300, "{covered} {racy}");
    }
}
