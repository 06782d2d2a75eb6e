//! How many are left to wait for, and whether somebody sleeps until nobody is left.
//!
//! ```text
//!   ┌───────────────────────────────┬─────────┐
//!   │ how many                      │ sleeper │     one word, so that the last one to end sees the sleeper,
//!   └───────────────────────────────┴─────────┘     or the sleeper sees that nobody is left
//! ```
//!
//! Whoever was the last to end may not look at the word again: its owner may have gone on, and it may be gone. So the
//! change that makes it 0 is also the one that tells of the sleeper.
//!
//! With one worker there is nobody to tell, and plain loads and stores are enough (`get`, `set`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering};

const SLEEPER: usize = 1;
const ONE: usize = 2;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Running(AtomicUsize);

impl Running {
    /// With that many.
    pub(crate) fn new(count: usize) -> Running {
        Running(AtomicUsize::new(count * ONE))
    }

    /// How many are left, if all of them are of this thread.
    #[inline]
    pub(crate) fn get(&self) -> usize {
        // Relaxed: one thread.
        self.0.load(Ordering::Relaxed) / ONE
    }

    /// Says how many are left, if all of them are of this thread.
    #[inline]
    pub(crate) fn set(&self, count: usize) {
        self.0.store(count * ONE, Ordering::Relaxed);
    }

    /// Is nobody left?
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        // Acquire: who sees that nobody is left, sees all that they did.
        self.0.load(Ordering::Acquire) < ONE
    }

    /// One more. The caller is one of those that are counted, or the one that waits for them.
    #[inline]
    pub(crate) fn started(&self) {
        // Relaxed: who waits has called this itself, or waits for the caller. What the new one sees of the caller comes
        // with its job.
        self.0.fetch_add(ONE, Ordering::Relaxed);
    }

    /// One less. Was it the last, and does somebody sleep? Then the caller has to wake it.
    #[inline]
    pub(crate) fn ended(&self) -> bool {
        // Release: see `is_over`, which reads from this change, or from a later one of its release sequence.
        self.0.fetch_sub(ONE, Ordering::Release) == ONE | SLEEPER
    }

    /// Somebody is about to sleep until nobody is left. It need not if this says that nobody is.
    pub(crate) fn sleeps(&self) -> bool {
        // Acquire: as in `is_over`. Changes of one word have one order: the last `ended` sees this one, or is seen by it.
        self.0.fetch_or(SLEEPER, Ordering::Acquire) < ONE
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// Two tasks end while their parent goes to sleep. It goes on without sleeping, or is woken by the last one, and sees what
    /// both have done. `asleep` is the list of sleepers: entered before the parent says so, under the same lock.
    #[test]
    fn loom_a_sleeper_is_woken_once_and_sees_all() {
        loom::model(|| {
            let shared =
                Arc::new((Running::new(2), Mutex::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]));
            let tasks: Vec<_> = (0..2)
                .map(|task| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        let (running, asleep, done) = &*shared;
                        done[task].store(1, Ordering::Relaxed);
                        running
                            .ended()
                            .then(|| assert!(std::mem::take(&mut *asleep.lock().unwrap())))
                            .is_some()
                    })
                })
                .collect();
            let (running, asleep, done) = &*shared;
            let must_sleep = {
                let mut asleep = asleep.lock().unwrap();
                let over = running.sleeps();
                *asleep = !over;
                !over
            };
            if !must_sleep {
                assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1));
            }
            let wakers = tasks.into_iter().map(|task| task.join().unwrap());
            assert_eq!(wakers.filter(|&woke| woke).count(), usize::from(must_sleep));
            assert!(running.is_over() && !*asleep.lock().unwrap());
        });
    }
}
