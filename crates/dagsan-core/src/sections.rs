//! Sections of a lock that depend on each other come in the order of the run.
//!
//! Two readings of a lock are common. As mutual exclusion (Eraser), sections have no order: that finds most, and calls it a
//! race if something is handed over under a lock and used outside of it. As happens-before in the order of the run
//! (ThreadSanitizer), every section follows the one before it: no false alarm, but whatever the order of the run hides is missed.
//! This is the middle, what the explorer of schedules does with isolated sections:
//!
//! > If a section of a lock touches a byte that an earlier section of the same lock has touched, one of them writing, then what it
//! > does from there on comes after all of the earlier section. Sections that have nothing to do with each other order nothing.
//!
//! ```text
//!   task 1    x = 1   lock { queue.push(x) } unlock ─┐
//!   task 2                                           └─► lock { queue.pop() } unlock   read x         no race
//! ```
//!
//! Sections that are both shared do not order each other. Nor do two atomic writes, such as those of reference counts: what
//! they order they say themselves, by release and acquire.
//!
//! This file only finds out who depends on whom. The [`crate::Stream`] says it in events that every engine knows which takes atomics:
//! the end of a section releases an object of its own, and whoever depends on it acquires that. So the graph, and the oracle, have
//! these edges as they have all others.
//!
//! For each line and lock it is remembered which sections have touched which bytes, the last ones only: who writes a byte takes the place of
//! those that it follows, once its section is over, and so does who touches all that they have touched. A section that nothing
//! remembers gives its number back. Reads and writes, plain and atomic, are in lists of their own: who reads looks at no
//! reader, of which there may be many, and who takes a lock by its word not at all who have taken it before. Sections of different
//! locks have nothing to do with each other, and many may touch one line: the stack of a task, say. A task that holds many locks at
//! once is in a joint section of them, which is remembered once for each line ([`joint`]).

mod joint;
mod known;
#[cfg(test)]
mod tests;
mod touches;

use rustc_hash::FxHashMap;

use crate::access::{AccessKind, Run, Span};
use crate::bytes::{Bytes, LINE_BYTES};
use crate::held::SectionId;
use crate::ids::{LockId, SyncId, TaskId};
use crate::locks::LockMode;

use joint::Joints;
use known::{Known, Visit};
use touches::{Line, Touches};

/// So many touches of a line are not looked through.
const FEW: usize = 4;

/// So many locks that are held at once have sections apart.
const APART: usize = 16;

/// What a section does to bytes. The numbers are those of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
}

const KINDS: [Kind; 4] = [Kind::Read, Kind::Write, Kind::AtomicRead, Kind::AtomicWrite];

impl Kind {
    fn of(run: &Run) -> Kind {
        match (run.kind, run.atomic) {
            (AccessKind::Read, false) => Kind::Read,
            (AccessKind::Write, false) => Kind::Write,
            (AccessKind::Read, true) => Kind::AtomicRead,
            (AccessKind::Write, true) => Kind::AtomicWrite,
        }
    }

    /// Does this depend on what an earlier section did to the same bytes? All but two atomic writes do, if one writes.
    #[inline]
    fn depends_on(self, earlier: Kind) -> bool {
        use Kind::*;
        match (self, earlier) {
            (AtomicWrite, AtomicWrite) => false,
            (Write | AtomicWrite, _) | (_, Write | AtomicWrite) => true,
            (Read | AtomicRead, Read | AtomicRead) => false,
        }
    }

    /// Does whoever depends on `earlier` depend on this too?
    fn covers(self, earlier: Kind) -> bool {
        use Kind::*;
        matches!(
            (self, earlier),
            (Write, _) | (AtomicWrite, AtomicWrite) | (Read | AtomicRead, Read | AtomicRead)
        )
    }
}

/// A section that a task is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inside {
    pub(crate) lock: LockId,
    pub(crate) mode: LockMode,
    pub(crate) section: SectionId,
    /// Has the task taken the lock itself?
    pub(crate) own: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Sections {
    lines: FxHashMap<(u64, LockId), Line>,
    touches: Touches,
    /// The locks with sections that have touched a line.
    locks: FxHashMap<u64, Vec<LockId>>,
    /// Of tasks that hold more locks at once than `apart`.
    joints: Joints,
    apart: usize,
    known: Known,
    /// Room for the sections that a task is in.
    visits: Vec<Visit>,
}

impl Default for Sections {
    fn default() -> Sections {
        Sections::with_apart(APART)
    }
}

impl Sections {
    /// Keeps the sections of a task apart if it is in so many at once, or fewer.
    pub(crate) fn with_apart(apart: usize) -> Sections {
        Sections {
            lines: FxHashMap::default(),
            touches: Touches::default(),
            locks: FxHashMap::default(),
            joints: Joints::default(),
            apart,
            known: Known::default(),
            visits: Vec::new(),
        }
    }

