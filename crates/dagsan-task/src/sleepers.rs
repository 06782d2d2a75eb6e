//! Who sleeps, and until what is over: by the address of that.
//!
//! Tasks of several workers, and of several threads, can wait for one promise, and any thread can set it. So this list is
//! the process's. It is cut into parts, each with a lock, by address. Who finds something to do never comes here.
//!
//! **No wake is lost.** A sleeper enters the list, and then says so in the word that it waits for (`Running::sleeps`), under the
//! lock of the part. Who changes this word last, and sees that somebody sleeps, takes the lock, and finds it.
//!
//! **No wake is wrong.** What was waited for may be gone, and its address may be another's when the waker comes. Who is
//! woken looks again whether its wait is over.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::crew::Crew;
use crate::deadlock::{self, Blocked};
use crate::events::Place;
use crate::task::{Fiber, Wait};

/// A fiber that sleeps, or is about to, on the thread of its seat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SleepingFiber(pub(crate) NonNull<Fiber>);

// SAFETY: other threads carry it about. They touch one cell of its task, `deadlock`, under the lock of the list and while its
// thread sleeps (`fail`).
unsafe impl Send for SleepingFiber {}

/// A task that sleeps.
pub(crate) struct Sleeper {
    pub(crate) crew: Arc<Crew>,
    pub(crate) seat: usize,
    /// None for the main task, which sleeps with its thread.
    pub(crate) fiber: Option<SleepingFiber>,
    pub(crate) wait: Wait,
    pub(crate) place: Place,
    /// Where the task was started.
    pub(crate) started: Option<Place>,
}

// SAFETY: the wait points to a join or a latch that lives as long as the sleeper is in the list; other threads ask it whether it
// is over, which is an atomic load, and what it is called, which does not change.
unsafe impl Send for Sleeper {}

/// By address, and by the number of the sleep.
type Key = (usize, u64);
type Part = BTreeMap<Key, Sleeper>;

const PARTS: usize = 16;
static LIST: [Mutex<Part>; PARTS] = [const { Mutex::new(BTreeMap::new()) }; PARTS];

/// How many sleeps there were.
static SLEEPS: AtomicU64 = AtomicU64::new(0);

fn locked(part: &'static Mutex<Part>) -> MutexGuard<'static, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

fn part(address: usize) -> MutexGuard<'static, Part> {
    // Joins and latches have more than 64 bytes.
    locked(&LIST[address / 64 % PARTS])
}

/// Enters the list, unless the wait is over already.
pub(crate) fn enter(sleeper: Sleeper) -> Option<Key> {
    let (wait, address) = (sleeper.wait, sleeper.wait.address());
    let mut part = part(address);
    // Relaxed: only the number counts.
    let key = (address, SLEEPS.fetch_add(1, Ordering::Relaxed));
    part.insert(key, sleeper);
    if wait.sleeps() {
        part.remove(&key);
        return None;
    }
    Some(key)
}

/// Leaves the list, if nobody has been woken by it.
pub(crate) fn leave(key: Key) {
    part(key.0).remove(&key);
}

/// What is at `address` is over. Those that sleep until then go on, in the order in which they came.
#[cold]
pub(crate) fn wake(address: usize) {
    let mut crews = Vec::new();
    {
        let mut part = part(address);
        while let Some((&key, _)) = part.range((address, 0)..=(address, u64::MAX)).next() {
            let Some(Sleeper { crew, seat, fiber, .. }) = part.remove(&key) else { break };
            if let Some(fiber) = fiber {
                crew.deliver(seat, fiber);
            }
            crews.push(crew);
        }
    }
    crews.iter().for_each(|crew| crew.bell.ring(true));
}

/// Those who sleep, when nobody's wait is over.
#[derive(Default)]
pub(crate) struct Sleepers {
    /// With the numbers of their sleeps.
    blocked: Vec<(u64, Blocked)>,
    /// Is one of them a get?
    gets: bool,
}

impl Sleepers {
    /// A deadlock in words, unless nobody waits for a promise or a future.
    pub(crate) fn report(mut self) -> Option<Arc<str>> {
        self.blocked.sort_unstable_by_key(|&(number, _)| number);
        let blocked: Vec<Blocked> = self.blocked.into_iter().map(|(_, blocked)| blocked).collect();
        self.gets.then(|| deadlock::report(&blocked))
    }
}

/// Those of a crew, if nobody's wait is over. As in `executor.rs`, a main task that waits for its tasks is not told of.
pub(crate) fn of(crew: &Arc<Crew>) -> Option<Sleepers> {
    let mut sleepers = Sleepers::default();
    for part in &LIST {
        for (&(_, number), sleeper) in
            locked(part).iter().filter(|(_, sleeper)| Arc::ptr_eq(&sleeper.crew, crew))
        {
            if sleeper.wait.is_over() {
                return None;
            }
            let in_vain = matches!(sleeper.wait, Wait::Latch(_));
            sleepers.gets |= in_vain;
            if in_vain || sleeper.fiber.is_some() {
                let Sleeper { started, place, wait, .. } = *sleeper;
                let waits_for = wait.describe();
                sleepers.blocked.push((number, Blocked { task: 0, started, place, waits_for }));
            }
        }
    }
    Some(sleepers)
}

/// The gets of a crew that sleep are in vain: their fibers are told and go on, `main` is called with the seat of the main task.
/// All threads of the crew sleep meanwhile.
pub(crate) fn fail(crew: &Arc<Crew>, report: &Arc<str>, main: impl Fn(usize)) {
    for part in &LIST {
        locked(part).retain(|_, Sleeper { crew: its_crew, seat, fiber, wait, .. }| {
            let fails = Arc::ptr_eq(its_crew, crew) && matches!(wait, Wait::Latch(_));
            match fiber {
                Some(fiber) if fails => {
                    // SAFETY: it is in the list, so it sleeps; its thread sleeps too, and has a lock to take before it
                    // looks at the cell.
                    unsafe { fiber.0.as_ref() }.task.deadlock.set(Some(report.clone()));
                    crew.deliver(*seat, *fiber);
                }
                None if fails => main(*seat),
                _ => {}
            }
            !fails
        });
    }
}
