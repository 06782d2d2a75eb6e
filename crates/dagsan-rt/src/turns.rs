//! Threads take turns: one at a time runs the program, and goes on until it waits or ends.
//!
//! ```text
//!   created ─► ready ─► HAS THE TURN ─► waits     (futex, join)                   ─► woken: ready
//!                ▲                   ├─► delayed   (a lock that another thread has) ─► given back: ready
//!                │                   ├─► outside   (a call that may take long)      ─► back: ready
//!                │                   └─► over
//!                └─ yields, spins, ──┘
//!                   has made many steps
//! ```
//!
//! Whoever has the turn owns the session, and runs the task that the thread has run when it had it last. So the engines see one
//! event after the other, as if all threads were tasks on one; and a program that waits only for its own threads
//! runs in the same way each time: who became ready first has the next turn.
//!
//! **Waiting is ours.** A thread that waits for a word of memory (`waits`) waits here, for somebody who wakes that word; the system is
//! asked only to put it to sleep. A lock that another thread holds is not even tried: to be late is always allowed, and then the
//! paths of the standard library that have no hooks are hardly ever taken.
//!
//! **Nobody hangs.** A thread that sleeps in the system while it has the turn, in a call that is not known here, loses it after some time
//! to one that is ready; it gets in line again at its next hook. What it does before that is not seen, which the verdict says.
//! If all threads wait for each other, that is a deadlock, and told.

mod line;

use std::cell::Cell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::holder::held_by;
use crate::session::{self, Inside};
use crate::start;
use crate::state::{Flag, Thread, is_active, is_owner, set_active, worker};
use crate::system;
use crate::tasks::Handle;
pub use line::Seat;
use line::{PATIENCE, State, Turns};

static TURNS: Mutex<Turns> = Mutex::new(Turns::new());

/// Are there threads that take turns?
static MANY: Flag = Flag::new();

/// How often the turn was taken from a thread that slept.
static LOST: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static SEAT: Cell<Seat> = const { Cell::new(Seat::NONE) };
    /// When this thread has waited in vain for its turn, by the number of moves; until the next one it goes on without.
    static IN_VAIN: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// How many threads wait for a lock that another has.
static DELAYED: AtomicU32 = AtomicU32::new(0);

/// After how many turns of others a thread has a lock before the one that has just given it back.
const FAIR: u64 = 16;

/// How long nobody must be able to go on before that is called a deadlock: threads that are not known here might come.
const DEADLOCK: Duration = Duration::from_secs(1);

/// How long a thread waits for its turn before it returns from a call. Code without hooks may have made the call, and hold what the one
/// that has the turn spins for.
const RETURN: Duration = Duration::from_secs(2);

fn turns(_: &Inside) -> MutexGuard<'static, Turns> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Are there threads that take turns, so that this one may have to wait?
#[inline(always)]
pub fn are_taken() -> bool {
    MANY.get()
}

/// Does this thread take turns?
#[inline]
pub fn is_seated() -> bool {
    MANY.get() && SEAT.get() != Seat::NONE && start::is_on()
}

/// How often a thread has lost its turn because it slept.
pub fn lost() -> u32 {
    LOST.load(Relaxed)
}

/// This thread, which owns the session, takes turns from here on. It has the first.
pub fn sit(inside: &Inside, task: Handle) {
    if SEAT.get() != Seat::NONE {
        return;
    }
    let mut turns = turns(inside);
    let seat = turns.add(State::HasTurn, task);
    turns.holder = seat;
    turns.arrives(seat);
    SEAT.set(seat);
    MANY.set(true);
}

/// A seat for a thread that is about to be started, with its first task.
pub fn admit(inside: &Inside, task: Handle) -> Seat {
    let mut turns = turns(inside);
    let seat = turns.add(State::Ready, task);
    turns.line.push_back(seat);
    seat
}

/// It was not started.
pub fn dismiss(inside: &Inside, seat: Seat) {
    let mut turns = turns(inside);
    turns.line.retain(|other| *other != seat);
    let place = &mut turns.places[seat.index()];
    (place.state, place.forgotten) = (State::Over, true);
    turns.leaves_seat(seat);
}

/// This thread begins, and waits for its first turn.
pub fn begin(inside: &Inside, seat: Seat) {
    SEAT.set(seat);
    turns(inside).arrives(seat);
    await_turn(inside, seat, None);
}

