//! Which part of what a node includes is its spine, and what the other parts know that the spine does not.
//!
//! The parts of a node have much in common: the tasks of a chain of promises know each other's knowledge, and who waits for all of them
//! one by one learns of the chain again and again, each time a link longer.
//!
//! ```text
//!   the chain       K(1) ── K(2) ── K(3) ── K(4)      K(i) = a set event and K(i-1)
//!                    │       │       │       │
//!   who follows it  M(1) ── M(2) ── M(3) ── M(4)      M(i) = a set event, M(i-1), and K(i)
//! ```
//!
//! M(i) knows what M(i-1) does not: its own event, and that of K(i), as K(i-1) is a part of M(i-1). So M(i-1) is its spine, and its corners
//! bound these two; bounds of all of K(i) would rule out nothing. With K(i) as the spine, all of M(i-1) would be beyond it.
//!
//! Who follows the chain in another order, the last link first, knows all of K(i) when the event of link i comes: the task of link i has set
//! its promise, which is known, after it had learnt K(i). Then K(i) is no part of M(i) (`has_learnt`). That is the argument by which an event
//! that is known brings nothing: what a task knows at a position only grows, and so does what comes after.
//!
//! **Found how.** What is beyond a spine is looked for along the spine of a part: each node there knows its own (`Node::own`), besides what is further
//! on, until a node comes that is *near* the spine of the other: among the first nodes there, or what these include. A few steps, after
//! which all that is left counts. So the bounds are right in any case, and tight where parts were one thing a short time ago. A search that they
//! send on to the spine misses nothing: what it looks for, if the node knows it, is known to the spine.
//!
//! **What it cannot do.** Who follows a chain in leaps, now further on and now back, has a node for each leap forward that bounds all of what
//! was leapt over, and a search may go through all of these.

use super::{Corner, Corners, Knowledge, Known, SetEvent};
use crate::ids::StrandId;
use crate::order::sp::SeriesParallel;

/// Long histories are about as long as each other if they differ by no more than this. In a grid it is one or two.
const ABOUT: u32 = 4;

/// So many steps along a spine are near.
const STEPS: usize = 4;

/// So few set events beyond a spine are little.
const LITTLE: u32 = 4;

/// Of more parts than these, the newest is taken for the spine without a look at what is beyond it.
const FEW: usize = 4;

impl Knowledge {
    /// Is it seen at once that `own` has all that `event` brings, but for the event? Its task may have told the same by an earlier event: one
    /// at its position that came after it had learnt this, or one after that. What comes on the way down to that time is looked at, and no more.
    pub(super) fn has_learnt(&self, sp: &SeriesParallel, event: &SetEvent, own: Known) -> bool {
        let learnt = StrandId(self.node(event.known).all.clock);
        event.known == Known::NOTHING || self.way_down(sp, learnt, event.at, own, Some(event.learnt)).0
    }

    /// The spine of a node with these events and parts, which are sorted: of those with about the longest history the one that the others
    /// know least beyond, or the newest.
    pub(super) fn choose_spine(&self, events: &[SetEvent], parts: &[Known]) -> Known {
        let longest = parts.iter().map(|&part| self.node(part).depth).max().unwrap_or(0);
        let is_long = |part: &Known| self.node(*part).depth + ABOUT.min(longest / 8) >= longest;
        let newest = |part: Known| {
            let clocks = self.points(self.node(part)).iter().map(|point| point.clock);
            let came = events.iter().filter(|event| event.known == part).map(|event| event.clock);
            clocks.chain(came).max().unwrap_or(0)
        };
        let beyond = |spine: Known| {
            let few = parts.iter().filter(|_| parts.len() <= FEW);
            few.fold(0, |sum: u32, &part| sum.saturating_add(self.beyond(part, spine, |_| {})))
        };
        let long = parts.iter().copied().filter(is_long);
        let spine = long.max_by_key(|&part| (beyond(part) <= LITTLE, newest(part)));
        spine.unwrap_or(Known::NOTHING)
    }

    /// How many set events there are, or fewer nodes, that `part` knows and `spine` does not. `bound` is shown bounds of them.
    pub(super) fn beyond(&self, part: Known, spine: Known, mut bound: impl FnMut(Corner)) -> u32 {
        let mut count: u32 = 0;
        let mut next = part;
        for _ in 0..STEPS {
            if self.is_near(next, spine) {
                return count;
            }
            let node = self.node(next);
            bound(node.own.newer);
            bound(node.own.older);
            count = count.saturating_add(node.own_count);
            next = node.spine;
        }
        bound(self.node(next).all);
        count.saturating_add(self.node(next).depth)
    }

    /// Is `known` part of `spine`, and so near that this is seen at once? If so, there is nothing in it that `spine` does not know.
    fn is_near(&self, known: Known, spine: Known) -> bool {
        let is_in = |at: Known| {
            let node = self.node(at);
            let included = &self.included[node.first_included as usize..][..node.included as usize];
            let last = &included[included.len().saturating_sub(FEW)..];
            at == known
                || included.binary_search(&known).is_ok()
                || last.iter().any(|&part| self.node(part).spine == known)
        };
        known == Known::NOTHING
            || std::iter::successors(Some(spine), |&at| Some(self.node(at).spine)).take(STEPS).any(is_in)
    }
}

impl Corners {
    /// Bounds this one, too; `known` is when the newest came that the spine knows.
    pub(super) fn add(&mut self, corner: Corner, known: u32, sp: &SeriesParallel) {
        let bound = if corner.clock > known { &mut self.newer } else { &mut self.older };
        *bound = bound.union(corner, sp);
    }
}
