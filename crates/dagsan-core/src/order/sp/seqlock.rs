//! A sequence lock: readers retry if a writer was at work meanwhile.
//!
//! The version is odd while a writer renumbers. Readers never write, so queries from many threads do
//! not disturb each other. What it protects must be atomics, read and written relaxed: the lock gives
//! them their order.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct SeqLock {
    version: AtomicU64,
}

impl SeqLock {
    pub(crate) fn new() -> SeqLock {
        SeqLock { version: AtomicU64::new(0) }
    }

    /// Runs `read` until no writer was at work while it ran.
    #[inline]
    pub(crate) fn read<T>(&self, mut read: impl FnMut() -> T) -> T {
        loop {
            // Acquire: what was written before this version is seen by `read`.
            let before = self.version.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let result = read();
                // The loads of `read` come before the second look: if one of them saw a writer's
                // store, the fence makes this load see that writer's odd version, or a later one.
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == before {
                    return result;
                }
            }
            #[cfg(loom)]
            loom::thread::yield_now();
            #[cfg(not(loom))]
            std::hint::spin_loop();
        }
    }

    /// Runs `write` while readers wait. The caller makes sure that there is one writer at a time.
    pub(crate) fn write<T>(&self, write: impl FnOnce() -> T) -> T {
        let before = self.version.load(Ordering::Relaxed);
        self.version.store(before + 1, Ordering::Relaxed);
        // Release: whoever sees a store of `write` also sees the odd version.
        fence(Ordering::Release);
        let result = write();
        // Release: whoever sees the even version also sees the stores of `write`.
        self.version.store(before + 2, Ordering::Release);
        result
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// Two labels that are renumbered together: a reader never sees one new and one old.
    #[test]
    fn loom_a_reader_sees_all_of_a_renumbering_or_nothing() {
        loom::model(|| {
            let shared = Arc::new((SeqLock::new(), AtomicU64::new(1), AtomicU64::new(2)));
            let writer = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    let (lock, a, b) = &*shared;
                    lock.write(|| {
                        a.store(10, Ordering::Relaxed);
                        b.store(20, Ordering::Relaxed);
                    });
                })
            };
            let (lock, a, b) = &*shared;
            let seen = lock.read(|| (a.load(Ordering::Relaxed), b.load(Ordering::Relaxed)));
            assert!(seen == (1, 2) || seen == (10, 20), "{seen:?}");
            writer.join().unwrap();
            let seen = lock.read(|| (a.load(Ordering::Relaxed), b.load(Ordering::Relaxed)));
            assert_eq!(seen, (10, 20));
        });
    }
}
