//! A run of threads, replayed for the oracle in the order in which the program says that it made its statements.
//!
//! Every statement is made once at most, so the order is a list of their numbers, in text order. A statement is told when its
//! thread is about to make it, but for those that wait, which are told when they are over; a wait for a promise is also told when it
//! begins, or looks in vain, and is replayed as that if the promise is not set by then.
//!
//! **What is not certain.** The standard library orders more than it promises, and whether that is seen depends on how long a thread spins before
//! it sleeps, and on what comes later:
//!
//! - A channel wakes who waits for it: the sender may come after what the receiver did before it waited.
//! - A scope counts its threads. Who starts another one there, by a relaxed operation, has seen the count that one which has ended left.
//! - An update of the program's has seen what others have released by the same object, though it does not acquire it.
//!
//! The latter two are no order by themselves. But an acquire fence after them comes after what they have seen (C++, atomics.fences), and the
//! standard library has such fences: whoever drops the last handle of something counted makes one. That may be wherever a thread is started,
//! joined, counted out or ends, and in channels, which count who waits. Nothing else makes one: not plain accesses, locks, condition variables, or atomics.
//!
//! The program may not rest on these orders. So there are two verdicts: bytes that race in any case, and those that race without them.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::graph::GraphBuilder;
use dagsan_core::oracle::Oracle;
use dagsan_core::order::Isolation;
use dagsan_core::{
    AccessKind, AccessSet, Bytes, Error, Event, LockId, LockMode, PromiseId, Stream, SyncId, TaskId, TaskKind,
};

use super::Said;
use super::threads::Handover;
use crate::program::{Stmt, site};
use crate::run::{Outcome, take_runs};

/// What the oracle says of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// How it went.
    pub outcome: Outcome,
    /// Bytes that race.
    pub must: BTreeSet<u64>,
    /// Bytes that race if the run has no orders but those that the program can rest on.
    pub may: BTreeSet<u64>,
}

/// A run that is none of the program.
#[derive(Debug, thiserror::Error)]
pub enum NoRun {
    /// The core refuses an event.
    #[error(transparent)]
    Refused(#[from] Error),
    /// No thread can make this statement now.
    #[error("statement {0} cannot be the next: {1}")]
    OutOfOrder(usize, String),
}

/// The verdict on a run in this order.
pub fn observed(said: &Said, order: &[usize]) -> Result<Observed, NoRun> {
    let (outcome, must) = replay(said, order, true)?;
    let (_, may) = replay(said, order, false)?;
    Ok(Observed { outcome, must, may })
}

fn replay(said: &Said, order: &[usize], incidental: bool) -> Result<(Outcome, BTreeSet<u64>), NoRun> {
    let mut stream = Stream::new(GraphBuilder::new());
    stream.order_sections();
    let body: &[Stmt] = &said.program.body;
    let mut replay = Replay {
        stream,
        incidental,
        handovers: Handover::of(&said.program, said.nest),
        set: AccessSet::new(),
        atomics: AccessSet::new(),
        running: TaskId::MAIN,
        threads: vec![Thread {
            frames: vec![Frame { body, next: 0, finish: None }],
            sets: None,
            scope: None,
        }],
        scopes: Vec::new(),
        promises: BTreeMap::new(),
        outcome: Outcome { tasks: 1, ..Outcome::default() },
    };
    let statements: Vec<&Stmt> = said.program.walk().collect();
    let mut over = BTreeSet::new();
    for &number in order {
        let stmt =
            statements.get(number).ok_or_else(|| NoRun::OutOfOrder(number, "there is none".to_owned()))?;
        // The end of a wait that was over when it began.
        if over.contains(&number) {
            continue;
        }
        replay.end_what_is_over()?;
        let thread = replay.threads.iter().position(|thread| {
            let frame = thread.frames.last();
            frame.and_then(|frame| frame.body.get(frame.next)).is_some_and(|next| std::ptr::eq(next, *stmt))
        });
        let Some(thread) = thread else { return Err(NoRun::OutOfOrder(number, format!("{stmt:?}"))) };
        if replay.step(thread, stmt)? && matches!(stmt, Stmt::Get(_)) {
            over.insert(number);
        }
    }
    replay.end_what_is_over()?;
    replay.deliver(replay.running)?;
    // The program ends with its main thread, and not before, unless all threads wait for each other.
    replay.outcome.deadlock = !replay.threads[0].is_over();
    let graph = replay.stream.into_consumer().into_graph();
    Ok((replay.outcome, Oracle::new(&graph, Isolation::MutualExclusion).racy_bytes()))
}

/// What stands for a promise, and for a thread that is joined by its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Promise(u32),
    Thread(u32),
}

