//! The structure of the running program: which tasks live, which scopes are open, who joins whom.
//!
//! This is the one place where events are checked. It turns each [`Event`] into a [`Step`]: the same
//! event with what follows from the events before it (the scope that will join a new task, the tasks
//! that a join joins), so that order engines are only about order.
//!
//! # Scopes
//!
//! Each task has a stack of open scopes:
//!
//! ```text
//!   finish     joins every task started while it is open, by its task or by tasks inside it
//!   block      a *sync block*: opened by the first spawn, or child, after a sync, closed by the next sync of the
//!              same procedure instance; joins the tasks spawned in it, and nothing else
//!   frame      a procedure instance: bounds what a sync can see
//!   isolated   an isolated section
//! ```
//!
//! A finish is a *tree join*: together with async it makes the graph series-parallel. So does a
//! sync block, as long as nothing that was started in it outlives it. An async or a future started in
//! the block does: it passes by the sync, and the graph is then the Wheatstone bridge, which no
//! series-parallel graph contains. The same holds for a sync that joins a block from inside a
//! finish opened after it. Such a sync is reported as [`Step::cross`] joins, one per task, the way a
//! get is: engines built on the series-parallel skeleton treat them as non-tree joins.
//!
//! A *child* is in the sync block of its parent, too, and may outlive it: when the parent ends, the finish around takes over what is
//! left of the block. The parent's own sync block is then one that something passes by.
//!
//! A *detached* task outlives the finishes that it is started in; only the implicit one around the program joins it. It
//! has no place inside of any scope of the skeleton, and passes none by: its start is the non-tree edge.
//!
//! # Quiescence
//!
//! The program is quiescent while every task created so far has been joined into the main task: all
//! that was recorded precedes all that will come. Counting is enough: `open` is the number of tasks
//! that nobody has joined. If only the main task is left, each of the others was joined by a task
//! that itself was joined later, and the last of these joins was made by the main task.

mod children;
mod handles;
mod locking;
mod part;

use crate::error::Error;
use crate::event::{Event, TaskKind};
use crate::held::{HeldLocks, SectionId};
use crate::ids::{RegionId, ScopeId, StrandId, TaskId, check_dense};
use crate::promises::Promises;
use crate::step::{Outlived, Phase, Step};
use crate::tasks::Tasks;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Finish,
    Block,
    Frame,
    Isolated,
}

impl ScopeKind {
    fn describe(self) -> &'static str {
        match self {
            ScopeKind::Finish => "a finish",
            ScopeKind::Block => "a sync block",
            ScopeKind::Frame => "a procedure",
            ScopeKind::Isolated => "an isolated section",
        }
    }
}

#[derive(Debug)]
struct Scope {
    kind: ScopeKind,
    /// The next scope on the task's stack.
    below: Option<ScopeId>,
    /// The innermost finish at or below this scope, or around the task.
    finish: ScopeId,
    /// The tasks it joins.
    tasks: Vec<TaskId>,
    /// How many of them have not ended.
    running: u32,
    /// Was something started in it that outlives it?
    escapes: bool,
    /// When it was opened.
    opened: u64,
}

#[derive(Debug)]
struct Task {
    parent: TaskId,
    /// The scope that joins it.
    scope: ScopeId,
    /// The innermost finish around it.
    finish: ScopeId,
    /// Its innermost open scope.
    top: Option<ScopeId>,
    ended: bool,
    joined: bool,
    /// May others than the scope that joins it ask for it?
    is_future: bool,
    /// Is it a child in a sync block?
    is_child: bool,
    escapes: bool,
    /// The number of its running strand, once it has one.
    strand: Option<StrandId>,
    locks: HeldLocks,
}

