//! Who holds which lock, and how: what an operation on a word means for the task that makes it ([`super::locks`] says which operations are
//! those of a lock).

use dagsan_core::{Event, LockId, LockMode, TaskId};

use crate::session::Session;
use crate::sync::locks::{self, Change, GivenBack, Held};
use crate::sync::words::Word;
use crate::sync::{Done, Order, Sync};

impl Session {
    /// Takes a lock, gives it back, or changes how it is held, if that is what the operation does. If it is one of a lock that
    /// stays one, it orders nothing by itself.
    pub(super) fn lock_operation(
        &mut self,
        address: usize,
        bytes: usize,
        done: Done,
        order: Order,
        task: TaskId,
    ) -> bool {
        if !self.sync.hygiene.locks {
            return false;
        }
        let (old, new, change) = match done {
            Done::Load { .. } | Done::Failed { .. } => return false,
            Done::Store { new } => (None, new, Change::Exchange),
            Done::Update { old, new, change } => (Some(old), new, change),
        };
        if let Some(held) = self.sync.locks.held_by(task, address).copied() {
            return self.held_word(held, bytes, (old, new), change, order);
        }
        if new == 0 && self.sync.locks.is_held(address) {
            // Somebody else gives it back: it was passed on, or is none.
            self.lose(address);
            if let Some(word) = self.sync.words.get_mut(address) {
                word.is_passed_on = true;
            }
            return false;
        }
        if self.sync.words.get_mut(address).is_some_and(|word| word.is_passed_on) {
            return false;
        }
        if old == Some(0) && new != 0 && change == Change::CompareExchange && order.acquire {
            // If it was held, code without hooks has given it back.
            self.lose(address);
            let lock = self.holds(address, bytes, new, task);
            self.event(lock);
        } else if let Some(old) = old
            && change == Change::CompareExchange
            && order.acquire
            && let Some(taken) = self.joins_readers(address, new.wrapping_sub(old))
        {
            let lock = self.holds(address, bytes, taken, task);
            self.event(lock);
        }
        false
    }

    /// What readers add to the word, if some have it, and this much was added.
    fn joins_readers(&self, address: usize, added: u64) -> Option<u64> {
        let mut holders = self.sync.locks.holders(address).peekable();
        holders.peek()?;
        holders.all(|held| held.counted && held.taken == added && !locks::is_writers(added)).then_some(added)
    }

    /// The task has taken a word, and made this of it. The event that says so.
    pub(super) fn holds(&mut self, address: usize, bytes: usize, taken: u64, task: TaskId) -> Event {
        let Sync { words, locks, .. } = &mut self.sync;
        let word = words.entry(address, bytes, taken);
        let lock = *word.lock.get_or_insert_with(|| locks.new_lock());
        let counted = word.seen_by == Some(self.tasks.name());
        if !counted {
            // Readers look first: who adds that much without a look has it alone, and so had those who looked.
            word.writer = Some(taken);
            word.reader = word.reader.filter(|&reader| reader != taken);
        }
        let mode = word.mode(taken, counted);
        locks.take(Held { task, address, lock, taken, counted, section: 0, fenced: false });
        Event::Lock { task, lock, mode }
    }

    /// The running task has changed a word that it holds. Does it stay a lock?
    fn held_word(
        &mut self,
        held: Held,
        bytes: usize,
        (old, new): (Option<u64>, u64),
        change: Change,
        order: Order,
    ) -> bool {
        let Held { task, address, lock, taken, fenced, .. } = held;
        let mut given_back = held.after(change, (old, new), bytes, order.release || fenced);
        let is_writers = |word: &mut Word| word.writer == Some(taken);
        if given_back == GivenBack::ByReader && self.sync.words.get_mut(address).is_some_and(is_writers) {
            given_back = GivenBack::ByWriter;
        }
        match given_back {
            GivenBack::Not => return false,
            GivenBack::Changed if !(order.acquire || order.release) => return false,
            GivenBack::Changed => {
                if !order.release {
                    // What it did so far, it did as a reader.
                    self.set_lock_mode(task, lock, LockMode::Shared);
                }
                self.deliver();
                let mode = if order.release { LockMode::Shared } else { LockMode::Exclusive };
                self.set_lock_mode(task, lock, mode);
                if let Some(held) = self.sync.locks.held_by(task, address) {
                    (held.taken, held.counted) = (new, order.release);
                }
                return true;
            }
            GivenBack::ByReader => {
                self.set_lock_mode(task, lock, LockMode::Shared);
                if let Some(word) = self.sync.words.get_mut(address) {
                    word.reader = Some(taken);
                }
            }
            GivenBack::ByWriter => {
                if held.counted {
                    // It was perhaps taken for a reader's.
                    self.set_lock_mode(task, lock, LockMode::Exclusive);
                }
                if let Some(word) = self.sync.words.get_mut(address) {
                    word.writer = Some(taken);
                }
            }
            GivenBack::Dropped => {
                // What was done under it since the last event was not.
                self.sync.locks.give_back(task, address);
                self.send(Event::Unlock { task, lock });
                self.sync.words.is_another_lock(address);
                return false;
            }
            GivenBack::Published => {}
        }
        self.sync.locks.give_back(task, address);
        self.event(Event::Unlock { task, lock });
        let is_lock = given_back != GivenBack::Published;
        self.uses.locks |= is_lock;
        if is_lock && let Some(word) = self.sync.words.get_mut(address) {
            word.released = None;
            self.sync.words.pass_on(address, false, None);
            self.unlocked(address, task);
        }
        is_lock
    }

