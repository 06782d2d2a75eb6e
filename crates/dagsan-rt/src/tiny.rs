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

use std::ops::Range;

use dagsan_core::contract::{Contraction, Expand, MOST, Opened, SmallSet, Taken};
use dagsan_core::{Bytes, Error, Event, Stream, TaskId, TaskKind};

use crate::log;
use crate::outbox::Outbox;
use crate::private::Private;
use crate::session::Session;
use crate::shared::{self, Shared};
use crate::tasks::{Birth, Handle, PENDING, Stack, Tasks};
use crate::watched::Watched;

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
    /// Who runs below what is contracted.
    bottom: u32,
    /// The accesses of a strand.
    own: SmallSet,
    /// How many strands were contracted, less those that were told for them.
    strands: u64,
}

impl Tiny {
    pub fn new(on: bool) -> Tiny {
        Tiny { on, contraction: Contraction::new(MOST), bottom: 0, own: SmallSet::default(), strands: 0 }
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
    stream: &'a mut Stream<Watched>,
    tasks: &'a mut Tasks,
    shared: &'a mut Shared,
    /// Is what the running strand has read kept?
    keeps: bool,
    running: TaskId,
    /// How many strands were told, and lines of them.
    strands: u64,
    lines: u64,
}

impl Telling<'_> {
    /// The running task starts another.
    fn spawn(&mut self, kind: TaskKind, birth: Birth) -> Result<TaskId, Error> {
        let (parent, child) = (self.running, TaskId(self.stream.structure().task_count()));
        self.stream.event(Event::Spawn { parent, child, kind })?;
        self.tasks.born(parent, birth);
        Ok(child)
    }
}

