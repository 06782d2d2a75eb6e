//! One remembered access, in eight bytes.

use crate::access::{AccessKind, Run};
use crate::ids::{SiteId, StrandId};

/// Who accessed, from where, how.
///
/// ```text
///   63 ………………………… 32 31 ……………… 3    2        1        0
///   [    strand     |    site   | atomic | locked | write ]
/// ```
///
/// Which locks were held is a matter of the strand, and asked for only where both sides are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Record(u64);

const WRITE: u64 = 1;
const LOCKED: u64 = 2;
const ATOMIC: u64 = 4;

impl Record {
    /// No write: what a segment that was only read has for a writer.
    pub(crate) const NO_WRITE: Record = Record(0);

    /// No access at all: no strand has the largest number.
    pub(super) const NONE: Record = Record(u64::MAX);

    /// The access `run` of `strand`. `locked` says whether the strand held locks.
    #[inline]
    pub(crate) fn new(strand: StrandId, run: &Run, locked: bool) -> Record {
        let write = if run.kind == AccessKind::Write { WRITE } else { 0 };
        let locked = if locked { LOCKED } else { 0 };
        let atomic = if run.atomic { ATOMIC } else { 0 };
        Record(u64::from(strand.0) << 32 | u64::from(run.site.number()) << 3 | atomic | locked | write)
    }

    /// Some bits that depend on all others, to choose a place by.
    #[inline]
    pub(super) fn mixed(self) -> u32 {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    #[inline]
    pub(crate) fn strand(self) -> StrandId {
        StrandId((self.0 >> 32) as u32)
    }

    pub(crate) fn site(self) -> SiteId {
        SiteId::new((self.0 as u32) >> 3).expect("29 bits")
    }

    #[inline]
    pub(crate) fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }

    pub(crate) fn kind(self) -> AccessKind {
        if self.is_write() { AccessKind::Write } else { AccessKind::Read }
    }

    #[inline]
    pub(crate) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    #[inline]
    pub(crate) fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    /// Not atomic, and without locks.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & (LOCKED | ATOMIC) == 0
    }

    /// A write, not atomic and without locks: it covers whatever comes before it.
    #[inline]
    pub(crate) fn is_plain_write(self) -> bool {
        self.0 & (WRITE | LOCKED | ATOMIC) == WRITE
    }

    /// Would the two race if they were parallel, and no lock kept them apart?
    #[inline]
    pub(crate) fn conflicts(self, other: Record) -> bool {
        (self.0 | other.0) & WRITE != 0 && self.0 & other.0 & ATOMIC == 0
    }

    /// Does one of two atomic accesses write?
    #[inline]
    pub(crate) fn meets(self, other: Record) -> bool {
        (self.0 | other.0) & WRITE != 0 && self.0 & other.0 & ATOMIC != 0
    }

    /// Does whatever conflicts with `earlier` conflict with this one too, if this one's locks exclude no more? If
    /// `earlier` also precedes this one, it need not be remembered: a later access parallel to `earlier` is
    /// parallel to this.
    #[inline]
    pub(crate) fn covers(self, earlier: Record) -> bool {
        (self.is_write() || !earlier.is_write())
            && (!self.is_atomic() || earlier.is_atomic())
            && (!self.is_locked() || earlier.is_locked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Location;

    fn record(kind: AccessKind, atomic: bool, locked: bool) -> Record {
        let (at, site) = (Location { line: 0, mask: 1 }, SiteId::new(SiteId::MAX).unwrap());
        Record::new(StrandId(u32::MAX), &Run { at, kind, site, atomic }, locked)
    }

    #[test]
    fn covering_means_conflicting_with_at_least_as_much() {
        let kinds = [AccessKind::Read, AccessKind::Write];
        let all: Vec<Record> =
            kinds.iter().flat_map(|&kind| [false, true].map(|atomic| record(kind, atomic, false))).collect();
        for &a in &all {
            for &b in &all {
                let plain = all.iter().all(|&c| !a.conflicts(c) || b.conflicts(c));
                assert_eq!(b.covers(a), plain);
            }
        }
        let (locked, free) =
            (record(AccessKind::Write, false, true), record(AccessKind::Write, false, false));
        assert!(free.covers(locked) && locked.covers(locked) && !locked.covers(free));
    }

    #[test]
    fn the_fields_come_back() {
        let all = record(AccessKind::Write, true, true);
        assert_eq!((all.strand(), all.site().number()), (StrandId(u32::MAX), SiteId::MAX));
        assert!(all.is_write() && all.is_locked() && all.is_atomic() && !all.is_plain_write());
        let none = record(AccessKind::Read, false, false);
        assert!(!none.is_write() && !none.is_locked() && !none.is_atomic() && !none.is_plain_write());
        assert!(record(AccessKind::Write, false, false).is_plain_write());
    }
}