#[derive(Debug)]
struct Promise {
    id: PromiseId,
    set: bool,
}

struct Frame<'p> {
    body: &'p [Stmt],
    next: usize,
    /// The scope that ends with it.
    finish: Option<usize>,
}

/// A thread, by the number of its task. It has ended if it has no frames.
struct Thread<'p> {
    frames: Vec<Frame<'p>>,
    /// What it sets at its end.
    sets: Option<Named>,
    /// The scope that joins it.
    scope: Option<usize>,
}

impl Thread<'_> {
    /// Has it made all its statements, scopes and all?
    fn is_over(&self) -> bool {
        self.frames.iter().all(|frame| frame.finish.is_none() && frame.next == frame.body.len())
    }
}

struct Replay<'p> {
    stream: Stream<GraphBuilder>,
    /// Is there all the order that the standard library may show?
    incidental: bool,
    handovers: BTreeMap<u32, Handover>,
    set: AccessSet,
    atomics: AccessSet,
    /// Whose accesses these are.
    running: TaskId,
    threads: Vec<Thread<'p>>,
    /// How many threads of each run.
    scopes: Vec<u32>,
    promises: BTreeMap<Named, Promise>,
    outcome: Outcome,
}

/// Synchronisation objects are numbered in turn: the program's, those of channels, those of scopes, and what each thread has seen.
const CHANNEL: u32 = 1;
const SCOPE: u32 = 2;
const SEEN: u32 = 3;

fn object(name: u32, kind: u32) -> SyncId {
    SyncId(4 * name + kind)
}

/// Where flags are, beyond all memory of programs.
const FLAGS: u64 = 1 << 40;

impl<'p> Replay<'p> {
    /// The thread makes its next statement. Is it over? Not if it waits.
    fn step(&mut self, thread: usize, stmt: &'p Stmt) -> Result<bool, Error> {
        let task = TaskId(thread as u32);
        if self.running != task {
            self.deliver(self.running)?;
            self.running = task;
        }
        if let Stmt::Get(name) = *stmt
            && !self.is_set(Named::Promise(name))
        {
            self.waits(task, name)?;
            return Ok(false);
        }
        if let Some(frame) = self.threads[thread].frames.last_mut() {
            frame.next += 1;
        }
        self.execute(task, stmt)?;
        Ok(true)
    }

