//! `esp-bags`: Raman et al., "Efficient data race detection for async-finish parallelism", the engine of
//! TaskChecker (paper 004, section 3).
//!
//! Handles async/finish, spawn/sync and isolated sections (read as mutual exclusion, section 5) in the
//! serial depth-first order. A task is in an S-bag if it precedes the present, in a P-bag if it is
//! parallel to it; a query is one find. See [`super::bags`].
//!
//! What differs: the paper translates spawn/sync to async/finish; here a sync block has a P-bag of its
//! own, like a finish, so async and spawn may be mixed. It stays right although such graphs are not
//! series-parallel: a task is joined no later than what it leaves behind (its asyncs wait in the bag
//! of a finish around the task itself), so either all strands of an ended task precede the present, or
//! its last one does not.

use super::bags::Bags;
use super::{Order, Strands};
use crate::error::Error;
use crate::event::Event;
use crate::ids::{StrandId, TaskId};
use crate::structure::{Phase, Step};

/// See the module's documentation.
#[derive(Debug)]
pub struct EspBags {
    bags: Bags,
    strands: Strands<TaskId>,
}

impl Default for EspBags {
    fn default() -> EspBags {
        EspBags::new()
    }
}

impl EspBags {
    /// At the start of a program.
    pub fn new() -> EspBags {
        EspBags { bags: Bags::new(), strands: Strands::new() }
    }
}

impl Order for EspBags {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        if let Some(scope) = step.opened {
            self.bags.open(scope);
        }
        match step.event {
            Event::Spawn { .. } => self.bags.start()?,
            Event::TaskEnd { task } => self.bags.end(task, step.scope),
            _ => {}
        }
        for &scope in step.drained {
            self.bags.join_scope(step.event.task(), scope);
        }
        if step.phase == Phase::Quiesced {
            self.strands.forget();
        }
        Ok(())
    }

    fn now(&mut self, strand: StrandId, task: TaskId) {
        self.strands.enter(strand, task);
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        self.bags.serial(self.strands[a])
    }

    fn memory(&self) -> usize {
        self.bags.memory() + self.strands.memory()
    }
}
