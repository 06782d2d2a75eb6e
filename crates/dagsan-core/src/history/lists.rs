//! The accesses that a segment remembers beside its writer, as shared immutable lists.
//!
//! Mostly these are readers. Atomic writes, and those with locks held, are here too: they may not race with each
//! other, so several may have to be remembered.
//!
//! Lines that were treated alike share one list: an array that a thousand tasks read costs a
//! thousand nodes, not a thousand per line. A list only ever points to older nodes, so the live ones can
//! be found, and moved together, in one pass each way.

use super::record::Record;
use crate::pages::prefetch;

/// A list; the empty one is [`List::EMPTY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct List(u32);

impl List {
    pub(crate) const EMPTY: List = List(0);

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self == List::EMPTY
    }
}

const PLAIN: u32 = 1;
const MIXED: u32 = 2;
const PARALLEL: u32 = 4;
const FLAGS: u32 = 3;

/// How a record is to those that it is put in front of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    /// Was it made with the locks of the next one held?
    pub(super) same_locks: bool,
    /// Does it follow all of them, as far as is known?
    pub(super) follows: bool,
}

/// ```text
///   len   [ number of records from here on : 29 bits | perhaps not a chain? | locks differ? | one is not atomic? ]
/// ```
#[derive(Clone, Copy)]
struct Node {
    record: Record,
    next: List,
    /// The first write from here on: who reads need not look at readers, of which there may be many.
    write: List,
    len: u32,
    /// How long the list was when it was last looked through for what can be dropped.
    clean: u32,
}

/// Where the lists live.
pub(crate) struct Lists {
    /// Node 0 ends every list.
    nodes: Vec<Node>,
    /// Lists made lately, each at the place that its bits choose: their like may be wanted again.
    lately: Box<[List; LATELY]>,
    /// Collect when there are this many.
    collect_at: usize,
}

const LATELY: usize = 256;
/// Lists of up to twice this length are not looked through.
const SHORT: u32 = 4;
const FIRST_COLLECTION: usize = 1 << 16;

impl Lists {
    pub(crate) fn new() -> Lists {
        let end = Node { record: Record::NONE, next: List::EMPTY, write: List::EMPTY, len: 0, clean: SHORT };
        Lists { nodes: vec![end], lately: Box::new([List::EMPTY; LATELY]), collect_at: FIRST_COLLECTION }
    }

    #[inline]
    pub(crate) fn head(&self, list: List) -> Option<(Record, List)> {
        let node = self.nodes[list.0 as usize];
        (!list.is_empty()).then_some((node.record, node.next))
    }

    /// The first node will soon be asked for: it will be in the processor's cache then.
    #[inline]
    pub(super) fn expect(&self, list: List) {
        prefetch(&raw const self.nodes[list.0 as usize]);
    }

    #[inline]
    pub(crate) fn len(&self, list: List) -> u32 {
        self.nodes[list.0 as usize].len >> FLAGS
    }

    /// Has it grown to twice its length since it was last looked through?
    #[inline]
    pub(crate) fn has_doubled(&self, list: List) -> bool {
        self.len(list) >= 2 * self.nodes[list.0 as usize].clean
    }

    /// The list has been looked through.
    pub(crate) fn set_clean(&mut self, list: List) {
        if !list.is_empty() {
            self.nodes[list.0 as usize].clean = self.len(list).max(SHORT);
        }
    }

    /// May there be something in it that conflicts with `access`, locks apart? A read need not look at a list of
    /// reads, nor an atomic access at one of atomic accesses; both may be long.
    #[inline]
    pub(crate) fn may_conflict(&self, list: List, access: Record) -> bool {
        (access.is_write() || self.has_write(list)) && (!access.is_atomic() || !self.is_atomic(list))
    }

    /// Are all atomic that are in it?
    #[inline]
    pub(crate) fn is_atomic(&self, list: List) -> bool {
        self.nodes[list.0 as usize].len & PLAIN == 0
    }

    /// Is there a write in it?
    #[inline]
    pub(crate) fn has_write(&self, list: List) -> bool {
        !self.nodes[list.0 as usize].write.is_empty()
    }