    fn execute(&mut self, task: TaskId, stmt: &'p Stmt) -> Result<(), Error> {
        self.outcome.accesses += u64::from(stmt.bytes().is_some());
        match *stmt {
            Stmt::Read { bytes, site } => self.set.record(bytes, AccessKind::Read, site),
            Stmt::Write { bytes, site } => self.set.record(bytes, AccessKind::Write, site),
            Stmt::Atomic { kind, bytes, site } => self.atomics.record(bytes, kind, site),
            Stmt::Free { bytes, site } => {
                self.deliver(task)?;
                self.stream.free(task, bytes, site, &mut self.set)?;
            }
            Stmt::Async(ref body) => {
                let frames = &self.threads[task.index()].frames;
                let own = frames.iter().rev().find_map(|frame| frame.finish);
                let scope = own.or(self.threads[task.index()].scope);
                if let Some(scope) = scope {
                    self.sees(task, object(scope as u32, SCOPE))?;
                }
                self.start(task, TaskKind::Async, body, None, scope)?;
            }
            // It is not joined by a scope around it.
            Stmt::Future(name, ref body) => {
                self.start(task, TaskKind::Detached, body, Some(Named::Thread(name)), None)?;
            }
            Stmt::Detached(ref body) => self.start(task, TaskKind::Detached, body, None, None)?,
            Stmt::Finish(ref body) => {
                self.emit(Event::FinishBegin { task })?;
                self.scopes.push(0);
                let finish = Some(self.scopes.len() - 1);
                self.threads[task.index()].frames.push(Frame { body, next: 0, finish });
            }
            Stmt::GetFuture(name) => {
                self.get(task, Named::Thread(name))?;
                self.fence(task)?;
            }
            Stmt::Set(name) => self.sets(task, name)?,
            Stmt::Get(name) => match self.handovers.get(&name) {
                Some(Handover::Channel) => {
                    self.get(task, Named::Promise(name))?;
                    self.fence(task)?;
                }
                _ => self.flag(task, name, AccessKind::Read)?,
            },
            Stmt::Lock(name, mode) => self.emit(Event::Lock { task, lock: LockId(2 * name), mode })?,
            Stmt::Unlock(name) => self.emit(Event::Unlock { task, lock: LockId(2 * name) })?,
            Stmt::Release(name, keep) => {
                let sync = object(name, 0);
                if keep {
                    self.sees(task, sync)?;
                }
                self.emit(Event::Release { task, sync, keep })?;
            }
            Stmt::Acquire(name) => {
                let sync = object(name, 0);
                self.emit(Event::Acquire { task, sync })?;
                // Then one operation does both (`lower.rs`), and others may come before the next statement.
                let frame = self.threads[task.index()].frames.last();
                let next = frame.and_then(|frame| frame.body.get(frame.next));
                if next == Some(&Stmt::Release(name, true)) {
                    self.emit(Event::Release { task, sync, keep: true })?;
                }
            }
            // Threads say none of these.
            Stmt::Spawn(_)
            | Stmt::Sync
            | Stmt::Call(_)
            | Stmt::Isolated(_)
            | Stmt::Child(..)
            | Stmt::Post(..)
            | Stmt::Await(_)
            | Stmt::Ewait(_) => {}
        }
        Ok(())
    }

    fn start(
        &mut self,
        parent: TaskId,
        kind: TaskKind,
        body: &'p [Stmt],
        sets: Option<Named>,
        scope: Option<usize>,
    ) -> Result<(), Error> {
        if let Some(named) = sets {
            self.promise(parent, named)?;
        }
        let child = TaskId(self.threads.len() as u32);
        self.emit(Event::Spawn { parent, child, kind })?;
        if let Some(scope) = scope {
            self.scopes[scope] += 1;
        }
        self.threads.push(Thread { frames: vec![Frame { body, next: 0, finish: None }], sets, scope });
        self.outcome.tasks += 1;
        self.fence(parent)
    }

    /// Ends bodies that have come to their ends, and scopes whose threads have ended. The end of the main thread ends the program.
    fn end_what_is_over(&mut self) -> Result<(), Error> {
        loop {
            let is_over = |thread: &Thread| {
                let frame = thread.frames.last().filter(|frame| frame.next == frame.body.len());
                frame.is_some_and(|frame| frame.finish.is_none_or(|finish| self.scopes[finish] == 0))
            };
            let main_is_over = self.threads[0].frames.len() == 1;
            let over = self
                .threads
                .iter()
                .enumerate()
                .find(|(number, thread)| is_over(thread) && (*number != 0 || !main_is_over));
            let Some((number, _)) = over else { return Ok(()) };
            let task = TaskId(number as u32);
            let thread = &mut self.threads[number];
            let finish = thread.frames.pop().and_then(|frame| frame.finish);
            if finish.is_some() {
                self.emit(Event::FinishEnd { task })?;
                self.fence(task)?;
                continue;
            }
            let (sets, scope) = (thread.sets, thread.scope);
            self.fence(task)?;
            if let Some(named) = sets {
                self.set_promise(task, named)?;
            }
            if let Some(scope) = scope.filter(|_| self.incidental) {
                self.emit(Event::Release { task, sync: object(scope as u32, SCOPE), keep: true })?;
            }
            self.emit(Event::TaskEnd { task })?;
            if let Some(scope) = scope {
                self.scopes[scope] -= 1;
            }
        }
    }

