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
//! For each line it is remembered which sections have touched which bytes, the last ones only: who writes a byte takes the place of
//! those that it follows, once its section is over, and so does who touches all that they have touched. A section that nothing
//! remembers gives its number back.

use rustc_hash::FxHashMap;

use crate::access::{AccessKind, Run, Span};
use crate::bytes::{Bytes, LINE_BYTES};
use crate::held::SectionId;
use crate::ids::{LockId, SyncId, TaskId};
use crate::locks::LockMode;

/// Objects of sections have the numbers from here on, those of front ends the ones below.
const FIRST_SYNC: u32 = 1 << 31;

/// What a section did to some bytes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Masks {
    read: u64,
    written: u64,
    atomic_read: u64,
    atomic_written: u64,
}

impl Masks {
    fn of(run: &Run) -> Masks {
        let mut masks = Masks::default();
        let mask = match (run.kind, run.atomic) {
            (AccessKind::Read, false) => &mut masks.read,
            (AccessKind::Write, false) => &mut masks.written,
            (AccessKind::Read, true) => &mut masks.atomic_read,
            (AccessKind::Write, true) => &mut masks.atomic_written,
        };
        *mask = run.at.mask;
        masks
    }

    #[inline]
    fn writes(self) -> bool {
        self.written | self.atomic_written != 0
    }

    /// Does a byte depend on what another section did? All but two atomic writes do, if one writes.
    #[inline]
    fn depends_on(self, earlier: Masks) -> bool {
        let reads = (self.read | self.atomic_read, earlier.read | earlier.atomic_read);
        let writes = (self.written | self.atomic_written, earlier.written | earlier.atomic_written);
        let conflict = writes.0 & (reads.1 | earlier.written) | writes.1 & (reads.0 | self.written);
        conflict != 0
    }

    /// Does whoever depends on `earlier` depend on this too?
    fn covers(self, earlier: Masks) -> bool {
        let reads = self.read | self.atomic_read | self.written;
        let uncovered = (earlier.read | earlier.atomic_read) & !reads
            | earlier.written & !self.written
            | earlier.atomic_written & !(self.atomic_written | self.written);
        uncovered == 0
    }

    fn without(self, mask: u64) -> Masks {
        Masks {
            read: self.read & !mask,
            written: self.written & !mask,
            atomic_read: self.atomic_read & !mask,
            atomic_written: self.atomic_written & !mask,
        }
    }

    fn within(self, mask: u64) -> Masks {
        self.without(!mask)
    }

    fn and(self, other: Masks) -> Masks {
        Masks {
            read: self.read | other.read,
            written: self.written | other.written,
            atomic_read: self.atomic_read | other.atomic_read,
            atomic_written: self.atomic_written | other.atomic_written,
        }
    }
}

/// A section has touched a line.
#[derive(Debug, Clone, Copy)]
struct Touch {
    section: SectionId,
    lock: LockId,
    mode: LockMode,
    masks: Masks,
    /// A section that follows this one and has written these bytes since. When it is over, it stands for this one.
    replaced_by: Option<SectionId>,
    /// The last section that follows this one. When it is over, it stands for this one if it has touched the same bytes.
    followed_by: Option<SectionId>,
}

/// Who has touched a line.
#[derive(Debug, Default)]
struct Line {
    /// Those that wrote.
    writers: Vec<Touch>,
    /// Those that only read: many may have, and only who writes must look at them.
    readers: Vec<Touch>,
    /// What all of them did, and perhaps more.
    all: Masks,
}

/// A section that has touched something.
#[derive(Debug)]
struct Section {
    sync: SyncId,
    /// Who has taken the lock, if the first touch was its own.
    by: Option<TaskId>,
    ended: bool,
    /// How many touches there are of it.
    touches: u32,
    /// The last to have heard of its end.
    told: Option<TaskId>,
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
#[derive(Debug, Default)]
pub(crate) struct Sections {
    lines: FxHashMap<u64, Line>,
    known: Known,
}

/// The sections that lines remember.
#[derive(Debug, Default)]
struct Known {
    sections: FxHashMap<SectionId, Section>,
    free: Vec<SyncId>,
    next: u32,
}

impl Known {
    /// A line remembers a section that `by` is in.
    fn remember(&mut self, section: SectionId, by: Option<TaskId>) {
        let Known { sections, free, next } = self;
        let new = || {
            let sync = free.pop().unwrap_or_else(|| {
                *next += 1;
                SyncId(FIRST_SYNC + *next - 1)
            });
            Section { sync, by, ended: false, touches: 0, told: None }
        };
        sections.entry(section).or_insert_with(new).touches += 1;
    }

