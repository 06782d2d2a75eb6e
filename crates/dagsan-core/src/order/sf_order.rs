//! `sf-order`: Xu et al., "Efficient parallel determinacy race detection for structured futures"
//! (paper 001).
//!
//! Handles spawn/sync and structured futures, in any order of delivery; its structures can be shared by
//! threads (positions are never moved, bitmaps are immutable). For a strand `u` of future F and the
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

use std::sync::Arc;

use super::sp::{Position, SeriesParallel};
use super::{Order, Strands, Tasks};
use crate::error::Error;
use crate::event::{Construct, Event, TaskKind};
use crate::ids::{StrandId, TaskId};
use crate::step::{Phase, Step};
use crate::stream::Strand;

/// The number of a future since the last quiescent point; 0 is what the main task began as.
type FutureNumber = u32;

/// An immutable set of futures.
#[derive(Debug, Clone, Default)]
struct Bitmap(Option<Arc<[u64]>>);

impl Bitmap {
    fn words(&self) -> &[u64] {
        self.0.as_deref().unwrap_or_default()
    }

    #[inline]
    fn contains(&self, future: FutureNumber) -> bool {
        let word = self.words().get(future as usize / 64);
        word.is_some_and(|word| word >> (future % 64) & 1 == 1)
    }

    fn with(&self, future: FutureNumber) -> Bitmap {
        let at = future as usize / 64;
        let mut words = self.words().to_vec();
        words.resize(words.len().max(at + 1), 0);
        words[at] |= 1 << (future % 64);
        Bitmap(Some(words.into()))
    }

    /// The union: one of the two if it has the other in it.
    fn union(&self, other: &Bitmap) -> Bitmap {
        if other.is_subset(self) {
            self.clone()
        } else if self.is_subset(other) {
            other.clone()
        } else {
            let (long, short) =
                if self.words().len() < other.words().len() { (other, self) } else { (self, other) };
            let mut words = long.words().to_vec();
            for (word, more) in words.iter_mut().zip(short.words()) {
                *word |= more;
            }
            Bitmap(Some(words.into()))
        }
    }

    fn is_subset(&self, other: &Bitmap) -> bool {
        match (&self.0, &other.0) {
            (None, _) => true,
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => true,
            // The last word of a bitmap is never 0.
            (Some(mine), _) => {
                mine.len() <= other.words().len()
                    && mine.iter().zip(other.words()).all(|(mine, theirs)| mine & !theirs == 0)
            }
        }
    }
}

#[derive(Debug)]
struct Future {
    /// cp: its ancestors.
    ancestors: Bitmap,
    /// Where its creator went on, and in which future; `None` once it was got.
    handle: Option<(Position, FutureNumber)>,
}

#[derive(Debug)]
struct Task {
    at: Position,
    future: FutureNumber,
    /// gp: the futures whose ends it knows.
    ends: Bitmap,
    /// For each procedure instance, where the sync of its open block leads.
    blocks: Vec<Option<Position>>,
}

impl Task {
    fn start(at: Position, future: FutureNumber, ends: Bitmap) -> Task {
        Task { at, future, ends, blocks: vec![None] }
    }

    /// A sync in the pseudo-SP-dag.
    fn sync(&mut self) {
        if let Some(end) = self.blocks.last_mut().and_then(Option::take) {
            self.at = end;
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct SfOrder {
    sp: SeriesParallel,
    tasks: Tasks<Task>,
    futures: Vec<Future>,
    strands: Strands<(Position, FutureNumber)>,
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
        let sp = SeriesParallel::new();
        SfOrder {
            tasks: Tasks::new(Task::start(sp.start(), 0, Bitmap::default())),
            futures: vec![Future { ancestors: Bitmap::default(), handle: None }],
            strands: Strands::new(),
            now: TaskId::MAIN,
            sp,
        }
    }

    /// Does what happened at `at` in `future` precede the present of `now`? (Algorithm 1.)
    #[inline]
    fn reaches(&self, at: Position, future: FutureNumber, now: &Task) -> bool {
        if future == now.future || self.futures[now.future as usize].ancestors.contains(future) {
            at == now.at || self.sp.precedes(at, now.at)
        } else {
            now.ends.contains(future)
        }
    }

    fn spawn(&mut self, parent: TaskId, kind: TaskKind) -> Result<(), Error> {
        let task = &mut self.tasks[parent];
        let block = task.blocks.last_mut().expect("a task's body is a procedure instance");
        if block.is_none() {
            *block = Some(self.sp.open(task.at)?);
        }
        let (child, rest) = self.sp.fork(task.at)?;
        task.at = rest;
        let (mut future, ends) = (task.future, task.ends.clone());
        if kind == TaskKind::Future {
            let ancestors = self.futures[future as usize].ancestors.with(future);
            self.futures.push(Future { ancestors, handle: Some((rest, future)) });
            future = self.futures.len() as FutureNumber - 1;
        }
        self.tasks.push(Task::start(child, future, ends));
        Ok(())
    }

    fn get(&mut self, by: TaskId, future: TaskId) -> Result<(), Error> {
        // A future from before a quiescent point precedes everything since: its get adds nothing.
        let Some(task) = self.tasks.get(future) else { return Ok(()) };
        let number = task.future;
        let ends = self.tasks[by].ends.union(&task.ends).with(number);
        match self.futures[number as usize].handle.take() {
            Some((rest, creator)) if self.reaches(rest, creator, &self.tasks[by]) => {
                self.tasks[by].ends = ends;
                Ok(())
            }
            _ => Err(Error::Unsupported { engine: "sf-order", construct: Construct::GeneralFuture }),
        }
    }

    fn forget(&mut self) {
        // Only creates that were got are in the open blocks: they need no place any more.
        let procedures = self.tasks[TaskId::MAIN].blocks.len();
        self.sp.clear();
        let mut main = Task::start(self.sp.start(), 0, Bitmap::default());
        main.blocks.resize(procedures, None);
        self.tasks.forget(main);
        self.futures.truncate(1);
        self.strands.forget();
    }
}

impl Order for SfOrder {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        match step.event {
            Event::Spawn { parent, kind, .. } => self.spawn(parent, kind)?,
            Event::FrameBegin { task } => self.tasks[task].blocks.push(None),
            Event::FrameEnd { task } => {
                self.tasks[task].sync();
                self.tasks[task].blocks.pop();
            }
            Event::Sync { task } => {
                self.tasks[task].sync();
                for &joined in step.joined {
                    if let Some(child) = self.tasks.get(joined) {
                        self.tasks[task].ends = self.tasks[task].ends.union(&child.ends);
                    }
                }
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
        let Task { at, future, .. } = self.tasks[strand.task];
        self.strands.enter(strand.id, (at, future));
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        let (at, future) = self.strands[a];
        self.reaches(at, future, &self.tasks[self.now])
    }

    fn memory(&self) -> usize {
        // Shared bitmaps are counted with each of their owners: an upper bound.
        let bitmaps = self.tasks.iter().map(|task| &task.ends);
        let bitmaps = bitmaps.chain(self.futures.iter().map(|future| &future.ancestors));
        self.sp.memory()
            + self.tasks.memory()
            + self
                .tasks
                .iter()
                .map(|task| task.blocks.capacity() * size_of::<Option<Position>>())
                .sum::<usize>()
            + self.strands.memory()
            + self.futures.capacity() * size_of::<Future>()
            + bitmaps.map(|bitmap| size_of_val(bitmap.words())).sum::<usize>()
    }
}