    /// `task`, which is in these sections, sorted by lock, has done this. Adds to `acquire` what it has to acquire first.
    pub(crate) fn touch<S: Copy + Into<Span>>(
        &mut self,
        task: TaskId,
        inside: &[Inside],
        spans: &[S],
        acquire: &mut Vec<SyncId>,
    ) {
        let mut visits = std::mem::take(&mut self.visits);
        visits.clear();
        visits.extend(inside.iter().map(|inside| self.known.visit(inside, task)));
        if visits.len() > self.apart {
            self.touch_jointly(&visits, spans, acquire);
        } else {
            self.touch_apart(&visits, spans, acquire);
        }
        self.visits = visits;
    }

    fn touch_apart<S: Copy + Into<Span>>(
        &mut self,
        visits: &[Visit],
        spans: &[S],
        acquire: &mut Vec<SyncId>,
    ) {
        let Sections { lines, touches, locks, joints, known, .. } = self;
        for run in runs(spans) {
            let (number, kind, mask) = (run.at.line, Kind::of(&run), run.at.mask);
            for visit in visits {
                let lock = visit.inside.lock;
                let line = lines.entry((number, lock)).or_insert_with(|| {
                    locks.entry(number).or_default().push(lock);
                    Line::default()
                });
                line.touch(visit, (kind, mask), touches, known, acquire);
            }
            joints.compare((number, kind, mask), visits, None, known, acquire);
        }
    }

    /// The same for a task that is in many sections.
    fn touch_jointly<S: Copy + Into<Span>>(
        &mut self,
        visits: &[Visit],
        spans: &[S],
        acquire: &mut Vec<SyncId>,
    ) {
        let Sections { lines, touches, locks, joints, known, .. } = self;
        let joint = joints.enter(visits, known);
        for run in runs(spans) {
            let (number, kind, mask) = (run.at.line, Kind::of(&run), run.at.mask);
            let mut compare = |visit: &Visit| {
                if let Some(line) = lines.get_mut(&(number, visit.inside.lock)) {
                    line.compare(visit, (kind, mask), touches, known, acquire);
                }
            };
            // By the fewer of the two: the locks that are held, and those of others who have touched the line.
            match locks.get(&number) {
                Some(locks) if locks.len() < visits.len() => {
                    let find = |lock| visits.binary_search_by_key(&lock, |visit| visit.inside.lock).ok();
                    locks.iter().filter_map(|&lock| find(lock)).for_each(|at| compare(&visits[at]));
                }
                Some(_) => visits.iter().for_each(compare),
                None => {}
            }
            joints.compare((number, kind, mask), visits, Some(joint), known, acquire);
            joints.add((number, kind, mask), joint, known);
        }
        joints.leave(joint, known);
    }

    /// The section ends; too early, if tasks that are under the lock still run. The object that this releases, unless it has
    /// touched nothing that anybody remembers.
    pub(crate) fn end(&mut self, section: SectionId, early: bool) -> Option<SyncId> {
        if early {
            self.stands_for_nobody(section);
        }
        self.known.end(section)
    }

    /// Tasks in the section may have followed others, but its end does not come after what they did.
    #[cold]
    fn stands_for_nobody(&mut self, section: SectionId) {
        self.touches.stands_for_nobody(section);
        self.known.stands_for_nobody(section);
        self.joints.stands_for_nobody(section);
    }

    /// The bytes become other memory.
    pub(crate) fn erase(&mut self, bytes: Bytes) {
        let lines = (self.locks.len() + self.joints.len()) as u64;
        if lines == 0 || bytes.is_empty() {
            return;
        }
        let (first, last) = (bytes.start() / LINE_BYTES, (bytes.end() - 1) / LINE_BYTES);
        if last - first < lines {
            bytes.lines().for_each(|(line, mask)| self.erase_in_line(line, mask));
        } else {
            let lines = self.locks.keys().copied().chain(self.joints.lines());
            let near: Vec<(u64, u64)> = lines.filter_map(|line| Some((line, bytes.within(line)?))).collect();
            near.into_iter().for_each(|(line, mask)| self.erase_in_line(line, mask));
        }
    }

    fn erase_in_line(&mut self, number: u64, mask: u64) {
        let Sections { lines, touches, locks, joints, known, .. } = self;
        joints.erase_in_line(number, mask, known);
        let Some(of_line) = locks.get_mut(&number) else { return };
        of_line.retain(|&lock| {
            let Some(line) = lines.get_mut(&(number, lock)) else { return false };
            line.erase(mask, touches, known);
            let is_left = line.len() > 0;
            if !is_left {
                lines.remove(&(number, lock));
            }
            is_left
        });
        if of_line.is_empty() {
            locks.remove(&number);
        }
    }

    /// Everything so far precedes everything to come.
    pub(crate) fn clear(&mut self) {
        *self = Sections::with_apart(self.apart);
    }
}

/// What was done, line by line.
fn runs<S: Copy + Into<Span>>(spans: &[S]) -> impl Iterator<Item = Run> {
    spans.iter().flat_map(|&span| span.into().runs()).filter(|run| run.at.mask != 0)
}
