//! What the second of a join may do while the first still runs, and what it may do only when its turn has come.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    halves_that_meet, halves_that_meet_fixed;
    blocks_that_come_back, blocks_that_come_back_fixed;
    blocks_that_grow, blocks_that_grow_fixed;
    readers_that_write, readers_that_write_fixed;
    spin_lock_that_is_looked_at, spin_lock_that_is_looked_at_fixed;
    counted_in_the_open, counted_in_the_open_fixed;
    said_aloud, said_aloud_fixed;
    buffer_of_a_thread, buffer_of_a_thread_fixed;
    panic_in_the_second, panic_in_the_second_fixed;
    first_joins_of_a_guard, first_joins_of_a_guard_fixed;
    jobs_of_the_second, jobs_of_the_second_fixed;
    arcs_of_both, arcs_of_both_fixed;
    frames_of_the_second, frames_of_the_second_fixed;
    claimed_by_levels, claimed_by_levels_fixed;
    hook_with_a_lock, hook_with_a_lock_fixed;
];

/// Work that takes long enough for somebody else to take the second.
fn work(amount: u64) -> u64 {
    (0..amount * 1000).fold(1, |sum, number| black_box(sum ^ number.wrapping_mul(0x9e37_79b9)))
}

/// Runs something in the leaves of a tree of joins, each with its number.
fn tree(depth: u32, number: usize, leaf: &(impl Fn(usize) + Sync)) {
    if depth == 0 {
        work(20);
        return leaf(number);
    }
    rayon::join(|| tree(depth - 1, 2 * number, leaf), || tree(depth - 1, 2 * number + 1, leaf));
}

fn halves_that_meet() {
    let cells = [const { Shared::new(0u64) }; 33];
    // The last leaf of a half and the first one of the next have a cell together.
    tree(5, 0, &|leaf| {
        bump!(cells[leaf]); // race
        bump!(cells[leaf + 1]); // race
    });
}

fn halves_that_meet_fixed() {
    let cells = [const { Shared::new(0u64) }; 32];
    tree(5, 0, &|leaf| bump!(cells[leaf]));
}

/// A block that one task frees comes to another one, on another thread.
fn blocks_that_come_back() {
    let last = Shared::new(0u64);
    tree(4, 0, &|leaf| {
        for round in 0..20u64 {
            let mut block = vec![round; 40 + leaf % 3];
            block[leaf] += 1;
            // SAFETY: "only the last one counts".
            unsafe { *last.get() = block[leaf] }; // race
        }
    });
}

fn blocks_that_come_back_fixed() {
    let last = [const { Shared::new(0u64) }; 16];
    tree(4, 0, &|leaf| {
        for round in 0..20u64 {
            let mut block = vec![round; 40 + leaf % 3];
            block[leaf] += 1;
            // SAFETY: each leaf has its own.
            unsafe { *last[leaf].get() = block[leaf] };
        }
    });
}

fn blocks_that_grow() {
    let sum = Shared::new(0u64);
    tree(3, 0, &|leaf| {
        let mut numbers = Vec::new();
        (0..60_000u64).for_each(|number| numbers.push(number + leaf as u64));
        let total: u64 = numbers.iter().sum();
        // SAFETY: "additions commute".
        unsafe { *sum.get() += total }; // race
    });
}

fn blocks_that_grow_fixed() {
    let sum = AtomicU64::new(0);
    tree(3, 0, &|leaf| {
        let mut numbers = Vec::new();
        (0..60_000u64).for_each(|number| numbers.push(number + leaf as u64));
        sum.fetch_add(numbers.iter().sum(), Relaxed);
    });
    black_box(sum);
}

/// A lock for reading is no lock for writing.
fn readers_that_write() {
    let (lock, cell) = (RwLock::new(()), Shared::new(0u64));
    tree(4, 0, &|_| {
        let _guard = lock.read().unwrap();
        bump!(cell); // race
    });
}

fn readers_that_write_fixed() {
    let (lock, cell) = (RwLock::new(()), Shared::new(0u64));
    tree(4, 0, &|leaf| {
        if leaf % 3 == 0 {
            let _guard = lock.write().unwrap();
            bump!(cell);
        } else {
            let _guard = lock.read().unwrap();
            // SAFETY: who writes has the lock alone.
            black_box(unsafe { *cell.get() });
        }
    });
}

