//! A recorded stream: events and accesses, to be judged again with any engine.
//!
//! Recording costs a vector entry per event and per run of bytes. A replay gives every consumer exactly
//! what it would have seen live: the same strands with the same numbers, in the same order.

use crate::access::Run;
use crate::bytes::Bytes;
use crate::error::Error;
use crate::event::Event;
use crate::ids::TaskId;
use crate::step::Step;
use crate::stream::{Consumer, Strand, Stream};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Event(Event),
    /// Accesses of a task: `runs[first..][..count]`.
    Accesses {
        task: TaskId,
        first: usize,
        count: usize,
    },
    Erase(Bytes),
}

/// Records a stream, and replays it. As a [`Consumer`] it takes all and refuses nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    items: Vec<Item>,
    runs: Vec<Run>,
}

impl Recording {
    /// An empty recording.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// Sends what was recorded to `stream`, which must be at its start.
    pub fn replay<C: Consumer>(&self, stream: &mut Stream<C>) -> Result<(), Error> {
        for item in &self.items {
            match *item {
                Item::Event(event) => stream.event(event)?,
                Item::Erase(bytes) => stream.erase(bytes)?,
                Item::Accesses { task, first, count } => {
                    stream.runs(task, &self.runs[first..][..count])?;
                }
            }
        }
        Ok(())
    }
}

impl Consumer for Recording {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        let first = self.runs.len();
        self.runs.extend_from_slice(runs);
        self.items.push(Item::Accesses { task: strand.task, first, count: runs.len() });
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.items.push(Item::Event(step.event));
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.items.push(Item::Erase(bytes));
        Ok(())
    }
}
