//! Programs that end in odd ways, or do what a runtime could stumble over. What comes of them is in the tests.

use std::collections::HashMap;
use std::hint::black_box;
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use dagsan_task::{Promise, Scope, finish};

use crate::Point;
use crate::shared::{Shared, load, siblings, spawn, store};

pub const BEHAVIOURS: &[Point] = points![
    exit_in_a_task,
    exit_in_a_task_after_a_race,
    panic_in_a_task,
    panic_in_a_task_after_a_race,
    abort_in_a_task,
    abort_in_a_task_after_a_race,
    segfault_in_a_task,
    threads_hammering,
    threads_with_tasks,
    thread_runs_all_tasks,
    fork_and_exec,
    fork_and_exit,
    much_memory_after_a_race,
    no_memory_after_a_race,
    no_byte_after_a_race,
    deadlock_of_promises,
    deadlock_after_a_race,
    deadlock_that_is_handled,
    race_below_three_functions,
    race_if_asked_for,
    race_the_first_time,
    race_of_the_input,
    many_tasks,
    assembly_in_tasks,
];

/// Two tasks that write the same word.
fn race<'a>(scope: &Scope<'a>, word: &'a Shared<u64>) {
    spawn!(scope, store!(word, 1)); // race (1)
    spawn!(scope, store!(word, 2)); // race (2)
}

static WORD: Shared<u64> = Shared::new(0);

fn exit_in_a_task() {
    finish(|scope| scope.spawn(|_| process::exit(3)));
}

fn exit_in_a_task_after_a_race() {
    finish(|scope| {
        race(scope, &WORD);
        scope.spawn(|_| process::exit(3));
    });
}

fn panic_in_a_task() {
    finish(|scope| scope.spawn(|_| panic!("on purpose")));
}

fn panic_in_a_task_after_a_race() {
    finish(|scope| {
        race(scope, &WORD);
        scope.spawn(|_| panic!("on purpose"));
    });
}

fn abort_in_a_task() {
    finish(|scope| scope.spawn(|_| process::abort()));
}

fn abort_in_a_task_after_a_race() {
    finish(|scope| {
        race(scope, &WORD);
        scope.spawn(|_| process::abort());
    });
}

fn segfault_in_a_task() {
    // SAFETY: it is not; the system ends the program.
    finish(|scope| spawn!(scope, unsafe { black_box(std::ptr::dangling_mut::<u64>()).write_volatile(1) }));
}

/// Threads that DagSan does not know use everything that has a hook, while tasks run.
fn threads_hammering() {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let guarded = Mutex::new(HashMap::new());
    thread::scope(|threads| {
        for id in 0..2u64 {
            let (stop, count, guarded) = (&stop, &count, &guarded);
            threads.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    let mut words: Vec<u64> = (0..black_box(100)).collect();
                    words.reverse();
                    words.copy_within(10..20, 50);
                    black_box(Arc::new(words.clone()) == Arc::new(words));
                    count.fetch_add(1, Ordering::AcqRel);
                    if let Ok(mut map) = guarded.lock() {
                        *map.entry(id).or_insert(0u64) += 1;
                    }
                }
            });
        }
        for _ in 0..50 {
            siblings(|| {
                let mut own = vec![0u64; black_box(500)];
                own.iter_mut().for_each(|word| *word += 1);
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        while count.load(Ordering::Relaxed) < 1000 {
            thread::yield_now();
        }
        stop.store(true, Ordering::Release);
    });
}

/// Another thread has tasks of its own, while this one's are checked.
fn threads_with_tasks() {
    finish(|scope| {
        spawn!(scope, store!(WORD, 1));
        let other = thread::spawn(|| {
            let word = Shared::new(0u64);
            finish(|scope| {
                let word = &word;
                spawn!(scope, store!(word, 1));
                spawn!(scope, store!(word, 2));
            });
        });
        assert!(other.join().is_ok());
    });
}

/// All tasks are on a thread that is not the main one.
fn thread_runs_all_tasks() {
    let thread = thread::Builder::new().name("worker".to_owned());
    let started = thread.spawn(|| finish(|scope| race(scope, &WORD)));
    assert!(started.is_ok_and(|thread| thread.join().is_ok()));
}

fn fork_and_exec() {
    siblings(|| {
        let status = Command::new("sh").args(["-c", "exit 4"]).status();
        assert_eq!(status.ok().and_then(|status| status.code()), Some(4));
    });
}

