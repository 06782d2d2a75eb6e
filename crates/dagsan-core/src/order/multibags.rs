//! `multibags`: Utterback et al., "Efficient race detection with futures": the sequential detector for
//! structured futures that paper 001 compares itself with.
//!
//! ESP-bags with one more rule: a future that ends waits in a P-bag of its own, and whoever gets it
//! takes that bag into its S-bag. This is right for *structured* futures only: one get, reached from the
//! creation by a path that does not pass through the future. Both are checked at the get; a future
//! used otherwise is an error that names the engines for general futures.
//!
//! The check: the rest of the creating task after the creation must precede the get. In the depth-first
//! order that is so if the creator is in an S-bag. If it has ended and is in a P-bag, the handle came
//! another way.

use super::bags::Bags;
use super::{Order, Tasks};
use crate::error::Error;
use crate::event::{Construct, Event, TaskKind};
use crate::ids::{StrandId, TaskId};
use crate::step::{Phase, Step};
use crate::stream::Strand;

/// What a get needs to know of a task.
#[derive(Debug, Clone, Copy)]
enum Handle {
    /// Not a future.
    None,
    /// A future that nobody has got, and its creator.
    Fresh(TaskId),
    /// A future that was got.
    Used,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct MultiBags {
    bags: Bags,
    handles: Tasks<Handle>,
}

impl Default for MultiBags {
    fn default() -> MultiBags {
        MultiBags::new()
    }
}

impl MultiBags {
    /// At the start of a program.
    pub fn new() -> MultiBags {
        MultiBags { bags: Bags::new(), handles: Tasks::new(Handle::None) }
    }

    fn get(&mut self, by: TaskId, future: TaskId) -> Result<(), Error> {
        match self.handles.get(future) {
            // It precedes everything since the last quiescent point: the get adds nothing.
            None => Ok(()),
            Some(&Handle::Fresh(creator)) if self.bags.serial(creator) => {
                self.handles[future] = Handle::Used;
                self.bags.join(by, future);
                Ok(())
            }
            Some(_) => Err(Error::Unsupported { engine: "multibags", construct: Construct::GeneralFuture }),
        }
    }
}

impl Order for MultiBags {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        if let Some(scope) = step.opened {
            self.bags.open(scope);
        }
        match step.event {
            Event::Spawn { parent, kind, .. } => {
                self.bags.start()?;
                let future = kind == TaskKind::Future;
                self.handles.push(if future { Handle::Fresh(parent) } else { Handle::None });
            }
            Event::TaskEnd { task } => match self.handles[task] {
                Handle::None => self.bags.end(task, step.scope),
                Handle::Fresh(_) | Handle::Used => self.bags.end_apart(task),
            },
            Event::FutureGet { task, future } => self.get(task, future)?,
            _ => {}
        }
        if !step.drained.is_empty() {
            let by = step.event.task();
            for &scope in step.drained {
                self.bags.join_scope(by, scope);
            }
            // The scope's futures are not in its bag.
            for &task in step.joined {
                self.bags.join(by, task);
            }
        }
        if step.phase == Phase::Quiesced {
            self.bags.forget();
            self.handles.forget(Handle::None);
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
        self.bags.memory() + self.handles.memory()
    }
}
