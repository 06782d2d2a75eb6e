//! What a section touches, to decide whether two sections depend on each other.

use dagsan_core::{AccessKind, AccessSet, SiteId};

/// The bytes that a section reads and writes, by line, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    number: u64,
    read: u64,
    write: u64,
    /// Touched in a way that commutes with all that sections do to these bytes.
    commuting: u64,
}

impl Footprint {
    /// Adds what a strand of the section did. `commutes` says of an access whether sections do nothing to
    /// its target but what commutes.
    pub(crate) fn add(&mut self, set: &AccessSet, commutes: &dyn Fn(SiteId) -> bool) {
        for run in set.runs() {
            let at = match self.lines.binary_search_by_key(&run.at.line, |line| line.number) {
                Ok(at) => at,
                Err(at) => {
                    self.lines.insert(at, Line { number: run.at.line, read: 0, write: 0, commuting: 0 });
                    at
                }
            };
            let line = &mut self.lines[at];
            match run.kind {
                _ if commutes(run.site) => line.commuting |= run.at.mask,
                AccessKind::Read => line.read |= run.at.mask,
                AccessKind::Write => line.write |= run.at.mask,
            }
        }
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
            } else {
                let written = x.write & (y.read | y.write | y.commuting) | y.write & (x.read | x.commuting);
                if written | x.commuting & y.read | x.read & y.commuting != 0 {
                    return true;
                }
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
    use dagsan_core::Bytes;

    /// Site 9 commutes.
    fn footprint(accesses: &[(u64, AccessKind, u32)]) -> Footprint {
        let mut set = AccessSet::new();
        for &(start, kind, site) in accesses {
            set.record(Bytes::new(start, 8).unwrap(), kind, SiteId::new(site).unwrap());
        }
        let mut footprint = Footprint::default();
        footprint.add(&set, &|site| site.number() == 9);
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
        assert!(!sum.depends_on(&sum) && sum.depends_on(&read) && read.depends_on(&sum));
    }
}
