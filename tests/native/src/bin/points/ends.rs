//! Programs that end while something else is going on: other threads, full stacks, forks, memory that is gone. What comes
//! of them is in the tests.

use std::collections::HashMap;
use std::hint::black_box;
use std::panic::Location;
use std::process;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dagsan_task::{Promise, Scope, finish};

use crate::Point;
use crate::shared::{Pointer, Shared, load, spawn, store};

pub const BEHAVIOURS: &[Point] = points![
    some_of_everything,
    allocations_beside_tasks,
    exit_beside_tasks,
    abort_beside_tasks,
    aborts_of_two_threads,
    exit_of_the_main_thread_beside_tasks,
    overflow,
    overflow_in_a_task,
    overflow_in_a_thread,
    fork_and_go_on,
    fork_behind_our_back,
    thread_ends_with_tasks,
    thread_ends_after_detached_tasks,
    thread_leaves_by_pthread_exit,
    word_that_another_thread_unmaps,
    word_on_the_stack_of_an_ended_thread,
    word_in_a_freed_block,
    word_that_code_without_hooks_changes,
];

static WORD: Shared<u64> = Shared::new(0);

fn race(scope: &Scope<'_>) {
    spawn!(scope, store!(WORD, 1));
    spawn!(scope, load!(WORD));
}

/// A race, and then a little of all that needs memory. Says when it begins, without needing some.
fn some_of_everything() {
    // SAFETY: five bytes of a text.
    assert_eq!(unsafe { libc::write(1, c"begun".as_ptr().cast(), 5) }, 5);
    let promise = Promise::new();
    let promise = &promise;
    finish(|scope| {
        race(scope);
        scope.spawn(move |_| {
            promise.get();
            let mut map = HashMap::new();
            (0..black_box(20)).for_each(|number| _ = map.insert(number, vec![number; 3]));
        });
        let mut grows = Vec::new();
        (0..black_box(200)).for_each(|number| grows.push(number));
        promise.set(());
    });
    // Whoever has no memory for a thread does without. Not one of the standard library's, which asks the C library for the
    // stack of each: that does not survive a lack of memory.
    if let Some(thread) = start_thread(allocate) {
        join_thread(thread);
    }
}

extern "C-unwind" fn allocate(_: *mut libc::c_void) -> *mut libc::c_void {
    drop(black_box(Box::new(1)));
    std::ptr::null_mut()
}

type Entry = extern "C-unwind" fn(*mut libc::c_void) -> *mut libc::c_void;

/// Starts a thread as C does.
fn start_thread(entry: Entry) -> Option<libc::pthread_t> {
    unsafe extern "C" {
        fn pthread_create(
            thread: *mut libc::pthread_t,
            attributes: *const libc::pthread_attr_t,
            entry: Entry,
            argument: *mut libc::c_void,
        ) -> i32;
    }
    let mut thread = 0;
    // SAFETY: the entry takes whatever it is given.
    let failed = unsafe { pthread_create(&raw mut thread, std::ptr::null(), entry, std::ptr::null_mut()) };
    (failed == 0).then_some(thread)
}

fn join_thread(thread: libc::pthread_t) {
    // SAFETY: the thread has been started, and is joined once.
    assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
}

fn allocations_beside_tasks() {
    beside_tasks(|| {
        loop {
            drop(black_box(Box::new(1)));
        }
    });
}

/// Has tasks without end: the thread is inside of the runtime most of the time.
fn busy_tasks(race_found: &AtomicU32) -> ! {
    finish(|scope| {
        race(scope);
        race_found.store(1, Ordering::Release);
        loop {
            finish(|scope| {
                for number in 0..100u64 {
                    scope.spawn(move |_| drop(black_box(vec![number; 50])));
                }
            });
        }
    })
}

/// Does something on another thread when the tasks of this one are at full speed.
fn beside_tasks(act: impl FnOnce() + Send + 'static) -> ! {
    static RACE_FOUND: AtomicU32 = AtomicU32::new(0);
    thread::spawn(move || {
        while RACE_FOUND.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(3));
        act();
    });
    busy_tasks(&RACE_FOUND)
}

fn exit_beside_tasks() {
    beside_tasks(|| process::exit(3));
}

fn abort_beside_tasks() {
    beside_tasks(|| process::abort());
}

fn aborts_of_two_threads() {
    beside_tasks(|| {
        thread::spawn(|| process::abort());
        process::abort();
    });
}

/// The tasks are on another thread than the main one, which returns.
fn exit_of_the_main_thread_beside_tasks() {
    static RACE_FOUND: AtomicU32 = AtomicU32::new(0);
    thread::spawn(|| busy_tasks(&RACE_FOUND));
    while RACE_FOUND.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(3));
}

/// Calls itself until there is no stack.
#[inline(never)]
fn endless(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    if depth == u64::MAX { room[7] } else { endless(depth + 1) + black_box(&room)[3] }
}

fn overflow() {
    finish(|scope| race(scope));
    black_box(endless(0));
}

fn overflow_in_a_task() {
    finish(|scope| {
        race(scope);
        spawn!(scope, black_box(endless(0)));
    });
}

fn overflow_in_a_thread() {
    finish(|scope| {
        race(scope);
        assert!(thread::spawn(|| black_box(endless(0))).join().is_err());
    });
}

/// Bytes that the allocator has given away.
fn in_use() -> usize {
    // SAFETY: a plain call.
    unsafe { libc::mallinfo2() }.uordblks
}