/// A lock that is looked at before it is taken; one of the tasks only looks.
fn spin_lock_that_is_looked_at() {
    let (lock, cell) = (AtomicBool::new(false), Shared::new(0u64));
    tree(4, 0, &|leaf| {
        if leaf == 9 {
            while lock.load(Relaxed) {
                std::hint::spin_loop();
            }
            bump!(cell); // race
            return;
        }
        spin(&lock);
        bump!(cell); // race
        lock.store(false, Release);
    });
}

fn spin(lock: &AtomicBool) {
    loop {
        while lock.load(Relaxed) {
            std::hint::spin_loop();
        }
        if lock.compare_exchange(false, true, Acquire, Relaxed).is_ok() {
            return;
        }
    }
}

fn spin_lock_that_is_looked_at_fixed() {
    let (lock, cell) = (AtomicBool::new(false), Shared::new(0u64));
    tree(4, 0, &|_| {
        spin(&lock);
        bump!(cell);
        lock.store(false, Release);
    });
}

/// A counter is no order, for those who run beside each other.
fn counted_in_the_open() {
    let (count, cell) = (AtomicU64::new(0), Shared::new(0u64));
    tree(4, 0, &|_| {
        if count.fetch_add(1, Relaxed) % 2 == 0 {
            bump!(cell); // race
        }
    });
}

fn counted_in_the_open_fixed() {
    let (count, cells) = (AtomicU64::new(0), [const { Shared::new(0u64) }; 16]);
    tree(4, 0, &|_| {
        let mine = count.fetch_add(1, Relaxed) as usize;
        bump!(cells[mine]);
    });
}

/// What is printed uses an atomic, while the output is locked.
struct Said<'a>(&'a AtomicU64);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.fetch_add(1, AcqRel);
        work(count % 4);
        write!(f, "{}", if count > 100 { "many" } else { "" })
    }
}

fn said_aloud() {
    let cell = Shared::new(0u64);
    say(&|_| bump!(cell)); // race
}

fn say(action: &(impl Fn(usize) + Sync)) {
    let count = AtomicU64::new(0);
    tree(4, 0, &|leaf| {
        eprint!("{}", Said(&count));
        action(leaf);
    });
}

fn said_aloud_fixed() {
    let cells = [const { Shared::new(0u64) }; 16];
    say(&|leaf| bump!(cells[leaf]));
}

thread_local! {
    static BUFFER: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// What a thread-local variable leads to is the worker's own; what it is copied into is not.
fn buffer_of_a_thread() {
    let cell = Shared::new(0u64);
    tree(4, 0, &|leaf| {
        let length = in_buffer(leaf);
        // SAFETY: "the buffer is this thread's".
        unsafe { *cell.get() += length } // race
    });
}

fn in_buffer(leaf: usize) -> u64 {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        buffer.extend((0..100 + leaf as u64).map(|number| number * 3));
        buffer.iter().sum::<u64>() % 7
    })
}

fn buffer_of_a_thread_fixed() {
    let cells = [const { Shared::new(0u64) }; 16];
    tree(4, 0, &|leaf| {
        let length = in_buffer(leaf);
        // SAFETY: each leaf has its own.
        unsafe { *cells[leaf].get() += length }
    });
}

fn panic_in_the_second() {
    let cell = Shared::new(0u64);
    unwound(&|_| bump!(cell)); // race
}

fn unwound(action: &(impl Fn(usize) + Sync)) {
    std::panic::set_hook(Box::new(|_| ()));
    for _ in 0..3 {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            tree(3, 0, &|leaf| {
                action(leaf);
                assert!(leaf != 6, "this leaf panics");
            });
        }));
        assert!(caught.is_err());
    }
}

fn panic_in_the_second_fixed() {
    let cells = [const { Shared::new(0u64) }; 8];
    unwound(&|leaf| bump!(cells[leaf]));
}

/// The first join of the program is made while a panic unwinds.
fn first_joins_of_a_guard() {
    let cell = Shared::new(0u64);
    guarded(&|_| bump!(cell)); // race
}

fn guarded(action: &(impl Fn(usize) + Sync)) {
    struct Guard<F: Fn()>(F);
    impl<F: Fn()> Drop for Guard<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    std::panic::set_hook(Box::new(|_| ()));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let guard = Guard(|| tree(3, 0, action));
        assert!(black_box(false), "the guard is dropped");
        drop(guard);
    }));
    assert!(caught.is_err());
    tree(3, 0, &|leaf| _ = black_box(leaf));
}

