//! `vector-clock`: a clock per task, as FastTrack-like tools would keep if every task were a thread.
//!
//! Handles everything, in any order of delivery. A task's clock says, for each task, up to which of its
//! epochs it is known; a task's epoch grows whenever somebody may come to know it (spawn, set,
//! release, end of an isolated section). A query is one comparison, as in FastTrack. What it is here to show is the cost:
//! a clock has an entry per task, and spawning copies one, so n tasks take n² time and, while they
//! live, n² memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Order, Strands, Tasks};
use crate::error::Error;
use crate::event::Event;
use crate::ids::{StrandId, SyncId, TaskId};
use crate::step::{Phase, Step};
use crate::stream::Strand;

/// Entry `s`: the last epoch that is known of the task in slot `s` (see [`Tasks::slot`]); 0 is none.
type Clock = Arc<Vec<u32>>;

/// An epoch of a task.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    slot: usize,
    number: u32,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct VectorClock {
    clocks: Tasks<Clock>,
    sets: Vec<Clock>,
    isolated: Clock,
    /// What the kept releases of each object know.
    releases: FxHashMap<SyncId, Clock>,
    strands: Strands<Epoch>,
    now: Clock,
}

impl Default for VectorClock {
    fn default() -> VectorClock {
        VectorClock::new()
    }
}

impl VectorClock {
    /// At the start of a program.
    pub fn new() -> VectorClock {
        VectorClock {
            clocks: Tasks::new(Arc::new(vec![1])),
            sets: Vec::new(),
            isolated: Clock::default(),
            releases: FxHashMap::default(),
            strands: Strands::new(),
            now: Clock::default(),
        }
    }

    /// A task that can still do something was not forgotten.
    fn slot(&self, task: TaskId) -> usize {
        self.clocks.slot(task).expect("running") as usize
    }

    /// What `task` knows now, for somebody else to learn; a new epoch of the task begins.
    fn release(&mut self, task: TaskId) -> Clock {
        let slot = self.slot(task);
        let clock = &mut self.clocks[task];
        let released = clock.clone();
        Arc::make_mut(clock)[slot] += 1;
        released
    }

    fn acquire(&mut self, task: TaskId, other: &Clock) {
        join(&mut self.clocks[task], other);
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    if Arc::ptr_eq(clock, other) {
        return;
    }
    let clock = Arc::make_mut(clock);
    clock.resize(clock.len().max(other.len()), 0);
    for (mine, theirs) in clock.iter_mut().zip(other.iter()) {
        *mine = (*mine).max(*theirs);
    }
}

impl Order for VectorClock {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        match step.event {
            Event::Spawn { parent, child, .. } => {
                let slot = self.slot(child);
                let mut clock = (*self.release(parent)).clone();
                clock.resize(slot + 1, 0);
                clock[slot] = 1;
                self.clocks.push(Arc::new(clock));
            }
            Event::PromiseNew { .. } => self.sets.push(Clock::default()),
            Event::PromiseSet { task, promise } => self.sets[promise.index()] = self.release(task),
            Event::PromiseGet { task, promise } if !step.implied => {
                let set = self.sets[promise.index()].clone();
                self.acquire(task, &set);
            }
            Event::IsolatedBegin { task } => {
                let last = self.isolated.clone();
                self.acquire(task, &last);
            }
            Event::IsolatedEnd { task } => self.isolated = self.release(task),
            // In quiescent times whatever is released precedes everything to come.
            Event::Release { task, sync, keep } if step.phase == Phase::Parallel => {
                let released = self.release(task);
                let clock = self.releases.entry(sync).or_default();
                if keep { join(clock, &released) } else { *clock = released }
            }
            Event::Pass { from, to, keep, .. } => {
                let released = self.releases.get(&from).cloned().unwrap_or_default();
                let clock = self.releases.entry(to).or_default();
                if keep { join(clock, &released) } else { *clock = released }
            }
            Event::Acquire { task, sync } => {
                if let Some(released) = self.releases.get(&sync) {
                    join(&mut self.clocks[task], released);
                }
            }
            _ => {}
        }
        for &joined in step.joined {
            if let Some(clock) = self.clocks.get(joined).cloned() {
                self.acquire(step.event.task(), &clock);
            }
        }
        if step.phase == Phase::Quiesced {
            self.strands.forget();
            self.clocks.forget(Arc::new(vec![1]));
            self.isolated = Clock::default();
            self.releases.clear();
        }
        Ok(())
    }

    fn now(&mut self, strand: &Strand) {
        let slot = self.slot(strand.task);
        self.now = self.clocks[strand.task].clone();
        self.strands.enter(strand.id, Epoch { slot, number: self.now[slot] });
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        let a = self.strands[a];
        self.now.get(a.slot).is_some_and(|&known| a.number <= known)
    }

    fn memory(&self) -> usize {
        // Shared clocks are counted with each of their owners: an upper bound.
        let clocks = self.clocks.iter().chain(&self.sets).chain(self.releases.values());
        clocks.map(|clock| clock.capacity() * size_of::<u32>() + size_of::<Clock>()).sum::<usize>()
            + self.strands.memory()
    }
}
