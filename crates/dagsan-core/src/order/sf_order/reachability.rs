//! The reachability structure of SF-Order, while the program runs: tasks on several threads fork, create, get and sync, and ask.
//!
//! What threads share is the pseudo-SP-dag (`sp`) and a counter of futures. All else is a task's own, and goes from thread to thread with
//! the task ([`Here`]), or never changes once it is there: bitmaps, the end of a task ([`Ended`]), strands ([`At`]).
//!
//! ```text
//!   fork, create   two new positions: one worker at a time, a mutex, O(1) on average
//!   get, sync      bitmaps: nothing is shared
//!   precedes       bitmaps, or two comparisons of positions, under a sequence lock: readers write nothing, and repeat if positions were
//!                  renumbered meanwhile
//! ```
//!
//! **What the callers owe.** Whoever uses a value that another thread has made (a child's `Here`, an `Ended`, an `At` from a history) got it by
//! a way that orders memory: a queue, a lock, a join. Any runtime does. Then it sees the position in the lists, which was written before
//! the value was made, with relaxed stores; the sequence lock takes care of renumberings since. An asker is a strand that runs, or has just ended:
//! what is asked about has come before it, or runs beside it, so that "precedes" never changes later.
//!
//! **What differs from the paper.** WSP-Order has insertions by several workers at a time, and workers that help with a renumbering. Here one
//! inserts at a time. Nothing is ever forgotten: the serial engine clears everything at quiescent points.

use std::sync::atomic::{AtomicU32, Ordering};

use super::bitmap::{Bitmap, FutureNumber};
use crate::error::Error;
use crate::event::Construct;
use crate::order::sp::{Position, SeriesParallel};

/// What the tasks of a program share. See the module's documentation.
#[derive(Debug)]
pub struct Reachability {
    sp: SeriesParallel,
    /// How many futures there are, with what the main task began as, which is number 0.
    futures: AtomicU32,
}

/// Where a task is. Belongs to whoever runs the task.
#[derive(Debug, Clone)]
pub struct Here {
    at: Position,
    future: FutureNumber,
    /// cp: the ancestors of the future.
    ancestors: Bitmap,
    /// gp: the futures whose ends it knows.
    ends: Bitmap,
    /// For each procedure instance, where the sync of its open block leads.
    blocks: Vec<Option<Position>>,
}

/// A strand, as a history remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    position: Position,
    future: FutureNumber,
}

/// The permission to get a future, which is used up by it. It goes to the get as the program's handle does.
#[derive(Debug)]
pub struct Handle {
    future: FutureNumber,
    /// Where its creator went on.
    created: At,
}

/// A task that has ended: what its joins know from there on.
#[derive(Debug, Clone)]
pub struct Ended {
    ends: Bitmap,
}

impl Here {
    fn start(at: Position, future: FutureNumber, ancestors: Bitmap, ends: Bitmap) -> Here {
        Here { at, future, ancestors, ends, blocks: vec![None] }
    }

    /// The present strand.
    #[inline]
    pub fn strand(&self) -> At {
        At { position: self.at, future: self.future }
    }

    /// A procedure is called, in which the task may spawn.
    pub fn frame_begin(&mut self) {
        self.blocks.push(None);
    }

    /// The procedure returns; it has synced.
    pub fn frame_end(&mut self) {
        self.join_block();
        self.blocks.pop();
    }

    /// A sync: `children` are those that it joins.
    pub fn sync<'a>(&mut self, children: impl IntoIterator<Item = &'a Ended>) {
        self.join_block();
        for child in children {
            self.ends = self.ends.union(&child.ends);
        }
    }

    /// In the pseudo-SP-dag, where creates are spawns too.
    fn join_block(&mut self) {
        if let Some(end) = self.blocks.last_mut().and_then(Option::take) {
            self.at = end;
        }
    }

    /// The task has come to its end.
    pub fn end(&self) -> Ended {
        Ended { ends: self.ends.clone() }
    }

    /// Bytes of memory held. Shared bitmaps are counted with each of their owners: an upper bound.
    pub(super) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<Option<Position>>()
            + [&self.ends, &self.ancestors].map(|bitmap| size_of_val(bitmap.words())).iter().sum::<usize>()
    }
}

impl Default for Reachability {
    fn default() -> Reachability {
        Reachability::new()
    }
}

impl Reachability {
    /// At the start of a program.
    pub fn new() -> Reachability {
        Reachability { sp: SeriesParallel::new(), futures: AtomicU32::new(1) }
    }

    /// Where the main task starts.
    pub fn main(&self) -> Here {
        Here::start(self.sp.start(), 0, Bitmap::default(), Bitmap::default())
    }

    /// The task spawns another: where that one starts.
    ///
    /// # Errors
    /// If there are more positions than can be numbered.
    pub fn fork(&self, parent: &mut Here) -> Result<Here, Error> {
        let child = self.branch(parent)?;
        Ok(Here::start(child, parent.future, parent.ancestors.clone(), parent.ends.clone()))
    }

    /// The task creates a future: where that one starts, and the permission to get it.
    ///
    /// # Errors
    /// As [`Reachability::fork`].
    pub fn create(&self, parent: &mut Here) -> Result<(Here, Handle), Error> {
        let child = self.branch(parent)?;
        // Relaxed: nobody but this task knows the number yet.
        let future = self.futures.fetch_add(1, Ordering::Relaxed);
        let ancestors = parent.ancestors.with(parent.future);
        let handle = Handle { future, created: parent.strand() };
        Ok((Here::start(child, future, ancestors, parent.ends.clone()), handle))
    }

    fn branch(&self, parent: &mut Here) -> Result<Position, Error> {
        let block = parent.blocks.last_mut().expect("a task's body is a procedure instance");
        if block.is_none() {
            *block = Some(self.sp.open(parent.at)?);
        }
        let (child, rest) = self.sp.fork(parent.at)?;
        parent.at = rest;
        Ok(child)
    }

    /// The task gets a future that has ended.
    ///
    /// # Errors
    /// If the handle came through the future itself: the continuation of the create must precede the get.
    pub fn get(&self, by: &mut Here, handle: Handle, ended: &Ended) -> Result<(), Error> {
        if !self.precedes(handle.created, by) {
            return Err(Error::Unsupported { engine: "sf-order", construct: Construct::GeneralFuture });
        }
        by.ends = by.ends.union(&ended.ends).with(handle.future);
        Ok(())
    }

    /// Does the strand precede the present of a task, or is it that? (Algorithm 1.)
    #[inline]
    pub fn precedes(&self, strand: At, now: &Here) -> bool {
        let At { position, future } = strand;
        if future == now.future || now.ancestors.contains(future) {
            position == now.at || self.sp.precedes(position, now.at)
        } else {
            now.ends.contains(future)
        }
    }

    /// All that was precedes the present of the main task, whose new place is returned.
    pub(super) fn forget(&mut self, main: &Here) -> Here {
        self.sp.clear();
        *self.futures.get_mut() = 1;
        let mut start = self.main();
        // Only creates that were got are in the open blocks: they need no place any more.
        start.blocks.resize(main.blocks.len(), None);
        start
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.sp.memory()
    }
}
