//! Fences: an acquire fence for what was loaded before it, a release fence for what is stored after it.
//!
//! A release fence is an object that is released where the fence is. A store after it, without release order of its own, passes the
//! object on: whoever acquires the word acquires what was done before the fence, and no more.
//!
//! An acquire fence acquires what the loads before it have seen, and not what was released since. So whoever loads a word holds the objects
//! that it passes on by then, and who releases it afterwards has another one for that (`words`).

use dagsan_core::{SyncId, TaskId};
use rustc_hash::FxHashMap;

/// What a task has seen of a word. It holds these objects.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// What the word does not pass on any more.
    pub(super) before: Option<SyncId>,
    /// What it does, or did when it was loaded last.
    pub(super) seen: Vec<SyncId>,
}

impl Loaded {
    pub(super) fn objects(&self) -> impl Iterator<Item = SyncId> {
        self.before.into_iter().chain(self.seen.iter().copied())
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Fences {
    /// Words with news that tasks have loaded without acquire order since their last fence.
    loaded: FxHashMap<TaskId, FxHashMap<usize, Loaded>>,
    /// The latest release fence of each task.
    latest: FxHashMap<TaskId, SyncId>,
}

impl Fences {
    /// What `task` has seen of a word, if it has.
    pub(super) fn loaded(&mut self, task: TaskId, address: usize) -> Option<&mut Loaded> {
        self.loaded.get_mut(&task)?.get_mut(&address)
    }

    pub(super) fn load(&mut self, task: TaskId, address: usize, loaded: Loaded) {
        self.loaded.entry(task).or_default().insert(address, loaded);
    }

    /// The word is gone, or what `task` has seen of it.
    pub(super) fn forget(&mut self, task: TaskId, address: usize) -> Option<Loaded> {
        self.loaded.get_mut(&task)?.remove(&address)
    }

    /// The words that an acquire fence of `task` is about, in the order of their addresses.
    pub(super) fn take_loaded(&mut self, task: TaskId) -> Vec<(usize, Loaded)> {
        let mut loaded: Vec<_> = self.loaded.remove(&task).into_iter().flatten().collect();
        loaded.sort_unstable_by_key(|(address, _)| *address);
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

    /// The task has ended; its latest fence, and what it has loaded.
    pub(super) fn task_ended(&mut self, task: TaskId) -> Vec<SyncId> {
        if self.is_empty() {
            return Vec::new();
        }
        let loaded = self.loaded.remove(&task).into_iter().flat_map(FxHashMap::into_values);
        let mut objects: Vec<SyncId> =
            loaded.flat_map(|loaded| loaded.objects().collect::<Vec<_>>()).collect();
        objects.extend(self.latest.remove(&task));
        objects
    }

    /// All that was precedes all that comes.
    pub(super) fn quiesce(&mut self) {
        self.loaded.clear();
        self.latest.clear();
    }
}
