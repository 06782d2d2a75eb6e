//! Tiny tasks, many at a time: a front end's spawns and joins, contracted before the stream hears of them.
//!
//! A task costs the stream, the order engine and the history most of a microsecond, whatever it does. But what has been started
//! and joined in a scope is a *module* of the computation graph: seen from outside, all of its strands have the same
//! order. So they can be told as one strand that has done all they did, if none of them race with each other. The same holds
//! for tasks that were started one after the other and are not joined yet, and for what their parent did before: one
//! strand for the parent, one task for the children.
//!
//! ```text
//!   level    an open scope, or a task that runs in it; the last is the innermost
//!            ├─ serial     S-bag: what precedes whatever the level does next: its own strands, what it has joined
//!            ├─ parallel   P-bag: what its tasks did that are not joined yet: one group
//!            └─ left       P-bag: what children of these did, which their parents have not waited for: only the finish around joins them
//!
//!   own accesses     against the P-bags of all levels; then into serial        sync          parallel into serial
//!   a task ends      its bags into the parallel one of the level below,        a scope ends  its bags into the serial one
//!                    what it leaves behind into the left one                                 of the level below
//! ```
//!
//! So this is SP-bags (paper 004) on a small shadow memory (`lines`), in front of the engine: what it finds to be in order costs no more than
//! that, however many tasks there are.
//!
//! **Why that is right.** *Inside*: two accesses that nothing orders meet when the second one is made, as the first is in a P-bag
//! then, of the level where their ways part. If they conflict, the contraction is *expanded* first, and the
//! second is told by itself: the engine finds the race. *Outside*: what came before the level was begun, and was told,
//! has the same order to all of it, as nothing in it is an event that orders by other means (those expand). What comes
//! later, and is not told through the level, comes after the expansion: then the serial part is a strand of the level's task, which
//! precedes all that the task does from there on, and the group is one task, parallel to that until it is joined. That is the
//! order each of their accesses had. Accesses in `serial` that were parallel to the group are told as if they
//! came before it: they have nothing in common with it that conflicts. Accesses that are not kept are those that a later one covers, whose order
//! to everything outside is the same; and readers for which one in a P-bag stands: whatever comes later and follows that one
//! comes after the end of its scope, and so follows the other, too.
//!
//! *Children* ([`TaskKind::Child`]) that their parent leaves behind are told as a child of the group, which then ends: so the finish around takes them over,
//! as it did. What the group did may precede what they do, never the other way round. While there are children, only a reader that was left behind stands for others:
//! of two in a P-bag a `sync` may join the one and not the other.
//!
//! **Atomic accesses** do not race with each other, and else are accesses like others. That two of them [meet](crate::race::Meeting) the engine must hear of,
//! once for each pair of places in the code. So a parallel pair that it does not know is told as if it was a conflict; what it
//! knows is contracted, and may be told as if it was in order. What operations say about the order, by acquire and release, is not for here: the front
//! end expands before it tells of that.
//!
//! **What it does not take**: anything but fork-join. A task that goes on elsewhere or waits, futures, promises, locks, acquires and releases,
//! detached tasks, memory that becomes other memory and is [touched](Contraction::touches): the front end expands, and tells them to the
//! stream itself. So it does for strands with
//! many lines: they are worth a strand.
//!
//! Which of the contracted tasks made an access is lost, and of the codes that touched a line all but the first. A front end
//! that wants to say more of a race than that there is one runs the program again without.

mod bags;
mod frames;
mod level;
mod lines;
mod set;

pub use level::Opened;
pub use set::{Side, SmallSet, Touched};

use std::ops::Range;

use bags::{Bag, Bags, Kind};
use frames::Frames;
use level::{Level, LevelKind, is_running, may_be_in, owners};
use lines::{Lines, Owner};

use crate::bytes::{Bytes, LINE_BYTES};
use crate::error::Error;
use crate::event::TaskKind;

/// Room for so many lines is enough, and all of it stays in the processor's second cache.
pub const MOST: usize = 1024;

/// Who hears of what was contracted, in events of the running task.
pub trait Expand {
    /// What a front end knows of a task.
    type Tag: Copy;

