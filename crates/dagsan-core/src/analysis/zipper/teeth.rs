//! The zippers of `zipper`, by location: of the nodes that touched these bytes, those that a later node may
//! have to be compared with.
//!
//! Let a node have the span (above, below) of sections around it. A later node n, parallel by the bags, is
//! parallel to an earlier a if neither way round a section of one comes before a section of the other:
//!
//! ```text
//!     below(a) >= above(n)   and   above(a) <= below(n)
//! ```
//!
//! So of two nodes in one bag, which have the same answers from the bags for ever, the one with the larger
//! below and the smaller above *covers* the other: whatever is parallel to that is parallel to it. What is
//! not covered, sorted by below, is sorted by above too, like the teeth of a zipper, and one binary search
//! finds the one tooth that n has to be compared with: the first with below >= above(n) has the smallest above.
//!
//! ```text
//!     line, object ──► segments (bytes touched alike) ──► chains (a bag; reads, writes) ──► teeth
//! ```

use rustc_hash::FxHashMap;

use crate::access::AccessKind;
use crate::analysis::sets::Touch;
use crate::bytes::Location;
use crate::detector::Findings;
use crate::ids::TaskId;
use crate::order::bags::Bags;
use crate::race::Access;

/// The isolated sections around a node, by their numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The last section that comes before the node, or has it inside; 0 if there is none.
    pub(super) above: u32,
    /// The first section that comes after the node, or has it inside; `u32::MAX` if there is none.
    pub(super) below: u32,
}

impl Span {
    pub(super) const EMPTY: Span = Span { above: 0, below: u32::MAX };

    /// Is whatever the sections leave parallel to `other` left parallel to this one too?
    fn covers(self, other: Span) -> bool {
        self.below >= other.below && self.above <= other.above
    }

    /// Do the sections leave the two unordered?
    fn unordered(self, other: Span) -> bool {
        self.below >= other.above && self.above <= other.below
    }
}

#[derive(Debug, Clone, Copy)]
struct Tooth {
    span: Span,
    by: Access,
}

/// The teeth of one bag. Above and below both grow strictly: no tooth covers another.
#[derive(Debug, Clone)]
struct Chain {
    /// A task in the bag.
    task: TaskId,
    teeth: Vec<Tooth>,
}

impl Chain {
    /// A tooth that the sections leave unordered with `span`, if there is one.
    fn unordered(&self, span: Span) -> Option<&Tooth> {
        let first = self.teeth.partition_point(|tooth| tooth.span.below < span.above);
        self.teeth.get(first).filter(|tooth| tooth.span.unordered(span))
    }

    fn add(&mut self, new: Tooth) {
        let mut end = self.teeth.partition_point(|tooth| tooth.span.below < new.span.below);
        match self.teeth.get(end) {
            Some(tooth) if tooth.span.covers(new.span) => return,
            // As far below and farther above: covered like those before it.
            Some(tooth) if tooth.span.below == new.span.below => end += 1,
            _ => {}
        }
        let start = self.teeth[..end].partition_point(|tooth| tooth.span.above < new.span.above);
        self.teeth.splice(start..end, [new]);
        debug_assert!(self.teeth.is_sorted_by(|a, b| !a.span.covers(b.span) && !b.span.covers(a.span)));
    }
}

/// The chains of all bags. Bags grow together; their chains are put together whenever the number of chains
/// has doubled.
#[derive(Debug, Clone, Default)]
struct Chains {
    chains: Vec<Chain>,
    tidy: usize,
}

impl Chains {
    /// Adds a touch by `task`.
    fn add(&mut self, task: TaskId, tooth: Tooth, bags: &mut Bags) {
        // To look through all chains for the task's bag would cost more than another chain.
        match self.chains.last_mut() {
            Some(chain) if bags.bag_of(chain.task) == bags.bag_of(task) => chain.add(tooth),
            _ => {
                self.chains.push(Chain { task, teeth: vec![tooth] });
                if self.chains.len() > 2 * self.tidy + 4 {
                    self.put_together(bags);
                }
            }
        }
    }

    fn put_together(&mut self, bags: &mut Bags) {
        // Without keys that are kept: they would be sorted as pairs of numbers, and a program that sorts such pairs would be linked to this copy
        // of the sort, which has no hooks.
        self.chains.sort_by_key(|chain| bags.bag_of(chain.task));
        self.chains.dedup_by(|chain, kept| {
            let same = bags.bag_of(chain.task) == bags.bag_of(kept.task);
            if same {
                if chain.teeth.len() > kept.teeth.len() {
                    std::mem::swap(chain, kept);
                }
                chain.teeth.iter().for_each(|&tooth| kept.add(tooth));
            }
            same
        });
        self.tidy = self.chains.len();
    }

