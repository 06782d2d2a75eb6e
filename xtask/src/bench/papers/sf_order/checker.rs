//! Who is told of the tasks of a benchmark, and of their accesses.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dagsan_core::order::sf_order::{self, Reachability, SharedHistory};
use dagsan_core::order::{Engine, Options};
use dagsan_core::{AccessKind, AccessSet, Bytes, Detector, Event, SiteId, Stream, TaskId, TaskKind};

/// Told of a program with structured futures, by whoever runs its tasks.
pub trait Checker: Sync {
    /// What a task has with it.
    type Here: Send;
    /// The right to get a future.
    type Handle;
    /// What a future leaves.
    type End: Send + Sync;

    fn main(&self) -> Self::Here;
    fn create(&self, parent: &mut Self::Here) -> anyhow::Result<(Self::Here, Self::Handle)>;
    fn end(&self, task: Self::Here) -> anyhow::Result<Self::End>;
    fn get(&self, by: &mut Self::Here, future: Self::Handle, end: &Self::End) -> anyhow::Result<()>;
    fn touch<T>(&self, task: &mut Self::Here, kind: AccessKind, memory: &[T]) -> anyhow::Result<()>;
    /// How many bytes race.
    fn races(&self) -> usize;
}

/// Nobody.
pub struct Base;

impl Checker for Base {
    type Here = ();
    type Handle = ();
    type End = ();

    fn main(&self) {}

    fn create(&self, (): &mut ()) -> anyhow::Result<((), ())> {
        Ok(((), ()))
    }

    fn end(&self, (): ()) -> anyhow::Result<()> {
        Ok(())
    }

    fn get(&self, (): &mut (), (): (), (): &()) -> anyhow::Result<()> {
        Ok(())
    }

    fn touch<T>(&self, (): &mut (), _: AccessKind, _: &[T]) -> anyhow::Result<()> {
        Ok(())
    }

    fn races(&self) -> usize {
        0
    }
}

/// Nobody asks where an access was made.
const SITE: SiteId = SiteId::new(0).expect("the first");

fn record<T>(set: &mut AccessSet, kind: AccessKind, memory: &[T]) -> anyhow::Result<()> {
    let bytes = Bytes::new(memory.as_ptr().addr() as u64, size_of_val(memory) as u64)?;
    set.record(bytes, kind, SITE);
    Ok(())
}

/// SF-Order, while the program runs.
pub struct SfOrder {
    order: Reachability,
    /// For *full*.
    history: Option<SharedHistory>,
}

impl SfOrder {
    pub fn new(full: bool) -> SfOrder {
        SfOrder { order: Reachability::new(), history: full.then(SharedHistory::new) }
    }

    /// The present strand ends.
    fn deliver(&self, (here, set): &mut (sf_order::Here, AccessSet)) {
        if let Some(history) = &self.history
            && !set.is_empty()
        {
            history.deliver(&self.order, here, set.runs());
            set.clear();
        }
    }
}

impl Checker for SfOrder {
    type Here = (sf_order::Here, AccessSet);
    type Handle = sf_order::Handle;
    type End = sf_order::Ended;

    fn main(&self) -> Self::Here {
        (self.order.main(), AccessSet::new())
    }

    fn create(&self, parent: &mut Self::Here) -> anyhow::Result<(Self::Here, Self::Handle)> {
        self.deliver(parent);
        let (child, handle) = self.order.create(&mut parent.0)?;
        Ok(((child, AccessSet::new()), handle))
    }

    fn end(&self, mut task: Self::Here) -> anyhow::Result<Self::End> {
        self.deliver(&mut task);
        Ok(task.0.end())
    }

    fn get(&self, by: &mut Self::Here, future: Self::Handle, end: &Self::End) -> anyhow::Result<()> {
        self.deliver(by);
        Ok(self.order.get(&mut by.0, future, end)?)
    }

    fn touch<T>(&self, task: &mut Self::Here, kind: AccessKind, memory: &[T]) -> anyhow::Result<()> {
        if self.history.is_some() { record(&mut task.1, kind, memory) } else { Ok(()) }
    }

    fn races(&self) -> usize {
        self.history.as_ref().map_or(0, |history| history.racy_bytes().len())
    }
}

/// An engine behind a stream. The program runs on one worker.
pub struct Streamed {
    stream: Mutex<(Stream<Detector>, u32)>,
    full: bool,
}

impl Streamed {
    pub fn new(engine: &'static Engine, full: bool) -> Streamed {
        let stream = Stream::new(Detector::new(engine, Options::default()));
        Streamed { stream: Mutex::new((stream, 0)), full }
    }

    fn stream(&self) -> MutexGuard<'_, (Stream<Detector>, u32)> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, (task, set): &mut (TaskId, AccessSet), event: Event) -> anyhow::Result<()> {
        let stream = &mut self.stream().0;
        stream.accesses(*task, set)?;
        set.clear();
        Ok(stream.event(event)?)
    }
}

impl Checker for Streamed {
    type Here = (TaskId, AccessSet);
    type Handle = TaskId;
    type End = ();

    fn main(&self) -> Self::Here {
        (TaskId::MAIN, AccessSet::new())
    }

    fn create(&self, parent: &mut Self::Here) -> anyhow::Result<(Self::Here, TaskId)> {
        let child = {
            let last = &mut self.stream().1;
            *last += 1;
            TaskId(*last)
        };
        let event = Event::Spawn { parent: parent.0, child, kind: TaskKind::Future };
        self.deliver(parent, event)?;
        Ok(((child, AccessSet::new()), child))
    }

    fn end(&self, mut task: Self::Here) -> anyhow::Result<()> {
        let event = Event::TaskEnd { task: task.0 };
        // The main task's accesses are delivered before its last get; nothing comes after it.
        if task.0 == TaskId::MAIN { Ok(()) } else { self.deliver(&mut task, event) }
    }

    fn get(&self, by: &mut Self::Here, future: TaskId, (): &()) -> anyhow::Result<()> {
        let event = Event::FutureGet { task: by.0, future };
        self.deliver(by, event)
    }

    fn touch<T>(&self, task: &mut Self::Here, kind: AccessKind, memory: &[T]) -> anyhow::Result<()> {
        if self.full { record(&mut task.1, kind, memory) } else { Ok(()) }
    }

    fn races(&self) -> usize {
        self.stream().0.consumer().races().len()
    }
}
