//! The serial scheduler: runs a program, depth first or interleaved, and tells a stream about it.
//!
//! As in DRDP (paper 000, section 4.2): a created task runs at once. A task that cannot go on is
//! suspended, and the task under it on the run stack goes on: its parent, or whoever resumed it. A set
//! resumes the tasks that wait for the promise, in the order in which they came to wait, before the
//! setter continues. Tasks that wait for anything else (a future, a finish, a sync, a region, an isolated
//! section) are looked at when the running task ends or is suspended.
//!
//! ```text
//!   stack     tasks that can run; only the top does      main ── t1 ── t4 ── t5 (running)
//!   waiting   suspended tasks, oldest first              t2: promise 0, t3: end of its finish
//! ```
//!
//! Or the tasks that can run take turns at random, statement by statement ([`Schedule::Interleaved`]): a stream that
//! is far from depth first, with strands in pieces and isolated sections in any order. Or in the order of the executor
//! that native programs have ([`Schedule::Cooperative`]).
//!
//! Locks, releases and acquires are only told: nobody waits for them.
//!
//! One schedule per run: the others are not explored. All state is on the heap, so nesting costs no native
//! stack.

use std::collections::{BTreeMap, VecDeque};

use dagsan_core::{
    AccessKind, AccessSet, Bytes, Consumer, Error, Event, LockId, LockMode, PromiseId, RegionId, Run, Step,
    Strand, Stream, SyncId, TaskId, TaskKind,
};

use crate::program::{Program, Stmt};
use handles::Handles;

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Did tasks remain that wait for what never comes? The stream has then got a legal part of a run.
    pub deadlock: bool,
    /// How many tasks were started, the main task included.
    pub tasks: u32,
    /// How many events were sent.
    pub events: u64,
    /// How many reads, writes and frees were executed.
    pub accesses: u64,
}

/// A consumer that does nothing: for running a program only.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ignore;

impl Consumer for Ignore {
    fn accesses(&mut self, _: &Strand, _: &[Run]) -> Result<(), Error> {
        Ok(())
    }
    fn event(&mut self, _: &Step<'_>) -> Result<(), Error> {
        Ok(())
    }
    fn erase(&mut self, _: Bytes) -> Result<(), Error> {
        Ok(())
    }
}

/// In which order tasks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// Depth first, with switching.
    #[default]
    DepthFirst,
    /// At random, from this seed.
    Interleaved(u64),
    /// As the executor of dagsan-task does: see `run/cooperative.rs`.
    Cooperative,
}

/// Runs `program` depth first and sends its events and accesses to `stream`, which must be new. Errors are the
/// consumer's: the runner's own events are always right.
pub fn run<C: Consumer>(program: &Program, stream: &mut Stream<C>) -> Result<Outcome, Error> {
    run_in(program, Schedule::DepthFirst, stream)
}

/// Runs `program` as [`run`] does, in the order of `schedule`.
pub fn run_in<C: Consumer>(
    program: &Program,
    schedule: Schedule,
    stream: &mut Stream<C>,
) -> Result<Outcome, Error> {
    let random = match schedule {
        Schedule::DepthFirst | Schedule::Cooperative => None,
        Schedule::Interleaved(seed) => Some(fastrand::Rng::with_seed(seed)),
    };
    let mut runner = Runner {
        stream,
        set: AccessSet::new(),
        atomics: AccessSet::new(),
        locks: BTreeMap::new(),
        tasks: vec![Task::new(&program.body, 0)],
        stack: vec![TaskId::MAIN],
        waiting: Vec::new(),
        finishes: vec![0],
        promises: BTreeMap::new(),
        futures: BTreeMap::new(),
        regions: BTreeMap::new(),
        handles: Handles::of(program),
        isolated: None,
        random,
        ready: (schedule == Schedule::Cooperative).then(VecDeque::new),
        outcome: Outcome { tasks: 1, ..Outcome::default() },
    };
    runner.declare_names(program)?;
    runner.run()
}