fn first_joins_of_a_guard_fixed() {
    let cells = [const { Shared::new(0u64) }; 8];
    guarded(&|leaf| bump!(cells[leaf]));
}

/// A scope inside of a half, and a job of the scope outside.
fn jobs_of_the_second() {
    let cell = Shared::new(0u64);
    jobs(&|_| bump!(cell)); // race
}

fn jobs(action: &(impl Fn(usize) + Sync)) {
    rayon::scope(|outer| {
        tree(3, 0, &|leaf| {
            if leaf % 3 == 0 {
                outer.spawn(move |_| action(leaf));
            } else {
                rayon::scope(|inner| inner.spawn(|_| action(leaf)));
            }
        });
    });
}

fn jobs_of_the_second_fixed() {
    let cells = [const { Shared::new(0u64) }; 8];
    jobs(&|leaf| bump!(cells[leaf]));
}

/// The last one of an `Arc` frees it, after all others. Who has written into it while others could look has not.
fn arcs_of_both() {
    let map = Arc::new((Shared::new(0u64), Mutex::new(HashMap::<usize, String>::new())));
    tree(4, 0, &|leaf| {
        let mine = Arc::clone(&map);
        mine.1.lock().unwrap().insert(leaf, leaf.to_string());
        bump!(mine.0); // race
    });
}

fn arcs_of_both_fixed() {
    let map = Arc::new(Mutex::new(HashMap::<usize, String>::new()));
    tree(4, 0, &|leaf| {
        let mine = Arc::clone(&map);
        mine.lock().unwrap().insert(leaf, leaf.to_string());
    });
    assert_eq!(map.lock().unwrap().len(), 16);
}

/// A frame of one half is lent to tasks of that half, on whatever stack it is.
fn frames_of_the_second() {
    tree(3, 0, &|_| {
        let mut numbers = [0u64; 64];
        let raw = Raw::new(&mut numbers);
        // SAFETY: "the halves are apart".
        let fill = |from: usize| unsafe { (from..from + 33).for_each(|at| *raw.at(at) += 1) }; // race
        rayon::join(|| fill(0), || fill(31));
        black_box(numbers);
    });
}

fn frames_of_the_second_fixed() {
    tree(3, 0, &|_| {
        let mut numbers = [0u64; 64];
        let raw = Raw::new(&mut numbers);
        // SAFETY: the halves are apart.
        let fill = |from: usize| unsafe { (from..from + 32).for_each(|at| *raw.at(at) += 1) };
        rayon::join(|| fill(0), || fill(32));
        black_box(numbers);
    });
}

/// A search by levels, in which every task claims what it has found: a part waits for its turn at once, and goes on as the root, with what that has offered.
fn by_levels(action: &(impl Fn(usize) + Sync)) {
    let claimed = [const { AtomicBool::new(false) }; 512];
    let claims = |&at: &usize| {
        at < claimed.len() && claimed[at].compare_exchange(false, true, Relaxed, Relaxed).is_ok()
    };
    let mut level = vec![0];
    while !level.is_empty() {
        let next = level.par_iter().flat_map_iter(|&at| [at + 3, 2 * at + 1, 2 * at + 2]).filter(claims);
        level = next.inspect(|&at| action(at)).collect();
    }
}

fn claimed_by_levels() {
    let count = Shared::new(0u64);
    by_levels(&|_| bump!(count)); // race
}

fn claimed_by_levels_fixed() {
    let counts = [const { Shared::new(0u64) }; 512];
    by_levels(&|at| bump!(counts[at]));
}

/// A panic hook with a lock of its own, while another task sets the hook.
fn with_hooks(action: &(impl Fn(usize) + Sync)) {
    static PANICS: Mutex<usize> = Mutex::new(0);
    let set = || std::panic::set_hook(Box::new(|_| *PANICS.lock().unwrap() += 1));
    set();
    tree(4, 0, &|leaf| {
        if leaf % 3 == 0 {
            set();
        }
        let caught = catch_unwind(|| assert!(leaf % 2 == 0, "this leaf panics"));
        assert_eq!(caught.is_err(), leaf % 2 == 1);
        action(leaf);
    });
}

fn hook_with_a_lock() {
    let count = Shared::new(0u64);
    with_hooks(&|_| bump!(count)); // race
}

fn hook_with_a_lock_fixed() {
    let counts = [const { Shared::new(0u64) }; 16];
    with_hooks(&|leaf| bump!(counts[leaf]));
}
