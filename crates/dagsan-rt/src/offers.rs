//! Parts of the program that other threads may run: who offers them, who takes them, who waits for them.
//!
//! A task runtime has a closure that may run beside what comes before it: the second of a join. It *offers* it, in a frame of its own, and goes on with the
//! first. Helpers, threads of the runtime's own, take the closure and run it ahead (`part`). When its turn comes the task runtime takes it back
//! and runs it as ever, or waits for whoever has it.
//!
//! ```text
//!   offer:  LOCAL ──────────────────────────────► OWN          nobody else has heard of it
//!             │  somebody is hungry
//!             └► on the BOARD ── taken back ────► OWN
//!                    └► TAKEN ──────────────────► DONE         by a helper, or by who waits for the part that has offered it
//! ```
//!
//! **Private deques.** An offer costs an entry in a list of the session's own. Only if somebody is hungry, the eldest of the list is put on the board: it is the
//! largest. (Acar, Charguéraud and Rainey, PPoPP 2013.)
//!
//! **Who waits helps**, but only the part that it waits for: what else is on the board may have to wait in turn for what this thread has not done yet
//! (Wagner and Calder, PPoPP 1993, leapfrogging).

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::caches::Caches;
use crate::delays;
use crate::gains::Gain;
use crate::holder::Holder;
use crate::layout;
use crate::log;
use crate::part::{self, Part};
use crate::scopes;
use crate::session::{self, Inside, Session};
use crate::sites;
use crate::start;
use crate::state::{Flag, MOST_WORKERS, Worker, run_for, worker};
use crate::system;
use crate::tasks::Stack;
use crate::threads;

/// See the module's documentation. It is in a frame of a task runtime, which has room for it, and knows the first two fields.
#[repr(C)]
pub struct Offer {
    /// Runs the closure, which does not unwind.
    run: extern "C" fn(*mut Offer),
    /// Only the thread that offers changes it while it is [`LOCAL`] or [`OWN`].
    state: AtomicU32,
    /// The innermost finish around it.
    finish: u32,
    /// The session that it is offered by.
    parent: *const Holder,
    /// That of whoever runs it. Under the lock of the board, like what follows.
    part: *mut Holder,
    /// Does the one who offered it wait for it?
    parked: bool,
    /// What others of its code were worth.
    gain: &'static Gain,
}

impl Offer {
    /// What others of its code were worth.
    pub fn gain(&self) -> &'static Gain {
        self.gain
    }
}

/// So much room a task runtime has for it.
const ROOM: usize = 64;
const _: () = assert!(size_of::<Offer>() <= ROOM);

const LOCAL: u32 = 0;
const OWN: u32 = 1;
const OFFERED: u32 = 2;
const TAKEN: u32 = 3;
const DONE: u32 = 4;

/// An offer that is somewhere on a stack, whose thread waits for it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct There(*mut Offer);

// SAFETY: it is used under the lock of the board, or by the one who has taken it.
unsafe impl Send for There {}

/// The offers that wait, the eldest first.
static BOARD: Mutex<Vec<There>> = Mutex::new(Vec::new());

fn board(_: &Inside) -> MutexGuard<'static, Vec<There>> {
    BOARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes with all that somebody may wait for.
static NEWS: AtomicU32 = AtomicU32::new(0);

fn tell_news() {
    // Release: who sees it sees what is new.
    NEWS.fetch_add(1, Release);
    system::wake_all(&NEWS);
}

/// How many threads look for something to do, less the offers that wait.
static HUNGRY: AtomicU32 = AtomicU32::new(0);

/// Should somebody offer something?
#[inline(always)]
pub fn are_wanted() -> bool {
    // It may be less than none for a moment.
    (HUNGRY.load(Relaxed) as i32) > 0
}

/// Must all that comes be run by the thread that comes to it? For good, as a program that runs tasks in such a way will do so again.
static STAYS: Flag = Flag::new();

