//! A part of the program that runs ahead: on another thread, while the session is still with what comes before it.
//!
//! ```text
//!   serial order      …  first of a join ─────────────────►│ second of the join ───────►│ sync …
//!
//!   thread 1, root    …  runs it, tells the detector        │ waits, tells what was recorded
//!   thread 2, part         runs the second: recorded ──────►│
//! ```
//!
//! **The verdict is that of the serial run.** In a program of forks and joins the graph does not depend on who runs what. So a part need not
//! wait for what comes before it, as long as it does nothing else than fork, join and access memory: all of that is recorded (`recorder`), and told to the session
//! in the order in which one thread would have told it. What orders tasks by other means, or shows what others do (locks, atomic operations, promises, threads), means what the
//! order of the run makes of it. Whoever comes to such an operation *falls in* first: it waits until all that comes before has been told, has its own recording told, and goes on as
//! the root. So these operations are performed in the serial order, and the next run has the same.
//!
//! While a part runs, whatever is outside of it has one order to all of it: nothing in it leads out, or in. So it needs to know nothing about what others do.
//!
//! **Workers.** A thread that runs a part does so for a worker of its own, with tables of its own. As the root it runs for the root's worker, whoever it is: there
//! is one such thread at a time.
//!
//! **Memory.** A block that a part frees may not come to others before that is told, or what they do to it would be told before the free. It
//! waits with the part, which may use it again (`withheld`).
//!
//! What a thread-local variable leads to is a worker's own (`owned`), which is asked on its thread. So a part that has touched such a variable falls in.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::delays;
use crate::holder::{Holder, Inside, with_inside};
use crate::kept_ranges;
use crate::offers::{self, Offer};
use crate::recorder::Recorder;
use crate::session::Session;
use crate::state::{EXACT, Worker, root, run_for, this_thread, worker};
use crate::system;
use crate::tasks::{Shadow, Stack, Stood};
use crate::turns;

/// What a session is a session of, if not of the program.
#[derive(Debug)]
pub struct Part {
    /// How it came to whoever runs it.
    offer: *const Offer,
    /// What the thread had used of its processor when it began.
    began: Duration,
    /// Has it been told so far, and goes on as the root? What its main task was before, then. Changed by the thread that falls in, while that of the part
    /// waits, or is the same.
    stood: Cell<Option<Stood>>,
}

impl Part {
    pub fn offer(&self) -> *const Offer {
        self.offer
    }

    /// It ends, or falls in: that was what it could do on its own.
    fn was_ahead(&self, fell_in: bool) {
        // SAFETY: who has offered it waits for it, or runs what comes before.
        unsafe { (*self.offer).gain() }.ran(system::time_of_thread().saturating_sub(self.began), fell_in);
    }

    /// Does it go on as the root?
    pub fn has_stood(&self) -> bool {
        self.stood.get().is_some()
    }
}

/// Parts have numbers, to tell the handles of their tasks apart.
fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Relaxed)
}

/// A session that nobody uses.
struct Unused(Session);

// SAFETY: it belongs to whoever takes it; nothing in it is of a thread.
unsafe impl Send for Unused {}

/// Sessions of parts that are over, to be used again.
static UNUSED: Mutex<Vec<Unused>> = Mutex::new(Vec::new());

fn unused(session: Session) {
    UNUSED.lock().unwrap_or_else(PoisonError::into_inner).push(Unused(session));
}

/// Begins a part in a finish, on this thread, which runs for this worker, and on this stack.
pub fn begin(
    inside: &Inside,
    finish: u32,
    offer: *const Offer,
    worker: &'static Worker,
    stack: Stack,
) -> *mut Holder {
    let again = UNUSED.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut session = again.map_or_else(|| Session::new(crate::start::options(), worker), |unused| unused.0);
    session.begin_part(finish, number(), stack, worker);
    let part = Part { offer, began: system::time_of_thread(), stood: Cell::new(None) };
    let holder = Box::into_raw(Box::new(Holder::of_part(session, part)));
    // SAFETY: it lives until the part was told, which is after its end.
    unsafe { worker.set_holder(holder) };
    worker.owner.set(this_thread());
    with_inside(inside, |_| ());
    holder
}

