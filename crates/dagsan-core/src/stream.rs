//! The one way into the core: a stream of events and of the access sets of ended strands.
//!
//! A front end runs the program, collects the accesses of the running strand in an
//! [`AccessSet`], and when a task event happens hands over first the set, then the event. The stream
//! checks both, numbers the strands that touched memory, and passes all on to its consumer: a
//! detector, the graph builder, a recorder, or several of them at once.

use crate::access::{AccessKind, AccessSet, Run, Span, runs_of};
use crate::bytes::Bytes;
use crate::error::Error;
use crate::event::Event;
use crate::ids::{LockId, PromiseId, SiteId, StrandId, SyncId, TaskId};
use crate::locks::{Held, LockMode};
use crate::repeats::{Repeats, Step as RepeatedStep, Then};
use crate::sections::{Inside, Sections};
use crate::step::{Phase, Step};
use crate::structure::Structure;

/// A strand whose accesses are being delivered.
#[derive(Debug, Clone, Copy)]
pub struct Strand<'a> {
    /// Its number.
    pub id: StrandId,
    /// The task it belongs to.
    pub task: TaskId,
    /// Is it part of an isolated section?
    pub isolated: bool,
    /// The locks that its task held, sorted.
    pub locks: &'a [Held],
    /// Is the program quiescent, so that nothing can be parallel to the strand?
    pub quiescent: bool,
    /// Has everything so far come in the serial depth-first order?
    pub depth_first: bool,
}

/// Something that tasks could get, and that nobody has a handle to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// A future. The scope around it joins it all the same.
    Future(TaskId),
    /// A promise, whether it was set or not.
    Promise(PromiseId),
}

/// What takes a stream.
///
/// Events and strands come in an order that respects the computation graph: if strand `a` precedes
/// strand `b`, then `a` is delivered before `b`.
pub trait Consumer {
    /// Accesses of a strand, just before the event that ends it. A strand may come in several
    /// pieces (memory freed while it runs is delivered at once), with the same number. A byte may come twice,
    /// in runs that differ in kind or atomicity.
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error>;

    /// The same for runs that go on over many lines.
    fn spans(&mut self, strand: &Strand, spans: &[Span]) -> Result<(), Error> {
        self.accesses(strand, &runs_of(spans))
    }

    /// A task event.
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error>;

    /// The bytes become other memory: what was done to them before has nothing to do with what
    /// comes.
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error>;

    /// Nobody will get this any more. It changes nothing, and may save memory.
    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        let _ = what;
        Ok(())
    }
}

impl<C: Consumer + ?Sized> Consumer for &mut C {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        (**self).accesses(strand, runs)
    }
    fn spans(&mut self, strand: &Strand, spans: &[Span]) -> Result<(), Error> {
        (**self).spans(strand, spans)
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        (**self).event(step)
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        (**self).erase(bytes)
    }
    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        (**self).dropped(what)
    }
}

/// Several consumers of one stream, in order.
impl<C: Consumer> Consumer for Vec<C> {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.accesses(strand, runs))
    }
    fn spans(&mut self, strand: &Strand, spans: &[Span]) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.spans(strand, spans))
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.event(step))
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.erase(bytes))
    }
    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.iter_mut().try_for_each(|consumer| consumer.dropped(what))
    }
}

/// Two consumers of one stream, the first one first.
impl<A: Consumer, B: Consumer> Consumer for (A, B) {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.0.accesses(strand, runs)?;
        self.1.accesses(strand, runs)
    }
    fn spans(&mut self, strand: &Strand, spans: &[Span]) -> Result<(), Error> {
        self.0.spans(strand, spans)?;
        self.1.spans(strand, spans)
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.0.event(step)?;
        self.1.event(step)
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.0.erase(bytes)?;
        self.1.erase(bytes)
    }
    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.0.dropped(what)?;
        self.1.dropped(what)
    }
}

/// Checks and numbers what a front end sends, and passes it on. See the module's documentation.
#[derive(Debug)]
pub struct Stream<C> {
    structure: Structure,
    consumer: C,
    next_strand: u32,
    stopped: bool,
    taken: AccessSet,
    scratch: Vec<Run>,
    /// If sections of locks that depend on each other are to be ordered.
    sections: Option<Box<Ordering>>,
    /// If steps that come again are to be left out.
    repeats: Option<Box<Repeats>>,
}

