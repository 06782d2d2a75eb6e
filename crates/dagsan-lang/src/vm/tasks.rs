//! Tasks: who is created, who waits for what, who is woken, who runs next.
//!
//! A task that must wait keeps its operation, and repeats it when it is woken; the event goes to the core when
//! the operation succeeds. Who is ready is a stack: the newest runs first, which is the serial
//! depth-first order as long as nobody has to wait.

use dagsan_core::{Event, PromiseId, RegionId, TaskId, TaskKind};

use super::memory::Names;
use super::state::{Frame, Granted, NONE, Promise, Region, Running, Status, Task, Wait};
use super::{Machine, Stop, fail};
use crate::hir::{MakerId, StartKind};
use crate::schedule::Choice;

/// The finish around the whole program.
const ROOT: u32 = 0;
/// How many words a task that is alive is taken to need, besides its registers.
const TASK_WORDS: usize = 128;

/// Why a task leaves the processor.
pub(super) enum Pause {
    /// It has ended, with this result.
    Ended(i64),
    Blocked(Wait),
    /// It has created this task, which runs first.
    Started(u32),
}

/// What becomes of the task that was running.
pub(super) enum Next {
    Ended(i64),
    Blocked(Wait),
    Ready(u32),
}

/// Whether an operation can be done now.
pub(super) enum Outcome<T> {
    Done(T),
    MustWait(Wait),
}

impl Machine<'_, '_> {
    pub(super) fn start_main(&mut self) {
        let root = self.state.new_scope();
        debug_assert_eq!(root, ROOT);
        let function = self.code.functions.len() as u32 - 1;
        let running = self.new_running(function, &[]);
        self.add_task(running, 0, NONE, ROOT);
        self.state.ready.push(0);
    }

    fn new_running(&mut self, function: u32, args: &[i64]) -> Box<Running> {
        let function = &self.code.functions[function as usize];
        let mut running = self.pool.pop().unwrap_or_default();
        running.stack.clear();
        running.stack.extend_from_slice(args);
        running.stack.resize((function.registers as usize).max(args.len()), 0);
        running.frames.clear();
        running.frames.push(Frame { return_to: NONE, caller_base: 0, spawned: NONE });
        (running.pc, running.base) = (function.entry, 0);
        running
    }

    fn add_task(&mut self, running: Box<Running>, parent: u32, site: u32, finish: u32) -> u32 {
        let status = Status::Ready(running);
        // The main task is its own parent, and has none yet.
        let birth = self.state.tasks.get_mut(parent as usize).map_or(0, |parent| {
            parent.children += 1;
            parent.children - 1
        });
        let task = Task { status, parent, birth, children: 0, site, finish, sync: NONE, region: NONE };
        self.state.tasks.push(task);
        self.state.scopes[finish as usize].running += 1;
        self.state.alive += 1;
        self.state.tasks.len() as u32 - 1
    }

    /// `task` creates another; returns its number.
    pub(super) fn start(
        &mut self,
        task: u32,
        running: &mut Running,
        site: u32,
        args: &[i64],
        region: Option<i64>,
    ) -> Result<u32, Stop> {
        let place = &self.code.starts[site as usize];
        self.not_isolated(running, place.kind.name())?;
        if self.state.tasks.len() >= NONE as usize - 1 {
            return fail("out of memory: too many tasks");
        }
        if self.state.alive as usize > self.limits.words / TASK_WORDS {
            return fail(format!("out of memory: {} tasks are alive at once", self.state.alive));
        }
        let child_running = self.new_running(place.function, args);
        let finish = running.finishes.last().copied().unwrap_or(self.task(task).finish);
        let child = self.add_task(child_running, task, site, finish);
        let kind = match (place.kind, region) {
            (StartKind::Post, Some(region)) => {
                self.use_region(task, region);
                self.state.regions[region as usize].posted.push(child);
                self.task(child).region = region as u32;
                TaskKind::Post(RegionId(region as u32))
            }
            (StartKind::Spawn, _) => {
                let frame = running.frames.last_mut().expect("a running task is in a frame");
                if frame.spawned == NONE {
                    frame.spawned = self.state.new_scope();
                }
                self.state.scopes[frame.spawned as usize].running += 1;
                self.task(child).sync = frame.spawned;
                TaskKind::Spawn
            }
            (StartKind::Future, _) => TaskKind::Future,
            _ => TaskKind::Async,
        };
        self.trace.event(Event::Spawn { parent: TaskId(task), child: TaskId(child), kind })?;
        Ok(child)
    }

