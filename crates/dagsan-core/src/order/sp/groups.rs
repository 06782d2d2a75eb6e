//! The upper level of the lists: groups of elements, each with a label that grows along its list.
//!
//! A new group takes a label between its neighbours'; if there is none, the labels around are spread
//! (Bender et al. 2002, "Two simplified algorithms for maintaining order in a list"): the smallest
//! enclosing range of labels, of a size 2^i, that holds few enough groups is numbered afresh, evenly.
//! That costs O(log n) labels per new group, and a new group comes once in dozens of insertions.
//!
//! ```text
//!   labels   ┌─────┬─────┬─────┬─────┬──  8 bytes per group: all that a query reads here, so that it stays
//!            │ E 0 │ H 0 │  2  │  3  │    in the cache. The groups of both orders lie in it as they come,
//!            └─────┴─────┴─────┴─────┴──  the first one of each at its start
//!   Group    next, prev, first element, size: 16 bytes for the one who inserts
//! ```

use std::sync::atomic::Ordering;

use super::chunks::{Chunks, Spot};
use super::seqlock::SeqLock;

/// Labels are below this.
const LABELS: u64 = 1 << 62;
/// The T of the paper. With 1.5, the label space takes (2/1.5)^62, 50 million groups or some two
/// billion elements, before spreading costs more; with less, it always does.
const OVERFLOW: f64 = 1.5;
/// After spreading, neighbours are at least this far apart, so that the next groups find room.
const MIN_GAP: u64 = 16;
/// New groups are no further than this behind the one before them: halfway to the next would be used up
/// by sixty groups one after the other.
const STEP: u64 = 1 << 40;

type LabelChunks = Chunks<1, 4>;

/// A group, by where its label is: `chunk << 27 | offset`. Elements know their group as this, so that
/// a query need not work out where the label is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupId(u32);

const OFFSET_BITS: u32 = 27;

impl GroupId {
    /// The neighbour of a list's end: there is no chunk 0.
    const NONE: GroupId = GroupId(0);

    /// The group with this index.
    pub(super) fn new(index: usize) -> GroupId {
        let number = u32::try_from(index).ok().filter(|&number| number < 1 << OFFSET_BITS);
        let Spot { chunk, offset } = LabelChunks::spot(number.expect("fewer than 2^27 groups of elements"));
        GroupId(chunk << OFFSET_BITS | offset)
    }

    /// Its index among the groups.
    #[inline]
    pub(super) fn index(self) -> usize {
        LabelChunks::number(self.spot()) as usize
    }

    #[inline]
    fn spot(self) -> Spot {
        Spot { chunk: self.0 >> OFFSET_BITS, offset: self.0 & ((1 << OFFSET_BITS) - 1) }
    }

    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) fn from_bits(bits: u32) -> GroupId {
        GroupId(bits)
    }
}

/// What an insertion needs of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    next: GroupId,
    prev: GroupId,
    /// Its first element: always the same, as elements are put after others.
    pub(super) first: u32,
    /// How many elements it has.
    pub(super) size: u32,
}

impl Group {
    /// The only group of a list.
    pub(super) fn alone(first: u32, size: u32) -> Group {
        Group { next: GroupId::NONE, prev: GroupId::NONE, first, size }
    }
}

/// What a query needs of the groups.
#[derive(Debug)]
pub(super) struct Labels {
    labels: LabelChunks,
}

impl Labels {
    pub(super) fn new() -> Labels {
        Labels { labels: Chunks::new() }
    }

    /// The label of a group; for a query, inside of [`SeqLock::read`].
    #[inline]
    pub(super) fn get(&self, group: GroupId) -> u64 {
        // A query that overlaps with a split may know of a group before it knows of the group's chunk.
        // Any answer will do: the lock makes it ask again.
        self.labels.get(group.spot()).map_or(0, |[label]| label.load(Ordering::Relaxed))
    }

    /// Sets a label: of a group that nobody knows of, or inside of [`SeqLock::write`].
    #[inline]
    pub(super) fn set(&self, group: GroupId, label: u64) {
        let [entry] = self.labels.make(group.spot());
        entry.store(label, Ordering::Relaxed);
    }

    /// Puts a new group right after `at` in its list. No query knows of it until elements are in it.
    pub(super) fn insert_after(
        &self,
        groups: &mut Vec<Group>,
        lock: &SeqLock,
        at: GroupId,
        (first, size): (u32, u32),
    ) -> GroupId {
        let new = GroupId::new(groups.len());
        let next = groups[at.index()].next;
        if self.gap(at, next) < 2 {
            self.spread(groups, lock, at);
        }
        self.set(new, self.get(at) + (self.gap(at, next) / 2).min(STEP));
        groups.push(Group { next, prev: at, first, size });
        groups[at.index()].next = new;
        if next != GroupId::NONE {
            groups[next.index()].prev = new;
        }
        new
    }

    fn gap(&self, at: GroupId, next: GroupId) -> u64 {
        let high = if next == GroupId::NONE { LABELS } else { self.get(next) };
        high - self.get(at)
    }

    /// Makes room after `at`.
    #[cold]
    fn spread(&self, groups: &[Group], lock: &SeqLock, at: GroupId) {
        let label = self.get(at);
        let (mut first, mut last, mut count) = (at, at, 1u64);
        let (mut size, mut limit) = (1u64, 1.0f64);
        loop {
            size *= 2;
            limit *= 2.0 / OVERFLOW;
            let low = label & !(size - 1);
            loop {
                let prev = groups[first.index()].prev;
                if prev == GroupId::NONE || self.get(prev) < low {
                    break;
                }
                (first, count) = (prev, count + 1);
            }
            loop {
                let next = groups[last.index()].next;
                if next == GroupId::NONE || self.get(next) - low >= size {
                    break;
                }
                (last, count) = (next, count + 1);
            }
            let gap = size / count;
            if ((count as f64) < limit && gap >= MIN_GAP) || size == LABELS {
                lock.write(|| self.number(groups, first, count, low, gap));
                return;
            }
        }
    }

    fn number(&self, groups: &[Group], first: GroupId, count: u64, low: u64, gap: u64) {
        let mut group = first;
        for i in 0..count {
            self.set(group, low + i * gap);
            group = groups[group.index()].next;
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.labels.memory()
    }
}