/// From here on nothing is offered any more.
pub fn stay_here() {
    STAYS.set(true);
}

/// Is it so?
#[inline(always)]
pub fn stays_here() -> bool {
    STAYS.get()
}

/// How long a thread sleeps at most before it looks again.
const NAP: Duration = Duration::from_secs(1);

/// So often a thread that waits looks before it sleeps.
const LOOKS: u32 = 2000;

/// Waits until there is an answer, which news may bring.
fn wait_for<T>(inside: &Inside, mut answer: impl FnMut(&mut Vec<There>) -> Option<T>) -> T {
    let mut looks = 0;
    loop {
        // Acquire: before the board is looked at.
        let news = NEWS.load(Acquire);
        if let Some(answer) = answer(&mut board(inside)) {
            return answer;
        }
        while looks < LOOKS && NEWS.load(Relaxed) == news {
            looks += 1;
            std::hint::spin_loop();
        }
        if NEWS.load(Relaxed) == news {
            system::sleep_on(&NEWS, news, NAP);
        }
    }
}

/// The part that goes on as the root, the innermost of them; null if it is the root itself. Under the lock of the board, but for reads by the thread that
/// runs as the root: relaxed.
static STANDS: AtomicPtr<Holder> = AtomicPtr::new(ptr::null_mut());

/// The part goes on as the root.
pub fn stands(inside: &Inside, part: *mut Holder) {
    let _board = board(inside);
    STANDS.store(part, Relaxed);
}

/// It has ended: the one that has offered it goes on.
pub fn stands_no_longer(inside: &Inside, holder: &Holder) {
    let Some(offer) = holder.part.as_ref().map(Part::offer) else { return };
    let _board = board(inside);
    // SAFETY: who has offered it waits for it.
    STANDS.store(unsafe { (*offer).parent }.cast_mut(), Relaxed);
}

/// The session that this thread runs for, by the name that offers have of it.
fn this_session() -> *const Holder {
    let here = worker();
    let stands = STANDS.load(Relaxed);
    if here.is_ahead() || stands.is_null() { here.holder() } else { stands }
}

impl Session {
    /// The running task has something that others may run, from here on until it takes it back.
    #[inline]
    fn offer(&mut self, offer: *mut Offer) {
        if self.may_fork() {
            // SAFETY: it is the caller's, and nobody else knows it.
            unsafe {
                (*offer).finish = self.tasks.innermost_finish();
                // Not when it is put on the board: a part that goes on as the root has the root's offers, too.
                (*offer).parent = this_session();
                (*offer).state.store(LOCAL, Relaxed);
            }
            self.offers.push(offer);
        }
    }

    /// It offers it no longer.
    #[inline]
    fn withdraw(&mut self, offer: *const Offer) {
        // The last, unless tasks on other stacks have offered something meanwhile.
        if let Some(at) = self.offers.iter().rposition(|known| ptr::eq(*known, offer)) {
            self.offers.remove(at);
        }
    }

    /// Puts the eldest of its offers on the board, if somebody wants one.
    #[inline]
    pub fn share(&mut self) {
        if are_wanted() && !self.offers.is_empty() {
            self.publish();
        }
    }

    #[cold]
    fn publish(&mut self) {
        if !self.active || !self.may_fork() {
            return;
        }
        // SAFETY: the offers of a session are in frames of those who wait for what it runs.
        let is_worth_it = |offer: &&*mut Offer| unsafe {
            (***offer).state.load(Relaxed) == LOCAL && (***offer).gain.is_hoped_for()
        };
        let Some(&offer) = self.offers.iter().find(is_worth_it) else { return };
        let Ok(mut board) = BOARD.try_lock() else { return };
        // SAFETY: as above; nobody else knows it.
        unsafe { (*offer).state.store(OFFERED, Relaxed) };
        board.push(There(offer));
        drop(board);
        HUNGRY.fetch_sub(1, Relaxed);
        tell_news();
    }
}

