//! Threads and `epoll`: who is told of an event comes after what was done before its file was registered, and after nothing else.
//!
//! As in `threads.rs`: after each point with a race comes its twin without.

use std::ffi::c_int;
use std::thread;

use crate::Point;
use crate::shared::{Pointer, load, store};
use crate::thread_shared::{join, word, work};

pub const POINTS: &[Point] = points![
    poll_registered_too_early,
    poll_registered,
    poll_of_another_number,
    poll_of_both_numbers,
    poll_changed_too_early,
    poll_changed,
    poll_of_before,
    poll_of_a_copy_too_early,
    poll_of_a_copy,
];

/// A file that can be read from at once.
fn ready() -> c_int {
    // SAFETY: a plain call.
    unsafe { libc::eventfd(1, 0) }
}

fn new_poll() -> c_int {
    // SAFETY: a plain call.
    unsafe { libc::epoll_create1(0) }
}

/// Registers a file with the address of a word as its number.
fn register(poll: c_int, operation: c_int, file: c_int, word: Pointer<u64>) {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: word.0.addr() as u64 };
    // SAFETY: the event is there.
    assert_eq!(unsafe { libc::epoll_ctl(poll, operation, file, &raw mut event) }, 0);
}

/// Waits for events of so many files, and returns the number of one of them.
fn wait(poll: c_int, most: usize) -> u64 {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 2];
    // SAFETY: there is room for so many.
    while unsafe { libc::epoll_wait(poll, events.as_mut_ptr(), most as c_int, -1) } < most as c_int {}
    events[0].u64
}

// expect: race write/read on 8 bytes of heap by 0/1, up to atomics
fn poll_registered_too_early() {
    let (data, poll) = (word(), new_poll());
    let thread = thread::spawn(work!(
        wait(poll, 1);
        load!(data) // race (2)
    ));
    register(poll, libc::EPOLL_CTL_ADD, ready(), data);
    store!(data, 2); // race (1)
    join([thread]);
}

// expect: race-free, up to atomics
fn poll_registered() {
    let (data, poll) = (word(), new_poll());
    let thread = thread::spawn(work!(
        wait(poll, 1);
        load!(data)
    ));
    store!(data, 2);
    register(poll, libc::EPOLL_CTL_ADD, ready(), data);
    join([thread]);
}

/// The thread is told of a file that was registered by another one.
// expect: race write/read on 8 bytes of heap by 1/2, up to atomics
fn poll_of_another_number() {
    let (data, other, poll) = (word(), word(), new_poll());
    let thread = thread::spawn(work!(
        store!(data, 2); // race (1)
        // Never ready.
        // SAFETY: a plain call.
        register(poll, libc::EPOLL_CTL_ADD, unsafe { libc::eventfd(0, 0) }, data);
    ));
    let second = thread::spawn(work!(
        wait(poll, 1);
        load!(data) // race (2)
    ));
    register(poll, libc::EPOLL_CTL_ADD, ready(), other);
    join([thread, second]);
}

// expect: race-free, up to atomics
fn poll_of_both_numbers() {
    let (data, other, poll) = (word(), word(), new_poll());
    let thread = thread::spawn(work!(
        store!(data, 2);
        register(poll, libc::EPOLL_CTL_ADD, ready(), data);
    ));
    let second = thread::spawn(work!(
        wait(poll, 2);
        load!(data)
    ));
    register(poll, libc::EPOLL_CTL_ADD, ready(), other);
    join([thread, second]);
}

// expect: race write/read on 8 bytes of heap by 0/1, up to atomics
fn poll_changed_too_early() {
    let (data, other, poll, file) = (word(), word(), new_poll(), ready());
    register(poll, libc::EPOLL_CTL_ADD, file, other);
    let thread = thread::spawn(work!(
        while wait(poll, 1) != data.0.addr() as u64 {}
        load!(data) // race (2)
    ));
    register(poll, libc::EPOLL_CTL_MOD, file, data);
    store!(data, 2); // race (1)
    join([thread]);
}

// expect: race-free, up to atomics
fn poll_changed() {
    let (data, other, poll, file) = (word(), word(), new_poll(), ready());
    register(poll, libc::EPOLL_CTL_ADD, file, other);
    let thread = thread::spawn(work!(
        while wait(poll, 1) != data.0.addr() as u64 {}
        load!(data)
    ));
    store!(data, 2);
    register(poll, libc::EPOLL_CTL_MOD, file, data);
    join([thread]);
}

/// What was registered with an `epoll` that is closed says nothing of another one with its descriptor.
// expect: race write/read on 8 bytes of heap by 1/2, up to atomics
fn poll_of_before() {
    let (data, poll) = (word(), new_poll());
    let thread = thread::spawn(work!(
        store!(data, 2); // race (1)
        register(poll, libc::EPOLL_CTL_ADD, ready(), data);
        wait(poll, 1)
    ));
    // The main thread does not wait for the thread, but looks until it has come to its end.
    while !thread.is_finished() {
        thread::yield_now();
    }
    // SAFETY: nobody uses it any more.
    assert_eq!(unsafe { libc::close(poll) }, 0);
    let again = new_poll();
    assert_eq!(again, poll);
    let second = thread::spawn(work!(
        wait(again, 1);
        load!(data) // race (2)
    ));
    register(again, libc::EPOLL_CTL_ADD, ready(), data);
    join([thread, second]);
}

/// Another descriptor of the same `epoll`, as async runtimes have it.
fn copy(poll: c_int) -> c_int {
    // SAFETY: a plain call.
    unsafe { libc::fcntl(poll, libc::F_DUPFD_CLOEXEC, 3) }
}

// expect: race write/read on 8 bytes of heap by 0/1, up to atomics
fn poll_of_a_copy_too_early() {
    let (data, poll) = (word(), new_poll());
    let copy = copy(poll);
    let thread = thread::spawn(work!(
        wait(poll, 1);
        load!(data) // race (2)
    ));
    register(copy, libc::EPOLL_CTL_ADD, ready(), data);
    store!(data, 2); // race (1)
    join([thread]);
}

// expect: race-free, up to atomics
fn poll_of_a_copy() {
    let (data, poll) = (word(), new_poll());
    let copy = copy(poll);
    let thread = thread::spawn(work!(
        wait(poll, 1);
        load!(data)
    ));
    store!(data, 2);
    register(copy, libc::EPOLL_CTL_ADD, ready(), data);
    join([thread]);
}