    /// The thread sees what was released by an object, without acquiring it.
    fn sees(&mut self, task: TaskId, from: SyncId) -> Result<(), Error> {
        match self.incidental {
            true => self.emit(Event::Pass { task, from, to: object(task.0, SEEN), keep: true }),
            false => Ok(()),
        }
    }

    /// The standard library may have come by an acquire fence.
    fn fence(&mut self, task: TaskId) -> Result<(), Error> {
        match self.incidental {
            true => self.emit(Event::Acquire { task, sync: object(task.0, SEEN) }),
            false => Ok(()),
        }
    }

    // ---- hand-over -------------------------------------------------------------------------------

    fn promise(&mut self, task: TaskId, named: Named) -> Result<PromiseId, Error> {
        if let Some(promise) = self.promises.get(&named) {
            return Ok(promise.id);
        }
        let id = PromiseId(self.promises.len() as u32);
        self.promises.insert(named, Promise { id, set: false });
        self.emit(Event::PromiseNew { task, promise: id })?;
        Ok(id)
    }

    fn is_set(&self, named: Named) -> bool {
        self.promises.get(&named).is_some_and(|promise| promise.set)
    }

    fn set_promise(&mut self, task: TaskId, named: Named) -> Result<(), Error> {
        let promise = self.promise(task, named)?;
        if !self.is_set(named) {
            self.emit(Event::PromiseSet { task, promise })?;
        }
        self.promises.entry(named).and_modify(|promise| promise.set = true);
        Ok(())
    }

    fn get(&mut self, task: TaskId, named: Named) -> Result<(), Error> {
        let promise = self.promise(task, named)?;
        self.emit(Event::PromiseGet { task, promise })
    }

    fn sets(&mut self, task: TaskId, name: u32) -> Result<(), Error> {
        if self.handovers.get(&name) != Some(&Handover::Channel) {
            self.flag(task, name, AccessKind::Write)?;
        }
        // The order is that of the flag's sections, if it is one.
        self.set_promise(task, Named::Promise(name))?;
        if self.incidental && self.handovers.get(&name) == Some(&Handover::Channel) {
            self.emit(Event::Acquire { task, sync: object(name, CHANNEL) })?;
            self.fence(task)?;
        }
        Ok(())
    }

    /// The thread begins to wait, or looks at the flag in vain.
    fn waits(&mut self, task: TaskId, name: u32) -> Result<(), Error> {
        match self.handovers.get(&name) {
            Some(Handover::Channel) if self.incidental => {
                self.emit(Event::Release { task, sync: object(name, CHANNEL), keep: true })
            }
            Some(Handover::Channel) => Ok(()),
            _ => self.flag(task, name, AccessKind::Read),
        }
    }

    /// A section of the flag's mutex.
    fn flag(&mut self, task: TaskId, name: u32, kind: AccessKind) -> Result<(), Error> {
        let lock = LockId(2 * name + 1);
        self.emit(Event::Lock { task, lock, mode: LockMode::Exclusive })?;
        if let Ok(bytes) = Bytes::new(FLAGS + 64 * u64::from(name), 1) {
            self.set.record(bytes, kind, site(u32::MAX - 1));
        }
        self.emit(Event::Unlock { task, lock })
    }

    // ---- the stream ------------------------------------------------------------------------------

    fn emit(&mut self, event: Event) -> Result<(), Error> {
        // What another thread has done so far is its own.
        self.deliver(self.running)?;
        self.outcome.events += 1;
        self.stream.event(event)
    }

