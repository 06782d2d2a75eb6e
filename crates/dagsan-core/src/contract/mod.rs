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
//!            ├─ serial     what precedes whatever the level does next: its own strands, what it has joined
//!            └─ parallel   what its tasks did that are not joined yet: one group
//!
//!   own accesses x   x against parallel; then into serial              sync          parallel into serial
//!   a task ends      all of its level against the parallel of the      a scope ends  its level against the parallel of
//!                    level below; then into that                                     the level below; then into its serial
//! ```
//!
//! **Why that is right.** *Inside*: two accesses of the same level that nothing orders meet when the second one is compared with
//! `parallel`, at the level where their ways part. If they conflict, the contraction is *expanded* first, and the
//! second is told by itself: the engine finds the race. *Outside*: what came before the level was begun, and was told,
//! has the same order to all of it, as nothing in it is an event that orders by other means (those expand). What comes
//! later, and is not told through the level, comes after the expansion: then the serial part is a strand of the level's task, which
//! precedes all that the task does from there on, and the group is one task, parallel to that until it is joined. That is the
//! order each of their accesses had. Accesses in `serial` that were parallel to the group are told as if they
//! came before it: they have nothing in common with it that conflicts, and of two reads of a byte whatever is parallel to the first is
//! also parallel to the second.
//!
//! **What it does not take**: anything but fork-join. A task that goes on elsewhere or waits, futures, promises, locks, atomics,
//! detached tasks, memory that becomes other memory and is [touched](Contraction::touches): the front end expands, and tells them to the
//! stream itself. So it does for strands with
//! many lines: they are worth a strand.
//!
//! Which of the contracted tasks made an access is lost, and of the codes that touched a line all but the first. A front end
//! that wants to say more of a race than that there is one runs the program again without.

mod set;

pub use set::{MOST, SmallSet, Touched};

use std::ops::Range;

use crate::error::Error;
use crate::event::{Event, TaskKind};
use crate::ids::TaskId;

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
    serial: SmallSet,
    parallel: SmallSet,
    /// The first task of the group.
    group: Option<(TaskKind, T)>,
}

impl<T: Copy> Level<T> {
    fn new() -> Level<T> {
        let (serial, parallel) = (SmallSet::default(), SmallSet::default());
        Level { kind: LevelKind::Bottom, tag: None, serial, parallel, group: None }
    }

