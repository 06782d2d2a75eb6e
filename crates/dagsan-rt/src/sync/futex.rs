//! Threads that wait for a word, and locks that code without hooks gives back meanwhile.
//!
//! **Waiting.** Who wakes a word comes after all that had begun to wait for it, and before those that it wakes. That is so
//! for words that no atomic operation is known of; others say by their operations what they mean.
//!
//! **Condition variables.** The standard library gives the mutex back in code without hooks, waits, and takes it again. So the words
//! that a task holds are looked at when it waits: one that is 0 was given back. It was taken again if it is not 0, and nobody else's, when the
//! task is next heard of.

use std::collections::BTreeMap;
use std::ops::Range;

use dagsan_core::{Event, SyncId, TaskId};

use super::words::Objects;
use crate::peek::peek;
use crate::session::Session;
use crate::tasks::Handle;
use crate::turns;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Futexes {
    /// What those have released that waited for each word.
    waited: BTreeMap<usize, SyncId>,
    /// Words that tasks have given back to wait, and their sizes.
    pub(super) given: Vec<(TaskId, usize, usize)>,
}

impl Futexes {
    pub(super) fn clear(&mut self) {
        self.waited.clear();
    }

    /// What is at these addresses will be other memory.
    #[inline]
    pub(super) fn forget(&mut self, range: &Range<usize>, objects: &mut Objects) {
        if self.waited.is_empty() || range.is_empty() {
            return;
        }
        while let Some((&address, &sync)) = self.waited.range(range.clone()).next() {
            self.waited.remove(&address);
            objects.drop_object(sync);
        }
    }
}

impl Session {
    /// The running task is about to wait for a word.
    pub fn waits_for(&mut self, address: usize) {
        if self.stopped.is_some() {
            return;
        }
        let task = self.told();
        self.locks_are_given_back(task);
        if self.sync.hygiene.atomics && self.sync.words.get_mut(address).is_none() {
            let objects = &mut self.sync.words.objects;
            let sync = *self.sync.futexes.waited.entry(address).or_insert_with(|| objects.new_object());
            let keep = objects.keeps(sync);
            self.event(Event::Release { task, sync, keep });
        }
    }

    /// The running task has woken others that waited for a word.
    pub fn wakes(&mut self, address: usize, woken: &[Handle]) {
        if self.stopped.is_some() || !self.sync.hygiene.atomics {
            return;
        }
        let task = self.told();
        let Some(&waited) = self.sync.futexes.waited.get(&address) else { return };
        self.uses.atomics = true;
        self.counted_acquire(task, waited);
        let sync = self.sync.words.objects.new_object();
        self.event(Event::Release { task, sync, keep: false });
        for &handle in woken {
            // Not the running one: it comes after this when it goes on.
            let task = self.tasks.of_handle(handle);
            self.counted_acquire(task, sync);
        }
        self.sync.words.objects.drop_object(sync);
    }

    /// The words that the task holds, and that are 0: code without hooks has given them back.
    fn locks_are_given_back(&mut self, task: TaskId) {
        for held in self.sync.locks.all_held_by(task) {
            let Some(word) = self.sync.words.get_mut(held.address) else { continue };
            let bytes = word.bytes;
            if peek(held.address, bytes, &self.image) == Some(0) {
                word.last = Some(0);
                self.sync.locks.give_back(task, held.address);
                self.event(Event::Unlock { task, lock: held.lock });
                self.uses.locks = true;
                self.sync.futexes.given.push((task, held.address, bytes));
            }
        }
    }

    /// The running task has given back a lock. Where there are threads, others may wait for it, and take it in ways of their own.
    pub(super) fn unlocked(&mut self, address: usize, task: TaskId) {
        if !turns::are_taken() || !self.sync.hygiene.atomics {
            return;
        }
        let words = &mut self.sync.words;
        let sync = match words.get_mut(address).and_then(|word| word.unlocked) {
            Some(sync) => sync,
            None => {
                let new = words.objects.new_object();
                words.get_mut(address).into_iter().for_each(|word| word.unlocked = Some(new));
                new
            }
        };
        let keep = words.objects.keeps(sync);
        self.event(Event::Release { task, sync, keep });
    }

    /// The running task has done something to a word with acquire order. If that is a lock, which it does not hold as locks are known to be held,
    /// it may have waited for it.
    pub(super) fn waited_for_lock(&mut self, address: usize, task: TaskId) {
        if self.sync.locks.held_by(task, address).is_none()
            && let Some(sync) = self.sync.words.get_mut(address).and_then(|word| word.unlocked)
        {
            self.uses.atomics = true;
            self.counted_acquire(task, sync);
        }
    }

    /// Is the word a lock that a task of another thread holds, so that the operation had better come later?
    pub fn is_locked(&self, address: usize) -> bool {
        // While somebody holds a lock, all tasks are told, and have numbers.
        let this = self.tasks.thread_of(self.tasks.current().0);
        self.sync.locks.holders(address).any(|held| self.tasks.thread_of(held.task.0) != this)
    }

    /// The running task may have taken again what it had given back; `operation` is the word that it has just changed, and what that was before.
    #[inline]
    pub fn take_again(&mut self, operation: Option<(usize, u64)>) {
        if !self.sync.futexes.given.is_empty() && self.stopped.is_none() {
            self.look_at_given(operation);
        }
    }

    #[cold]
    fn look_at_given(&mut self, operation: Option<(usize, u64)>) {
        let task = self.tasks.current();
        let given: Vec<_> = self.sync.futexes.given.extract_if(.., |(by, ..)| *by == task).collect();
        for (_, address, bytes) in given {
            let value = match operation {
                Some((changed, old)) if changed == address => Some(old),
                _ => peek(address, bytes, &self.image),
            };
            match value {
                Some(value) if value != 0 && !self.sync.locks.is_held(address) => {
                    // What was done since, was done under it.
                    let lock = self.holds(address, bytes, value, task);
                    self.send(lock);
                }
                Some(_) => self.sync.futexes.given.push((task, address, bytes)),
                // The memory is gone.
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_word_has_not_waited_for_what_comes_to_its_address() {
        let (mut futexes, mut objects) = (Futexes::default(), Objects::default());
        futexes.waited = [8, 16, 24].map(|address| (address, objects.new_object())).into();
        futexes.forget(&(12..24), &mut objects);
        assert_eq!(futexes.waited.keys().copied().collect::<Vec<_>>(), [8, 24]);
        assert_eq!(objects.new_object(), SyncId(1), "its number is used again");
    }
}