/// This thread has had its last turn.
pub fn end(inside: &Inside) {
    let seat = SEAT.replace(Seat::NONE);
    leave(inside, seat, |_| State::Over);
}

/// Has the thread of this seat ended? If not, the present one has waited for that, and may ask again.
pub fn has_ended(inside: &Inside, seat: Seat) -> bool {
    let (state, word) = {
        let turns = turns(inside);
        let place = &turns.places[seat.index()];
        (place.state, place.word)
    };
    if state != State::Over {
        wait(inside, std::ptr::from_ref(word).addr(), None);
    }
    state == State::Over
}

/// Nobody will ask for the end of that thread any more.
pub fn forget(inside: &Inside, seat: Seat) {
    let mut turns = turns(inside);
    turns.places[seat.index()].forgotten = true;
    turns.leaves_seat(seat);
}

/// This thread waits until somebody wakes the address. Says whether somebody has, and not only the time.
pub fn wait(inside: &Inside, address: usize, until: Option<Instant>) -> bool {
    let seat = SEAT.get();
    leave(inside, seat, |moves| State::Waits { address, since: moves, timed: until.is_some() });
    await_turn(inside, seat, until)
}

/// The same; `why` ends the sentence "waits for …".
pub fn wait_for(inside: &Inside, address: usize, why: &'static str, until: Option<Instant>) {
    let seat = SEAT.get();
    turns(inside).places[seat.index()].why = why;
    wait(inside, address, until);
    turns(inside).places[seat.index()].why = line::ANOTHER;
}

/// This thread has nothing to do until it is given a task.
pub fn idle(inside: &Inside) {
    let seat = SEAT.get();
    leave(inside, seat, |_| State::Idle);
    await_turn(inside, seat, None);
}

/// A thread that waits or is idle has this task next, and is ready.
pub fn give(inside: &Inside, seat: Seat, task: Handle) {
    let mut turns = turns(inside);
    turns.places[seat.index()].task = task;
    turns.is_ready(seat);
}

/// The seat of this thread.
pub fn seat() -> Seat {
    SEAT.get()
}

/// Wakes so many of those who wait for the address, in the order in which they came. The tasks that they run.
pub fn wake(inside: &Inside, address: usize, most: usize) -> Vec<Handle> {
    let mut turns = turns(inside);
    let mut woken = Vec::new();
    while woken.len() < most
        && let Some(seat) = turns.first_waiting(address)
    {
        turns.is_ready(seat);
        woken.push(turns.places[seat.index()].task);
    }
    turns.go_on_if_free();
    woken
}

/// How many steps the thread that has the turn has made. Only it uses this: relaxed.
static STEPS: AtomicU32 = AtomicU32::new(0);

/// So many steps are a turn, if others are ready. They are counted, not timed: the next run goes the same way.
const TURN: u32 = 4096;

/// This thread has made a step: it came to the runtime, and leaves it.
#[inline]
pub fn go_on() {
    let steps = STEPS.load(Relaxed) + 1;
    STEPS.store(steps, Relaxed);
    if steps >= TURN {
        take_turns();
    }
}

#[cold]
fn take_turns() {
    STEPS.store(0, Relaxed);
    if is_seated()
        && is_owner()
        && let Some(inside) = Inside::enter()
    {
        let others = !turns(&inside).line.is_empty();
        if others {
            yield_now(&inside);
        }
    }
}

/// How often in a row a thread has let others go first, and nobody was there. Only the thread that has the turn uses it: relaxed.
static IN_A_ROW: AtomicU32 = AtomicU32::new(0);

/// After so many times that is said. It is no proof that the thread waits for ever, so it goes on.
const LONG: u32 = 1 << 18;

/// Whoever is ready goes first.
pub fn yield_now(inside: &Inside) {
    let seat = SEAT.get();
    let before = turns(inside).moves;
    leave(inside, seat, |_| State::Ready);
    await_turn(inside, seat, None);
    let turns = turns(inside);
    let in_a_row = if turns.moves == before + 1 { IN_A_ROW.load(Relaxed).saturating_add(1) } else { 0 };
    IN_A_ROW.store(in_a_row, Relaxed);
    if in_a_row == LONG && !turns.somebody_may_come() {
        drop(turns);
        crate::exit::say(SPINS);
    }
}

