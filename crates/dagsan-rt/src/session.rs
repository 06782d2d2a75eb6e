//! The check of one process: the running task, its strand, the stream to the detector, and what was found.
//!
//! There is one session, made when the program starts and asked for the last time when it ends. It belongs to the thread
//! that runs the tasks: a thread *adopts* it with its outermost scope and gives it back when that closes, so that a test
//! harness may run its tests on a thread of their own. Between the two nothing is recorded. When a task creates a thread, both take turns
//! from there on, and the session belongs to whoever has the turn (`turns`). Threads that take none are not checked.
//!
//! # The stacks of tasks
//!
//! A task runs on a stack of its own, or on that of the thread. What a strand does to frames that did not exist when it
//! began is nobody else's business: nobody can know these addresses, unless they are given away, and that is an event,
//! which ends the strand. So of the stack only what is above the *mark* counts, the stack pointer at the strand's
//! beginning, which is that of the code that told of the event:
//!
//! ```text
//!   high ┌──────────────────────────┐
//!        │ frames of before          │   other tasks may have references to them: recorded
//!   mark ├──────────────────────────┤
//!        │ frames of this strand     │   private: dropped
//!    low └──────────────────────────┘
//! ```
//!
//! Leaf tasks never record anything of their own stack. When a task ends, the history of its stack down to the lowest
//! mark is erased: the next task will use the same addresses. So is that of frames where a task that was started before
//! them is to run.

use std::ops::Range;
use std::time::Instant;

use dagsan_core::{Construct, Detector, Error, Event, Span, Stream, TaskId, TaskKind};
use dagsan_findings as findings;

use crate::fresh::Fresh;
pub use crate::holder::{
    Inside, Last, be_patient, in_order, in_order_if_wanted, last, start, with, with_inside,
};
use crate::image::Image;
use crate::log;
use crate::nest::Nest;
use crate::offers::Offer;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::owned::Owned;
use crate::pass::Unseen;
use crate::private::Private;
use crate::promises::Promises;
use crate::quarantine::Quarantine;
use crate::races::Found;
use crate::shared::{self, Shared};
use crate::sites::{self, Origin, Sites};
use crate::state::Worker;
use crate::sync::Sync as Synchronisation;
use crate::tasks::{Birth, Handle, Shadow, Stack, Tasks};
use crate::tiny::Tiny;
use crate::turns;
use crate::watched::Watched;
use crate::withheld::Withheld;

/// See the module's documentation.
pub struct Session {
    pub options: Options,
    pub stream: Stream<Watched>,
    pub sites: Sites,
    pub tasks: Tasks,
    pub sync: Synchronisation,
    /// What is a thread's own.
    pub nest: Nest,
    pub found: Found,
    pub image: Image,
    pub uses: findings::Uses,
    pub unseen: Vec<Unseen>,
    pub started: Instant,
    /// Why nothing is checked any more.
    pub stopped: Option<findings::End>,
    /// The first deadlock.
    pub deadlock: Option<findings::End>,
    pub promises: Promises,
    /// What the stream has not heard of yet.
    pub tiny: Tiny,
    /// What need not be recorded.
    pub shared: Shared,
    /// The blocks that the running strand has allocated.
    pub fresh: Fresh,
    /// Those that were freed lately.
    pub quarantine: Quarantine,
    /// The program's thread-local variables, of the thread that owns the session.
    pub thread_locals: Range<usize>,
    /// What these alone lead to.
    pub owned: Owned,
    /// Can anything be parallel to what runs now? `ACTIVE` says so outside of the runtime.
    pub active: bool,
    /// Scopes of the main task that are open; the session is given back with the last.
    pub depth: u32,
    /// Is it kept, because of a task that only the end of the program joins?
    pub kept: bool,
    /// The call stack of the first of these.
    pub call: Option<u32>,
    /// Room for spans on their way to the detector.
    pub spans: Vec<Span>,
    /// How many strands, or lines of contracted ones, were told since memory was last looked at.
    deliveries: u64,
    /// What others may run, the eldest first.
    pub offers: Vec<*mut Offer>,
    /// What was freed, if this is a part.
    pub freed: Withheld,
    /// How many threads are to run tasks, until they are there.
    pub hires: Option<usize>,
}

/// Does something with the session for a function that the program has called, and whose frame this is. What lies below is gone when it
/// returns: the next strand begins there.
#[inline]
pub fn called<R>(frame: usize, action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    let result = with(|session| called_from(session, frame, action));
    in_order_if_wanted();
    result
}