    #[inline]
    fn begin(&mut self, kind: LevelKind, tag: Option<T>) {
        (self.kind, self.tag, self.group) = (kind, tag, None);
        self.serial.clear();
        self.parallel.clear();
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
    /// Sets have at most so many lines.
    limit: usize,
    /// How many tasks run here, and how many levels have a group.
    parallel: usize,
    /// How many tasks were contracted.
    tasks: u64,
    /// How many of them are told as one.
    told: u64,
}

impl<T: Copy> Contraction<T> {
    /// Nothing is contracted, and no set will have more than `limit` lines, which are at most [`MOST`].
    pub fn new(limit: usize) -> Contraction<T> {
        Contraction {
            levels: vec![Level::new()],
            top: 0,
            limit: limit.min(MOST),
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
        self.top > 0 || self.levels[0].group.is_some() || !self.levels[0].serial.is_empty()
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
        let sets = self.levels[..=self.top].iter().flat_map(|level| [&level.serial, &level.parallel]);
        self.is_pending() && sets.into_iter().any(|set| set.touches(lines))
    }

    /// Nobody can race with what is pending: it is forgotten, all but the scopes that are open.
    pub fn forget(&mut self) {
        debug_assert!(self.parallel == 0);
        self.levels[..=self.top].iter_mut().for_each(|level| level.serial.clear());
    }

    /// Tells what is pending. The tasks and scopes that are open are the stream's from here on.
    pub fn expand(&mut self, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        if self.is_pending() { self.expand_all(to) } else { Ok(()) }
    }

    #[inline(never)]
    fn expand_all(&mut self, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        let open = std::mem::take(&mut self.top);
        self.parallel = 0;
        for Level { kind, tag, serial, parallel, group } in &mut self.levels[..=open] {
            match (*kind, *tag) {
                (LevelKind::Bottom, _) => {}
                (LevelKind::Scope(scope), _) => to.open(scope)?,
                (LevelKind::Task(kind), Some(tag)) => to.start(kind, tag)?,
                (LevelKind::Task(_), None) => unreachable!("every task has a tag"),
            }
            if !serial.is_empty() {
                to.accesses(serial)?;
            }
            if let Some((kind, tag)) = *group
                && !parallel.is_empty()
            {
                to.run(kind, tag, parallel)?;
                self.told += 1;
            }
        }
        self.levels[0].begin(LevelKind::Bottom, None);
        Ok(())
    }

    /// The running strand has done this, and may go on.
    #[inline]
    pub fn own(&mut self, set: &SmallSet, to: &mut impl Expand<Tag = T>) -> Result<(), Error> {
        let limit = self.limit;
        let Level { serial, parallel, .. } = &mut self.levels[self.top];
        if serial.fits(set, limit) && !parallel.conflicts(set) {
            serial.absorb(set);
            return Ok(());
        }
        self.expand(to)?;
        to.accesses(set)
    }

    /// The running task starts another, which runs at once and is likely to end before its parent goes on.
    #[inline]
    pub fn spawn(&mut self, kind: TaskKind, tag: T, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        if !self.levels[self.top].takes(kind) {
            return self.pass(to);
        }
        self.push(LevelKind::Task(kind), Some(tag));
        self.parallel += 1;
        Ok(Taken::Here)
    }

    /// It opens a scope.
    #[inline]
    pub fn open(&mut self, scope: Opened) {
        self.push(LevelKind::Scope(scope), None);
    }

    #[inline]
    fn push(&mut self, kind: LevelKind, tag: Option<T>) {
        self.top += 1;
        if self.top == self.levels.len() {
            self.levels.push(Level::new());
        }
        self.levels[self.top].begin(kind, tag);
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

    /// The running task has ended. Of a line, what `gone` picks was its own, and is no more.
    #[inline]
    pub fn task_end(
        &mut self,
        gone: impl Fn(u64) -> u64,
        to: &mut impl Expand<Tag = T>,
    ) -> Result<Taken, Error> {
        let limit = self.limit;
        let Some((level, below)) = self.innermost() else { return self.pass(to) };
        let (LevelKind::Task(kind), Some(tag)) = (level.kind, level.tag) else { return self.pass(to) };
        // What it has spawned it must have joined.
        if level.group.is_some_and(|(kind, _)| kind == TaskKind::Spawn) {
            return self.pass(to);
        }
        level.serial.remove(&gone);
        level.parallel.remove(&gone);
        let Level { serial, parallel, .. } = level;
        let lines = serial.len() + parallel.len() + below.parallel.len();
        if lines > limit || below.parallel.conflicts(serial) || below.parallel.conflicts(parallel) {
            // Once the stream has heard of it, it must hear of its end.
            return self.pass(to);
        }
        below.parallel.absorb(serial);
        below.parallel.absorb(parallel);
        // The task and its group are no more; a group is there now, or was.
        let gone = usize::from(level.group.is_some()) + usize::from(below.group.is_some());
        below.group.get_or_insert((kind, tag));
        self.parallel -= gone;
        self.top -= 1;
        self.tasks += 1;
        Ok(Taken::Here)
    }

    /// It joins what it has spawned in its innermost frame.
    #[inline]
    pub fn sync(&mut self, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        let limit = self.limit;
        let Level { kind, serial, parallel, group, .. } = &mut self.levels[self.top];
        let spawns = group.is_none_or(|(kind, _)| kind == TaskKind::Spawn);
        // In a finish it would join what the frame around that has spawned.
        let instance = matches!(kind, LevelKind::Scope(Opened::Frame) | LevelKind::Task(_));
        if !instance || !spawns || !serial.fits(parallel, limit) {
            return self.pass(to);
        }
        serial.absorb(parallel);
        parallel.clear();
        self.parallel -= usize::from(group.take().is_some());
        Ok(Taken::Here)
    }

    /// It closes its innermost scope.
    #[inline]
    pub fn close(&mut self, scope: Opened, to: &mut impl Expand<Tag = T>) -> Result<Taken, Error> {
        let limit = self.limit;
        let Some((level, below)) = self.innermost() else { return self.pass(to) };
        let unjoined = scope == Opened::Frame && level.group.is_some();
        if level.kind != LevelKind::Scope(scope) || unjoined {
            return self.pass(to);
        }
        let Level { serial, parallel, .. } = level;
        let lines = serial.len() + parallel.len() + below.serial.len();
        if lines > limit || below.parallel.conflicts(serial) || below.parallel.conflicts(parallel) {
            return self.pass(to);
        }
        below.serial.absorb(serial);
        below.serial.absorb(parallel);
        let group = usize::from(level.group.is_some());
        self.parallel -= group;
        self.top -= 1;
        Ok(Taken::Here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessKind, Run};
    use crate::bytes::Location;
    use crate::ids::SiteId;

    /// What was told, a word each.
    #[derive(Default)]
    struct Told(Vec<String>);

    impl Told {
        fn lines(set: &SmallSet) -> String {
            let lines: Vec<String> = set.runs().map(|run| format!("{:?}{}", run.kind, run.at.line)).collect();
            lines.join(" ")
        }
    }

    impl Expand for Told {
        type Tag = u32;

        fn accesses(&mut self, set: &SmallSet) -> Result<(), Error> {
            self.0.push(Told::lines(set));
            Ok(())
        }

        fn open(&mut self, scope: Opened) -> Result<(), Error> {
            self.0.push(format!("{scope:?}"));
            Ok(())
        }

        fn start(&mut self, _: TaskKind, tag: u32) -> Result<(), Error> {
            self.0.push(format!("start {tag}"));
            Ok(())
        }

        fn run(&mut self, _: TaskKind, tag: u32, set: &SmallSet) -> Result<(), Error> {
            self.0.push(format!("run {tag}: {}", Told::lines(set)));
            Ok(())
        }
    }

    struct Case {
        contraction: Contraction<u32>,
        told: Told,
    }

    impl Case {
        fn new(limit: usize) -> Case {
            let mut contraction = Contraction::new(limit);
            contraction.open(Opened::Frame);
            Case { contraction, told: Told::default() }
        }

        fn touch(&mut self, kind: AccessKind, line: u64) {
            let mut set = SmallSet::default();
            let at = Location { line, mask: 1 };
            assert!(set.add_run(&Run { at, kind, site: SiteId::FIRST, atomic: false }));
            self.contraction.own(&set, &mut self.told).unwrap();
        }

        /// A task that touches a line.
        fn task(&mut self, tag: u32, kind: AccessKind, line: u64) -> Taken {
            assert_eq!(self.contraction.spawn(TaskKind::Spawn, tag, &mut self.told), Ok(Taken::Here));
            self.touch(kind, line);
            self.contraction.task_end(|_| 0, &mut self.told).unwrap()
        }
    }

    #[test]
    fn tasks_without_conflicts_are_told_as_one() {
        let mut case = Case::new(MOST);
        case.touch(AccessKind::Write, 1);
        for tag in 7..12 {
            assert_eq!(case.task(tag, AccessKind::Read, 1), Taken::Here);
        }
        assert!(case.told.0.is_empty() && case.contraction.is_parallel());
        case.contraction.expand(&mut case.told).unwrap();
        assert_eq!(case.told.0, ["Frame", "Write1", "run 7: Read1"]);
        assert_eq!((case.contraction.contracted(), case.contraction.is_pending()), (4, false));
    }

    #[test]
    fn a_conflict_is_told_before_it_comes() {
        let mut case = Case::new(MOST);
        assert_eq!(case.task(1, AccessKind::Read, 5), Taken::Here);
        assert_eq!(case.task(2, AccessKind::Write, 5), Taken::Pass);
        assert_eq!(case.told.0, ["Frame", "run 1: Read5", "start 2", "Write5"]);
    }

    #[test]
    fn what_is_joined_conflicts_no_more() {
        let mut case = Case::new(MOST);
        assert_eq!(case.task(1, AccessKind::Write, 5), Taken::Here);
        assert_eq!(case.contraction.sync(&mut case.told), Ok(Taken::Here));
        assert!(!case.contraction.is_parallel());
        case.touch(AccessKind::Write, 5);
        assert_eq!(case.contraction.close(Opened::Frame, &mut case.told), Ok(Taken::Here));
        assert!(case.told.0.is_empty());
    }

    #[test]
    fn a_sync_in_a_finish_is_not_taken() {
        let mut case = Case::new(MOST);
        assert_eq!(case.task(1, AccessKind::Write, 5), Taken::Here);
        case.contraction.open(Opened::Finish);
        assert_eq!(case.contraction.sync(&mut case.told), Ok(Taken::Pass));
        assert_eq!(case.told.0, ["Frame", "run 1: Write5", "Finish"]);
    }

    #[test]
    fn what_has_no_room_is_told() {
        let mut case = Case::new(2);
        (1..3).for_each(|line| case.touch(AccessKind::Read, line));
        assert!(case.told.0.is_empty());
        case.touch(AccessKind::Read, 3);
        assert_eq!(case.told.0, ["Frame", "Read1 Read2", "Read3"]);
    }

    #[test]
    fn the_memory_of_a_task_is_gone_with_it() {
        let mut case = Case::new(MOST);
        for tag in 1..3 {
            assert_eq!(case.contraction.spawn(TaskKind::Spawn, tag, &mut case.told), Ok(Taken::Here));
            case.touch(AccessKind::Write, 9);
            let gone = |line| if line == 9 { u64::MAX } else { 0 };
            assert_eq!(case.contraction.task_end(gone, &mut case.told), Ok(Taken::Here));
        }
        assert!(case.told.0.is_empty());
    }
}
