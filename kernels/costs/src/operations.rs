//! Operations of two tasks.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dagsan_task::{Promise, finish};

use crate::timed;

/// Two tasks, each with one half of the count.
fn both(count: usize, half: impl Fn(usize) + Sync) -> Duration {
    timed(|| _ = rayon::join(|| half(count / 2), || half(count / 2)))
}

pub fn relaxed(count: usize) -> Duration {
    let word = AtomicU64::new(0);
    // Relaxed: it is what is measured, and the join orders it before what follows.
    both(count, |count| (0..count).for_each(|_| _ = word.fetch_add(1, Relaxed)))
}

pub fn mutex(count: usize) -> Duration {
    both(count, |count| {
        let mutex = black_box(Mutex::new(0u64));
        for _ in 0..count {
            *black_box(&mutex).lock().expect("nobody panics") += 1;
        }
    })
}

pub fn promise(count: usize) -> Duration {
    timed(|| {
        finish(|scope| {
            for _ in 0..2 {
                scope.spawn(move |_| {
                    for number in 0..count / 2 {
                        let promise = Promise::new();
                        promise.set(number);
                        black_box(promise.get());
                    }
                });
            }
        });
    })
}

pub fn arc(count: usize) -> Duration {
    let shared = Arc::new(0u64);
    both(count, |count| (0..count).for_each(|_| drop(black_box(Arc::clone(&shared)))))
}
