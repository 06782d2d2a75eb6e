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
//! A search looks for a set event at or after a strand, newest first, and leaves out all that cannot
//! have one. A [`Corner`] bounds a set of set events: if the strand is later than all of them, or its
//! position beyond the last of them in the English or in the Hebrew order, none is at or after it.
//!
//! Long chains (a pipeline of futures, a row of isolated sections) are not walked link by link. Of what a
//! node includes, the part with the longest history is its *spine*, or one of those that are about as long (`spine`); along the spine there are
//! jump pointers (Myers 1983, skew-binary numbers), each with the corners of what it jumps over:
//!
//! ```text
//!   depth   7 ── 6 ── 5 ── 4 ── 3 ── 2 ── 1 ── nothing
//!   jumps   7 ───────────────────────────────► nothing   with a corner for 6, 5, 4, 3, 2, 1
//!                6 ────────────► 3                       with a corner for 5, 4
//!                               3 ───────────► nothing   with a corner for 2, 1
//! ```
//!
//! There are two corners, for what is newer than all that the spine knows, and for the rest. In a grid of futures, where each gets those
//! above it and to its left, the row is the spine: of a later task in the row above, the first corner says that it is not in this row, and
//! the second that it came after all that is known of the row above. One corner for both would say nothing.
//!
//! Before all is searched, there is a *descent*: along the spine to the set events that came soon after the strand, which is one of them
//! most often. It goes by times alone, and so is not led astray by what the nodes on its way include.
//!
//! Where little is known, a node is *flat*: see `flat`.
//!
//! When a strand learns something, or a scope closes, knowledge of set events that all SP-precede what follows is dropped: it
//! can only confirm what the SP order says. Set events that answer nothing any more are let go now and then (`collect`).

mod collect;
mod flat;
mod spine;

pub(super) use collect::Moment;

use std::cmp::Ordering;

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
    /// When its task has last learnt something. While a task stays at a position this number grows with what it knows.
    pub(super) learnt: u32,
}

/// The number of a knowledge node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Known(u32);

impl Known {
    pub(super) const NOTHING: Known = Known(0);
}

/// Bounds of a set of set events.
#[derive(Debug, Clone, Copy)]
struct Corner {
    /// The largest clock; 0 if there are no events.
    clock: u32,
    /// The last position in the English order.
    english: Position,
    /// The last position in the Hebrew order.
    hebrew: Position,
}

impl Corner {
    const EMPTY: Corner = Corner { clock: 0, english: Position::START, hebrew: Position::START };

    fn of(event: &SetEvent) -> Corner {
        Corner { clock: event.clock, english: event.at, hebrew: event.at }
    }

    fn union(self, other: Corner, sp: &SeriesParallel) -> Corner {
        if self.clock == 0 {
            return other;
        }
        if other.clock == 0 {
            return self;
        }
        Corner {
            clock: self.clock.max(other.clock),
            english: sp.later_english(self.english, other.english),
            hebrew: sp.later_hebrew(self.hebrew, other.hebrew),
        }
    }

    /// Can none of the events be at or after strand `a` at `at`?
    #[inline]
    fn rules_out(&self, sp: &SeriesParallel, a: StrandId, at: Position) -> bool {
        self.clock <= a.0 || !sp.in_corner(at, self.english, self.hebrew)
    }
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// Its own set events: `points[first_point..][..points]`, in English order.
    first_point: u32,
    points: u32,
    /// The newest of them, or [`NONE`].
    newest: u32,
    /// What it includes besides the spine: `included[first_included..][..included]`, oldest first.
    first_included: u32,
    included: u32,
    /// The part of what it includes with the longest history.
    spine: Known,
    jump: Known,
    /// The length of the spine; the last node of it, which has none, is as long as its set events are many.
    depth: u32,
    /// The search that last visited it.
    visited: u32,
    /// Bounds all that it knows.
    all: Corner,
    /// Bounds what it knows and the spine does not.
    own: Corners,
    /// About how many set events these are.
    own_count: u32,
    /// Bounds what the nodes strictly between it and `jump` know and their spines do not.
    jumped: Corners,
}

