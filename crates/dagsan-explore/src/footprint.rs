//! What a section touches, to decide whether two sections depend on each other.

use dagsan_core::{AccessKind, Run, SiteId};

/// The bytes that a section reads and writes, by line, sorted. What commutes with all that sections do to a byte is
/// left out: it makes no difference to any other section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    lines: Vec<Line>,
}

/// Bytes of a line that are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) read: u64,
    pub(crate) write: u64,
}

impl Line {
    /// Is there a byte that both touch, one of them writing?
    pub(crate) fn conflicts(&self, other: &Line) -> bool {
        (self.write & (other.read | other.write)) | (self.read & other.write) != 0
    }
}

impl Footprint {
    /// Adds what a strand of the section did. `commutes` says of an access whether sections do nothing to
    /// its target but what commutes.
    pub(crate) fn add(&mut self, runs: &[Run], commutes: &dyn Fn(SiteId) -> bool) {
        for run in runs.iter().filter(|run| !commutes(run.site)) {
            let at = match self.lines.binary_search_by_key(&run.at.line, |line| line.number) {
                Ok(at) => at,
                Err(at) => {
                    self.lines.insert(at, Line { number: run.at.line, read: 0, write: 0 });
                    at
                }
            };
            match run.kind {
                AccessKind::Read => self.lines[at].read |= run.at.mask,
                AccessKind::Write => self.lines[at].write |= run.at.mask,
            }
        }
    }

    /// The lines.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Footprint>() + self.lines.capacity() * size_of::<Line>()
    }

    /// Does the order of two sections matter?
    pub(crate) fn depends_on(&self, other: &Footprint) -> bool {
        let (mut a, mut b) = (self.lines.iter().peekable(), other.lines.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            if x.number < y.number {
                a.next();
            } else if x.number > y.number {
                b.next();
            } else if x.conflicts(y) {
                return true;
            } else {
                a.next();
                b.next();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dagsan_core::{AccessSet, Bytes};

    /// Site 9 commutes.
    fn footprint(accesses: &[(u64, AccessKind, u32)]) -> Footprint {
        let mut set = AccessSet::new();
        for &(start, kind, site) in accesses {
            set.record(Bytes::new(start, 8).unwrap(), kind, SiteId::new(site).unwrap());
        }
        let mut footprint = Footprint::default();
        footprint.add(&set.runs().collect::<Vec<_>>(), &|site| site.number() == 9);
        footprint
    }

    #[test]
    fn sections_depend_on_each_other_by_a_write_to_a_common_byte() {
        use AccessKind::{Read, Write};
        let read = footprint(&[(0, Read, 1), (640, Read, 1)]);
        let write = footprint(&[(640, Write, 2)]);
        let sum = footprint(&[(0, Write, 9)]);
        let elsewhere = footprint(&[(8, Write, 3), (648, Write, 3)]);
        assert!(read.depends_on(&write) && write.depends_on(&read) && write.depends_on(&write));
        assert!(!read.depends_on(&read) && !read.depends_on(&elsewhere) && !elsewhere.depends_on(&read));
        assert!(!sum.depends_on(&sum) && !sum.depends_on(&write));
    }
}
