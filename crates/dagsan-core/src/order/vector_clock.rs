//! `vector-clock`: a clock per task, as FastTrack-like tools would keep if every task were a thread.
//!
//! Handles everything, in any order of delivery. A task's clock says, for each task, up to which of its
//! epochs it is known; a task's epoch grows whenever somebody may come to know it (spawn, set, end of
//! an isolated section). A query is one comparison, as in FastTrack. What it is here to show is the cost:
//! a clock has an entry per task, and spawning copies one, so n tasks take n² time and, while they
//! live, n² memory.

use std::sync::Arc;

use super::{Order, Strands};
use crate::error::Error;
use crate::event::Event;
use crate::ids::{StrandId, TaskId};
use crate::step::{Phase, Step};

/// Entry `t`: the last epoch of task `t` that is known; 0 is none.
type Clock = Arc<Vec<u32>>;

/// An epoch of a task.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    task: TaskId,
    number: u32,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct VectorClock {
    clocks: Vec<Clock>,
    sets: Vec<Clock>,
    isolated: Clock,
    strands: Strands<Epoch>,
    now: TaskId,
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
            clocks: vec![Arc::new(vec![1])],
            sets: Vec::new(),
            isolated: Clock::default(),
            strands: Strands::new(),
            now: TaskId::MAIN,
        }
    }

    /// What `task` knows now, for somebody else to learn; a new epoch of the task begins.
    fn release(&mut self, task: TaskId) -> Clock {
        let clock = &mut self.clocks[task.index()];
        let released = clock.clone();
        Arc::make_mut(clock)[task.index()] += 1;
        released
    }

    fn acquire(&mut self, task: TaskId, other: &Clock) {
        if Arc::ptr_eq(&self.clocks[task.index()], other) {
            return;
        }
        let clock = Arc::make_mut(&mut self.clocks[task.index()]);
        clock.resize(clock.len().max(other.len()), 0);
        for (mine, theirs) in clock.iter_mut().zip(other.iter()) {
            *mine = (*mine).max(*theirs);
        }
    }
}

impl Order for VectorClock {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        match step.event {
            Event::Spawn { parent, child, .. } => {
                let mut clock = (*self.release(parent)).clone();
                clock.resize(child.index() + 1, 0);
                clock[child.index()] = 1;
                self.clocks.push(Arc::new(clock));
            }
            Event::PromiseNew { .. } => self.sets.push(Clock::default()),
            Event::PromiseSet { task, promise } => self.sets[promise.index()] = self.release(task),
            Event::PromiseGet { task, promise } => {
                let set = self.sets[promise.index()].clone();
                self.acquire(task, &set);
            }
            Event::IsolatedBegin { task } => {
                let last = self.isolated.clone();
                self.acquire(task, &last);
            }
            Event::IsolatedEnd { task } => self.isolated = self.release(task),
            _ => {}
        }
        for &joined in step.joined {
            let clock = self.clocks[joined.index()].clone();
            self.acquire(step.event.task(), &clock);
        }
        if step.phase == Phase::Quiesced {
            // Only the main task's clock is needed from here on: all the others are below it.
            self.strands.forget();
            self.clocks[1..].fill(Clock::default());
            self.sets.fill(Clock::default());
            self.isolated = Clock::default();
        }
        Ok(())
    }

    fn now(&mut self, strand: StrandId, task: TaskId) {
        self.now = task;
        let number = self.clocks[task.index()][task.index()];
        self.strands.enter(strand, Epoch { task, number });
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        let a = self.strands[a];
        self.clocks[self.now.index()].get(a.task.index()).is_some_and(|&known| a.number <= known)
    }

    fn memory(&self) -> usize {
        let clocks = self.clocks.iter().chain(&self.sets);
        clocks.map(|clock| clock.capacity() * size_of::<u32>()).sum::<usize>() + self.strands.memory()
    }
}