/// The part of this thread has ended.
pub fn end(inside: &Inside, holder: &Holder, worker: &'static Worker) {
    with_inside(inside, Session::pause);
    if worker.wants_order() {
        fall_in(inside);
    }
    let stood = holder.part.as_ref().and_then(|part| part.stood.get());
    if stood.is_none() {
        holder.part.iter().for_each(|part| part.was_ahead(false));
    }
    with_inside(inside, |session| {
        session.erase_own_stack();
        if let Some(stood) = stood {
            session.tasks.stand_again(stood);
        }
    });
    if stood.is_some() {
        offers::stands_no_longer(inside, holder);
        leave_root(inside);
    }
    run_for(worker);
    // Nothing is kept in the worker's tables any more.
    holder.visit(inside, |session| {
        session.stream.consumer_mut().recorder().into_iter().for_each(Recorder::leave_worker);
        session.shared.quiesce(0);
        session.sync.forget();
        kept_ranges::forget_all();
    });
    worker.set_active(false);
    worker.owner.leave();
    // SAFETY: none lives for ever.
    unsafe { worker.set_holder(ptr::null_mut()) };
}

/// This thread, which runs as the root or ahead, is about to wait for a part.
pub fn pause(inside: &Inside) {
    with_inside(inside, Session::pause);
    if worker().wants_order() {
        fall_in(inside);
    }
    if worker().is_ahead() {
        worker().set_active(false);
    } else {
        leave_root(inside);
    }
}

/// What this thread, which ran for `here`, waited for is done: goes on, and tells it if that was not done.
pub fn go_on(inside: &Inside, here: &'static Worker, holder: Holder) {
    let has_stood = |holder: &Holder| holder.part.as_ref().is_some_and(Part::has_stood);
    // Its own part may have been told meanwhile, and goes on as the root.
    if !here.is_ahead() || has_stood(here.holder()) {
        become_root(inside);
    } else {
        run_for(here);
    }
    let told = has_stood(&holder);
    with_inside(inside, |session| {
        if let Some(mut part) = holder.into_session() {
            if !told {
                session.tell_part(&mut part);
            }
            unused(part);
        }
    });
}

/// The part of this thread waits for its order, and goes on as the root.
#[cold]
pub fn fall_in(inside: &Inside) {
    let here = worker();
    let Some(part) = here.holder().part.as_ref() else { return };
    part.was_ahead(true);
    let offer = part.offer();
    with_inside(inside, Session::pause);
    here.set_active(false);
    let holder = ptr::from_ref(here.holder()).cast_mut();
    delays::perhaps();
    // SAFETY: the part of this thread.
    let chain = unsafe { offers::wait_for_order(inside, holder, offer) };
    become_root(inside);
    with_inside(inside, |root| {
        for &holder in &chain {
            // SAFETY: of this thread, or of one that waits for it.
            let holder = unsafe { &*holder };
            holder.visit(inside, |session| {
                let stood = root.go_on_as(session);
                holder.part.as_ref().map(|part| part.stood.set(Some(stood)))
            });
        }
    });
    offers::stands(inside, holder);
}

/// This thread runs as the root no longer.
fn leave_root(inside: &Inside) {
    root().set_active(false);
    if turns::is_seated() {
        turns::put_down(inside);
    } else {
        root().owner.leave();
    }
}

/// This thread runs as the root from here on.
fn become_root(inside: &Inside) {
    run_for(root());
    if !turns::take_up(inside) {
        root().owner.set(this_thread());
    }
    with_inside(inside, Session::is_on_this_thread);
}

impl Session {
    /// May somebody else run what the running task has come by, before its turn?
    #[inline]
    pub fn may_fork(&self) -> bool {
        self.tasks.shadow() == Shadow::Itself
            && self.sync.means_nothing()
            && self.stopped.is_none()
            && !EXACT.get()
            && !turns::are_taken()
            && !offers::stays_here()
    }

    /// The thread goes elsewhere: all that was done so far is told.
    pub fn pause(&mut self) {
        self.tell();
        self.deliver();
        self.fresh.end_strand();
    }

    /// The session goes on on this thread, which may be another.
    fn is_on_this_thread(&mut self) {
        // What was the other thread's alone is not this one's.
        self.owned.clear();
        self.come_to_variables();
    }

    /// What runs has no frames any more on its stack that others may have known.
    fn erase_own_stack(&mut self) {
        let (stack, used) = (self.tasks.stack(), self.tasks.used());
        if self.options.hygiene.stacks && self.stopped.is_none() {
            self.forget_words(stack.low..stack.high);
            if !used.is_empty() {
                self.erase(used.start, used.len());
            }
        }
    }
}
