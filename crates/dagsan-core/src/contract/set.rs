//! What a strand, or a bag of strands, has done: the lines it has touched, and of each the bytes read and the bytes written; atomic accesses apart
//! from the others, and by sites: which places in the code [meet](crate::race::Meeting) must be known.

use crate::access::{AccessKind, Run};
use crate::bytes::Location;
use crate::ids::SiteId;

/// See the module's documentation. No line comes twice, or of those that were accessed atomically once for each site.
#[derive(Debug, Clone, Default)]
pub struct SmallSet {
    plain: Vec<(u64, Touched)>,
    atomic: Vec<(u64, Touched)>,
}

/// What was done to a line.
#[derive(Debug, Clone, Copy)]
pub struct Touched {
    /// The bytes read; some of them may be written, too.
    pub read: u64,
    /// The bytes written.
    pub written: u64,
    /// The first read, and the first write, if there were any. If they are atomic, all were made there.
    pub sites: [SiteId; 2],
}

/// One side of a meeting: where, and what it does.
pub type Side = (SiteId, AccessKind);

impl Touched {
    /// What was read, and what was written, and where.
    #[inline]
    pub(super) fn sides(&self) -> [(u64, Side); 2] {
        let [reader, writer] = self.sites;
        [(self.read, (reader, AccessKind::Read)), (self.written, (writer, AccessKind::Write))]
    }

    /// Does it conflict with what another strand did to the line?
    #[inline]
    pub(super) fn conflicts(&self, other: &Touched) -> bool {
        (self.written & (other.read | other.written)) | (self.read & other.written) != 0
    }

    #[inline]
    pub(super) fn absorb(&mut self, other: &Touched) {
        if self.read == 0 {
            self.sites[0] = other.sites[0];
        }
        if self.written == 0 {
            self.sites[1] = other.sites[1];
        }
        self.read |= other.read;
        self.written |= other.written;
    }

    /// What of it was done to these bytes.
    #[inline]
    pub(super) fn to(&self, bytes: u64) -> Touched {
        Touched { read: self.read & bytes, written: self.written & bytes, ..*self }
    }

    /// Was nothing done?
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        self.read | self.written == 0
    }
}

impl SmallSet {
    /// Has it none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.atomic.is_empty()
    }

    /// Has it no atomic accesses?
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.atomic.is_empty()
    }

    /// How many lines it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.plain.len() + self.atomic.len()
    }

    /// Removes all.
    #[inline]
    pub fn clear(&mut self) {
        self.plain.clear();
        self.atomic.clear();
    }

    /// Its lines, without atomic accesses.
    #[inline]
    pub fn plain(&self) -> impl Iterator<Item = (u64, &Touched)> {
        self.plain.iter().map(|(line, touched)| (*line, touched))
    }

    /// Its atomic accesses to lines.
    #[inline]
    pub fn atomic(&self) -> impl Iterator<Item = (u64, &Touched)> {
        self.atomic.iter().map(|(line, touched)| (*line, touched))
    }

    /// Adds what was done to a line that is not among its lines, and not atomically.
    #[inline]
    pub fn push(&mut self, line: u64, touched: Touched) {
        self.plain.push((line, touched));
    }

    /// Adds an access.
    pub fn add_run(&mut self, run: &Run) {
        let Run { at: Location { line, mask }, kind, site, atomic } = *run;
        let (read, written) = match kind {
            AccessKind::Read => (mask, 0),
            AccessKind::Write => (0, mask),
        };
        let touched = Touched { read, written, sites: [site; 2] };
        if atomic {
            return self.add_atomic(line, touched);
        }
        match self.plain.iter_mut().find(|(known, _)| *known == line) {
            Some((_, known)) => known.absorb(&touched),
            None => self.push(line, touched),
        }
    }

    /// Adds atomic accesses of one site to a line.
    fn add_atomic(&mut self, line: u64, touched: Touched) {
        let same = |(known, other): &&mut (u64, Touched)| *known == line && other.sites == touched.sites;
        match self.atomic.iter_mut().rev().find(same) {
            Some((_, known)) => known.absorb(&touched),
            None => self.atomic.push((line, touched)),
        }
    }

    /// Adds what was done to a line, which is the latest if it is among its lines.
    pub(super) fn add_latest(&mut self, line: u64, touched: Touched, atomic: bool) {
        let into = if atomic { &mut self.atomic } else { &mut self.plain };
        // Lines have few sites.
        let mut latest = into.iter_mut().rev().take_while(|(known, _)| *known == line);
        match latest.find(|(_, known)| !atomic || known.sites == touched.sites) {
            Some((_, known)) => known.absorb(&touched),
            None => into.push((line, touched)),
        }
    }

    /// Adds what was done to lines, any of which may come twice, or be among its lines.
    pub(super) fn add_all(&mut self, lines: &[(u64, Touched)]) {
        if lines.is_empty() {
            return;
        }
        self.plain.extend(lines.iter().filter(|(_, touched)| !touched.is_nothing()));
        self.plain.sort_by_key(|&(line, _)| line);
        self.plain.dedup_by(|(line, touched), (before, all)| {
            let same = line == before;
            if same {
                all.absorb(touched);
            }
            same
        });
    }

    /// Its accesses: no byte comes twice, and a write covers a read; then the atomic ones.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        let plain = self.plain().map(|(line, touched)| (line, touched, false));
        let all = plain.chain(self.atomic().map(|(line, touched)| (line, touched, true)));
        let runs = |(line, touched, atomic): (u64, &Touched, bool)| {
            let Touched { read, written, sites: [reader, writer] } = *touched;
            let write = (written, AccessKind::Write, writer);
            let read = (if atomic { read } else { read & !written }, AccessKind::Read, reader);
            [write, read].map(|(mask, kind, site)| Run { at: Location { line, mask }, kind, site, atomic })
        };
        all.flat_map(runs).filter(|run| run.at.mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_do_not_conflict_and_writes_do_on_common_bytes() {
        let touched = |read, written| Touched { read, written, sites: [SiteId::FIRST; 2] };
        let read = touched(0b11, 0);
        assert!(!read.conflicts(&touched(0b11, 0)) && !read.conflicts(&touched(0, 0b100)));
        assert!(read.conflicts(&touched(0, 0b10)) && touched(0, 0b1).conflicts(&read));
    }

    #[test]
    fn a_write_covers_a_read() {
        let mut set = SmallSet::default();
        for (kind, mask) in [(AccessKind::Read, 0b11), (AccessKind::Write, 0b10)] {
            set.add_run(&Run { at: Location { line: 7, mask }, kind, site: SiteId::FIRST, atomic: false });
        }
        let runs: Vec<_> = set.runs().map(|run| (run.at.mask, run.kind)).collect();
        assert_eq!((set.len(), &runs[..]), (1, &[(0b10, AccessKind::Write), (0b1, AccessKind::Read)][..]));
    }
}
