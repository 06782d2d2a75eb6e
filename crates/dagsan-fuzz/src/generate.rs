//! Random programs of a class, the same for the same seed, without deadlock.
//!
//! The program is written by running it. The generator simulates one random interleaving: each step
//! picks a task that can go on, decides what it does next, and appends that to its body. A task gets a
//! promise only if it has been set, a future only if it has ended. So the interleaving is a run without
//! deadlock; and since what has become true stays true, in every schedule a statement waits only
//! for what came before it in the simulated one, which rules out a cycle. The depth-first run goes
//! another way than the simulated one, so its gets often block, as they should.
//!
//! Regions need care, as a post can make an await wait longer: see [`Region`]. Structured futures
//! are got by whoever holds the handle, and every handle has one holder: see [`Frame::handles`].
//!
//! Bodies of isolated sections have only accesses and sets: a section that waits inside is not
//! generated, nor are programs that deadlock.

use dagsan_core::{AccessKind, Bytes, Construct};
use fastrand::Rng;

use crate::mix::{Mix, Op};
use crate::pool::{Pool, remember};
use crate::program::{Class, Program, Stmt};

/// How deep blocks may nest: less than a text may.
const MAX_NESTING: usize = 400;

/// How large a program is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// About how many tasks; at most so many, the main task included.
    pub tasks: usize,
}

impl Size {
    /// Mostly 2 to 12 tasks, sometimes up to 30, rarely up to 300.
    pub fn pick(rng: &mut Rng) -> Size {
        let tasks = match rng.u32(0..100) {
            0..85 => 2..=12,
            85..98 => 13..=30,
            _ => 31..=300,
        };
        Size { tasks: rng.usize(tasks) }
    }
}

/// A random program of the class, with numbered sites.
pub fn generate(class: Class, rng: &mut Rng, size: Size) -> Program {
    let mix = Mix::new(class, rng);
    let pool = Pool::new(rng);
    let structured = !class.constructs().contains(&Construct::GeneralFuture);
    let mut sim = Simulation {
        rng,
        mix,
        pool,
        structured,
        max_tasks: size.tasks,
        tasks: Vec::new(),
        live: Vec::new(),
        bodies: Vec::new(),
        finishes: vec![Finish::default()],
        promises: Vec::new(),
        futures: Vec::new(),
        regions: Vec::new(),
        releases: Vec::new(),
    };
    sim.add_task(0, 0, Vec::new());
    sim.run();
    sim.into_program()
}

/// A statement in a body that is being written.
enum Node {
    Leaf(Stmt),
    /// A block statement, still empty, and the index of its body.
    Block(Stmt, usize),
}

struct Body {
    nodes: Vec<Node>,
    /// How many blocks are around it.
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Task,
    Call,
    /// A finish, by its index.
    Finish(usize),
}

struct Frame {
    kind: Kind,
    body: usize,
    /// Of a procedure instance: the tasks it spawned and did not sync.
    unsynced: Vec<usize>,
    /// Of a procedure instance: the structured futures it may get. Creating a child moves some of them
    /// to the child; what the child leaves over comes back with the join.
    handles: Vec<u32>,
}

/// What a task that cannot go on waits to do.
#[derive(Clone, Copy)]
enum Wait {
    Close,
    Sync,
    /// A get of a structured future.
    Get(u32),
}

struct Task {
    frames: Vec<Frame>,
    finish: usize,
    wait: Option<Wait>,
    /// How many statements it has yet to write.
    left: u32,
    /// Bytes that it may touch in order, most likely.
    known: Vec<Bytes>,
    /// The handles that remained at its end.
    leftover: Vec<u32>,
    ended: bool,
}

#[derive(Default)]
struct Finish {
    running: usize,
    tasks: Vec<usize>,
}

/// A region. An await waits for all that was posted, so posts must not come in between in another
/// schedule: after the first await or ewait, only the task that made it may post, or ewait; and after
/// an await by another, nobody may.
#[derive(Default)]
struct Region {
    /// Posted and not joined through the region.
    tasks: Vec<usize>,
    owner: Option<usize>,
    closed: bool,
    ewaited: bool,
}