const SPINS: &str = "dagsan: a thread seems to spin: it looks again and again for something, and all other threads wait. \
    If it is a task, and waits for one that was created after it: that one runs when the first one ends or waits. \
    See \"What is not\" in docs/openmp.md\n";

/// This thread waits until a word that has this value has another, or nobody else can go on.
pub fn delay(inside: &Inside, address: usize, bytes: usize, value: u64) {
    let seat = SEAT.get();
    DELAYED.fetch_add(1, Relaxed);
    leave(inside, seat, |moves| State::Delayed { address, bytes, value, since: moves });
    await_turn(inside, seat, None);
    DELAYED.fetch_sub(1, Relaxed);
}

/// Has a thread waited for some turns until this word has another value?
pub fn is_waited_for(inside: &Inside, address: usize) -> bool {
    if DELAYED.load(Relaxed) == 0 {
        return false;
    }
    let turns = turns(inside);
    turns.line.iter().any(|seat| match turns.places[seat.index()].state {
        State::Delayed { address: other, since, .. } => other == address && turns.moves - since >= FAIR,
        _ => false,
    })
}

/// While it lives, this thread is in a call that may take long, and others have the turn.
pub struct Outside<'a>(&'a Inside);

/// Lets others go on.
pub fn go_outside(inside: &Inside) -> Outside<'_> {
    leave(inside, SEAT.get(), |_| State::Outside);
    Outside(inside)
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        come_back(self.0, Some(Instant::now() + RETURN));
    }
}

/// The seat that goes from one thread to another, with what that runs.
static HANDED: Mutex<Seat> = Mutex::new(Seat::NONE);

/// This thread has somebody else go on with what it runs, who takes the seat up.
pub fn put_down(inside: &Inside) {
    let seat = SEAT.replace(Seat::NONE);
    leave(inside, seat, |_| State::Outside);
    *HANDED.lock().unwrap_or_else(PoisonError::into_inner) = seat;
}

/// Takes up the seat that was put down, and waits for the turn. Was there one?
pub fn take_up(inside: &Inside) -> bool {
    let seat = std::mem::replace(&mut *HANDED.lock().unwrap_or_else(PoisonError::into_inner), Seat::NONE);
    if seat != Seat::NONE {
        SEAT.set(seat);
        come_back(inside, None);
    }
    seat != Seat::NONE
}

/// Does this thread run the tasks? One that has lost its turn waits for the next.
#[inline(always)]
pub fn is_mine() -> bool {
    is_owner() || (MANY.get() && is_mine_again())
}

#[cold]
fn is_mine_again() -> bool {
    if is_seated()
        // Inside of the runtime nobody can be asked to wait.
        && let Some(inside) = Inside::enter()
    {
        return is_mine_inside(&inside);
    }
    is_owner()
}

/// The same, of a thread that is inside of the runtime, at its border.
pub fn is_mine_inside(inside: &Inside) -> bool {
    if !is_owner() {
        come_back(inside, None);
    }
    is_owner()
}

/// This thread waits for its turn, but not beyond that time: then it goes on, and waits at its next hook.
fn come_back(inside: &Inside, limit: Option<Instant>) {
    let seat = SEAT.get();
    {
        let mut turns = turns(inside);
        if turns.holder == seat && is_owner() || limit.is_none() && turns.moves == IN_VAIN.get() {
            return;
        }
        if turns.places[seat.index()].state == State::Outside {
            turns.is_ready(seat);
            turns.go_on_if_free();
        }
    }
    if let Some(limit) = limit {
        let word = turns(inside).places[seat.index()].word;
        while word.load(Relaxed) == 0 {
            system::sleep_on(word, 0, PATIENCE);
            let mut turns = turns(inside);
            turns.look_around(inside);
            if Instant::now() >= limit && turns.holder != seat {
                turns.line.retain(|other| *other != seat);
                turns.places[seat.index()].state = State::Outside;
                LOST.fetch_add(1, Relaxed);
                IN_VAIN.set(turns.moves);
                return;
            }
        }
    }
    await_turn(inside, seat, None);
}

/// The thread that is about to give the turn away: if it sleeps now, it sleeps here.
static LEAVING: Thread = Thread::nobody();

