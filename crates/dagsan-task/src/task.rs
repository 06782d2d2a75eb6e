//! What the executor knows of a task, and what tasks wait for.
//!
//! A task's record lies in its fiber, and is used again by the next task on it. The main task of a thread has a record
//! in the executor. All of it is touched by one thread only, but for `deadlock`: see `sleepers.rs`.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::events::{self, Place};
use crate::fiber;
use crate::join::Join;
use crate::latch::{Latch, State};
use crate::slot::Slot;

/// The first code of a task. Its first argument is the parent's, and good until the entry has taken what it needs from it,
/// which it does first. The second is the finish in which the task was started, if there is one.
pub(crate) type Entry = unsafe fn(*mut (), Option<NonNull<Join>>);

/// A fiber of the executor.
pub(crate) type Fiber = fiber::Fiber<Task>;

/// What the executor knows of a task.
pub(crate) struct Task {
    /// Who goes on when its fiber is woken: the task itself, or one of rayon's that runs on its stack.
    pub(crate) id: Cell<events::Task>,
    /// Who goes on when it has ended: whoever has woken its fiber last.
    pub(crate) goes_on: Cell<events::Task>,
    /// What rayon's code on its stack knows, while the fiber sleeps.
    pub(crate) context: Cell<usize>,
    /// If none of its joins can join it in the way that DagSan knows: the promise that it sets at its end.
    pub(crate) ends: Cell<Option<u64>>,
    /// Where it was started; none for the main task.
    pub(crate) started: Cell<Option<Place>>,
    /// The innermost finish that it is in.
    pub(crate) finish: Cell<Option<NonNull<Join>>>,
    /// The innermost procedure that it has entered.
    pub(crate) frame: Cell<Option<NonNull<Join>>>,
    /// The procedure that joins it, if that has spawned it.
    pub(crate) spawner: Cell<Option<NonNull<Join>>>,
    pub(crate) entry: Cell<Entry>,
    pub(crate) data: Cell<*mut ()>,
    /// Has it ended? If not, and its fiber sleeps, then it waits.
    pub(crate) ended: Cell<bool>,
    pub(crate) panicked: Cell<bool>,
    /// Where its result goes if its parent did not wait for it; see `procedure.rs`.
    pub(crate) slot: Cell<Option<Slot>>,
    /// Where and what for it waits, while it is in `blocked`.
    pub(crate) wait: Cell<Option<(Wait, Place)>>,
    /// Set if its wait is in vain.
    pub(crate) deadlock: Cell<Option<Arc<str>>>,
    /// The next fiber in the pool.
    pub(crate) next: Cell<Option<NonNull<Fiber>>>,
}

impl Task {
    pub(crate) const fn new() -> Task {
        Task {
            id: Cell::new(0),
            goes_on: Cell::new(0),
            context: Cell::new(0),
            ends: Cell::new(None),
            started: Cell::new(None),
            finish: Cell::new(None),
            frame: Cell::new(None),
            spawner: Cell::new(None),
            entry: Cell::new(|_, _| {}),
            data: Cell::new(ptr::null_mut()),
            ended: Cell::new(false),
            panicked: Cell::new(false),
            slot: Cell::new(None),
            wait: Cell::new(None),
            deadlock: Cell::new(None),
            next: Cell::new(None),
        }
    }

    /// The fiber gets this task.
    pub(crate) fn prepare(
        &self,
        started: Place,
        finish: Option<NonNull<Join>>,
        spawner: Option<NonNull<Join>>,
        entry: Entry,
        data: *mut (),
    ) {
        self.started.set(Some(started));
        self.finish.set(finish);
        self.frame.set(None);
        self.spawner.set(spawner);
        self.entry.set(entry);
        self.data.set(data);
        self.ended.set(false);
    }
}

/// What a task waits for. Lives until the wait is over: a latch is borrowed by the `get`, a join is the waiter's own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    Latch(NonNull<Latch>),
    Join(NonNull<Join>),
}

impl Wait {
    pub(crate) fn address(self) -> usize {
        match self {
            Wait::Latch(latch) => latch.as_ptr() as usize,
            Wait::Join(join) => join.as_ptr() as usize,
        }
    }

    #[inline]
    pub(crate) fn is_over(self) -> bool {
        // SAFETY: they live as long as somebody waits, see `Wait`.
        unsafe {
            match self {
                Wait::Latch(latch) => latch.as_ref().state() != State::Closed,
                Wait::Join(join) => join.as_ref().running.is_over(),
            }
        }
    }

    /// The waiter is about to sleep, with others at work. It need not if this says that the wait is over.
    pub(crate) fn sleeps(self) -> bool {
        // SAFETY: as in `is_over`.
        unsafe {
            match self {
                Wait::Latch(latch) => latch.as_ref().sleeps(),
                Wait::Join(join) => join.as_ref().running.sleeps(),
            }
        }
    }

    pub(crate) fn describe(self) -> String {
        match self {
            // SAFETY: see `Wait`.
            Wait::Latch(latch) => unsafe { latch.as_ref() }.to_string(),
            Wait::Join(_) => String::from("the tasks that it has to join there"),
        }
    }
}
