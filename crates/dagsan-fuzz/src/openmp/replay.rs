//! The order of a run, as a stream of events: what the specification makes of the same steps.
//!
//! | construct | events |
//! |---|---|
//! | a region | a finish, in which each thread is a task |
//! | a barrier | the end of the finish, and the next one, with new tasks for the threads |
//! | `single`, a section, a chunk of an open schedule | a task of the finish: it might have been any thread |
//! | a chunk of a static schedule | part of the thread that has it |
//! | `task` | a future; what comes before it by `depend`, and what a `taskwait` waits for, is got |
//! | `taskgroup`, `taskloop` | a finish |
//! | `critical`, locks, `mutexinoutset` | locks; a task that is created and waited for while one is held is under it |
//! | undeferred tasks, and tasks of final tasks | none: they are part of the task that creates them |
//!
//! Children of a task depend on each other only if that does not depend on who has got which piece: those of a `single` are by themselves. A `taskwait` of
//! the thread that has got it waits for them.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::graph::GraphBuilder;
use dagsan_core::oracle::Oracle;
use dagsan_core::order::Isolation;
use dagsan_core::{AccessSet, Error, Event, LockId, LockMode, Run, Stream, TaskId, TaskKind};

use super::code::{Op, codes, waits_for};
use super::depend::{alone, comes_after};
use super::tree::{Depend, Program, Share};

/// The steps of a run: who, and the number of the operation that it has done. Who comes into being has the next number; the initial
/// thread has 0.
pub type Trace = Vec<(u32, u32)>;

/// What the oracle says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The bytes that race.
    pub racy: BTreeSet<u64>,
    /// How many tasks there are in its graph.
    pub tasks: u32,
    /// How many accesses were made.
    pub accesses: u64,
}

/// The run cannot be one of the program: why.
#[derive(Debug, thiserror::Error)]
#[error("task {task}, operation {op}: {why}")]
pub struct Impossible {
    task: u32,
    op: u32,
    why: String,
}

impl Impossible {
    fn new(task: u32, op: u32, why: impl Into<String>) -> Impossible {
        Impossible { task, op, why: why.into() }
    }

    fn early(task: u32, op: u32, what: &Op, error: Error) -> Impossible {
        Impossible::new(task, op, format!("{what:?} too early: {error}"))
    }
}

/// Judges a run.
pub fn replay(program: &Program, trace: &[(u32, u32)]) -> Result<Expected, Impossible> {
    let codes = codes(program);
    let mut stream = Stream::new(GraphBuilder::new());
    stream.order_sections();
    let mut replay = Replay {
        codes: &codes,
        stream,
        actors: Vec::new(),
        regions: Vec::new(),
        locks: BTreeMap::new(),
        contexts: 0,
        tasks: 1,
        accesses: 0,
    };
    replay.add(0, TaskId::MAIN, None, &[]);
    for &(task, op) in trace {
        replay.step(task, op)?;
    }
    for (number, actor) in replay.actors.iter().enumerate() {
        if actor.next < replay.codes[actor.code].len() {
            return Err(Impossible::new(number as u32, actor.next as u32, "it does not come to its end"));
        }
    }
    let (tasks, accesses) = (replay.tasks, replay.accesses);
    let graph = replay.stream.into_consumer().into_graph();
    let racy = Oracle::new(&graph, Isolation::MutualExclusion).racy_bytes();
    Ok(Expected { racy, tasks, accesses })
}

/// A task, or a thread in a region.
struct Actor<'p> {
    code: usize,
    next: usize,
    /// What it is in the stream, and what it was before the piece that it is in.
    task: TaskId,
    before: Vec<TaskId>,
    /// Itself, and tasks that are part of it.
    contexts: Vec<Context<'p>>,
    set: AccessSet,
    atomics: AccessSet,
    /// Those that it depends on, until it begins; and what it has alone while it runs.
    after: Vec<TaskId>,
    alone: Vec<LockId>,
    /// The locks that it holds, and those that it is under.
    held: Vec<LockId>,
    under: Vec<LockId>,
    seat: Option<Seat>,
}

/// The tasks that have a `taskwait` and dependences in common.
struct Context<'p> {
    number: u32,
    children: Vec<(TaskId, &'p [Depend])>,
    /// How many of them were waited for.
    waited: usize,
    alone: Vec<LockId>,
}

/// The place of a thread in a region.
#[derive(Clone, Copy)]
struct Seat {
    region: usize,
    number: u32,
    /// How many barriers it has passed.
    passed: u32,
}

struct Region {
    encountering: usize,
    first: usize,
    threads: u32,
    passed: u32,
    /// The pieces that somebody has got.
    pieces: BTreeSet<u32>,
}