/// A task runtime begins a join: it opens a frame, and offers the second part, whose code that is.
///
/// # Safety
///
/// The offer stays where it is until [`__dagsan_join_end`].
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __dagsan_join_begin(offer: *mut Offer, run: extern "C" fn(*mut Offer), code: usize) {
    let (parent, part) = (ptr::null(), ptr::null_mut());
    let gain = Gain::of(code);
    let new = Offer { run, state: AtomicU32::new(OWN), finish: 0, parent, part, parked: false, gain };
    // SAFETY: the caller's promise.
    unsafe { offer.write(new) };
    scopes::begin_join(start::frame(), |session| session.offer(offer));
    delays::perhaps();
}

/// It comes to the second part, and others have heard of it. Is it to be run now? If not, somebody has run it.
///
/// # Safety
///
/// The offer is that of a join, whose first part has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __dagsan_take_back(offer: *mut Offer) -> bool {
    let Some(inside) = Inside::enter() else { return true };
    let mut board = board(&inside);
    // SAFETY: the caller's promise; under the lock of the board.
    let state = unsafe { &(*offer).state };
    if let Some(at) = board.iter().position(|there| there.0 == offer) {
        board.remove(at);
        HUNGRY.fetch_add(1, Relaxed);
        state.store(OWN, Relaxed);
    }
    drop(board);
    if state.load(Relaxed) == OWN {
        return true;
    }
    delays::perhaps();
    // SAFETY: it was taken.
    unsafe { wait_and_tell(&inside, offer) };
    false
}

/// The join ends.
///
/// # Safety
///
/// The offer is that of the join, and others have run it, or it is taken back.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __dagsan_join_end(offer: *mut Offer) {
    scopes::end_join(start::frame(), |session| session.withdraw(offer));
}

/// Waits until what was taken is done, and has it told where this thread is.
///
/// # Safety
///
/// This thread has offered it, and somebody has taken it.
unsafe fn wait_and_tell(inside: &Inside, offer: *mut Offer) {
    let here = worker();
    part::pause(inside);
    {
        let _board = board(inside);
        // SAFETY: the caller's promise; under the lock of the board.
        unsafe { (*offer).parked = true };
    }
    tell_news();
    // SAFETY: as above. Acquire: all that was done for the part.
    let is_done = || unsafe { (*offer).state.load(Acquire) == DONE };
    while !is_done() {
        let spare = spare_worker();
        let hungry = u32::from(spare.is_some());
        HUNGRY.fetch_add(hungry, Relaxed);
        let next = wait_for(inside, |board| {
            // SAFETY: offers on the board are there until they are taken; under the lock of the board.
            let is_of_part = |there: &There| unsafe { ptr::eq((*there.0).parent, (*offer).part) };
            let at = board.iter().position(is_of_part).filter(|_| spare.is_some());
            match at {
                Some(at) => Some(Some(board.remove(at))),
                None => is_done().then_some(None),
            }
        });
        match (next, spare) {
            (Some(There(other)), Some(worker)) => {
                // SAFETY: taken from the board just now.
                unsafe { run(inside, other, worker) };
                give_back(worker);
            }
            (_, spare) => {
                HUNGRY.fetch_sub(hungry, Relaxed);
                spare.into_iter().for_each(give_back);
            }
        }
    }
    // SAFETY: it is done, and nobody else uses it any more.
    let part = unsafe { Box::from_raw((*offer).part) };
    part::go_on(inside, here, *part);
}

