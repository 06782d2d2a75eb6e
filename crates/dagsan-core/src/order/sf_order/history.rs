//! An access history that several threads use at a time, each with the access sets of the strands that it runs.
//!
//! Memory is cut by page into shards, each with a lock. A strand's set is delivered when the strand has ended and before what follows
//! it begins, so that of two strands that are in order the first is delivered first: a remembered access precedes the new one, or races
//! with it. A strand that touches the same bytes again and again comes here once.
//!
//! ```text
//!   line of 64 bytes ──► segments: a mask of bytes that were treated alike, who wrote them last, who has read them since
//! ```
//!
//! **Which readers are kept.** A new reader takes the place of those that precede it: whatever comes later and is parallel to one of
//! them is parallel to the new one. A write takes the place of all, since they precede it, or their bytes are racy. So the
//! racy bytes are those of all pairs, whatever the order of delivery; which two accesses are found depends on it. The paper bounds
//! readers by two per future; as in its implementation, that bound is not made use of here.
//!
//! What it does not do: erase memory that comes back as something else, locks, atomics, sites.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::reachability::{At, Here, Reachability};
use crate::access::{AccessKind, Run};
use crate::bytes::LINE_BYTES;

/// Enough for threads not to meet often.
const SHARDS: usize = 256;
/// Lines of a page, which is in one shard.
const PAGE_LINES: u64 = 64;

/// See the module's documentation.
#[derive(Debug)]
pub struct SharedHistory {
    shards: Box<[Mutex<Shard>]>,
}

/// Pages by number, and their lines.
type Shard = FxHashMap<u64, Box<Page>>;
type Page = [Line; PAGE_LINES as usize];

#[derive(Debug)]
struct Line {
    /// Disjoint.
    segments: Vec<Segment>,
    racy: u64,
}

#[derive(Debug, Clone)]
struct Segment {
    mask: u64,
    writer: Option<At>,
    readers: Vec<At>,
}

impl Default for SharedHistory {
    fn default() -> SharedHistory {
        SharedHistory::new()
    }
}

impl SharedHistory {
    /// Of no accesses.
    pub fn new() -> SharedHistory {
        SharedHistory { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    fn shard(&self, number: usize) -> MutexGuard<'_, Shard> {
        self.shards[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares what the present strand of a task has done with what is remembered, and remembers it.
    pub fn deliver(&self, order: &Reachability, now: &Here, runs: impl IntoIterator<Item = Run>) {
        let question = Question { order, now, last: Cell::new((now.strand(), true)) };
        let mut runs = runs.into_iter().peekable();
        while let Some(run) = runs.next() {
            // Runs come line by line: one lock, and one look, are good for a page.
            let number = run.at.line / PAGE_LINES;
            let mut shard = self.shard(number as usize % SHARDS);
            let page =
                shard.entry(number).or_insert_with(|| Box::new([const { Line::EMPTY }; PAGE_LINES as usize]));
            let mut next = Some(run);
            while let Some(run) = next {
                page[(run.at.line % PAGE_LINES) as usize].access(&question, run.at.mask, run.kind);
                next = runs.next_if(|run| run.at.line / PAGE_LINES == number);
            }
        }
    }

    /// Every address with a race on it.
    pub fn racy_bytes(&self) -> BTreeSet<u64> {
        let mut addresses = BTreeSet::new();
        for shard in 0..SHARDS {
            for (page, lines) in self.shard(shard).iter() {
                for (line, Line { racy, .. }) in (page * PAGE_LINES..).zip(lines.iter()) {
                    let bytes = (0..LINE_BYTES).filter(|byte| racy >> byte & 1 == 1);
                    addresses.extend(bytes.map(|byte| line * LINE_BYTES + byte));
                }
            }
        }
        addresses
    }
}

/// Who precedes the present strand? Neighbouring bytes were touched by the same strands, as a rule: the last answer is kept.
struct Question<'a> {
    order: &'a Reachability,
    now: &'a Here,
    last: Cell<(At, bool)>,
}

impl Question<'_> {
    fn precedes(&self, strand: At) -> bool {
        let (asked, answer) = self.last.get();
        if asked == strand {
            return answer;
        }
        let answer = self.order.precedes(strand, self.now);
        self.last.set((strand, answer));
        answer
    }
}

impl Line {
    const EMPTY: Line = Line { segments: Vec::new(), racy: 0 };

    fn access(&mut self, question: &Question<'_>, mask: u64, kind: AccessKind) {
        let mut rest = mask;
        for at in 0..self.segments.len() {
            let common = self.segments[at].mask & mask;
            if common == 0 {
                continue;
            }
            rest &= !common;
            if common != self.segments[at].mask {
                // The bytes that are not touched stay as they are, in a segment of their own.
                let mut untouched = self.segments[at].clone();
                untouched.mask &= !common;
                self.segments.push(untouched);
                self.segments[at].mask = common;
            }
            if self.segments[at].access(question, kind) {
                self.racy |= common;
            }
        }
        if rest != 0 {
            let mut segment = Segment { mask: rest, writer: None, readers: Vec::new() };
            segment.remember(question.now.strand(), kind);
            self.segments.push(segment);
        }
    }
}

impl Segment {
    /// A strand touches all bytes of the segment. Does it race with one that did before?
    fn access(&mut self, question: &Question<'_>, kind: AccessKind) -> bool {
        let mut races = self.writer.is_some_and(|writer| !question.precedes(writer));
        match kind {
            AccessKind::Read => self.readers.retain(|&reader| !question.precedes(reader)),
            AccessKind::Write => races |= self.readers.iter().any(|&reader| !question.precedes(reader)),
        }
        self.remember(question.now.strand(), kind);
        races
    }

    fn remember(&mut self, strand: At, kind: AccessKind) {
        match kind {
            AccessKind::Read => self.readers.push(strand),
            AccessKind::Write => {
                self.writer = Some(strand);
                self.readers.clear();
            }
        }
    }
}
