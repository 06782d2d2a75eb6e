//! What a run of an exploration shows: its races, and for every step (a section, or an ewait) what it touched
//! and what came before it.
//!
//! In a reduced exploration the detector reads sections as mutual exclusion, and hears of their order only what
//! matters: edges from the sections that a section depends on. They are given to it as promises: a section
//! sets one when it ends, and gets those of the sections it depends on when it starts. What it depends on is
//! known when it has ended; until then its events and accesses are held back.
//!
//! ```text
//!   from the interpreter   { read t  write t }                                                    write x
//!   to the detector                            { get p1  get p4  read t  write t  new p5  set p5 }  write x
//! ```

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use dagsan_core::order::{EXPLORER, Engine, Options};
use dagsan_core::{
    Bytes, Consumer, Detector, Error, Event, PromiseId, Run, SiteId, Step, Strand, Stream, TaskId,
};

use crate::footprint::{Footprint, Line};
use crate::past::{Pasts, Steps};

/// A step of a schedule.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) task: TaskId,
    /// What a section touched; `None` for an ewait.
    pub(crate) footprint: Option<Footprint>,
    /// The steps before it, without those that only dependence puts before it.
    pub(crate) before: Steps,
    /// Those too, and the step itself.
    pub(crate) past: Steps,
    /// The sections that it depends on directly, latest first: others come before these.
    pub(crate) depends_on: Vec<usize>,
    /// The promise that it sets for those that depend on it.
    promise: Option<PromiseId>,
}

/// The steps of a run, for its scheduler to read while it goes on.
pub(crate) type Log = Rc<RefCell<Vec<Made>>>;

/// Who of the sections touched a line last: its writers, and its readers since. Earlier ones come before these.
#[derive(Debug, Default)]
struct Touched {
    lines: HashMap<u64, Vec<(usize, Line)>>,
}

impl Touched {
    /// Section `step` touches `footprint`. Returns those that it depends on directly, latest first.
    fn section(&mut self, step: usize, footprint: &Footprint) -> Vec<usize> {
        let mut depends_on = Vec::new();
        for line in footprint.lines() {
            let last = self.lines.entry(line.number).or_default();
            last.retain_mut(|(earlier, touched)| {
                if touched.conflicts(line) {
                    depends_on.push(*earlier);
                }
                // Whoever depends on this byte from now on depends on the new section.
                touched.read &= !line.write;
                touched.write &= !line.write;
                touched.read | touched.write != 0
            });
            last.push((step, *line));
        }
        depends_on.sort_unstable_by(|a, b| b.cmp(a));
        depends_on.dedup();
        depends_on
    }
}

/// Something a section did.
enum Held {
    Accesses(Vec<Run>),
    Event(Event),
}

/// See the module's documentation.
pub(crate) struct Observer<'a> {
    inner: Stream<Detector>,
    commutes: &'a dyn Fn(SiteId) -> bool,
    /// Edges between all sections, as the interpreter says, or between dependent ones?
    reduced: bool,
    pasts: Pasts,
    touched: Touched,
    log: Log,
    /// What the open section did.
    held: Option<Vec<Held>>,
    /// The detector's number of each promise.
    promises: Vec<PromiseId>,
    next_promise: u32,
}