    /// What the core and other tasks learn from a pause.
    pub(super) fn pause(&mut self, task: u32, pause: Pause) -> Result<Next, Stop> {
        match pause {
            Pause::Ended(result) => {
                self.trace.event(Event::TaskEnd { task: TaskId(task) })?;
                Ok(Next::Ended(result))
            }
            Pause::Blocked(wait) => {
                self.trace.flush(task)?;
                Ok(Next::Blocked(wait))
            }
            Pause::Started(child) => Ok(Next::Ready(child)),
        }
    }

    /// Puts a task that leaves the processor where it belongs.
    pub(super) fn settle(&mut self, task: u32, running: Box<Running>, next: Next) {
        match next {
            Next::Ready(child) => {
                self.task(task).status = Status::Ready(running);
                self.state.ready.extend([task, child]);
            }
            Next::Blocked(wait) => self.task(task).status = Status::Blocked(running, wait),
            Next::Ended(result) => {
                self.pool.push(running);
                self.task(task).status = Status::Ended(result);
                self.ended(task);
            }
        }
    }

    /// Tells those who wait for `task`.
    fn ended(&mut self, task: u32) {
        self.state.alive -= 1;
        let Task { finish, sync, region, .. } = *self.task(task);
        if region != NONE {
            let region = &mut self.state.regions[region as usize];
            region.ended.push(task);
            let waiters = std::mem::take(&mut region.waiters);
            waiters.into_iter().for_each(|waiter| self.wake(waiter));
        }
        for waiter in self.state.future_waiters.remove(&task).unwrap_or_default() {
            self.wake(waiter);
        }
        for scope in [sync, finish] {
            if scope != NONE {
                self.leave(scope);
            }
        }
    }

    fn leave(&mut self, scope: u32) {
        let scope = &mut self.state.scopes[scope as usize];
        scope.running -= 1;
        if scope.running == 0
            && let Some(waiter) = scope.waiter.take()
        {
            self.wake(waiter);
        }
    }