/// The same, for a thread that is inside of the runtime.
pub fn called_inside<R>(inside: &Inside, frame: usize, action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    with_inside(inside, |session| called_from(session, frame, action))
}

#[inline]
fn called_from<R>(session: &mut Session, frame: usize, action: impl FnOnce(&mut Session) -> R) -> R {
    session.tasks.begin_below(frame + RETURN);
    let result = action(session);
    session.tasks.begin_below(0);
    result
}

/// The return address, and the frame pointer of the caller.
const RETURN: usize = 16;

impl Session {
    /// At the start of the program, with the tables of this worker.
    pub fn new(options: Options, worker: &'static Worker) -> Session {
        let image = Image::of_program();
        let detector =
            Detector::with_limit(options.engine, dagsan_core::order::Options::default(), options.max_races);
        let strands = if options.exact { options.graph } else { 0 };
        let mut stream = Stream::new(Watched::new(detector, strands));
        // Others read locks as mutual exclusion alone.
        if options.engine.supports(Construct::Atomic) {
            stream.order_sections();
        }
        if options.repeats && !options.exact {
            stream.leave_out_repeats();
        }
        Session {
            stream,
            sites: Sites::new(image.clone(), sites::depth(options.stacks)),
            tasks: Tasks::new(),
            sync: Synchronisation::new(options.hygiene),
            nest: Nest::default(),
            found: Found::default(),
            image,
            uses: findings::Uses::default(),
            unseen: Vec::new(),
            started: Instant::now(),
            stopped: None,
            deadlock: None,
            promises: Promises::default(),
            tiny: Tiny::new(options.tiny && !options.exact),
            shared: shared::new(options.shared_reads && !options.exact, worker),
            fresh: Fresh::new(),
            quarantine: Quarantine::new(),
            thread_locals: 0..0,
            owned: Owned::default(),
            active: false,
            depth: 0,
            kept: false,
            call: None,
            spans: Vec::new(),
            deliveries: 0,
            offers: Vec::new(),
            freed: Withheld::default(),
            // Without the pass nobody tells of the standard library's own locks, under which a part could wait for its order.
            hires: (options.workers > 1 && !options.exact && cfg!(feature = "pass"))
                .then_some(options.workers),
            options,
        }
    }

    /// The origin of an access: the low half of the code's address, and the frame of its function.
    pub fn origin(&mut self, code: u32, frame: usize) -> Origin {
        let stack = self.tasks.stack();
        let caller = if let Some(depth) = self.sites.depth() {
            let mut frames = [0; sites::DEPTH];
            let count = sites::walk(frame, stack.low, stack.high, &mut frames[..depth]);
            self.sites.stack_number(&frames[..count])
        } else {
            let mut caller = [0];
            sites::walk(frame, stack.low, stack.high, &mut caller);
            caller[0] as u32
        };
        Origin { code, caller }
    }

    /// The origin of a call: `frame` is that of the function that was called.
    pub fn origin_of_call(&mut self, frame: usize) -> Origin {
        let stack = self.tasks.stack();
        let mut frames = [0; 2];
        sites::walk(frame, stack.low, stack.high, &mut frames);
        let code = log::code(frames[0]);
        if self.sites.depth().is_some() {
            // SAFETY: if there is a frame in the stack, it starts with that of its caller.
            let outer = if frames[0] == 0 { 0 } else { unsafe { *(frame as *const usize) } };
            self.origin(code, outer)
        } else {
            Origin { code, caller: frames[1] as u32 }
        }
    }

    /// The number of the whole call stack of a call: `frame` is that of the function that was called.
    pub fn stack_of_call(&mut self, frame: usize) -> u32 {
        let stack = self.tasks.stack();
        let mut frames = [0; sites::DEPTH];
        let count = sites::walk(frame, stack.low, stack.high, &mut frames);
        self.sites.stack_number(&frames[..count])
    }

    /// A task event: ends the strand.
    #[inline]
    pub fn event(&mut self, event: Event) {
        self.event_of_other(event);
        self.tasks.mark();
    }

    /// The same, perhaps of another task than the running one.
    #[inline]
    pub fn event_of_other(&mut self, event: Event) {
        self.end_strand(event);
        if self.tasks.shadow() != Shadow::Itself {
            self.shadow_follows(event);
        }
    }

    #[inline]
    fn end_strand(&mut self, event: Event) {
        if self.stopped.is_some() {
            return;
        }
        self.deliver();
        self.fresh.end_strand();
        self.release_changed();
        self.send(event);
    }

