//! Tiny tasks: the short path of fork-join, by which the stream need not hear of every task (`dagsan_core::contract`).
//!
//! ```text
//!   spawn, end, scope, sync ─► short path? ─ yes ─► the log's few lines into the contraction
//!                                  └ no ─► what is contracted is told; the stream hears of the event
//! ```
//!
//! A task that is contracted has no number: `Tasks` has [`PENDING`] for it. Whoever needs the number of the running task asks
//! [`Session::told`], which tells of all that is contracted first. So everything that is not fork-join (locks, atomics, promises, the
//! heap) need not know of this file, and is as exact as without.
//!
//! The begin and the end of a scope do not end a strand, which is longer than the core's, then.

use dagsan_core::contract::{Contraction, Expand, MOST, Opened, SmallSet, Taken};
use dagsan_core::{Detector, Error, Event, Run, Stream, TaskId, TaskKind};

use crate::log;
use crate::private::{Private, within};
use crate::session::Session;
use crate::tasks::{Birth, Handle, PENDING, Stack, Tasks};

/// What is remembered of a task until it is told.
#[derive(Debug, Clone, Copy)]
struct Untold {
    slot: u32,
    birth: Birth,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Tiny {
    /// Is the short path to be taken at all?
    on: bool,
    contraction: Contraction<Untold>,
    /// The slots of the tasks that run and are not told, the innermost last.
    running: Vec<u32>,
    /// Who runs below them.
    bottom: u32,
    /// The accesses of a strand.
    own: SmallSet,
    /// How many strands were contracted, less those that were told for them.
    strands: u64,
}

impl Tiny {
    pub fn new(on: bool) -> Tiny {
        Tiny {
            on,
            contraction: Contraction::new(MOST),
            running: Vec::with_capacity(64),
            bottom: 0,
            own: SmallSet::default(),
            strands: 0,
        }
    }

    /// Is anything parallel among what is not told?
    #[inline]
    pub fn is_parallel(&self) -> bool {
        self.contraction.is_parallel()
    }

    /// How many tasks the stream has not heard of, and will not.
    pub fn contracted(&self) -> u64 {
        self.contraction.contracted()
    }

    /// How many strands it has not heard of.
    pub fn strands(&self) -> u64 {
        self.strands
    }

    /// Nothing is parallel to the present.
    pub fn forget(&mut self) {
        self.contraction.forget();
    }
}

/// Tells the stream of what was contracted.
struct Telling<'a> {
    stream: &'a mut Stream<Detector>,
    tasks: &'a mut Tasks,
    running: TaskId,
    /// How many strands were told.
    strands: u64,
}

impl Expand for Telling<'_> {
    type Tag = Untold;

    fn accesses(&mut self, set: &SmallSet) -> Result<(), Error> {
        let runs: Vec<Run> = set.runs().collect();
        self.strands += 1;
        self.stream.runs(self.running, &runs)
    }

    fn open(&mut self, scope: Opened) -> Result<(), Error> {
        let task = self.running;
        self.stream.event(match scope {
            Opened::Frame => Event::FrameBegin { task },
            Opened::Finish => Event::FinishBegin { task },
        })
    }

    fn start(&mut self, kind: TaskKind, tag: Untold) -> Result<(), Error> {
        let (parent, child) = (self.running, TaskId(self.stream.structure().task_count()));
        self.stream.event(Event::Spawn { parent, child, kind })?;
        self.tasks.born(parent, tag.birth);
        self.tasks.is_told(tag.slot, child);
        self.running = child;
        Ok(())
    }

    fn run(&mut self, kind: TaskKind, tag: Untold, set: &SmallSet) -> Result<(), Error> {
        let (parent, child) = (self.running, TaskId(self.stream.structure().task_count()));
        self.stream.event(Event::Spawn { parent, child, kind })?;
        self.tasks.born(parent, tag.birth);
        self.running = child;
        self.accesses(set)?;
        self.stream.event(Event::TaskEnd { task: child })?;
        self.running = parent;
        Ok(())
    }
}

impl Session {
    /// The running task, which the stream knows.
    #[inline]
    pub fn told(&mut self) -> TaskId {
        self.tell();
        self.tasks.current()
    }

    /// Tells the stream of all that is contracted.
    #[inline]
    pub fn tell(&mut self) {
        if self.tiny.contraction.is_pending() {
            let result = self.with_contraction(|tiny, telling| tiny.contraction.expand(telling));
            self.tiny.running.clear();
            self.delivered(result);
        }
    }