/// The child ends like a program does, and must not report in the name of its parent.
fn fork_and_exit() {
    finish(|scope| {
        race(scope, &WORD);
        scope.spawn(|_| {
            // SAFETY: there is one thread; the child makes some accesses and leaves.
            let child = unsafe { libc::fork() };
            if child == 0 {
                store!(WORD, 3);
                black_box(vec![1u8; 1000]);
                process::exit(0);
            }
            let mut status = -1;
            // SAFETY: waits for the child.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        });
    });
}

/// Some hundred thousand lines that the detector has to remember something of.
fn much_memory_after_a_race() {
    let words: Vec<Shared<u64>> = (0..8 * 300_000).map(Shared::new).collect();
    finish(|scope| {
        race(scope, &WORD);
        for word in words.iter().step_by(8) {
            spawn!(scope, store!(word, 1));
        }
    });
}

/// The system gives no more memory to anybody.
fn no_memory_after_a_race() {
    let words: Vec<Shared<u64>> = (0..10_000_000).map(Shared::new).collect();
    finish(|scope| {
        race(scope, &WORD);
        get_no_more_memory();
        for word in &words {
            spawn!(scope, store!(word, 1));
        }
    });
}

/// From now on the system gives no more memory.
fn get_no_more_memory() {
    // SAFETY: plain numbers.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_DATA, &raw mut limit), 0);
        limit.rlim_cur = 1 << 20;
        assert_eq!(libc::setrlimit(libc::RLIMIT_DATA, &raw const limit), 0);
    }
}

/// Neither does the allocator: the program has taken all that is free.
fn no_byte_after_a_race() {
    finish(|scope| {
        race(scope, &WORD);
        get_no_more_memory();
        for size in (4..26).rev().map(|power| 1 << power) {
            // SAFETY: any size will do.
            while !unsafe { libc::malloc(size) }.is_null() {}
        }
        spawn!(scope, drop(black_box(vec![0_u8; 100])));
    });
}

fn deadlock_of_promises() {
    let (left, right) = (Promise::<()>::named("left"), Promise::<()>::named("right"));
    finish(|scope| {
        let (left, right) = (&left, &right);
        spawn!(scope, left.get(); right.set(()););
        spawn!(scope, right.get(); left.set(()););
    });
}

fn deadlock_after_a_race() {
    let never = Promise::<()>::named("never");
    finish(|scope| {
        race(scope, &WORD);
        let never = &never;
        spawn!(scope, never.get(););
    });
}

fn deadlock_that_is_handled() {
    let never = Promise::<()>::named("never");
    finish(|scope| {
        let never = &never;
        spawn!(scope, assert!(never.try_get().is_err()));
    });
}

fn race_below_three_functions() {
    #[inline(never)]
    fn outer(word: &Shared<u64>) {
        middle(word);
        black_box(());
    }
    #[inline(never)]
    fn middle(word: &Shared<u64>) {
        inner(word);
        black_box(());
    }
    #[inline(never)]
    fn inner(word: &Shared<u64>) {
        store!(word, black_box(1));
        black_box(());
    }
    finish(|scope| {
        spawn!(scope, outer(&WORD));
        outer(&WORD);
    });
}

/// What it does depends on more than its input.
fn race_if_asked_for() {
    finish(|scope| {
        spawn!(scope, ());
        if std::env::var_os("RACE").is_some() {
            race(scope, &WORD);
        }
    });
}

/// What it does depends on a file that it writes itself, which a variable names.
fn race_the_first_time() {
    let Some(file) = std::env::var_os("COUNTER") else { return };
    println!("it runs");
    let again = std::fs::exists(&file).unwrap();
    std::fs::write(&file, "once").unwrap();
    finish(|scope| {
        spawn!(scope, ());
        if !again {
            race(scope, &WORD);
        }
    });
}

/// Races if standard input says so, in its second line.
fn race_of_the_input() {
    let lines: Vec<String> = std::io::stdin().lines().map_while(Result::ok).collect();
    println!("{} lines", lines.len());
    finish(|scope| {
        spawn!(scope, ());
        if lines.get(1).is_some_and(|line| line == "race") {
            race(scope, &WORD);
        }
    });
}

/// Ten thousand tasks, some deep, some waiting, and no race.
fn many_tasks() {
    fn tree(depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let sum = AtomicU64::new(0);
        finish(|scope| {
            for _ in 0..2 {
                scope.spawn(|_| _ = sum.fetch_add(tree(depth - 1), Ordering::Relaxed));
            }
        });
        sum.into_inner()
    }
    assert_eq!(tree(12), 4096);
    let go = Promise::new();
    finish(|scope| {
        let go = &go;
        for _ in 0..2000 {
            spawn!(scope, go.get(); load!(WORD));
        }
        store!(WORD, 1);
        go.set(());
    });
}

/// What it does to memory is not seen, if it is given an address, as a pointer or as a number.
fn assembly_in_tasks() {
    let increment = |word: *mut u64| {
        // SAFETY: the word lives, and no other thread uses it.
        unsafe { std::arch::asm!("inc qword ptr [{}]", in(reg) word) };
    };
    siblings(|| increment(WORD.at()));
    let increment_at = |address: usize| {
        // SAFETY: as above.
        unsafe { std::arch::asm!("inc qword ptr [{}]", in(reg) address) };
    };
    siblings(|| increment_at(WORD.at() as usize));
    siblings(|| {
        // SAFETY: changes a register.
        let twice: u64 = unsafe {
            let mut number = black_box(2u64);
            std::arch::asm!("add {0}, {0}", inout(reg) number, options(pure, nomem, nostack));
            number
        };
        black_box(twice);
    });
}
