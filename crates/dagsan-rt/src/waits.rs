//! Functions of the C library that may take long: while a thread is in one of them, others have their turns.
//!
//! ```text
//!   futex (std, parking_lot, …)   the runtime's own waiting line (`turns`), and an order between those who wait and who wakes them
//!   sched_yield                   the next one in the line
//!   sleep, read, poll, accept, …  outside: the call is made as it is, by a thread that does not have the turn
//! ```
//!
//! **Order.** A thread that is woken comes after the one that wakes it, which comes after all that had begun to wait. That is what
//! condition variables, barriers and `park` mean, whose words code without hooks changes. A word that atomic operations are known of
//! says by these what it means, and a futex on it means nothing more.
//!
//! Calls that are not here, and system calls that the program makes by itself, are found out by whoever waits (`turns`).

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::session::{self, Inside};
use crate::start;
use crate::system;
use crate::threads;
use crate::turns;

/// Makes the call while others have their turns, if this thread takes turns.
#[inline]
pub fn outside<R>(call: impl FnOnce() -> R) -> R {
    if !turns::is_seated() {
        return call();
    }
    let Some(inside) = Inside::enter() else { return call() };
    let away = turns::go_outside(&inside);
    let result = call();
    // SAFETY: this thread's number of the last error, which the call has set.
    unsafe {
        let error = *libc::__errno_location();
        drop(away);
        *libc::__errno_location() = error;
    }
    result
}

/// The function of that name that would have been called if the runtime did not define one.
pub fn next<F: Copy>(name: *const c_char) -> Option<F> {
    const { assert!(size_of::<Option<F>>() == size_of::<*mut c_void>()) };
    // SAFETY: the name is a C string, and if there is a function of that name it has the type that the caller says, as large as a
    // pointer, of which null is none.
    unsafe {
        let address = libc::dlsym(libc::RTLD_NEXT, name);
        std::mem::transmute_copy::<*mut c_void, Option<F>>(&address)
    }
}

/// Functions that are as in the C library, but for the turns.
macro_rules! outside {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $failed:expr;)*) => { $(
        /// As in the C library; others have their turns meanwhile.
        ///
        /// # Safety
        ///
        /// As for the function of this name in the C library, which gets all arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            type Real = unsafe extern "C" fn($($type),*) -> $result;
            static REAL: OnceLock<Option<Real>> = OnceLock::new();
            let name = concat!(stringify!($name), "\0").as_ptr();
            match *REAL.get_or_init(|| next(name.cast())) {
                // SAFETY: the caller's promise.
                Some(real) => outside(|| unsafe { real($($argument),*) }),
                None => $failed,
            }
        }
    )* };
}

outside! {
    nanosleep(time: *const libc::timespec, rest: *mut libc::timespec) -> c_int = -1;
    clock_nanosleep(clock: c_int, flags: c_int, time: *const libc::timespec, rest: *mut libc::timespec) -> c_int = libc::ENOSYS;
    sleep(seconds: c_uint) -> c_uint = seconds;
    usleep(time: c_uint) -> c_int = -1;
    pause() -> c_int = -1;
    read(file: c_int, into: *mut c_void, count: usize) -> isize = -1;
    readv(file: c_int, into: *const libc::iovec, count: c_int) -> isize = -1;
    recv(socket: c_int, into: *mut c_void, count: usize, flags: c_int) -> isize = -1;
    recvfrom(socket: c_int, into: *mut c_void, count: usize, flags: c_int, from: *mut c_void, length: *mut c_void) -> isize = -1;
    recvmsg(socket: c_int, message: *mut c_void, flags: c_int) -> isize = -1;
    accept(socket: c_int, address: *mut c_void, length: *mut c_void) -> c_int = -1;
    accept4(socket: c_int, address: *mut c_void, length: *mut c_void, flags: c_int) -> c_int = -1;
    connect(socket: c_int, address: *const c_void, length: c_uint) -> c_int = -1;
    poll(files: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int = -1;
    select(count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, timeout: *mut c_void) -> c_int = -1;
    waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int = -1;
    waitid(kind: c_uint, process: c_uint, info: *mut c_void, options: c_int) -> c_int = -1;
}

/// As in the C library: the next thread that is ready has its turn.
#[unsafe(no_mangle)]
pub extern "C" fn sched_yield() -> c_int {
    if turns::is_seated()
        && let Some(inside) = Inside::enter()
    {
        turns::yield_now(&inside);
        return 0;
    }
    // SAFETY: a plain call.
    unsafe { system::call(libc::SYS_sched_yield, [0; 6]) };
    0
}

/// As in the C library. Arguments that the call does not have are whatever the registers hold, as in the system call itself.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let arguments = [a, b, c, d, e, f];
    // SAFETY: the caller's promise.
    let result = unsafe {
        match number {
            libc::SYS_futex if start::is_on() => futex(arguments, start::frame()),
            _ => system::call(number, arguments),
        }
    };
    if (-4095..0).contains(&result) {
        // SAFETY: this thread's number of the last error.
        unsafe { *libc::__errno_location() = -result as c_int };
        return -1;
    }
    result as c_long
}

