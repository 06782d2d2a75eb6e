//! The locks that a task holds: its own, and those it is under.
//!
//! A task that is started while its parent holds a lock, and that is joined before the parent can give the lock back, is *under*
//! the lock: it is part of the parent's section, and whoever waits for the lock waits for it too. It is certain to be joined in
//! time if the scope that joins it was opened after the lock was taken:
//!
//! ```text
//!   lock L   since 4
//!     finish {   opened 5      async { … }     is under L: 4 < 5
//!     }
//!   unlock L
//! ```
//!
//! A child that a taskwait joins is sure to be joined when its parent waits: if it has done nothing until then, and the lock was held since before it
//! was created, it is under it ([`crate::Event::Under`]).
//!
//! Tasks under a lock share it, and so are not kept apart from each other, nor from the rest of the section: the *family* of
//! a held lock is the section they are all part of ([`Held::family`]). A section in which no task is created has none.
//!
//! A program may give the lock back while the scope is still open. Then the tasks under it were not safe after all: those that
//! still run lose the lock, and what those that have ended did under it stays as it is ([`crate::structure::Structure::unlocked_early`]).

use crate::error::Error;
use crate::ids::{LockId, TaskId};
use crate::locks::{Held, ISOLATED, LockMode, NO_FAMILY};
use crate::sections::Inside;

/// A section of a lock: from where a task takes it, or changes how it holds it, to where it does so again or gives it back. Numbered
/// from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SectionId(pub(crate) u32);

/// How a task came by a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) section: SectionId,
    /// When the section began, in the clock of the structure.
    pub(crate) since: u64,
    /// Has the task taken the lock itself? Else it is under it.
    pub(crate) own: bool,
    /// Is another task under it?
    pub(crate) shared: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct HeldLocks {
    /// Sorted by lock.
    held: Vec<Held>,
    /// Of each of them.
    holdings: Vec<Holding>,
}

impl HeldLocks {
    pub(crate) fn as_slice(&self) -> &[Held] {
        &self.held
    }

    /// The sections that the task is in.
    pub(crate) fn inside(&self) -> impl Iterator<Item = Inside> {
        let all = self.held.iter().zip(&self.holdings).filter(|(held, _)| held.lock.is_programs());
        all.map(|(held, holding)| Inside {
            lock: held.lock,
            mode: held.mode,
            section: holding.section,
            own: holding.own,
        })
    }

    fn find(&self, lock: LockId) -> Result<usize, usize> {
        self.held.binary_search_by_key(&lock, |held| held.lock)
    }

    /// How the task holds a lock that it has taken itself.
    pub(crate) fn own(&self, lock: LockId) -> Option<(Held, Holding)> {
        let at = self.find(lock).ok()?;
        self.holdings[at].own.then_some((self.held[at], self.holdings[at]))
    }

    /// The task takes a lock. If it was under it, it holds it by itself from here on.
    pub(crate) fn lock(
        &mut self,
        task: TaskId,
        lock: LockId,
        mode: LockMode,
        section: SectionId,
        since: u64,
    ) -> Result<(), Error> {
        if lock == ISOLATED.lock {
            return Err(Error::TooMany("locks"));
        }
        let held = Held { lock, mode, family: NO_FAMILY };
        let holding = Holding { section, since, own: true, shared: false };
        match self.find(lock) {
            Ok(at) if self.holdings[at].own => return Err(Error::AlreadyHeld { task, lock }),
            Ok(at) => (self.held[at], self.holdings[at]) = (held, holding),
            Err(at) => {
                self.held.insert(at, held);
                self.holdings.insert(at, holding);
            }
        }
        Ok(())
    }

    /// The task gives a lock back; how it held it.
    pub(crate) fn unlock(&mut self, task: TaskId, lock: LockId) -> Result<(Held, Holding), Error> {
        let at = self.find(lock).map_err(|_| Error::NotHeld { task, lock })?;
        Ok((self.held.remove(at), self.holdings.remove(at)))
    }

    /// It goes on to hold a lock in another mode, in a section of its own.
    pub(crate) fn set_mode(
        &mut self,
        task: TaskId,
        lock: LockId,
        mode: LockMode,
        section: SectionId,
    ) -> Result<(), Error> {
        let at = self.find(lock).map_err(|_| Error::NotHeld { task, lock })?;
        self.held[at].mode = mode;
        self.holdings[at].section = section;
        Ok(())
    }

    /// The locks that a new task is under which the end of something joins that was opened at that moment, or the end of this
    /// task if there is none. A worker runs one task at a time: its lock is nobody else's.
    pub(crate) fn inherit(&mut self, opened: Option<u64>) -> HeldLocks {
        let mut under = HeldLocks::default();
        for (held, holding) in self.held.iter_mut().zip(&mut self.holdings) {
            // Also if the new task is not under it yet: if it turns out to be, what this one does from here on is part of the same section.
            if held.family == NO_FAMILY && held.lock.is_programs() {
                held.family = holding.section.0;
            }
            let outlives = opened.map_or(!holding.own, |opened| holding.since < opened);
            if outlives && held.lock.is_programs() {
                holding.shared = true;
                under.held.push(*held);
                under.holdings.push(Holding { own: false, ..*holding });
            }
        }
        under
    }

