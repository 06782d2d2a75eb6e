//! Flat knowledge: a node that includes nothing.
//!
//! Where few positions are known, as in a program of some threads that do nothing but wait for each other, a single node has all: of the
//! events at a position the latest stands for all, so what is known is a vector clock (Fidge 1988, Mattern 1989), as long as it is short.
//! There is nothing to be searched.

use super::{Knowledge, Known, Node, Point, SetEvent, has_event_from, in_english};
use crate::ids::StrandId;
use crate::order::sp::{Position, SeriesParallel};

/// Up to so many positions are a flat node in any case.
const SHORT: usize = 16;
/// And up to so many, if much of what the parts know is the same: else a copy of all is not worth it.
const LONG: usize = 64;

impl Node {
    /// Is all that it knows its own set events?
    pub(super) fn is_flat(&self) -> bool {
        self.included == 0 && self.spine == Known::NOTHING
    }
}

impl Knowledge {
    /// The same as a flat node, if all parts are flat and there are few positions.
    pub(super) fn flatten(
        &mut self,
        sp: &SeriesParallel,
        at: Position,
        events: &[SetEvent],
        parts: &[Known],
    ) -> Option<Known> {
        if events.len().max(parts.len()) > LONG || parts.iter().any(|&part| !self.node(part).is_flat()) {
            return None;
        }
        let mut flat = std::mem::take(&mut self.flat);
        flat.clear();
        flat.extend_from_slice(events);
        for &part in parts {
            flat.extend(self.points(self.node(part)).iter().map(|&Point { at, clock, learnt, .. }| {
                SetEvent { at, clock, learnt, known: Known::NOTHING }
            }));
        }
        let all = flat.len();
        // Those SP-before the strand add nothing, nor do those of its own task: whoever learns of it learns of a later event there.
        flat.retain(|event| event.at != at && !sp.precedes(event.at, at));
        flat.sort_unstable_by(|a, b| in_english(sp, a.at, b.at).then(b.clock.cmp(&a.clock)));
        flat.dedup_by_key(|event| event.at);
        let known = match flat.len() {
            0 => Some(Known::NOTHING),
            few if few <= SHORT || (few <= LONG && 3 * few <= 2 * all) => {
                Some(self.push(sp, &mut flat, &[], Known::NOTHING))
            }
            _ => None,
        };
        self.flat = flat;
        known
    }

    /// Can it be told without a search that there is a set event in `known` at or after strand `a`, which is at `at`? Mostly what a task
    /// reads is what it has just waited for: then it is the newest. Flat nodes know all.
    #[inline]
    pub(in super::super) fn surely_reaches(
        &mut self,
        sp: &SeriesParallel,
        a: StrandId,
        at: Position,
        known: Known,
    ) -> bool {
        let node = &self.nodes[known.0 as usize];
        let Some(newest) = self.points.get(node.newest as usize) else { return false };
        let surely = (newest.at == at && a.0 < newest.clock)
            || (node.points > 1
                && node.is_flat()
                && a.0 < node.all.clock
                && has_event_from(sp, self.points(node), a, at, None));
        if surely {
            self.visits.count(1);
        }
        surely
    }
}
