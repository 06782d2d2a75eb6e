//! Runs a program once per schedule that matters, on all cores.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dagsan_core::order::{self, Engine};
use dagsan_core::{Detector, Error, SiteId};
use dagsan_lang::{Choice, End, Program, Run, Scheduler};

use crate::observer::{Log, Observer};
use crate::schedule::{Replay, Schedule};
use crate::tree::{NodeId, ROOT, Tree};

/// Which schedules are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// None: Algorithm 2, every order of all sections.
    None,
    /// Those that differ only in the order of independent sections.
    PartialOrder,
}

/// When to stop before all is done.
#[derive(Debug, Clone)]
pub struct Limits<'a> {
    /// Of each run.
    pub run: dagsan_lang::Limits,
    /// After so many schedules, merged ones among them.
    pub schedules: u64,
    /// After this time.
    pub time: Duration,
    /// When the states take so many bytes.
    pub memory: usize,
    /// When somebody sets this.
    pub stop: &'a AtomicBool,
    /// How many threads run schedules.
    pub threads: NonZero<usize>,
}

/// Why an exploration ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// So many schedules were run.
    Schedules,
    /// The time was up.
    Time,
    /// There was no more room for states.
    Memory,
    /// Somebody asked for it.
    Asked,
}

/// What an exploration did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exploration {
    /// Schedules that were run to their end.
    pub schedules: u64,
    /// Runs that were given up because they led to what had been seen.
    pub redundant: u64,
    /// Runs that were ended at a quiescent point, in a state that another run had reached.
    pub merged: u64,
    /// States between steps.
    pub states: u64,
    /// Has no section depended on another that it was not ordered with? Then one schedule was enough.
    pub independent: bool,
    /// Why it ended early, if it did.
    pub stopped: Option<Stopped>,
}

/// A run of the exploration, for whoever gathers what was found. One that was merged ends with [`End::Stopped`]: what it
/// has shown until then counts.
pub struct Seen<'r, 'p> {
    /// The schedule.
    pub schedule: Schedule,
    /// The run.
    pub run: &'r Run<'p>,
    /// What its detector found.
    pub detector: &'r Detector,
    /// How far the exploration is.
    pub so_far: Exploration,
}

/// Explores `program`; `seen` is told of every schedule, one at a time.
///
/// With [`Reduction::None`] each run is judged by `engine`. A reduced exploration brings its own edges between
/// sections, and is judged by the engine made for that, [`order::EXPLORER`].
pub fn explore(
    program: &Program,
    engine: &'static Engine,
    reduction: Reduction,
    limits: &Limits<'_>,
    seen: &mut (dyn FnMut(Seen<'_, '_>) + Send),
) -> Result<Exploration, Error> {
    let reduced = reduction == Reduction::PartialOrder;
    if reduced && let Some(done) = one_is_enough(program, &limits.run, seen)? {
        return Ok(done);
    }
    let explorer = Explorer {
        program,
        engine,
        reduced,
        limits,
        start: Instant::now(),
        shared: Mutex::new(Shared {
            tree: Tree::new(reduced, limits.memory),
            first: true,
            running: 0,
            done: Exploration::default(),
            failed: None,
            reached: HashSet::new(),
            seen,
        }),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..limits.threads.get() {
            scope.spawn(|| explorer.work());
        }
        explorer.work();
    });
    let shared = explorer.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    match shared.failed {
        Some(error) => Err(error),
        None => Ok(shared.done),
    }
}

/// Does the order of the isolated sections make no difference? The serial run shows it: no section depends on
/// another that is not ordered with it.
pub fn sections_commute(program: &Program, limits: &dagsan_lang::Limits) -> Result<bool, Error> {
    Ok(one_is_enough(program, limits, &mut |_| {})?.is_some())
}

/// The serial run alone, if no section of it depends on another: there may be many sections, and a tree of their
/// choices would take much room.
fn one_is_enough(
    program: &Program,
    limits: &dagsan_lang::Limits,
    seen: &mut dyn FnMut(Seen<'_, '_>),
) -> Result<Option<Exploration>, Error> {
    let commutes = |site: SiteId| program.commutes(site);
    let mut observer = Observer::new(order::default_engine(), true, &commutes);
    let run = program.run(limits, &mut observer);
    // A run that fails leaves out sections, on which others may depend.
    if !observer.independent() || matches!(run.end, End::Failed(_)) {
        return Ok(None);
    }
    let mut detector = observer.into_detector();
    detector.finish()?;
    if let End::Refused(error) = run.end {
        return Err(error);
    }
    let so_far = Exploration { schedules: 1, states: 1, independent: true, ..Exploration::default() };
    seen(Seen { schedule: Schedule::default(), run: &run, detector: &detector, so_far });
    Ok(Some(so_far))
}

/// Runs one schedule, as [`explore`] would, and tells `seen` of it. Gives back the scheduler, which knows whether the
/// schedule was one of this program.
pub fn replay(
    program: &Program,
    engine: &'static Engine,
    reduction: Reduction,
    limits: &dagsan_lang::Limits,
    schedule: &Schedule,
    seen: &mut dyn FnMut(Seen<'_, '_>),
) -> Result<Replay, Error> {
    let commutes = |site: SiteId| program.commutes(site);
    let mut observer = Observer::new(engine, reduction == Reduction::PartialOrder, &commutes);
    let mut replay = Replay::new(schedule.clone());
    let run = program.run_scheduled(limits, &mut observer, &mut replay);
    let mut detector = observer.into_detector();
    detector.finish()?;
    if let End::Refused(error) = run.end {
        return Err(error);
    }
    let so_far = Exploration { schedules: 1, ..Exploration::default() };
    seen(Seen { schedule: schedule.clone(), run: &run, detector: &detector, so_far });
    Ok(replay)
}

