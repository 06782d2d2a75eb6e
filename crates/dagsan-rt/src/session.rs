//! The check of one process: the running task, its strand, the stream to the detector, and what was found.
//!
//! There is one session, made when the program starts and asked for the last time when it ends. It belongs to the thread
//! that runs the tasks: a thread *adopts* it with its outermost scope and gives it back when that closes, so that a test
//! harness may run its tests on a thread of their own. Between the two nothing is recorded. Other threads are not
//! checked.
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

use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::panic::Location as Place;
use std::time::Instant;

use dagsan_core::{
    AccessKind, Bytes, Detector, Dropped, Error, Event, Location, PromiseId, Run, Span, Stream, TaskId,
    TaskKind,
};
use dagsan_findings as findings;
use rustc_hash::FxHashMap;

use crate::image::Image;
use crate::log::{self, Outbox};
use crate::options::Options;
use crate::owned::Owned;
use crate::races::Found;
use crate::sites::{self, Origin, Sites};
use crate::state::{ACTIVE, OWNER, is_owner, this_thread};
use crate::sync::Sync as Synchronisation;
use crate::tasks::{self, Handle, Stack, Tasks};
use crate::threads;

/// See the module's documentation.
pub struct Session {
    pub options: Options,
    pub stream: Stream<Detector>,
    pub sites: Sites,
    pub tasks: Tasks,
    pub sync: Synchronisation,
    pub found: Found,
    pub image: Image,
    pub uses: findings::Uses,
    pub started: Instant,
    /// Why nothing is checked any more.
    pub stopped: Option<findings::End>,
    /// The first deadlock.
    pub deadlock: Option<findings::End>,
    /// The promises that the stream knows, by the numbers that the task runtime has for them.
    promises: FxHashMap<u64, PromiseId>,
    /// How many it has ever known.
    promise_count: u32,
    /// The program's thread-local variables, of the thread that owns the session.
    pub thread_locals: Range<usize>,
    /// What these alone lead to.
    pub owned: Owned,
    /// Can anything be parallel to what runs now? [`ACTIVE`] says so outside of the runtime.
    pub active: bool,
    /// Scopes of the main task that are open; the session is given back with the last.
    depth: u32,
    spans: Vec<Span>,
    /// Deliveries since memory was last looked at.
    deliveries: u32,
}

struct Holder(UnsafeCell<Option<Session>>);

// SAFETY: only `start`, before there are threads, `with`, for the thread that owns the session, and `last`, at the
// end of the program, look inside.
unsafe impl Sync for Holder {}

static SESSION: Holder = Holder(UnsafeCell::new(None));