impl Expand for Telling<'_> {
    type Tag = Untold;

    fn accesses(&mut self, set: &SmallSet) -> Result<(), Error> {
        self.strands += 1;
        self.lines += set.len() as u64;
        let mut result = Ok(());
        let mut outbox =
            Outbox::new(Vec::new(), true, |spans| result = self.stream.spans(self.running, spans));
        set.runs().for_each(|run| outbox.push(run));
        outbox.close();
        result
    }

    fn open(&mut self, scope: Opened) -> Result<(), Error> {
        self.stream.event(scope.begin(self.running))
    }

    fn start(&mut self, kind: TaskKind, tag: Untold) -> Result<(), Error> {
        self.running = self.spawn(kind, tag.birth)?;
        self.tasks.is_told(tag.slot, self.running);
        Ok(())
    }

    fn run(&mut self, kind: TaskKind, tag: Untold, set: &SmallSet) -> Result<(), Error> {
        let child = self.spawn(kind, tag.birth)?;
        let parent = std::mem::replace(&mut self.running, child);
        self.accesses(set)?;
        self.running = parent;
        self.stream.event(Event::TaskEnd { task: child })
    }

    #[inline]
    fn has_read(&mut self, line: u64, bytes: u64) {
        if self.keeps {
            shared::keep(self.shared, line, bytes & !self.stream.consumer().written(line));
        }
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
            self.delivered(result);
        }
    }

    /// Tells the stream of all that is contracted, if any of these bytes may be among it.
    #[inline]
    pub fn tell_of(&mut self, bytes: Bytes) {
        let lines = bytes.start() >> 6..bytes.end().div_ceil(64);
        if self.tiny.contraction.touches(&lines) {
            self.tell();
        }
    }

    fn with_contraction<R>(&mut self, action: impl FnOnce(&mut Tiny, &mut Telling) -> R) -> R {
        let Session { tiny, stream, tasks, shared, .. } = self;
        if !tiny.contraction.is_open() {
            tiny.bottom = tasks.slot();
        }
        let running = tasks.number_of(tiny.bottom);
        let was_parallel = tiny.contraction.is_parallel();
        let mut telling = Telling { stream, tasks, shared, keeps: false, running, strands: 0, lines: 0 };
        let result = action(tiny, &mut telling);
        let Telling { strands, lines, .. } = telling;
        if strands > 0 {
            self.tiny.strands = self.tiny.strands.wrapping_sub(strands);
            self.look_at_memory(lines);
        }
        // Tasks that have touched nothing are not told: there may be nothing parallel any more, before the event that comes next.
        if was_parallel && !self.tiny.is_parallel() {
            self.set_active();
        }
        result
    }

    /// May the next event take the short path?
    #[inline]
    fn is_short(&mut self) -> bool {
        if !self.tiny.on {
            return false;
        }
        let short = self.stopped.is_none() && self.sync.is_idle() && self.tasks.shadow().is_none();
        if !short {
            self.tell();
        }
        short
    }

    /// Have the accesses of the running strand been taken into the contraction, and what it has read been kept, if it `keeps` any? If not, they are
    /// where they were, and nothing is contracted any more.
    #[inline]
    pub fn strand_was_tiny(&mut self, keeps: bool) -> bool {
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
            let keeps = keeps && self.shared.is_on();
            let result = self.with_contraction(|tiny, telling| {
                telling.keeps = keeps;
                tiny.contraction.own(&tiny.own, telling)
            });
            self.look_for_news(result);
        }
        true
    }

    /// Something may have been told.
    fn look_for_news(&mut self, result: Result<(), Error>) {
        if result.is_err() || self.has_news() {
            self.delivered(result);
        }
    }

    /// Was the event taken here? If not, nothing is contracted any more.
    #[inline]
    fn took(&mut self, result: Result<Taken, Error>) -> bool {
        let here = result == Ok(Taken::Here);
        if here {
            self.set_active();
        } else {
            self.look_for_news(result.map(drop));
        }
        here
    }

    /// The running strand ends, if there is something for it to join.
    #[inline]
    fn end_if_joining(&mut self) {
        if self.tiny.contraction.joins() {
            self.deliver();
            self.fresh.end_strand();
            self.tasks.mark();
        }
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
        self.end_if_joining();
        let result = self.with_contraction(|tiny, telling| tiny.contraction.close(scope, telling));
        self.took(result)
    }

    /// It joins what it has spawned.
    #[inline]
    pub fn sync_tiny(&mut self) -> bool {
        if !self.is_short() {
            return false;
        }
        self.end_if_joining();
        let result = self.with_contraction(|tiny, telling| tiny.contraction.sync(telling));
        self.took(result)
    }

    /// It starts a task, which runs.
    #[inline]
    pub fn spawn_tiny(&mut self, kind: TaskKind, birth: Birth, stack: Stack) -> Option<Handle> {
        if !self.is_short() {
            return None;
        }
        self.deliver_before_spawn();
        self.fresh.end_strand();
        let untold = Untold { slot: self.tasks.next_slot(), birth };
        let own = self.own_stack(stack);
        let result =
            self.with_contraction(|tiny, telling| tiny.contraction.spawn(kind, untold, own, telling));
        if !self.took(result) {
            return None;
        }
        self.tasks.mark();
        self.begin_on(stack);
        Some(self.tasks.spawn(PENDING, kind, stack))
    }

    /// The addresses that are other memory when a task has ended that begins there.
    #[inline]
    fn own_stack(&self, Stack { low, high }: Stack) -> Range<u64> {
        if !self.options.hygiene.stacks {
            return 0..0;
        }
        let low = if low == 0 { self.tasks.stack().low } else { low };
        low as u64..high as u64
    }

    /// The running task ends, and its parent goes on.
    #[inline]
    pub fn end_tiny(&mut self) -> bool {
        if !self.tiny.contraction.is_pending() || !self.is_short() {
            return false;
        }
        self.deliver();
        self.fresh.end_strand();
        let used = if self.options.hygiene.stacks { self.tasks.used() } else { 0..0 };
        let result = self.with_contraction(|tiny, telling| tiny.contraction.task_end(telling));
        if !self.took(result) {
            return false;
        }
        shared::forget_range(&mut self.shared, &used);
        let parent = self.tiny.contraction.running().map_or(self.tiny.bottom, |untold| untold.slot);
        let stack = self.tasks.stack();
        self.tasks.end();
        self.tasks.go_on(parent);
        if self.options.hygiene.stacks {
            self.forget_words(stack.low..stack.high);
        }
        true
    }
}
