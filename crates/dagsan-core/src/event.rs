//! Task events: what a front end says about the program it runs.
//!
//! An event ends the strand of the task it names. Together with the accesses of the strands, events
//! determine the computation graph; the edges each one adds are written here, and the graph builder
//! ([`crate::graph`]) is the code that says the same.
//!
//! | event | edges, besides the one from the task's strand to its next |
//! |---|---|
//! | `Spawn` | parent's strand → child's first strand |
//! | `FinishEnd` | last strand of every task started in the scope → next strand |
//! | `Sync` | last strand of every task that this procedure instance spawned, or started as a child → next strand |
//! | `FutureGet` | last strand of the future → next strand |
//! | `PromiseGet` | strand that set the promise → next strand |
//! | `Await`, `Ewait` | last strand of every, or of the named, task of the region → next strand |
//! | `IsolatedBegin` | last strand of the isolated section before → next strand (ordered reading only) |
//! | `Acquire` | every kept release of the object → next strand |
//! | `Pass` | none: the kept releases of the one object are among those of the other from here on |
//!
//! `Lock` and `Unlock` add none: what strands that held the same lock did cannot race ([`LockMode`]).

use crate::ids::{LockId, PromiseId, RegionId, SyncId, TaskId};
use crate::locks::LockMode;

/// How a task was created, which decides who joins it besides the enclosing finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// `async`: only the enclosing finish joins it.
    Async,
    /// Cilk's `spawn`: the next sync of the same procedure instance joins it.
    Spawn,
    /// A future: any `get` joins it.
    Future,
    /// OpenMP's `task`: the next sync of the same procedure instance joins it, as a spawn, and any `get`, as a future. The task that has
    /// started it may end before that: then the finish around joins it.
    Child,
    /// Posted to a region: `await` and `ewait` on the region join it.
    Post(RegionId),
    /// Nobody joins it but the end of the program: it outlives every finish that it is started in.
    Detached,
}

/// A task event. Every event is made by the task in its first field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// `parent` creates `child`, whose number must be the next unused one.
    Spawn {
        /// The creating task.
        parent: TaskId,
        /// The created task.
        child: TaskId,
        /// Who will join it.
        kind: TaskKind,
    },
    /// The task ends. All its scopes are closed and all its spawns synced; its children may be left.
    TaskEnd {
        /// The ending task.
        task: TaskId,
    },
    /// A finish begins.
    FinishBegin {
        /// The task that runs the finish.
        task: TaskId,
    },
    /// The innermost open finish of the task ends; every task started in its scope has ended.
    FinishEnd {
        /// The task that runs the finish.
        task: TaskId,
    },
    /// A procedure instance begins. Only procedures that spawn need to say so; a task's body is one
    /// without saying.
    FrameBegin {
        /// The calling task.
        task: TaskId,
    },
    /// The innermost procedure instance ends. All its spawns are synced.
    FrameEnd {
        /// The calling task.
        task: TaskId,
    },
    /// Joins everything the current procedure instance has spawned and not yet synced.
    Sync {
        /// The joining task.
        task: TaskId,
    },
    /// Joins a future that has ended.
    FutureGet {
        /// The joining task.
        task: TaskId,
        /// The future.
        future: TaskId,
    },
    /// A promise comes into being; its number must be the next unused one.
    PromiseNew {
        /// The creating task.
        task: TaskId,
        /// The promise.
        promise: PromiseId,
    },
    /// The promise is set, once.
    PromiseSet {
        /// The setting task.
        task: TaskId,
        /// The promise.
        promise: PromiseId,
    },
    /// A promise that has been set is got.
    PromiseGet {
        /// The getting task.
        task: TaskId,
        /// The promise.
        promise: PromiseId,
    },
    /// An isolated section begins; no other one is open.
    IsolatedBegin {
        /// The entering task.
        task: TaskId,
    },
    /// The isolated section ends.
    IsolatedEnd {
        /// The leaving task.
        task: TaskId,
    },
    /// A region comes into being; its number must be the next unused one.
    RegionNew {
        /// The creating task.
        task: TaskId,
        /// The region.
        region: RegionId,
    },
    /// Joins every task of the region that has not been joined through it; all have ended.
    Await {
        /// The joining task.
        task: TaskId,
        /// The region.
        region: RegionId,
    },
    /// Joins one task of the region that has ended.
    Ewait {
        /// The joining task.
        task: TaskId,
        /// The region.
        region: RegionId,
        /// The task that the schedule chose.
        joined: TaskId,
    },
    /// The task holds a lock from here on, until it unlocks it. It may hold others; nothing says that it has to
    /// give it back before it ends.
    Lock {
        /// The locking task.
        task: TaskId,
        /// The lock, which it does not hold yet.
        lock: LockId,
        /// How it holds it.
        mode: LockMode,
    },
    /// The task holds the lock no longer.
    Unlock {
        /// The unlocking task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
    /// The task, which has done nothing yet, is under a lock: its parent has held that since before it has created the task, and waits for it.
    /// See `held`.
    Under {
        /// The task that is under the lock.
        task: TaskId,
        /// The lock, which its parent holds, or is under.
        lock: LockId,
    },
    /// The task goes on to hold the lock, in another mode ([`crate::Stream::set_lock_mode`]).
    SetLockMode {
        /// The holding task.
        task: TaskId,
        /// The lock.
        lock: LockId,
        /// How it holds it from now on.
        mode: LockMode,
    },
    /// What the task did so far comes before what follows an acquire of the object: a store, or the storing
    /// half of a read-modify-write.
    Release {
        /// The releasing task.
        task: TaskId,
        /// The object.
        sync: SyncId,
        /// Are the releases before this one kept? A read-modify-write keeps them, a store starts anew.
        keep: bool,
    },
    /// What the kept releases of the object released comes before what follows: a load, or the loading
    /// half of a read-modify-write. Without a release it means nothing.
    Acquire {
        /// The acquiring task.
        task: TaskId,
        /// The object.
        sync: SyncId,
    },
    /// Whoever acquires `to` from here on comes after what the kept releases of `from` have released so far, too: the task itself releases
    /// nothing. So a front end that must know which releases were there at some time has an object for those, and one for the later
    /// ones, and makes one of them when nobody needs to know any more.
    Pass {
        /// The task that is heard of meanwhile.
        task: TaskId,
        /// The object that stays as it is.
        from: SyncId,
        /// The object that has more.
        to: SyncId,
        /// Are the releases that it has kept?
        keep: bool,
    },
}

