//! Fences: an acquire fence for what was loaded before it, a release fence for what is stored after it.
//!
//! A release fence is an object that is released where the fence is. A store after it, without release order of its own, passes the
//! object on: whoever acquires the word acquires what was done before the fence, and no more.

use dagsan_core::{SyncId, TaskId};
use rustc_hash::{FxHashMap, FxHashSet};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Fences {
    /// Words with news that tasks have loaded without acquire order since their last fence.
    loaded: FxHashMap<TaskId, FxHashSet<usize>>,
    /// The latest release fence of each task.
    latest: FxHashMap<TaskId, SyncId>,
}

impl Fences {
    pub(super) fn load(&mut self, task: TaskId, address: usize) {
        self.loaded.entry(task).or_default().insert(address);
    }

    /// The words that an acquire fence of `task` is about, in the order of their addresses.
    pub(super) fn take_loaded(&mut self, task: TaskId) -> Vec<usize> {
        let mut loaded: Vec<usize> = self.loaded.remove(&task).into_iter().flatten().collect();
        loaded.sort_unstable();
        loaded
    }

    /// Is there none that matters?
    pub(super) fn is_empty(&self) -> bool {
        self.loaded.is_empty() && self.latest.is_empty()
    }

    /// The latest release fence of `task`.
    pub(super) fn latest(&self, task: TaskId) -> Option<SyncId> {
        self.latest.get(&task).copied()
    }

    /// `task` has come by a release fence.
    pub(super) fn release(&mut self, task: TaskId, fence: SyncId) {
        self.latest.insert(task, fence);
    }

    /// The task has ended; its latest fence.
    pub(super) fn task_ended(&mut self, task: TaskId) -> Option<SyncId> {
        if self.is_empty() {
            return None;
        }
        self.loaded.remove(&task);
        self.latest.remove(&task)
    }

    /// All that was precedes all that comes.
    pub(super) fn quiesce(&mut self) {
        self.loaded.clear();
        self.latest.clear();
    }
}
