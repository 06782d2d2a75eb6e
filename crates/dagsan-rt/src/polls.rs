//! `epoll`, by which async runtimes wait: what was done before a file was registered comes before what is done with its events
//! (`sync::polls`), and while a thread waits for these others have their turns (`waits`).
//!
//! An `epoll` may have several descriptors: async runtimes register with one and wait with another. Descriptors that are copied by `fcntl`, as the
//! standard library does it, are known to be the same one's; those of `dup` are not.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::session::{self, Inside, Session};
use crate::start;
use crate::turns;
use crate::waits::{next, outside};

/// The `epoll` of each descriptor, or 0. Whoever uses a descriptor has been given it by the program, which orders that: a number is all there is.
static POLLS: [AtomicU32; 4096] = [const { AtomicU32::new(0) }; 4096];

/// How many there were.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Its place in the table. Who has more descriptors than that has an `epoll` of each of them.
fn place(descriptor: c_int) -> Option<&'static AtomicU32> {
    POLLS.get(usize::try_from(descriptor).ok()?)
}

/// Which `epoll` a descriptor is of.
fn poll_of(descriptor: c_int) -> u32 {
    let Some(place) = place(descriptor) else { return u32::MAX - descriptor as u32 };
    match place.load(Relaxed) {
        // It was made by means that are not known.
        0 => {
            let new = COUNT.fetch_add(1, Relaxed) + 1;
            place.compare_exchange(0, new, Relaxed, Relaxed).map_or_else(|other| other, |_| new)
        }
        known => known,
    }
}

/// Has the session hear of what the running thread does, if it has the turn.
fn tell(frame: usize, what: impl FnOnce(&mut Session)) {
    if turns::is_seated()
        && let Some(inside) = Inside::enter()
        && turns::is_mine_inside(&inside)
    {
        session::called_inside(&inside, frame, what);
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn epoll_ctl(
    poll: c_int,
    operation: c_int,
    file: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    type Real = unsafe extern "C" fn(c_int, c_int, c_int, *mut libc::epoll_event) -> c_int;
    static REAL: OnceLock<Option<Real>> = OnceLock::new();
    let Some(real) = *REAL.get_or_init(|| next(c"epoll_ctl".as_ptr())) else { return -1 };
    // Another thread may be told of an event as soon as the call is made. One that fails has told nobody.
    if matches!(operation, libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD) && !event.is_null() {
        // SAFETY: the caller's promise; the structure is packed.
        let number = unsafe { (&raw const (*event).u64).read_unaligned() };
        let (of, once_more) = (poll_of(poll), operation == libc::EPOLL_CTL_MOD);
        tell(start::frame(), |session| session.registers(of, number, once_more));
    }
    // SAFETY: the caller's promise.
    unsafe { real(poll, operation, file, event) }
}

/// As in the C library; others have their turns meanwhile.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn epoll_wait(
    poll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    type Real = unsafe extern "C" fn(c_int, *mut libc::epoll_event, c_int, c_int) -> c_int;
    static REAL: OnceLock<Option<Real>> = OnceLock::new();
    let Some(real) = *REAL.get_or_init(|| next(c"epoll_wait".as_ptr())) else { return -1 };
    // SAFETY: the caller's promise.
    let count = outside(|| unsafe { real(poll, events, most, timeout) });
    // SAFETY: so many events were written.
    unsafe { told(poll, events, count, start::frame()) };
    count
}

/// As in the C library; others have their turns meanwhile.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn epoll_pwait(
    poll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
    signals: *const libc::sigset_t,
) -> c_int {
    type Real =
        unsafe extern "C" fn(c_int, *mut libc::epoll_event, c_int, c_int, *const libc::sigset_t) -> c_int;
    static REAL: OnceLock<Option<Real>> = OnceLock::new();
    let Some(real) = *REAL.get_or_init(|| next(c"epoll_pwait".as_ptr())) else { return -1 };
    // SAFETY: the caller's promise.
    let count = outside(|| unsafe { real(poll, events, most, timeout, signals) });
    // SAFETY: so many events were written.
    unsafe { told(poll, events, count, start::frame()) };
    count
}

/// The thread is told of events.
///
/// # Safety
///
/// There are so many, if the number is not negative.
unsafe fn told(poll: c_int, events: *const libc::epoll_event, count: c_int, frame: usize) {
    let Some(count) = usize::try_from(count).ok().filter(|&count| count > 0) else { return };
    // SAFETY: the caller's promise; the structure is packed.
    let number = |at: usize| unsafe { (&raw const (*events.add(at)).u64).read_unaligned() };
    tell(frame, |session| session.is_told(poll_of(poll), (0..count).map(number)));
}

/// As in the C library: what was registered with another `epoll` of the same descriptor is over.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    type Real = unsafe extern "C" fn(c_int) -> c_int;
    static REAL: OnceLock<Option<Real>> = OnceLock::new();
    let Some(real) = *REAL.get_or_init(|| next(c"epoll_create1".as_ptr())) else { return -1 };
    // SAFETY: a plain call.
    let poll = unsafe { real(flags) };
    if let Some(place) = place(poll) {
        place.store(COUNT.fetch_add(1, Relaxed) + 1, Relaxed);
    }
    poll
}

/// As in the C library: a copy of a descriptor is the same `epoll`'s. An argument that the operation does not have is whatever the register holds.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(file: c_int, operation: c_int, argument: usize) -> c_int {
    type Real = unsafe extern "C" fn(c_int, c_int, usize) -> c_int;
    static REAL: OnceLock<Option<Real>> = OnceLock::new();
    let Some(real) = *REAL.get_or_init(|| next(c"fcntl".as_ptr())) else { return -1 };
    // SAFETY: the caller's promise.
    let result = unsafe { real(file, operation, argument) };
    if matches!(operation, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC)
        && let (Some(copy), Some(place)) = (place(result), place(file))
    {
        copy.store(place.load(Relaxed), Relaxed);
    }
    result
}
