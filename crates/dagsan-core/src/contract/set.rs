//! A small set of accesses: the lines it touches, and of each the bytes read and the bytes written.
//!
//! Sets of tiny tasks have a handful of lines, so a search looks at all of them, in an array of their own.

use std::ops::Range;

use crate::access::{AccessKind, Run};
use crate::bytes::Location;
use crate::ids::SiteId;

/// No set has more lines.
pub const MOST: usize = 32;

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct SmallSet {
    len: usize,
    lines: [u64; MOST],
    touched: [Touched; MOST],
}

/// What was done to a line.
#[derive(Debug, Clone, Copy)]
pub struct Touched {
    /// The bytes read; some of them may be written, too.
    pub read: u64,
    /// The bytes written.
    pub written: u64,
    /// The first read, and the first write, if there were any.
    pub sites: [SiteId; 2],
}

impl Touched {
    const NOTHING: Touched = Touched { read: 0, written: 0, sites: [SiteId::FIRST; 2] };

    /// Does it conflict with what another strand did to the line?
    #[inline]
    fn conflicts(&self, other: &Touched) -> bool {
        (self.written & (other.read | other.written)) | (self.read & other.written) != 0
    }

    #[inline]
    fn absorb(&mut self, other: &Touched) {
        if self.read == 0 {
            self.sites[0] = other.sites[0];
        }
        if self.written == 0 {
            self.sites[1] = other.sites[1];
        }
        self.read |= other.read;
        self.written |= other.written;
    }
}

impl Default for SmallSet {
    fn default() -> SmallSet {
        SmallSet { len: 0, lines: [0; MOST], touched: [Touched::NOTHING; MOST] }
    }
}

impl SmallSet {
    /// Has it none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many lines it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Removes all.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Its lines.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Touched)> {
        self.lines[..self.len].iter().copied().zip(&self.touched[..self.len])
    }

    /// What was done to a line. The latest lines are the likeliest.
    #[inline]
    fn find(&self, line: u64) -> Option<usize> {
        self.lines[..self.len].iter().rposition(|&known| known == line)
    }

    /// Is one of these lines among its lines?
    #[inline]
    pub(super) fn touches(&self, lines: &Range<u64>) -> bool {
        self.lines[..self.len].iter().any(|line| lines.contains(line))
    }

    /// Adds what was done to a line, unless there is no room.
    #[inline]
    #[must_use]
    pub fn add(&mut self, line: u64, touched: &Touched) -> bool {
        if let Some(at) = self.find(line) {
            self.touched[at].absorb(touched);
            return true;
        }
        if self.len == MOST {
            return false;
        }
        (self.lines[self.len], self.touched[self.len]) = (line, *touched);
        self.len += 1;
        true
    }

    /// Adds an access, unless there is no room.
    #[must_use]
    pub fn add_run(&mut self, run: &Run) -> bool {
        let Run { at: Location { line, mask }, kind, site, .. } = *run;
        let (read, written) = match kind {
            AccessKind::Read => (mask, 0),
            AccessKind::Write => (0, mask),
        };
        self.add(line, &Touched { read, written, sites: [site; 2] })
    }

    /// Does it conflict with a set of another strand?
    #[inline]
    pub fn conflicts(&self, other: &SmallSet) -> bool {
        !self.is_empty()
            && other
                .iter()
                .any(|(line, touched)| self.find(line).is_some_and(|at| self.touched[at].conflicts(touched)))
    }

    /// Is there room for another set? It may say no where there is, if the two have lines in common.
    #[inline]
    pub fn fits(&self, other: &SmallSet, limit: usize) -> bool {
        self.len + other.len <= limit
    }

    /// Adds a set that fits.
    #[inline]
    pub fn absorb(&mut self, other: &SmallSet) {
        for (line, touched) in other.iter() {
            let added = self.add(line, touched);
            debug_assert!(added, "the set was said to fit");
        }
    }

    /// Removes the bytes that `gone` picks of a line.
    #[inline]
    pub fn remove(&mut self, gone: impl Fn(u64) -> u64) {
        let mut kept = 0;
        for at in 0..self.len {
            let (line, mut touched) = (self.lines[at], self.touched[at]);
            let gone = gone(line);
            touched.read &= !gone;
            touched.written &= !gone;
            if touched.read | touched.written != 0 {
                (self.lines[kept], self.touched[kept]) = (line, touched);
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Its accesses: no byte comes twice, and a write covers a read.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        let runs = |(line, touched): (u64, &Touched)| {
            let Touched { read, written, sites: [reader, writer] } = *touched;
            let write = (written, AccessKind::Write, writer);
            let read = (read & !written, AccessKind::Read, reader);
            [write, read].map(|(mask, kind, site)| Run {
                at: Location { line, mask },
                kind,
                site,
                atomic: false,
            })
        };
        self.iter().flat_map(runs).filter(|run| run.at.mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(read: u64, written: u64) -> Touched {
        Touched { read, written, ..Touched::NOTHING }
    }

    fn set(lines: &[(u64, u64, u64)]) -> SmallSet {
        let mut set = SmallSet::default();
        for &(line, read, written) in lines {
            assert!(set.add(line, &touched(read, written)));
        }
        set
    }

    #[test]
    fn reads_do_not_conflict_and_writes_do_on_common_bytes() {
        let read = set(&[(7, 0b11, 0)]);
        assert!(!read.conflicts(&set(&[(7, 0b11, 0), (8, 0, 0b11)])));
        assert!(!read.conflicts(&set(&[(7, 0, 0b100)])));
        assert!(read.conflicts(&set(&[(8, 1, 0), (7, 0, 0b10)])));
        assert!(set(&[(7, 0, 1)]).conflicts(&read));
        assert!(!SmallSet::default().conflicts(&read));
    }

    #[test]
    fn a_full_set_takes_lines_that_it_has() {
        let mut full = set(&(0..MOST as u64).map(|line| (line, 1, 0)).collect::<Vec<_>>());
        assert!(!full.add(99, &touched(1, 0)));
        assert!(full.add(5, &touched(0, 2)));
        assert_eq!(full.runs().filter(|run| run.at.line == 5).count(), 2);
        assert!(!full.fits(&set(&[(5, 1, 0)]), MOST));
    }

    #[test]
    fn what_is_gone_leaves_no_empty_line() {
        let mut some = set(&[(1, 0b1, 0), (2, 0b1, 0b10), (3, 0, 0b1)]);
        some.remove(|line| if line == 3 { 0 } else { 0b1 });
        let left: Vec<_> = some.runs().map(|run| (run.at.line, run.at.mask, run.kind)).collect();
        assert_eq!(left, [(2, 0b10, AccessKind::Write), (3, 0b1, AccessKind::Write)]);
    }
}