    /// Tells the stream, and sees what follows.
    #[inline]
    pub fn send(&mut self, event: Event) {
        if let Err(error) = self.stream.event(event) {
            self.stop(&error);
            return;
        }
        self.shared.event(&event);
        self.set_active();
    }

    /// Can anything be parallel to what comes? If not, the past is forgotten.
    #[inline]
    pub fn set_active(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        let active = !self.stream.quiescent() || self.tiny.is_parallel();
        if self.active && !active {
            self.mention_around();
            self.tiny.forget();
            self.shared.quiesce(0);
            self.tasks.forget(self.stream.structure().task_count());
            self.nest.forget();
            self.sync.forget();
            self.owned.clear();
            self.sites.journal.forget();
            self.forget_promises();
        }
        self.active = active;
    }

    /// The running task joins what it has spawned.
    #[inline]
    pub fn sync(&mut self) {
        if !self.sync_tiny() {
            let task = self.told();
            self.event(Event::Sync { task });
        }
        self.shared.sync();
    }

    /// Is the running task in a scope?
    pub fn in_scope(&self) -> bool {
        if self.tasks.is_main() {
            self.depth > 0
        } else {
            !self.tasks.is_thread() || self.tasks.has_open_scope()
        }
    }

    /// Creates a task that only the end of the program joins: what this thread does is looked at until then.
    pub fn spawn_detached(&mut self, birth: Birth, stack: Stack) -> Handle {
        self.keep();
        // Outside of every finish it is as any other.
        let outside = self.tasks.innermost_finish() == 0;
        self.spawn(if outside { TaskKind::Async } else { TaskKind::Detached }, birth, stack)
    }

    /// What this thread does is looked at until the program ends.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Creates a task and makes it the running one.
    #[inline]
    pub fn spawn(&mut self, kind: TaskKind, birth: Birth, stack: Stack) -> Handle {
        if let Some(handle) = self.spawn_tiny(kind, birth, stack) {
            self.shared.spawn(kind, self.tasks.slot());
            self.share();
            return handle;
        }
        let parent = self.told();
        let child = TaskId(self.stream.structure().task_count());
        self.deliver_before_spawn();
        self.event(Event::Spawn { parent, child, kind });
        self.forget_births();
        self.begin_on(stack);
        self.tasks.born(parent, birth);
        let handle = self.tasks.spawn(child, kind, stack);
        self.shared.spawn(kind, self.tasks.slot());
        self.share();
        handle
    }

    /// Births of tasks that nobody can speak of are forgotten, when there are many.
    pub fn forget_births(&mut self) {
        if self.tasks.want_collection()
            && let Some(remembered) = self.stream.consumer().remembered_tasks()
        {
            self.tasks.collect(remembered);
        }
    }

    /// A task begins there, and there is nobody else: words that were there were those of frames that are gone.
    #[inline]
    pub fn begin_on(&mut self, stack: Stack) {
        if self.options.hygiene.stacks {
            let low = if stack.low == 0 { self.tasks.stack().low } else { stack.low };
            self.forget_words(low..stack.high);
        }
    }

    /// The running task has ended.
    #[inline]
    pub fn task_end(&mut self) {
        if self.end_tiny() {
            return self.shared.task_end();
        }
        let task = self.told();
        self.end_strand(Event::TaskEnd { task });
        if let Shadow::Other(shadow) = self.tasks.shadow()
            && self.stopped.is_none()
        {
            self.send(Event::TaskEnd { task: shadow });
        }
        self.shared.task_end();
        self.sync.task_ended(task);
        let (stack, used) = (self.tasks.stack(), self.tasks.used());
        self.tasks.end();
        if self.options.hygiene.stacks && self.stopped.is_none() {
            self.forget_words(stack.low..stack.high);
            if !used.is_empty() {
                self.erase(used.start, used.len());
            }
        }
    }

    /// `task` will run where the running one has had frames since the other was started. That they used the same
    /// addresses means nothing.
    pub fn set_stack(&mut self, task: Handle, high: usize) {
        self.tell();
        self.deliver();
        let had = self.tasks.set_stack(task, high);
        if self.options.hygiene.stacks && self.stopped.is_none() {
            self.forget_words(self.tasks.stack().low..high);
            if !had.is_empty() {
                self.erase(had.start, had.len());
            }
        }
    }

    /// Another task goes on.
    #[inline]
    pub fn resume(&mut self, task: Handle) {
        if self.tasks.is(task) {
            return;
        }
        self.tell();
        self.deliver();
        self.fresh.end_strand();
        self.tasks.resume(task);
        self.shared.turn(self.tasks.slot());
        self.give_back_lost();
    }