struct Explorer<'a, 'l> {
    program: &'a Program,
    engine: &'static Engine,
    reduced: bool,
    limits: &'a Limits<'l>,
    start: Instant,
    shared: Mutex<Shared<'a>>,
    /// There is more to do, or nothing more.
    changed: Condvar,
}

struct Shared<'a> {
    tree: Tree,
    /// The first run, which follows no choice, has not been made.
    first: bool,
    /// Threads in the middle of a run, which may find more to do.
    running: u32,
    done: Exploration,
    failed: Option<Error>,
    /// The quiescent states that were reached.
    reached: HashSet<u128>,
    seen: &'a mut (dyn FnMut(Seen<'_, '_>) + Send),
}

impl<'a> Explorer<'a, '_> {
    fn lock(&self) -> MutexGuard<'_, Shared<'a>> {
        // A panic of another thread ends the exploration; it is passed on when the threads are joined.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(path) = self.next() {
            self.run(path);
            self.lock().running -= 1;
            self.changed.notify_all();
        }
        self.changed.notify_all();
    }

    /// The next choices to follow; waits as long as other threads may find some.
    fn next(&self) -> Option<Vec<(NodeId, u32)>> {
        let mut shared = self.lock();
        loop {
            // The first run is always made: without it there is nothing to say.
            if !shared.first && (shared.failed.is_some() || self.stop(&mut shared)) {
                return None;
            }
            // Runs under way count: there must not be more schedules than wanted.
            let runs = shared.done.schedules + shared.done.merged + u64::from(shared.running);
            if runs >= self.limits.schedules {
                if shared.running == 0 {
                    if !shared.tree.is_done() {
                        shared.done.stopped.get_or_insert(Stopped::Schedules);
                    }
                    return None;
                }
                shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let path = if std::mem::take(&mut shared.first) { Some(Vec::new()) } else { shared.tree.next() };
            if let Some(path) = path {
                shared.running += 1;
                return Some(path);
            }
            if shared.running == 0 {
                return None;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn stop(&self, shared: &mut Shared<'_>) -> bool {
        // Relaxed: nothing else is read because of it.
        let reason = if self.limits.stop.load(Ordering::Relaxed) {
            Stopped::Asked
        } else if self.start.elapsed() >= self.limits.time {
            Stopped::Time
        } else if shared.tree.overflowed {
            Stopped::Memory
        } else {
            return shared.done.stopped.is_some();
        };
        shared.done.stopped.get_or_insert(reason);
        true
    }

    fn run(&self, follow: Vec<(NodeId, u32)>) {
        let commutes = |site: SiteId| self.program.commutes(site);
        let mut observer = Observer::new(self.engine, self.reduced, &commutes);
        let log = observer.log();
        let mut guide =
            Guide { explorer: self, follow, taken: Vec::new(), log: observer.log(), merged: false };
        let run = self.program.run_scheduled(&self.limits.run, &mut observer, &mut guide);
        let (taken, merged) = (guide.taken, guide.merged);
        let mut detector = observer.into_detector();
        let finished = detector.finish();

        let mut shared = self.lock();
        let shared = &mut *shared;
        shared.tree.learn(&taken, &log.borrow());
        if let End::Failed(_) = run.end {
            shared.tree.expand(&taken);
        }
        shared.done.states = shared.tree.states();
        match (&run.end, &finished) {
            (End::Refused(error), _) | (_, Err(error)) => {
                shared.failed.get_or_insert(error.clone());
            }
            (End::Stopped, _) if !merged => shared.done.redundant += 1,
            _ => {
                if merged {
                    shared.done.merged += 1;
                } else {
                    shared.done.schedules += 1;
                }
                let schedule = Schedule(taken.iter().map(|&(_, choice)| choice).collect());
                (shared.seen)(Seen { schedule, run: &run, detector: &detector, so_far: shared.done });
            }
        }
    }
}

/// Follows a path down the tree, and goes on where no run has been.
struct Guide<'e, 'a, 'l> {
    explorer: &'e Explorer<'a, 'l>,
    follow: Vec<(NodeId, u32)>,
    taken: Vec<(NodeId, u32)>,
    log: Log,
    /// The run has come to a state that another one had reached.
    merged: bool,
}

impl Scheduler for Guide<'_, '_, '_> {
    fn choose(&mut self, choices: &[Choice]) -> Option<usize> {
        let next = match self.follow.get(self.taken.len()) {
            Some(&next) => next,
            None => {
                let mut shared = self.explorer.lock();
                let node = match self.taken.last() {
                    None => ROOT,
                    Some(&(node, choice)) => {
                        let log = self.log.borrow();
                        let footprint = log.last().and_then(|made| made.footprint.as_ref());
                        shared.tree.descend(node, choice, footprint)?
                    }
                };
                (node, shared.tree.visit(node, choices)?)
            }
        };
        self.taken.push(next);
        Some(next.1 as usize)
    }

    fn reached(&mut self, digest: u128) -> bool {
        // On the way to where no run has been, states are met again that lie on this very way.
        if self.explorer.reduced && self.taken.len() >= self.follow.len() {
            self.merged = !self.explorer.lock().reached.insert(digest);
        }
        !self.merged
    }
}