/// This thread gives the turn away.
fn leave(inside: &Inside, seat: Seat, state: impl FnOnce(u64) -> State) {
    let leaving = LEAVING.take().is_ok();
    let task = session::with_inside(inside, |session| session.tasks.handle());
    let mut turns = turns(inside);
    let state = state(turns.moves);
    // Otherwise it was lost.
    let had = turns.holder == seat;
    let place = &mut turns.places[seat.index()];
    place.state = state;
    if let (true, Some(task)) = (had, task) {
        place.task = task;
    }
    let word = std::ptr::from_ref(place.word).addr();
    match state {
        State::Ready | State::Delayed { .. } => turns.line.push_back(seat),
        State::Over => {
            while let Some(seat) = turns.first_waiting(word) {
                turns.is_ready(seat);
            }
            turns.leaves_seat(seat);
        }
        _ => {}
    }
    if had {
        set_active(false);
        worker().owner.leave();
        turns.holder = Seat::NONE;
    }
    if leaving {
        LEAVING.leave();
    }
    turns.go_on_if_free();
}

/// Waits for the turn, and takes it. If it waits for something else until then, says whether that came in time.
fn await_turn(inside: &Inside, seat: Seat, until: Option<Instant>) -> bool {
    let word = turns(inside).places[seat.index()].word;
    let mut in_time = true;
    // Acquire: what the thread before has done is seen.
    while word.swap(0, Acquire) == 0 {
        let rest = until.filter(|_| in_time).map(|until| until.saturating_duration_since(Instant::now()));
        let patience = turns(inside).patience(seat);
        system::sleep_on(word, 0, rest.map_or(patience, |rest| rest.min(patience)));
        let mut turns = turns(inside);
        let waits = matches!(turns.places[seat.index()].state, State::Waits { .. });
        if waits && until.is_some_and(|until| Instant::now() >= until) {
            in_time = false;
            turns.is_ready(seat);
        }
        turns.look_around(inside);
    }
    STEPS.store(0, Relaxed);
    // Whoever had it has left it before the word was set.
    if worker().owner.take().is_ok() {
        let task = turns(inside).places[seat.index()].task;
        session::with_inside(inside, |session| session.takes_turn(task));
    }
    in_time
}

/// The task that nobody runs at the moment. None if somebody does, after all.
fn running(inside: &Inside) -> Option<Handle> {
    worker().owner.take().ok()?;
    let task = session::with_inside(inside, |session| session.tasks.handle());
    set_active(false);
    worker().owner.leave();
    task
}

impl Turns {
    /// Somebody who waits looks at what the others do.
    fn look_around(&mut self, inside: &Inside) {
        self.go_on_if_free();
        if let Some(since) = self.free_since {
            let free = since.elapsed();
            if free >= PATIENCE && !self.line.is_empty() {
                // Whoever has the lock is away, perhaps for long.
                self.give(0);
            } else if free >= DEADLOCK && !self.somebody_may_come() {
                crate::exit::deadlock(self.blocked());
            }
        } else if self.holder_sleeps() {
            if self.asleep_at == self.moves {
                self.take_away(inside);
            } else {
                self.asleep_at = self.moves;
            }
        }
    }

    /// Does whoever has the turn sleep in the system, and not in the runtime?
    fn holder_sleeps(&self) -> bool {
        let Some(place) = self.places.get(self.holder.index()) else { return false };
        // It may not know yet that it has it.
        let knows = place.word.load(Relaxed) == 0 && place.thread != 0;
        // SAFETY: the flag of a thread that has not ended, since it has the turn.
        let is_inside = || unsafe { system::load(place.inside, 1) } == Some(1);
        let in_runtime = held_by(place.thread) || LEAVING.get() == place.thread || knows && is_inside();
        knows && !in_runtime && system::sleeps(place.id)
    }

    /// Takes the turn from a thread that sleeps. It may wake up at any moment; so it is looked at again when it can set no bits any
    /// more: if it still sleeps, it finds out at its next hook.
    fn take_away(&mut self, inside: &Inside) {
        let (seat, active) = (self.holder, is_active());
        set_active(false);
        worker().owner.leave();
        let task = if self.holder_sleeps() { running(inside) } else { None };
        if let Some(task) = task {
            let place = &mut self.places[seat.index()];
            (place.state, place.task) = (State::Outside, task);
            self.holder = Seat::NONE;
            LOST.fetch_add(1, Relaxed);
            self.go_on_if_free();
        } else {
            worker().owner.set(self.places[seat.index()].thread);
            set_active(active);
        }
    }
}
