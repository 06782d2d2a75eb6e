//! What running tasks have done to their own stacks: a list, since no other task will have to be compared with it here.
//!
//! ```text
//!   levels    bottom │ task A │ scope │ task B │ scope
//!   entries            [ ……… A ……………… │ ………… B ………… ]      each level has those from its start on; a task's go with it
//! ```
//!
//! **Why that is enough.** Contracted tasks run depth first, and the stack of one is other memory before it begins and when it has ended. So while it
//! is there, only the task itself and what it has started touch it. An access by the task itself is made when all of its tasks have ended, and those that
//! it starts later follow it: nothing that comes can conflict with the access, until it is told. What was there before and can conflict are accesses by
//! tasks that it has not joined; so those are looked for in the table, if there are any. When the task ends, nobody needs to know. If it
//! is told before, it may go on beside others that find its stack by means that are not fork-join; for these the list is told.
//!
//! Whole lines only: what shares a line with the stack of another goes to the table.

use std::ops::Range;

use super::set::Touched;
use crate::bytes::Bytes;

/// Some bits of a line choose which entry is likely to have it.
const LATELY: usize = 128;

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Frames {
    entries: Vec<(u64, Touched)>,
    /// Which entry had such a line last; it may be gone.
    lately: Box<[u32; LATELY]>,
}

impl Frames {
    pub(super) fn new() -> Frames {
        Frames { entries: Vec::new(), lately: [0; LATELY].into() }
    }

    /// How many entries there are: where those of the next level begin.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The task of the innermost level, whose entries begin there, has done this to a line of its stack.
    #[inline]
    pub(super) fn add(&mut self, start: usize, line: u64, touched: &Touched) {
        let lately = &mut self.lately[line as usize % LATELY];
        match self.entries.get_mut(*lately as usize) {
            Some((known, all)) if *known == line && *lately as usize >= start => all.absorb(touched),
            _ => {
                *lately = self.entries.len() as u32;
                self.entries.push((line, *touched));
            }
        }
    }

    /// The entries from there on are those of a task that has ended.
    #[inline]
    pub(super) fn end(&mut self, start: usize) {
        self.entries.truncate(start);
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries from one place to another. A line may come twice.
    pub(super) fn part(&self, range: Range<usize>) -> &[(u64, Touched)] {
        &self.entries[range]
    }

    /// The bytes of a line that were accessed.
    pub(super) fn touched(&self, line: u64) -> u64 {
        let of_line = self.entries.iter().filter(|(known, _)| *known == line);
        of_line.fold(0, |all, (_, touched)| all | touched.read | touched.written)
    }

    /// Has something been done to one of these lines?
    pub(super) fn touch(&self, lines: &Range<u64>) -> bool {
        self.entries.iter().any(|(line, _)| lines.contains(line))
    }

    /// Whatever was done to these bytes is of no interest any more.
    pub(super) fn forget(&mut self, bytes: Bytes) {
        for (line, touched) in &mut self.entries {
            *touched = touched.to(!bytes.within(*line).unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SiteId;

    #[test]
    fn a_line_is_found_again_among_those_of_its_level_only() {
        let touched = |read, written| Touched { read, written, sites: [SiteId::FIRST; 2] };
        let lines = |frames: &Frames| -> Vec<_> {
            frames.part(0..frames.len()).iter().map(|(line, done)| (*line, done.read, done.written)).collect()
        };
        let mut frames = Frames::new();
        frames.add(0, 5, &touched(1, 0));
        frames.add(0, 5, &touched(2, 4));
        // At the place of the other.
        frames.add(0, 5 + LATELY as u64, &touched(8, 0));
        let inner = frames.len();
        frames.add(inner, 5, &touched(0, 16));
        let all = [(5, 3, 4), (5 + LATELY as u64, 8, 0), (5, 0, 16)];
        assert_eq!(lines(&frames), all);
        assert_eq!(frames.touched(5), 23);
        frames.end(inner);
        assert_eq!(lines(&frames), all[..2]);
        // The place of the one that has gone says nothing any more.
        frames.add(0, 5, &touched(32, 0));
        assert_eq!(lines(&frames), [all[0], all[1], (5, 32, 0)]);
        frames.forget(Bytes::new(5 * 64, 2).unwrap());
        assert_eq!(frames.touched(5), 36);
    }
}