/// What nodes know and their spines do not.
#[derive(Debug, Clone, Copy)]
struct Corners {
    /// Bounds what came after all that the spine knows.
    newer: Corner,
    /// Bounds the rest.
    older: Corner,
}

impl Corners {
    const EMPTY: Corners = Corners { newer: Corner::EMPTY, older: Corner::EMPTY };

    fn union(self, other: Corners, sp: &SeriesParallel) -> Corners {
        Corners { newer: self.newer.union(other.newer, sp), older: self.older.union(other.older, sp) }
    }

    #[inline]
    fn rules_out(&self, sp: &SeriesParallel, a: StrandId, at: Position) -> bool {
        self.newer.rules_out(sp, a, at) && self.older.rules_out(sp, a, at)
    }
}

/// No point has this number.
const NONE: u32 = u32::MAX;

const NOTHING: Node = Node {
    first_point: 0,
    points: 0,
    newest: NONE,
    first_included: 0,
    included: 0,
    spine: Known::NOTHING,
    jump: Known::NOTHING,
    depth: 0,
    visited: 0,
    all: Corner::EMPTY,
    own: Corners::EMPTY,
    own_count: 0,
    jumped: Corners::EMPTY,
};

/// A set event of a node. Of several, `hebrew` is the last in the Hebrew order from this one on.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: Position,
    clock: u32,
    learnt: u32,
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
    /// Room for the events of a flat node.
    flat: Vec<SetEvent>,
    /// Answers: (strand, knowledge) and whether it is reached. Neither ever changes.
    memo: Vec<(StrandId, Known, bool)>,
    visits: Visits,
}

