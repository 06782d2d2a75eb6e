//! The patterns.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, mpsc};

use dagsan_task::{Future, Promise, Scope, isolated};

/// Tasks of one scope, each with its own element.
pub fn spawns(scope: &Scope<'_>, count: usize) {
    for i in 0..count {
        scope.spawn(move |_| drop(black_box(Box::new(i))));
    }
}

/// Each future gets the one before it.
pub fn chain(scope: &Scope<'_>, count: usize) {
    let mut last = scope.future(|_| 0);
    for _ in 0..count {
        let before = last;
        last = scope.future(move |_| before.get() + 1);
    }
    assert_eq!(*last.get(), count);
}

/// Each future gets the one before it in its row, and the one above it; a row is let go when the next one is there.
pub fn grid(scope: &Scope<'_>, count: usize) {
    let side = count.isqrt();
    let mut above: Vec<Future<u64>> = (0..side).map(|_| scope.future(|_| 1)).collect();
    for _ in 1..side {
        let mut left = scope.future(|_| 1);
        let row = above.iter().map(|above| {
            let (up, before) = (above.clone(), left.clone());
            left = scope.future(move |_| up.get().wrapping_add(*before.get()));
            left.clone()
        });
        above = row.collect();
    }
}

/// Futures whose handles all stay, got at the end.
pub fn kept_futures(scope: &Scope<'_>, count: usize) {
    let futures: Vec<Future<usize>> = (0..count).map(|i| scope.future(move |_| i)).collect();
    assert_eq!(futures.iter().map(Future::get).sum::<usize>(), count * (count - 1) / 2);
}

/// Promises that one task sets and another gets, each dropped then.
pub fn promises(scope: &Scope<'_>, count: usize) {
    for i in 0..count {
        let promise = Promise::new();
        let other = promise.clone();
        scope.spawn(move |_| other.set(i));
        scope.spawn(move |_| assert_eq!(*promise.get(), i));
    }
}

/// Tasks that all wait, each for the promise that the one before sets.
pub fn waiting_chain(scope: &Scope<'_>, count: usize) {
    let promises: Vec<Promise<usize>> = (0..=count).map(|_| Promise::new()).collect();
    for pair in promises.windows(2) {
        let (this, next) = (pair[0].clone(), pair[1].clone());
        scope.spawn(move |_| next.set(this.get() + 1));
    }
    promises[0].set(0);
}

/// The same, but none has to wait, and who has made the promises drops them at last.
pub fn handed_on(scope: &Scope<'_>, count: usize) {
    let promises: Vec<Promise<usize>> = (0..=count).map(|_| Promise::new()).collect();
    promises[0].set(0);
    for pair in promises.windows(2) {
        let (this, next) = (pair[0].clone(), pair[1].clone());
        scope.spawn(move |_| next.set(this.get() + 1));
    }
}

/// Tasks that all wait for one promise.
pub fn waiters(scope: &Scope<'_>, count: usize) {
    let promise = Promise::new();
    for _ in 0..count {
        let promise = promise.clone();
        scope.spawn(move |_| assert_eq!(*promise.get(), 1));
    }
    promise.set(1);
}

/// Two tasks that wait for each other in turn.
pub fn ping_pong(scope: &Scope<'_>, count: usize) {
    let (to, mut inbox) = mailbox();
    let (back, mut answers) = mailbox();
    scope.spawn(move |_| {
        let mut back = back;
        for _ in 0..count / 2 {
            let value = receive(&mut inbox);
            send(&mut back, value + 1);
        }
    });
    scope.spawn(move |_| {
        let mut to = to;
        for _ in 0..count / 2 {
            send(&mut to, 1);
            assert_eq!(receive(&mut answers), 2);
        }
    });
}

/// A list of promises: each has a value, and the next one.
struct Letter {
    value: u64,
    next: Promise<Letter>,
}

fn mailbox() -> (Promise<Letter>, Promise<Letter>) {
    let first = Promise::new();
    (first.clone(), first)
}