    /// A line remembers it no longer.
    fn forget(&mut self, section: SectionId) {
        if let Some(known) = self.sections.get_mut(&section) {
            known.touches -= 1;
            self.drop_unused(section);
        }
    }

    /// The section ends. What that releases, unless nobody remembers that it has touched anything.
    fn end(&mut self, section: SectionId) -> Option<SyncId> {
        let known = self.sections.get_mut(&section)?;
        known.ended = true;
        let sync = known.sync;
        (!self.drop_unused(section)).then_some(sync)
    }

    fn is_over(&self, section: SectionId) -> bool {
        self.sections.get(&section).is_none_or(|known| known.ended)
    }

    fn drop_unused(&mut self, section: SectionId) -> bool {
        let unused = |known: &Section| known.touches == 0 && known.ended;
        if !self.sections.get(&section).is_some_and(unused) {
            return false;
        }
        self.free.extend(self.sections.remove(&section).map(|known| known.sync));
        true
    }
}

impl Sections {
    /// `task`, which is in these sections, has done this. Adds to `acquire` what it has to acquire first.
    pub(crate) fn touch<S: Copy + Into<Span>>(
        &mut self,
        task: TaskId,
        inside: &[Inside],
        spans: &[S],
        acquire: &mut Vec<SyncId>,
    ) {
        for &span in spans {
            for run in span.into().runs().filter(|run| run.at.mask != 0) {
                let line = self.lines.entry(run.at.line).or_default();
                for inside in inside {
                    line.touch(task, inside, Masks::of(&run), &mut self.known, acquire);
                }
            }
        }
    }

    /// The section ends. The object that this releases, unless it has touched nothing that anybody remembers.
    pub(crate) fn end(&mut self, section: SectionId) -> Option<SyncId> {
        self.known.end(section)
    }

    /// The bytes become other memory.
    pub(crate) fn erase(&mut self, bytes: Bytes) {
        if self.lines.is_empty() || bytes.is_empty() {
            return;
        }
        let (first, last) = (bytes.start() / LINE_BYTES, (bytes.end() - 1) / LINE_BYTES);
        if last - first < self.lines.len() as u64 {
            bytes.lines().for_each(|(line, mask)| self.erase_in_line(line, mask));
        } else {
            let near = self.lines.keys().filter_map(|&line| Some((line, bytes.within(line)?)));
            let near: Vec<(u64, u64)> = near.collect();
            near.into_iter().for_each(|(line, mask)| self.erase_in_line(line, mask));
        }
    }

    fn erase_in_line(&mut self, number: u64, mask: u64) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        for touches in [&mut line.writers, &mut line.readers] {
            touches.retain_mut(|touch| {
                touch.masks = touch.masks.without(mask);
                let kept = touch.masks != Masks::default();
                if !kept {
                    self.known.forget(touch.section);
                }
                kept
            });
        }
        line.all = line.all.without(mask);
        if line.writers.is_empty() && line.readers.is_empty() {
            self.lines.remove(&number);
        }
    }

    /// Everything so far precedes everything to come.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.known = Known::default();
    }
}

impl Line {
    fn touch(
        &mut self,
        task: TaskId,
        inside: &Inside,
        masks: Masks,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        if masks.depends_on(self.all) {
            self.compare(task, inside, masks, known, acquire);
        }
        self.all = self.all.and(masks);
        let by = inside.own.then_some(task);
        let touches = if masks.writes() { &mut self.writers } else { &mut self.readers };
        if let Some(last) = touches.last_mut() {
            if last.section == inside.section && last.replaced_by.is_none() {
                last.masks = last.masks.and(masks);
                return;
            }
            // An earlier section of the same task ends before this one does: who depends on it may as well depend on this.
            let alike = last.lock == inside.lock
                && last.mode == inside.mode
                && last.masks.and(masks) == masks
                && last.replaced_by.is_none();
            let earlier = known.sections.get(&last.section);
            if alike && by.is_some() && earlier.is_some_and(|earlier| earlier.by == by && earlier.ended) {
                known.forget(last.section);
                touches.pop();
            }
        }
        let Inside { lock, mode, section, .. } = *inside;
        touches.push(Touch { section, lock, mode, masks, replaced_by: None, followed_by: None });
        known.remember(section, by);
    }