impl Task {
    fn new(parent: TaskId, scope: ScopeId, finish: ScopeId, is_future: bool) -> Task {
        Task {
            parent,
            scope,
            finish,
            top: None,
            ended: false,
            joined: false,
            is_future,
            is_child: false,
            escapes: false,
            strand: None,
            locks: HeldLocks::default(),
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Structure {
    /// Those before the last quiescent point are forgotten: they have ended, and precede the present. So are, now and
    /// then, others that were joined, and that nobody can ask for.
    tasks: Tasks<Task>,
    /// Tasks are looked through when so many have come.
    recent: usize,
    /// A bit for each task there ever was: is it a future?
    futures: Vec<u64>,
    scopes: Vec<Scope>,
    free_scopes: Vec<ScopeId>,
    promises: Promises,
    /// The tasks of each region that were not joined through it.
    regions: Vec<Vec<TaskId>>,
    isolated: Option<TaskId>,
    /// Whose turn it is in the serial depth-first order.
    turn: TaskId,
    depth_first: bool,
    /// Tasks that nobody joined, the main task included.
    open: u32,
    /// Counts quiescent points.
    period: u32,
    /// Counts scopes that were opened and locks that were taken.
    clock: u64,
    /// The last section of a lock.
    section: SectionId,
    /// Families of locks that were given back while tasks under them were not joined.
    early: Vec<u32>,
    unlocked_early: bool,
    drained: Vec<ScopeId>,
    joined: Vec<TaskId>,
    cross: Vec<TaskId>,
    outlived: Vec<TaskId>,
    open_scopes: Vec<ScopeId>,
}

/// The implicit finish around the whole program.
pub const ROOT: ScopeId = ScopeId(0);

impl Default for Structure {
    fn default() -> Structure {
        Structure::new()
    }
}

impl Structure {
    /// The main task, alone in the implicit finish.
    pub fn new() -> Structure {
        let root = Scope {
            kind: ScopeKind::Finish,
            below: None,
            finish: ROOT,
            tasks: Vec::new(),
            running: 1,
            escapes: false,
            opened: 0,
        };
        Structure {
            tasks: Tasks::new(Task::new(TaskId::MAIN, ROOT, ROOT, false)),
            recent: crate::RECENT,
            futures: Vec::new(),
            scopes: vec![root],
            free_scopes: Vec::new(),
            promises: Promises::default(),
            regions: Vec::new(),
            isolated: None,
            turn: TaskId::MAIN,
            depth_first: true,
            open: 1,
            period: 0,
            clock: 0,
            section: SectionId(0),
            early: Vec::new(),
            unlocked_early: false,
            drained: Vec::new(),
            joined: Vec::new(),
            cross: Vec::new(),
            outlived: Vec::new(),
            open_scopes: Vec::new(),
        }
    }

    /// Tasks that were joined are looked for, to be forgotten, when so many have come.
    pub(crate) fn set_recent(&mut self, recent: usize) {
        self.recent = recent;
    }

    /// How many tasks there are and were.
    pub fn task_count(&self) -> u32 {
        self.tasks.next()
    }

    /// Is the past of the program behind it? Accesses then need no recording.
    pub fn quiescent(&self) -> bool {
        self.open == 1
    }

    /// The task in the isolated section, if one is open.
    pub fn isolated(&self) -> Option<TaskId> {
        self.isolated
    }

    /// The number of the running strand of `task`, to be given to it. Its next event takes it away.
    pub(crate) fn strand(&mut self, task: TaskId) -> &mut Option<StrandId> {
        &mut self.tasks[task].strand
    }

    /// The running strand of a task, if it has one.
    pub(crate) fn strand_of(&self, task: TaskId) -> Option<StrandId> {
        self.tasks[task].strand
    }

    fn check_known(&self, task: TaskId) -> Result<(), Error> {
        if task.0 < self.tasks.next() { Ok(()) } else { Err(Error::UnknownTask(task)) }
    }

    fn has_ended(&self, task: TaskId) -> bool {
        self.tasks.get(task).is_none_or(|task| task.ended)
    }

    /// `task` is about to do something: checks that it can. Returns whether all has come in the
    /// serial depth-first order so far.
    pub fn turn(&mut self, task: TaskId) -> Result<bool, Error> {
        self.check_known(task)?;
        if self.has_ended(task) {
            return Err(Error::TaskEnded(task));
        }
        self.depth_first &= task == self.turn;
        if !self.early.is_empty() && self.tasks[task].locks.drop_families(&self.early) {
            // What it does without the lock is a strand of its own.
            self.tasks[task].strand = None;
        }
        Ok(self.depth_first)
    }

    /// Checks `event` and applies it.
    pub fn apply(&mut self, event: Event) -> Result<Step<'_>, Error> {
        let by = event.task();
        self.turn(by)?;
        self.tasks[by].strand = None;
        self.drained.clear();
        self.joined.clear();
        self.cross.clear();
        self.open_scopes.clear();
        let was_quiescent = self.quiescent();
        let (mut scope, mut opened, mut closed, mut implied) = (ROOT, None, None, false);
        let mut left = None;
        match event {
            Event::Spawn { child, kind, .. } => (scope, opened) = self.spawn(by, child, kind)?,
            Event::TaskEnd { .. } => (scope, left) = self.task_end(by)?,
            Event::FinishBegin { .. } => opened = Some(self.push(by, ScopeKind::Finish)),
            Event::FinishEnd { .. } => closed = Some(self.finish_end(by)?),
            Event::FrameBegin { .. } => _ = self.push(by, ScopeKind::Frame),
            Event::FrameEnd { .. } => self.frame_end(by)?,
            Event::Sync { .. } => closed = self.sync(by)?,
            Event::FutureGet { future, .. } => self.future_get(by, future)?,
            Event::PromiseNew { promise, .. } => self.promises.create(promise, self.recent)?,
            Event::PromiseSet { promise, .. } => self.promises.set(by, promise, self.period)?,
            Event::PromiseGet { promise, .. } => implied = self.promises.get(by, promise)? != self.period,
            Event::IsolatedBegin { .. } => self.isolated_begin(by)?,
            Event::IsolatedEnd { .. } => {
                self.close_empty_block(by, "an isolated section")?;
                self.pop(by, ScopeKind::Isolated)?;
                self.isolated = None;
            }
            Event::RegionNew { region, .. } => {
                check_dense("region", self.regions.len(), region.0)?;
                self.regions.push(Vec::new());
            }
            Event::Await { region, .. } => self.await_region(by, region)?,
            Event::Ewait { region, joined, .. } => self.ewait(by, region, joined)?,
            Event::Lock { lock, mode, .. } => self.lock(by, lock, mode)?,
            Event::Unlock { lock, .. } => self.unlock(by, lock)?,
            Event::Under { lock, .. } => self.under(by, lock)?,
            Event::SetLockMode { lock, mode, .. } => self.set_mode(by, lock, mode)?,
            // An acquire of what was never released means nothing, and is no error.
            Event::Release { .. } | Event::Acquire { .. } | Event::Pass { .. } => {}
        }
        let phase = match (was_quiescent, self.quiescent()) {
            (_, false) => Phase::Parallel,
            (true, true) => Phase::Quiescent,
            (false, true) => {
                self.quiesce();
                Phase::Quiesced
            }
        };
        Ok(Step {
            event,
            scope,
            opened,
            closed,
            drained: &self.drained,
            joined: &self.joined,
            cross: &self.cross,
            outlived: left.map(|finish| Outlived { tasks: &self.outlived, finish }),
            implied,
            phase,
            open_scopes: &self.open_scopes,
            depth_first: self.depth_first,
        })
    }

    // ---- scopes ------------------------------------------------------------------------------

    fn push(&mut self, task: TaskId, kind: ScopeKind) -> ScopeId {
        let opened = self.tick();
        let below = self.tasks[task].top;
        let id = self.free_scopes.pop().unwrap_or(ScopeId(self.scopes.len() as u32));
        let finish = match (kind, below) {
            (ScopeKind::Finish, _) => id,
            (_, Some(below)) => self.scopes[below.index()].finish,
            (_, None) => self.tasks[task].finish,
        };
        match self.scopes.get_mut(id.index()) {
            Some(scope) => {
                scope.tasks.clear();
                (scope.kind, scope.below, scope.finish) = (kind, below, finish);
                (scope.running, scope.escapes, scope.opened) = (0, false, opened);
            }
            None => {
                let tasks = Vec::new();
                self.scopes.push(Scope { kind, below, finish, tasks, running: 0, escapes: false, opened });
            }
        }
        self.tasks[task].top = Some(id);
        id
    }

    /// Closes the innermost scope of `task`, which must be of `kind`.
    fn pop(&mut self, task: TaskId, kind: ScopeKind) -> Result<ScopeId, Error> {
        let top = self.tasks[task].top;
        let open = top.map(|id| self.scopes[id.index()].kind);
        let (Some(id), true) = (top, open == Some(kind)) else {
            let open = open.map_or("none", ScopeKind::describe);
            return Err(Error::Unbalanced { task, end: kind.describe(), open });
        };
        let scope = &mut self.scopes[id.index()];
        let escapes = scope.escapes && kind != ScopeKind::Finish;
        self.tasks[task].top = scope.below;
        self.free_scopes.push(id);
        if escapes {
            self.mark_escaping(task);
        }
        Ok(id)
    }

    fn top_block(&self, task: TaskId) -> Option<ScopeId> {
        self.tasks[task].top.filter(|id| self.scopes[id.index()].kind == ScopeKind::Block)
    }

    /// Removes a block whose tasks were all joined from inside a later scope, before that which
    /// contains it ends.
    fn close_empty_block(&mut self, task: TaskId, end: &'static str) -> Result<(), Error> {
        if let Some(block) = self.top_block(task) {
            let spawns = self.scopes[block.index()].tasks.len() as u32;
            if spawns > 0 {
                return Err(Error::Unsynced { task, end, spawns });
            }
            self.pop(task, ScopeKind::Block)?;
        }
        Ok(())
    }

    /// Joins all tasks of a scope: into `joined`, and into `cross` where no tree join covers them.
    fn drain(&mut self, by: TaskId, id: ScopeId, tree: bool) -> Result<(), Error> {
        let scope = &mut self.scopes[id.index()];
        if scope.running > 0 {
            let (scope, running) = (scope.kind.describe(), scope.running);
            return Err(Error::ScopeStillRunning { task: by, scope, running });
        }
        let tasks = std::mem::take(&mut scope.tasks);
        self.drained.push(id);
        for &task in &tasks {
            self.join(task, tree);
            self.leaves_block(task);
        }
        // Give the allocation back to the scope, which will be used again.
        self.scopes[id.index()].tasks = tasks;
        self.scopes[id.index()].tasks.clear();
        Ok(())
    }

    fn join(&mut self, task: TaskId, tree: bool) {
        self.joined.push(task);
        let Some(state) = self.tasks.get_mut(task) else { return };
        if !state.joined {
            state.joined = true;
            self.open -= 1;
        }
        if !tree {
            self.cross.push(task);
        }
    }

    // ---- events ------------------------------------------------------------------------------

    fn spawn(
        &mut self,
        by: TaskId,
        child: TaskId,
        kind: TaskKind,
    ) -> Result<(ScopeId, Option<ScopeId>), Error> {
        check_dense("task", self.tasks.next() as usize, child.0)?;
        let mut opened = None;
        let scope = match kind {
            TaskKind::Spawn | TaskKind::Child => match self.top_block(by) {
                Some(block) => block,
                None => *opened.insert(self.push(by, ScopeKind::Block)),
            },
            TaskKind::Async | TaskKind::Future | TaskKind::Post(_) => {
                if let TaskKind::Post(region) = kind {
                    self.region(region)?.push(child);
                }
                self.mark_escaping(by);
                self.innermost_finish(by)
            }
            TaskKind::Detached => ROOT,
        };
        // The serial depth-first order is one of the skeleton.
        self.depth_first &= kind != TaskKind::Detached;
        let finish = if kind == TaskKind::Detached { ROOT } else { self.innermost_finish(by) };
        self.scopes[scope.index()].tasks.push(child);
        self.scopes[scope.index()].running += 1;
        if self.tasks.wants_collection(self.recent) {
            // A child that somebody has got is still its parent's to join.
            self.tasks.retain(|task| !task.joined || task.is_future || task.is_child);
        }
        let is_child = kind == TaskKind::Child;
        let is_future = is_child || matches!(kind, TaskKind::Future | TaskKind::Post(_));
        // Nothing but the finish is sure to join a child.
        let locks = self.locks_of_child(by, kind, if is_child { finish } else { scope });
        self.tasks.push(Task { locks, is_child, ..Task::new(by, scope, finish, is_future) });
        if is_child || kind == TaskKind::Future {
            self.futures.resize(child.index() / 64 + 1, 0);
            self.futures[child.index() / 64] |= 1 << (child.index() % 64);
        }
        self.open += 1;
        self.turn = child;
        Ok((scope, opened))
    }

    /// The innermost finish around what `task`, which has not ended, does now: it joins what is started there.
    pub fn innermost_finish(&self, task: TaskId) -> ScopeId {
        let task = &self.tasks[task];
        task.top.map_or(task.finish, |top| self.scopes[top.index()].finish)
    }

    /// The scope that joins it, and the finish that has the children which it leaves, if there are any.
    fn task_end(&mut self, by: TaskId) -> Result<(ScopeId, Option<ScopeId>), Error> {
        let left = self.leave_children(by);
        self.close_empty_block(by, "its body")?;
        if let Some(top) = self.tasks[by].top {
            let open = self.scopes[top.index()].kind.describe();
            return Err(Error::OpenScope { task: by, open });
        }
        let task = &mut self.tasks[by];
        task.ended = true;
        self.turn = task.parent;
        let scope = &mut self.scopes[task.scope.index()];
        scope.running -= 1;
        scope.escapes |= task.escapes;
        Ok((task.scope, left))
    }

    fn finish_end(&mut self, by: TaskId) -> Result<ScopeId, Error> {
        // A finish joins what was spawned in it, synced or not.
        if let Some(block) = self.top_block(by) {
            self.drain(by, block, true)?;
            self.pop(by, ScopeKind::Block)?;
        }
        let finish = self.pop(by, ScopeKind::Finish)?;
        self.drain(by, finish, true)?;
        Ok(finish)
    }

    fn frame_end(&mut self, by: TaskId) -> Result<(), Error> {
        self.close_empty_block(by, "a procedure")?;
        self.pop(by, ScopeKind::Frame)?;
        Ok(())
    }

    fn sync(&mut self, by: TaskId) -> Result<Option<ScopeId>, Error> {
        let mut closed = None;
        if let Some(block) = self.top_block(by) {
            let tree = !self.scopes[block.index()].escapes;
            self.drain(by, block, tree)?;
            self.pop(by, ScopeKind::Block)?;
            closed = tree.then_some(block);
        }
        // Blocks of the same procedure instance under a finish or isolated section opened later.
        let mut next = self.tasks[by].top;
        while let Some(id) = next {
            let scope = &self.scopes[id.index()];
            next = scope.below;
            match scope.kind {
                ScopeKind::Frame => break,
                ScopeKind::Block => self.drain(by, id, false)?,
                ScopeKind::Finish | ScopeKind::Isolated => {}
            }
        }
        Ok(closed)
    }

    fn join_ended(&mut self, by: TaskId, task: TaskId) -> Result<(), Error> {
        if !self.has_ended(task) {
            return Err(Error::StillRunning { by, task });
        }
        self.join(task, false);
        Ok(())
    }

    fn isolated_begin(&mut self, by: TaskId) -> Result<(), Error> {
        if let Some(inside) = self.isolated {
            return Err(Error::NotIsolated { task: by, inside });
        }
        self.isolated = Some(by);
        self.push(by, ScopeKind::Isolated);
        Ok(())
    }

    fn region(&mut self, region: RegionId) -> Result<&mut Vec<TaskId>, Error> {
        self.regions.get_mut(region.index()).ok_or(Error::UnknownRegion(region))
    }

    fn await_region(&mut self, by: TaskId, region: RegionId) -> Result<(), Error> {
        let mut tasks = std::mem::take(self.region(region)?);
        for &task in &tasks {
            self.join_ended(by, task)?;
        }
        tasks.clear();
        *self.region(region)? = tasks;
        Ok(())
    }

    fn ewait(&mut self, by: TaskId, region: RegionId, joined: TaskId) -> Result<(), Error> {
        let tasks = self.region(region)?;
        match tasks.iter().position(|&task| task == joined) {
            None => return Err(Error::NotInRegion { task: joined, region }),
            Some(at) => _ = tasks.remove(at),
        }
        self.join_ended(by, joined)
    }

    fn quiesce(&mut self) {
        self.period += 1;
        self.early.clear();
        self.tasks.forget_others();
        self.scopes[ROOT.index()].tasks.clear();
        let mut next = self.tasks[TaskId::MAIN].top;
        while let Some(id) = next {
            let scope = &mut self.scopes[id.index()];
            scope.tasks.clear();
            if matches!(scope.kind, ScopeKind::Finish | ScopeKind::Block) {
                self.open_scopes.push(id);
            }
            next = scope.below;
        }
        self.open_scopes.reverse();
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.tasks.memory()
            + self.futures.capacity() * size_of::<u64>()
            + self.scopes.capacity() * size_of::<Scope>()
            + self.scopes.iter().map(|scope| scope.tasks.capacity() * size_of::<TaskId>()).sum::<usize>()
            + self.promises.memory()
            + self.regions.iter().map(|tasks| tasks.capacity() * size_of::<TaskId>()).sum::<usize>()
    }
}
