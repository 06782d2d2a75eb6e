//! Read and write sets of nodes, and the objects their bytes belong to.
//!
//! ```text
//!   node ──► set, by (line, object):   (line 3, object 0)  w 0x0f  site 1  strand 7  task 2
//!                                      (line 3, object 2)  r 0xf0  site 4  strand 7  task 2
//! ```
//!
//! Memory that is freed and used again is another *object*: each byte has the number of the last erasure
//! of it, 0 if there was none. Accesses to different objects do not conflict, so a set is
//! sorted by line and object, and two sets are compared by one walk over both.

use rustc_hash::FxHashMap;

use crate::access::{AccessKind, Run};
use crate::bytes::{Bytes, Location};
use crate::error::Error;
use crate::ids::{SiteId, StrandId, TaskId};
use crate::race::Access;
use crate::stream::Strand;

/// Bytes of one object that a strand read or wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) at: Location,
    pub(super) object: u32,
    pub(super) kind: AccessKind,
    pub(super) atomic: bool,
    pub(super) site: SiteId,
    pub(super) strand: StrandId,
    pub(super) task: TaskId,
}

impl Touch {
    /// What a set is sorted by.
    pub(super) fn key(&self) -> (u64, u32) {
        (self.at.line, self.object)
    }

    fn conflicts(&self, other: &Touch) -> bool {
        (self.kind == AccessKind::Write || other.kind == AccessKind::Write) && !(self.atomic && other.atomic)
    }

    /// The touch as a side of a race.
    pub(super) fn access(&self) -> Access {
        let Touch { strand, task, site, kind, atomic, .. } = *self;
        Access { strand, task, site, kind, isolated: false, locked: false, shares_lock: false, atomic }
    }
}

/// Sorts a set for [`conflicts`].
pub(super) fn sort(set: &mut [Touch]) {
    set.sort_by_key(Touch::key);
}

/// Calls `race` for every two touches of the sorted sets `a` and `b` that conflict, with their common bytes,
/// which are then taken out of `b`.
pub(super) fn conflicts(a: &[Touch], b: &mut [Touch], mut race: impl FnMut(&Touch, &Touch, Location)) {
    let mut start = 0;
    for y in b {
        let key = y.key();
        start += a[start..].iter().take_while(|x| x.key() < key).count();
        for x in a[start..].iter().take_while(|x| x.key() == key) {
            let mask = x.at.mask & y.at.mask;
            if mask != 0 && x.conflicts(y) {
                race(x, y, Location { line: x.at.line, mask });
                y.at.mask &= !mask;
            }
        }
    }
}

/// One set for all: of every byte a write if there is one, else a read. Whatever conflicts with a touch that
/// is left out conflicts with one that is kept for its byte: a plain write covers everything, an atomic write or
/// a plain read whatever is atomic and reads.
pub(super) fn union(mut touches: Vec<Touch>) -> Vec<Touch> {
    touches.sort_by_key(|touch| (touch.key(), touch.kind == AccessKind::Read, touch.atomic));
    let (mut key, mut plain_write, mut atomic_write, mut plain_read) = (None, 0, 0, 0);
    touches.retain_mut(|touch| {
        if key != Some(touch.key()) {
            (key, plain_write, atomic_write, plain_read) = (Some(touch.key()), 0, 0, 0);
        }
        let mask = &mut touch.at.mask;
        match (touch.kind, touch.atomic) {
            (AccessKind::Write, false) => keep_new(mask, plain_write, &mut plain_write),
            (AccessKind::Write, true) => keep_new(mask, plain_write | atomic_write, &mut atomic_write),
            (AccessKind::Read, false) => keep_new(mask, plain_write | plain_read, &mut plain_read),
            // It covers others of its kind.
            (AccessKind::Read, true) => {
                let covered = plain_write | atomic_write | plain_read;
                keep_new(mask, covered, &mut plain_read);
            }
        }
        *mask != 0
    });
    touches
}

/// Takes what is covered out of the mask, and adds the rest to what is kept.
fn keep_new(mask: &mut u64, covered: u64, kept: &mut u64) {
    *mask &= !covered;
    *kept |= *mask;
}

/// Which object each byte belongs to.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Of every line that was touched, the bytes that do not belong to object 0.
    lines: FxHashMap<u64, Vec<(u64, u32)>>,
    erasures: u32,
}

impl Objects {
    /// Adds what `strand` did to `set`.
    pub(super) fn record(&mut self, strand: &Strand, runs: &[Run], set: &mut Vec<Touch>) {
        for run in runs {
            let mut add = |mask, object| {
                if mask != 0 {
                    let at = Location { line: run.at.line, mask };
                    let Run { kind, site, atomic, .. } = *run;
                    let (strand, task) = (strand.id, strand.task);
                    set.push(Touch { at, object, kind, atomic, site, strand, task });
                }
            };
            let mut rest = run.at.mask;
            for &(mask, object) in self.lines.entry(run.at.line).or_default().iter() {
                add(rest & mask, object);
                rest &= !mask;
            }
            add(rest, 0);
        }
    }

