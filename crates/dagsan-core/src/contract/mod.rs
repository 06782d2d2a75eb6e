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
//!            └─ parallel   P-bag: what its tasks did that are not joined yet: one group
//!
//!   own accesses     against the P-bags of all levels; then into serial        sync          parallel into serial
//!   a task ends      its bags into the parallel one of the level below         a scope ends  its bags into the serial one
//!                                                                                            of the level below
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
//! **What it does not take**: anything but fork-join. A task that goes on elsewhere or waits, futures, promises, locks, atomics,
//! detached tasks, memory that becomes other memory and is [touched](Contraction::touches): the front end expands, and tells them to the
//! stream itself. So it does for strands with
//! many lines: they are worth a strand.
//!
//! Which of the contracted tasks made an access is lost, and of the codes that touched a line all but the first. A front end
//! that wants to say more of a race than that there is one runs the program again without.

mod bags;
mod lines;
mod set;

pub use set::{SmallSet, Touched};

use std::ops::Range;

use bags::{Bag, Bags};
use lines::{Lines, Owner};

use crate::bytes::{Bytes, LINE_BYTES};
use crate::error::Error;
use crate::event::{Event, TaskKind};
use crate::ids::TaskId;

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

    /// It starts a task that does this and ends; then it goes on. The task may stand for many.
    fn run(&mut self, kind: TaskKind, tag: Self::Tag, set: &SmallSet) -> Result<(), Error>;

    /// The running strand has read these bytes of a line, which is contracted, and nothing that is contracted has written them.
    #[inline]
    fn has_read(&mut self, line: u64, bytes: u64) {
        let _ = (line, bytes);
    }
}

/// A scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// A procedure, whose spawns its syncs join.
    Frame,
    /// A finish.
    Finish,
}

impl Opened {
    /// `task` opens it.
    pub fn begin(self, task: TaskId) -> Event {
        match self {
            Opened::Frame => Event::FrameBegin { task },
            Opened::Finish => Event::FinishBegin { task },
        }
    }

