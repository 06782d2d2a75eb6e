//! Locks in the structure of a program: who holds which, which tasks are under them, and when that ends too early. See
//! [`crate::held`].

use super::{ScopeKind, Structure};
use crate::error::Error;
use crate::event::TaskKind;
use crate::held::{HeldLocks, SectionId};
use crate::ids::{LockId, ScopeId, TaskId};
use crate::locks::{Held, LockMode};
use crate::sections::Inside;

impl Structure {
    /// The locks that `task`, which has not ended, holds, sorted.
    pub(crate) fn locks(&self, task: TaskId) -> &[Held] {
        self.tasks[task].locks.as_slice()
    }

    /// The sections of locks that `task` is in.
    pub(crate) fn inside(&self, task: TaskId) -> impl Iterator<Item = Inside> {
        self.tasks[task].locks.inside()
    }

    /// How `task` holds a lock that it has taken itself, and in which section.
    pub(crate) fn own_section(&self, task: TaskId, lock: LockId) -> Option<(Held, SectionId)> {
        let task = self.tasks.get(task).filter(|task| !task.ended)?;
        task.locks.own(lock).map(|(held, holding)| (held, holding.section))
    }

    /// Was a lock given back while tasks that were under it were not joined? What they did under it may have been compared with
    /// too little.
    pub fn unlocked_early(&self) -> bool {
        self.unlocked_early
    }

    /// A new moment.
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn next_section(&mut self) -> Result<SectionId, Error> {
        let next = self.section.0.checked_add(1).ok_or(Error::TooMany("sections of locks"))?;
        self.section = SectionId(next);
        Ok(self.section)
    }

    pub(super) fn lock(&mut self, by: TaskId, lock: LockId, mode: LockMode) -> Result<(), Error> {
        let (section, since) = (self.next_section()?, self.tick());
        self.tasks[by].locks.lock(by, lock, mode, section, since)
    }

    pub(super) fn set_mode(&mut self, by: TaskId, lock: LockId, mode: LockMode) -> Result<(), Error> {
        let section = self.next_section()?;
        self.tasks[by].locks.set_mode(by, lock, mode, section)
    }

    /// `task` is under a lock that its parent holds, or is under.
    pub(super) fn under(&mut self, task: TaskId, lock: LockId) -> Result<(), Error> {
        let parent = self.tasks[task].parent;
        let holder = self.tasks.get_mut(parent).filter(|parent| !parent.ended);
        let held = holder.and_then(|holder| holder.locks.share(lock));
        let (held, holding) = held.ok_or(Error::NotHeld { task: parent, lock })?;
        self.tasks[task].locks.be_under(held, holding);
        Ok(())
    }

    pub(super) fn unlock(&mut self, by: TaskId, lock: LockId) -> Result<(), Error> {
        let early = self.is_early(by, lock);
        let (held, _) = self.tasks[by].locks.unlock(by, lock)?;
        if early {
            self.early.push(held.family);
            self.unlocked_early = true;
        }
        Ok(())
    }

    /// Would `by` give the lock back before tasks are joined that are under it?
    pub(crate) fn is_early(&self, by: TaskId, lock: LockId) -> bool {
        let Some((_, holding)) = self.tasks[by].locks.own(lock) else { return false };
        if !holding.shared {
            return false;
        }
        let mut next = self.tasks[by].top;
        while let Some(id) = next {
            let scope = &self.scopes[id.index()];
            let unjoined = |&task: &TaskId| self.tasks.get(task).is_some_and(|task| !task.joined);
            if scope.opened > holding.since && scope.tasks.iter().any(unjoined) {
                return true;
            }
            next = scope.below;
        }
        false
    }

    /// The locks that a task of this kind, which `scope` will join, is under if `by` starts it now.
    #[inline]
    pub(super) fn locks_of_child(&mut self, by: TaskId, kind: TaskKind, scope: ScopeId) -> HeldLocks {
        if self.tasks[by].locks.as_slice().is_empty() || kind == TaskKind::Detached {
            return HeldLocks::default();
        }
        let joined_by = self.joined_by(scope);
        self.tasks[by].locks.inherit(joined_by)
    }

    /// When that was opened whose end is sure to join the tasks of `scope`: the scope itself, or, as a sync may come late,
    /// the procedure instance around a sync block. None if that is the whole task.
    fn joined_by(&self, scope: ScopeId) -> Option<u64> {
        let mut next = Some(scope);
        while let Some(id) = next {
            let scope = &self.scopes[id.index()];
            if matches!(scope.kind, ScopeKind::Frame | ScopeKind::Finish) {
                return Some(scope.opened);
            }
            next = scope.below;
        }
        None
    }
}
