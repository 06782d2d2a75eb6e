//! `esp-bags`: Raman et al., "Efficient data race detection for async-finish parallelism", the engine of
//! TaskChecker (paper 004, section 3).
//!
//! Handles async/finish, spawn/sync and isolated sections (read as mutual exclusion, section 5) in the
//! serial depth-first order. A task is in an S-bag if it precedes the present, in a P-bag if it is
//! parallel to it; a query is one find. See `bags`.
//!
//! What differs: the paper translates spawn/sync to async/finish; here a sync block has a P-bag of its
//! own, like a finish, so async and spawn may be mixed. The bags stay right although such graphs are not
//! series-parallel: a task is joined no later than what it leaves behind (its asyncs wait in the bag
//! of a finish around the task itself), so either all strands of an ended task precede the present, or
//! its last one does not.
//!
//! But the paper's *one reader per location* (figure 4) does not stand the mixture. It keeps the first of
//! two parallel readers, because whatever is parallel to the second is parallel to the first: true if
//! what starts later is joined earlier. A sync joins the spawn before the async:
//!
//! ```text
//!   spawn { r x }
//!   async { r x }      // parallel: not remembered
//!   sync               // the first reader is joined
//!   w x                // races with the second
//! ```
//!
//! So the history remembers readers as for every engine, and is told which are in the same bag: of those
//! one is enough, for whatever comes they have one answer.

use super::Order;
use super::bags::Bags;
use crate::error::Error;
use crate::event::Event;
use crate::ids::StrandId;
use crate::step::{Phase, Step};
use crate::stream::Strand;

/// See the module's documentation.
#[derive(Debug)]
pub struct EspBags {
    bags: Bags,
}

impl Default for EspBags {
    fn default() -> EspBags {
        EspBags::new()
    }
}

impl EspBags {
    /// At the start of a program.
    pub fn new() -> EspBags {
        EspBags { bags: Bags::new() }
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
            self.bags.forget();
        }
        Ok(())
    }

    fn now(&mut self, strand: &Strand) {
        self.bags.now(strand);
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        self.bags.precedes(a)
    }

    fn bag(&mut self, a: StrandId) -> Option<u32> {
        Some(self.bags.bag(a))
    }

    fn memory(&self) -> usize {
        self.bags.memory()
    }
}
