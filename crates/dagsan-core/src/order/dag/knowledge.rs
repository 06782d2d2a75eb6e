//! What strands know of non-tree joins: sets of set events, immutable and shared.
//!
//! Knowledge is a node of a graph that only grows: some set events, and older knowledge it includes.
//!
//! ```text
//!   get of s in a strand that knows K:    { s } + K(s) + K
//!   join of tasks x, y, …:                K(x) + K(y) + … + K        (tree join: nothing new is set)
//!                                         { end of x, end of y, … } + K(x) + …    (non-tree join)
//! ```
//!
//! A search looks for a set event at or after a position, newest first, and leaves out every node that
//! cannot have one:
//! - all its set events happened before the strand that is asked about (`clock`);
//! - the position is outside the *corner* of the node: beyond its last set event in the English order,
//!   or beyond its last in the Hebrew order.
//!
//! When a scope closes, knowledge of set events that all SP-precede what follows is dropped: it
//! can only confirm what the SP order says.

use crate::ids::StrandId;
use crate::order::Visits;
use crate::order::sp::{Position, SeriesParallel};

/// Something that a non-tree edge leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetEvent {
    pub(super) at: Position,
    /// Strands from this number on were delivered after it.
    pub(super) clock: u32,
    /// What the setting task knew.
    pub(super) known: Known,
}

/// The number of a knowledge node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Known(u32);

impl Known {
    pub(super) const NOTHING: Known = Known(0);
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// Its own set events: `events[first_event..][..events]`, in English order.
    first_event: u32,
    events: u32,
    /// What it includes: `included[first_included..][..included]`, newest last.
    first_included: u32,
    included: u32,
    /// The largest clock of a set event in it or in what it includes.
    clock: u32,
    /// Its corner, with all that it includes.
    english: Position,
    hebrew: Position,
    /// The search that last visited it.
    visited: u32,
}

/// A set event of a node. Of several, `hebrew` is the last in the Hebrew order from this one on.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: Position,
    clock: u32,
    hebrew: Position,
}

const MEMO: usize = 1 << 10;

#[derive(Debug)]
pub(super) struct Knowledge {
    /// Node 0 knows nothing.
    nodes: Vec<Node>,
    points: Vec<Point>,
    included: Vec<Known>,
    search: u32,
    queue: Vec<Known>,
    /// Answers: (strand, knowledge) and whether it is reached. Neither ever changes.
    memo: Vec<(StrandId, Known, bool)>,
    visits: Visits,
}

impl Knowledge {
    pub(super) fn new() -> Knowledge {
        let mut knowledge = Knowledge {
            nodes: Vec::new(),
            points: Vec::new(),
            included: Vec::new(),
            search: 0,
            queue: Vec::new(),
            memo: Vec::new(),
            visits: Visits::default(),
        };
        knowledge.clear();
        knowledge
    }

    pub(super) fn clear(&mut self) {
        if self.nodes.len() == 1 {
            return;
        }
        let nothing = Node {
            first_event: 0,
            events: 0,
            first_included: 0,
            included: 0,
            clock: 0,
            english: Position::START,
            hebrew: Position::START,
            visited: 0,
        };
        self.nodes.clear();
        self.nodes.push(nothing);
        self.points.clear();
        self.included.clear();
        self.search = 0;
        self.memo.clear();
        self.memo.resize(MEMO, (StrandId(0), Known::NOTHING, false));
    }

    pub(super) fn visits(&self) -> Visits {
        self.visits
    }

    /// The knowledge of a strand at `at` that knew `own` and learns of `events` and of all in `more`.
    /// Both are emptied.
    pub(super) fn extend(
        &mut self,
        sp: &SeriesParallel,
        at: Position,
        own: Known,
        events: &mut Vec<SetEvent>,
        more: &mut Vec<Known>,
    ) -> Known {
        // A set event that SP-precedes the strand adds nothing: its knowledge came along that path.
        events.retain(|event| event.at != at && !sp.precedes(event.at, at));
        more.extend(events.iter().map(|event| event.known));
        more.retain(|&known| known != own && !self.settled(sp, known, at));
        more.sort_unstable_by_key(|known| known.0);
        more.dedup();
        let own = if self.settled(sp, own, at) { Known::NOTHING } else { own };
        match (events.as_slice(), more.as_slice()) {
            ([], []) => own,
            ([], [only]) if own == Known::NOTHING => {
                let only = *only;
                more.clear();
                only
            }
            _ => self.push(sp, own, events, more),
        }
    }

    /// Does all that `known` has SP-precede `at`?
    fn settled(&self, sp: &SeriesParallel, known: Known, at: Position) -> bool {
        let node = &self.nodes[known.0 as usize];
        known == Known::NOTHING || sp.corner_precedes(node.english, node.hebrew, at)
    }