    /// Looks for sections that this one depends on.
    fn compare(
        &mut self,
        task: TaskId,
        inside: &Inside,
        masks: Masks,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        let writes = masks.writes();
        self.drop_followed(writes, known);
        let mut replaced = Vec::new();
        // Who only reads depends on no reader.
        let readers = if writes { &mut self.readers[..] } else { &mut [] };
        for touch in self.writers.iter_mut().chain(readers) {
            if touch.section != inside.section
                && touch.lock == inside.lock
                && touch.mode.max(inside.mode) == LockMode::Exclusive
                && masks.depends_on(touch.masks)
                && let Some(earlier) = known.sections.get_mut(&touch.section)
                && earlier.ended
            {
                if earlier.by != Some(task) && earlier.told != Some(task) {
                    earlier.told = Some(task);
                    acquire.push(earlier.sync);
                }
                // Whoever depends on these bytes later depends on this section too, unless both are shared.
                let replaced_bytes = if inside.mode == LockMode::Exclusive { masks.written } else { 0 };
                let part = touch.masks.within(replaced_bytes);
                if part == touch.masks {
                    touch.replaced_by = Some(inside.section);
                } else if part != Masks::default() {
                    touch.masks = touch.masks.without(replaced_bytes);
                    earlier.touches += 1;
                    replaced.push(Touch { masks: part, replaced_by: Some(inside.section), ..*touch });
                }
            }
            if touch.lock == inside.lock
                && inside.mode == LockMode::Exclusive
                && let Some(earlier) = known.sections.get(&touch.section)
                && earlier.ended
                && (earlier.by == Some(task) || earlier.told == Some(task))
            {
                touch.followed_by = Some(inside.section);
            }
        }
        // Before those that replace them, for the last may still grow.
        self.writers.splice(..0, replaced);
        if writes {
            let all = self.writers.iter().chain(&self.readers);
            self.all = all.fold(Masks::default(), |all, touch| all.and(touch.masks));
        }
    }

