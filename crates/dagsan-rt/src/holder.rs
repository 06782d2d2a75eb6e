//! Who is in the session: one thread at a time, and at last the one that ends the program.
//!
//! ```text
//!   owner    with ─► [ held ] ─► with ─► [ held ] ─► …          the thread of the tasks, for a moment each
//!   others   ·  (pass by)
//!   the end  last ── waits ─────────────────────► [ held …      exit, abort, no memory: on any thread, and for good
//! ```
//!
//! There is one session that detects, the *root*. A part of the program that runs ahead (`part`) has a session of its own, which its thread may be in
//! while another thread is in the root's.
//!
//! Whoever ends the program waits for the owner to leave, for some seconds at most: the owner may wait in turn for
//! something that the ending thread has, such as the allocator that it was aborted in. Then nothing is reported, and
//! that is said.

use std::cell::{Cell, UnsafeCell};
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::part::{self, Part};
use crate::session::Session;
use crate::state::{Thread, root, set_active, this_thread, worker};
use crate::turns;

/// A session, and who is in it.
pub struct Holder {
    session: UnsafeCell<Option<Session>>,
    /// The thread that is in the session: its owner, for a moment, or at last the one that ends the program, which never
    /// leaves it.
    held: Thread,
    /// What it is a session of, if not of the program.
    pub part: Option<Part>,
}

// SAFETY: only who has made it, while nobody else knows it, and the thread that has taken `held` look inside; and that thread
// again, if it was cut off there, to read ([`Last::Interrupted`]).
unsafe impl Sync for Holder {}

static ROOT: Holder = Holder { session: UnsafeCell::new(None), held: Thread::nobody(), part: None };

impl Holder {
    /// Of the session of a part.
    pub fn of_part(session: Session, part: Part) -> Holder {
        Holder { session: UnsafeCell::new(Some(session)), held: Thread::nobody(), part: Some(part) }
    }

    /// Of the session that detects.
    pub fn root() -> &'static Holder {
        &ROOT
    }

    /// The session, when nobody else has the holder any more.
    pub fn into_session(self) -> Option<Session> {
        self.session.into_inner()
    }

    /// Goes into the session, if nobody is there.
    #[inline]
    fn enter(&self) -> Result<Held<'_>, usize> {
        self.held.take().map(|()| Held(self))
    }

    /// Does something with the session of somebody who waits outside, for as long as it takes. None if the program ends.
    pub fn visit<R>(&self, _: &Inside, action: impl FnOnce(&mut Session) -> R) -> Option<R> {
        self.enter().ok()?.session().map(action)
    }
}

/// Is that thread in the session that detects?
pub fn held_by(thread: usize) -> bool {
    ROOT.held.get() == thread
}

/// While it lives, this thread is in the session.
struct Held<'a>(&'a Holder);

impl Held<'_> {
    #[inline]
    fn session(&mut self) -> Option<&mut Session> {
        // SAFETY: this thread has taken `held`, and gives it back when this is dropped.
        unsafe { (*self.0.session.get()).as_mut() }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.held.leave();
    }
}

thread_local! {
    /// Is this thread inside of the runtime? What it allocates there is the runtime's own.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Where it is written whether this thread is inside of the runtime, for others to look at.
pub fn inside_flag() -> usize {
    INSIDE.with(|inside| inside.as_ptr().addr())
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

impl Inside {
    /// Leaves, does something, and comes back.
    pub fn leave_for<R>(&self, action: impl FnOnce() -> R) -> R {
        INSIDE.set(false);
        let result = action();
        INSIDE.set(true);
        result
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
    let session = Session::new(options, root());
    // SAFETY: the program has not started: there is one thread, and it is here.
    unsafe { *ROOT.session.get() = Some(session) };
}

/// Does something with the session, if this thread owns it and is not inside of it already.
#[inline]
pub fn with<R>(action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    if !turns::is_mine() {
        return None;
    }
    let inside = Inside::enter()?;
    let result = with_inside(&inside, action);
    drop(inside);
    if turns::are_taken() {
        turns::go_on();
    }
    result
}

/// The same, for a thread that is inside. Nothing is done any more when the program ends.
pub fn with_inside<R>(_: &Inside, action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    let worker = worker();
    if !worker.is_mine() {
        return None;
    }
    let Ok(mut held) = worker.holder().enter() else {
        // Another thread ends the program, and what this one would tell, that a block is other memory from now on for instance,
        // is not heard. What it does from here on must not be either.
        worker.set_active(false);
        return None;
    };
    let session = held.session()?;
    // What the runtime allocates may come from an allocator of the program's, which has hooks.
    worker.set_active(false);
    let result = action(session);
    worker.set_active(session.active);
    Some(result)
}

/// To be called where code of the program, or of a task runtime, has called: if who runs ahead should wait for its order before it goes on, it does. Not by the allocator,
/// which the standard library calls with locks of its own.
#[inline(always)]
pub fn in_order_if_wanted() {
    if worker().wants_order() {
        wait_for_order();
    }
}

/// To be called before anything that orders tasks by other means than fork and join, or that others may notice: who runs ahead waits until all that
/// comes before has been told.
#[inline(always)]
pub fn in_order() {
    if worker().is_ahead() {
        wait_for_order();
    }
}

#[cold]
fn wait_for_order() {
    if let Some(inside) = Inside::enter() {
        part::fall_in(&inside);
    }
}

/// The session at the end of the program.
pub enum Last {
    /// It is this thread's for good: nothing is recorded any more.
    Whole(&'static mut Session),
    /// This thread was cut off inside of it, by an allocation that failed or an abort, and will not go on there. It can be
    /// read, as it was between two steps.
    Interrupted(&'static Session),
    /// Another thread is inside, and does not leave.
    Busy,
}

/// Tries until there is an answer, for five seconds at most.
pub fn be_patient<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    // By the clock: a nap takes as long as the machine likes.
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let answer = attempt();
        if answer.is_some() || Instant::now() >= until {
            return answer;
        }
        let step = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
        // SAFETY: a plain call.
        unsafe { libc::nanosleep(&raw const step, std::ptr::null_mut()) };
    }
}

/// Takes the session from whatever thread has it, when that one leaves it, and keeps it: the program is at its end.
pub fn last() -> Last {
    // What the reporting thread allocates is the runtime's own from here on.
    INSIDE.set(true);
    let mine = be_patient(|| match ROOT.held.take() {
        Ok(()) => Some(true),
        Err(holder) if holder == this_thread() => Some(false),
        Err(_) => None,
    });
    set_active(false);
    // SAFETY: this thread has taken `held` just now, for good, if it is to write. If it had it before, whoever has a `&mut`
    // is further out on this thread, and never comes back to it: who fails to allocate and who aborts ends
    // the program after the report. Nobody writes any more.
    unsafe {
        match mine {
            Some(true) => (*ROOT.session.get()).as_mut().map_or(Last::Busy, Last::Whole),
            Some(false) => (*ROOT.session.get()).as_ref().map_or(Last::Busy, Last::Interrupted),
            None => Last::Busy,
        }
    }
}