fn send(to: &mut Promise<Letter>, value: u64) {
    let next = Promise::new();
    to.set(Letter { value, next: next.clone() });
    *to = next;
}

fn receive(from: &mut Promise<Letter>) -> u64 {
    let Letter { value, next } = from.get();
    let (value, next) = (*value, next.clone());
    *from = next;
    value
}

/// Two tasks' isolated sections, which write to the same place.
pub fn isolated_sections(scope: &Scope<'_>, count: usize) {
    let total = Box::into_raw(Box::new(0));
    for _ in 0..2 {
        let total = Raw(total);
        scope.spawn(move |_| {
            let Raw(total) = { total };
            for _ in 0..count / 2 {
                // SAFETY: never freed; the sections exclude each other.
                isolated(|| unsafe { *total += 1 });
            }
        });
    }
}

/// Two tasks' sections of one mutex.
pub fn mutex(scope: &Scope<'_>, count: usize) {
    let total = Arc::new(Mutex::new(0));
    for _ in 0..2 {
        let total = Arc::clone(&total);
        scope.spawn(move |_| {
            for _ in 0..count / 2 {
                *total.lock().unwrap() += 1;
            }
        });
    }
}

/// What one task sends, another receives.
pub fn channel(scope: &Scope<'_>, count: usize) {
    let (sender, receiver) = mpsc::channel();
    scope.spawn(move |_| (0..count).for_each(|i| sender.send(Box::new(i)).unwrap()));
    scope.spawn(move |_| assert_eq!(receiver.iter().map(|i| *i).sum::<usize>(), count * (count - 1) / 2));
}

/// A counted reference of its own in each of two tasks, and one that all share.
pub fn arcs(scope: &Scope<'_>, count: usize) {
    let shared = Arc::new(0);
    for i in 0..count / 2 {
        let (mine, own) = (Arc::clone(&shared), Arc::new(i));
        let other = Arc::clone(&own);
        scope.spawn(move |_| assert_eq!(*mine + *own, i));
        scope.spawn(move |_| assert_eq!(*other, i));
    }
}

/// Cells that one task initialises and another reads.
pub fn once(scope: &Scope<'_>, count: usize) {
    let cells: Arc<Vec<OnceLock<usize>>> = Arc::new((0..count).map(|_| OnceLock::new()).collect());
    for _ in 0..2 {
        let cells = Arc::clone(&cells);
        scope.spawn(move |_| cells.iter().enumerate().for_each(|(i, cell)| _ = cell.get_or_init(|| i)));
    }
}

/// Words that one task stores to and another loads.
pub fn atomics(scope: &Scope<'_>, count: usize) {
    let words: Arc<Vec<AtomicU64>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
    let stored = Arc::clone(&words);
    scope.spawn(move |_| stored.iter().for_each(|word| word.store(1, Ordering::Release)));
    scope.spawn(move |_| assert!(words.iter().all(|word| word.load(Ordering::Acquire) == 1)));
}

/// Blocks that one task makes and another frees.
pub fn hand_over(scope: &Scope<'_>, count: usize) {
    for i in 0..count {
        let place = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
        let other = Arc::clone(&place);
        scope.spawn(move |_| other.store(Box::into_raw(Box::new(i)), Ordering::Release));
        scope.spawn(move |_| {
            let block = place.swap(std::ptr::null_mut(), Ordering::Acquire);
            // SAFETY: the task before has put it there, and has been followed.
            assert_eq!(*unsafe { Box::from_raw(block) }, i);
        });
    }
}

/// What tasks share as they like.
struct Raw(*mut u64);

// SAFETY: all tasks run on one thread.
unsafe impl Send for Raw {}

/// Boxes that two tasks write to, all of which live to the end.
pub fn races(scope: &Scope<'_>, count: usize) {
    for _ in 0..count {
        let block = Box::into_raw(Box::new(0));
        for _ in 0..2 {
            let block = Raw(block);
            // SAFETY: never freed. The two race, which is the point.
            scope.spawn(move |_| unsafe { *{ block }.0 += 1 });
        }
    }
}

