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
mod lines;
#[cfg(test)]
mod tests;
mod touches;

use crate::access::{AccessKind, Run, Span};
use crate::bytes::{Bytes, LINE_BYTES};
use crate::held::SectionId;
use crate::ids::{LockId, SyncId, TaskId};
use crate::locks::LockMode;

use joint::Joints;
use known::{Known, Visit};
use lines::Lines;
use touches::Touches;

/// So many touches of a line are not looked through.
const FEW: usize = 4;

/// So many locks that are held at once have sections apart.
const APART: usize = 16;

/// What is known of so many lines at a time is fetched before they are looked at.
const BLOCK: usize = 16;

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
    lines: Lines,
    touches: Touches,
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
            lines: Lines::default(),
            touches: Touches::default(),
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
        let Sections { lines, touches, joints, known, .. } = self;
        let mut next = 0;
        for (at, run) in runs(spans) {
            if at >= next {
                next = at + BLOCK;
                let block = &spans[at..next.min(spans.len())];
                let block = block.iter().map(|&span| -> Span { span.into() });
                lines.expect(block.map(|span| span.first.at.line), touches, known);
            }
            let (number, kind, mask) = (run.at.line, Kind::of(&run), run.at.mask);
            for visit in visits {
                let line = lines.of(number, visit.inside.lock);
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
        let Sections { lines, touches, joints, known, .. } = self;
        let joint = joints.enter(visits, known);
        for (_, run) in runs(spans) {
            let (number, kind, mask) = (run.at.line, Kind::of(&run), run.at.mask);
            let find = |lock| visits.binary_search_by_key(&lock, |visit| visit.inside.lock).ok();
            let mut compare = |lines: &mut Lines, visit: &Visit| {
                if let Some(line) = lines.find(number, visit.inside.lock) {
                    line.compare(visit, (kind, mask), touches, known, acquire);
                }
            };
            // By the fewer of the two: the locks that are held, and those of others who have touched the line.
            if lines.count(number, visits.len()) < visits.len() {
                let mine: Vec<usize> = lines.locks(number).filter_map(find).collect();
                mine.into_iter().for_each(|at| compare(lines, &visits[at]));
            } else {
                visits.iter().for_each(|visit| compare(lines, visit));
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
        if self.lines.len() + self.joints.len() == 0 || bytes.is_empty() {
            return;
        }
        let (first, last) = (bytes.start() / LINE_BYTES, (bytes.end() - 1) / LINE_BYTES);
        let Sections { lines, touches, joints, known, .. } = self;
        for number in lines.between(first, last) {
            if let Some(mask) = bytes.within(number) {
                lines.change(number, |line| line.erase(mask, touches, known));
            }
        }
        for number in joints.between(first, last) {
            if let Some(mask) = bytes.within(number) {
                joints.erase_in_line(number, mask, known);
            }
        }
    }

    /// Everything so far precedes everything to come.
    pub(crate) fn clear(&mut self) {
        if self.lines.len() > 0 {
            self.lines.clear();
            self.touches.clear();
        }
        (self.joints, self.known) = (Joints::default(), Known::default());
    }
}

/// What was done, line by line, and the number of its span. What a section has read and written at once it has written: whoever depends on
/// the one depends on the other.
fn runs<S: Copy + Into<Span>>(spans: &[S]) -> impl Iterator<Item = (usize, Run)> {
    let all = spans.iter().enumerate();
    let all = all.flat_map(|(at, &span)| span.into().runs().map(move |run| (at, run)));
    all.filter_map(move |(at, mut run)| {
        // A front end may well have the read of a line beside its write.
        if let Some(Span { first, more: 0 }) = spans.get(at + 1).map(|&span: &S| span.into())
            && Kind::of(&first) == Kind::Write
            && first.at.line == run.at.line
        {
            run.at.mask &= !first.at.mask;
        }
        (run.at.mask != 0).then_some((at, run))
    })
}
