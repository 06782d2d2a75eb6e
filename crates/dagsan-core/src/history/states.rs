//! What was done to some bytes, as far as it can matter: states, by number.
//!
//! Lines that were treated alike share a state, so a segment is a mask and a number. States are never changed. A new one
//! is looked for among those made lately, which is where its like would be, and added if it is not there: two
//! states may be equal, and that costs nothing but memory.

use super::lists::{List, Lists};
use super::record::Record;
use crate::pages::prefetch;

/// The number of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StateId(u32);

impl StateId {
    /// Nobody has touched the bytes.
    pub(super) const UNTOUCHED: StateId = StateId(0);

    #[cfg(test)]
    pub(super) fn test(number: u32) -> StateId {
        StateId(number)
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// The last write that was not atomic, nor made with locks held, or [`Record::NO_WRITE`].
    pub(super) writer: Record,
    /// The accesses that it does not cover.
    pub(super) list: List,
}

const UNTOUCHED: State = State { writer: Record::NO_WRITE, list: List::EMPTY };

const LATELY: usize = 256;
const FIRST_COLLECTION: usize = 1 << 16;

/// See the module's documentation.
pub(super) struct States {
    states: Vec<State>,
    /// States made lately, each at the place that its bits choose.
    lately: Box<[StateId; LATELY]>,
    /// Collect when there are this many.
    collect_at: usize,
}

impl States {
    pub(super) fn new() -> States {
        States {
            states: vec![UNTOUCHED],
            lately: Box::new([StateId::UNTOUCHED; LATELY]),
            collect_at: FIRST_COLLECTION,
        }
    }

    #[inline]
    pub(super) fn get(&self, id: StateId) -> State {
        self.states[id.0 as usize]
    }

    /// The state will soon be asked for: it will be in the processor's cache then.
    #[inline]
    pub(super) fn expect(&self, id: StateId) {
        prefetch(&raw const self.states[id.0 as usize]);
    }

    /// The number of a state.
    #[inline]
    pub(super) fn number(&mut self, state: State) -> StateId {
        let slot =
            (state.writer.mixed() ^ state.list.number().wrapping_mul(0x9e37_79b1)) >> (32 - LATELY.ilog2());
        let known = &mut self.lately[slot as usize];
        if self.states[known.0 as usize] != state {
            *known = StateId(self.states.len() as u32);
            self.states.push(state);
        }
        *known
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &State> {
        self.states.iter()
    }

    pub(super) fn clear(&mut self) {
        self.states.truncate(1);
        self.lately.fill(StateId::UNTOUCHED);
        self.collect_at = FIRST_COLLECTION;
    }

    pub(super) fn wants_collection(&self, more: usize) -> bool {
        self.states.len() >= self.collect_at + more
    }

    /// Keeps the states that `roots` names, and what of `lists` they need, and tells `roots` their new numbers. `roots`
    /// must visit the same numbers both times it is called.
    pub(super) fn collect(&mut self, lists: &mut Lists, mut roots: impl FnMut(&mut dyn FnMut(&mut StateId))) {
        let mut live = vec![false; self.states.len()];
        live[0] = true;
        roots(&mut |id| live[id.0 as usize] = true);
        let mut moved = vec![StateId::UNTOUCHED; self.states.len()];
        let mut kept = 0;
        for at in 0..self.states.len() {
            if live[at] {
                self.states[kept] = self.states[at];
                moved[at] = StateId(kept as u32);
                kept += 1;
            }
        }
        self.states.truncate(kept);
        roots(&mut |id| *id = moved[id.0 as usize]);
        lists.collect(|visit| self.states.iter_mut().for_each(|state| visit(&mut state.list)));
        self.lately.fill(StateId::UNTOUCHED);
        self.collect_at = (kept * 2).max(FIRST_COLLECTION);
    }

    pub(super) fn memory(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::lists::Ahead;
    use super::*;
    use crate::access::{AccessKind, Run};
    use crate::bytes::Location;
    use crate::ids::{SiteId, StrandId};

    fn written_by(strand: u32) -> State {
        let (at, site) = (Location { line: 0, mask: 1 }, SiteId::new(0).unwrap());
        let run = Run { at, kind: AccessKind::Write, site, atomic: false };
        State { writer: Record::new(StrandId(strand), &run, false), list: List::EMPTY }
    }

    #[test]
    fn equal_states_have_one_number_while_they_are_new() {
        let mut states = States::new();
        assert_eq!(states.number(UNTOUCHED), StateId::UNTOUCHED);
        let one = states.number(written_by(1));
        assert!(one == states.number(written_by(1)) && one != states.number(written_by(2)));
        assert_eq!(states.get(one), written_by(1));
    }

    #[test]
    fn a_collection_keeps_what_is_in_use() {
        let (mut states, mut lists) = (States::new(), Lists::new());
        states.number(written_by(1));
        let reader = written_by(3).writer;
        let read = State {
            list: lists.cons(reader, List::EMPTY, Ahead { same_locks: true, follows: true }),
            ..written_by(2)
        };
        let mut used = states.number(read);
        states.collect(&mut lists, |visit| visit(&mut used));
        assert_eq!((states.states.len(), used), (2, StateId(1)));
        let State { writer, list } = states.get(used);
        assert!(writer == read.writer && lists.head(list).is_some_and(|(head, _)| head == reader));
        assert_ne!(states.number(written_by(1)), used);
    }
}
