//! Which atomic operations take a lock, and which give it back.
//!
//! Locks are recognised by what they do, so that those of any crate are. What is not certainly a lock is an atomic, whose order is
//! that of the run:
//!
//! ```text
//!   taken        a compare-exchange from 0, with acquire order. It would have failed had somebody held the lock, which is what
//!                makes it one: a swap, or an addition, succeeds in any case
//!   given back   0 again, by the same task, with release order, or after a release fence   it was held exclusively
//!                that came after the lock was taken,
//!                or less by what was added, if the word was looked at before it was         it was held by readers, who count
//!                taken: others may have added to it meanwhile
//!   shared       a compare-exchange that adds to a word what a reader who has it has added
//!   changed      another amount is added or subtracted, by the task that holds it
//!                with release order: a writer becomes a reader     (downgrade)
//!                with acquire order: a reader becomes a writer     (upgrade)
//!   published    stored, with release order, as something else: it was claimed, and no lock
//!   dropped      stored without release order: no lock, for nobody is sure to see what was done under it
//! ```
//!
//! That is what the mutexes and read-write locks of the standard library and of parking_lot do. A writer of the standard
//! library's read-write lock subtracts, too: a number of ones, more than there can be readers. Whether the first section of a word is
//! a reader's shows only at its end; until then it is taken for one if the word was looked at before, since readers count. Later ones
//! of the same amount are known for what they are, and so is an amount that was once taken without a look.
//!
//! A lock whose memory is gone is not held any more. Who takes the word next, takes another
//! lock: this one kept nobody out. So it is if a task ends without giving it back. A word that another task has given back is no lock from then on: the
//! one was to tell the other something (`select` of a channel's operation).

use std::collections::BTreeMap;
use std::ops::Range;

use dagsan_core::{LockId, TaskId};

/// How an operation changed a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A store, or a swap.
    Exchange,
    /// A compare-exchange that succeeded.
    CompareExchange,
    /// An addition, a subtraction.
    Arithmetic,
    /// Something else.
    Other,
}

/// A word that a task has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) task: TaskId,
    pub(super) address: usize,
    pub(super) lock: LockId,
    /// Its value since.
    pub(super) taken: u64,
    /// May it have been counted up? Then it was looked at before.
    pub(super) counted: bool,
    /// Which of all takings of locks it was.
    pub(super) section: u64,
    /// Was there a release fence since? Then any store of the task releases what it did before the fence.
    pub(super) fenced: bool,
}

/// What a release of a word that its task holds means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenBack {
    /// The lock is free again.
    ByWriter,
    /// One reader less.
    ByReader,
    /// The task holds it in another way.
    Changed,
    /// It was no lock.
    Published,
    /// It was no lock, and releases nothing.
    Dropped,
    /// It was not: the task goes on to hold it.
    Not,
}

impl Held {
    /// The holder has changed the word, so that others who see it see what was `released` before, or not. What it was before is not known of
    /// a store.
    pub(super) fn after(
        &self,
        change: Change,
        (old, new): (Option<u64>, u64),
        bytes: usize,
        released: bool,
    ) -> GivenBack {
        // Others may have added to it meanwhile: readers, and those who wait.
        let amount = old.unwrap_or(self.taken).wrapping_sub(new) & ones(bytes);
        match change {
            Change::Arithmetic if new != 0 && amount != self.taken => GivenBack::Changed,
            _ if !released && new == 0 => GivenBack::Dropped,
            _ if !released => GivenBack::Not,
            Change::Arithmetic if amount == self.taken && self.counted && !is_writers(amount) => {
                GivenBack::ByReader
            }
            Change::Arithmetic if amount == self.taken && is_writers(amount) => GivenBack::ByWriter,
            _ if new == 0 => GivenBack::ByWriter,
            _ => GivenBack::Published,
        }
    }
}

fn ones(bytes: usize) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

/// Ones only, and more of them than anybody counts to.
pub(super) fn is_writers(amount: u64) -> bool {
    amount.wrapping_add(1).is_power_of_two() && amount >= 1 << 16
}

/// The locks that tasks hold.
#[derive(Debug)]
pub(super) struct LockWords {
    /// By address, and by task: readers may be several.
    held: BTreeMap<(usize, TaskId), Held>,
    next: LockId,
    /// How often locks were taken.
    taken: u64,
    /// Words that nobody holds, until a task takes them over.
    handed: Vec<usize>,
    /// Locks that are not held any more by tasks that do not run now: to be told when they do.
    pub(super) lost: Vec<(TaskId, LockId)>,
}

impl LockWords {
    /// Numbers locks from `next` on.
    pub(super) fn new(next: LockId) -> LockWords {
        LockWords { held: BTreeMap::new(), next, taken: 0, handed: Vec::new(), lost: Vec::new() }
    }

    pub(super) fn new_lock(&mut self) -> LockId {
        self.next = LockId(self.next.0 + 1);
        LockId(self.next.0 - 1)
    }

    /// Those who hold the word at an address.
    pub(super) fn holders(&self, address: usize) -> impl Iterator<Item = &Held> {
        self.within(&(address..address + 1))
    }

