//! From one state of some bytes to the next: a new access is compared with what is remembered, then remembered itself.
//!
//! Strands do the same to many lines, so the last transitions are kept: from which state, by which access, to which.
//!
//! What an access covers is dropped: if `a` precedes `b`, and all that conflicts with `a` conflicts with `b`, then
//! whatever later is parallel to `a` is parallel to `b` too, for a path from `b` would be one from `a`.
//! So per byte no race is missed, and all that are found are races. Once a byte is racy, not every
//! further race on it is found. Two accesses conflict if one writes, not both are atomic, and the locks of their
//! strands do not keep them apart: a plain write without locks is alone in covering whatever it follows.
//!
//! Where the latest reader stands for the new one (see `stand_in`), nothing changes at all.
//!
//! Where a task has made accesses with many different locks held, each of which has to be kept, most often each follows the one before:
//! who follows the latest in such a chain follows all of it, and need not look at the others.
//!
//! Finding out whether a reader can be dropped costs a query, and keeping it is never wrong: only
//! the latest is asked about, and all of them whenever their number has doubled. Then also those that
//! share a bag with a later one go: the engine will never tell them apart. Where many tasks read the same, such a query
//! is most often in vain, and to search in vain is dear: so the latest is dropped only if no search is needed
//! to know, and of many, first those go that a later one of their own task covers.

use rustc_hash::FxHashMap;

use super::Judge;
use super::lists::{Ahead, List, Lists};
use super::record::Record;
use super::states::{State, StateId, States};
use crate::bytes::Location;
use crate::ids::{StrandId, TaskId};

/// A transition from one state to another, kept so that lines treated alike are judged once.
#[derive(Clone, Copy)]
struct Transition {
    access: Record,
    from: StateId,
    to: StateId,
}

const NO_TRANSITION: Transition =
    Transition { access: Record::NONE, from: StateId::UNTOUCHED, to: StateId::UNTOUCHED };

const MEMO: usize = 256;

/// An atomic access is held against so many of the latest. With all of them, it would take the square of their number; what
/// is sought are pairs of places in the code, and these show again and again.
const MET: usize = 8;

/// When so many more have been asked about in vain than could be dropped, a list is asked no further: where tasks read the same after they have
/// released what others acquire, none can be, and each search goes through all that was released since.
const PATIENCE: u32 = 32;

/// More readers than these are not asked about one by one.
const FEW: u32 = 2;

/// See the module's documentation.
pub(super) struct Transitions {
    states: States,
    lists: Lists,
    /// The last transitions, each at the place that its bits choose.
    memo: Box<[Transition; MEMO]>,
}

impl Transitions {
    pub(super) fn new() -> Transitions {
        Transitions { states: States::new(), lists: Lists::new(), memo: Box::new([NO_TRANSITION; MEMO]) }
    }

    /// The state of the bytes at `at` after an access; `from` is the one before.
    #[inline]
    pub(super) fn step(
        &mut self,
        from: StateId,
        access: Record,
        at: Location,
        judge: &mut impl Judge,
    ) -> StateId {
        let slot = slot(from, access);
        let known = &self.memo[slot];
        if known.access == access && known.from == from {
            return known.to;
        }
        self.judge(from, access, at, slot, judge)
    }

    /// A step from this state will soon be taken: it will be in the processor's cache then.
    #[inline]
    pub(super) fn expect(&self, state: StateId) {
        self.states.expect(state);
    }

    /// The same for the latest access in its list, when the state has come.
    #[inline]
    pub(super) fn expect_latest(&self, state: StateId) {
        self.lists.expect(self.states.get(state).list);
    }

    /// The same for the access before that one. The strands of the writer and of the latest go to `strand`.
    #[inline]
    pub(super) fn expect_older(&self, state: StateId, mut strand: impl FnMut(StrandId)) {
        let State { writer, list } = self.states.get(state);
        if writer != Record::NO_WRITE {
            strand(writer.strand());
        }
        if let Some((latest, older)) = self.lists.head(list) {
            self.lists.expect(older);
            strand(latest.strand());
        }
    }

    /// Is the step that was taken last, from `from` by `access`, the same at every location?
    #[inline]
    pub(super) fn knows(&self, from: StateId, access: Record) -> bool {
        let known = &self.memo[slot(from, access)];
        known.access == access && known.from == from
    }