    fn deliver(&mut self, task: TaskId) -> Result<(), Error> {
        let runs = take_runs(&mut self.set, &mut self.atomics);
        self.stream.runs(task, &runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use crate::rust::say_threads;

    /// The bytes that race in any case, and perhaps, in a run in this order.
    fn racy(text: &str, nest: u64, order: &[usize]) -> (Vec<u64>, Vec<u64>) {
        let said = say_threads(&Program::parse(text).unwrap(), true, nest);
        let Observed { must, may, .. } = observed(&said, order).unwrap();
        (must.into_iter().collect(), may.into_iter().collect())
    }

    #[test]
    fn a_join_orders_and_a_detached_thread_races() {
        assert_eq!(racy("future f0 { w 0+1 } get f0; r 0+1", 0, &[0, 1, 2, 3]), (vec![], vec![]));
        assert_eq!(racy("detached { w 0+1 } r 0+1", 0, &[0, 2, 1]), (vec![0], vec![0]));
        // A statement that was not made does not race.
        assert_eq!(racy("detached { w 0+1 } r 0+1", 0, &[0, 2]), (vec![], vec![]));
        assert_eq!(racy("finish { async { w 0+1 } r 1+1 } r 0+1", 0, &[0, 1, 3, 2, 4]), (vec![], vec![]));
    }

    /// 0 future, 1 load, 2 r, 3 w, 4 load, 5 update
    #[test]
    fn an_acquire_before_an_update_releases_at_once() {
        let both = "future f0 { load s0; r 0+1 } w 0+1; load s0; update s0";
        assert_eq!(racy(both, 0, &[0, 3, 4, 1, 2, 5]), (vec![], vec![]));
        let late = "future f0 { load s0; r 0+1 } w 0+1; load s0; w 1+1; update s0";
        assert_eq!(racy(late, 0, &[0, 3, 4, 1, 2, 5, 6]), (vec![0], vec![0]));
    }

    /// 0 future, 1 w, 2 set, 3 w, 4 w, 5 get, 6 r
    const HANDOVER: &str = "future f0 { w 0+1; set p0; w 1+1 } w 1+1; get p0; r 0+1";

    #[test]
    fn a_flag_orders_who_has_looked_in_vain_before_who_sets_it() {
        assert_eq!(racy(HANDOVER, 0, &[0, 1, 2, 3, 4, 5, 6]), (vec![1], vec![1]));
        assert_eq!(racy(HANDOVER, 0, &[0, 4, 5, 1, 2, 3, 5, 6]), (vec![], vec![]));
    }

    #[test]
    fn a_channel_may() {
        assert_eq!(racy(HANDOVER, u64::MAX, &[0, 1, 2, 3, 4, 5, 5, 6]), (vec![1], vec![1]));
        assert_eq!(racy(HANDOVER, u64::MAX, &[0, 4, 5, 1, 2, 3, 5, 6]), (vec![], vec![1]));
    }

    /// 0 detached, 1 w, 2 store, 3 future, 4 update, 5 get, 6 r
    #[test]
    fn a_fence_of_the_standard_library_acquires_what_an_update_has_seen() {
        let joins = "detached { w 0+1; store s0 } future f0 { } update s0; get f0; r 0+1";
        assert_eq!(racy(joins, 0, &[0, 1, 2, 3, 4, 5, 6]), (vec![], vec![0]));
        // Not what came later.
        assert_eq!(racy(joins, 0, &[0, 3, 4, 1, 2, 5, 6]), (vec![0], vec![0]));
        let without = "detached { w 0+1; store s0 } future f0 { } get f0; update s0; r 0+1";
        assert_eq!(racy(without, 0, &[0, 1, 2, 3, 4, 5, 6]), (vec![0], vec![0]));
    }

    #[test]
    fn an_order_that_is_none_of_the_program_is_refused() {
        let said = say_threads(&Program::parse("w 0+1; r 0+1").unwrap(), true, 0);
        assert!(matches!(observed(&said, &[1]), Err(NoRun::OutOfOrder(1, _))));
        assert!(matches!(observed(&said, &[7]), Err(NoRun::OutOfOrder(7, _))));
    }
}