    /// The running task has done this.
    fn accesses(&mut self, set: &SmallSet) -> Result<(), Error>;

    /// It opens a frame, or a finish.
    fn open(&mut self, scope: Opened) -> Result<(), Error>;

    /// It starts a task, which runs.
    fn start(&mut self, kind: TaskKind, tag: Self::Tag) -> Result<(), Error>;

    /// It starts a task that does this and ends; then it goes on. The task may stand for many. Before it ends, it may leave a child behind, which does that.
    fn run(
        &mut self,
        kind: TaskKind,
        tag: Self::Tag,
        set: &SmallSet,
        left: Option<&SmallSet>,
    ) -> Result<(), Error>;

    /// Is it known of two places in the code that they meet, in this order?
    fn have_met(&self, first: Side, second: Side) -> bool;

    /// The running strand has read these bytes of a line, which is contracted, and nothing that is contracted has written them.
    #[inline]
    fn has_read(&mut self, line: u64, bytes: u64) {
        let _ = (line, bytes);
    }
}

/// Whose an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// It was taken here, and the stream need not hear of it.
    Here,
    /// Nothing is contracted any more, and the stream must hear of it.
    Pass,
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub struct Contraction<T> {
    /// More than are open: the rest is room. The first is the bottom.
    levels: Vec<Level<T>>,
    /// The innermost.
    top: usize,
    /// The number of the task that was begun last.
    latest: u32,
    lines: Lines,
    /// What running tasks have done to their own stacks.
    frames: Frames,
    bags: Bags,
    /// How many tasks run here, how many levels have a group, and how many something that was left behind.
    parallel: usize,
    /// Are there children?
    children: bool,
    /// How many tasks were contracted.
    tasks: u64,
    /// How many of them are told as one.
    told: u64,
    /// How often lines were told, or forgotten.
    epoch: u64,
}

impl<T: Copy> Contraction<T> {
    /// Nothing is contracted, and there is room for `limit` lines, which are at most [`MOST`].
    pub fn new(limit: usize) -> Contraction<T> {
        Contraction {
            levels: vec![Level::new()],
            top: 0,
            latest: 0,
            lines: Lines::new(limit.min(MOST)),
            frames: Frames::new(),
            bags: Bags::default(),
            parallel: 0,
            children: false,
            tasks: 0,
            told: 0,
            epoch: 0,
        }
    }

    /// How many tasks have been begun and ended here, so that the stream knows of none of them, but for the groups told of.
    pub fn contracted(&self) -> u64 {
        self.tasks - self.told
    }

    /// The same; from here on they are counted anew.
    pub fn take_contracted(&mut self) -> u64 {
        let contracted = self.contracted();
        (self.tasks, self.told) = (0, 0);
        contracted
    }