    #[inline(never)]
    fn judge(
        &mut self,
        id: StateId,
        access: Record,
        at: Location,
        slot: usize,
        judge: &mut impl Judge,
    ) -> StateId {
        let from = self.states.get(id);
        let mut raced = false;
        if from.writer != Record::NO_WRITE && races(from.writer, access, judge) {
            raced = true;
            judge.race(from.writer, access, at);
        }
        let mut repeated = Vec::new();
        if self.may_conflict(from.list, access, judge) && !self.follows(from.list, judge) {
            for earlier in self.lists.iter_conflicting(from.list, access) {
                if races(earlier, access, judge) {
                    raced = true;
                    if !judge.race(earlier, access, at) {
                        repeated.push(earlier);
                    }
                }
            }
        }
        if access.is_atomic() {
            for earlier in self.lists.iter(from.list).take(MET) {
                if earlier.meets(access) && !excluded(earlier, access, judge) {
                    judge.meet(earlier, access);
                }
            }
        }
        let to = if access.is_plain_write() {
            State { writer: access, list: List::EMPTY }
        } else {
            let list = self.without(from.list, repeated, judge);
            State { writer: from.writer, list: self.remember(list, access, judge) }
        };
        let to = self.states.number(to);
        // A race is reported for every location, so only race-free transitions are taken from memory.
        self.memo[slot] = if raced { NO_TRANSITION } else { Transition { access, from: id, to } };
        to
    }

    /// The latest access of a state that somebody has made.
    #[inline]
    pub(super) fn latest(&self, state: StateId) -> Record {
        let State { writer, list } = self.states.get(state);
        self.lists.head(list).map_or(writer, |(latest, _)| latest)
    }

    /// Does all that is remembered in this state surely precede the strand that is now? Of many readers nobody is asked.
    pub(super) fn all_precede(&self, state: StateId, judge: &mut impl Judge) -> bool {
        let State { writer, list } = self.states.get(state);
        self.lists.len(list) <= FEW
            && (writer == Record::NO_WRITE || judge.surely_precedes(writer.strand()))
            && self.lists.iter(list).all(|earlier| judge.surely_precedes(earlier.strand()))
    }

    /// A state after a plain read, that of `read`, which all that is remembered precedes.
    pub(super) fn under(&mut self, state: StateId, read: StateId) -> StateId {
        let (access, State { writer, mut list }) = (self.latest(read), self.states.get(state));
        while let Some((latest, older)) = self.lists.head(list)
            && access.covers(latest)
        {
            list = older;
        }
        let same_locks = self.lists.head(list).is_some_and(|(next, _)| !next.is_locked());
        let follows = self.lists.is_chain(list);
        let list = self.lists.cons(access, list, Ahead { same_locks, follows });
        self.states.number(State { writer, list })
    }

    /// Is no write remembered in this state?
    #[inline]
    pub(super) fn is_unwritten(&self, state: StateId) -> bool {
        let State { writer, list } = self.states.get(state);
        writer == Record::NO_WRITE && !self.lists.has_write(list)
    }

    /// Are all accesses atomic that are remembered in this state?
    pub(super) fn is_only_atomic(&self, state: StateId) -> bool {
        let State { writer, list } = self.states.get(state);
        writer == Record::NO_WRITE && self.lists.is_atomic(list)
    }

    /// May something in the list race with `access`? Most often one look at the list is enough.
    fn may_conflict(&self, list: List, access: Record, judge: &impl Judge) -> bool {
        let common = self.lists.with_common_locks(list);
        self.lists.may_conflict(list, access)
            && !common.is_some_and(|earlier| excluded(earlier, access, judge))
    }

    /// Is it known without a search that the access comes after all in the list?
    fn follows(&self, list: List, judge: &mut impl Judge) -> bool {
        let latest = self.lists.head(list).filter(|_| self.lists.is_chain(list));
        latest.is_some_and(|(latest, _)| judge.surely_precedes(latest.strand()))
    }

    /// The list without `records`, which are in the order of the list. Accesses that race again as others did
    /// before are forgotten: their bytes are known to be racy, and with many such on both sides the reports
    /// would grow as the square.
    fn without(&mut self, list: List, records: Vec<Record>, judge: &impl Judge) -> List {
        if records.is_empty() {
            return list;
        }
        let mut records = records.into_iter().peekable();
        let kept: Vec<Record> =
            self.lists.iter(list).filter(|record| records.next_if_eq(record).is_none()).collect();
        self.part_of(list, kept, judge)
    }

    /// The list with `access` in it, and without some that it covers; or as it was, if its latest stands for `access`.
    fn remember(&mut self, mut list: List, access: Record, judge: &mut impl Judge) -> List {
        let mut precedes = true;
        while let Some((latest, older)) = self.lists.head(list) {
            precedes = judge.surely_precedes(latest.strand());
            if !precedes && judge.stands_in(latest.strand()) && covers(latest, access, judge) {
                return list;
            }
            if !precedes || !covers(access, latest, judge) {
                break;
            }
            list = older;
        }
        let follows = precedes && self.lists.is_chain(list);
        if self.lists.has_doubled(list) {
            let len = self.lists.len(list);
            list = self.without_superseded(list, judge);
            if self.lists.len(list) > len / 2 {
                list = self.without_covered(list, access, judge);
            }
            self.lists.set_clean(list);
        }
        self.cons(access, list, follows, judge)
    }

