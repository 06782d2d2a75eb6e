//! The sections that lines remember, in a slab.
//!
//! ```text
//!   Ref       [ number of the section │ slot ]
//!   slots     [ section │ section │ free │ section │ … ]        a slot is also the number of what the end of its section releases
//! ```
//!
//! A touch has a [`Ref`], which leads to the section without a search. A section that nothing remembers gives its slot back; a
//! reference to it that is left somewhere is known by the number of the section.

use rustc_hash::FxHashMap;

use super::Inside;
use crate::held::SectionId;
use crate::ids::{SyncId, TaskId};
use crate::locks::LockMode;
use crate::pages::prefetch;

/// Objects of sections have the numbers from here on, those of front ends the ones below.
const FIRST_SYNC: u32 = 1 << 31;

/// A section, and where it is, or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ref {
    section: SectionId,
    slot: u32,
}

/// A section that has touched something.
#[derive(Debug)]
struct Section {
    /// Which; [`NO_SECTION`] in a slot that is free.
    number: SectionId,
    mode: LockMode,
    /// Who has taken the lock, if the first touch was its own.
    by: Option<TaskId>,
    ended: bool,
    /// How many touches there are of it.
    touches: u32,
    /// Who has heard of its end.
    told: Told,
    /// The last exclusive section that follows it. When that is over, it stands for this one where it has touched the same.
    followed_by: Option<Ref>,
}

/// The tasks that have heard of something: of the first in a program all, of the others the last.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    first: u64,
    last: Option<TaskId>,
}

impl Told {
    fn bit(task: TaskId) -> u64 {
        if task.0 < 64 { 1 << task.0 } else { 0 }
    }

    #[inline]
    fn has(self, task: TaskId) -> bool {
        self.first & Told::bit(task) != 0 || self.last == Some(task)
    }

    #[inline]
    fn tell(&mut self, task: TaskId) {
        self.first |= Told::bit(task);
        self.last = Some(task);
    }
}

/// Sections are numbered from 1 on.
const NO_SECTION: SectionId = SectionId(0);

/// A task that is in a section, and touches something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    pub(super) inside: Inside,
    pub(super) task: TaskId,
    /// The section.
    pub(super) current: Ref,
    /// Will it end? Tasks under a lock go on in their section when its holder changes the mode; its end does not come after that.
    goes_on: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Known {
    slots: Vec<Section>,
    free: Vec<u32>,
    numbers: FxHashMap<SectionId, u32>,
}

impl Known {
    /// `task`, which is in a section, is about to touch something.
    pub(super) fn visit(&mut self, inside: &Inside, task: TaskId) -> Visit {
        let current = self.enter(inside, task);
        let goes_on = !self.slots[current.slot as usize].ended;
        Visit { inside: *inside, task, current, goes_on }
    }

    /// The section that `task` is in, which has a slot from here on. Its end gives that back, if it has touched nothing.
    fn enter(&mut self, inside: &Inside, task: TaskId) -> Ref {
        let &Inside { mode, section: number, own, .. } = inside;
        let Known { slots, free, numbers } = self;
        let slot = *numbers.entry(number).or_insert_with(|| {
            let by = own.then_some(task);
            let new = Section {
                number,
                mode,
                by,
                ended: false,
                touches: 0,
                told: Told::default(),
                followed_by: None,
            };
            match free.pop() {
                Some(slot) => {
                    slots[slot as usize] = new;
                    slot
                }
                None => {
                    slots.push(new);
                    slots.len() as u32 - 1
                }
            }
        });
        Ref { section: number, slot }
    }

    /// Where a section is, if something remembers it.
    fn find(&self, section: SectionId) -> Option<Ref> {
        self.numbers.get(&section).map(|&slot| Ref { section, slot })
    }

    /// The section will soon be asked for: it will be in the processor's cache then.
    #[inline]
    pub(super) fn expect(&self, of: Ref) {
        if let Some(section) = self.slots.get(of.slot as usize) {
            prefetch(&raw const *section);
        }
    }

    #[inline]
    fn slot(&self, of: Ref) -> Option<usize> {
        match self.slots.get(of.slot as usize) {
            Some(section) if section.number == of.section => Some(of.slot as usize),
            // It was let go, and may have been touched since: by a task that is under a lock which was given back.
            _ => self.numbers.get(&of.section).map(|&slot| slot as usize),
        }
    }

    #[inline]
    fn get(&self, of: Ref) -> Option<&Section> {
        self.slot(of).map(|slot| &self.slots[slot])
    }

    /// A line remembers the section, once more.
    #[inline]
    pub(super) fn remember_again(&mut self, section: Ref) {
        if let Some(slot) = self.slot(section) {
            self.slots[slot].touches += 1;
        }
    }