/// What a body is the body of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Task,
    Call,
    /// A finish, by its index in [`Runner::finishes`].
    Finish(usize),
    Isolated,
    /// An isolated section inside another.
    Plain,
}

/// A body being executed.
#[derive(Debug)]
struct Frame<'p> {
    body: &'p [Stmt],
    next: usize,
    kind: Kind,
    /// The innermost finish.
    finish: usize,
    /// How many frames the task has up to that of the innermost procedure instance.
    procedure: usize,
}

#[derive(Debug)]
struct Task<'p> {
    frames: Vec<Frame<'p>>,
    /// The innermost finish around it.
    finish: usize,
    /// The spawns that no sync or finish has joined, with the number of frames at the spawn.
    unsynced: Vec<(TaskId, usize)>,
    /// The name of the region it was posted to.
    region: Option<u32>,
    /// The names of the locks it holds.
    locks: BTreeMap<u32, LockMode>,
    /// May its parent end without a sync?
    may_outlive: bool,
    ended: bool,
}

impl<'p> Task<'p> {
    fn new(body: &'p [Stmt], finish: usize) -> Task<'p> {
        let frame = Frame { body, next: 0, kind: Kind::Task, finish, procedure: 1 };
        let (unsynced, locks) = (Vec::new(), BTreeMap::new());
        Task { frames: vec![frame], finish, unsynced, region: None, locks, may_outlive: false, ended: false }
    }
}

#[derive(Debug)]
struct Promise {
    id: PromiseId,
    set: bool,
}

#[derive(Debug)]
struct Region {
    id: RegionId,
    /// How many tasks were posted and not joined through the region.
    unjoined: usize,
    /// Those of them that have ended, in the order of their ends.
    ended: VecDeque<TaskId>,
}

/// Why a task is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Promise(u32),
    Future(u32),
    Finish(usize),
    Sync,
    Await(u32),
    Ewait(u32),
    Isolated,
}

/// How a step of a task went.
enum Went {
    On,
    /// Not at all: the same step is to be tried again.
    Blocked(Wait),
    Ended,
}

struct Runner<'p, 's, C> {
    stream: &'s mut Stream<C>,
    /// The accesses of the running strand. One set is enough: it is delivered before every switch.
    set: AccessSet,
    /// Those of them that are atomic.
    atomics: AccessSet,
    /// The locks that were named.
    locks: BTreeMap<u32, LockId>,
    tasks: Vec<Task<'p>>,
    stack: Vec<TaskId>,
    waiting: Vec<(TaskId, Wait)>,
    /// How many tasks run in each finish; the first is the implicit one, without the main task.
    finishes: Vec<u32>,
    promises: BTreeMap<u32, Promise>,
    futures: BTreeMap<u32, TaskId>,
    handles: Handles,
    regions: BTreeMap<u32, Region>,
    isolated: Option<TaskId>,
    /// For an interleaved run.
    random: Option<fastrand::Rng>,
    /// For a cooperative run: the tasks that can go on again.
    ready: Option<VecDeque<TaskId>>,
    outcome: Outcome,
}

