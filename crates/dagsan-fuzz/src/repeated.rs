//! A stream in which tasks do the same again (`dagsan_core::Stream::leave_out_repeats`): random programs hardly do.
//!
//! ```text
//!   what comes         lock A ─ x ─ unlock A ─ y ─ lock A ─ …
//!   what is passed on  lock A ─ x ─ unlock A ─ lock A ─ x ─ unlock A ─ lock A ─ x ─ unlock A ─ y ─ lock A ─ …
//! ```
//!
//! So do tasks whose turn it is again, after others have run. Atomic accesses also order here: a write releases, and a read acquires what others have released.
//!
//! All accesses are said to be in one place of the code, so that those of different statements may be alike, too.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::{
    AccessKind, Bytes, Consumer, Detector, Dropped, Error, Event, LockId, Run, SiteId, Step, Strand, Stream,
    SyncId, TaskId,
};

/// So many steps are repeated at most: more than the core remembers.
const MOST: usize = 6;

/// What a strand has done, and the event that ended it.
type Made = (Vec<Run>, Event);

/// Passes on what it gets, and some steps again.
pub(crate) struct Repeating {
    stream: Stream<Detector>,
    task: TaskId,
    /// Its last steps, from where it has last done something else.
    steps: Vec<Made>,
    /// Those of other tasks.
    others: BTreeMap<TaskId, Vec<Made>>,
    /// How often each lock is held.
    held: BTreeMap<LockId, usize>,
    /// What its running strand has done, if it has come whole.
    running: Option<Vec<Run>>,
    /// By which objects something was released.
    released: BTreeSet<SyncId>,
    /// Of a simple generator of numbers.
    state: usize,
}

impl Repeating {
    pub(crate) fn new(stream: Stream<Detector>, seed: usize) -> Repeating {
        Repeating {
            stream,
            task: TaskId::MAIN,
            steps: Vec::new(),
            others: BTreeMap::new(),
            held: BTreeMap::new(),
            running: None,
            released: BTreeSet::new(),
            state: seed,
        }
    }

    pub(crate) fn into_stream(self) -> Stream<Detector> {
        self.stream
    }

    fn random(&mut self, below: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    /// The event that follows from an atomic access.
    fn order(&mut self, task: TaskId, run: &Run) -> Option<Event> {
        let sync = SyncId((run.at.mask.trailing_zeros() / 4) % 4);
        match run.kind {
            AccessKind::Write => {
                let keep = !self.released.insert(sync) && self.random(2) == 0;
                Some(Event::Release { task, sync, keep })
            }
            AccessKind::Read => self.released.contains(&sync).then_some(Event::Acquire { task, sync }),
        }
    }

    /// It is the turn of `task`.
    fn turn(&mut self, task: TaskId) -> Result<(), Error> {
        if task == self.task {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.task, task);
        self.others.insert(before, std::mem::take(&mut self.steps));
        self.steps = self.others.remove(&task).unwrap_or_default();
        self.running = None;
        self.repeat()
    }

    /// Passes an event on.
    fn pass(&mut self, event: Event) -> Result<(), Error> {
        self.turn(event.task())?;
        self.stream.event(event)?;
        match event {
            Event::Lock { lock, .. } => *self.held.entry(lock).or_default() += 1,
            Event::Unlock { lock, .. } => *self.held.entry(lock).or_default() -= 1,
            _ => {}
        }
        let running = self.running.replace(Vec::new());
        let is_step = matches!(event, Event::Lock { .. } | Event::Unlock { .. } | Event::Release { .. });
        match running {
            Some(runs) if is_step => {
                self.steps.push((runs, event));
                self.repeat()
            }
            _ => {
                self.steps.clear();
                Ok(())
            }
        }
    }

    /// Makes some of the last steps again, and perhaps again.
    fn repeat(&mut self) -> Result<(), Error> {
        let count = 1 + self.random(MOST);
        let Some(first) = self.steps.len().checked_sub(count) else { return Ok(()) };
        let is_free = |lock: &LockId| self.held.get(lock).is_none_or(|held| *held == 0);
        if !takes(&self.steps[first..]).is_some_and(|locks| locks.iter().all(is_free)) {
            return Ok(());
        }
        for _ in 0..self.random(5) {
            for (runs, event) in &self.steps[first..] {
                self.stream.runs(self.task, runs)?;
                self.stream.event(*event)?;
            }
            self.running = Some(Vec::new());
        }
        Ok(())
    }
}

/// The locks that the steps take, and give back. None if they give back others, or not all.
fn takes(steps: &[Made]) -> Option<BTreeSet<LockId>> {
    let (mut taken, mut all) = (BTreeSet::new(), BTreeSet::new());
    let fits = steps.iter().all(|(_, event)| match *event {
        Event::Lock { lock, .. } => all.insert(lock) | taken.insert(lock),
        Event::Unlock { lock, .. } => taken.remove(&lock),
        _ => true,
    });
    (fits && taken.is_empty()).then_some(all)
}

impl Consumer for Repeating {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        let site = SiteId::new(1);
        let runs: Vec<Run> = runs.iter().map(|run| Run { site: site.unwrap_or(run.site), ..*run }).collect();
        self.turn(strand.task)?;
        self.running = self.running.take().filter(Vec::is_empty).map(|_| runs.clone());
        if self.running.is_none() {
            self.steps.clear();
        }
        self.stream.runs(strand.task, &runs)?;
        let order = runs.iter().find(|run| run.atomic).and_then(|run| self.order(strand.task, run));
        order.map_or(Ok(()), |event| self.pass(event))
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.pass(step.event)
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.steps.clear();
        self.running = None;
        self.stream.erase(bytes)
    }

    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.stream.dropped(what)
    }
}