    /// The bytes become a new object.
    pub(super) fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.erasures = self.erasures.checked_add(1).ok_or(Error::TooMany("erasures"))?;
        let object = self.erasures;
        let split = |parts: &mut Vec<(u64, u32)>, erased: u64| {
            parts.retain_mut(|(mask, _)| {
                *mask &= !erased;
                *mask != 0
            });
            parts.push((erased, object));
        };
        // Walk the smaller of the two: the lines of the range or the touched lines.
        if bytes.len() / crate::bytes::LINE_BYTES > self.lines.len() as u64 {
            for (&line, parts) in &mut self.lines {
                if let Some(erased) = bytes.within(line) {
                    split(parts, erased);
                }
            }
        } else {
            for (line, erased) in bytes.lines() {
                if let Some(parts) = self.lines.get_mut(&line) {
                    split(parts, erased);
                }
            }
        }
        Ok(())
    }

    /// Nothing that was touched so far matters any more.
    pub(super) fn forget(&mut self) {
        self.lines.clear();
    }

    pub(super) fn memory(&self) -> usize {
        self.lines.capacity() * size_of::<(u64, Vec<(u64, u32)>)>()
            + self.lines.values().map(|parts| parts.capacity() * size_of::<(u64, u32)>()).sum::<usize>()
    }
}

/// The memory that a set holds.
pub(super) fn memory(set: &Vec<Touch>) -> usize {
    set.capacity() * size_of::<Touch>()
}

#[cfg(test)]
mod tests {
    use super::AccessKind::{Read, Write};
    use super::*;

    fn touch(line: u64, mask: u64, object: u32, kind: AccessKind, strand: u32) -> Touch {
        let (at, site) = (Location { line, mask }, SiteId::new(0).unwrap());
        Touch { at, object, kind, atomic: false, site, strand: StrandId(strand), task: TaskId::MAIN }
    }

    #[test]
    fn two_sets_conflict_where_lines_objects_and_bytes_meet_and_one_writes() {
        let a = [touch(1, 0b1111, 0, Read, 0), touch(2, 1, 0, Write, 0), touch(4, 1, 3, Write, 0)];
        let mut b = [
            touch(1, 0b0011, 0, Read, 1),
            touch(1, 0b1100, 0, Write, 1),
            touch(2, 2, 0, Write, 1),
            touch(4, 1, 2, Write, 1),
        ];
        let mut found = Vec::new();
        conflicts(&a, &mut b, |x, y, at| found.push((x.kind, y.kind, at.line, at.mask)));
        assert_eq!(found, [(Read, Write, 1, 0b1100)]);
        conflicts(&a, &mut b, |x, y, _| panic!("{x:?} and {y:?} have been found before"));
    }

    #[test]
    fn a_union_keeps_a_write_of_every_written_byte_and_a_read_of_the_others() {
        let all = vec![
            touch(1, 0b1111, 0, Read, 0),
            touch(1, 0b0110, 0, Write, 1),
            touch(1, 0b0011, 0, Write, 2),
            touch(1, 0b1001, 5, Read, 3),
        ];
        let kept: Vec<_> = union(all).iter().map(|t| (t.object, t.kind, t.at.mask, t.strand.0)).collect();
        assert_eq!(
            kept,
            [(0, Write, 0b0110, 1), (0, Write, 0b0001, 2), (0, Read, 0b1000, 0), (5, Read, 0b1001, 3)]
        );
    }

    #[test]
    fn a_union_keeps_what_atomic_touches_do_not_cover() {
        let atomic = |mask, kind, strand| Touch { atomic: true, ..touch(1, mask, 0, kind, strand) };
        let all = vec![
            atomic(0b1_1111, Read, 0),
            atomic(0b0_1111, Read, 1),
            atomic(0b0_0111, Write, 2),
            touch(1, 0b0_1011, 0, Read, 3),
            touch(1, 0b0_0001, 0, Write, 4),
        ];
        let kept: Vec<_> = union(all).iter().map(|t| (t.kind, t.atomic, t.at.mask, t.strand.0)).collect();
        assert_eq!(
            kept,
            [
                (Write, false, 0b0_0001, 4),
                (Write, true, 0b0_0110, 2),
                (Read, false, 0b0_1010, 3),
                (Read, true, 0b1_0000, 0),
            ]
        );
    }

    #[test]
    fn erased_bytes_are_other_objects() {
        let strand = Strand {
            id: StrandId(0),
            task: TaskId::MAIN,
            isolated: false,
            locks: &[],
            quiescent: false,
            depth_first: true,
        };
        let at = Location { line: 1, mask: 0xff };
        let runs = [Run { at, kind: Write, site: SiteId::new(0).unwrap(), atomic: false }];
        let mut objects = Objects::default();
        let parts = |objects: &mut Objects| {
            let mut set = Vec::new();
            objects.record(&strand, &runs, &mut set);
            set.iter().map(|touch| (touch.at.mask, touch.object)).collect::<Vec<_>>()
        };
        assert_eq!(parts(&mut objects), [(0xff, 0)]);
        objects.erase(Bytes::new(0, 68).unwrap()).unwrap();
        assert_eq!(parts(&mut objects), [(0x0f, 1), (0xf0, 0)]);
        objects.erase(Bytes::new(66, 1 << 20).unwrap()).unwrap();
        assert_eq!(parts(&mut objects), [(0x03, 1), (0xfc, 2)]);
    }
}