    /// How a lock is held that a child is under.
    pub(crate) fn share(&mut self, lock: LockId) -> Option<(Held, Holding)> {
        let at = self.find(lock).ok()?;
        self.holdings[at].shared = true;
        Some((self.held[at], self.holdings[at]))
    }

    /// The task is under a lock that another shares with it, unless it holds it already.
    pub(crate) fn be_under(&mut self, held: Held, holding: Holding) {
        if let Err(at) = self.find(held.lock) {
            self.held.insert(at, held);
            self.holdings.insert(at, Holding { own: false, ..holding });
        }
    }

    /// Drops locks of families that were given back too early. Were there any?
    #[cold]
    pub(crate) fn drop_families(&mut self, early: &[u32]) -> bool {
        let before = self.held.len();
        let mut at = 0;
        while at < self.held.len() {
            if !self.holdings[at].own && early.contains(&self.held[at].family) {
                self.held.remove(at);
                self.holdings.remove(at);
            } else {
                at += 1;
            }
        }
        self.held.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskId = TaskId(7);
    const EXCLUSIVE: LockMode = LockMode::Exclusive;

    fn two_locks() -> HeldLocks {
        let mut held = HeldLocks::default();
        held.lock(TASK, LockId(3), EXCLUSIVE, SectionId(1), 10).unwrap();
        held.lock(TASK, LockId(1), LockMode::Shared, SectionId(2), 20).unwrap();
        held
    }

    #[test]
    fn a_task_holds_what_it_has_locked_and_not_unlocked() {
        let (lock, mut held) = (LockId(3), two_locks());
        assert_eq!(
            held.lock(TASK, lock, EXCLUSIVE, SectionId(3), 30),
            Err(Error::AlreadyHeld { task: TASK, lock })
        );
        assert!(held.as_slice().is_sorted());
        held.set_mode(TASK, lock, LockMode::Shared, SectionId(4)).unwrap();
        let (was, how) = held.unlock(TASK, lock).unwrap();
        assert_eq!((was.mode, how.section, how.own), (LockMode::Shared, SectionId(4), true));
        assert_eq!(held.unlock(TASK, lock), Err(Error::NotHeld { task: TASK, lock }));
        assert_eq!(
            held.set_mode(TASK, lock, EXCLUSIVE, SectionId(5)),
            Err(Error::NotHeld { task: TASK, lock })
        );
        assert_eq!(held.lock(TASK, ISOLATED.lock, EXCLUSIVE, SectionId(6), 40), Err(Error::TooMany("locks")));
    }

    #[test]
    fn a_task_is_under_locks_that_are_older_than_its_scope() {
        let mut parent = two_locks();
        let child = parent.inherit(Some(15));
        assert_eq!(child.as_slice().iter().map(|held| held.lock).collect::<Vec<_>>(), [LockId(3)]);
        assert_eq!((child.as_slice()[0].family, parent.as_slice()[1].family), (1, 1));
        assert!(child.own(LockId(3)).is_none() && parent.own(LockId(3)).is_some());
        assert_eq!(
            (parent.inherit(Some(10)).as_slice(), parent.inherit(None).as_slice()),
            (&[][..], &[][..])
        );
    }

    #[test]
    fn a_child_that_is_waited_for_is_under_what_its_parent_shares_with_it() {
        let (mut parent, mut child) = (two_locks(), HeldLocks::default());
        assert!(parent.share(LockId(2)).is_none());
        assert!(parent.inherit(Some(0)).as_slice().is_empty());
        let (held, holding) = parent.share(LockId(3)).unwrap();
        child.be_under(held, holding);
        child.be_under(held, holding);
        assert_eq!((child.as_slice(), held.family), (&[held][..], 1));
        assert!(child.own(LockId(3)).is_none() && parent.as_slice().contains(&held));
    }

    #[test]
    fn who_is_under_a_lock_may_take_it_and_may_lose_it() {
        let mut parent = two_locks();
        let mut child = parent.inherit(Some(15));
        child.lock(TASK, LockId(3), EXCLUSIVE, SectionId(9), 50).unwrap();
        assert!(!child.drop_families(&[1]));
        assert_eq!(child.own(LockId(3)).map(|(held, _)| held.family), Some(NO_FAMILY));
        let mut child = parent.inherit(Some(15));
        assert!(!child.drop_families(&[2]));
        assert!(child.drop_families(&[1]));
        assert_eq!(child.as_slice(), []);
    }
}
