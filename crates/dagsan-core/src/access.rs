//! The access set of a strand: which bytes it read, which it wrote, and from which site.
//!
//! All accesses of a strand have the same order against every other strand, so nothing is checked
//! while it runs. The set remembers, for every byte, the first read and the first write; what the
//! strand does again to the same byte costs one test of two masks. This is DRDP's redundant-check
//! elimination (paper 000, section 4.4.2) without a compiler.
//!
//! ```text
//!   index (open addressing)      lines (in order of first touch)         runs
//!   ┌───────┬──────┐             ┌────────┬──────┬───────┬───────┐       ┌──────┬──────┬──────┬──────┐
//!   │ epoch │ line ├────────────►│ number │ read │ write │ first ├──────►│ mask │ site │ kind │ next │
//!   └───────┴──────┘             └────────┴──────┴───────┴───────┘       └──────┴──────┴──────┴──────┘
//!   a slot of an older epoch     masks of the bytes read, written        the bytes that one site set
//!   is empty: clearing is O(1)
//! ```
//!
//! A strand's write covers its reads: a byte both read and written is delivered as written only. The set is for
//! plain accesses; a front end that has atomic ones delivers runs of its own ([`crate::Stream::runs`]).

use crate::bytes::{Bytes, Location};
use crate::ids::SiteId;

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// A read.
    Read,
    /// A write.
    Write,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Line {
    number: u64,
    read: u64,
    write: u64,
    /// Its first and last run.
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct RunNode {
    mask: u64,
    site: SiteId,
    kind: AccessKind,
    next: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    epoch: u32,
    line: u32,
}

/// The accesses of one strand. Cleared and used again for the next.
#[derive(Debug, Clone)]
pub struct AccessSet {
    index: Vec<Slot>,
    epoch: u32,
    lines: Vec<Line>,
    runs: Vec<RunNode>,
    /// How many of the lines have a byte read or written; the others were taken.
    touched: usize,
}

impl Default for AccessSet {
    fn default() -> AccessSet {
        AccessSet {
            index: vec![Slot::default(); 64],
            epoch: 1,
            lines: Vec::new(),
            runs: Vec::new(),
            touched: 0,
        }
    }
}

impl AccessSet {
    /// An empty set.
    pub fn new() -> AccessSet {
        AccessSet::default()
    }

    /// Nothing recorded?
    pub fn is_empty(&self) -> bool {
        self.touched == 0
    }

    /// Forgets everything, in constant time, and keeps the memory.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.runs.clear();
        self.touched = 0;
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.index.fill(Slot::default());
            self.epoch = 1;
        }
    }

    /// Records an access to `bytes` from `site`.
    #[inline]
    pub fn record(&mut self, bytes: Bytes, kind: AccessKind, site: SiteId) {
        for (line, mask) in bytes.lines() {
            self.record_at(Location { line, mask }, kind, site);
        }
    }

    /// Records an access to bytes of one line.
    #[inline]
    pub fn record_at(&mut self, at: Location, kind: AccessKind, site: SiteId) {
        let Location { line: number, mask } = at;
        let at = match self.lines.last() {
            Some(line) if line.number == number => self.lines.len() - 1,
            _ => self.find_or_insert(number),
        };
        let line = &mut self.lines[at];
        let new = match kind {
            AccessKind::Read => mask & !(line.read | line.write),
            AccessKind::Write => mask & !line.write,
        };
        if new == 0 {
            return;
        }
        if line.read | line.write == 0 {
            self.touched += 1;
        }
        match kind {
            AccessKind::Read => line.read |= new,
            AccessKind::Write => line.write |= new,
        }
        let run = self.runs.len() as u32;
        self.runs.push(RunNode { mask: new, site, kind, next: NONE });
        match self.runs.get_mut(line.last as usize) {
            Some(last) => last.next = run,
            None => line.first = run,
        }
        line.last = run;
    }

    fn find_or_insert(&mut self, number: u64) -> usize {
        if self.lines.len() * 2 >= self.index.len() {
            self.grow();
        }
        let mut at = self.home(number);
        loop {
            let slot = self.index[at];
            if slot.epoch != self.epoch {
                self.index[at] = Slot { epoch: self.epoch, line: self.lines.len() as u32 };
                self.lines.push(Line { number, read: 0, write: 0, first: NONE, last: NONE });
                return self.lines.len() - 1;
            }
            if self.lines[slot.line as usize].number == number {
                return slot.line as usize;
            }
            at = (at + 1) & (self.index.len() - 1);
        }
    }

    /// Fibonacci hashing: neighbouring lines land far apart, and one multiplication is enough.
    #[inline]
    fn home(&self, number: u64) -> usize {
        let bits = self.index.len().trailing_zeros();
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    #[cold]
    fn grow(&mut self) {
        self.index = vec![Slot::default(); self.index.len() * 2];
        self.epoch = 1;
        for line in 0..self.lines.len() {
            let mut at = self.home(self.lines[line].number);
            while self.index[at].epoch == self.epoch {
                at = (at + 1) & (self.index.len() - 1);
            }
            self.index[at] = Slot { epoch: self.epoch, line: line as u32 };
        }
    }

    /// The runs of the set: for every line, the bytes that one site was the first to read or write.
    /// Of a line they come in the order in which they were recorded. No byte appears
    /// twice: one both read and written appears as written.
    #[inline]
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        self.lines.iter().flat_map(move |line| {
            let mut next = line.first;
            std::iter::from_fn(move || {
                loop {
                    let node = *self.runs.get(next as usize)?;
                    next = node.next;
                    let mask = match node.kind {
                        AccessKind::Read => node.mask & !line.write,
                        AccessKind::Write => node.mask,
                    };
                    if mask != 0 {
                        let at = Location { line: line.number, mask };
                        return Some(Run { at, kind: node.kind, site: node.site, atomic: false });
                    }
                }
            })
        })
    }

    /// Moves what the set says about `bytes` into `into`, which is cleared first. For memory that is
    /// freed while the strand runs on: the block's accesses are delivered at once, then forgotten.
    pub fn take(&mut self, bytes: Bytes, into: &mut AccessSet) {
        into.clear();
        if self.is_empty() {
            return;
        }
        // Walk the smaller of the two: the lines of the range or the lines of the set.
        if bytes.len() / crate::bytes::LINE_BYTES > self.lines.len() as u64 {
            for at in 0..self.lines.len() {
                let number = self.lines[at].number;
                if let Some(mask) = bytes.within(number) {
                    self.take_line(at, mask, into);
                }
            }
        } else {
            for (number, mask) in bytes.lines() {
                if let Some(at) = self.find(number) {
                    self.take_line(at, mask, into);
                }
            }
        }
    }

    fn find(&self, number: u64) -> Option<usize> {
        let mut at = self.home(number);
        while self.index[at].epoch == self.epoch {
            let line = self.index[at].line as usize;
            if self.lines[line].number == number {
                return Some(line);
            }
            at = (at + 1) & (self.index.len() - 1);
        }
        None
    }

    fn take_line(&mut self, at: usize, mask: u64, into: &mut AccessSet) {
        let line = &mut self.lines[at];
        let before = line.read | line.write;
        line.read &= !mask;
        line.write &= !mask;
        if before != 0 && line.read | line.write == 0 {
            self.touched -= 1;
        }
        let mut next = line.first;
        while let Some(node) = self.runs.get_mut(next as usize) {
            if node.mask & mask != 0 {
                let at = Location { line: line.number, mask: node.mask & mask };
                into.record_at(at, node.kind, node.site);
                node.mask &= !mask;
            }
            next = node.next;
        }
    }

    /// Bytes of memory the set holds on to.
    pub fn memory(&self) -> usize {
        self.index.capacity() * size_of::<Slot>()
            + self.lines.capacity() * size_of::<Line>()
            + self.runs.capacity() * size_of::<RunNode>()
    }
}