    /// A line remembers it no longer.
    #[inline]
    pub(super) fn forget(&mut self, section: Ref) {
        if let Some(slot) = self.slot(section) {
            self.slots[slot].touches -= 1;
            self.drop_unused(slot);
        }
    }

    /// The same, by its number.
    pub(super) fn forget_number(&mut self, section: SectionId) {
        if let Some(section) = self.find(section) {
            self.forget(section);
        }
    }

    /// The section ends. What that releases, unless nobody remembers that it has touched anything.
    pub(super) fn end(&mut self, section: SectionId) -> Option<SyncId> {
        let slot = self.find(section)?.slot;
        self.slots[slot as usize].ended = true;
        (!self.drop_unused(slot as usize)).then_some(SyncId(FIRST_SYNC + slot))
    }

    #[inline]
    pub(super) fn is_over(&self, section: Ref) -> bool {
        self.get(section).is_none_or(|known| known.ended)
    }

    /// The same, by its number.
    pub(super) fn is_number_over(&self, section: SectionId) -> bool {
        self.find(section).is_none_or(|section| self.is_over(section))
    }

    /// A task has touched, in a section, what an earlier one of the same lock has touched, and one of them writes. If that was
    /// another section, and is over, the task has to acquire it. Does its section follow it then, and stands for it one day?
    #[inline]
    pub(super) fn depend(&mut self, earlier: Ref, visit: &Visit, acquire: &mut Vec<SyncId>) -> bool {
        let &Visit { inside, task, current, goes_on } = visit;
        let Some(slot) = self.slot(earlier) else { return false };
        let known = &mut self.slots[slot];
        let excludes = known.mode.max(inside.mode) == LockMode::Exclusive;
        if earlier.section == inside.section || !excludes || !known.ended {
            return false;
        }
        if known.by != Some(task) && !known.told.has(task) {
            known.told.tell(task);
            acquire.push(SyncId(FIRST_SYNC + slot as u32));
        }
        let follows = inside.mode == LockMode::Exclusive && goes_on;
        if follows {
            known.followed_by = Some(current);
        }
        follows
    }

    /// As [`Known::depend`], by the number of the earlier one.
    pub(super) fn depend_on_number(
        &mut self,
        earlier: SectionId,
        visit: &Visit,
        acquire: &mut Vec<SyncId>,
    ) -> bool {
        self.find(earlier).is_some_and(|earlier| self.depend(earlier, visit, acquire))
    }

    /// Has the task that was in the one section, which is over, been in the other one since, in the same mode?
    pub(super) fn is_later(&self, earlier: SectionId, later: SectionId) -> bool {
        let section = |number| self.find(number).and_then(|section| self.get(section));
        let (Some(earlier), Some(later)) = (section(earlier), section(later)) else { return false };
        earlier.ended && earlier.mode == later.mode && earlier.by.is_some() && earlier.by == later.by
    }

    /// Is the task of a visit the one that has taken the lock in an earlier section, which is over, in the same mode?
    #[inline]
    pub(super) fn is_earlier_of(&self, earlier: Ref, visit: &Visit) -> bool {
        let own =
            |known: &Section| known.ended && known.mode == visit.inside.mode && known.by == Some(visit.task);
        visit.inside.own && self.get(earlier).is_some_and(own)
    }

    /// The mode of a section that is over, and who has taken the lock.
    pub(super) fn ended_by(&self, section: Ref) -> Option<(LockMode, TaskId)> {
        let known = self.get(section).filter(|known| known.ended)?;
        known.by.map(|by| (known.mode, by))
    }

    /// The last exclusive section that follows this one, if it is over.
    pub(super) fn follower(&self, section: Ref) -> Option<Ref> {
        self.get(section)?.followed_by.filter(|&by| self.is_over(by))
    }

    /// The section has ended too early to stand for those that it follows.
    pub(super) fn stands_for_nobody(&mut self, section: SectionId) {
        for known in &mut self.slots {
            known.followed_by = known.followed_by.filter(|by| by.section != section);
        }
    }

    fn drop_unused(&mut self, slot: usize) -> bool {
        let Section { number, touches, ended, .. } = self.slots[slot];
        let unused = touches == 0 && ended;
        if unused {
            self.numbers.remove(&number);
            self.slots[slot].number = NO_SECTION;
            self.free.push(slot as u32);
        }
        unused
    }
}

impl Ref {
    /// Is it one of this section?
    pub(super) fn is_of(self, section: SectionId) -> bool {
        self.section == section
    }
}

#[cfg(test)]
impl Known {
    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// How many slots there are.
    pub(super) fn room(&self) -> usize {
        self.slots.len()
    }
}