    /// The list without those that a later one of the same task covers: that costs no query.
    fn without_superseded(&mut self, list: List, judge: &mut impl Judge) -> List {
        let mut of_task: FxHashMap<TaskId, Record> = FxHashMap::default();
        let mut kept: Vec<Record> = Vec::new();
        for earlier in self.lists.iter(list) {
            let later = of_task.entry(judge.task(earlier.strand())).or_insert(earlier);
            if *later == earlier || !covers(*later, earlier, judge) {
                kept.push(earlier);
            }
        }
        self.part_of(list, kept, judge)
    }

    /// The list without those that `access` covers, and those that a later one in their bag covers.
    fn without_covered(&mut self, list: List, access: Record, judge: &mut impl Judge) -> List {
        let mut in_bags: Vec<(u32, Record)> = Vec::new();
        let mut kept: Vec<Record> = Vec::new();
        let mut patience = PATIENCE;
        for earlier in self.lists.iter(list) {
            if patience > 0 && covers(access, earlier, judge) {
                if judge.precedes(earlier.strand()) {
                    patience += 1;
                    continue;
                }
                patience -= 1;
            }
            if let Some(bag) = judge.bag(earlier.strand()) {
                if in_bags.iter().any(|&(other, later)| other == bag && covers(later, earlier, judge)) {
                    continue;
                }
                in_bags.push((bag, earlier));
            }
            kept.push(earlier);
        }
        self.part_of(list, kept, judge)
    }

    /// A list of those records of `list` that are kept, in their order.
    fn part_of(&mut self, list: List, kept: Vec<Record>, judge: &impl Judge) -> List {
        if kept.len() as u32 == self.lists.len(list) {
            return list;
        }
        let follows = self.lists.is_chain(list);
        kept.into_iter().rev().fold(List::EMPTY, |list, record| self.cons(record, list, follows, judge))
    }

    fn cons(&mut self, record: Record, list: List, follows: bool, judge: &impl Judge) -> List {
        let same_locks = self.lists.head(list).is_some_and(|(next, _)| same_locks(record, next, judge));
        self.lists.cons(record, list, Ahead { same_locks, follows })
    }

    /// Everything so far precedes everything to come.
    pub(super) fn clear(&mut self) {
        self.states.clear();
        self.lists.clear();
        self.memo.fill(NO_TRANSITION);
    }

    /// Are there so many states or lists that it is time, and so many `more`?
    #[inline]
    pub(super) fn wants_collection(&self, more: usize) -> bool {
        self.states.wants_collection(more) || self.lists.wants_collection(more)
    }

    /// Keeps the states that `roots` names, and tells it their new numbers. It must visit the same numbers both times
    /// it is called.
    pub(super) fn collect(&mut self, roots: impl FnMut(&mut dyn FnMut(&mut StateId))) {
        self.states.collect(&mut self.lists, roots);
        self.memo.fill(NO_TRANSITION);
    }

    /// All accesses that states and lists hold. After a collection, these are the ones that lines remember.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let writers = self.states.iter().map(|state| state.writer);
        writers.filter(|&writer| writer != Record::NO_WRITE).chain(self.lists.records())
    }

    pub(super) fn memory(&self) -> usize {
        self.states.memory() + self.lists.memory()
    }
}

/// The place of a transition in the memo.
#[inline]
fn slot(from: StateId, access: Record) -> usize {
    let bits = from.number().wrapping_mul(0x9e37_79b1) ^ access.mixed();
    (bits >> (32 - MEMO.ilog2())) as usize
}

/// Do locks keep the two apart?
#[inline]
fn excluded(a: Record, b: Record, judge: &impl Judge) -> bool {
    a.is_locked() && b.is_locked() && judge.exclude(a.strand(), b.strand())
}

/// Does `access` race with an earlier one?
#[inline]
fn races(earlier: Record, access: Record, judge: &mut impl Judge) -> bool {
    earlier.conflicts(access) && !excluded(earlier, access, judge) && !judge.precedes(earlier.strand())
}

/// Does whatever conflicts with `earlier` conflict with `later` too?
#[inline]
fn covers(later: Record, earlier: Record, judge: &impl Judge) -> bool {
    later.covers(earlier) && (!later.is_locked() || judge.excludes_no_more(later.strand(), earlier.strand()))
}

/// Do the locks of the two exclude the same?
#[inline]
fn same_locks(a: Record, b: Record, judge: &impl Judge) -> bool {
    match (a.is_locked(), b.is_locked()) {
        (true, true) => {
            judge.excludes_no_more(a.strand(), b.strand()) && judge.excludes_no_more(b.strand(), a.strand())
        }
        (a, b) => a == b,
    }
}