/// Jobs that nothing waits for, each with a clone of a sender.
pub fn detached_senders(_: &Scope<'_>, count: usize) {
    let (sender, receiver) = mpsc::channel();
    for i in 0..count {
        let sender = sender.clone();
        rayon::spawn(move || sender.send(i).unwrap());
    }
    drop(sender);
    assert_eq!(receiver.iter().sum::<usize>(), count * (count - 1) / 2);
}

/// Sections of two mutexes at a time, of which there are a tenth as many as sections, in four tasks: transfers between accounts.
pub fn many_mutexes(scope: &Scope<'_>, count: usize) {
    let accounts: Arc<Vec<Mutex<u64>>> = Arc::new((0..count / 10).map(|_| Mutex::new(1)).collect());
    for task in 0..4 {
        let accounts = Arc::clone(&accounts);
        scope.spawn(move |_| {
            for i in 0..count / 4 {
                let (from, to) = ((i * 7 + task) % accounts.len(), (i * 13 + task * 5) % accounts.len());
                if from != to {
                    // Always the lower one first.
                    let mut low = accounts[from.min(to)].lock().unwrap();
                    let mut high = accounts[from.max(to)].lock().unwrap();
                    std::mem::swap(&mut *low, &mut *high);
                }
            }
        });
    }
}

/// Tasks that take two mutexes, half of them the one inside the other.
pub fn nested_mutexes(scope: &Scope<'_>, count: usize) {
    let (one, two) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    for i in 0..count {
        let (one, two) = (Arc::clone(&one), Arc::clone(&two));
        scope.spawn(move |_| {
            if i % 2 == 0 {
                let mut outer = one.lock().unwrap();
                *outer += 1;
                *two.lock().unwrap() += 1;
            } else {
                *two.lock().unwrap() += 1;
                *one.lock().unwrap() += 1;
            }
        });
    }
}

/// Mutexes that one task holds at once.
pub fn held_at_once(scope: &Scope<'_>, count: usize) {
    scope.spawn(move |_| {
        let cells: Vec<Mutex<u64>> = (0..count).map(|_| Mutex::new(0)).collect();
        let mut guards: Vec<_> = cells.iter().map(|cell| cell.lock().unwrap()).collect();
        guards.iter_mut().for_each(|guard| **guard += 1);
    });
}

/// One task writes under a mutex, and many read it there.
pub fn mutex_readers(scope: &Scope<'_>, count: usize) {
    let cell = Arc::new(Mutex::new(0));
    let written = Arc::clone(&cell);
    scope.spawn(move |_| *written.lock().unwrap() = 1);
    for _ in 0..count {
        let cell = Arc::clone(&cell);
        scope.spawn(move |_| assert_eq!(*cell.lock().unwrap(), 1));
    }
}

/// The same with a lock that readers share.
pub fn shared_readers(scope: &Scope<'_>, count: usize) {
    let cell = Arc::new(RwLock::new(0));
    let written = Arc::clone(&cell);
    scope.spawn(move |_| *written.write().unwrap() = 1);
    for _ in 0..count {
        let cell = Arc::clone(&cell);
        scope.spawn(move |_| assert_eq!(*cell.read().unwrap(), 1));
    }
}

/// Look-ups in a cache of a thousand results, each of which whoever needs it first computes.
pub fn cache(scope: &Scope<'_>, count: usize) {
    let cache: Arc<Mutex<HashMap<usize, Arc<usize>>>> = Arc::default();
    for i in 0..count {
        let cache = Arc::clone(&cache);
        scope.spawn(move |_| {
            let key = i % 1000;
            let found = Arc::clone(cache.lock().unwrap().entry(key).or_insert_with(|| Arc::new(key * key)));
            assert_eq!(*found, key * key);
        });
    }
}