impl<'a> Observer<'a> {
    /// With a detector of `engine`, or if `reduced` of the engine that is made for the edges from here, [`EXPLORER`].
    /// `commutes` says of an access whether sections do nothing to its target but what commutes.
    pub(crate) fn new(
        engine: &'static Engine,
        reduced: bool,
        commutes: &'a dyn Fn(SiteId) -> bool,
    ) -> Observer<'a> {
        let engine = if reduced { &EXPLORER } else { engine };
        Observer {
            inner: Stream::new(Detector::new(engine, Options::default())),
            commutes,
            reduced,
            pasts: Pasts::new(),
            touched: Touched::default(),
            log: Log::default(),
            held: None,
            promises: Vec::new(),
            next_promise: 0,
        }
    }

    /// The detector, back.
    pub(crate) fn into_detector(self) -> Detector {
        self.inner.into_consumer()
    }

    /// Has no section depended on another that nothing else put before it, and was there no ewait?
    pub(crate) fn independent(&self) -> bool {
        let log = self.log.borrow();
        let alone = |made: &Made| made.depends_on.iter().all(|&step| made.before.contains(step));
        log.iter().all(|made| made.footprint.is_some() && alone(made))
    }

    /// The steps so far, also while the run goes on.
    pub(crate) fn log(&self) -> Log {
        Rc::clone(&self.log)
    }

    fn new_promise(&mut self, task: TaskId) -> Result<PromiseId, Error> {
        let promise = PromiseId(self.next_promise);
        self.next_promise += 1;
        self.inner.event(Event::PromiseNew { task, promise })?;
        Ok(promise)
    }

    /// Passes an event on, with the detector's numbers.
    fn pass(&mut self, event: Event) -> Result<(), Error> {
        let event = match event {
            Event::PromiseNew { task, .. } => {
                let promise = self.new_promise(task)?;
                self.promises.push(promise);
                return Ok(());
            }
            Event::PromiseSet { task, promise } => {
                Event::PromiseSet { task, promise: self.promises[promise.index()] }
            }
            Event::PromiseGet { task, promise } => {
                Event::PromiseGet { task, promise: self.promises[promise.index()] }
            }
            other => other,
        };
        self.inner.event(event)
    }

    fn open_step(&mut self, task: TaskId, footprint: Option<Footprint>) {
        let mut log = self.log.borrow_mut();
        let before = self.pasts.of(task).clone();
        let mut past = before.clone();
        past.insert(log.len());
        log.push(Made { task, footprint, before, past, depends_on: Vec::new(), promise: None });
    }

    /// The section has ended: now it is known what it depends on.
    fn close_section(&mut self, task: TaskId) -> Result<(), Error> {
        let log = self.log();
        let mut log = log.borrow_mut();
        let Some((section, earlier)) = log.split_last_mut() else { return Ok(()) };
        let mut gets = Vec::new();
        if let Some(footprint) = &section.footprint {
            section.depends_on = self.touched.section(earlier.len(), footprint);
            for &step in &section.depends_on {
                if !section.past.contains(step) {
                    section.past.join(&earlier[step].past);
                    gets.extend(earlier[step].promise);
                }
            }
        }
        self.pasts.of(task).clone_from(&section.past);
        if !self.reduced {
            return Ok(());
        }
        self.inner.event(Event::IsolatedBegin { task })?;
        for promise in gets {
            self.inner.event(Event::PromiseGet { task, promise })?;
        }
        for held in self.held.take().into_iter().flatten() {
            match held {
                Held::Accesses(runs) => self.inner.runs(task, &runs)?,
                Held::Event(event) => self.pass(event)?,
            }
        }
        let promise = self.new_promise(task)?;
        self.inner.event(Event::PromiseSet { task, promise })?;
        section.promise = Some(promise);
        self.inner.event(Event::IsolatedEnd { task })
    }
}

impl Consumer for Observer<'_> {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        if strand.isolated
            && let Some(Made { footprint: Some(footprint), .. }) = self.log.borrow_mut().last_mut()
        {
            footprint.add(runs, self.commutes);
        }
        match &mut self.held {
            Some(held) => held.push(Held::Accesses(runs.to_vec())),
            None => self.inner.runs(strand.task, runs)?,
        }
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let task = step.event.task();
        match step.event {
            Event::IsolatedBegin { .. } => {
                self.open_step(task, Some(Footprint::default()));
                if self.reduced {
                    self.held = Some(Vec::new());
                    return Ok(());
                }
            }
            Event::IsolatedEnd { .. } => {
                self.close_section(task)?;
                if self.reduced {
                    return Ok(());
                }
            }
            _ => {
                if let Event::Ewait { .. } = step.event {
                    self.open_step(task, None);
                    let number = self.log.borrow().len() - 1;
                    self.pasts.of(task).insert(number);
                }
                let steps = self.log.borrow().len();
                self.pasts.event(step, steps);
            }
        }
        if let Some(held) = &mut self.held {
            held.push(Held::Event(step.event));
            return Ok(());
        }
        self.pass(step.event)
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.inner.erase(bytes)
    }
}