    /// Those that may conflict with `access`: if it reads, the writes.
    pub(crate) fn iter_conflicting(&self, mut list: List, access: Record) -> impl Iterator<Item = Record> {
        let writes_only = !access.is_write();
        std::iter::from_fn(move || {
            if writes_only {
                list = self.nodes[list.0 as usize].write;
            }
            let (record, next) = self.head(list)?;
            list = next;
            Some(record)
        })
    }

    /// Some access of the list, if all in it were made with the same locks held.
    #[inline]
    pub(crate) fn with_common_locks(&self, list: List) -> Option<Record> {
        let node = &self.nodes[list.0 as usize];
        (!list.is_empty() && node.len & MIXED == 0).then_some(node.record)
    }

    /// Does each record in it follow those behind it? Then whoever follows the first follows all.
    #[inline]
    pub(super) fn is_chain(&self, list: List) -> bool {
        self.nodes[list.0 as usize].len & PARALLEL == 0
    }

    pub(crate) fn iter(&self, mut list: List) -> impl Iterator<Item = Record> {
        std::iter::from_fn(move || {
            let (record, next) = self.head(list)?;
            list = next;
            Some(record)
        })
    }

    /// The list with one record more.
    pub(super) fn cons(&mut self, record: Record, next: List, ahead: Ahead) -> List {
        let slot = (record.mixed() ^ next.0.wrapping_mul(0x9e37_79b1)) >> (32 - LATELY.ilog2());
        let like = self.lately[slot as usize];
        let node = &self.nodes[like.0 as usize];
        if node.record == record && node.next == next {
            return like;
        }
        let list = List(self.nodes.len() as u32);
        self.lately[slot as usize] = list;
        let flags = self.nodes[next.0 as usize].len & (PLAIN | MIXED | PARALLEL);
        let write = if record.is_write() { list } else { self.nodes[next.0 as usize].write };
        let plain = if record.is_atomic() { 0 } else { PLAIN };
        let mixed = if ahead.same_locks || next.is_empty() { 0 } else { MIXED };
        let parallel = if ahead.follows || next.is_empty() { 0 } else { PARALLEL };
        let len = (self.len(next) + 1) << FLAGS | flags | plain | mixed | parallel;
        let clean = self.nodes[next.0 as usize].clean;
        self.nodes.push(Node { record, next, write, len, clean });
        list
    }