    fn set_lock_mode(&mut self, task: TaskId, lock: LockId, mode: LockMode) {
        if let Err(error) = self.stream.set_lock_mode(task, lock, mode) {
            self.stop(&error);
        }
    }

    /// Whoever holds the word at an address does so no longer.
    pub(super) fn lose(&mut self, address: usize) {
        for Held { task, lock, .. } in self.sync.locks.forget(&(address..address + 1)) {
            self.sync.words.is_another_lock(address);
            self.lost(task, lock);
        }
    }

    pub(super) fn lost(&mut self, task: TaskId, lock: LockId) {
        if task == self.told() {
            self.event(Event::Unlock { task, lock });
        } else {
            self.sync.locks.lost.push((task, lock));
        }
    }

    /// The running task is another one now. Locks that it has lost meanwhile it gives back.
    #[inline]
    pub fn give_back_lost(&mut self) {
        if self.sync.locks.lost.is_empty() {
            return;
        }
        let current = self.told();
        let lost: Vec<_> = self.sync.locks.lost.extract_if(.., |(task, _)| *task == current).collect();
        for (task, lock) in lost {
            self.event(Event::Unlock { task, lock });
        }
    }

    /// The locks that the running task holds, as it does now.
    pub fn held_now(&mut self) -> Vec<HeldNow> {
        if self.sync.locks.is_idle() {
            return Vec::new();
        }
        let task = self.told();
        self.sync.locks.all_held_by(task).into_iter().map(HeldNow).collect()
    }

    /// The running task holds no lock any more: another one, which goes on in its place, is about to hold them.
    pub fn hand_over(&mut self) -> Vec<HeldNow> {
        let all = self.held_now();
        for &HeldNow(held) in &all {
            self.sync.locks.hand_over(held);
            self.event(Event::Unlock { task: held.task, lock: held.lock });
        }
        all
    }

    /// The running task goes on to hold what another has handed over.
    pub fn take_over(&mut self, all: Vec<HeldNow>) {
        for HeldNow(held) in all {
            let task = self.told();
            let word = self.sync.words.get_mut(held.address);
            let mode = word.map_or(LockMode::Exclusive, |word| word.mode(held.taken, held.counted));
            self.sync.locks.take_over(Held { task, ..held });
            self.event(Event::Lock { task, lock: held.lock, mode });
        }
    }

    /// `child`, which has done nothing yet, and its shadow, are under those of these locks that have been held since. The running task, or its
    /// shadow, is the parent of either.
    pub fn put_under(&mut self, children: impl Iterator<Item = TaskId>, all: &[HeldNow]) {
        let still: Vec<LockId> = {
            let locks = &self.sync.locks;
            all.iter()
                .filter(|HeldNow(held)| locks.is_held_since(held))
                .map(|HeldNow(held)| held.lock)
                .collect()
        };
        for task in children {
            for &lock in &still {
                self.event_of_other(Event::Under { task, lock });
            }
        }
    }

    /// Has one of these been held since?
    pub fn is_held_since(&self, all: &[HeldNow]) -> bool {
        all.iter().any(|HeldNow(held)| self.sync.locks.is_held_since(held))
    }
}

/// How a task held a lock at some time.
#[derive(Debug, Clone, Copy)]
pub struct HeldNow(Held);
