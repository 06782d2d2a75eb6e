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
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::access::{AccessKind, Run, Span};
use crate::bytes::{Bytes, LINE_BYTES};
use crate::held::SectionId;
use crate::ids::{LockId, SyncId, TaskId};
use crate::locks::LockMode;

use joint::Joints;

/// Objects of sections have the numbers from here on, those of front ends the ones below.
const FIRST_SYNC: u32 = 1 << 31;

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

/// A section has touched bytes of a line.
#[derive(Debug, Clone, Copy)]
struct Touch {
    section: SectionId,
    mode: LockMode,
    mask: u64,
    /// A section that follows this one and has written these bytes since. When it is over, it stands for this one.
    replaced_by: Option<SectionId>,
}

/// Those who have done the same to a line.
#[derive(Debug, Default)]
struct Touches {
    list: Vec<Touch>,
    /// What all of them have touched, and perhaps more.
    mask: u64,
}

/// Who has touched a line in sections of one lock, by kind.
#[derive(Debug, Default)]
struct Line {
    touches: [Touches; 4],
    /// How many touches there were when it was last looked for those that others stand for.
    clean: usize,
}

/// A section that has touched something.
#[derive(Debug)]
struct Section {
    sync: SyncId,
    mode: LockMode,
    /// Who has taken the lock, if the first touch was its own.
    by: Option<TaskId>,
    ended: bool,
    /// How many touches there are of it.
    touches: u32,
    /// The last to have heard of its end.
    told: Option<TaskId>,
    /// The last exclusive section that follows it. When that is over, it stands for this one where it has touched the same.
    followed_by: Option<SectionId>,
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
    /// The locks with sections that have touched a line.
    locks: FxHashMap<u64, Vec<LockId>>,
    /// Of tasks that hold more locks at once than `apart`.
    joints: Joints,
    apart: usize,
    known: Known,
}

impl Default for Sections {
    fn default() -> Sections {
        Sections::with_apart(APART)
    }
}

/// The sections that lines remember.
#[derive(Debug, Default)]
struct Known {
    sections: FxHashMap<SectionId, Section>,
    free: Vec<SyncId>,
    next: u32,
}

impl Known {
    /// A line remembers a section that `task` is in.
    fn remember(&mut self, inside: &Inside, task: TaskId) {
        let Known { sections, free, next } = self;
        let &Inside { mode, section, own, .. } = inside;
        let new = || {
            let sync = free.pop().unwrap_or_else(|| {
                *next += 1;
                SyncId(FIRST_SYNC + *next - 1)
            });
            let by = own.then_some(task);
            Section { sync, mode, by, ended: false, touches: 0, told: None, followed_by: None }
        };
        sections.entry(section).or_insert_with(new).touches += 1;
    }