    /// A tooth of a bag parallel to the present that the sections leave unordered with `span`.
    fn parallel(&self, span: Span, bags: &mut Bags, found: &mut Findings) -> Option<Access> {
        self.chains.iter().find_map(|chain| {
            found.stats.queries += 1;
            let tooth = if bags.serial(chain.task) { None } else { chain.unordered(span) };
            tooth.map(|tooth| tooth.by)
        })
    }
}

/// Bytes of a line that were touched alike.
#[derive(Debug, Clone)]
struct Segment {
    mask: u64,
    reads: Chains,
    writes: Chains,
}

/// The zippers of all locations.
#[derive(Debug, Default)]
pub(super) struct Teeth {
    lines: FxHashMap<(u64, u32), Vec<Segment>>,
}

impl Teeth {
    /// Compares a touch with those of the nodes before it in the traversal, and keeps it. Of the races on a byte
    /// one is reported.
    pub(super) fn touch(&mut self, touch: &Touch, span: Span, bags: &mut Bags, found: &mut Findings) {
        found.stats.checks += 1;
        let mut races: Vec<(Access, u64)> = Vec::new();
        let segments = self.lines.entry(touch.key()).or_default();
        let mut rest = touch.at.mask;
        for at in 0..segments.len() {
            let segment = &mut segments[at];
            let hit = segment.mask & touch.at.mask;
            if hit == 0 {
                continue;
            }
            rest &= !hit;
            if hit != segment.mask {
                let other = Segment { mask: segment.mask & !hit, ..segment.clone() };
                segment.mask = hit;
                segments.push(other);
            }
            if let Some(other) = segments[at].touch(touch, span, bags, found) {
                match races.iter_mut().find(|(known, _)| *known == other) {
                    Some((_, mask)) => *mask |= hit,
                    None => races.push((other, hit)),
                }
            }
        }
        if rest != 0 {
            let mut new = Segment { mask: rest, reads: Chains::default(), writes: Chains::default() };
            new.touch(touch, span, bags, found);
            segments.push(new);
        }
        for (other, mask) in races {
            found.race(other, touch.access(), Location { line: touch.at.line, mask });
        }
    }
}

impl Segment {
    /// Adds the touch, and returns an earlier one that it races with.
    fn touch(&mut self, touch: &Touch, span: Span, bags: &mut Bags, found: &mut Findings) -> Option<Access> {
        let mut race = self.writes.parallel(span, bags, found);
        if touch.kind == AccessKind::Write {
            race = race.or_else(|| self.reads.parallel(span, bags, found));
        }
        let chains = if touch.kind == AccessKind::Write { &mut self.writes } else { &mut self.reads };
        chains.add(touch.task, Tooth { span, by: touch.access() }, bags);
        race
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{SiteId, StrandId};

    fn tooth(above: u32, below: u32) -> Tooth {
        let (strand, site) = (StrandId(0), SiteId::new(0).unwrap());
        let by = Access {
            strand,
            task: TaskId::MAIN,
            site,
            kind: AccessKind::Write,
            isolated: false,
            locked: false,
            shares_lock: false,
            atomic: false,
        };
        Tooth { span: Span { above, below }, by }
    }

    /// All teeth that were ever added, compared one by one, say the same as the chain.
    #[test]
    fn a_chain_forgets_only_what_is_covered() {
        let mut random = 7u32;
        let mut next = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (a, b) = (random >> 16 & 15, random >> 24 & 15);
            Span { above: a, below: if b == 15 { u32::MAX } else { b } }
        };
        for _ in 0..300 {
            let mut chain = Chain { task: TaskId::MAIN, teeth: Vec::new() };
            let mut all = Vec::new();
            for _ in 0..12 {
                let new = next();
                chain.add(tooth(new.above, new.below));
                all.push(new);
                let asked = next();
                let expected = all.iter().any(|span| span.unordered(asked));
                assert_eq!(chain.unordered(asked).is_some(), expected, "{asked:?} against {all:?}");
            }
        }
    }

    #[test]
    fn a_tooth_that_covers_others_takes_their_place() {
        let mut chain = Chain { task: TaskId::MAIN, teeth: Vec::new() };
        for number in [1, 2, 3, 5] {
            chain.add(tooth(number, number));
        }
        chain.add(tooth(2, 3));
        let spans: Vec<_> = chain.teeth.iter().map(|tooth| (tooth.span.above, tooth.span.below)).collect();
        assert_eq!(spans, [(1, 1), (2, 3), (5, 5)]);
        chain.add(tooth(0, u32::MAX));
        assert_eq!(chain.teeth.len(), 1);
    }
}
