//! The levels of what is contracted: scopes that are open and tasks that run, from the task that the stream knows to the running one; and whose stack a line is.

use std::ops::Range;

use super::bags::Bag;
use super::lines::Owner;
use crate::bytes::{Bytes, LINE_BYTES};
use crate::event::{Event, TaskKind};
use crate::ids::TaskId;

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

/// What a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LevelKind {
    /// What the stream knows: the running task in its innermost scope.
    Bottom,
    Task(TaskKind),
    Scope(Opened),
}

/// A level.
#[derive(Debug, Clone)]
pub(super) struct Level<T> {
    pub(super) kind: LevelKind,
    /// Of a task.
    pub(super) tag: Option<T>,
    /// Which of the tasks at this level it is; 0 if it is none.
    pub(super) number: u32,
    /// The stack of a task, and all of those from the bottom to here, as addresses.
    pub(super) stack: Range<u64>,
    pub(super) stacks: Range<u64>,
    /// The whole lines of the stack of the task that it is, or is of.
    pub(super) lines: Range<u64>,
    /// From where on what is done to these is its own (`frames`).
    pub(super) frames: usize,
    /// What it has done itself and joined, if that has touched anything.
    pub(super) serial: Option<Bag>,
    /// What its tasks have done that are not joined.
    pub(super) parallel: Option<Bag>,
    /// The first task of the group.
    pub(super) group: Option<(TaskKind, T)>,
    /// What was left behind by its tasks, and which of those was the first.
    pub(super) left: Option<Bag>,
    pub(super) left_by: Option<T>,
}

impl<T: Copy> Level<T> {
    pub(super) fn new() -> Level<T> {
        Level {
            kind: LevelKind::Bottom,
            tag: None,
            number: 0,
            stack: 0..0,
            stacks: 0..0,
            lines: 0..0,
            frames: 0,
            serial: None,
            parallel: None,
            group: None,
            left: None,
            left_by: None,
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, kind: LevelKind, stacks: Range<u64>, frames: usize) {
        *self = Level { kind, stacks, frames, ..Level::new() };
    }

    /// How many of its parts are parallel to what it does.
    #[inline]
    pub(super) fn groups(&self) -> usize {
        usize::from(self.group.is_some()) + usize::from(self.left_by.is_some())
    }

    /// Does the scope that this level is in join a task of that kind together with all others of the group?
    #[inline]
    pub(super) fn takes(&self, kind: TaskKind) -> bool {
        let joined = match (self.kind, kind) {
            (LevelKind::Bottom, TaskKind::Spawn | TaskKind::Async | TaskKind::Child) => true,
            (LevelKind::Scope(Opened::Finish) | LevelKind::Task(TaskKind::Child), TaskKind::Child) => true,
            (LevelKind::Scope(Opened::Frame) | LevelKind::Task(_), TaskKind::Spawn) => true,
            // Its own finish joins it, and that is the innermost one.
            (LevelKind::Scope(Opened::Finish) | LevelKind::Task(TaskKind::Async), TaskKind::Async) => true,
            _ => false,
        };
        joined && self.group.is_none_or(|(other, _)| other == kind)
    }
}

/// Is the task, whose stack it is, among those that run?
#[inline]
pub(super) fn is_running<T>(levels: &[Level<T>], owner: Owner) -> bool {
    levels.get(owner.level as usize).is_some_and(|level| level.number == owner.number)
}

/// May the line have bytes of these stacks?
#[inline]
pub(super) fn may_be_in(stacks: &Range<u64>, line: u64) -> bool {
    let start = line * LINE_BYTES;
    start < stacks.end && stacks.start < start + LINE_BYTES
}

/// Whose the bytes of a line are: the innermost task's on whose stack they are, or nobody's.
#[inline]
pub(super) fn owners<T>(levels: &[Level<T>], line: u64) -> impl Iterator<Item = (Owner, u64)> {
    let (mut rest, mut left) = (u64::MAX, levels.len());
    std::iter::from_fn(move || {
        while rest != 0 && left > 1 {
            left -= 1;
            let Level { number, stack, stacks, .. } = &levels[left];
            if !may_be_in(stacks, line) {
                // Nor in those further out.
                left = 0;
                break;
            }
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