struct Replay<'p> {
    codes: &'p [Vec<Op>],
    stream: Stream<GraphBuilder>,
    actors: Vec<Actor<'p>>,
    regions: Vec<Region>,
    /// Of sections, and of variables of a context.
    locks: BTreeMap<(Option<u32>, u32), LockId>,
    contexts: u32,
    tasks: u32,
    accesses: u64,
}

impl<'p> Replay<'p> {
    fn add(&mut self, code: usize, task: TaskId, seat: Option<Seat>, after: &[TaskId]) {
        let context = self.context(Vec::new());
        self.actors.push(Actor {
            code,
            next: 0,
            task,
            before: Vec::new(),
            contexts: vec![context],
            set: AccessSet::new(),
            atomics: AccessSet::new(),
            after: after.to_vec(),
            alone: Vec::new(),
            held: Vec::new(),
            under: Vec::new(),
            seat,
        });
    }

    fn context(&mut self, alone: Vec<LockId>) -> Context<'p> {
        self.contexts += 1;
        Context { number: self.contexts, children: Vec::new(), waited: 0, alone }
    }

    fn lock(&mut self, context: Option<u32>, name: u32) -> LockId {
        let next = LockId(self.locks.len() as u32);
        *self.locks.entry((context, name)).or_insert(next)
    }

    /// An actor has done an operation, and all accesses before it.
    fn step(&mut self, number: u32, op: u32) -> Result<(), Impossible> {
        let actor = number as usize;
        if actor >= self.actors.len() {
            return Err(Impossible::new(number, op, "there is no such task"));
        }
        self.advance(number, op)?;
        let code = &self.codes[self.actors[actor].code];
        let what = &code[op as usize];
        self.actors[actor].next = op as usize + 1;
        if let Op::Piece { .. } | Op::Chunk { .. } = what
            && let Some(seat) = self.actors[actor].seat
            && !self.regions[seat.region].pieces.insert(op)
        {
            return Err(Impossible::new(number, op, "two threads have got the same piece"));
        }
        if let Op::Chunk { number: chunk, how: Share::StaticChunk(_), .. } = *what
            && let Some(seat) = self.actors[actor].seat
            && chunk % self.regions[seat.region].threads != seat.number
        {
            return Err(Impossible::new(number, op, "the chunk is another thread's"));
        }
        if let Op::Join = what
            && let Some(missing) = self.not_done(actor)
        {
            return Err(Impossible::new(
                number,
                op,
                format!("nobody has done operation {missing} of its region"),
            ));
        }
        if let Op::Pass { .. } = what {
            return self.pass(actor, op, what);
        }
        self.perform(actor, what).map_err(|error| Impossible::early(number, op, what, error))
    }

    /// Makes all accesses up to an operation, which must be the next one besides.
    fn advance(&mut self, number: u32, op: u32) -> Result<(), Impossible> {
        let actor = &mut self.actors[number as usize];
        let code = &self.codes[actor.code];
        loop {
            let wrong = |next: usize| {
                Impossible::new(
                    number,
                    op,
                    format!("{:?} comes next, not {:?}", code.get(next), code.get(op as usize)),
                )
            };
            if actor.next > op as usize || op as usize >= code.len() {
                return Err(wrong(actor.next));
            }
            match &code[actor.next] {
                Op::Access { kind, bytes, site, atomic } => {
                    let set = if *atomic { &mut actor.atomics } else { &mut actor.set };
                    set.record(*bytes, *kind, *site);
                    self.accesses += 1;
                    actor.next += 1;
                }
                Op::Masked { thread, end } => {
                    let mine = actor.seat.is_some_and(|seat| seat.number == *thread);
                    actor.next = if mine { actor.next + 1 } else { *end };
                }
                Op::MaskedDone | Op::Deal { .. } | Op::Dealt(_) => actor.next += 1,
                _ if actor.next == op as usize => return Ok(()),
                Op::Piece { end, .. } | Op::Chunk { end, .. } => actor.next = *end,
                _ => return Err(wrong(actor.next)),
            }
        }
    }

    fn perform(&mut self, actor: usize, op: &'p Op) -> Result<(), Error> {
        let task = self.actors[actor].task;
        match op {
            Op::Begin => {
                for future in std::mem::take(&mut self.actors[actor].after) {
                    self.emit(actor, Event::FutureGet { task, future })?;
                }
                self.take(actor, self.actors[actor].alone.clone())?;
            }
            Op::End => {
                self.give(actor, self.actors[actor].alone.clone())?;
                // What comes of the initial thread is known when all is over.
                if actor > 0 {
                    self.emit(actor, Event::TaskEnd { task })?;
                } else {
                    self.deliver(actor)?;
                }
            }
            Op::Create { code, clauses } => {
                let child = self.spawn(actor, TaskKind::Future)?;
                let under = self.put_under(actor, child)?;
                let context = self.innermost(actor);
                let after = Self::before(context, &clauses.depend);
                let names = alone(&clauses.depend);
                let number = context.number;
                context.children.push((child, &clauses.depend));
                self.add(*code, child, None, &after);
                let alone = names.into_iter().map(|name| self.lock(Some(number), name)).collect();
                let added = self.actors.last_mut().expect("it was added");
                (added.alone, added.under) = (alone, under);
            }
            Op::Taskloop { first, count, nogroup } => {
                if !nogroup {
                    self.emit(actor, Event::FinishBegin { task })?;
                }
                for code in *first..first + *count as usize {
                    let child = self.spawn(actor, TaskKind::Future)?;
                    // The group, if there is one, is sure to wait for it.
                    let under = match nogroup {
                        true => self.put_under(actor, child)?,
                        false => self.holds(actor),
                    };
                    self.innermost(actor).children.push((child, &[]));
                    self.add(code, child, None, &[]);
                    self.actors.last_mut().expect("it was added").under = under;
                }
            }
            Op::Looped { nogroup: true } => {}
            Op::Include { clauses, in_final } => {
                let depend: &[Depend] = if *in_final { &[] } else { &clauses.depend };
                let context = self.innermost(actor);
                let (after, number) = (Self::before(context, depend), context.number);
                for future in after {
                    self.emit(actor, Event::FutureGet { task, future })?;
                }
                let locks: Vec<LockId> =
                    alone(depend).into_iter().map(|name| self.lock(Some(number), name)).collect();
                self.take(actor, locks.clone())?;
                let context = self.context(locks);
                self.actors[actor].contexts.push(context);
            }
            Op::Included => {
                if let Some(context) = self.actors[actor].contexts.pop() {
                    self.give(actor, context.alone)?;
                }
            }
            Op::Taskwait(depend) => {
                let context = self.innermost(actor);
                let joined = if depend.is_empty() {
                    let waited = std::mem::replace(&mut context.waited, context.children.len());
                    context.children[waited..].iter().map(|(child, _)| *child).collect()
                } else {
                    Self::before(context, depend)
                };
                for future in joined {
                    self.emit(actor, Event::FutureGet { task, future })?;
                }
            }
            Op::Group => self.emit(actor, Event::FinishBegin { task })?,
            Op::Grouped | Op::Join | Op::Looped { nogroup: false } => {
                self.emit(actor, Event::FinishEnd { task })?;
            }
            Op::Take(lock) => {
                let lock = self.lock(None, lock.0);
                self.take(actor, vec![lock])?;
            }
            Op::Give(lock) => {
                let lock = self.lock(None, lock.0);
                self.give(actor, vec![lock])?;
            }
            Op::Fork { code, threads } => {
                self.emit(actor, Event::FinishBegin { task })?;
                let (region, first) = (self.regions.len(), self.actors.len());
                let pieces = BTreeSet::new();
                self.regions.push(Region {
                    encountering: actor,
                    first,
                    threads: *threads,
                    passed: 0,
                    pieces,
                });
                for number in 0..*threads {
                    let child = self.spawn(actor, TaskKind::Async)?;
                    self.add(*code, child, Some(Seat { region, number, passed: 0 }), &[]);
                }
            }
            Op::Chunk { how, .. } if !how.is_open() => {}
            Op::Piece { .. } | Op::Chunk { .. } => {
                if let Some(encountering) = self.team(actor) {
                    self.deliver(actor)?;
                    let piece = self.spawn(encountering, TaskKind::Async)?;
                    let context = self.context(Vec::new());
                    let actor = &mut self.actors[actor];
                    actor.before.push(std::mem::replace(&mut actor.task, piece));
                    actor.contexts.push(context);
                }
            }
            Op::ChunkDone(how) if !how.is_open() => {}
            Op::PieceDone | Op::ChunkDone(_) => {
                if self.team(actor).is_some() {
                    self.emit(actor, Event::TaskEnd { task })?;
                    let of_piece = self.actors[actor].contexts.pop();
                    let left = of_piece.into_iter().flat_map(|of| of.children.into_iter().skip(of.waited));
                    // Nobody else depends on them.
                    let left: Vec<_> = left.map(|(child, _)| (child, &[][..])).collect();
                    self.innermost(actor).children.extend(left);
                    let actor = &mut self.actors[actor];
                    actor.task = actor.before.pop().unwrap_or(actor.task);
                }
            }
            Op::Pass { .. } | Op::Masked { .. } | Op::MaskedDone | Op::Access { .. } => {}
            Op::Deal { .. } | Op::Dealt(_) => {}
        }
        Ok(())
    }

    /// A thread goes on behind a barrier. The first one that does shows that all have come there, and that their tasks have ended.
    fn pass(&mut self, actor: usize, op: u32, what: &Op) -> Result<(), Impossible> {
        let Some(seat) = self.actors[actor].seat else { return Ok(()) };
        let Region { encountering, first, threads, passed, .. } = self.regions[seat.region];
        let members = first..first + threads as usize;
        if passed == seat.passed {
            let early = |error| Impossible::early(actor as u32, op, what, error);
            for member in members.clone() {
                if member != actor {
                    self.advance(member as u32, op)?;
                }
                let task = self.actors[member].task;
                self.emit(member, Event::TaskEnd { task }).map_err(early)?;
            }
            let task = self.actors[encountering].task;
            self.emit(encountering, Event::FinishEnd { task }).map_err(early)?;
            self.emit(encountering, Event::FinishBegin { task }).map_err(early)?;
            for member in members {
                self.actors[member].task = self.spawn(encountering, TaskKind::Async).map_err(early)?;
            }
            self.regions[seat.region].passed += 1;
        }
        self.actors[actor].seat = Some(Seat { passed: seat.passed + 1, ..seat });
        Ok(())
    }

    /// A piece or chunk of the region that has just ended that no thread has done.
    fn not_done(&self, encountering: usize) -> Option<usize> {
        let region = self.regions.iter().rev().find(|region| region.encountering == encountering)?;
        let code = &self.codes[self.actors[region.first].code];
        let is_piece = |op: &Op| matches!(op, Op::Piece { .. } | Op::Chunk { .. });
        (0..code.len()).find(|&number| is_piece(&code[number]) && !region.pieces.contains(&(number as u32)))
    }

    /// The locks that an actor holds or is under.
    fn holds(&self, actor: usize) -> Vec<LockId> {
        let actor = &self.actors[actor];
        [&actor.held[..], &actor.under].concat()
    }

    /// A child that an actor has just created is under the locks that it holds until it has waited for it. Those locks.
    fn put_under(&mut self, actor: usize, child: TaskId) -> Result<Vec<LockId>, Error> {
        let (code, at) = (&self.codes[self.actors[actor].code], self.actors[actor].next - 1);
        let Some(waits) = waits_for(code, at) else { return Ok(Vec::new()) };
        let given: Vec<LockId> = code[at..waits]
            .iter()
            .filter_map(|op| match op {
                Op::Give(lock) => self.locks.get(&(None, lock.0)).copied(),
                _ => None,
            })
            .collect();
        let mut under = self.holds(actor);
        under.retain(|lock| !given.contains(lock));
        for &lock in &under {
            self.stream.event(Event::Under { task: child, lock })?;
        }
        Ok(under)
    }

    /// The encountering task of the region, if more than one thread may get a piece of it.
    fn team(&self, actor: usize) -> Option<usize> {
        let region = &self.regions[self.actors[actor].seat?.region];
        (region.threads > 1).then_some(region.encountering)
    }

    fn innermost(&mut self, actor: usize) -> &mut Context<'p> {
        self.actors[actor].contexts.last_mut().expect("a task is a context")
    }

    /// The siblings that a task with these dependences comes after.
    fn before(context: &Context<'p>, depend: &[Depend]) -> Vec<TaskId> {
        let before = context.children.iter().filter(|(_, earlier)| comes_after(depend, earlier));
        before.map(|(child, _)| *child).collect()
    }

    fn take(&mut self, actor: usize, locks: Vec<LockId>) -> Result<(), Error> {
        let task = self.actors[actor].task;
        let mode = LockMode::Exclusive;
        self.actors[actor].held.extend_from_slice(&locks);
        locks.into_iter().try_for_each(|lock| self.emit(actor, Event::Lock { task, lock, mode }))
    }

    fn give(&mut self, actor: usize, locks: Vec<LockId>) -> Result<(), Error> {
        let task = self.actors[actor].task;
        self.actors[actor].held.retain(|lock| !locks.contains(lock));
        locks.into_iter().rev().try_for_each(|lock| self.emit(actor, Event::Unlock { task, lock }))
    }

    fn spawn(&mut self, parent: usize, kind: TaskKind) -> Result<TaskId, Error> {
        let child = TaskId(self.tasks);
        self.emit(parent, Event::Spawn { parent: self.actors[parent].task, child, kind })?;
        self.tasks += 1;
        Ok(child)
    }

    fn emit(&mut self, actor: usize, event: Event) -> Result<(), Error> {
        self.deliver(actor)?;
        self.stream.event(event)
    }

    fn deliver(&mut self, actor: usize) -> Result<(), Error> {
        let actor = &mut self.actors[actor];
        let atomics = actor.atomics.runs().map(|run| Run { atomic: true, ..run });
        let runs: Vec<Run> = actor.set.runs().chain(atomics).collect();
        actor.set.clear();
        actor.atomics.clear();
        self.stream.runs(actor.task, &runs)
    }
}