impl Knowledge {
    pub(super) fn new() -> Knowledge {
        Knowledge {
            nodes: vec![NOTHING],
            points: Vec::new(),
            included: Vec::new(),
            search: 0,
            queue: Vec::new(),
            flat: Vec::new(),
            memo: vec![(StrandId(0), Known::NOTHING, false); MEMO],
            visits: Visits::default(),
        }
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn clear(&mut self) {
        if self.nodes.len() == 1 {
            return;
        }
        self.nodes.truncate(1);
        self.points.clear();
        self.included.clear();
        self.memo.fill((StrandId(0), Known::NOTHING, false));
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
        more.extend(events.iter().filter(|event| !self.has_learnt(sp, event, own)).map(|event| event.known));
        more.push(own);
        more.retain(|&known| !self.settled(sp, known, at));
        more.sort_unstable_by_key(|known| known.0);
        more.dedup();
        let known = match (events.as_slice(), more.as_slice()) {
            ([], []) => Known::NOTHING,
            ([], [only]) => *only,
            _ => self.flatten(sp, at, events, more).unwrap_or_else(|| {
                let spine = self.choose_spine(events, more);
                self.push(sp, events, more, spine)
            }),
        };
        events.clear();
        more.clear();
        known
    }

    fn node(&self, known: Known) -> &Node {
        &self.nodes[known.0 as usize]
    }

    fn points(&self, node: &Node) -> &[Point] {
        &self.points[node.first_point as usize..][..node.points as usize]
    }

    /// Does all that `known` has SP-precede `at`?
    pub(super) fn settled(&self, sp: &SeriesParallel, known: Known, at: Position) -> bool {
        let all = &self.node(known).all;
        known == Known::NOTHING || sp.corner_precedes(all.english, all.hebrew, at)
    }

    fn push(&mut self, sp: &SeriesParallel, events: &mut [SetEvent], parts: &[Known], spine: Known) -> Known {
        let first_point = self.points.len() as u32;
        self.push_points(sp, events);

        let first_included = self.included.len() as u32;
        self.included.extend(parts.iter().filter(|&&part| part != spine));

        let known = self.node(spine).all;
        let mut own = Corners::EMPTY;
        events.iter().for_each(|event| own.add(Corner::of(event), known.clock, sp));
        let mut own_count = events.len() as u32;
        for &part in &self.included[first_included as usize..] {
            let count = self.beyond(part, spine, |corner| own.add(corner, known.clock, sp));
            own_count = own_count.saturating_add(count);
        }
        let (jump, jumped) = self.jump_over(sp, spine);
        let depth = match spine {
            Known::NOTHING => (self.points.len() as u32 - first_point).max(1),
            _ => self.node(spine).depth + 1,
        };
        let newest = (first_point..self.points.len() as u32).max_by_key(|&at| self.points[at as usize].clock);
        self.nodes.push(Node {
            first_point,
            points: self.points.len() as u32 - first_point,
            newest: newest.unwrap_or(NONE),
            first_included,
            included: self.included.len() as u32 - first_included,
            spine,
            jump,
            depth,
            visited: 0,
            all: own.newer.union(own.older, sp).union(known, sp),
            own,
            own_count,
            jumped,
        });
        Known(self.nodes.len() as u32 - 1)
    }

    fn push_points(&mut self, sp: &SeriesParallel, events: &mut [SetEvent]) {
        events.sort_by(|a, b| in_english(sp, a.at, b.at));
        let first = self.points.len();
        self.points.extend(events.iter().map(|&SetEvent { at, clock, learnt, .. }| Point {
            at,
            clock,
            learnt,
            hebrew: at,
        }));
        let points = &mut self.points[first..];
        for i in (1..points.len()).rev() {
            points[i - 1].hebrew = sp.later_hebrew(points[i - 1].hebrew, points[i].hebrew);
        }
    }

    /// Where a node above `spine` jumps to, and the corners of what it jumps over.
    fn jump_over(&self, sp: &SeriesParallel, spine: Known) -> (Known, Corners) {
        let first = self.node(spine);
        let second = self.node(first.jump);
        let third = self.node(second.jump);
        // Two jumps of the same length are joined to one.
        if spine != Known::NOTHING && first.depth - second.depth == second.depth - third.depth {
            let corners = first.own.union(first.jumped, sp).union(second.own, sp).union(second.jumped, sp);
            (second.jump, corners)
        } else {
            (spine, Corners::EMPTY)
        }
    }

    /// Shows `visit` every position there is.
    pub(super) fn visit_positions(&mut self, visit: &mut dyn FnMut(&mut Position)) {
        for Point { at, hebrew, .. } in &mut self.points {
            visit(at);
            visit(hebrew);
        }
        for Node { all, own, jumped, .. } in &mut self.nodes {
            let corners = [&mut own.newer, &mut own.older, &mut jumped.newer, &mut jumped.older];
            for corner in corners.into_iter().chain([all]) {
                visit(&mut corner.english);
                visit(&mut corner.hebrew);
            }
        }
    }

    /// Is there a set event in `known` at or after strand `a`, which is at `at`?
    pub(super) fn reaches(&mut self, sp: &SeriesParallel, a: StrandId, at: Position, known: Known) -> bool {
        if let Some(answer) = self.remembered(a, known) {
            return answer;
        }
        let answer = self.search(sp, a, at, known, None);
        self.memo[memo_slot(a, known)] = (a, known, answer);
        answer
    }

    /// Is `event` before what happens at `now` to a task that knows `known`?
    pub(super) fn precedes(
        &mut self,
        sp: &SeriesParallel,
        event: &SetEvent,
        now: Position,
        known: Known,
    ) -> bool {
        if event.at == now || sp.precedes(event.at, now) {
            return true;
        }
        // The strands before it are those up to this one. Before strand 0 there is none, and nothing that could
        // be missed.
        let Some(last) = event.clock.checked_sub(1) else { return true };
        known != Known::NOTHING && self.search(sp, StrandId(last), event.at, known, Some(event.learnt))
    }

    #[inline]
    fn remembered(&self, a: StrandId, known: Known) -> Option<bool> {
        let (strand, asked, answer) = self.memo[memo_slot(a, known)];
        (strand == a && asked == known).then_some(answer)
    }

    /// Is there an event in `known` at or after `at`, at that position after strand `a`? With `learnt`, what is asked
    /// about is not `a` itself but a set event at `at`, after `a`, with that in its `learnt`.
    fn search(
        &mut self,
        sp: &SeriesParallel,
        a: StrandId,
        at: Position,
        known: Known,
        learnt: Option<u32>,
    ) -> bool {
        if self.descend(sp, a, at, known, learnt) {
            return true;
        }
        self.next_search();
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        queue.push(known);
        let mut next = 0;
        let mut found = false;
        while !found && next < queue.len() {
            let known = queue[next];
            next += 1;
            let node = *self.node(known);
            if node.all.rules_out(sp, a, at) {
                continue;
            }
            if let (None, Some(answer)) = (learnt, self.remembered(a, known)) {
                found = answer;
                continue;
            }
            if !node.own.rules_out(sp, a, at) {
                found = has_event_from(sp, self.points(&node), a, at, learnt);
                if found {
                    break;
                }
                let included = node.first_included as usize..(node.first_included + node.included) as usize;
                for i in included.rev() {
                    self.visit(self.included[i], &mut queue);
                }
            }
            let skip = node.jumped.rules_out(sp, a, at);
            self.visit(if skip { node.jump } else { node.spine }, &mut queue);
        }
        self.queue = queue;
        self.visits.count(next as u64);
        found
    }

    /// Is such an event on the way to those that came soon after `a`? If not, there may be one elsewhere.
    fn descend(
        &mut self,
        sp: &SeriesParallel,
        a: StrandId,
        at: Position,
        known: Known,
        learnt: Option<u32>,
    ) -> bool {
        let (found, steps) = self.way_down(sp, a, at, known, learnt);
        self.visits.count(steps);
        found
    }

    /// The same, and how many nodes are on the way.
    fn way_down(
        &self,
        sp: &SeriesParallel,
        a: StrandId,
        at: Position,
        mut known: Known,
        learnt: Option<u32>,
    ) -> (bool, u64) {
        let mut steps = 0;
        let mut found = false;
        while !found && self.node(known).all.clock > a.0 {
            steps += 1;
            let node = self.node(known);
            found = has_event_from(sp, self.points(node), a, at, learnt);
            let far = self.node(node.jump).all.clock > a.0;
            known = if far { node.jump } else { node.spine };
        }
        (found, steps)
    }

    fn next_search(&mut self) {
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.nodes.iter_mut().for_each(|node| node.visited = 0);
            self.search = 1;
        }
    }