    fn within(&self, range: &Range<usize>) -> impl Iterator<Item = &Held> + use<'_> {
        self.held.range((range.start, TaskId(0))..(range.end, TaskId(0))).map(|(_, held)| held)
    }

    pub(super) fn is_held(&self, address: usize) -> bool {
        self.holders(address).next().is_some()
    }

    /// A task takes a word that nobody holds, or readers, of whom it is one.
    pub(super) fn take(&mut self, held: Held) {
        self.taken += 1;
        self.held.insert((held.address, held.task), Held { section: self.taken, ..held });
    }

    /// The task that holds a word so is about to end, and another is to hold it in its place.
    pub(super) fn hand_over(&mut self, held: Held) {
        self.give_back(held.task, held.address);
        self.handed.push(held.address);
    }

    /// Is it to be held by somebody?
    pub(super) fn is_handed(&self, address: usize) -> bool {
        self.handed.contains(&address)
    }

    /// A task goes on to hold a word that another has handed over.
    pub(super) fn take_over(&mut self, held: Held) {
        if let Some(at) = self.handed.iter().position(|&address| address == held.address) {
            self.handed.swap_remove(at);
        }
        self.held.insert((held.address, held.task), held);
    }

    /// Is the section still going on in which a word was held so?
    pub(super) fn is_held_since(&self, held: &Held) -> bool {
        self.holders(held.address).any(|now| now.section == held.section)
    }

    /// The word at an address, if `task` holds it.
    pub(super) fn held_by(&mut self, task: TaskId, address: usize) -> Option<&mut Held> {
        self.held.get_mut(&(address, task))
    }

    /// All words that `task` holds.
    pub(super) fn all_held_by(&self, task: TaskId) -> Vec<Held> {
        self.held.values().filter(|held| held.task == task).copied().collect()
    }

    /// `task` holds the word no longer.
    pub(super) fn give_back(&mut self, task: TaskId, address: usize) {
        self.held.remove(&(address, task));
    }

    /// The memory is gone, or the words in it are no locks: who held them.
    pub(super) fn forget(&mut self, range: &Range<usize>) -> Vec<Held> {
        let gone: Vec<Held> = self.within(range).copied().collect();
        self.give_all_back(gone)
    }

    /// Is no lock held, and has nobody lost one?
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.lost.is_empty()
    }

    /// The task has ended; the words that it holds it will not give back.
    pub(super) fn task_ended(&mut self, task: TaskId) -> Vec<Held> {
        if !self.lost.is_empty() {
            self.lost.retain(|(by, _)| *by != task);
        }
        let gone = self.all_held_by(task);
        self.give_all_back(gone)
    }

    fn give_all_back(&mut self, gone: Vec<Held>) -> Vec<Held> {
        gone.iter().for_each(|held| self.give_back(held.task, held.address));
        gone
    }

    /// `task` has come by a release fence.
    pub(super) fn fence(&mut self, task: TaskId) {
        self.held.values_mut().filter(|held| held.task == task).for_each(|held| held.fenced = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(taken: u64, counted: bool) -> Held {
        Held { task: TaskId(1), address: 64, lock: LockId(1), taken, counted, section: 1, fenced: false }
    }

    fn after(taken: u64, change: Change, new: u64) -> GivenBack {
        held(taken, true).after(change, (Some(taken), new), 4, true)
    }

    #[test]
    fn writers_give_back_all_and_readers_what_they_added() {
        use Change::*;
        use GivenBack::*;
        assert_eq!(after(1, Exchange, 0), ByWriter);
        assert_eq!(after(8, CompareExchange, 0), ByWriter);
        assert_eq!(after(1, Other, 0), ByWriter);
        assert_eq!(after(1, Arithmetic, 0), ByReader);
        assert_eq!(after(100, Arithmetic, 0), ByReader, "a counter is no writer's lock");
        assert_eq!(after(0x3fff_ffff, Arithmetic, 0), ByWriter, "the standard library's");
        assert_eq!(after(0x3fff_ffff, Arithmetic, 1), Changed, "downgrade");
        assert_eq!(after(8, Arithmetic, 16), Changed, "parking_lot's downgrade");
        assert_eq!(after(0b1_0100, Arithmetic, 0b1000), Changed, "its upgrade");
        assert_eq!(after(1, Exchange, 2), Published);
        assert_eq!(after(1, CompareExchange, 3), Published);
        assert_eq!(held(1, false).after(Arithmetic, (Some(1), 0), 4, true), ByWriter, "nobody has counted");
        assert_eq!(held(1, false).after(Exchange, (None, 0), 4, false), Dropped);
        assert_eq!(held(1, true).after(Arithmetic, (Some(1), 0), 4, false), Dropped);
        assert_eq!(held(16, true).after(CompareExchange, (Some(16), 32), 4, false), Not);
        assert_eq!(held(1, true).after(Arithmetic, (Some(2), 1), 4, true), ByReader, "one of two");
        let waits = 1 << 30;
        let writer = held(0x3fff_ffff, true);
        assert_eq!(
            writer.after(Arithmetic, (Some(0x3fff_ffff | waits), waits), 4, true),
            ByWriter,
            "somebody waits"
        );
    }

    #[test]
    fn a_lock_is_held_by_one_task_as_long_as_it_is_there() {
        let mut locks = LockWords::new(LockId(1));
        let held = Held { lock: locks.new_lock(), ..held(1, false) };
        locks.take(held);
        assert!(locks.is_held_since(&held) && !locks.is_held_since(&Held { section: 2, ..held }));
        let other = locks.new_lock();
        locks.take(Held { task: TaskId(2), address: 128, lock: other, ..held });
        assert!(locks.held_by(TaskId(1), 64).is_some() && locks.held_by(TaskId(2), 64).is_none());
        assert_eq!(locks.forget(&(0..128)), [held]);
        assert!(!locks.is_held(64) && locks.is_held(128));
        locks.take(Held { task: TaskId(3), address: 128, lock: other, ..held });
        assert_eq!(locks.holders(128).count(), 2);
        locks.give_back(TaskId(2), 128);
        assert_eq!(locks.holders(128).map(|held| held.task).collect::<Vec<_>>(), [TaskId(3)]);
    }
}
