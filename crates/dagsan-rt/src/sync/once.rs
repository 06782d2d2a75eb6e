//! Words that code without hooks changes: the standard library completes a `Once` in code that is not instrumented.
//!
//! A task that looks at a `Once`, and finds it incomplete, completes it in a call that it makes at once, or somebody else does. So
//! the words of that size that a strand has loaded with acquire order are looked at again when it ends. One that has changed by then was changed
//! by the strand, and what it holds now counts as released. If it is complete now, or has not changed at all, there is nothing to
//! come. Otherwise the initialisation is still going on, tasks in it and all, and the word is looked at again.
//!
//! What the strand does after the initialisation would count as released, too. So DagSan's own pass has the program call
//! `__dagsan_once_called` when that function of the standard library returns: the strand ends there.

use std::sync::Once;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use dagsan_core::TaskId;

/// A word that a task has loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched {
    pub(super) task: TaskId,
    pub(super) address: usize,
    /// Has it changed since, and not to its end?
    running: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Watch {
    words: Vec<Watched>,
    /// What a word of a completed `Once` holds.
    complete: Option<u64>,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { words: Vec::new(), complete: complete() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// A word of so many bytes was loaded, and had this value. It may be a `Once` that is not complete.
    pub(super) fn loaded(&mut self, task: TaskId, address: usize, bytes: usize, value: u64) {
        if bytes != size_of::<Once>() || Some(value) == self.complete {
            return;
        }
        self.words.push(Watched { task, address, running: false });
    }

    /// The words that `task` has loaded.
    pub(super) fn addresses(&self, task: TaskId) -> Vec<usize> {
        self.words.iter().filter(|word| word.task == task).map(|word| word.address).collect()
    }

    /// Those of `task`, to be looked at.
    pub(super) fn take(&mut self, task: TaskId) -> Vec<Watched> {
        self.words.extract_if(.., |word| word.task == task).collect()
    }

    /// The word was looked at, and has changed to a value or not: it is watched further if more is to come.
    pub(super) fn looked_at(&mut self, word: Watched, changed: Option<u64>) {
        let running = match changed {
            None => word.running,
            Some(value) => Some(value) != self.complete,
        };
        if running {
            self.words.push(Watched { running, ..word });
        }
    }

    /// The memory is gone.
    pub(super) fn forget(&mut self, range: &std::ops::Range<usize>) {
        self.words.retain(|word| !range.contains(&word.address));
    }

    pub(super) fn task_ended(&mut self, task: TaskId) {
        self.words.retain(|word| word.task != task);
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
    }
}

/// What the word of a completed `Once` holds, with the standard library that this is compiled with. None if a `Once` is not a
/// word: it is then watched for as long as its task lives.
fn complete() -> Option<u64> {
    let once = Once::new();
    once.call_once(|| {});
    if size_of::<Once>() != size_of::<u32>() || align_of::<Once>() != align_of::<u32>() {
        return None;
    }
    // SAFETY: of the size and alignment of a word, and alive; its only field is atomic.
    let word = unsafe { AtomicU32::from_ptr((&raw const once).cast_mut().cast()) };
    Some(word.load(Relaxed).into())
}
