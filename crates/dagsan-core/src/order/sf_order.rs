//! `sf-order`: Xu et al., "Efficient parallel determinacy race detection for structured futures"
//! (paper 001).
//!
//! Handles spawn/sync and structured futures, in any order of delivery. This is the engine for streams; while the program runs on several
//! threads, its [`Reachability`] is asked by itself, and this file is a stream's way to it. For a strand `u` of future F and the
//! present in future G (Algorithm 1):
//!
//! ```text
//!   F = G, or F an ancestor of G (cp):   u precedes in the pseudo-SP-dag
//!   otherwise:                           the end of F is known (gp)
//! ```
//!
//! The *pseudo-SP-dag* is the program with every create read as a spawn, no gets, and a sync at the end
//! of every procedure: see `sp`. `cp(G)` is a bitmap of G's ancestors, one per future; `gp` is
//! a bitmap of the futures whose ends precede a strand, shared until a get or a sync changes it.
//!
//! A future that is got twice, or whose handle came through the future itself, is an error: the creator's
//! continuation must precede the get, which is asked of the engine itself.
//!
//! What differs: the paper's access history is a hash table per address with a lock; here the history
//! is the common one. Bitmaps are dropped at quiescent points, and numbered anew from there.

mod bitmap;
mod history;
mod reachability;

pub use history::SharedHistory;
pub use reachability::{At, Ended, Handle, Here, Reachability};

use super::{Order, Strands, Tasks};
use crate::error::Error;
use crate::event::{Construct, Event, TaskKind};
use crate::ids::{StrandId, TaskId};
use crate::step::{Phase, Step};
use crate::stream::Strand;

#[derive(Debug)]
struct Task {
    here: Here,
    /// Of a future that was not got.
    handle: Option<Handle>,
}

impl Task {
    fn of(here: Here, handle: Option<Handle>) -> Task {
        Task { here, handle }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct SfOrder {
    reachability: Reachability,
    tasks: Tasks<Task>,
    strands: Strands<At>,
    now: TaskId,
}

impl Default for SfOrder {
    fn default() -> SfOrder {
        SfOrder::new()
    }
}

impl SfOrder {
    /// At the start of a program.
    pub fn new() -> SfOrder {
        let reachability = Reachability::new();
        let tasks = Tasks::new(Task::of(reachability.main(), None));
        SfOrder { reachability, tasks, strands: Strands::new(), now: TaskId::MAIN }
    }

    fn spawn(&mut self, parent: TaskId, kind: TaskKind) -> Result<(), Error> {
        let parent = &mut self.tasks[parent].here;
        let child = if kind == TaskKind::Future {
            let (child, handle) = self.reachability.create(parent)?;
            Task::of(child, Some(handle))
        } else {
            Task::of(self.reachability.fork(parent)?, None)
        };
        self.tasks.push(child);
        Ok(())
    }

    fn get(&mut self, by: TaskId, future: TaskId) -> Result<(), Error> {
        // A future from before a quiescent point precedes everything since: its get adds nothing.
        let Some(ended) = self.tasks.get(future).map(|task| task.here.end()) else { return Ok(()) };
        let Some(handle) = self.tasks[future].handle.take() else {
            return Err(Error::Unsupported { engine: "sf-order", construct: Construct::GeneralFuture });
        };
        self.reachability.get(&mut self.tasks[by].here, handle, &ended)
    }

    fn forget(&mut self) {
        let main = self.reachability.forget(&self.tasks[TaskId::MAIN].here);
        self.tasks.forget(Task::of(main, None));
        self.strands.forget();
    }
}

impl Order for SfOrder {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        match step.event {
            Event::Spawn { parent, kind, .. } => self.spawn(parent, kind)?,
            Event::FrameBegin { task } => self.tasks[task].here.frame_begin(),
            Event::FrameEnd { task } => self.tasks[task].here.frame_end(),
            Event::Sync { task } => {
                let ended = step.joined.iter().filter_map(|&child| self.tasks.get(child));
                let ended: Vec<Ended> = ended.map(|child| child.here.end()).collect();
                self.tasks[task].here.sync(&ended);
            }
            Event::FutureGet { task, future } => self.get(task, future)?,
            _ => {}
        }
        if step.phase == Phase::Quiesced {
            self.forget();
        }
        Ok(())
    }

    fn now(&mut self, strand: &Strand) {
        self.now = strand.task;
        self.strands.enter(strand.id, self.tasks[strand.task].here.strand());
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        self.reachability.precedes(self.strands[a], &self.tasks[self.now].here)
    }

    fn memory(&self) -> usize {
        self.reachability.memory()
            + self.tasks.memory()
            + self.tasks.iter().map(|task| task.here.memory()).sum::<usize>()
            + self.strands.memory()
    }
}
