//! One remembered access, in eight bytes.

use crate::access::AccessKind;
use crate::ids::{SiteId, StrandId};

/// Who accessed, from where, how.
///
/// ```text
///   63 ………………………… 32 31 ……………… 2    1        0
///   [    strand     |    site   | isolated | write ]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Record(u64);

const WRITE: u64 = 1;
const ISOLATED: u64 = 2;

impl Record {
    /// No write: what a segment that was only read has for a writer.
    pub(crate) const NO_WRITE: Record = Record(0);

    #[inline]
    pub(crate) fn new(strand: StrandId, site: SiteId, kind: AccessKind, isolated: bool) -> Record {
        let write = if kind == AccessKind::Write { WRITE } else { 0 };
        let isolated = if isolated { ISOLATED } else { 0 };
        Record(u64::from(strand.0) << 32 | u64::from(site.number()) << 2 | isolated | write)
    }

    #[inline]
    pub(crate) fn strand(self) -> StrandId {
        StrandId((self.0 >> 32) as u32)
    }

    pub(crate) fn site(self) -> SiteId {
        SiteId::new((self.0 as u32) >> 2).expect("30 bits")
    }

    #[inline]
    pub(crate) fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }

    pub(crate) fn kind(self) -> AccessKind {
        if self.is_write() { AccessKind::Write } else { AccessKind::Read }
    }

    #[inline]
    pub(crate) fn is_isolated(self) -> bool {
        self.0 & ISOLATED != 0
    }

    /// A write outside of isolated sections: it covers whatever comes before it.
    #[inline]
    pub(crate) fn is_plain_write(self) -> bool {
        self.0 & (WRITE | ISOLATED) == WRITE
    }

    /// Would the two race if they were parallel?
    #[inline]
    pub(crate) fn conflicts(self, other: Record) -> bool {
        (self.0 | other.0) & WRITE != 0 && self.0 & other.0 & ISOLATED == 0
    }

    /// Does whatever conflicts with `earlier` conflict with this one too? If `earlier` also precedes
    /// this one, it need not be remembered: a later access parallel to `earlier` is parallel to this.
    #[inline]
    pub(crate) fn covers(self, earlier: Record) -> bool {
        (self.is_write() || !earlier.is_write()) && (!self.is_isolated() || earlier.is_isolated())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covering_means_conflicting_with_at_least_as_much() {
        let all: Vec<Record> = [AccessKind::Read, AccessKind::Write]
            .into_iter()
            .flat_map(|kind| [false, true].map(|isolated| (kind, isolated)))
            .map(|(kind, isolated)| Record::new(StrandId(7), SiteId::new(9).unwrap(), kind, isolated))
            .collect();
        for &a in &all {
            for &b in &all {
                let plain = all.iter().all(|&c| !a.conflicts(c) || b.conflicts(c));
                assert_eq!(b.covers(a), plain);
            }
        }
    }

    #[test]
    fn the_fields_come_back() {
        let site = SiteId::new(SiteId::MAX).unwrap();
        let record = Record::new(StrandId(u32::MAX), site, AccessKind::Write, true);
        assert_eq!(record.strand(), StrandId(u32::MAX));
        assert_eq!(record.site(), site);
        assert!(record.is_write() && record.is_isolated() && !record.is_plain_write());
    }
}