impl<'p, C: Consumer> Runner<'p, '_, C> {
    /// The main task creates every promise and region that the program mentions.
    fn declare_names(&mut self, program: &Program) -> Result<(), Error> {
        let task = TaskId::MAIN;
        for stmt in program.walk() {
            match *stmt {
                Stmt::Set(name) | Stmt::Get(name) if !self.promises.contains_key(&name) => {
                    let id = PromiseId(self.promises.len() as u32);
                    self.promises.insert(name, Promise { id, set: false });
                    self.emit(Event::PromiseNew { task, promise: id })?;
                }
                Stmt::Post(name, _) | Stmt::Await(name) | Stmt::Ewait(name)
                    if !self.regions.contains_key(&name) =>
                {
                    let id = RegionId(self.regions.len() as u32);
                    self.regions.insert(name, Region { id, unjoined: 0, ended: VecDeque::new() });
                    self.emit(Event::RegionNew { task, region: id })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn run(mut self) -> Result<Outcome, Error> {
        while let Some(task) = self.next()? {
            match self.step(task)? {
                Went::On => continue,
                Went::Ended => _ = self.stack.pop(),
                Went::Blocked(wait) => {
                    self.deliver(task)?;
                    if !self.run_ready() {
                        self.stack.pop();
                        self.waiting.push((task, wait));
                    }
                }
            }
            self.wake(Self::is_over);
        }
        self.outcome.deadlock = !self.waiting.is_empty();
        Ok(self.outcome)
    }

    /// The task that goes on, on top of the stack.
    fn next(&mut self) -> Result<Option<TaskId>, Error> {
        let Some(&top) = self.stack.last() else { return Ok(None) };
        let last = self.stack.len() - 1;
        let at = self.random.as_mut().map_or(last, |random| random.usize(0..=last));
        if at != last {
            self.deliver(top)?;
            self.stack.swap(at, last);
        }
        Ok(self.stack.last().copied())
    }

    /// Puts the suspended tasks for which `over` holds on top of the stack, the oldest topmost. Each
    /// tries its step again, and may find that one before it was faster.
    fn wake(&mut self, over: impl Fn(&Self, TaskId, Wait) -> bool) {
        if self.waiting.is_empty() {
            return;
        }
        if self.ready.is_some() {
            return self.make_ready(over);
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        let from = self.stack.len();
        waiting.retain(|&(task, wait)| {
            let over = over(self, task, wait);
            if over {
                self.stack.push(task);
            }
            !over
        });
        self.stack[from..].reverse();
        self.waiting = waiting;
    }

    /// Has what the task waits for come true?
    fn is_over(&self, task: TaskId, wait: Wait) -> bool {
        match wait {
            Wait::Promise(name) => self.promises.get(&name).is_some_and(|promise| promise.set),
            Wait::Future(name) => self.ended_future(name).is_some(),
            Wait::Finish(finish) => self.finishes[finish] == 0,
            Wait::Sync => !self.spawns_run(task),
            Wait::Await(name) => {
                self.regions.get(&name).is_none_or(|region| region.unjoined == region.ended.len())
            }
            Wait::Ewait(name) => {
                self.regions.get(&name).is_none_or(|region| region.unjoined == 0 || !region.ended.is_empty())
            }
            Wait::Isolated => self.isolated.is_none(),
        }
    }

    // ---- one step --------------------------------------------------------------------------------

    /// Executes the next statement of the task, or the end of its innermost body.
    fn step(&mut self, task: TaskId) -> Result<Went, Error> {
        let Some(frame) = self.tasks[task.index()].frames.last() else { return Ok(Went::Ended) };
        let body = frame.body;
        let Some(stmt) = body.get(frame.next) else { return self.end_of_body(task, frame.kind) };
        if let Some(wait) = self.must_wait(task, stmt) {
            return Ok(Went::Blocked(wait));
        }
        if let Some(frame) = self.tasks[task.index()].frames.last_mut() {
            frame.next += 1;
        }
        self.execute(task, stmt)?;
        Ok(Went::On)
    }

    fn must_wait(&self, task: TaskId, stmt: &Stmt) -> Option<Wait> {
        let wait = match *stmt {
            Stmt::Get(name) => Wait::Promise(name),
            Stmt::GetFuture(name) => Wait::Future(name),
            Stmt::Sync => Wait::Sync,
            Stmt::Await(name) => Wait::Await(name),
            Stmt::Ewait(name) => Wait::Ewait(name),
            Stmt::Isolated(_) if self.isolated != Some(task) => Wait::Isolated,
            _ => return None,
        };
        (!self.is_over(task, wait)).then_some(wait)
    }

    /// Executes a statement that need not wait.
    fn execute(&mut self, task: TaskId, stmt: &'p Stmt) -> Result<(), Error> {
        match *stmt {
            Stmt::Read { bytes, site } => {
                self.outcome.accesses += 1;
                self.set.record(bytes, AccessKind::Read, site);
            }
            Stmt::Write { bytes, site } => {
                self.outcome.accesses += 1;
                self.set.record(bytes, AccessKind::Write, site);
            }
            Stmt::Free { bytes, site } => {
                self.outcome.accesses += 1;
                self.deliver(task)?;
                self.stream.free(task, bytes, site, &mut self.set)?;
            }
            Stmt::Atomic { kind, bytes, site } => {
                self.outcome.accesses += 1;
                self.atomics.record(bytes, kind, site);
            }
            Stmt::Async(ref body) => _ = self.start(task, TaskKind::Async, body)?,
            Stmt::Spawn(ref body) => {
                let child = self.start(task, TaskKind::Spawn, body)?;
                let parent = &mut self.tasks[task.index()];
                parent.unsynced.push((child, parent.frames.len()));
            }
            Stmt::Future(name, ref body) | Stmt::Child(name, ref body) => {
                let is_child = matches!(stmt, Stmt::Child(..));
                let kind = if is_child { TaskKind::Child } else { TaskKind::Future };
                let child = self.start(task, kind, body)?;
                if is_child {
                    let parent = &mut self.tasks[task.index()];
                    parent.unsynced.push((child, parent.frames.len()));
                    self.tasks[child.index()].may_outlive = true;
                }
                let first = *self.futures.entry(name).or_insert(child);
                self.future_is_there(name, child, first == child)?;
            }
            Stmt::Post(name, ref body) => {
                if let Some(region) = self.regions.get_mut(&name) {
                    region.unjoined += 1;
                    let kind = TaskKind::Post(region.id);
                    let child = self.start(task, kind, body)?;
                    self.tasks[child.index()].region = Some(name);
                }
            }
            Stmt::Finish(ref body) => {
                self.emit(Event::FinishBegin { task })?;
                self.finishes.push(0);
                self.enter(task, Kind::Finish(self.finishes.len() - 1), body);
            }
            Stmt::Call(ref body) => {
                self.emit(Event::FrameBegin { task })?;
                self.enter(task, Kind::Call, body);
            }
            Stmt::Isolated(ref body) if self.isolated == Some(task) => self.enter(task, Kind::Plain, body),
            Stmt::Isolated(ref body) => {
                self.emit(Event::IsolatedBegin { task })?;
                self.isolated = Some(task);
                self.enter(task, Kind::Isolated, body);
            }
            Stmt::Sync => self.sync(task)?,
            Stmt::GetFuture(name) => {
                if let Some(future) = self.ended_future(name) {
                    self.emit(Event::FutureGet { task, future })?;
                    self.future_was_got(name, future)?;
                }
            }
            Stmt::Set(name) => self.set_promise(task, name)?,
            Stmt::Get(name) => {
                if let Some(&Promise { id, .. }) = self.promises.get(&name) {
                    self.emit(Event::PromiseGet { task, promise: id })?;
                    self.promise_was_got(name, id)?;
                }
            }
            Stmt::Await(name) => {
                if let Some(region) = self.regions.get_mut(&name) {
                    region.unjoined = 0;
                    region.ended.clear();
                    let region = region.id;
                    self.emit(Event::Await { task, region })?;
                }
            }
            Stmt::Ewait(name) => self.ewait(task, name)?,
            Stmt::Lock(name, mode) => self.lock(task, name, mode)?,
            Stmt::Unlock(name) => {
                let lock = self.lock_id(name);
                if self.tasks[task.index()].locks.remove(&name).is_some() {
                    self.emit(Event::Unlock { task, lock })?;
                }
            }
            Stmt::Release(name, keep) => self.emit(Event::Release { task, sync: SyncId(name), keep })?,
            Stmt::Acquire(name) => self.emit(Event::Acquire { task, sync: SyncId(name) })?,
            Stmt::Detached(ref body) => _ = self.start(task, TaskKind::Detached, body)?,
        }
        Ok(())
    }

    fn start(&mut self, parent: TaskId, kind: TaskKind, body: &'p [Stmt]) -> Result<TaskId, Error> {
        let child = TaskId(self.tasks.len() as u32);
        self.emit(Event::Spawn { parent, child, kind })?;
        let state = &self.tasks[parent.index()];
        let finish = match kind {
            // That of the program.
            TaskKind::Detached => 0,
            _ => state.frames.last().map_or(state.finish, |frame| frame.finish),
        };
        self.finishes[finish] += 1;
        self.tasks.push(Task::new(body, finish));
        self.stack.push(child);
        self.outcome.tasks += 1;
        Ok(child)
    }

    fn enter(&mut self, task: TaskId, kind: Kind, body: &'p [Stmt]) {
        let task = &mut self.tasks[task.index()];
        let (finish, procedure) = task.frames.last().map_or((0, 0), |frame| (frame.finish, frame.procedure));
        let finish = if let Kind::Finish(finish) = kind { finish } else { finish };
        let procedure = if kind == Kind::Call { task.frames.len() + 1 } else { procedure };
        task.frames.push(Frame { body, next: 0, kind, finish, procedure });
    }

    fn set_promise(&mut self, task: TaskId, name: u32) -> Result<(), Error> {
        let Some(promise) = self.promises.get_mut(&name).filter(|promise| !promise.set) else {
            return Ok(());
        };
        promise.set = true;
        let promise = promise.id;
        self.emit(Event::PromiseSet { task, promise })?;
        self.promise_was_set(name, promise)?;
        self.wake(|_, _, wait| wait == Wait::Promise(name));
        Ok(())
    }

    fn lock_id(&mut self, name: u32) -> LockId {
        let next = LockId(self.locks.len() as u32);
        *self.locks.entry(name).or_insert(next)
    }

    fn lock(&mut self, task: TaskId, name: u32, mode: LockMode) -> Result<(), Error> {
        let lock = self.lock_id(name);
        match self.tasks[task.index()].locks.insert(name, mode) {
            None => self.emit(Event::Lock { task, lock, mode }),
            // What has not been delivered yet was done in the new mode, too.
            Some(_) => self.stream.set_lock_mode(task, lock, mode),
        }
    }

    fn ewait(&mut self, task: TaskId, name: u32) -> Result<(), Error> {
        let Some(region) = self.regions.get_mut(&name) else { return Ok(()) };
        let Some(joined) = region.ended.pop_front() else { return Ok(()) };
        region.unjoined -= 1;
        let region = region.id;
        self.emit(Event::Ewait { task, region, joined })
    }

    // ---- the stream ------------------------------------------------------------------------------

    fn emit(&mut self, event: Event) -> Result<(), Error> {
        self.deliver(event.task())?;
        self.outcome.events += 1;
        self.stream.event(event)
    }

    fn deliver(&mut self, task: TaskId) -> Result<(), Error> {
        let runs = take_runs(&mut self.set, &mut self.atomics);
        self.stream.runs(task, &runs)
    }
}

/// What a strand has done, plainly and atomically; both sets are empty then.
pub(crate) fn take_runs(plain: &mut AccessSet, atomics: &mut AccessSet) -> Vec<Run> {
    let atomic = atomics.runs().map(|run| Run { atomic: true, ..run });
    let runs = plain.runs().chain(atomic).collect();
    plain.clear();
    atomics.clear();
    runs
}

mod cooperative;
mod ends;
mod handles;
#[cfg(test)]
mod tests;
