//! The accesses that a segment remembers beside its writer, as shared immutable lists.
//!
//! Mostly these are readers. If isolated sections are read as mutual exclusion, isolated reads and
//! writes are here too: they do not race with each other, so several may have to be remembered.
//!
//! Lines that were treated alike share one list: an array that a thousand tasks read costs a
//! thousand nodes, not a thousand per line. A list only ever points to older nodes, so the live ones can
//! be found, and moved together, in one pass each way.

use super::record::Record;

/// A list; the empty one is [`List::EMPTY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct List(u32);

impl List {
    pub(crate) const EMPTY: List = List(0);

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self == List::EMPTY
    }
}

const WRITE: u32 = 1;
const PLAIN: u32 = 2;

/// ```text
///   len   [ number of records from here on : 30 bits | one is outside of isolated sections? | one is a write? ]
/// ```
#[derive(Clone, Copy)]
struct Node {
    record: Record,
    next: List,
    len: u32,
}

/// Where the lists live.
pub(crate) struct Lists {
    /// Node 0 ends every list.
    nodes: Vec<Node>,
    /// Collect when there are this many.
    collect_at: usize,
}

const FIRST_COLLECTION: usize = 1 << 16;

impl Lists {
    pub(crate) fn new() -> Lists {
        let end = Node { record: Record::NO_WRITE, next: List::EMPTY, len: 0 };
        Lists { nodes: vec![end], collect_at: FIRST_COLLECTION }
    }

    #[inline]
    pub(crate) fn head(&self, list: List) -> Option<(Record, List)> {
        let node = self.nodes[list.0 as usize];
        (!list.is_empty()).then_some((node.record, node.next))
    }

    #[inline]
    pub(crate) fn len(&self, list: List) -> u32 {
        self.nodes[list.0 as usize].len >> 2
    }

    /// May there be something in it that conflicts with `access`? A read need not look at a list of reads, nor an
    /// isolated access at one of isolated accesses; both may be long.
    #[inline]
    pub(crate) fn may_conflict(&self, list: List, access: Record) -> bool {
        let kinds = self.nodes[list.0 as usize].len;
        (access.is_write() || kinds & WRITE != 0) && (!access.is_isolated() || kinds & PLAIN != 0)
    }

    pub(crate) fn iter(&self, mut list: List) -> impl Iterator<Item = Record> {
        std::iter::from_fn(move || {
            let (record, next) = self.head(list)?;
            list = next;
            Some(record)
        })
    }

    pub(crate) fn cons(&mut self, record: Record, next: List) -> List {
        let kinds = self.nodes[next.0 as usize].len & (WRITE | PLAIN);
        let write = if record.is_write() { WRITE } else { 0 };
        let plain = if record.is_isolated() { 0 } else { PLAIN };
        let len = (self.len(next) + 1) << 2 | kinds | write | plain;
        self.nodes.push(Node { record, next, len });
        List((self.nodes.len() - 1) as u32)
    }

    /// The list without the records that `drop` picks.
    pub(crate) fn without(&mut self, list: List, mut drop: impl FnMut(Record) -> bool) -> List {
        let kept: Vec<Record> = self.iter(list).filter(|&record| !drop(record)).collect();
        if kept.len() as u32 == self.len(list) {
            return list;
        }
        kept.into_iter().rev().fold(List::EMPTY, |list, record| self.cons(record, list))
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.truncate(1);
        self.collect_at = FIRST_COLLECTION;
    }

    pub(crate) fn wants_collection(&self) -> bool {
        self.nodes.len() >= self.collect_at
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
                node.next = moved[node.next.0 as usize];
                self.nodes[kept] = node;
                moved[at] = List(kept as u32);
                kept += 1;
            }
        }
        self.nodes.truncate(kept);
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
    use crate::access::AccessKind;
    use crate::ids::{SiteId, StrandId};

    fn record(strand: u32) -> Record {
        Record::new(StrandId(strand), SiteId::new(0).unwrap(), AccessKind::Read, false)
    }

    fn strands(lists: &Lists, list: List) -> Vec<u32> {
        lists.iter(list).map(|record| record.strand().0).collect()
    }

    #[test]
    fn lists_share_tails_and_survive_a_collection() {
        let mut lists = Lists::new();
        let garbage = lists.cons(record(1), List::EMPTY);
        let shared = lists.cons(record(2), List::EMPTY);
        lists.cons(record(3), garbage);
        let mut a = lists.cons(record(4), shared);
        let mut b = lists.cons(record(5), shared);
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
        let isolated = |kind| Record::new(StrandId(2), SiteId::new(0).unwrap(), kind, true);
        let plain_write = Record::new(StrandId(9), SiteId::new(0).unwrap(), AccessKind::Write, false);
        let reads = lists.cons(record(1), List::EMPTY);
        assert!(!lists.may_conflict(reads, record(5)) && lists.may_conflict(reads, plain_write));
        assert!(lists.may_conflict(reads, isolated(AccessKind::Write)));
        let sections = lists.cons(isolated(AccessKind::Write), List::EMPTY);
        assert!(!lists.may_conflict(sections, isolated(AccessKind::Write)));
        assert!(lists.may_conflict(sections, record(5)) && lists.may_conflict(sections, plain_write));
        let both = lists.cons(record(3), sections);
        assert!(lists.may_conflict(both, record(5)) && lists.may_conflict(both, isolated(AccessKind::Write)));
        assert_eq!(lists.len(both), 2);
        let without = lists.without(both, Record::is_write);
        assert!(!lists.may_conflict(without, record(5)));
    }

    #[test]
    fn dropping_nothing_keeps_the_list_itself() {
        let mut lists = Lists::new();
        let list = (0..4).fold(List::EMPTY, |list, strand| lists.cons(record(strand), list));
        assert_eq!(lists.without(list, |_| false), list);
        let odd = lists.without(list, |record| record.strand().0 % 2 == 0);
        assert_eq!(strands(&lists, odd), [3, 1]);
    }
}