/// What it takes to order sections.
#[derive(Debug, Default)]
struct Ordering {
    sections: Sections,
    /// How often one was found to depend on another.
    found: u64,
    /// Room for the sections that a task is in, and for what it is to acquire.
    inside: Vec<Inside>,
    acquire: Vec<SyncId>,
}

impl<C: Consumer> Stream<C> {
    /// A stream at the start of a program: only the main task exists.
    pub fn new(consumer: C) -> Stream<C> {
        Stream {
            structure: Structure::new(),
            consumer,
            next_strand: 0,
            stopped: false,
            taken: AccessSet::new(),
            scratch: Vec::new(),
            sections: None,
            repeats: None,
        }
    }

    /// From here on it is the stream of a part of a program, at its start: what is told of the rest, which may be parallel, is told elsewhere. Its main task
    /// is whoever runs the part.
    pub fn begin_part(&mut self) {
        self.structure = Structure::beside_another();
        (self.next_strand, self.stopped) = (0, false);
        (self.sections, self.repeats) = (None, None);
    }

    /// From here on sections of locks that depend on each other come in the order of the run (see `sections`): the
    /// consumer gets a release at the end of a section, and an acquire where another one depends on it. Without this, locks
    /// are mutual exclusion and nothing else. To be called before the first event.
    pub fn order_sections(&mut self) {
        self.sections = Some(Box::default());
    }

    /// The same; if a task is in more than so many sections at once, they are kept together. That changes what it costs, and
    /// nothing else.
    pub fn order_sections_apart(&mut self, most: usize) {
        self.sections =
            Some(Box::new(Ordering { sections: Sections::with_apart(most), ..Ordering::default() }));
    }

    /// From here on steps that a task makes once more, as it has just made them, are left out (see `repeats`). To be called before the first
    /// event.
    pub fn leave_out_repeats(&mut self) {
        self.repeats = Some(Box::new(Repeats::new()));
    }

    /// How many strands were left out, of those that have touched memory.
    pub fn left_out(&self) -> u64 {
        self.repeats.as_ref().map_or(0, |repeats| repeats.left_out())
    }

    /// Is `task` in a section of a lock that may depend on others? What it does there between two events is best delivered at
    /// once: what comes in pieces depends on others piece by piece.
    #[inline]
    pub fn in_section(&self, task: TaskId) -> bool {
        let is_held = || self.repeats.as_ref().is_some_and(|repeats| repeats.in_section(task));
        self.sections.is_some() && (self.structure.inside(task).next().is_some() || is_held())
    }

    /// How often a section was found to depend on another one, of another task.
    pub fn dependent_sections(&self) -> u64 {
        self.sections.as_ref().map_or(0, |ordering| ordering.found)
    }

    /// Like [`Stream::new`]; looks for tasks to forget when `recent` have come, as a detector does for strands (see
    /// [`crate::order::Options`]).
    pub fn with_recent(consumer: C, recent: usize) -> Stream<C> {
        let mut stream = Stream::new(consumer);
        stream.structure.set_recent(recent);
        stream
    }

    /// Delivers what the running strand of `task` has done since its last delivery. To be called
    /// before the event that ends the strand, and before another task runs. An empty set costs
    /// nothing and takes no strand number.
    pub fn accesses(&mut self, task: TaskId, set: &AccessSet) -> Result<(), Error> {
        if set.is_empty() {
            return Ok(());
        }
        let mut runs = std::mem::take(&mut self.scratch);
        runs.clear();
        runs.extend(set.runs());
        let result = self.runs(task, &runs);
        self.scratch = runs;
        result
    }

    /// Like [`Stream::accesses`], for a front end that keeps accesses in a way of its own. No byte may come twice
    /// with the same kind and atomicity.
    pub fn runs(&mut self, task: TaskId, runs: &[Run]) -> Result<(), Error> {
        if runs.is_empty() {
            return Ok(());
        }
        self.guarded(|stream| {
            if stream.holds_strand(task, runs)? {
                return Ok(());
            }
            stream.follow_sections(task, runs)?;
            let (strand, consumer) = stream.running(task)?;
            consumer.accesses(&strand, runs)
        })
    }

    /// Like [`Stream::runs`], for a front end that finds the same runs in lines that follow each other.
    pub fn spans(&mut self, task: TaskId, spans: &[Span]) -> Result<(), Error> {
        if spans.is_empty() {
            return Ok(());
        }
        self.guarded(|stream| {
            if stream.holds_strand(task, spans)? {
                return Ok(());
            }
            stream.tell_strand(task, spans)
        })
    }

