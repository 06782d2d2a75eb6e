//! A stream contracted (`dagsan_core::contract`): a consumer that tells another stream less, and races that must be the same.

use std::collections::HashMap;

use dagsan_core::contract::{Contraction, Expand, Opened, Side, SmallSet, Taken};
use dagsan_core::{
    Bytes, Consumer, Detector, Dropped, Error, Event, LINE_BYTES, Phase, Run, Step, Strand, Stream, TaskId,
    TaskKind,
};

/// Who knows of which places in the code that their atomic accesses meet.
pub(crate) trait Meets {
    fn have_met(&self, first: Side, second: Side) -> bool;
}

impl Meets for Detector {
    fn have_met(&self, first: Side, second: Side) -> bool {
        Detector::have_met(self, first, second)
    }
}

/// Contracts what it gets, as the runtime of native programs does, and tells the rest to a stream of its own.
pub(crate) struct Contracting<C> {
    contraction: Contraction<TaskId>,
    told: Told<C>,
    /// The parents of all tasks.
    parents: HashMap<TaskId, TaskId>,
    /// The task whose turn it is.
    current: TaskId,
    /// Are children joined by none but their parents, and the finish around?
    children: bool,
}

/// The other stream, which has numbers of its own for the tasks.
struct Told<C> {
    stream: Stream<C>,
    numbers: HashMap<TaskId, TaskId>,
    running: TaskId,
}

impl<C: Consumer + Meets> Contracting<C> {
    /// Sets have at most `limit` lines. If anybody gets `children`, they are not contracted.
    pub(crate) fn new(stream: Stream<C>, limit: usize, children: bool) -> Contracting<C> {
        let numbers = HashMap::from([(TaskId::MAIN, TaskId::MAIN)]);
        Contracting {
            contraction: Contraction::new(limit),
            told: Told { stream, numbers, running: TaskId::MAIN },
            parents: HashMap::new(),
            current: TaskId::MAIN,
            children,
        }
    }

    /// The other stream's consumer.
    pub(crate) fn into_consumer(self) -> C {
        self.told.stream.into_consumer()
    }

    /// Tells the other stream what is left.
    pub(crate) fn expand(&mut self) -> Result<(), Error> {
        self.contraction.expand(&mut self.told)
    }

    /// It is the turn of `task`.
    fn turn(&mut self, task: TaskId) -> Result<(), Error> {
        if self.current != task {
            self.expand()?;
            (self.current, self.told.running) = (task, task);
        }
        Ok(())
    }

    /// The event for the other stream.
    fn pass(&mut self, event: Event) -> Result<(), Error> {
        self.expand()?;
        if let Event::Spawn { child, kind, .. } = event {
            return self.told.start(kind, child);
        }
        let mut event = event;
        *event.task_mut() = self.told.number(event.task());
        match &mut event {
            Event::FutureGet { future: other, .. } | Event::Ewait { joined: other, .. } => {
                *other = self.told.number(*other);
            }
            _ => {}
        }
        self.told.stream.event(event)
    }
}

impl<C: Consumer> Told<C> {
    fn number(&self, task: TaskId) -> TaskId {
        self.numbers[&task]
    }
}

impl<C: Consumer + Meets> Expand for Told<C> {
    type Tag = TaskId;

    fn have_met(&self, first: Side, second: Side) -> bool {
        self.stream.consumer().have_met(first, second)
    }

    fn accesses(&mut self, set: &SmallSet) -> Result<(), Error> {
        let runs: Vec<Run> = set.runs().collect();
        self.stream.runs(self.number(self.running), &runs)
    }

    fn open(&mut self, scope: Opened) -> Result<(), Error> {
        self.stream.event(scope.begin(self.number(self.running)))
    }

    fn start(&mut self, kind: TaskKind, tag: TaskId) -> Result<(), Error> {
        let (parent, child) = (self.number(self.running), TaskId(self.stream.structure().task_count()));
        self.stream.event(Event::Spawn { parent, child, kind })?;
        self.numbers.insert(tag, child);
        self.running = tag;
        Ok(())
    }

    fn run(
        &mut self,
        kind: TaskKind,
        tag: TaskId,
        set: &SmallSet,
        left: Option<&SmallSet>,
    ) -> Result<(), Error> {
        let parent = self.running;
        self.start(kind, tag)?;
        self.accesses(set)?;
        let task = self.number(tag);
        if let Some(left) = left {
            let child = TaskId(self.stream.structure().task_count());
            self.stream.event(Event::Spawn { parent: task, child, kind: TaskKind::Child })?;
            let runs: Vec<Run> = left.runs().collect();
            self.stream.runs(child, &runs)?;
            self.stream.event(Event::TaskEnd { task: child })?;
        }
        self.stream.event(Event::TaskEnd { task })?;
        self.running = parent;
        Ok(())
    }
}

impl<C: Consumer + Meets> Consumer for Contracting<C> {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.turn(strand.task)?;
        let mut set = SmallSet::default();
        runs.iter().for_each(|run| set.add_run(run));
        if strand.locks.is_empty() && !strand.isolated {
            return self.contraction.own(&set, &mut self.told);
        }
        self.expand()?;
        self.told.stream.runs(self.told.number(strand.task), runs)
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let event = step.event;
        self.turn(event.task())?;
        let taken = match event {
            Event::Spawn { parent, child, kind } => {
                self.parents.insert(child, parent);
                match kind {
                    TaskKind::Child if !self.children => Taken::Pass,
                    _ => self.contraction.spawn(kind, child, 0..0, &mut self.told)?,
                }
            }
            Event::TaskEnd { .. } => self.contraction.task_end(&mut self.told)?,
            Event::Sync { .. } => self.contraction.sync(&mut self.told)?,
            Event::FrameBegin { .. } => {
                self.contraction.open(Opened::Frame);
                Taken::Here
            }
            Event::FinishBegin { .. } => {
                self.contraction.open(Opened::Finish);
                Taken::Here
            }
            Event::FrameEnd { .. } => self.contraction.close(Opened::Frame, &mut self.told)?,
            Event::FinishEnd { .. } => self.contraction.close(Opened::Finish, &mut self.told)?,
            _ => Taken::Pass,
        };
        if taken == Taken::Pass {
            self.pass(event)?;
        }
        if step.phase == Phase::Quiesced {
            self.contraction.forget();
        }
        match event {
            Event::Spawn { child, .. } => self.current = child,
            Event::TaskEnd { task } => self.current = *self.parents.get(&task).unwrap_or(&TaskId::MAIN),
            _ => return Ok(()),
        }
        // Of what is not told, nothing runs there.
        if !self.contraction.is_open() {
            self.told.running = self.current;
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        if self.contraction.touches(&(bytes.start() / LINE_BYTES..bytes.end().div_ceil(LINE_BYTES))) {
            self.expand()?;
        }
        self.told.stream.erase(bytes)
    }

    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        let what = match what {
            Dropped::Future(task) => match self.told.numbers.get(&task) {
                Some(&number) => Dropped::Future(number),
                // It was contracted.
                None => return Ok(()),
            },
            other => other,
        };
        self.told.stream.dropped(what)
    }
}
