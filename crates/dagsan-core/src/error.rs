//! What can be wrong with the events a front end sends, and with the engine it chose for them.

use crate::bytes::OutOfAddressSpace;
use crate::event::Construct;
use crate::ids::{LockId, PromiseId, RegionId, TaskId};
use crate::order;

/// An event or access that cannot belong to any program, or that the chosen engine cannot judge.
///
/// After an error the stream takes nothing more: what was found before it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A task number that was never given out.
    #[error("{0} does not exist")]
    UnknownTask(TaskId),
    /// A promise number that was never given out.
    #[error("{0} does not exist")]
    UnknownPromise(PromiseId),
    /// A region number that was never given out.
    #[error("{0} does not exist")]
    UnknownRegion(RegionId),
    /// A new task, promise or region that skips or repeats a number.
    #[error("a new {what} must be numbered {expected}, not {got}")]
    NotDense {
        /// What was created.
        what: &'static str,
        /// The next free number.
        expected: u32,
        /// The number in the event.
        got: u32,
    },
    /// An event or access of a task that has ended.
    #[error("{0} has ended, and can do nothing more")]
    TaskEnded(TaskId),
    /// A join of a task that is still running.
    #[error("{by} joins {task}, which is still running")]
    StillRunning {
        /// The joining task.
        by: TaskId,
        /// The running task.
        task: TaskId,
    },
    /// A scope ends while some task in it is still running.
    #[error("{task} ends {scope} in which {running} task(s) are still running")]
    ScopeStillRunning {
        /// The ending task.
        task: TaskId,
        /// What it ends.
        scope: &'static str,
        /// How many are running.
        running: u32,
    },
    /// An end without its begin, or in the wrong order.
    #[error("{task} ends {end}, but its innermost open scope is {open}")]
    Unbalanced {
        /// The ending task.
        task: TaskId,
        /// What it ends.
        end: &'static str,
        /// What is open.
        open: &'static str,
    },
    /// A task ends inside a scope.
    #[error("{task} ends inside {open}")]
    OpenScope {
        /// The ending task.
        task: TaskId,
        /// What is open.
        open: &'static str,
    },
    /// A task or procedure instance ends with spawns that no sync has joined.
    #[error("{task} ends {end} with {spawns} spawned task(s) not synced: a sync is missing before it")]
    Unsynced {
        /// The ending task.
        task: TaskId,
        /// What it ends.
        end: &'static str,
        /// How many spawns.
        spawns: u32,
    },
    /// A get of something that is not a future.
    #[error("{0} is not a future: it cannot be got")]
    NotAFuture(TaskId),
    /// A get of a promise that has not been set.
    #[error("{task} gets {promise} before it is set")]
    NotSet {
        /// The getting task.
        task: TaskId,
        /// The promise.
        promise: PromiseId,
    },
    /// A second set.
    #[error("{task} sets {promise}, which is already set")]
    AlreadySet {
        /// The task of the second set.
        task: TaskId,
        /// The promise.
        promise: PromiseId,
    },
    /// Two isolated sections at once.
    #[error("{task} enters an isolated section while {inside} is inside one")]
    NotIsolated {
        /// The entering task.
        task: TaskId,
        /// The task inside.
        inside: TaskId,
    },
    /// An ewait that joins a task which is not (or no longer) in the region.
    #[error("{task} is not waiting to be joined in {region}")]
    NotInRegion {
        /// The joined task.
        task: TaskId,
        /// The region.
        region: RegionId,
    },
    /// A lock of a lock that the task holds.
    #[error("{task} locks {lock}, which it holds already")]
    AlreadyHeld {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
    /// An unlock, or a change of mode, of a lock that the task does not hold.
    #[error("{task} does not hold {lock}")]
    NotHeld {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
    /// More tasks, strands, promises, regions or locks than 32-bit numbers.
    #[error("more than 2^32 - 1 {0}")]
    TooMany(&'static str),
    /// The chosen engine cannot judge the construct.
    #[error("engine `{engine}` does not support {}; these do: {}", construct.describe(), order::names_supporting(*construct))]
    Unsupported {
        /// The chosen engine.
        engine: &'static str,
        /// What it met.
        construct: Construct,
    },
    /// The chosen engine needs the serial depth-first order, and the stream left it.
    #[error(
        "engine `{engine}` needs the serial depth-first order, and {task} ran out of turn; these do not need it: {}",
        order::names_any_order()
    )]
    NotDepthFirst {
        /// The chosen engine.
        engine: &'static str,
        /// The task that ran out of turn.
        task: TaskId,
    },
    /// An engine name that is not in the table.
    #[error("no engine is called `{name}`; there are: {}", order::names())]
    NoSuchEngine {
        /// The name asked for.
        name: String,
    },
    /// An event after the stream's first error.
    #[error("the stream has stopped at an earlier error")]
    Stopped,
    /// An event or access after [`crate::Detector::finish`].
    #[error("the program has ended, and its races have been found: nothing can come after that")]
    Finished,
    /// A range outside the address space.
    #[error(transparent)]
    Address(#[from] OutOfAddressSpace),
}