    fn tell_strand(&mut self, task: TaskId, spans: &[Span]) -> Result<(), Error> {
        self.follow_sections(task, spans)?;
        let (strand, consumer) = self.running(task)?;
        consumer.spans(&strand, spans)
    }

    /// A task event.
    pub fn event(&mut self, event: Event) -> Result<(), Error> {
        self.guarded(|stream| if stream.holds_event(event)? { Ok(()) } else { stream.tell_event(event) })
    }

    fn tell_event(&mut self, event: Event) -> Result<(), Error> {
        if let Event::Unlock { task, lock } | Event::SetLockMode { task, lock, .. } = event {
            self.end_section(task, lock)?;
        }
        self.apply(event)
    }

    /// Is this held back, as what comes again?
    #[inline]
    fn holds_strand<S: Copy + Into<Span>>(&mut self, task: TaskId, spans: &[S]) -> Result<bool, Error> {
        let Some(repeats) = &mut self.repeats else { return Ok(false) };
        match repeats.strand(task, spans) {
            Then::Hold => return Ok(true),
            Then::Tell => {}
            Then::TellAll => {
                self.tell_held()?;
                self.repeats.iter_mut().for_each(|repeats| _ = repeats.strand(task, spans));
            }
        }
        Ok(false)
    }

    /// The same for an event.
    #[inline]
    fn holds_event(&mut self, event: Event) -> Result<bool, Error> {
        let Some(repeats) = &mut self.repeats else { return Ok(false) };
        match repeats.event(event) {
            Then::Hold => return Ok(true),
            Then::Tell => {}
            Then::TellAll => {
                self.tell_held()?;
                self.repeats.iter_mut().for_each(|repeats| _ = repeats.event(event));
            }
        }
        Ok(false)
    }

    /// Tells what was held back.
    #[cold]
    fn tell_held(&mut self) -> Result<(), Error> {
        let Some(repeats) = &mut self.repeats else { return Ok(()) };
        let (task, steps, running) = repeats.take_held();
        for RepeatedStep { spans, event } in steps {
            if !spans.is_empty() {
                self.tell_strand(task, &spans)?;
            }
            self.tell_event(event)?;
        }
        if running.is_empty() { Ok(()) } else { self.tell_strand(task, &running) }
    }

    /// Something else comes than steps.
    fn interrupt(&mut self) -> Result<(), Error> {
        if self.repeats.as_ref().is_some_and(|repeats| repeats.holds()) {
            self.tell_held()?;
        }
        self.repeats.iter_mut().for_each(|repeats| repeats.forget());
        Ok(())
    }

    fn apply(&mut self, event: Event) -> Result<(), Error> {
        let step = self.structure.apply(event)?;
        if step.phase == Phase::Quiesced
            && let Some(ordering) = &mut self.sections
        {
            ordering.sections.clear();
        }
        self.consumer.event(&step)
    }

    /// What `task` is about to deliver comes after the sections that it depends on.
    #[inline]
    fn follow_sections<S: Copy + Into<Span>>(&mut self, task: TaskId, spans: &[S]) -> Result<(), Error> {
        if self.sections.is_none() || self.structure.quiescent() {
            return Ok(());
        }
        self.structure.turn(task)?;
        if self.structure.locks(task).is_empty() {
            return Ok(());
        }
        self.acquire_sections(task, spans)
    }

    fn acquire_sections<S: Copy + Into<Span>>(&mut self, task: TaskId, spans: &[S]) -> Result<(), Error> {
        let Some(ordering) = &mut self.sections else { return Ok(()) };
        ordering.inside.clear();
        ordering.inside.extend(self.structure.inside(task));
        // On a worker, and under no lock of the program's.
        if ordering.inside.is_empty() {
            return Ok(());
        }
        let mut acquire = std::mem::take(&mut ordering.acquire);
        acquire.clear();
        ordering.sections.touch(task, &ordering.inside, spans, &mut acquire);
        ordering.found += acquire.len() as u64;
        if !acquire.is_empty() {
            self.repeats.iter_mut().for_each(|repeats| repeats.has_acquired());
        }
        let result = acquire.iter().try_for_each(|&sync| self.apply(Event::Acquire { task, sync }));
        if let Some(ordering) = &mut self.sections {
            ordering.acquire = acquire;
        }
        result
    }