/// Waits for a child, which must have ended well.
fn await_child(child: i32) {
    let mut status = -1;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child");
}

/// What the child does after the fork costs nothing: no memory, above all.
fn in_the_child(words: &[Shared<u64>]) -> ! {
    let before = in_use();
    finish(|scope| {
        race(scope);
        for word in words {
            spawn!(scope, store!(word, 1));
        }
    });
    let more = in_use().saturating_sub(before);
    process::exit(if more < 100_000 { 0 } else { 1 })
}

fn words() -> Vec<Shared<u64>> {
    (0..100_000).map(Shared::new).collect()
}

fn fork_and_go_on() {
    let words = words();
    finish(|scope| {
        scope.spawn(|_| {
            // SAFETY: there is one thread.
            match unsafe { libc::fork() } {
                0 => in_the_child(&words),
                child => await_child(child),
            }
        });
        race(scope);
    });
}

/// A fork that the C library does not tell of.
fn fork_behind_our_back() {
    finish(|scope| {
        race(scope);
        scope.spawn(|_| {
            // SAFETY: there is one thread; the child leaves.
            match unsafe { libc::syscall(libc::SYS_fork) } {
                0 => process::exit(0),
                child => await_child(child as i32),
            }
        });
    });
}

unsafe extern "C" {
    safe fn __dagsan_finish_begin();
    safe fn __dagsan_task_end();
    safe fn __dagsan_current() -> u64;
    safe fn __dagsan_resume(task: u64);
}

// The runtime knows a `Location` as Rust does.
#[allow(improper_ctypes)]
unsafe extern "C" {
    safe fn __dagsan_spawn(kind: u32, place: &'static Location<'static>, low: usize, high: usize) -> u64;
}

/// A thread that has run a task which only the end of the program joins goes away after it.
fn thread_ends_after_detached_tasks() {
    let run = || {
        let (before, frame) = (__dagsan_current(), 0u8);
        __dagsan_spawn(3, Location::caller(), 0, (&raw const frame).addr());
        store!(WORD, 1);
        __dagsan_task_end();
        __dagsan_resume(before);
    };
    assert!(thread::spawn(run).join().is_ok());
}

/// A thread that has opened a scope goes away. Another one may have its address next.
fn thread_ends_with_tasks() {
    assert!(thread::spawn(|| __dagsan_finish_begin()).join().is_ok());
    for _ in 0..2 {
        assert!(thread::spawn(|| finish(|scope| race(scope))).join().is_ok());
    }
}

extern "C-unwind" fn leave(_: *mut libc::c_void) -> *mut libc::c_void {
    unsafe extern "C-unwind" {
        fn pthread_exit(value: *mut libc::c_void) -> !;
    }
    // SAFETY: nothing is left behind on this stack.
    unsafe { pthread_exit(std::ptr::null_mut()) }
}

fn thread_leaves_by_pthread_exit() {
    let thread = start_thread(leave);
    assert!(thread.is_some());
    thread.into_iter().for_each(join_thread);
    finish(|scope| race(scope));
}

/// A page of its own.
fn page() -> *mut AtomicU64 {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    at.cast()
}

/// The task will not look at the word again; the runtime will.
fn word_that_another_thread_unmaps() {
    finish(|scope| {
        race(scope);
        scope.spawn(|_| {
            let word = Pointer(page());
            // SAFETY: the page is there.
            black_box(unsafe { &*word.at() }.load(Ordering::Acquire));
            let other = thread::spawn(move || {
                // SAFETY: nobody uses the page any more.
                assert_eq!(unsafe { libc::munmap(word.at().cast(), 4096) }, 0);
            });
            assert!(other.join().is_ok());
        });
    });
}

fn word_on_the_stack_of_an_ended_thread() {
    finish(|scope| {
        race(scope);
        scope.spawn(|_| {
            let (lent, done) = (AtomicPtr::new(std::ptr::null_mut()), AtomicU32::new(0));
            thread::scope(|threads| {
                // A stack that the C library does not keep for the next thread.
                let large = thread::Builder::new().stack_size(256 << 20);
                let other = large.spawn_scoped(threads, || {
                    let word = AtomicU64::new(1);
                    lent.store((&raw const word).cast_mut(), Ordering::Release);
                    while done.load(Ordering::Acquire) == 0 {
                        thread::yield_now();
                    }
                });
                assert!(other.is_ok());
                while lent.load(Ordering::Relaxed).is_null() {
                    thread::yield_now();
                }
                // SAFETY: the other thread waits.
                black_box(unsafe { &*lent.load(Ordering::Relaxed) }.load(Ordering::Acquire));
                done.store(1, Ordering::Release);
            });
        });
    });
}

/// With `heap=0` nobody hears of frees.
fn word_in_a_freed_block() {
    finish(|scope| {
        race(scope);
        scope.spawn(|_| {
            let block: Vec<AtomicU64> = (0..1 << 17).map(AtomicU64::new).collect();
            black_box(block[1 << 16].load(Ordering::Acquire));
            drop(black_box(block));
        });
    });
}

/// And what is there is still seen, on the heap too: the first task makes the value, the second sees it.
fn word_that_code_without_hooks_changes() {
    let once = Box::new(std::sync::OnceLock::new());
    let made = Shared::new(0u64);
    let (once, made) = (&once, &made);
    finish(|scope| {
        for _ in 0..2 {
            spawn!(scope, once.get_or_init(|| store!(made, 1)); load!(made));
        }
    });
}
