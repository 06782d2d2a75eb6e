//! Tiny tasks: the short path of fork-join, by which the stream need not hear of every task (`dagsan_core::contract`).
//!
//! ```text
//!   spawn, end, scope, sync ─► short path? ─ yes ─► the log's few lines into the contraction
//!                                  └ no ─► what is contracted is told; the stream hears of the event
//! ```
//!
//! A task that is contracted has no number: `Tasks` has [`PENDING`] for it. Whoever needs the number of the running task asks
//! [`Session::told`], which tells of all that is contracted first. So everything that is not fork-join (locks, acquires and releases, promises, the
//! heap) need not know of this file, and is as exact as without. Relaxed operations need no number (`sync/relaxed.rs`).
//!
//! The begin and the end of a scope do not end a strand, which is longer than the core's, then.

use std::ops::Range;

use dagsan_core::contract::{Contraction, Expand, MOST, Opened, Side, SmallSet, Taken};
use dagsan_core::{Bytes, Dropped, Error, Event, Location, Stream, TaskId, TaskKind};

use crate::log;
use crate::nest::Nest;
use crate::outbox::Outbox;
use crate::private::Private;
use crate::session::Session;
use crate::shared::{self, Shared};
use crate::sync::Sync as Synchronisation;
use crate::tasks::{Birth, Handle, PENDING, Shadow, Stack, Tasks};
use crate::watched::Watched;

/// What is remembered of a task until it is told.
#[derive(Debug, Clone, Copy)]
struct Untold {
    slot: u32,
    birth: Birth,
}

/// A task that stands for children of a piece of work.
#[derive(Debug, Clone, Copy)]
struct Left {
    /// The place of the thread's own task, and of the piece while it ran.
    slot: u32,
    piece: TaskId,
    task: TaskId,
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
    /// Children of pieces, told as one, that the piece has not waited for.
    left: Vec<Left>,
    /// How many strands were told without.
    direct: u64,
    /// How many tasks were contracted in parts that were told.
    of_parts: u64,
}

impl Tiny {
    pub fn new(on: bool) -> Tiny {
        Tiny {
            on,
            contraction: Contraction::new(MOST),
            bottom: 0,
            own: SmallSet::default(),
            strands: 0,
            left: Vec::new(),
            direct: 0,
            of_parts: 0,
        }
    }

    /// Is anything parallel among what is not told?
    #[inline]
    pub fn is_parallel(&self) -> bool {
        self.contraction.is_parallel()
    }

    /// How many tasks the stream has not heard of, and will not.
    pub fn contracted(&self) -> u64 {
        self.contraction.contracted() + self.of_parts
    }

    /// How many strands it has not heard of.
    pub fn strands(&self) -> u64 {
        self.strands
    }

    /// Counts what was contracted in a part that was told.
    pub fn adds(&mut self, part: &mut Tiny) {
        self.strands = self.strands.wrapping_add(std::mem::take(&mut part.strands));
        self.of_parts += part.contraction.take_contracted() + std::mem::take(&mut part.of_parts);
    }

    /// Nothing is parallel to the present.
    pub fn forget(&mut self) {
        self.contraction.forget();
    }

    /// The children that pieces in that place have left behind: somebody waits for them.
    pub fn take_left(&mut self, slot: u32) -> Vec<TaskId> {
        self.take_children(|left| left.slot == slot)
    }

    /// The task, if it is a piece, has waited for its children: these are they.
    pub fn has_waited(&mut self, piece: TaskId) -> Vec<TaskId> {
        self.take_children(|left| left.piece == piece)
    }

    fn take_children(&mut self, are_wanted: impl Fn(&Left) -> bool) -> Vec<TaskId> {
        self.left.extract_if(.., |left| are_wanted(left)).map(|left| left.task).collect()
    }

    /// A child of a piece, in that place, has ended.
    pub fn leaves(&mut self, slot: u32, piece: TaskId, task: TaskId) {
        self.left.push(Left { slot, piece, task });
    }