    fn push(
        &mut self,
        sp: &SeriesParallel,
        own: Known,
        events: &mut Vec<SetEvent>,
        more: &mut Vec<Known>,
    ) -> Known {
        let (first_event, first_included) = (self.points.len() as u32, self.included.len() as u32);
        if events.len() > 1 {
            events.sort_by(|a, b| {
                if a.at == b.at {
                    std::cmp::Ordering::Equal
                } else if sp.english_before(a.at, b.at) {
                    std::cmp::Ordering::Less
                } else {
                    std::cmp::Ordering::Greater
                }
            });
        }
        self.points.extend(events.iter().map(|e| Point { at: e.at, clock: e.clock, hebrew: e.at }));
        let own_points = &mut self.points[first_event as usize..];
        for i in (1..own_points.len()).rev() {
            own_points[i - 1].hebrew = sp.later_hebrew(own_points[i - 1].hebrew, own_points[i].hebrew);
        }
        // What the strand knew before is older than what it learns now.
        if own != Known::NOTHING {
            self.included.push(own);
        }
        self.included.append(more);
        let included = &self.included[first_included as usize..];

        let parts = included.iter().map(|known| {
            let node = &self.nodes[known.0 as usize];
            (node.clock, node.english, node.hebrew)
        });
        let corner = events.drain(..).map(|event| (event.clock, event.at, event.at)).chain(parts).reduce(
            |(clock, english, hebrew), (c, e, h)| {
                (clock.max(c), sp.later_english(english, e), sp.later_hebrew(hebrew, h))
            },
        );
        let (clock, english, hebrew) = corner.unwrap_or((0, Position::START, Position::START));
        self.nodes.push(Node {
            first_event,
            events: self.points.len() as u32 - first_event,
            first_included,
            included: included.len() as u32,
            clock,
            english,
            hebrew,
            visited: 0,
        });
        Known(self.nodes.len() as u32 - 1)
    }

    /// Is there a set event in `known` at or after strand `a`, which is at `at`?
    pub(super) fn reaches(&mut self, sp: &SeriesParallel, a: StrandId, at: Position, known: Known) -> bool {
        let slot = memo_slot(a, known);
        let (strand, asked, answer) = self.memo[slot];
        if strand == a && asked == known {
            return answer;
        }
        let answer = self.search(sp, a, at, known);
        self.memo[slot] = (a, known, answer);
        answer
    }

    fn search(&mut self, sp: &SeriesParallel, a: StrandId, at: Position, known: Known) -> bool {
        self.search = match self.search.checked_add(1) {
            Some(search) => search,
            None => {
                self.nodes.iter_mut().for_each(|node| node.visited = 0);
                1
            }
        };
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        queue.push(known);
        let mut next = 0;
        let mut found = false;
        while !found && next < queue.len() {
            let known = queue[next];
            next += 1;
            let node = self.nodes[known.0 as usize];
            if node.clock <= a.0 || !sp.in_corner(at, node.english, node.hebrew) {
                continue;
            }
            let (strand, asked, answer) = self.memo[memo_slot(a, known)];
            if strand == a && asked == known {
                found = answer;
                continue;
            }
            let points = &self.points[node.first_event as usize..][..node.events as usize];
            found = has_event_from(sp, points, a, at);
            let included = &self.included[node.first_included as usize..][..node.included as usize];
            for &older in included.iter().rev() {
                let visited = &mut self.nodes[older.0 as usize].visited;
                if *visited != self.search {
                    *visited = self.search;
                    queue.push(older);
                }
            }
        }
        self.queue = queue;
        self.visits.count(next as u64);
        found
    }

    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.points.capacity() * size_of::<Point>()
            + self.included.capacity() * size_of::<Known>()
            + self.memo.capacity() * size_of::<(StrandId, Known, bool)>()
    }
}

/// Is one of a node's set events at or after strand `a` at position `at`?
fn has_event_from(sp: &SeriesParallel, points: &[Point], a: StrandId, at: Position) -> bool {
    match points {
        [] => false,
        // At the same position, a strand may be before or after the event: their times decide.
        [event] => {
            if event.at == at {
                a.0 < event.clock
            } else {
                sp.precedes(at, event.at)
            }
        }
        // Several are ends of tasks: no strand at the same position is after them. The first one that
        // is not before `at` in the English order has, among those from it on, the last in the Hebrew.
        several => {
            let from = several.partition_point(|event| event.at != at && sp.english_before(event.at, at));
            several.get(from).is_some_and(|event| sp.in_corner(at, event.at, event.hebrew))
        }
    }
}

#[inline]
fn memo_slot(a: StrandId, known: Known) -> usize {
    (a.0.wrapping_mul(0x9e37_79b9) ^ known.0.wrapping_mul(0x85eb_ca6b)) as usize >> 11 & (MEMO - 1)
}