/// Runs what was taken from the board, for this worker. This thread runs for it from here on.
///
/// # Safety
///
/// Nobody else has taken it. Nobody runs for the worker.
#[inline(never)]
unsafe fn run(inside: &Inside, offer: *mut Offer, worker: &'static Worker) {
    run_for(worker);
    // The frames of the program are below this one.
    let stack = Stack { low: threads::stack().low, high: start::frame() };
    // SAFETY: the caller's promise; the one who has offered it waits for it to be done.
    unsafe {
        let holder = part::begin(inside, (*offer).finish, offer, worker, stack);
        {
            let _board = board(inside);
            (*offer).part = holder;
            (*offer).state.store(TAKEN, Relaxed);
        }
        delays::perhaps();
        inside.leave_for(|| ((*offer).run)(offer));
        delays::perhaps();
        part::end(inside, &*holder, worker);
        let _board = board(inside);
        // Release: all that was done for the part.
        (*offer).state.store(DONE, Release);
    }
    tell_news();
}

/// Waits until all that comes before a part has been told, but for parts that wait for it. These, and the part itself, the outermost first.
///
/// # Safety
///
/// The part is that of this thread, and was offered by `offer`.
pub unsafe fn wait_for_order(inside: &Inside, part: *mut Holder, offer: *const Offer) -> Vec<*mut Holder> {
    wait_for(inside, |_| {
        let (mut chain, mut offer) = (vec![part], offer);
        loop {
            // SAFETY: whoever offered it waits for it, or runs what comes before, and so its frame is there; under the lock of the board.
            let (parent, parked) = unsafe { ((*offer).parent, (*offer).parked) };
            if !parked {
                return None;
            }
            // SAFETY: the session of a thread that waits.
            let next = unsafe { (*parent).part.as_ref() };
            let Some(next) = next.filter(|part| !part.has_stood()) else { break };
            chain.push(parent.cast_mut());
            offer = next.offer();
        }
        chain.reverse();
        Some(chain)
    })
}

/// Workers that nobody runs for.
static SPARE: Mutex<Vec<&'static Worker>> = Mutex::new(Vec::new());

fn spare_worker() -> Option<&'static Worker> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn give_back(worker: &'static Worker) {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
}

/// One more worker, if there is room for its tables.
fn new_worker() -> Option<&'static Worker> {
    let base = layout::reserve().ok()?;
    // SAFETY: the page below was reserved with the tables.
    let worker = unsafe { Worker::at(base) };
    log::reserve(worker, sites::depth(false).is_some()).ok()?;
    worker.set_caches(Caches::more());
    Some(worker)
}

/// So many threads may run tasks at once.
pub const MOST_THREADS: usize = MOST_WORKERS / 2;

/// The helpers are there: as many threads as are wanted, with this one.
#[cold]
pub fn hire(threads: usize) {
    static HIRED: OnceLock<()> = OnceLock::new();
    let Some(inside) = Inside::enter() else { return };
    // Nobody can change the hook then.
    if std::thread::panicking() {
        return;
    }
    HIRED.get_or_init(|| {
        // Who panics prints with locks of the standard library's: in its order. Code with hooks waits for that before it panics (`dagsan-pass`): the hook runs under
        // a lock, which who sets another hook waits for. Code without hooks waits here.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            session::in_order();
            hook(panic);
        }));
        for _ in 1..threads.min(MOST_THREADS) {
            // One to run for, and one for whoever waits and helps.
            let (Some(worker), spare) = (new_worker(), new_worker()) else { return };
            if !threads::start_helper(&inside, help, ptr::from_ref(worker).cast_mut().cast()) {
                return;
            }
            spare.into_iter().for_each(give_back);
        }
    });
}

/// The life of a helper.
extern "C-unwind" fn help(own: *mut c_void) -> *mut c_void {
    // SAFETY: the worker that `hire` has made for this thread.
    let own = unsafe { &*own.cast::<Worker>() };
    let Some(inside) = Inside::enter() else { return ptr::null_mut() };
    run_for(own);
    threads::find_stack();
    let _for_faults = crate::faults::Stack::new();
    system::hear_no_signals();
    loop {
        HUNGRY.fetch_add(1, Relaxed);
        let There(offer) = wait_for(&inside, |board| (!board.is_empty()).then(|| board.remove(0)));
        // SAFETY: taken from the board just now.
        unsafe { run(&inside, offer, own) };
    }
}
