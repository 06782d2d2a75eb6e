//! What a promise and a future have in common: something that opens once, and that tasks wait for.
//!
//! The latch holds no value. Values live beside it (`value`), and are there before the latch opens.
//!
//! Any thread may open a latch or look at it. The tasks that wait are known to the executor of their thread, or to the list of
//! `sleepers.rs`.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::events::{self, Place};
use crate::running::Running;

/// Who opens the latch.
#[derive(Debug)]
enum Kind {
    /// A set, in any task. The name is for messages.
    Promise(Option<Box<str>>),
    /// The end of the future's task.
    Future,
}

/// The states of a latch. It goes from the first to one of the others, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Not set, or still running.
    Closed,
    /// The value is there.
    Open,
    /// The task of the future has panicked: there will be no value.
    Panicked,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Latch {
    kind: Kind,
    created: Place,
    /// DagSan's number of the promise, or of the future's task.
    number: AtomicU64,
    /// Is it the number of a promise, which the future's task sets at its end?
    stray: AtomicBool,
    /// One until it is open, then 0; and whether somebody sleeps until then.
    closed: Running,
    /// Has it been opened without a value?
    panicked: AtomicBool,
    /// Has somebody undertaken to open it?
    claimed: AtomicBool,
}

impl Latch {
    pub(crate) fn promise(name: Option<Box<str>>, created: Place) -> Latch {
        Latch::new(Kind::Promise(name), created, events::promise_new())
    }

    /// The number of its task comes later, see [`Latch::set_number`].
    pub(crate) fn future(created: Place) -> Latch {
        Latch::new(Kind::Future, created, 0)
    }

    fn new(kind: Kind, created: Place, number: u64) -> Latch {
        Latch {
            kind,
            created,
            number: AtomicU64::new(number),
            stray: AtomicBool::new(false),
            closed: Running::new(1),
            panicked: AtomicBool::new(false),
            claimed: AtomicBool::new(false),
        }
    }

    /// Undertakes to open the latch: only the first one may.
    #[inline(never)]
    pub(crate) fn claim(&self) -> bool {
        // Relaxed: says nothing but who was first.
        !self.claimed.swap(true, Ordering::Relaxed)
    }

    /// Gives the future the number of its task, or else of the promise that this sets at its end, before it runs.
    pub(crate) fn set_number(&self, task: events::Task, promise: Option<u64>) {
        // Relaxed: only read after the latch was seen open, which is ordered by `closed`.
        self.number.store(promise.unwrap_or(task), Ordering::Relaxed);
        self.stray.store(promise.is_some(), Ordering::Relaxed);
    }

    #[inline(never)]
    pub(crate) fn state(&self) -> State {
        // Who sees the latch open sees the number, and all that its opener did before.
        if !self.closed.is_over() {
            State::Closed
        } else if self.panicked.load(Ordering::Relaxed) {
            State::Panicked
        } else {
            State::Open
        }
    }

    /// Opens the latch, and tells DagSan if that is an event of its own; the end of a task tells for itself. Says whether
    /// somebody of a crew sleeps until it opens, and has to be woken.
    pub(crate) fn open(&self, state: State) -> bool {
        if let Kind::Promise(_) = self.kind {
            // Relaxed: set when the promise was made, and whoever can set it has been given the promise since.
            events::promise_set(self.number.load(Ordering::Relaxed));
        }
        // Relaxed: read after the latch was seen open.
        self.panicked.store(state == State::Panicked, Ordering::Relaxed);
        self.closed.ended()
    }

    /// A task of a crew is about to sleep until the latch opens. It need not if this says that it is open.
    pub(crate) fn sleeps(&self) -> bool {
        self.closed.sleeps()
    }

    /// The present task has seen the latch open, and goes on after what opened it.
    pub(crate) fn joined(&self) {
        // Relaxed: see `set_number`.
        let number = self.number.load(Ordering::Relaxed);
        match self.kind {
            Kind::Future if !self.stray.load(Ordering::Relaxed) => events::future_get(number),
            Kind::Promise(_) | Kind::Future => events::promise_get(number),
        }
    }
}

/// The last handle is gone. A promise that a future sets at its end is got by the scope around it, too.
impl Drop for Latch {
    #[inline(never)]
    fn drop(&mut self) {
        let number = *self.number.get_mut();
        match self.kind {
            Kind::Promise(_) => events::promise_drop(number),
            Kind::Future if *self.stray.get_mut() => {}
            Kind::Future => events::future_drop(number),
        }
    }
}

impl fmt::Display for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Promise(Some(name)) => write!(f, "promise `{name}`"),
            Kind::Promise(None) => write!(f, "the promise created at {}", self.created),
            Kind::Future => write!(f, "the future created at {}", self.created),
        }
    }
}