impl Event {
    /// The task that makes the event.
    #[inline]
    pub fn task(&self) -> TaskId {
        let mut event = *self;
        *event.task_mut()
    }

    /// The same, to be told of another stream.
    #[inline]
    pub fn task_mut(&mut self) -> &mut TaskId {
        use Event::*;
        match self {
            Spawn { parent: task, .. }
            | TaskEnd { task }
            | FinishBegin { task }
            | FinishEnd { task }
            | FrameBegin { task }
            | FrameEnd { task }
            | Sync { task }
            | FutureGet { task, .. }
            | PromiseNew { task, .. }
            | PromiseSet { task, .. }
            | PromiseGet { task, .. }
            | IsolatedBegin { task }
            | IsolatedEnd { task }
            | RegionNew { task, .. }
            | Await { task, .. }
            | Ewait { task, .. }
            | Lock { task, .. }
            | Unlock { task, .. }
            | Under { task, .. }
            | SetLockMode { task, .. }
            | Release { task, .. }
            | Acquire { task, .. }
            | Pass { task, .. } => task,
        }
    }

    /// The construct of the event, if it belongs to one that an engine may not support. Ends and
    /// set-up belong to none: what they close has been asked about before.
    pub fn construct(&self) -> Option<Construct> {
        use Event::*;
        match self {
            Spawn { kind: TaskKind::Async, .. } | FinishBegin { .. } => Some(Construct::AsyncFinish),
            Spawn { kind: TaskKind::Spawn, .. } | Sync { .. } => Some(Construct::SpawnSync),
            Spawn { kind: TaskKind::Future, .. } | FutureGet { .. } => Some(Construct::StructuredFuture),
            Spawn { kind: TaskKind::Child, .. } => Some(Construct::Child),
            Spawn { kind: TaskKind::Post(_), .. } | Await { .. } | Ewait { .. } => Some(Construct::Region),
            Spawn { kind: TaskKind::Detached, .. } => Some(Construct::Detached),
            PromiseSet { .. } | PromiseGet { .. } => Some(Construct::Promise),
            IsolatedBegin { .. } => Some(Construct::Isolated),
            Lock { .. } => Some(Construct::Lock),
            Release { .. } | Acquire { .. } | Pass { .. } => Some(Construct::Atomic),
            TaskEnd { .. }
            | FinishEnd { .. }
            | FrameBegin { .. }
            | FrameEnd { .. }
            | PromiseNew { .. }
            | IsolatedEnd { .. }
            | RegionNew { .. }
            | Unlock { .. }
            | Under { .. }
            | SetLockMode { .. } => None,
        }
    }
}

/// The constructs by which engines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Construct {
    /// async and finish.
    AsyncFinish,
    /// Cilk's spawn and sync.
    SpawnSync,
    /// Futures with one get, whose handle reaches the get without passing through the future.
    StructuredFuture,
    /// Futures without that restriction.
    GeneralFuture,
    /// Tasks that a sync of their parent joins, and that may outlive it.
    Child,
    /// Promises.
    Promise,
    /// Isolated sections.
    Isolated,
    /// Regions with post, await and ewait.
    Region,
    /// Locks, read as mutual exclusion.
    Lock,
    /// Atomics: release and acquire.
    Atomic,
    /// Tasks that outlive the finish they are started in.
    Detached,
}

impl Construct {
    /// The construct in a message to the user.
    pub fn describe(self) -> &'static str {
        match self {
            Construct::AsyncFinish => "async/finish",
            Construct::SpawnSync => "spawn/sync",
            Construct::StructuredFuture => "structured futures",
            Construct::GeneralFuture => "general futures",
            Construct::Child => "tasks that may outlive their parent",
            Construct::Promise => "promises",
            Construct::Isolated => "isolated sections",
            Construct::Region => "regions",
            Construct::Lock => "locks",
            Construct::Atomic => "atomics",
            Construct::Detached => "detached tasks",
        }
    }
}
