//! How idle workers sleep, and are woken when there is work: an event count, with a count of those who sleep.
//!
//! ```text
//!   who has work for others     work ─► fence ─► does anybody intend to sleep? ── yes ─► ring
//!   who finds none              intend ─► fence ─► is there work now? ── no ─► sleep, unless it rang since
//! ```
//!
//! One of the two sees the other, by the fences. To look for work is up to the workers, and to ring costs a fence and a load
//! while nobody intends to sleep.

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering, fence};
#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Bell {
    /// How many workers sleep, or intend to.
    intend: AtomicUsize,
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Debug)]
struct State {
    /// How often it rang.
    rings: u64,
    /// How many workers there are, and how many of them sleep.
    present: usize,
    asleep: usize,
    /// Is the work over, for good?
    over: bool,
}

/// The intention to sleep, unless it rings.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ticket {
    rings: u64,
}

impl Bell {
    /// With one worker.
    pub(crate) fn new() -> Bell {
        Bell {
            intend: AtomicUsize::new(0),
            state: Mutex::new(State { rings: 0, present: 1, asleep: 0, over: false }),
            rung: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more worker, unless the work is over.
    pub(crate) fn enter(&self) -> bool {
        let mut state = self.state();
        state.present += usize::from(!state.over);
        !state.over
    }

    /// Says that the work is over, to all.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.over = true;
        state.rings += 1;
        self.rung.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state().over
    }

    /// The caller intends to sleep. It has to look for work once more before it does.
    pub(crate) fn intend(&self) -> Ticket {
        // Relaxed, with the fence: see `ring`.
        self.intend.fetch_add(1, Ordering::Relaxed);
        let rings = self.state().rings;
        fence(Ordering::SeqCst);
        Ticket { rings }
    }

    /// The caller has found work.
    pub(crate) fn stay(&self, ticket: Ticket) {
        let Ticket { .. } = ticket;
        // Relaxed: a worker that is counted too long is rung for in vain.
        self.intend.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sleeps until it rings, if it has not since the ticket was made. If all workers would sleep, `last` is called first,
    /// while nobody can wake: if it has found work, it says so, and all wake.
    pub(crate) fn sleep(&self, ticket: Ticket, last: impl FnOnce() -> bool) {
        let mut state = self.state();
        state.asleep += 1;
        if state.rings == ticket.rings && state.asleep == state.present && last() {
            state.rings += 1;
            self.rung.notify_all();
        }
        while state.rings == ticket.rings {
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.asleep -= 1;
        drop(state);
        self.stay(ticket);
    }

    /// There is work for somebody: for anybody, who need not be woken if nobody sleeps, or for a certain worker, so that all wake.
    #[inline]
    pub(crate) fn ring(&self, all: bool) {
        // The work was made before the fence. If the load misses an intention, the fence of that comes later in the order of
        // all such fences, and its look for work finds what was made.
        fence(Ordering::SeqCst);
        if self.intend.load(Ordering::Relaxed) > 0 {
            self.wake(all);
        }
    }

    #[cold]
    fn wake(&self, all: bool) {
        self.state().rings += 1;
        if all {
            self.rung.notify_all();
        } else {
            self.rung.notify_one();
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Takes a piece of work, and sleeps as long as there is none.
    fn take(bell: &Bell, work: &AtomicUsize, last: impl Fn() -> bool) {
        let there =
            || work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |work| work.checked_sub(1)).is_ok();
        while !there() {
            let ticket = bell.intend();
            if there() {
                bell.stay(ticket);
                break;
            }
            bell.sleep(ticket, &last);
        }
    }

    /// Work that is made while a worker falls asleep is found: otherwise the model hangs.
    #[test]
    fn loom_no_ring_is_lost() {
        loom::model(|| {
            let shared = Arc::new((Bell::new(), AtomicUsize::new(0)));
            let worker = {
                let shared = shared.clone();
                thread::spawn(move || take(&shared.0, &shared.1, || false))
            };
            let (bell, work) = &*shared;
            work.fetch_add(1, Ordering::Relaxed);
            bell.ring(false);
            worker.join().unwrap();
        });
    }

    /// Two workers, and work that the last one finds who falls asleep: the other one is woken for it.
    #[test]
    fn loom_the_last_one_awake_looks_for_all() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((Bell::new(), AtomicUsize::new(0)));
            assert!(shared.0.enter());
            let workers = [(); 2].map(|()| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (bell, work) = &*shared;
                    take(bell, work, || {
                        work.store(2, Ordering::Relaxed);
                        true
                    });
                })
            });
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert_eq!(shared.1.load(Ordering::Relaxed), 0);
        });
    }
}