/// A futex of the program's.
///
/// # Safety
///
/// As for the system call.
unsafe fn futex(arguments: [usize; 6], frame: usize) -> isize {
    let [address, operation, value, time, ..] = arguments;
    let clock = operation as c_int & libc::FUTEX_CLOCK_REALTIME;
    let operation = operation as c_int & !libc::FUTEX_CLOCK_REALTIME;
    const WAIT: c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    const WAIT_BITSET: c_int = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    const WAKE: c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    const WAKE_BITSET: c_int = libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the caller's promise.
    let real = || unsafe { system::call(libc::SYS_futex, arguments) };
    if !turns::are_taken() {
        return real();
    }
    match operation {
        WAIT | WAIT_BITSET if turns::is_seated() => {
            // SAFETY: null, or a time.
            let time = unsafe { (time as *const libc::timespec).as_ref() };
            let until = time.map(|time| deadline(time, operation == WAIT, clock != 0));
            wait(address, value as u32, until, frame).unwrap_or_else(real)
        }
        WAKE | WAKE_BITSET => {
            let most = usize::try_from(value as i32).unwrap_or(usize::MAX);
            let woken = wake(address, most, frame);
            // There may be others, who do not take turns.
            if woken < most { woken as isize + real().max(0) } else { woken as isize }
        }
        _ => outside(real),
    }
}

/// When to wait no longer. A time that is not from now on is of one of two clocks.
fn deadline(time: &libc::timespec, from_now: bool, real_time: bool) -> Instant {
    let length = |time: &libc::timespec| {
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    };
    let now = Instant::now();
    let rest = if from_now {
        length(time)
    } else {
        let mut clock = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let which = if real_time { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
        // SAFETY: writes the time.
        unsafe { libc::clock_gettime(which, &raw mut clock) };
        length(time).saturating_sub(length(&clock))
    };
    // A time beyond all reckoning is as good as a year.
    now.checked_add(rest).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
}

/// Waits until the word is woken, if it has that value. None if the thread is inside of the runtime.
fn wait(address: usize, value: u32, until: Option<Instant>, frame: usize) -> Option<isize> {
    let inside = Inside::enter()?;
    if !turns::is_mine_inside(&inside) {
        return None;
    }
    // SAFETY: the caller of the futex promises that there is a word.
    if unsafe { system::load(address, 4) } != Some(value.into()) {
        return Some(-(libc::EAGAIN as isize));
    }
    session::called_inside(&inside, frame, |session| session.waits_for(address));
    let woken = turns::wait(&inside, address, until);
    Some(if woken { 0 } else { -(libc::ETIMEDOUT as isize) })
}

/// Wakes so many of those who wait for the word. How many there were.
fn wake(address: usize, most: usize, frame: usize) -> usize {
    let Some(inside) = Inside::enter() else { return 0 };
    let mine = turns::is_seated() && turns::is_mine_inside(&inside);
    let woken = turns::wake(&inside, address, most);
    if mine && !woken.is_empty() && !threads::is_of_scope_left(address) {
        session::called_inside(&inside, frame, |session| session.wakes(address, &woken));
    }
    woken.len()
}