    /// The records of all lists.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        self.nodes[1..].iter().map(|node| node.record)
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.truncate(1);
        self.lately.fill(List::EMPTY);
        self.collect_at = FIRST_COLLECTION;
    }

    pub(crate) fn wants_collection(&self, more: usize) -> bool {
        self.nodes.len() >= self.collect_at + more
    }

    /// Keeps the nodes that `roots` reach, and tells `roots` where they are now. `roots` must visit
    /// the same lists both times it is called.
    pub(crate) fn collect(&mut self, mut roots: impl FnMut(&mut dyn FnMut(&mut List))) {
        let mut live = vec![false; self.nodes.len()];
        live[0] = true;
        roots(&mut |list| live[list.0 as usize] = true);
        // Nodes point to older nodes: backwards, every node is marked before it is looked at.
        for at in (1..self.nodes.len()).rev() {
            if live[at] {
                live[self.nodes[at].next.0 as usize] = true;
            }
        }
        let mut moved = vec![List::EMPTY; self.nodes.len()];
        let mut kept = 0;
        for at in 0..self.nodes.len() {
            if live[at] {
                let mut node = self.nodes[at];
                moved[at] = List(kept as u32);
                node.next = moved[node.next.0 as usize];
                node.write = moved[node.write.0 as usize];
                self.nodes[kept] = node;
                kept += 1;
            }
        }
        self.nodes.truncate(kept);
        self.lately.fill(List::EMPTY);
        self.collect_at = (kept * 2).max(FIRST_COLLECTION);
        roots(&mut |list| *list = moved[list.0 as usize]);
    }

    pub(crate) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessKind, Run};
    use crate::bytes::Location;
    use crate::ids::{SiteId, StrandId};

    fn access(strand: u32, kind: AccessKind, atomic: bool) -> Record {
        let (at, site) = (Location { line: 0, mask: 1 }, SiteId::new(0).unwrap());
        Record::new(StrandId(strand), &Run { at, kind, site, atomic }, false)
    }

    fn record(strand: u32) -> Record {
        access(strand, AccessKind::Read, false)
    }

    fn cons(lists: &mut Lists, record: Record, next: List, same_locks: bool) -> List {
        lists.cons(record, next, Ahead { same_locks, follows: false })
    }

    fn strands(lists: &Lists, list: List) -> Vec<u32> {
        lists.iter(list).map(|record| record.strand().0).collect()
    }

    #[test]
    fn lists_share_tails_and_survive_a_collection() {
        let mut lists = Lists::new();
        let garbage = cons(&mut lists, record(1), List::EMPTY, true);
        let shared = cons(&mut lists, record(2), List::EMPTY, true);
        cons(&mut lists, record(3), garbage, true);
        let mut a = cons(&mut lists, record(4), shared, true);
        let mut b = cons(&mut lists, record(5), shared, true);
        lists.collect(|visit| {
            visit(&mut a);
            visit(&mut b);
        });
        assert_eq!(lists.nodes.len(), 4);
        assert_eq!(strands(&lists, a), [4, 2]);
        assert_eq!(strands(&lists, b), [5, 2]);
        assert_eq!(lists.len(b), 2);
    }

    #[test]
    fn a_list_knows_what_it_may_conflict_with() {
        let mut lists = Lists::new();
        let atomic = access(2, AccessKind::Write, true);
        let write = access(9, AccessKind::Write, false);
        let reads = cons(&mut lists, record(1), List::EMPTY, true);
        assert!(!lists.may_conflict(reads, record(5)) && lists.may_conflict(reads, write));
        assert!(lists.may_conflict(reads, atomic));
        let atomics = cons(&mut lists, atomic, List::EMPTY, true);
        assert!(!lists.may_conflict(atomics, atomic));
        assert!(lists.may_conflict(atomics, record(5)) && lists.may_conflict(atomics, write));
        let mut both = cons(&mut lists, record(3), atomics, true);
        assert!(lists.may_conflict(both, record(5)) && lists.may_conflict(both, atomic));
        assert_eq!(lists.len(both), 2);
        // Of many readers none is looked at by a reader, also after a collection.
        (10..50).for_each(|strand| both = cons(&mut lists, record(strand), both, true));
        lists.collect(|visit| visit(&mut both));
        assert!(lists.iter_conflicting(both, record(60)).eq([atomic]));
        assert_eq!(lists.iter_conflicting(both, write).count(), 42);
    }

    #[test]
    fn a_list_knows_whether_its_locks_are_the_same() {
        let mut lists = Lists::new();
        assert!(lists.with_common_locks(List::EMPTY).is_none());
        let one = cons(&mut lists, record(1), List::EMPTY, false);
        let two = cons(&mut lists, record(2), one, true);
        assert!(lists.with_common_locks(two).is_some_and(|record| record.strand() == StrandId(2)));
        let mixed = cons(&mut lists, record(3), two, false);
        let more = cons(&mut lists, record(4), mixed, true);
        assert!(lists.with_common_locks(mixed).is_none() && lists.with_common_locks(more).is_none());
    }

    #[test]
    fn a_list_knows_whether_it_is_a_chain() {
        let mut lists = Lists::new();
        let mut put = |strand, next, follows| {
            let list = lists.cons(record(strand), next, Ahead { same_locks: true, follows });
            (list, lists.is_chain(list))
        };
        let (one, alone) = put(1, List::EMPTY, false);
        let (two, ordered) = put(2, one, true);
        let (three, parallel) = put(3, two, false);
        let (_, after) = put(4, three, true);
        assert_eq!([alone, ordered, parallel, after], [true, true, false, false]);
    }
}
