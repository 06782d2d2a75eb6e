//! The one way into the core: a stream of events and of the access sets of ended strands.
//!
//! A front end runs the program, collects the accesses of the running strand in an
//! [`AccessSet`], and when a task event happens hands over first the set, then the event. The stream
//! checks both, numbers the strands that touched memory, and passes all on to its consumer: a
//! detector, the graph builder, a recorder, or several of them at once.

use crate::access::{AccessKind, AccessSet};
use crate::bytes::Bytes;
use crate::error::Error;
use crate::event::Event;
use crate::ids::{SiteId, StrandId, TaskId};
use crate::step::Step;
use crate::structure::Structure;

/// A strand whose accesses are being delivered.
#[derive(Debug, Clone, Copy)]
pub struct Strand {
    /// Its number.
    pub id: StrandId,
    /// The task it belongs to.
    pub task: TaskId,
    /// Is it part of an isolated section?
    pub isolated: bool,
    /// Is the program quiescent, so that nothing can be parallel to the strand?
    pub quiescent: bool,
    /// Has everything so far come in the serial depth-first order?
    pub depth_first: bool,
}

/// What takes a stream.
///
/// Events and strands come in an order that respects the computation graph: if strand `a` precedes
/// strand `b`, then `a` is delivered before `b`.
pub trait Consumer {
    /// Accesses of a strand, just before the event that ends it. A strand may come in several
    /// pieces (memory freed while it runs is delivered at once), with the same number.
    fn accesses(&mut self, strand: &Strand, set: &AccessSet) -> Result<(), Error>;

    /// A task event.
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error>;

    /// The bytes become other memory: what was done to them before has nothing to do with what
    /// comes.
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error>;
}

impl<C: Consumer + ?Sized> Consumer for &mut C {
    fn accesses(&mut self, strand: &Strand, set: &AccessSet) -> Result<(), Error> {
        (**self).accesses(strand, set)
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        (**self).event(step)
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        (**self).erase(bytes)
    }
}

/// Several consumers of one stream, in order.
impl<C: Consumer> Consumer for Vec<C> {
    fn accesses(&mut self, strand: &Strand, set: &AccessSet) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.accesses(strand, set))
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.event(step))
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.erase(bytes))
    }
}

/// Two consumers of one stream, the first one first.
impl<A: Consumer, B: Consumer> Consumer for (A, B) {
    fn accesses(&mut self, strand: &Strand, set: &AccessSet) -> Result<(), Error> {
        self.0.accesses(strand, set)?;
        self.1.accesses(strand, set)
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.0.event(step)?;
        self.1.event(step)
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.0.erase(bytes)?;
        self.1.erase(bytes)
    }
}

/// Checks and numbers what a front end sends, and passes it on. See the module's documentation.
#[derive(Debug)]
pub struct Stream<C> {
    structure: Structure,
    consumer: C,
    next_strand: u32,
    stopped: bool,
    scratch: AccessSet,
}

impl<C: Consumer> Stream<C> {
    /// A stream at the start of a program: only the main task exists.
    pub fn new(consumer: C) -> Stream<C> {
        Stream {
            structure: Structure::new(),
            consumer,
            next_strand: 0,
            stopped: false,
            scratch: AccessSet::new(),
        }
    }

    /// Delivers what the running strand of `task` has done since its last delivery. To be called
    /// before the event that ends the strand, and before another task runs. An empty set costs
    /// nothing and takes no strand number.
    pub fn accesses(&mut self, task: TaskId, set: &AccessSet) -> Result<(), Error> {
        if set.is_empty() {
            return Ok(());
        }
        self.guarded(|stream| stream.deliver(task, set))
    }

    /// A task event.
    pub fn event(&mut self, event: Event) -> Result<(), Error> {
        self.guarded(|stream| {
            let step = stream.structure.apply(event)?;
            stream.consumer.event(&step)
        })
    }

    /// `task` frees `bytes` from `site`: a write to the block, checked at once; then the block's past
    /// is forgotten, in `set` (the running strand's) too.
    pub fn free(
        &mut self,
        task: TaskId,
        bytes: Bytes,
        site: SiteId,
        set: &mut AccessSet,
    ) -> Result<(), Error> {
        set.record(bytes, AccessKind::Write, site);
        let mut taken = std::mem::take(&mut self.scratch);
        set.take(bytes, &mut taken);
        let result = self.accesses(task, &taken).and_then(|()| self.erase(bytes));
        self.scratch = taken;
        result
    }

    /// `bytes` become other memory without a free: a dead stack, for example. The caller has
    /// delivered the accesses that came before.
    pub fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.guarded(|stream| stream.consumer.erase(bytes))
    }

    /// Nothing is parallel to the present: accesses need not be collected.
    pub fn quiescent(&self) -> bool {
        self.structure.quiescent()
    }

    /// The tasks and scopes of the program so far.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// How many strands have touched memory.
    pub fn strand_count(&self) -> u32 {
        self.next_strand
    }

    /// The consumer.
    pub fn consumer(&self) -> &C {
        &self.consumer
    }

    /// The consumer, back.
    pub fn into_consumer(self) -> C {
        self.consumer
    }

    fn deliver(&mut self, task: TaskId, set: &AccessSet) -> Result<(), Error> {
        let depth_first = self.structure.turn(task)?;
        let id = match *self.structure.strand(task) {
            Some(id) => id,
            None => {
                let id = StrandId(self.next_strand);
                self.next_strand = id.0.checked_add(1).ok_or(Error::TooMany("strands"))?;
                *self.structure.strand(task) = Some(id);
                id
            }
        };
        let strand = Strand {
            id,
            task,
            isolated: self.structure.isolated() == Some(task),
            quiescent: self.structure.quiescent(),
            depth_first,
        };
        self.consumer.accesses(&strand, set)
    }

    /// After an error the structure and the consumer may disagree: nothing more is taken.
    fn guarded(&mut self, action: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        if self.stopped {
            return Err(Error::Stopped);
        }
        let result = action(self);
        self.stopped = result.is_err();
        result
    }
}