    fn visit(&mut self, known: Known, queue: &mut Vec<Known>) {
        let node = &mut self.nodes[known.0 as usize];
        if node.visited != self.search {
            node.visited = self.search;
            queue.push(known);
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.points.capacity() * size_of::<Point>()
            + self.included.capacity() * size_of::<Known>()
            + self.memo.capacity() * size_of::<(StrandId, Known, bool)>()
    }
}

/// Is one of a node's set events at or after strand `a` at position `at`, or after an event there?
fn has_event_from(
    sp: &SeriesParallel,
    points: &[Point],
    a: StrandId,
    at: Position,
    learnt: Option<u32>,
) -> bool {
    // At the same position, a strand may be before or after the event: their times decide.
    let from_here = |event: &Point| a.0 < event.clock && learnt.is_none_or(|learnt| learnt <= event.learnt);
    match points {
        [] => false,
        [event] if event.at == at => from_here(event),
        [event] => sp.precedes(at, event.at),
        // The first one that is after `at` in the English order has, among those from it on, the last in the
        // Hebrew. Those at the same position come just before it.
        several => {
            let from = several.partition_point(|event| event.at != at && sp.english_before(event.at, at));
            let here = several[from..].iter().take_while(|event| event.at == at).count();
            let (here, after) = several[from..].split_at(here);
            here.iter().any(from_here)
                || after.first().is_some_and(|event| sp.in_corner(at, event.at, event.hebrew))
        }
    }
}

fn in_english(sp: &SeriesParallel, a: Position, b: Position) -> Ordering {
    match a == b {
        true => Ordering::Equal,
        false if sp.english_before(a, b) => Ordering::Less,
        false => Ordering::Greater,
    }
}

#[inline]
fn memo_slot(a: StrandId, known: Known) -> usize {
    (a.0.wrapping_mul(0x9e37_79b9) ^ known.0.wrapping_mul(0x85eb_ca6b)) as usize >> 11 & (MEMO - 1)
}
