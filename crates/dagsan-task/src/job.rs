//! A task that has not begun, on the heap: what workers take from each other.
//!
//! ```text
//!   Job   where it was started, who joins it, how to run it, how to drop it ┐
//!   ...   the body, and room for the result                                 ┴ one allocation, which begins with the job
//! ```

use std::ptr::NonNull;

use crate::events::Place;
use crate::join::Join;
use crate::task::Entry;

/// See the module's documentation.
pub(crate) struct Job {
    /// Runs the body. Called once with the job, unless `discard` is; the job is gone then.
    pub(crate) entry: Entry,
    /// Drops the body, which was not run, and frees the job.
    pub(crate) discard: unsafe fn(*mut ()),
    pub(crate) place: Place,
    /// The finish in which it was started, and the procedure that has spawned it; set when it is handed in.
    pub(crate) finish: Option<NonNull<Join>>,
    pub(crate) spawner: Option<NonNull<Join>>,
}

impl Job {
    pub(crate) fn new(place: Place, entry: Entry, discard: unsafe fn(*mut ())) -> Job {
        Job { entry, discard, place, finish: None, spawner: None }
    }
}

/// A job in a queue, which owns it.
#[derive(Debug)]
pub(crate) struct Queued(pub(crate) NonNull<Job>);

// SAFETY: bodies are `Send`, and so are their results: `spawn` and `future` ask for it. Joins are used by other threads in the
// ways that `join.rs` allows.
unsafe impl Send for Queued {}