thread_local! {
    /// Is this thread inside of the runtime? What it allocates there is the runtime's own.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, what the thread allocates and frees is the runtime's own.
pub struct Inside(());

impl Inside {
    /// None if the thread is inside already.
    #[inline]
    pub fn enter() -> Option<Inside> {
        (!INSIDE.replace(true)).then(|| Inside(()))
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Starts the session; to be called once, when the program starts.
pub fn start(options: Options) {
    let session = Session::new(options);
    // SAFETY: the program has not started: there is one thread, and it is here.
    unsafe { *SESSION.0.get() = Some(session) };
}

/// Does something with the session, if this thread owns it and is not inside of it already.
#[inline]
pub fn with<R>(action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    if !is_owner() {
        return None;
    }
    with_inside(&Inside::enter()?, action)
}

/// The same, for a thread that is inside.
pub fn with_inside<R>(_: &Inside, action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    if !is_owner() {
        return None;
    }
    // SAFETY: only the owner comes here, and it is not in [`with`], or there would be no other `Inside`.
    let session = unsafe { &mut *SESSION.0.get() };
    let session = session.as_mut()?;
    // What the runtime allocates may come from an allocator of the program's, which has hooks.
    ACTIVE.set(false);
    let result = action(session);
    ACTIVE.set(session.active);
    Some(result)
}

/// The same for a function that the program has called, and whose frame this is. What lies below is gone when it
/// returns: the next strand begins there.
#[inline]
pub fn called<R>(frame: usize, action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    with(|session| {
        session.tasks.begin_below(frame + RETURN);
        let result = action(session);
        session.tasks.begin_below(0);
        result
    })
}

/// The return address, and the frame pointer of the caller.
const RETURN: usize = 16;

/// Does something with the session at the end of the program, on whatever thread ends it. Not if this thread is inside
/// the runtime, unless `by_force`: the runtime itself has failed, and will not go on.
pub fn last<R>(by_force: bool, action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    let _inside = match Inside::enter() {
        None if !by_force => return None,
        inside => inside,
    };
    ACTIVE.set(false);
    // SAFETY: the program is at its end. If another thread still runs tasks (it exits while they run), what they do
    // is not recorded any more, as the session is not active; a delivery that is under way is the one
    // thing that may be disturbed, and that only makes a report of a program that was cut off in its middle.
    unsafe { (*SESSION.0.get()).as_mut() }.map(action)
}

/// Adopts the session for this thread's tasks, if nobody has it.
#[cold]
fn adopt() {
    if threads::claim(this_thread()) {
        let stack = threads::stack();
        with(|session| {
            threads::is_checked();
            session.adopted(stack);
        });
    }
}

/// A scope opens: the session may have to be adopted for it.
pub fn open_scope(frame: usize, event: impl FnOnce(TaskId) -> Event) {
    if !is_owner() {
        adopt();
    }
    called(frame, |session| {
        let task = session.tasks.current();
        if task == TaskId::MAIN {
            session.depth += 1;
        }
        session.event(event(task));
        session.tasks.open_scope();
    });
}

/// A scope closes; with the outermost one the session is given back.
pub fn close_scope(frame: usize, event: impl FnOnce(TaskId) -> Event) {
    let over = called(frame, |session| {
        let task = session.tasks.current();
        session.event(event(task));
        session.tasks.close_scope();
        if task == TaskId::MAIN {
            session.depth -= 1;
        }
        if session.depth == 0 {
            session.leave_workers();
        }
        session.depth == 0
    });
    if over == Some(true) {
        threads::give_back();
    }
}

impl Session {
    fn new(options: Options) -> Session {
        let image = Image::of_program();
        let detector =
            Detector::with_limit(options.engine, dagsan_core::order::Options::default(), options.max_races);
        Session {
            stream: Stream::new(detector),
            sites: Sites::new(image.clone(), options.stacks),
            tasks: Tasks::new(),
            sync: Synchronisation::new(options.hygiene),
            found: Found::default(),
            image,
            uses: findings::Uses::default(),
            started: Instant::now(),
            stopped: None,
            deadlock: None,
            promises: FxHashMap::default(),
            promise_count: 0,
            thread_locals: 0..0,
            owned: Owned::default(),
            active: false,
            depth: 0,
            spans: Vec::new(),
            deliveries: 0,
            options,
        }
    }

    fn adopted(&mut self, stack: Stack) {
        self.tasks.set_main_stack(stack);
        if self.options.hygiene.thread_locals {
            self.thread_locals = self.image.thread_locals(OWNER.get());
        }
    }

    /// The origin of an access: the low half of the code's address, and the frame of its function.
    pub fn origin(&mut self, code: u32, frame: usize) -> Origin {
        let stack = self.tasks.stack();
        let caller = if self.options.stacks {
            let mut frames = [0; sites::DEPTH];
            let count = sites::walk(frame, stack.low, stack.high, &mut frames);
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
        if self.options.stacks {
            // SAFETY: if there is a frame in the stack, it starts with that of its caller.
            let outer = if frames[0] == 0 { 0 } else { unsafe { *(frame as *const usize) } };
            self.origin(code, outer)
        } else {
            Origin { code, caller: frames[1] as u32 }
        }
    }

    /// A task event: ends the strand.
    #[inline]
    pub fn event(&mut self, event: Event) {
        self.end_strand(event);
        self.tasks.mark();
    }

    #[inline]
    fn end_strand(&mut self, event: Event) {
        if self.stopped.is_some() {
            return;
        }
        self.deliver();
        if !matches!(event, Event::Release { .. }) {
            self.release_changed();
        }
        self.send(event);
    }

    /// Tells the stream, and sees what follows.
    #[inline]
    fn send(&mut self, event: Event) {
        if let Err(error) = self.stream.event(event) {
            self.stop(&error);
            return;
        }
        let active = !self.stream.quiescent();
        if self.active && !active {
            self.tasks.forget(self.stream.structure().task_count());
            self.sync.forget();
            self.owned.clear();
            self.sites.journal.forget();
            // What was set is before all that comes, and so is a set that the stream has not heard of.
            for (_, promise) in std::mem::take(&mut self.promises) {
                self.dropped(Dropped::Promise(promise));
            }
        }
        self.active = active;
    }

    /// Creates a task and makes it the running one.
    #[inline]
    pub fn spawn(&mut self, kind: TaskKind, place: &'static Place<'static>, stack: Stack) -> Handle {
        let parent = self.tasks.current();
        let child = TaskId(self.stream.structure().task_count());
        self.event(Event::Spawn { parent, child, kind });
        if self.tasks.want_collection()
            && let Some(remembered) = self.stream.consumer().remembered_tasks()
        {
            self.tasks.collect(remembered);
        }
        self.tasks.spawn(child, parent, kind, place, stack)
    }

    /// The running task has ended.
    #[inline]
    pub fn task_end(&mut self) {
        let task = self.tasks.current();
        self.end_strand(Event::TaskEnd { task });
        self.sync.task_ended(task);
        let used = self.tasks.end();
        if self.options.hygiene.stacks && !used.is_empty() && self.stopped.is_none() {
            self.erase(used.start, used.len());
        }
    }

    /// `task` will run where the running one has had frames since the other was started. That they used the same
    /// addresses means nothing.
    pub fn set_stack(&mut self, task: Handle, stack: Stack) {
        self.deliver();
        let had = self.tasks.set_stack(task, stack);
        if self.options.hygiene.stacks && !had.is_empty() && self.stopped.is_none() {
            self.erase(had.start, had.len());
        }
    }

    /// Another task goes on.
    #[inline]
    pub fn resume(&mut self, task: Handle) {
        self.deliver();
        self.tasks.resume(task);
    }

    /// The running task sets a promise. The stream hears of a promise when it is set: it may have been made while nothing
    /// was checked.
    pub fn promise_set(&mut self, promise: u64) {
        let task = self.tasks.current();
        let number = PromiseId(self.promise_count);
        self.promise_count += 1;
        self.promises.insert(promise, number);
        self.event(Event::PromiseNew { task, promise: number });
        self.event(Event::PromiseSet { task, promise: number });
    }

    /// The running task gets a promise that has been set. One that the stream has not heard of was set while nothing
    /// was checked, and so before all that is.
    pub fn promise_get(&mut self, promise: u64) {
        if let Some(&promise) = self.promises.get(&promise) {
            let task = self.tasks.current();
            self.event(Event::PromiseGet { task, promise });
        }
    }

    /// Nobody has a handle to the promise any more.
    pub fn promise_drop(&mut self, promise: u64) {
        if let Some(promise) = self.promises.remove(&promise) {
            self.dropped(Dropped::Promise(promise));
        }
    }

    /// Nobody has a handle to the future any more. One that was made while nothing was checked is not known.
    pub fn future_drop(&mut self, future: Handle) {
        if future != Handle::MAIN {
            self.dropped(Dropped::Future(future.task()));
        }
    }

    fn dropped(&mut self, what: Dropped) {
        if self.stopped.is_none()
            && let Err(error) = self.stream.dropped(what)
        {
            self.stop(&error);
        }
    }

    /// Hands what the running strand has done so far to the detector.
    #[inline]
    pub fn deliver(&mut self) {
        if !log::is_empty() || self.sync.has_accesses() {
            self.deliver_all();
        }
    }

    #[inline(never)]
    fn deliver_all(&mut self) {
        let (own, locals) = (self.tasks.private(), self.thread_locals.clone());
        // Most lines are in none.
        let (mut lowest, mut highest) = (own.start.min(locals.start), own.end.max(locals.end));
        let (owned, touched) = (&self.owned, Cell::new(0));
        if !owned.is_empty() {
            let span = owned.span();
            (lowest, highest) = (lowest.min(span.start), highest.max(span.end));
        }
        let (lowest, highest) = (lowest as u64 >> 6, highest as u64 >> 6);
        let private = |line: u64| {
            if !(lowest..=highest).contains(&line) {
                return 0;
            }
            let variables = within(&locals, line);
            if variables != 0 {
                touched.set(touched.get() | tasks::bit_of(line));
            }
            let private = within(&own, line) | variables;
            if owned.is_empty() { private } else { private | owned.within(line) }
        };
        let (task, stream, stopped) = (self.tasks.current(), &mut self.stream, self.stopped.is_some());
        let (mut any, mut result) = (false, Ok(()));
        let mut outbox = Outbox::new(std::mem::take(&mut self.spans), |spans| {
            if !stopped && result.is_ok() {
                any = true;
                result = stream.spans(task, spans);
            }
        });
        log::take(&mut self.sites, &mut outbox, private);
        self.sync.take(&mut self.sites, &mut outbox, private);
        self.spans = outbox.close();
        self.tasks.touch(touched.get());
        let strand = if any { self.stream.strand(task) } else { None };
        self.sites.journal.end_piece(strand);
        if any {
            self.delivered(result);
        }
    }

    /// Sees what came of a delivery.
    pub fn delivered(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.stop(&error);
        }
        if self.stream.consumer().races().len() > self.found.known() {
            self.withdraw_owned();
            self.found.more(self.stream.consumer().races(), &mut self.sites, &self.tasks, &self.image);
        }
        self.deliveries += 1;
        if self.options.max_memory != 0 && self.deliveries.is_multiple_of(1024) {
            let (order, accesses) = self.stream.consumer().memory();
            let held = (order + accesses) >> 20;
            if held > self.options.max_memory {
                let limit = self.options.max_memory;
                let text = format!(
                    "the detector holds {held} MiB, and max_memory={limit}; raise it, or use a smaller input"
                );
                self.give_up(findings::End::OutOfMemory(text));
            }
        }
    }

    /// The running task frees a block, from the frame at `frame`: a write to all of it. When its addresses are used
    /// again they are other memory; if the block goes back to the system, nobody will tell when.
    pub fn free(&mut self, start: usize, size: usize, to_system: bool, frame: usize) {
        if self.stopped.is_some() || size == 0 || !self.options.hygiene.heap {
            return;
        }
        let Ok(bytes) = Bytes::new(start as u64, size as u64) else { return };
        self.deliver();
        if self.owned.forget(start) {
            return self.sync.freed(start, size);
        }
        let stack = self.tasks.stack();
        let mut frames = [0; sites::DEPTH];
        let count = sites::walk(frame, stack.low, stack.high, &mut frames);
        let site = self.sites.stack_number(&frames[..count]);
        let site = self.sites.number(Origin::free(site), false);
        let run =
            |(line, mask)| Run { at: Location { line, mask }, kind: AccessKind::Write, site, atomic: false };
        let (task, stream) = (self.tasks.current(), &mut self.stream);
        let mut result = Ok(());
        let mut outbox = Outbox::new(std::mem::take(&mut self.spans), |spans| {
            if result.is_ok() {
                result = stream.spans(task, spans);
            }
        });
        bytes.lines().for_each(|part| outbox.push(run(part)));
        self.spans = outbox.close();
        if to_system && result.is_ok() {
            result = self.stream.erase(bytes);
        }
        self.delivered(result);
        self.sync.freed(start, size);
    }

    /// A block comes into being: what was done to its addresses was done to other memory.
    pub fn allocated(&mut self, start: usize, size: usize) {
        self.owned.forget(start);
        if self.active && self.options.hygiene.heap {
            self.erase(start, size);
        }
    }

    pub fn erase(&mut self, start: usize, size: usize) {
        let Ok(bytes) = Bytes::new(start as u64, size as u64) else { return };
        if let Err(error) = self.stream.erase(bytes) {
            self.stop(&error);
        }
    }

    /// The stream takes nothing more.
    #[cold]
    pub fn stop(&mut self, error: &Error) {
        let end = match error {
            Error::Unsupported { .. } | Error::NotDepthFirst { .. } => {
                findings::End::Refused(error.to_string())
            }
            Error::TooMany(_) => findings::End::OutOfMemory(error.to_string()),
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

/// The bytes of a line that lie in a range.
#[inline]
pub fn within(range: &Range<usize>, line: u64) -> u64 {
    let start = (line as usize) << 6;
    if start >= range.end || start + 64 <= range.start {
        return 0;
    }
    let mut mask = u64::MAX;
    if start < range.start {
        mask &= u64::MAX << (range.start - start);
    }
    if start + 64 > range.end {
        mask &= u64::MAX >> (start + 64 - range.end);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_line_in_a_range() {
        assert_eq!(within(&(128..256), 1), 0);
        assert_eq!(within(&(128..256), 2), u64::MAX);
        assert_eq!(within(&(130..256), 2), u64::MAX << 2);
        assert_eq!(within(&(130..134), 2), 0b11_1100);
        assert_eq!(within(&(100..129), 2), 1);
        assert_eq!(within(&(0..0), 0), 0);
    }
}