    /// While this number is the same, nothing was told that anybody has done to memory.
    pub fn epoch(&self) -> u64 {
        self.contraction.epoch() + self.direct
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
    /// Who runs below what is contracted, and, if that is a piece, where the children are noted that it leaves.
    bottom: u32,
    left: &'a mut Vec<Left>,
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

    fn run(
        &mut self,
        kind: TaskKind,
        tag: Untold,
        set: &SmallSet,
        left: Option<&SmallSet>,
    ) -> Result<(), Error> {
        let child = self.spawn(kind, tag.birth)?;
        let parent = std::mem::replace(&mut self.running, child);
        let of_piece = self.tasks.is_piece(self.bottom) && parent == self.tasks.number_of(self.bottom);
        if !set.is_empty() {
            self.accesses(set)?;
        }
        if let Some(left) = left {
            self.run(TaskKind::Child, tag, left, None)?;
        }
        self.running = parent;
        self.stream.event(Event::TaskEnd { task: child })?;
        match kind {
            TaskKind::Child if of_piece => {
                self.left.push(Left { slot: self.bottom, piece: parent, task: child });
                Ok(())
            }
            // Nobody will ask for it.
            TaskKind::Child => self.stream.dropped(Dropped::Future(child)),
            _ => Ok(()),
        }
    }

    fn have_met(&self, first: Side, second: Side) -> bool {
        self.stream.consumer().have_met(first, second)
    }

    #[inline]
    fn has_read(&mut self, line: u64, bytes: u64) {
        if self.keeps {
            let written = self.stream.consumer().written(Location { line, mask: bytes });
            shared::keep(self.shared, line, bytes & !written);
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
        let (bottom, running) = (tiny.bottom, tasks.number_of(tiny.bottom));
        let was_parallel = tiny.contraction.is_parallel();
        let mut left = std::mem::take(&mut tiny.left);
        let mut telling = Telling {
            stream,
            tasks,
            shared,
            keeps: false,
            running,
            bottom,
            left: &mut left,
            strands: 0,
            lines: 0,
        };
        let result = action(tiny, &mut telling);
        let Telling { strands, lines, .. } = telling;
        tiny.left = left;
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

    /// May the next event take the short path? Not if the shadow hears of it, too.
    #[inline]
    fn is_short(&mut self) -> bool {
        self.is_short_with(false)
    }

    /// The same, if only the shadow of a task that comes would hear of it, which is due.
    #[inline]
    fn is_short_with(&mut self, shadow: bool) -> bool {
        if !self.tiny.on {
            return false;
        }
        let alone = shadow || !matches!(self.tasks.shadow(), Shadow::Other(_));
        let short = self.stopped.is_none() && self.sync.is_idle() && alone;
        if !short {
            self.tell();
        }
        short
    }

    /// Have the accesses of the running strand been taken into the contraction, and what it has read been kept, if it `keeps` any? If not, they are
    /// where they were, and nothing is contracted any more.
    #[inline]
    pub fn strand_was_tiny(&mut self, keeps: bool) -> bool {
        let was_tiny = self.took_strand(keeps);
        self.tiny.direct += u64::from(!was_tiny);
        was_tiny
    }

    #[inline]
    fn took_strand(&mut self, keeps: bool) -> bool {
        if !self.tiny.contraction.is_pending() {
            return false;
        }
        let small = self.stopped.is_none() && self.sync.is_small() && log::is_small();
        // What is a thread's own is the shadow's to tell (`nest`).
        let alone = |nest: &Nest, sync: &Synchronisation| {
            log::all_lines(|line| nest.is_shared_line(line))
                && sync.all_lines(|line| nest.is_shared_line(line))
        };
        let small = small && (self.tasks.shadow() == Shadow::Itself || alone(&self.nest, &self.sync));
        if !small {
            self.tell();
            return false;
        }
        let Session { tiny, tasks, sites, sync, shared, owned, thread_locals, .. } = self;
        let private = Private::new(tasks.private(), thread_locals.clone(), owned);
        tiny.own.clear();
        log::take_small(sites, &mut tiny.own, &private);
        let has_atomics = sync.has_accesses();
        if has_atomics {
            sync.add_to(&mut tiny.own, sites, shared, |line| private.of(line));
        }
        let touched = private.touched();
        let leads_to_heap = self.touch_variables(touched);
        if !self.tiny.own.is_empty() {
            self.tiny.strands += 1;
            let keeps = keeps && self.shared.is_on();
            let result = self.with_contraction(|tiny, telling| {
                telling.keeps = keeps;
                tiny.contraction.own(&tiny.own, telling)
            });
            self.look_for_news(result);
        }
        if has_atomics {
            self.atomics_were_taken(keeps);
        }
        if leads_to_heap {
            self.tell();
        }
        true
    }

    /// The atomic accesses of the running strand are in the contraction, or were told with it.
    fn atomics_were_taken(&mut self, keeps: bool) {
        let (contraction, detector) = (&self.tiny.contraction, self.stream.consumer());
        let only = |at: Location| {
            let [plain, atomic] = contraction.touched(at.line);
            at.mask & (atomic | detector.only_atomic(at)) & !(plain | detector.plain(at))
        };
        self.sync.told(&mut self.sites, &mut self.shared, keeps, detector, only);
    }

    /// The bytes are other memory from here on, and were, when this was the [epoch](Tiny::epoch): now it is another, which is returned.
    pub fn reused(&mut self, bytes: Bytes, epoch: u64) -> u64 {
        if epoch == self.tiny.epoch() {
            self.tiny.contraction.forget_bytes(bytes);
        } else {
            self.erase(bytes.start() as usize, bytes.len() as usize);
        }
        self.tiny.epoch()
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
        if !self.is_short_with(kind == TaskKind::Child) {
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
        if self.options.hygiene.stacks && self.tiny.contraction.has_stack_alone() {
            self.tasks.hide_stack();
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