    /// Is there anything that the stream has not heard of?
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.top > 0 || self.levels[0].groups() > 0 || !self.lines.is_empty()
    }

    /// Is anything that the stream has not heard of parallel to what comes, or to something else?
    #[inline]
    pub fn is_parallel(&self) -> bool {
        self.parallel > 0
    }

    /// Does the innermost level have tasks that a sync or the end of a scope would join?
    #[inline]
    pub fn joins(&self) -> bool {
        self.levels[self.top].group.is_some()
    }

    /// Is there a scope or a task that the stream has not heard of?
    #[inline]
    pub fn is_open(&self) -> bool {
        self.top > 0
    }

    /// The task that runs, if the stream has not heard of it.
    #[inline]
    pub fn running(&self) -> Option<&T> {
        self.levels[..=self.top].iter().rev().find_map(|level| level.tag.as_ref())
    }

    /// Has anything that is pending to do with these lines?
    pub fn touches(&self, lines: &Range<u64>) -> bool {
        self.lines.touch(lines) || self.frames.touch(lines)
    }

    /// Nobody can race with what is pending: it is forgotten, all but the scopes that are open.
    pub fn forget(&mut self) {
        debug_assert!(self.parallel == 0);
        self.forget_lines();
        self.levels[..=self.top].iter_mut().for_each(|level| {
            (level.serial, level.parallel, level.left) = (None, None, None);
        });
    }

    /// While this number is the same, nothing of what was taken here has been told.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The bytes are other memory from here on, and there is nothing about what they were but what was taken here: it is forgotten.
    pub fn forget_bytes(&mut self, bytes: Bytes) {
        bytes.lines().for_each(|(line, mask)| self.lines.forget(line, mask));
        self.frames.forget(bytes);
    }

    fn forget_lines(&mut self) {
        self.epoch += 1;
        self.lines.clear();
        self.frames.clear();
        self.bags.clear();
    }

    /// Tells what is pending. The tasks and scopes that are open are the stream's from here on.
    pub fn expand(&mut self, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        if self.is_pending() { self.expand_all(to) } else { Ok(()) }
    }

    #[inline(never)]
    fn expand_all(&mut self, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        let open = std::mem::take(&mut self.top);
        (self.parallel, self.children) = (0, false);
        let mut sets = self.sets(open).into_iter();
        for Level { kind, tag, group, left_by, .. } in &self.levels[..=open] {
            match (*kind, *tag) {
                (LevelKind::Bottom, _) => {}
                (LevelKind::Scope(scope), _) => to.open(scope)?,
                (LevelKind::Task(kind), Some(tag)) => to.start(kind, tag)?,
                (LevelKind::Task(_), None) => unreachable!("every task has a tag"),
            }
            let [serial, parallel, left] = [(); 3].map(|()| sets.next().unwrap_or_default());
            if !serial.is_empty() {
                to.accesses(&serial)?;
            }
            let left = Some(&left).filter(|left| !left.is_empty());
            let group = group.or(left_by.map(|tag| (TaskKind::Child, tag)));
            if let Some((kind, tag)) = group.filter(|_| left.is_some() || !parallel.is_empty()) {
                to.run(kind, tag, &parallel, left)?;
                self.told += 1 + u64::from(left.is_some());
            }
        }
        self.levels[0].begin(LevelKind::Bottom, 0..0, 0);
        Ok(())
    }

    /// What the bags of all levels have done: for each level the serial one, the parallel one, and what was left behind. The lines are forgotten.
    fn sets(&mut self, open: usize) -> Vec<SmallSet> {
        // By bags: which set is whose.
        let mut owners = vec![usize::MAX; self.bags.len()];
        for (number, level) in self.levels[..=open].iter().enumerate() {
            for (bag, set) in [level.serial, level.parallel, level.left].into_iter().zip(3 * number..) {
                if let Some(bag) = bag {
                    owners[self.bags.find(bag).index()] = set;
                }
            }
        }
        let mut sets = vec![SmallSet::default(); 3 * (open + 1)];
        let levels = &self.levels[..=open];
        for (bag, line, touched, atomic) in self.lines.iter(|owner| is_running(levels, owner)) {
            // Every bag is that of a level. What comes of one line comes together.
            sets[owners[self.bags.find(bag).index()]].add_latest(line, touched, atomic);
        }
        let ends = levels.iter().skip(1).map(|level| level.frames).chain([self.frames.len()]);
        for (number, (level, end)) in levels.iter().zip(ends).enumerate() {
            sets[3 * number].add_all(self.frames.part(level.frames..end));
        }
        self.forget_lines();
        sets
    }

    /// The running strand has done this, and may go on.
    #[inline]
    pub fn own(&mut self, set: &SmallSet, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        if set.is_empty() {
            return Ok(());
        }
        if !self.fits(set) {
            self.expand(to)?;
            if !self.fits(set) {
                return to.accesses(set);
            }
        }
        let runs = |owner| is_running(&self.levels[..=self.top], owner);
        let frames = (&self.levels[self.top].lines, self.is_alone());
        let have_met = |first, second| to.have_met(first, second);
        if self.lines.conflicts(set, frames, &mut self.bags, runs, have_met) {
            self.expand(to)?;
            return to.accesses(set);
        }
        let level = &self.levels[self.top];
        if set.is_plain() && set.plain().all(|(line, _)| level.lines.contains(&line)) {
            set.plain().for_each(|(line, touched)| self.frames.add(level.frames, line, touched));
            return Ok(());
        }
        if self.bags.are_many() {
            self.collect_bags();
        }
        let bag = *self.levels[self.top].serial.get_or_insert_with(|| self.bags.serial());
        let bag = self.bags.find(bag);
        let levels = &self.levels[..=self.top];
        let runs = |owner| is_running(levels, owner);
        let stacks = &levels[self.top].stacks;
        let stands = !self.children;
        // Before the others: what the strand has written atomically it has not only read.
        for (line, touched) in set.atomic() {
            for (owner, bytes) in owners(levels, line) {
                let part = touched.to(bytes);
                if !part.is_nothing() {
                    self.lines.add_atomic((line, &part), (bag, owner, stands), &mut self.bags, runs);
                }
            }
        }
        for (number, (line, touched)) in set.plain().enumerate() {
            if levels[self.top].lines.contains(&line) {
                self.frames.add(levels[self.top].frames, line, touched);
                continue;
            }
            if !may_be_in(stacks, line) {
                let who = (bag, Owner::NOBODY, stands);
                let read = self.lines.add((number, touched), who, &mut self.bags, runs);
                if read != 0 {
                    to.has_read(line, read);
                }
                continue;
            }
            // Stacks are read again by few, and are gone soon: they are not worth to be kept.
            for (owner, bytes) in owners(levels, line) {
                let part = touched.to(bytes);
                if !part.is_nothing() {
                    self.lines.add((number, &part), (bag, owner, stands), &mut self.bags, runs);
                }
            }
        }
        Ok(())
    }

    /// Is there room for what a strand has done?
    #[inline]
    fn fits(&self, set: &SmallSet) -> bool {
        self.lines.fits(set) && self.frames.len() <= MOST
    }

    /// Is nothing that the running task has started parallel to it, if the stream has not heard of it?
    #[inline]
    fn is_alone(&self) -> bool {
        for level in self.levels[..=self.top].iter().rev() {
            if level.groups() > 0 {
                return false;
            }
            if level.tag.is_some() {
                break;
            }
        }
        true
    }

    /// Is the running task about to end, which the stream has not heard of, with nothing that is parallel to it of what it has started? Then nobody else
    /// can ask what it does to its own stack from here on (`frames`).
    #[inline]
    pub fn has_stack_alone(&self) -> bool {
        let level = &self.levels[self.top];
        level.tag.is_some() && level.groups() == 0
    }

    /// The bytes of a line that something pending has accessed: not atomically, and atomically.
    pub fn touched(&self, line: u64) -> [u64; 2] {
        let [plain, atomic] = self.lines.touched(line, |owner| is_running(&self.levels[..=self.top], owner));
        [plain | self.frames.touched(line), atomic]
    }

    #[cold]
    fn collect_bags(&mut self) {
        let (levels, lines) = (&mut self.levels[..=self.top], &mut self.lines);
        self.bags.collect(|rename| {
            for bag in
                levels.iter_mut().flat_map(|Level { serial, parallel, left, .. }| [serial, parallel, left])
            {
                *bag = bag.map(&mut *rename);
            }
            lines.rename(rename);
        });
    }

    /// The running task starts another, which runs at once and is likely to end before its parent goes on. Its stack is at these
    /// addresses, below those of tasks that wait for it if it is the same.
    #[inline]
    pub fn spawn(
        &mut self,
        kind: TaskKind,
        tag: T,
        stack: Range<u64>,
        to: &mut impl Expand<Tag = T>,
    ) -> Result<Taken, Error> {
        if !self.levels[self.top].takes(kind) {
            return self.pass(to);
        }
        let below = &self.levels[self.top].stacks;
        let stacks = if below.is_empty() {
            stack.clone()
        } else {
            below.start.min(stack.start)..below.end.max(stack.end)
        };
        self.latest = self.latest.wrapping_add(1).max(1);
        let number = self.latest;
        let level = self.push(LevelKind::Task(kind), stacks);
        level.lines = stack.start.div_ceil(LINE_BYTES)..stack.end / LINE_BYTES;
        (level.tag, level.number, level.stack) = (Some(tag), number, stack);
        self.parallel += 1;
        self.children |= kind == TaskKind::Child;
        Ok(Taken::Here)
    }

    /// It opens a scope.
    #[inline]
    pub fn open(&mut self, scope: Opened) {
        let Level { stacks, lines, .. } = &self.levels[self.top];
        let (stacks, lines) = (stacks.clone(), lines.clone());
        self.push(LevelKind::Scope(scope), stacks).lines = lines;
    }

    #[inline]
    fn push(&mut self, kind: LevelKind, stacks: Range<u64>) -> &mut Level<T> {
        self.top += 1;
        if self.top == self.levels.len() {
            self.levels.push(Level::new());
        }
        let level = &mut self.levels[self.top];
        level.begin(kind, stacks, self.frames.len());
        level
    }

    #[cold]
    fn pass(&mut self, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        self.expand(to)?;
        Ok(Taken::Pass)
    }

    /// The innermost level, and the one below.
    #[inline]
    fn innermost(&mut self) -> Option<(&mut Level<T>, &mut Level<T>)> {
        let [.., below, top] = &mut self.levels[..=self.top] else { return None };
        Some((top, below))
    }

    /// The running task has ended. Its own stack is no more.
    #[inline]
    pub fn task_end(&mut self, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        let Some((level, below)) = self.innermost() else { return self.pass(to) };
        let (LevelKind::Task(kind), Some(tag)) = (level.kind, level.tag) else { return self.pass(to) };
        // What it has spawned it must have joined.
        if level.group.is_some_and(|(kind, _)| kind == TaskKind::Spawn) {
            return self.pass(to);
        }
        let leaves = level.group.is_some_and(|(kind, _)| kind == TaskKind::Child);
        // The task and its groups are no more; groups are there now, or were.
        let (was, left_by) = (level.groups() + below.groups(), level.left_by.or(leaves.then_some(tag)));
        below.group.get_or_insert((kind, tag));
        below.left_by = below.left_by.or(left_by);
        let now = below.groups();
        let (mut bags, mut left) =
            ([below.parallel, level.serial, level.parallel], [below.left, level.left, None]);
        if leaves {
            left[2] = bags[2].take();
        }
        let (parallel, left) = (self.merge_as(Kind::Parallel, bags), self.merge_as(Kind::Left, left));
        let below = &mut self.levels[self.top - 1];
        (below.parallel, below.left) = (parallel, left);
        self.frames.end(self.levels[self.top].frames);
        self.parallel = self.parallel - 1 - was + now;
        self.top -= 1;
        self.tasks += 1;
        Ok(Taken::Here)
    }

    /// All of these as one bag of this kind.
    #[inline]
    fn merge_as<const N: usize>(&mut self, kind: Kind, bags: [Option<Bag>; N]) -> Option<Bag> {
        let all = bags.into_iter().flatten().reduce(|all, bag| {
            self.bags.union(all, bag);
            all
        });
        if let Some(bag) = all {
            self.bags.set(bag, kind);
        }
        all
    }

    /// It joins what it has spawned in its innermost frame.
    #[inline]
    pub fn sync(&mut self, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        let Level { kind, serial, parallel, group, .. } = &mut self.levels[self.top];
        let spawns = group.is_none_or(|(kind, _)| matches!(kind, TaskKind::Spawn | TaskKind::Child));
        // In a finish it would join what the frame around that has spawned.
        let instance = matches!(kind, LevelKind::Scope(Opened::Frame) | LevelKind::Task(_));
        if !instance || !spawns {
            return self.pass(to);
        }
        let bags = [*serial, parallel.take()];
        self.parallel -= usize::from(group.take().is_some());
        self.levels[self.top].serial = self.merge_as(Kind::Serial, bags);
        Ok(Taken::Here)
    }

    /// It closes its innermost scope.
    #[inline]
    pub fn close(&mut self, scope: Opened, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        let Some((level, below)) = self.innermost() else { return self.pass(to) };
        let unjoined = scope == Opened::Frame && level.groups() > 0;
        if level.kind != LevelKind::Scope(scope) || unjoined {
            return self.pass(to);
        }
        let (bags, groups) = ([below.serial, level.serial, level.parallel, level.left], level.groups());
        self.parallel -= groups;
        self.top -= 1;
        self.levels[self.top].serial = self.merge_as(Kind::Serial, bags);
        Ok(Taken::Here)
    }
}

#[cfg(test)]
mod tests;