/// Bytes of one line that one site of the strand read or wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Which bytes.
    pub at: Location,
    /// Read or write.
    pub kind: AccessKind,
    /// From where.
    pub site: SiteId,
    /// Is it an atomic access? Two of these never race with each other.
    pub atomic: bool,
}

/// The same run in one line after the other: what code that walks through memory leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// In the first line.
    pub first: Run,
    /// In so many lines more.
    pub more: u32,
}

impl Span {
    /// The runs, line by line.
    pub fn runs(self) -> impl Iterator<Item = Run> {
        let Span { first, more } = self;
        (0..=u64::from(more)).map(move |after| {
            let at = Location { line: first.at.line + after, ..first.at };
            Run { at, ..first }
        })
    }
}

/// The runs of all spans, for who has no use for spans.
pub(crate) fn runs_of(spans: &[Span]) -> Vec<Run> {
    spans.iter().flat_map(|span| span.runs()).collect()
}

impl From<Run> for Span {
    #[inline]
    fn from(first: Run) -> Span {
        Span { first, more: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::AccessKind::{Read, Write};
    use super::*;
    use std::collections::BTreeMap;

    fn site(number: u32) -> SiteId {
        SiteId::new(number).unwrap()
    }

    fn bytes(start: u64, len: u64) -> Bytes {
        Bytes::new(start, len).unwrap()
    }

    /// What the set says of every byte.
    fn by_byte(set: &AccessSet) -> BTreeMap<u64, (AccessKind, u32)> {
        let mut map = BTreeMap::new();
        for run in set.runs() {
            for address in run.at.addresses() {
                let before = map.insert(address, (run.kind, run.site.number()));
                assert_eq!(before, None, "byte {address} delivered twice");
            }
        }
        map
    }

    #[test]
    fn a_write_covers_reads_before_and_after_it() {
        let mut set = AccessSet::new();
        set.record(bytes(0, 8), Read, site(1));
        set.record(bytes(4, 8), Write, site(2));
        set.record(bytes(8, 8), Read, site(3));
        let map = by_byte(&set);
        assert_eq!(map[&0], (Read, 1));
        assert_eq!(map[&4], (Write, 2));
        assert_eq!(map[&11], (Write, 2));
        assert_eq!(map[&12], (Read, 3));
        assert_eq!(map.len(), 16);
    }

    #[test]
    fn the_first_site_of_a_byte_is_kept() {
        let mut set = AccessSet::new();
        set.record(bytes(60, 8), Write, site(1));
        set.record(bytes(56, 16), Write, site(2));
        let map = by_byte(&set);
        assert_eq!((map[&59].1, map[&60].1, map[&67].1, map[&68].1), (2, 1, 1, 2));
    }

    #[test]
    fn clearing_and_growing_keep_the_set_right() {
        let mut set = AccessSet::new();
        for round in 0..3u64 {
            set.clear();
            assert!(set.is_empty());
            for line in 0..500u64 {
                set.record(bytes(line * 64 * 64, 1), Read, site(round as u32));
            }
            let map = by_byte(&set);
            assert_eq!(map.len(), 500);
            assert!(map.values().all(|&(_, s)| s == round as u32));
        }
    }

    #[test]
    fn a_set_is_empty_once_all_was_taken() {
        let (mut set, mut taken) = (AccessSet::new(), AccessSet::new());
        set.record(bytes(60, 8), Write, site(1));
        set.take(bytes(56, 6), &mut taken);
        assert!(!set.is_empty() && !taken.is_empty());
        set.take(bytes(62, 100), &mut taken);
        assert!(set.is_empty() && !taken.is_empty());
        set.take(bytes(0, 1000), &mut taken);
        assert!(taken.is_empty());
    }

    #[test]
    fn taking_a_range_leaves_the_rest() {
        for len in [20, 100_000] {
            let mut set = AccessSet::new();
            let mut taken = AccessSet::new();
            set.record(bytes(0, 32), Read, site(1));
            set.record(bytes(100, 8), Write, site(2));
            set.take(bytes(10, len), &mut taken);
            assert_eq!(by_byte(&set).len() + by_byte(&taken).len(), 40);
            assert_eq!(by_byte(&set).contains_key(&101), len == 20);
            assert!(!by_byte(&set).contains_key(&10));
            assert!(!set.is_empty(), "bytes before the range are left");
            set.record(bytes(10, 1), Read, site(3));
            assert_eq!(by_byte(&set)[&10], (Read, 3), "a taken byte is new again");
        }
    }
}