    /// `task` closes it.
    pub fn end(self, task: TaskId) -> Event {
        match self {
            Opened::Frame => Event::FrameEnd { task },
            Opened::Finish => Event::FinishEnd { task },
        }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LevelKind {
    /// What the stream knows: the running task in its innermost scope.
    Bottom,
    Task(TaskKind),
    Scope(Opened),
}

#[derive(Debug, Clone)]
struct Level<T> {
    kind: LevelKind,
    /// Of a task.
    tag: Option<T>,
    /// Which of the tasks at this level it is; 0 if it is none.
    number: u32,
    /// The stack of a task, and all of those from the bottom to here, as addresses.
    stack: Range<u64>,
    stacks: Range<u64>,
    /// What it has done itself and joined, if that has touched anything.
    serial: Option<Bag>,
    /// What its tasks have done that are not joined.
    parallel: Option<Bag>,
    /// The first task of the group.
    group: Option<(TaskKind, T)>,
}

impl<T: Copy> Level<T> {
    fn new() -> Level<T> {
        Level {
            kind: LevelKind::Bottom,
            tag: None,
            number: 0,
            stack: 0..0,
            stacks: 0..0,
            serial: None,
            parallel: None,
            group: None,
        }
    }

    #[inline]
    fn begin(&mut self, kind: LevelKind, stacks: Range<u64>) {
        *self = Level { kind, stacks, ..Level::new() };
    }

    /// Does the scope that this level is in join a task of that kind together with all others of the group?
    #[inline]
    fn takes(&self, kind: TaskKind) -> bool {
        let joined = match (self.kind, kind) {
            (LevelKind::Bottom, TaskKind::Spawn | TaskKind::Async) => true,
            (LevelKind::Scope(Opened::Frame) | LevelKind::Task(_), TaskKind::Spawn) => true,
            // Its own finish joins it, and that is the innermost one.
            (LevelKind::Scope(Opened::Finish) | LevelKind::Task(TaskKind::Async), TaskKind::Async) => true,
            _ => false,
        };
        joined && self.group.is_none_or(|(other, _)| other == kind)
    }
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
    bags: Bags,
    /// How many tasks run here, and how many levels have a group.
    parallel: usize,
    /// How many tasks were contracted.
    tasks: u64,
    /// How many of them are told as one.
    told: u64,
}

impl<T: Copy> Contraction<T> {
    /// Nothing is contracted, and there is room for `limit` lines, which are at most [`MOST`].
    pub fn new(limit: usize) -> Contraction<T> {
        Contraction {
            levels: vec![Level::new()],
            top: 0,
            latest: 0,
            lines: Lines::new(limit.min(MOST)),
            bags: Bags::default(),
            parallel: 0,
            tasks: 0,
            told: 0,
        }
    }

    /// How many tasks have been begun and ended here, so that the stream knows of none of them, but for the groups told of.
    pub fn contracted(&self) -> u64 {
        self.tasks - self.told
    }

    /// Is there anything that the stream has not heard of?
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.top > 0 || self.levels[0].group.is_some() || !self.lines.is_empty()
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
        self.lines.touch(lines)
    }

    /// Nobody can race with what is pending: it is forgotten, all but the scopes that are open.
    pub fn forget(&mut self) {
        debug_assert!(self.parallel == 0);
        self.forget_lines();
        self.levels[..=self.top].iter_mut().for_each(|level| (level.serial, level.parallel) = (None, None));
    }

    fn forget_lines(&mut self) {
        self.lines.clear();
        self.bags.clear();
    }

    /// Tells what is pending. The tasks and scopes that are open are the stream's from here on.
    pub fn expand(&mut self, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        if self.is_pending() { self.expand_all(to) } else { Ok(()) }
    }

    #[inline(never)]
    fn expand_all(&mut self, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        let open = std::mem::take(&mut self.top);
        self.parallel = 0;
        let mut sets = self.sets(open).into_iter();
        for Level { kind, tag, group, .. } in &self.levels[..=open] {
            match (*kind, *tag) {
                (LevelKind::Bottom, _) => {}
                (LevelKind::Scope(scope), _) => to.open(scope)?,
                (LevelKind::Task(kind), Some(tag)) => to.start(kind, tag)?,
                (LevelKind::Task(_), None) => unreachable!("every task has a tag"),
            }
            if let Some(serial) = sets.next().filter(|serial| !serial.is_empty()) {
                to.accesses(&serial)?;
            }
            let parallel = sets.next().filter(|parallel| !parallel.is_empty());
            if let (Some((kind, tag)), Some(parallel)) = (*group, parallel) {
                to.run(kind, tag, &parallel)?;
                self.told += 1;
            }
        }
        self.levels[0].begin(LevelKind::Bottom, 0..0);
        Ok(())
    }

    /// What the bags of all levels have done, sorted by lines: for each level the serial one, and the parallel one. The lines are forgotten.
    fn sets(&mut self, open: usize) -> Vec<SmallSet> {
        let mut owners = Vec::new();
        for (number, level) in self.levels[..=open].iter().enumerate() {
            let bags = [(level.serial, 2 * number), (level.parallel, 2 * number + 1)];
            owners.extend(bags.into_iter().filter_map(|(bag, owner)| Some((self.bags.find(bag?), owner))));
        }
        let mut sets = vec![SmallSet::default(); 2 * (open + 1)];
        let runs = |owner| is_running(&self.levels[..=open], owner);
        let mut lines: Vec<(u64, Bag, Touched)> =
            self.lines.iter(runs).map(|(bag, line, touched)| (line, bag, touched)).collect();
        lines.sort_unstable_by_key(|&(line, ..)| line);
        for (line, bag, touched) in lines {
            let bag = self.bags.find(bag);
            // There are few levels, and the innermost have done most.
            let owner = owners.iter().rev().find(|&&(other, _)| other == bag);
            let &(_, owner) = owner.expect("every bag is that of a level");
            sets[owner].add_latest(line, touched);
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
        let runs = |owner| is_running(&self.levels[..=self.top], owner);
        if self.lines.conflicts(set, &mut self.bags, runs) {
            self.expand(to)?;
            return to.accesses(set);
        }
        if !self.lines.fits(set) {
            self.expand(to)?;
            if !self.lines.fits(set) {
                return to.accesses(set);
            }
        }
        if self.bags.are_many() {
            self.collect_bags();
        }
        let bag = *self.levels[self.top].serial.get_or_insert_with(|| self.bags.serial());
        let levels = &self.levels[..=self.top];
        let runs = |owner| is_running(levels, owner);
        let stacks = &levels[self.top].stacks;
        for (line, touched) in set.iter() {
            let start = line * LINE_BYTES;
            if start >= stacks.end || start + LINE_BYTES <= stacks.start {
                let read = self.lines.add((line, touched), (bag, Owner::NOBODY), &mut self.bags, runs);
                if read != 0 {
                    to.has_read(line, read);
                }
                continue;
            }
            // Stacks are read again by few, and are gone soon: they are not worth to be kept.
            for (owner, bytes) in owners(levels, line) {
                let part = touched.to(bytes);
                if !part.is_nothing() {
                    self.lines.add((line, &part), (bag, owner), &mut self.bags, runs);
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn collect_bags(&mut self) {
        let (levels, lines) = (&mut self.levels[..=self.top], &mut self.lines);
        self.bags.collect(|rename| {
            for bag in levels.iter_mut().flat_map(|level| [&mut level.serial, &mut level.parallel]) {
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
        (level.tag, level.number, level.stack) = (Some(tag), number, stack);
        self.parallel += 1;
        Ok(Taken::Here)
    }

    /// It opens a scope.
    #[inline]
    pub fn open(&mut self, scope: Opened) {
        let stacks = self.levels[self.top].stacks.clone();
        self.push(LevelKind::Scope(scope), stacks);
    }

    #[inline]
    fn push(&mut self, kind: LevelKind, stacks: Range<u64>) -> &mut Level<T> {
        self.top += 1;
        if self.top == self.levels.len() {
            self.levels.push(Level::new());
        }
        let level = &mut self.levels[self.top];
        level.begin(kind, stacks);
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
        let bags = [below.parallel, level.serial, level.parallel];
        // The task and its group are no more; a group is there now, or was.
        let over = usize::from(level.group.is_some()) + usize::from(below.group.is_some());
        below.group.get_or_insert((kind, tag));
        let parallel = self.merge(bags);
        if let Some(bag) = parallel {
            self.bags.set_parallel(bag, true);
        }
        self.levels[self.top - 1].parallel = parallel;
        self.parallel -= over;
        self.top -= 1;
        self.tasks += 1;
        Ok(Taken::Here)
    }

    /// All of these as one, which is what the first of them was.
    #[inline]
    fn merge(&mut self, bags: [Option<Bag>; 3]) -> Option<Bag> {
        bags.into_iter().flatten().reduce(|all, bag| {
            self.bags.union(all, bag);
            all
        })
    }

    /// It joins what it has spawned in its innermost frame.
    #[inline]
    pub fn sync(&mut self, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        let Level { kind, serial, parallel, group, .. } = &mut self.levels[self.top];
        let spawns = group.is_none_or(|(kind, _)| kind == TaskKind::Spawn);
        // In a finish it would join what the frame around that has spawned.
        let instance = matches!(kind, LevelKind::Scope(Opened::Frame) | LevelKind::Task(_));
        if !instance || !spawns {
            return self.pass(to);
        }
        let bags = [*serial, parallel.take(), None];
        self.parallel -= usize::from(group.take().is_some());
        self.levels[self.top].serial = self.precede(bags);
        Ok(Taken::Here)
    }

    /// All of these precede the running strand.
    #[inline]
    fn precede(&mut self, bags: [Option<Bag>; 3]) -> Option<Bag> {
        let serial = self.merge(bags);
        if let Some(bag) = serial {
            self.bags.set_parallel(bag, false);
        }
        serial
    }

    /// It closes its innermost scope.
    #[inline]
    pub fn close(&mut self, scope: Opened, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        let Some((level, below)) = self.innermost() else { return self.pass(to) };
        let unjoined = scope == Opened::Frame && level.group.is_some();
        if level.kind != LevelKind::Scope(scope) || unjoined {
            return self.pass(to);
        }
        let bags = [below.serial, level.serial, level.parallel];
        self.parallel -= usize::from(level.group.is_some());
        self.top -= 1;
        self.levels[self.top].serial = self.precede(bags);
        Ok(Taken::Here)
    }
}

/// Is the task, whose stack it is, among those that run?
#[inline]
fn is_running<T>(levels: &[Level<T>], owner: Owner) -> bool {
    levels.get(owner.level as usize).is_some_and(|level| level.number == owner.number)
}

/// Whose the bytes of a line are: the innermost task's on whose stack they are, or nobody's.
#[inline]
fn owners<T>(levels: &[Level<T>], line: u64) -> impl Iterator<Item = (Owner, u64)> {
    let (mut rest, mut left) = (u64::MAX, levels.len());
    std::iter::from_fn(move || {
        while rest != 0 && left > 1 {
            left -= 1;
            let Level { number, stack, .. } = &levels[left];
            let start = line * LINE_BYTES;
            let bytes = if stack.start <= start && start + LINE_BYTES <= stack.end {
                rest
            } else if *number == 0 {
                0
            } else {
                let stack = Bytes::new(stack.start, stack.end - stack.start).ok()?;
                rest & stack.within(line).unwrap_or(0)
            };
            if bytes != 0 {
                rest &= !bytes;
                return Some((Owner { level: left as u32, number: *number }, bytes));
            }
        }
        (rest != 0).then(|| (Owner::NOBODY, std::mem::take(&mut rest)))
    })
}

#[cfg(test)]
mod tests;