    /// A line remembers it once more.
    fn remember_again(&mut self, section: SectionId) {
        if let Some(known) = self.sections.get_mut(&section) {
            known.touches += 1;
        }
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

    /// `task` has touched, in this section, what an earlier one of the same lock has touched, and one of them writes. If that was
    /// another section, and is over, the task has to acquire it. Does this section follow it then, and stands for it one day?
    fn depend(
        &mut self,
        earlier: SectionId,
        task: TaskId,
        inside: &Inside,
        acquire: &mut Vec<SyncId>,
    ) -> bool {
        // Tasks under a lock go on in their section when its holder changes the mode; its end does not come after that.
        let goes_on = self.sections.get(&inside.section).is_none_or(|now| !now.ended);
        let Some(known) = self.sections.get_mut(&earlier) else { return false };
        let excludes = known.mode.max(inside.mode) == LockMode::Exclusive;
        if earlier == inside.section || !excludes || !known.ended {
            return false;
        }
        if known.by != Some(task) && known.told != Some(task) {
            known.told = Some(task);
            acquire.push(known.sync);
        }
        let follows = inside.mode == LockMode::Exclusive && goes_on;
        if follows {
            known.followed_by = Some(inside.section);
        }
        follows
    }

    /// Has the task that was in the one section, which is over, been in the other one since, in the same mode?
    fn is_later(&self, earlier: SectionId, later: SectionId) -> bool {
        let (Some(earlier), Some(later)) = (self.sections.get(&earlier), self.sections.get(&later)) else {
            return false;
        };
        earlier.ended && earlier.mode == later.mode && earlier.by.is_some() && earlier.by == later.by
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
    /// Keeps the sections of a task apart if it is in so many at once, or fewer.
    pub(crate) fn with_apart(apart: usize) -> Sections {
        Sections {
            lines: FxHashMap::default(),
            locks: FxHashMap::default(),
            joints: Joints::default(),
            apart,
            known: Known::default(),
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
        if inside.len() > self.apart {
            return self.touch_jointly(task, inside, spans, acquire);
        }
        for run in runs(spans) {
            let kind = Kind::of(&run);
            for inside in inside {
                let line = self.lines.entry((run.at.line, inside.lock)).or_insert_with(|| {
                    self.locks.entry(run.at.line).or_default().push(inside.lock);
                    Line::default()
                });
                line.touch(task, inside, kind, run.at.mask, &mut self.known, acquire);
            }
            let touched = (run.at.line, kind, run.at.mask);
            self.joints.compare(touched, task, inside, None, &mut self.known, acquire);
        }
    }

    /// The same for a task that is in many sections.
    fn touch_jointly<S: Copy + Into<Span>>(
        &mut self,
        task: TaskId,
        inside: &[Inside],
        spans: &[S],
        acquire: &mut Vec<SyncId>,
    ) {
        let Sections { lines, locks, joints, known, .. } = self;
        let joint = joints.enter(task, inside, known);
        for run in runs(spans) {
            let (number, kind, mask) = (run.at.line, Kind::of(&run), run.at.mask);
            let mut compare = |inside: &Inside| {
                if let Some(line) = lines.get_mut(&(number, inside.lock)) {
                    line.compare(task, inside, kind, mask, known, acquire);
                }
            };
            // By the fewer of the two: the locks that are held, and those of others who have touched the line.
            match locks.get(&number) {
                Some(locks) if locks.len() < inside.len() => {
                    let find = |lock| inside.binary_search_by_key(&lock, |inside| inside.lock).ok();
                    locks.iter().filter_map(|&lock| find(lock)).for_each(|at| compare(&inside[at]));
                }
                Some(_) => inside.iter().for_each(compare),
                None => {}
            }
            joints.compare((number, kind, mask), task, inside, Some(joint), known, acquire);
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
        for touch in self.lines.values_mut().flat_map(|line| &mut line.touches).flat_map(|all| &mut all.list)
        {
            touch.replaced_by = touch.replaced_by.filter(|&by| by != section);
        }
        for known in self.known.sections.values_mut() {
            known.followed_by = known.followed_by.filter(|&by| by != section);
        }
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
        let Sections { lines, locks, joints, known, .. } = self;
        joints.erase_in_line(number, mask, known);
        let Some(of_line) = locks.get_mut(&number) else { return };
        of_line.retain(|&lock| {
            let Some(line) = lines.get_mut(&(number, lock)) else { return false };
            line.erase(mask, known);
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

impl Line {
    fn len(&self) -> usize {
        self.touches.iter().map(|touches| touches.list.len()).sum()
    }

    /// The bytes become other memory.
    fn erase(&mut self, mask: u64, known: &mut Known) {
        for touches in &mut self.touches {
            touches.list.retain_mut(|touch| {
                touch.mask &= !mask;
                if touch.mask == 0 {
                    known.forget(touch.section);
                }
                touch.mask != 0
            });
            touches.mask &= !mask;
        }
    }

    fn touch(
        &mut self,
        task: TaskId,
        inside: &Inside,
        kind: Kind,
        mask: u64,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        self.compare(task, inside, kind, mask, known, acquire);
        self.touches[kind as usize].add(task, inside, mask, known);
        if self.len() >= 2 * self.clean.max(FEW) {
            self.drop_followed(known);
            self.clean = self.len();
        }
    }

    /// Looks for sections that this one depends on.
    fn compare(
        &mut self,
        task: TaskId,
        inside: &Inside,
        kind: Kind,
        mask: u64,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        for earlier in KINDS.into_iter().filter(|&earlier| kind.depends_on(earlier)) {
            let touches = &mut self.touches[earlier as usize];
            if touches.mask & mask != 0 {
                touches.compare(task, inside, kind, mask, known, acquire);
            }
        }
    }

    /// Drops touches that later ones stand for, since their sections follow them and are over, or are of the same task.
    fn drop_followed(&mut self, known: &mut Known) {
        self.touches.iter_mut().for_each(|touches| touches.drop_earlier(known));
        let follower = |touch: &Touch| {
            let by = known.sections.get(&touch.section)?.followed_by?;
            known.is_over(by).then_some(by)
        };
        let all = self.touches.iter().flat_map(|touches| &touches.list);
        let mut followers: FxHashMap<SectionId, [u64; 4]> =
            all.filter_map(|touch| Some((follower(touch)?, [0; 4]))).collect();
        for (kind, touches) in self.touches.iter().enumerate() {
            for touch in &touches.list {
                if let Some(masks) = followers.get_mut(&touch.section) {
                    masks[kind] |= touch.mask;
                }
            }
        }
        let mut dropped = Vec::new();
        for (kind, touches) in KINDS.into_iter().zip(&mut self.touches) {
            touches.list.retain(|touch| {
                let masks = follower(touch).map_or([0; 4], |by| followers[&by]);
                let covering = KINDS.into_iter().zip(masks).filter(|(later, _)| later.covers(kind));
                let is_covered = touch.mask & !covering.fold(0, |all, (_, mask)| all | mask) == 0;
                dropped.extend(is_covered.then_some(touch.section));
                !is_covered
            });
        }
        dropped.into_iter().for_each(|section| known.forget(section));
    }
}

impl Touches {
    /// Looks for sections that this one depends on, of those in the list.
    fn compare(
        &mut self,
        task: TaskId,
        inside: &Inside,
        kind: Kind,
        mask: u64,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        self.list.retain(|touch| {
            let stands = touch.replaced_by.is_some_and(|by| known.is_over(by));
            if stands {
                known.forget(touch.section);
            }
            !stands
        });
        let mut replaced = Vec::new();
        for touch in self.list.iter_mut().filter(|touch| touch.mask & mask != 0) {
            if known.depend(touch.section, task, inside, acquire) {
                // Whoever depends on these bytes later depends on this section too.
                let part = if kind == Kind::Write { touch.mask & mask } else { 0 };
                if part == touch.mask {
                    touch.replaced_by = Some(inside.section);
                } else if part != 0 {
                    touch.mask &= !part;
                    replaced.push(Touch { mask: part, replaced_by: Some(inside.section), ..*touch });
                }
            }
        }
        replaced.iter().for_each(|touch| known.remember_again(touch.section));
        // Before the others, for the last may still grow.
        self.list.splice(..0, replaced);
        self.mask = self.list.iter().fold(0, |mask, touch| mask | touch.mask);
    }

    /// Drops those that later ones of the same task stand for, once these are over: who depends on the earlier may as well
    /// depend on them.
    fn drop_earlier(&mut self, known: &mut Known) {
        let mut later: FxHashMap<(LockMode, TaskId), u64> = FxHashMap::default();
        let mut dropped = Vec::new();
        let list = std::mem::take(&mut self.list);
        let mut kept: Vec<Touch> = list
            .into_iter()
            .rev()
            .filter(|touch| {
                let section = known.sections.get(&touch.section);
                let Some(by) = section.and_then(|section| section.by) else { return true };
                if !known.is_over(touch.section) {
                    return true;
                }
                let mask = later.entry((touch.mode, by)).or_default();
                let stands = touch.mask & !*mask == 0;
                *mask |= touch.mask;
                dropped.extend(stands.then_some(touch.section));
                !stands
            })
            .collect();
        kept.reverse();
        self.list = kept;
        dropped.into_iter().for_each(|section| known.forget(section));
    }

    /// A task that is in this section has done this.
    fn add(&mut self, task: TaskId, inside: &Inside, mask: u64, known: &mut Known) {
        self.mask |= mask;
        let &Inside { mode, section, own, .. } = inside;
        let by = own.then_some(task);
        if let Some(last) = self.list.last_mut().filter(|last| last.replaced_by.is_none()) {
            if last.section == section {
                last.mask |= mask;
                return;
            }
            // Once this section is over, it stands for an earlier one of the same task. So did the earlier one for those before it.
            let earlier = known.sections.get(&last.section);
            if earlier.is_some_and(|earlier| earlier.ended && own && earlier.by == by)
                && (last.mode == mode && last.mask & !mask == 0)
            {
                let before = last.section;
                last.replaced_by = Some(section);
                if let Some(at) = self.list.len().checked_sub(2)
                    && self.list[at].replaced_by == Some(before)
                {
                    known.forget(self.list.remove(at).section);
                }
            }
        }
        self.list.push(Touch { section, mode, mask, replaced_by: None });
        known.remember(inside, task);
    }
}