    /// What a scheduler can let happen next: sections to be entered, and tasks to be joined by ewait. What the
    /// serial depth-first order would do comes first.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        let mut parked: Vec<u32> = self.state.parked.iter().copied().collect();
        parked.sort_by_cached_key(|&task| self.depth_first_place(task));
        for task in parked {
            let Status::Blocked(running, wait) = &self.state.tasks[task as usize].status else { continue };
            // It will repeat the operation that it waits in.
            let span = self.span_before(running.pc + 1);
            let choice = |joins: Option<u32>| Choice {
                task: TaskId(task),
                joins: joins.map(TaskId),
                names: (self.path(task), joins.map(|joined| self.path(joined))),
                span,
            };
            match *wait {
                Wait::Ewait(region) => {
                    let ended = &self.state.regions[region as usize].ended;
                    choices.extend(ended.iter().map(|&joined| choice(Some(joined))));
                }
                _ => choices.push(choice(None)),
            }
        }
        choices
    }

    /// Where the task is in the serial depth-first order. What a task does itself comes after the children that it
    /// has created so far.
    fn depth_first_place(&self, task: u32) -> Vec<u32> {
        let mut place = self.path(task);
        place.push(u32::MAX);
        place
    }

    /// Lets it happen.
    pub(super) fn grant(&mut self, choice: &Choice) {
        let task = choice.task.0;
        self.state.parked.remove(&task);
        if let Status::Blocked(running, _) = &mut self.task(task).status {
            running.granted = Some(choice.joins.map_or(Granted::Section, |joined| Granted::Join(joined.0)));
        }
        self.wake(task);
    }

    pub(super) fn wake(&mut self, task: u32) {
        let status = std::mem::replace(&mut self.task(task).status, Status::Current);
        let Status::Blocked(running, _) = status else { unreachable!("only a blocked task is woken") };
        self.task(task).status = Status::Ready(running);
        self.state.ready.push(task);
    }

    // ---- scopes ----------------------------------------------------------------------------------

    pub(super) fn finish_begin(&mut self, task: u32, running: &mut Running) -> Result<(), Stop> {
        self.not_isolated(running, "finish")?;
        running.finishes.push(self.state.new_scope());
        Ok(self.trace.event(Event::FinishBegin { task: TaskId(task) })?)
    }

    pub(super) fn finish_end(&mut self, task: u32, running: &mut Running) -> Result<Outcome<()>, Stop> {
        let id = *running.finishes.last().expect("finishes are balanced");
        let scope = &mut self.state.scopes[id as usize];
        if scope.running > 0 {
            scope.waiter = Some(task);
            return Ok(Outcome::MustWait(Wait::Finish));
        }
        running.finishes.pop();
        self.state.free_scopes.push(id);
        self.trace.event(Event::FinishEnd { task: TaskId(task) })?;
        Ok(Outcome::Done(()))
    }

    pub(super) fn sync(&mut self, task: u32, running: &mut Running) -> Result<Outcome<()>, Stop> {
        self.not_isolated(running, "sync")?;
        let frame = running.frames.last_mut().expect("a running task is in a frame");
        // An instance that has spawned nothing may have no frame of its own for the core: its sync would
        // join the spawns of its caller.
        if frame.spawned == NONE {
            return Ok(Outcome::Done(()));
        }
        let scope = &mut self.state.scopes[frame.spawned as usize];
        if scope.running > 0 {
            scope.waiter = Some(task);
            return Ok(Outcome::MustWait(Wait::Sync));
        }
        self.state.free_scopes.push(frame.spawned);
        frame.spawned = NONE;
        self.trace.event(Event::Sync { task: TaskId(task) })?;
        Ok(Outcome::Done(()))
    }

    pub(super) fn isolated_begin(&mut self, task: u32, running: &mut Running) -> Result<Outcome<()>, Stop> {
        if running.isolated == 0 {
            if self.scheduled && running.granted.take().is_none() {
                self.state.parked.insert(task);
                return Ok(Outcome::MustWait(Wait::Section));
            }
            self.trace.event(Event::IsolatedBegin { task: TaskId(task) })?;
        }
        running.isolated += 1;
        Ok(Outcome::Done(()))
    }

    pub(super) fn isolated_end(&mut self, task: u32, running: &mut Running) -> Result<(), Stop> {
        running.isolated -= 1;
        if running.isolated == 0 {
            self.trace.event(Event::IsolatedEnd { task: TaskId(task) })?;
        }
        Ok(())
    }

    fn not_isolated(&self, running: &Running, what: &str) -> Result<(), Stop> {
        if running.isolated > 0 {
            return fail(format!(
                "`{what}` inside an isolated section: a section cannot create or wait for tasks"
            ));
        }
        Ok(())
    }

    // ---- promises and futures --------------------------------------------------------------------

    pub(super) fn new_promise(
        &mut self,
        task: u32,
        maker: MakerId,
        element: Option<u32>,
    ) -> Result<i64, Stop> {
        let id = self.state.promises.len();
        if id >= self.limits.words {
            return fail("out of memory: too many promises");
        }
        self.state.promises.push(Promise { value: None, maker, element });
        self.trace.event(Event::PromiseNew { task: TaskId(task), promise: PromiseId(id as u32) })?;
        Ok(id as i64 + 1)
    }

    pub(super) fn set(&mut self, task: u32, handle: i64, value: i64) -> Result<(), Stop> {
        let id = number(handle, "promise")?;
        let promise = &mut self.state.promises[id as usize];
        if promise.value.is_some() {
            let name = Names { hir: self.hir, state: &self.state }.promise(&self.state.promises[id as usize]);
            return fail(format!("{name} is already set"));
        }
        promise.value = Some(value);
        self.trace.event(Event::PromiseSet { task: TaskId(task), promise: PromiseId(id) })?;
        for waiter in self.state.promise_waiters.remove(&id).unwrap_or_default() {
            self.wake(waiter);
        }
        Ok(())
    }

    pub(super) fn get_promise(
        &mut self,
        task: u32,
        running: &Running,
        handle: i64,
    ) -> Result<Outcome<i64>, Stop> {
        self.not_isolated(running, "get")?;
        let id = number(handle, "promise")?;
        let Some(value) = self.state.promises[id as usize].value else {
            self.state.promise_waiters.entry(id).or_default().push(task);
            return Ok(Outcome::MustWait(Wait::Promise(id)));
        };
        self.trace.event(Event::PromiseGet { task: TaskId(task), promise: PromiseId(id) })?;
        Ok(Outcome::Done(value))
    }

    pub(super) fn get_future(
        &mut self,
        task: u32,
        running: &Running,
        handle: i64,
    ) -> Result<Outcome<i64>, Stop> {
        self.not_isolated(running, "get")?;
        let id = number(handle, "future")?;
        let Status::Ended(value) = self.task(id).status else {
            self.state.future_waiters.entry(id).or_default().push(task);
            return Ok(Outcome::MustWait(Wait::Future(id)));
        };
        self.trace.event(Event::FutureGet { task: TaskId(task), future: TaskId(id) })?;
        Ok(Outcome::Done(value))
    }

    // ---- regions ---------------------------------------------------------------------------------

    pub(super) fn new_region(&mut self, task: u32) -> Result<i64, Stop> {
        let id = self.state.regions.len();
        if id >= self.limits.words / TASK_WORDS {
            return fail("out of memory: too many regions");
        }
        self.state.regions.push(Region::default());
        self.trace.event(Event::RegionNew { task: TaskId(task), region: RegionId(id as u32) })?;
        Ok(id as i64)
    }

    /// If several tasks use a region, who comes first decides who is joined by whom.
    fn use_region(&mut self, task: u32, id: i64) {
        let user = self.state.regions[id as usize].user.get_or_insert(task);
        self.state.shared_region |= *user != task;
    }

    pub(super) fn await_region(
        &mut self,
        task: u32,
        running: &mut Running,
        id: i64,
    ) -> Result<Outcome<()>, Stop> {
        self.not_isolated(running, "await")?;
        self.use_region(task, id);
        let region = &mut self.state.regions[id as usize];
        if region.ended.len() < region.posted.len() {
            region.waiters.push(task);
            return Ok(Outcome::MustWait(Wait::Await));
        }
        let joined = std::mem::take(&mut region.posted);
        region.ended.clear();
        self.trace.event(Event::Await { task: TaskId(task), region: RegionId(id as u32) })?;
        self.queue_handlers(running, &joined);
        Ok(Outcome::Done(()))
    }

    pub(super) fn ewait(&mut self, task: u32, running: &mut Running, id: i64) -> Result<Outcome<()>, Stop> {
        self.not_isolated(running, "ewait")?;
        self.use_region(task, id);
        let granted = running.granted.take();
        let region = &mut self.state.regions[id as usize];
        let joined = match granted {
            Some(Granted::Join(joined)) => joined,
            _ if self.scheduled => {
                self.state.parked.insert(task);
                return Ok(Outcome::MustWait(Wait::Ewait(id as u32)));
            }
            _ if region.ended.is_empty() => {
                region.waiters.push(task);
                return Ok(Outcome::MustWait(Wait::Ewait(id as u32)));
            }
            _ => region.ended[0],
        };
        region.ended.retain(|&ended| ended != joined);
        region.posted.retain(|&posted| posted != joined);
        let (by, region) = (TaskId(task), RegionId(id as u32));
        self.trace.event(Event::Ewait { task: by, region, joined: TaskId(joined) })?;
        self.queue_handlers(running, &[joined]);
        Ok(Outcome::Done(()))
    }

    /// The handlers of the joined tasks wait for the operation `Handle`, the first one last.
    fn queue_handlers(&mut self, running: &mut Running, joined: &[u32]) {
        let handlers = joined.iter().rev().filter_map(|&task| {
            let task = &self.state.tasks[task as usize];
            let handler = self.code.starts[task.site as usize].handler?;
            let Status::Ended(result) = task.status else { unreachable!("only ended tasks are joined") };
            Some((handler, result))
        });
        running.joined.push(handlers.collect());
    }

    pub(super) fn describe_wait(&self, wait: Wait) -> String {
        match wait {
            Wait::Finish => "the end of tasks in its finish".to_owned(),
            Wait::Sync => "the end of tasks that it spawned".to_owned(),
            Wait::Promise(id) => {
                Names { hir: self.hir, state: &self.state }.promise(&self.state.promises[id as usize])
            }
            Wait::Future(id) => format!("the end of future task {id}"),
            Wait::Await => "the end of the tasks of a region".to_owned(),
            Wait::Ewait(_) => "the end of one task of a region".to_owned(),
            Wait::Section => "its turn in an isolated section".to_owned(),
            Wait::Gate => "the other access of the race".to_owned(),
        }
    }
}

/// The number behind a handle.
fn number(handle: i64, what: &str) -> Result<u32, Stop> {
    match u32::try_from(handle - 1) {
        Ok(number) => Ok(number),
        Err(_) => fail(format!("this {what} is null")),
    }
}
