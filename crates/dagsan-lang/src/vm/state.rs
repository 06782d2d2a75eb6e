//! The state of a running program: memory, tasks, promises, scopes, regions. Plain data that can be cloned.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::compile::FIRST_CELL;
use crate::hir::{Hir, MakerId};

/// No scope, region or task.
pub(crate) const NONE: u32 = u32::MAX;

/// A frame of a procedure instance.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Where the caller goes on.
    pub(crate) return_to: u32,
    /// The caller's first register.
    pub(crate) caller_base: u32,
    /// What the instance has spawned and not synced: a scope, or [`NONE`].
    pub(crate) spawned: u32,
}

/// What a task that has not ended needs to go on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    /// The registers of all frames.
    pub(crate) stack: Vec<i64>,
    pub(crate) frames: Vec<Frame>,
    /// The next operation.
    pub(crate) pc: u32,
    /// The first register of the current frame.
    pub(crate) base: u32,
    /// The finishes it is in, outermost first.
    pub(crate) finishes: Vec<u32>,
    /// How many isolated sections it is in.
    pub(crate) isolated: u32,
    /// Handlers that awaits have still to run, the innermost await last: (handler, result).
    pub(crate) joined: Vec<Vec<(u32, i64)>>,
    /// Where the handlers that are running go on.
    pub(crate) handler_returns: Vec<u32>,
    /// What a scheduler let it do, when it comes to do it.
    pub(crate) granted: Option<Granted>,
}

/// What a scheduler lets a task do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Granted {
    /// Enter its isolated section.
    Section,
    /// Join this task.
    Join(u32),
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Finish,
    Sync,
    Promise(u32),
    Future(u32),
    Await,
    /// One task of this region.
    Ewait(u32),
    /// Its turn to enter an isolated section, under a scheduler.
    Section,
    /// Another task's access, for a witness.
    Gate,
}

#[derive(Debug, Clone)]
pub(crate) enum Status {
    /// Running, or ready to.
    Ready(Box<Running>),
    Blocked(Box<Running>, Wait),
    /// Ended, with this result.
    Ended(i64),
    /// On the processor: its state is with the interpreter.
    Current,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) status: Status,
    pub(crate) parent: u32,
    /// How many tasks its parent had created before it.
    pub(crate) birth: u32,
    /// How many it has created.
    pub(crate) children: u32,
    /// Which of the places that create tasks; [`NONE`] for the main task.
    pub(crate) site: u32,
    /// The finish that joins it.
    pub(crate) finish: u32,
    /// The sync scope that joins it, or [`NONE`].
    pub(crate) sync: u32,
    /// The region that it was posted to, or [`NONE`].
    pub(crate) region: u32,
}

/// A finish, or the spawns of a procedure instance: how many tasks in it run, and who waits for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) running: u32,
    pub(crate) waiter: Option<u32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Promise {
    pub(crate) value: Option<i64>,
    /// Who made it, and which of an array of promises it is.
    pub(crate) maker: MakerId,
    pub(crate) element: Option<u32>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Region {
    /// The tasks that were not joined through it, in the order of posting.
    pub(crate) posted: Vec<u32>,
    /// Those of them that have ended, in that order.
    pub(crate) ended: Vec<u32>,
    pub(crate) waiters: Vec<u32>,
    /// The first task that posted to it or waited for it.
    pub(crate) user: Option<u32>,
}

/// An array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object {
    pub(crate) base: u32,
    pub(crate) len: u32,
    pub(crate) maker: MakerId,
}

/// Everything that changes while a program runs.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Shared memory, in cells of 8 bytes: the scalars, then the arrays.
    pub(crate) cells: Vec<i64>,
    /// The arrays, by their place.
    pub(crate) objects: Vec<Object>,
    pub(crate) fixed: Vec<i64>,
    pub(crate) tasks: Vec<Task>,
    /// Who can run, the next one last.
    pub(crate) ready: Vec<u32>,
    /// How many tasks have not ended.
    pub(crate) alive: u32,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) free_scopes: Vec<u32>,
    pub(crate) promises: Vec<Promise>,
    /// Who waits for a promise.
    pub(crate) promise_waiters: FxHashMap<u32, Vec<u32>>,
    /// Who waits for a future.
    pub(crate) future_waiters: FxHashMap<u32, Vec<u32>>,
    pub(crate) regions: Vec<Region>,
    /// Has some region been used by several tasks?
    pub(crate) shared_region: bool,
    /// Who waits for a scheduler's decision, by number.
    pub(crate) parked: BTreeSet<u32>,
    pub(crate) output: String,
}

impl State {
    /// Before the first operation.
    pub(crate) fn new(hir: &Hir) -> State {
        State {
            cells: vec![0; FIRST_CELL as usize + hir.shareds.len()],
            objects: Vec::new(),
            fixed: vec![0; hir.fixeds as usize],
            tasks: Vec::new(),
            ready: Vec::new(),
            alive: 0,
            scopes: Vec::new(),
            free_scopes: Vec::new(),
            promises: Vec::new(),
            promise_waiters: FxHashMap::default(),
            future_waiters: FxHashMap::default(),
            regions: Vec::new(),
            shared_region: false,
            parked: BTreeSet::new(),
            output: String::new(),
        }
    }

    pub(crate) fn new_scope(&mut self) -> u32 {
        if let Some(id) = self.free_scopes.pop() {
            self.scopes[id as usize] = Scope::default();
            return id;
        }
        self.scopes.push(Scope::default());
        self.scopes.len() as u32 - 1
    }

    /// The array that a cell belongs to.
    pub(crate) fn object_at(&self, cell: u32) -> Option<Object> {
        let after = self.objects.partition_point(|object| object.base <= cell);
        let object = *self.objects.get(after.checked_sub(1)?)?;
        (cell - object.base < object.len).then_some(object)
    }
}