    /// A section of `task` ends, if it has taken the lock itself.
    fn end_section(&mut self, task: TaskId, lock: LockId) -> Result<(), Error> {
        let Some(ordering) = &mut self.sections else { return Ok(()) };
        let section = self.structure.own_section(task, lock);
        let early = section.is_some() && self.structure.is_early(task, lock);
        match section.and_then(|(_, section)| ordering.sections.end(section, early)) {
            Some(sync) => self.apply(Event::Release { task, sync, keep: false }),
            None => Ok(()),
        }
    }

    /// `task` holds `lock` in `mode` from here on, and for what it does from now on *or has not delivered yet*: a
    /// front end may learn only at the unlock that a lock was a reader's. If the mode changes, what was delivered
    /// before belongs to another strand.
    pub fn set_lock_mode(&mut self, task: TaskId, lock: LockId, mode: LockMode) -> Result<(), Error> {
        let held = self.repeats.as_ref().and_then(|repeats| repeats.mode(task, lock));
        let held = held.or_else(|| self.structure.own_section(task, lock).map(|(held, _)| held.mode));
        if !self.stopped && held == Some(mode) {
            return Ok(());
        }
        self.event(Event::SetLockMode { task, lock, mode })
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
        let mut taken = std::mem::take(&mut self.taken);
        set.take(bytes, &mut taken);
        let result = self.accesses(task, &taken).and_then(|()| self.erase(bytes));
        self.taken = taken;
        result
    }

    /// `bytes` become other memory without a free: a dead stack, for example. The caller has
    /// delivered the accesses that came before.
    pub fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.guarded(|stream| {
            stream.interrupt()?;
            if let Some(ordering) = &mut stream.sections {
                ordering.sections.erase(bytes);
            }
            stream.consumer.erase(bytes)
        })
    }

    /// Nobody has a handle to this future or promise any more. No event of a task, and so the end of no strand.
    pub fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.guarded(|stream| {
            stream.interrupt()?;
            stream.structure.dropped(what)?;
            stream.consumer.dropped(what)
        })
    }

    /// Nothing is parallel to the present: accesses need not be collected.
    pub fn quiescent(&self) -> bool {
        self.structure.quiescent()
    }

    /// The tasks and scopes of the program so far.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The running strand of `task`, if it has touched memory.
    pub fn strand(&self, task: TaskId) -> Option<StrandId> {
        self.structure.strand_of(task)
    }

    /// How many strands have touched memory.
    pub fn strand_count(&self) -> u32 {
        self.next_strand
    }

    /// The consumer.
    pub fn consumer(&self) -> &C {
        &self.consumer
    }

    /// The consumer, to be told that the program is over.
    pub fn consumer_mut(&mut self) -> &mut C {
        &mut self.consumer
    }

    /// The consumer, back.
    pub fn into_consumer(self) -> C {
        self.consumer
    }

    /// The running strand of `task`, which has a number from now on, and who is to hear of it.
    fn running(&mut self, task: TaskId) -> Result<(Strand<'_>, &mut C), Error> {
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
            locks: self.structure.locks(task),
            quiescent: self.structure.quiescent(),
            depth_first,
        };
        Ok((strand, &mut self.consumer))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Location;

    /// Counts what it is given, and takes nothing apart.
    #[derive(Default)]
    struct Whole {
        spans: usize,
    }

    impl Consumer for Whole {
        fn accesses(&mut self, _: &Strand, _: &[Run]) -> Result<(), Error> {
            panic!("a span was taken apart");
        }
        fn spans(&mut self, _: &Strand, spans: &[Span]) -> Result<(), Error> {
            self.spans += spans.len();
            Ok(())
        }
        fn event(&mut self, _: &Step<'_>) -> Result<(), Error> {
            Ok(())
        }
        fn erase(&mut self, _: Bytes) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn spans_reach_every_consumer_whole() {
        let site = SiteId::new(1).unwrap();
        let at = Location { line: 7, mask: u64::MAX };
        let first = Run { at, kind: AccessKind::Write, site, atomic: false };
        let spans = [Span { first, more: 1 << 20 }];
        let (mut one, mut two) = (Whole::default(), vec![Whole::default(), Whole::default()]);
        let mut stream = Stream::new((&mut one, &mut two));
        stream.spans(TaskId::MAIN, &spans).unwrap();
        assert_eq!([one.spans, two[0].spans, two[1].spans], [1, 1, 1]);
    }
}