    /// Drops touches that later ones stand for; of readers only if `all` are to be looked at.
    fn drop_followed(&mut self, all: bool, known: &mut Known) {
        // What those have touched that follow others and are over.
        let mut followers: FxHashMap<SectionId, Masks> = FxHashMap::default();
        let readers = if all { &self.readers[..] } else { &[] };
        for touch in self.writers.iter().chain(readers) {
            followers
                .extend(touch.followed_by.filter(|&by| known.is_over(by)).map(|by| (by, Masks::default())));
        }
        if !followers.is_empty() {
            for touch in self.writers.iter().chain(&self.readers) {
                if let Some(masks) = followers.get_mut(&touch.section) {
                    *masks = masks.and(touch.masks);
                }
            }
        }
        let stands_in = |touch: &Touch| {
            let follower = touch.followed_by.and_then(|by| followers.get(&by));
            touch.replaced_by.is_some_and(|by| known.is_over(by))
                || follower.is_some_and(|masks| masks.covers(touch.masks))
        };
        let writers: Vec<bool> = self.writers.iter().map(stands_in).collect();
        let readers: Vec<bool> = if all { self.readers.iter().map(stands_in).collect() } else { Vec::new() };
        for (touches, dropped) in [(&mut self.writers, writers), (&mut self.readers, readers)] {
            let mut dropped = dropped.into_iter();
            touches.retain(|touch| {
                let drop = dropped.next() == Some(true);
                if drop {
                    known.forget(touch.section);
                }
                !drop
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Location;
    use crate::ids::SiteId;

    const LOCK: LockId = LockId(4);

    /// Task `n` in section `n` of the lock.
    fn inside(number: u32, mode: LockMode) -> [Inside; 1] {
        [Inside { lock: LOCK, mode, section: SectionId(number), own: true }]
    }

    fn run(byte: u64, kind: AccessKind, atomic: bool) -> [Run; 1] {
        let at = Location { line: byte / 64, mask: 1 << (byte % 64) };
        [Run { at, kind, site: SiteId::new(0).unwrap(), atomic }]
    }

    /// A whole section of task `n`; how many it depends on that were not known to it.
    fn section(sections: &mut Sections, number: u32, mode: LockMode, runs: &[[Run; 1]]) -> usize {
        let mut acquire = Vec::new();
        for run in runs {
            sections.touch(TaskId(number), &inside(number, mode), run, &mut acquire);
        }
        sections.end(SectionId(number));
        acquire.len()
    }

    const EXCLUSIVE: LockMode = LockMode::Exclusive;
    const READ: AccessKind = AccessKind::Read;
    const WRITE: AccessKind = AccessKind::Write;

    #[test]
    fn sections_depend_on_those_that_wrote_what_they_touch_or_touched_what_they_write() {
        let mut sections = Sections::default();
        assert_eq!(section(&mut sections, 1, EXCLUSIVE, &[run(5, WRITE, false), run(9, READ, false)]), 0);
        assert_eq!(section(&mut sections, 2, EXCLUSIVE, &[run(9, READ, false), run(6, WRITE, false)]), 0);
        assert_eq!(section(&mut sections, 3, EXCLUSIVE, &[run(5, READ, false)]), 1);
        assert_eq!(section(&mut sections, 4, EXCLUSIVE, &[run(9, WRITE, false)]), 2);
        assert_eq!(section(&mut sections, 5, EXCLUSIVE, &[run(5, WRITE, false)]), 2, "1 and 3");
        assert_eq!(section(&mut sections, 6, EXCLUSIVE, &[run(5, READ, false)]), 1, "5");
    }

    #[test]
    fn readers_and_atomic_updates_have_no_order() {
        let mut sections = Sections::default();
        section(&mut sections, 1, LockMode::Shared, &[run(5, WRITE, false), run(7, WRITE, true)]);
        assert_eq!(section(&mut sections, 2, LockMode::Shared, &[run(5, WRITE, false)]), 0);
        assert_eq!(section(&mut sections, 3, EXCLUSIVE, &[run(7, WRITE, true)]), 0);
        assert_eq!(section(&mut sections, 4, EXCLUSIVE, &[run(7, READ, true)]), 2);
        assert_eq!(section(&mut sections, 5, EXCLUSIVE, &[run(5, READ, false)]), 2);
    }

    #[test]
    fn what_is_over_is_not_remembered() {
        let mut sections = Sections::default();
        for number in 1..1000 {
            let later = usize::from(number > 1);
            assert_eq!(section(&mut sections, number, EXCLUSIVE, &[run(5, WRITE, false)]), later);
            assert!(sections.known.sections.len() <= 2 && sections.lines[&0].writers.len() <= 2);
        }
        assert_eq!(sections.known.next, 2, "numbers are used again");
        // A section writes one byte and reads another, as one does that looks whether a mutex is poisoned.
        for number in 1000..2000 {
            section(&mut sections, number, EXCLUSIVE, &[run(130, WRITE, false), run(131, READ, true)]);
            let line = &sections.lines[&2];
            assert!(line.writers.len() + line.readers.len() <= 6);
        }
        for number in 2000..3000 {
            let mut acquire = Vec::new();
            let inside = inside(number, EXCLUSIVE);
            sections.touch(TaskId(7), &inside, &run(70, READ, false), &mut acquire);
            sections.end(SectionId(number));
            assert_eq!(sections.lines[&1].readers.len(), 1, "of a task that reads again and again, the last");
        }
        sections.erase(Bytes::new(0, 1 << 40).unwrap());
        assert!(sections.known.sections.is_empty() && sections.lines.is_empty());
        assert_eq!(section(&mut sections, 5000, EXCLUSIVE, &[run(5, READ, false)]), 0);
        sections.erase(Bytes::new(5, 1).unwrap());
        assert!(sections.known.sections.is_empty());
    }
}