    /// The thread-local variables that tasks meet in only because they run on one thread. What a thread does outside of all scopes, or as one of
    /// a team, it does by itself, and others may have the address of its variables.
    #[inline]
    pub fn worker_variables(&self) -> Range<usize> {
        let by_itself = turns::are_taken() && (self.tasks.is_of_team() || !self.in_scope());
        if by_itself { 0..0 } else { self.thread_locals.clone() }
    }

    /// Hands what the running strand has done so far to the detector.
    #[inline]
    pub fn deliver(&mut self) {
        if !log::is_empty() || self.sync.has_accesses() {
            self.deliver_all(true);
        }
    }

    /// The same before a spawn, which would have what is kept forgotten at once (`shared`).
    #[inline]
    pub fn deliver_before_spawn(&mut self) {
        if !log::is_empty() || self.sync.has_accesses() {
            self.deliver_all(false);
        }
    }

    #[inline(never)]
    fn deliver_all(&mut self, keeps: bool) {
        self.take_again(None);
        if self.strand_was_tiny(keeps) {
            return;
        }
        if self.tasks.shadow() != Shadow::Itself {
            return self.deliver_parted();
        }
        let (task, stopped) = (self.tasks.current(), self.stopped.is_some());
        let (mut any, mut result) = (false, Ok(()));
        let whole = !stopped && self.stream.in_section(task);
        let private = Private::new(self.tasks.private(), self.worker_variables(), &self.owned);
        // What a section touches is compared with what others do.
        let (keeps, shares) = (keeps && !whole, !self.shared.is_empty());
        let (stream, shared) = (&mut self.stream, &mut self.shared);
        let mut outbox = Outbox::new(std::mem::take(&mut self.spans), whole, |spans| {
            if !stopped && result.is_ok() {
                any = true;
                let keeps = keeps && shared::are_worth_it(spans, stream.consumer());
                result = stream.spans(task, spans);
                shared::delivered(shared, spans, keeps, stream.consumer());
            }
        });
        log::take(&mut self.sites, &mut outbox, &private, shares);
        self.sync.bring(&mut self.sites, &mut outbox, |line| private.of(line));
        self.spans = outbox.close();
        let (now, only) = (self.stream.consumer(), |at| self.stream.consumer().only_atomic(at));
        self.sync.told(&mut self.sites, &mut self.shared, any && keeps, now, only);
        self.touch_variables(private.touched());
        self.sites.journal.end_piece(if any { self.stream.strand(task) } else { None });
        if any {
            self.delivered(result);
        }
    }

    /// Has the detector found something that was not looked at?
    #[inline]
    pub fn has_news(&self) -> bool {
        let detector = self.stream.consumer();
        detector.races().len() > self.found.known() || detector.meetings().len() > self.found.meetings.len()
    }

    /// Sees what came of a delivery.
    pub fn delivered(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.stop(&error);
        }
        if self.stream.consumer().races().len() > self.found.known() {
            self.withdraw_owned();
            let races = self.stream.consumer().races();
            self.found.more(races, &mut self.sites, &self.tasks, &self.image, self.call);
        }
        let met = self.stream.consumer().meetings().len();
        if met > self.found.meetings.len() {
            self.found.meetings.resize(met, self.call);
        }
        self.look_at_memory(1);
    }

    /// So many strands, or lines of contracted ones, have been told: does the detector hold too much by now?
    pub fn look_at_memory(&mut self, told: u64) {
        self.deliveries += told;
        if self.options.max_memory != 0 && self.deliveries >= 128 {
            self.deliveries = 0;
            let (order, accesses) = self.stream.consumer().memory();
            let held = (order + accesses) >> 20;
            if held > self.options.max_memory {
                let limit = self.options.max_memory;
                let text = format!(
                    "the detector holds {held} MiB, and max_memory={limit}; raise it, or use a smaller input"
                );
                self.give_up(findings::End::CutShort(text));
            }
        }
    }

    /// The stream takes nothing more.
    #[cold]
    pub fn stop(&mut self, error: &Error) {
        let end = match error {
            Error::Unsupported { .. } | Error::NotDepthFirst { .. } => {
                findings::End::Refused(error.to_string())
            }
            Error::TooMany(_) => findings::End::CutShort(error.to_string()),
            _ => findings::End::Broken(error.to_string()),
        };
        self.give_up(end);
    }

    /// Nothing is checked from here on.
    #[cold]
    pub fn give_up(&mut self, end: findings::End) {
        self.stopped.get_or_insert(end);
        self.active = false;
    }
}