impl Region {
    fn open_to(&self, task: usize) -> bool {
        !self.closed && self.owner.is_none_or(|owner| owner == task)
    }
}

struct Simulation<'r> {
    rng: &'r mut Rng,
    mix: Mix,
    pool: Pool,
    /// Are futures got by the holder of the handle only?
    structured: bool,
    max_tasks: usize,
    tasks: Vec<Task>,
    /// The tasks that have not ended, oldest first.
    live: Vec<usize>,
    bodies: Vec<Body>,
    finishes: Vec<Finish>,
    /// For each promise, all of them set: the setter, and the bytes that it knew.
    promises: Vec<(usize, Vec<Bytes>)>,
    /// The task of each future.
    futures: Vec<usize>,
    regions: Vec<Region>,
    /// For each object that tasks release, what the last one knew.
    releases: Vec<Vec<Bytes>>,
}

impl Simulation<'_> {
    fn run(&mut self) {
        while let Some(task) = self.pick_task() {
            self.step(task);
        }
        debug_assert!(self.live.is_empty(), "a simulated task waits for ever");
    }

    /// A task that can go on: the newest, the oldest or any, as the program likes it.
    fn pick_task(&mut self) -> Option<usize> {
        let count = self.live.len();
        if count == 0 {
            return None;
        }
        let choice = self.rng.u32(0..100);
        let from = match choice {
            _ if choice < self.mix.newest => count - 1,
            _ if choice < self.mix.newest + self.mix.oldest => 0,
            _ => self.rng.usize(0..count),
        };
        let newer = self.live[from..].iter();
        let older = self.live[..from].iter().rev();
        newer.chain(older).copied().find(|&task| self.can_go_on(task))
    }

    fn can_go_on(&self, task: usize) -> bool {
        match self.tasks[task].wait {
            None => true,
            Some(Wait::Close) => match self.top(task).kind {
                Kind::Finish(finish) => self.finishes[finish].running == 0,
                Kind::Task | Kind::Call => !self.spawns_run(task),
            },
            Some(Wait::Sync) => !self.spawns_run(task),
            Some(Wait::Get(future)) => self.tasks[self.futures[future as usize]].ended,
        }
    }

    fn step(&mut self, task: usize) {
        match self.tasks[task].wait.take() {
            Some(Wait::Close) => return self.close(task),
            Some(Wait::Sync) => return self.join_spawns(task),
            Some(Wait::Get(future)) => return self.join_future(task, future),
            None => {}
        }
        if self.tasks[task].left == 0 {
            let short_of_tasks = task == 0 && self.tasks.len() < self.max_tasks;
            // Main goes on until there are tasks enough: with a task, so that it comes to an end.
            if !short_of_tasks || self.tasks[0].frames.len() > 1 {
                return self.close(task);
            }
            self.tasks[0].left = self.rng.u32(0..=self.mix.statements);
            return self.write(task, self.mix.main_task);
        }
        self.tasks[task].left -= 1;
        let op = self.mix.pick(self.rng, task != 0);
        self.write(task, op);
    }

    /// Lets the task do `op`, or access memory if it cannot.
    fn write(&mut self, task: usize, op: Op) {
        let full = self.tasks.len() >= self.max_tasks && op.creates_task();
        let deep = self.bodies[self.top(task).body].depth >= MAX_NESTING;
        let done = match op {
            _ if full || deep && op.is_block() => false,
            Op::Access => false,
            Op::Free => {
                let bytes = if self.rng.bool() { self.pool.own(task) } else { self.pool.shared(self.rng) };
                self.leaf(task, Stmt::free(bytes))
            }
            Op::Async => self.create(task, Stmt::Async(Vec::new())),
            Op::Spawn => self.create(task, Stmt::Spawn(Vec::new())),
            Op::Future => self.create(task, Stmt::Future(self.futures.len() as u32, Vec::new())),
            Op::Post => self.post(task),
            Op::Detached => self.create(task, Stmt::Detached(Vec::new())),
            Op::Child => self.create(task, Stmt::Child(self.futures.len() as u32, Vec::new())),
            Op::Finish => {
                self.finishes.push(Finish::default());
                let kind = Kind::Finish(self.finishes.len() - 1);
                self.open(task, Stmt::Finish(Vec::new()), kind)
            }
            Op::Call => self.open(task, Stmt::Call(Vec::new()), Kind::Call),
            Op::Close => {
                let inside = self.tasks[task].frames.len() > 1;
                if inside {
                    self.close(task);
                }
                inside
            }
            Op::Sync => {
                self.leaf(task, Stmt::Sync);
                if self.spawns_run(task) {
                    self.tasks[task].wait = Some(Wait::Sync);
                } else {
                    self.join_spawns(task);
                }
                true
            }
            Op::Set => {
                self.write_own(task);
                let set = self.fresh_set(task);
                self.leaf(task, set)
            }
            Op::Get => self.get(task),
            Op::GetFuture => self.get_future(task),
            Op::Isolated => self.isolated(task),
            Op::Await => self.await_region(task),
            Op::Ewait => self.ewait(task),
            Op::Lock => self.lock(task),
            Op::Unlock => {
                let name = self.mix.name(self.rng);
                self.leaf(task, Stmt::Unlock(name))
            }
            Op::Release => self.release(task),
            Op::Acquire => self.acquire(task),
            Op::Atomic => {
                let kind = if self.rng.bool() { AccessKind::Write } else { AccessKind::Read };
                let bytes = self.pool.favourite(self.mix.name(self.rng), self.rng);
                self.leaf(task, Stmt::atomic(kind, bytes))
            }
        };
        if !done {
            self.access(task);
        }
    }

    // ---- accesses --------------------------------------------------------------------------------

    fn access(&mut self, task: usize) {
        let stmt = self.pool.access(self.rng, self.pool.own(task), &self.tasks[task].known);
        if let (Stmt::Write { bytes, .. }, 0) = (&stmt, self.rng.u32(0..3)) {
            remember(&mut self.tasks[task].known, *bytes, self.rng);
        }
        self.leaf(task, stmt);
    }

    /// Often before others are told of the task's bytes.
    fn write_own(&mut self, task: usize) {
        if self.rng.bool() {
            let own = self.pool.own(task);
            remember(&mut self.tasks[task].known, own, self.rng);
            self.leaf(task, Stmt::write(own));
        }
    }

    /// The task has been told of bytes, and often reads some of them.
    fn learn(&mut self, task: usize, told: &[Bytes]) {
        for &bytes in told {
            remember(&mut self.tasks[task].known, bytes, self.rng);
        }
        if let (Some(&bytes), true) = (self.rng.choice(told), self.rng.bool()) {
            self.leaf(task, Stmt::read(bytes));
        }
    }

    /// The task has joined others, and learns what one of them knew.
    fn learn_from(&mut self, task: usize, joined: &[usize]) {
        if let Some(&other) = self.rng.choice(joined) {
            let told = self.tasks[other].known.clone();
            self.learn(task, &told);
        }
    }

    // ---- blocks and tasks ------------------------------------------------------------------------

    fn top(&self, task: usize) -> &Frame {
        self.tasks[task].frames.last().expect("a live task has a frame")
    }

    /// The innermost procedure instance.
    fn procedure(&mut self, task: usize) -> &mut Frame {
        let frames = &mut self.tasks[task].frames;
        let found = frames.iter_mut().rfind(|frame| !matches!(frame.kind, Kind::Finish(_)));
        found.expect("the body of a task is a procedure instance")
    }

    fn spawns_run(&self, task: usize) -> bool {
        let frames = &self.tasks[task].frames;
        let procedure = frames.iter().rfind(|frame| !matches!(frame.kind, Kind::Finish(_)));
        procedure.is_some_and(|frame| frame.unsynced.iter().any(|&child| !self.tasks[child].ended))
    }

    fn leaf(&mut self, task: usize, stmt: Stmt) -> bool {
        let body = self.top(task).body;
        self.bodies[body].nodes.push(Node::Leaf(stmt));
        true
    }

    /// Appends a block with a new body, and returns the body.
    fn block(&mut self, task: usize, stmt: Stmt) -> usize {
        let outer = self.top(task).body;
        let (inner, depth) = (self.bodies.len(), self.bodies[outer].depth + 1);
        self.bodies[outer].nodes.push(Node::Block(stmt, inner));
        self.bodies.push(Body { nodes: Vec::new(), depth });
        inner
    }

    fn open(&mut self, task: usize, stmt: Stmt, kind: Kind) -> bool {
        let body = self.block(task, stmt);
        let handles = if kind == Kind::Call { self.give_handles(task) } else { Vec::new() };
        self.tasks[task].frames.push(Frame { kind, body, unsynced: Vec::new(), handles });
        true
    }

    /// Takes some handles from the innermost procedure instance, for a child.
    fn give_handles(&mut self, task: usize) -> Vec<u32> {
        let held = std::mem::take(&mut self.procedure(task).handles);
        let (given, kept) = held.into_iter().partition(|_| self.rng.u32(0..3) == 0);
        self.procedure(task).handles = kept;
        given
    }

    /// Creates a task; `stmt` is its statement.
    fn create(&mut self, parent: usize, stmt: Stmt) -> bool {
        let child = self.tasks.len();
        let handles = self.give_handles(parent);
        match stmt {
            Stmt::Spawn(_) => self.procedure(parent).unsynced.push(child),
            Stmt::Future(name, _) | Stmt::Child(name, _) => {
                if matches!(stmt, Stmt::Child(..)) {
                    self.procedure(parent).unsynced.push(child);
                }
                self.futures.push(child);
                self.procedure(parent).handles.push(name);
            }
            Stmt::Post(name, _) => self.regions[name as usize].tasks.push(child),
            _ => {}
        }
        let detached = matches!(stmt, Stmt::Detached(_));
        let body = self.block(parent, stmt);
        let inside = self.tasks[parent].frames.iter().rev().find_map(|frame| match frame.kind {
            Kind::Finish(finish) => Some(finish),
            Kind::Task | Kind::Call => None,
        });
        // The first finish is the program's.
        let finish = if detached { 0 } else { inside.unwrap_or(self.tasks[parent].finish) };
        let known = self.tasks[parent].known.clone();
        self.add_task(finish, body, handles);
        self.tasks[child].known = known;
        self.write_own(child);
        true
    }

    fn add_task(&mut self, finish: usize, body: usize, handles: Vec<u32>) {
        let task = self.tasks.len();
        if task == 0 {
            self.bodies.push(Body { nodes: Vec::new(), depth: 0 });
        } else {
            self.finishes[finish].running += 1;
            self.finishes[finish].tasks.push(task);
        }
        let left = self.rng.u32(0..=self.mix.statements);
        let frame = Frame { kind: Kind::Task, body, unsynced: Vec::new(), handles };
        self.tasks.push(Task {
            frames: vec![frame],
            finish,
            wait: None,
            left,
            known: Vec::new(),
            leftover: Vec::new(),
            ended: false,
        });
        self.live.push(task);
    }

    /// Ends the innermost body of the task, now or when what it joins has ended.
    fn close(&mut self, task: usize) {
        self.tasks[task].wait = Some(Wait::Close);
        if !self.can_go_on(task) {
            return;
        }
        self.tasks[task].wait = None;
        if self.top(task).kind == Kind::Task {
            return self.end(task);
        }
        let Some(mut frame) = self.tasks[task].frames.pop() else { return };
        self.procedure(task).handles.append(&mut frame.handles);
        self.take_leftovers(task, &frame.unsynced);
        let joined = match frame.kind {
            Kind::Finish(finish) => std::mem::take(&mut self.finishes[finish].tasks),
            Kind::Task | Kind::Call => frame.unsynced,
        };
        self.learn_from(task, &joined);
    }

    fn end(&mut self, task: usize) {
        let unsynced = std::mem::take(&mut self.procedure(task).unsynced);
        self.take_leftovers(task, &unsynced);
        self.tasks[task].leftover = std::mem::take(&mut self.procedure(task).handles);
        self.tasks[task].ended = true;
        self.live.retain(|&live| live != task);
        if task != 0 {
            self.finishes[self.tasks[task].finish].running -= 1;
        }
    }
}

mod joins;
mod sections;

#[cfg(test)]
mod tests;
