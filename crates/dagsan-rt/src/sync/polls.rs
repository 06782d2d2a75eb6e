//! `epoll`: what is registered is handed to whoever is told of an event of it.
//!
//! A thread registers a file with a number of its own, which is most often an address, and the kernel gives that number to the thread that
//! waits. So what was done before the registration comes before what is done with the number. Nothing else is ordered: not what was
//! registered with other numbers, and not what is written to the file.

use dagsan_core::{Event, SyncId};
use rustc_hash::FxHashMap;

use crate::session::Session;

/// What was released with each number, by the `epoll` and the number.
#[derive(Debug, Default)]
pub(super) struct Polls(FxHashMap<(u32, u64), SyncId>);

impl Polls {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Session {
    /// The running task registers a file with this number, anew or once more.
    pub fn registers(&mut self, poll: u32, number: u64, once_more: bool) {
        if self.stopped.is_some() || !self.sync.hygiene.atomics {
            return;
        }
        let task = self.told();
        let objects = &mut self.sync.words.objects;
        let sync = *self.sync.polls.0.entry((poll, number)).or_insert_with(|| objects.new_object());
        let keep = objects.keeps(sync) && once_more;
        self.event(Event::Release { task, sync, keep });
    }

    /// The running task is told of events with these numbers.
    pub fn is_told(&mut self, poll: u32, numbers: impl Iterator<Item = u64>) {
        if self.stopped.is_some() || self.sync.polls.0.is_empty() {
            return;
        }
        let task = self.told();
        for number in numbers {
            if let Some(&sync) = self.sync.polls.0.get(&(poll, number)) {
                self.uses.atomics = true;
                self.counted_acquire(task, sync);
            }
        }
    }
}