    fn with_contraction<R>(&mut self, action: impl FnOnce(&mut Tiny, &mut Telling) -> R) -> R {
        let Session { tiny, stream, tasks, .. } = self;
        if !tiny.contraction.is_pending() {
            tiny.bottom = tasks.slot();
        }
        let running = tasks.number_of(tiny.bottom);
        let mut telling = Telling { stream, tasks, running, strands: 0 };
        let result = action(tiny, &mut telling);
        tiny.strands = tiny.strands.wrapping_sub(telling.strands);
        result
    }

    /// May the next event take the short path?
    #[inline]
    fn is_short(&mut self) -> bool {
        if !self.tiny.on {
            return false;
        }
        let short = self.stopped.is_none() && self.sync.is_idle();
        if !short {
            self.tell();
        }
        short
    }

    /// Has the accesses of the running strand been taken into the contraction? If not, they are where they were, and there
    /// is nothing contracted any more.
    #[inline]
    pub fn strand_was_tiny(&mut self) -> bool {
        if !self.tiny.contraction.is_pending() {
            return false;
        }
        let small = self.stopped.is_none() && !self.sync.has_accesses() && log::is_small();
        if !small {
            self.tell();
            return false;
        }
        let Session { tiny, tasks, sites, owned, thread_locals, .. } = self;
        let private = Private::new(tasks.private(), thread_locals.clone(), owned);
        tiny.own.clear();
        log::take_small(sites, &mut tiny.own, &private);
        tasks.touch(private.touched());
        if !tiny.own.is_empty() {
            tiny.strands += 1;
            let result = self.with_contraction(|tiny, telling| tiny.contraction.own(&tiny.own, telling));
            self.after(Taken::Here, result);
        }
        true
    }

    /// Sees what came of an event: was anything told?
    fn after(&mut self, taken: Taken, result: Result<(), Error>) {
        if taken == Taken::Pass || !self.tiny.contraction.is_pending() {
            self.tiny.running.clear();
        }
        if result.is_err() || self.has_news() {
            self.delivered(result);
        }
    }

    #[inline]
    fn took(&mut self, result: Result<Taken, Error>) -> bool {
        let (taken, result) = match result {
            Ok(taken) => (taken, Ok(())),
            Err(error) => (Taken::Pass, Err(error)),
        };
        if taken == Taken::Here {
            self.set_active();
            return true;
        }
        self.after(taken, result);
        false
    }

    /// The running task opens a scope.
    #[inline]
    pub fn open_tiny(&mut self, scope: Opened) -> bool {
        let short = self.is_short();
        if short {
            self.with_contraction(|tiny, _| tiny.contraction.open(scope));
        }
        short
    }

    /// It closes its innermost scope.
    #[inline]
    pub fn close_tiny(&mut self, scope: Opened) -> bool {
        if !self.is_short() {
            return false;
        }
        if self.tiny.contraction.joins() {
            self.deliver();
            self.tasks.mark();
        }
        let result = self.with_contraction(|tiny, telling| tiny.contraction.close(scope, telling));
        self.took(result)
    }

    /// It joins what it has spawned.
    #[inline]
    pub fn sync_tiny(&mut self) -> bool {
        if !self.is_short() {
            return false;
        }
        if self.tiny.contraction.joins() {
            self.deliver();
            self.tasks.mark();
        }
        let result = self.with_contraction(|tiny, telling| tiny.contraction.sync(telling));
        self.took(result)
    }

    /// It starts a task, which runs.
    #[inline]
    pub fn spawn_tiny(&mut self, kind: TaskKind, birth: Birth, stack: Stack) -> Option<Handle> {
        if !self.is_short() {
            return None;
        }
        self.deliver();
        let slot = self.tasks.next_slot();
        let untold = Untold { slot, birth };
        let result = self.with_contraction(|tiny, telling| tiny.contraction.spawn(kind, untold, telling));
        if !self.took(result) {
            return None;
        }
        self.tasks.mark();
        self.begin_on(stack);
        self.tiny.running.push(slot);
        Some(self.tasks.spawn(PENDING, kind, stack))
    }

    /// The running task ends, and its parent goes on.
    #[inline]
    pub fn end_tiny(&mut self) -> bool {
        if !self.tiny.contraction.is_pending() || !self.is_short() {
            return false;
        }
        self.deliver();
        let used = if self.options.hygiene.stacks { self.tasks.used() } else { 0..0 };
        let gone = |line| within(&used, line);
        let result = self.with_contraction(|tiny, telling| tiny.contraction.task_end(gone, telling));
        if !self.took(result) {
            return false;
        }
        self.tiny.running.pop();
        let parent = self.tiny.running.last().copied().unwrap_or(self.tiny.bottom);
        let stack = self.tasks.stack();
        self.tasks.end();
        self.tasks.go_on(parent);
        if self.options.hygiene.stacks {
            self.forget_words(stack.low..stack.high);
        }
        true
    }
}
