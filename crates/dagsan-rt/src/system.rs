//! The few system calls of the runtime's own that must not go through the program's functions, some of which are the runtime's, too.

use std::arch::asm;
use std::io::Write;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A system call. What the system returns: a small negative number is an error.
///
/// # Safety
///
/// As for the call.
#[inline]
pub unsafe fn call(number: i64, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the caller's promise. The system keeps all registers but these.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// What this thread has used of its processor so far: others do not count.
pub fn time_of_thread() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Sleeps while the word has this value, but not longer than that.
pub fn sleep_on(word: &AtomicU32, value: u32, longest: Duration) {
    let time =
        libc::timespec { tv_sec: longest.as_secs().cast_signed(), tv_nsec: longest.subsec_nanos().into() };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let arguments =
        [word.as_ptr().addr(), operation as usize, value as usize, (&raw const time).addr(), 0, 0];
    // SAFETY: the word and the time live until it returns. If it returns early, the caller looks at the word again.
    unsafe { call(libc::SYS_futex, arguments) };
}

/// Wakes who sleeps on the word.
pub fn wake_one(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives.
    unsafe { call(libc::SYS_futex, [word.as_ptr().addr(), operation as usize, 1, 0, 0, 0]) };
}

/// Wakes all who sleep on the word.
pub fn wake_all(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives.
    unsafe { call(libc::SYS_futex, [word.as_ptr().addr(), operation as usize, i32::MAX as usize, 0, 0, 0]) };
}

/// Signals go to other threads than this one, but for those of its own faults.
pub fn hear_no_signals() {
    // SAFETY: plain calls, on a set of this function's own.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut signals);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT] {
            libc::sigdelset(&raw mut signals, fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
    }
}

/// The number of this thread.
pub fn thread_id() -> i32 {
    // SAFETY: a plain call.
    unsafe { call(libc::SYS_gettid, [0; 6]) as i32 }
}

/// Does the thread of this number sleep? If nobody can tell, it does not.
pub fn sleeps(thread: i32) -> bool {
    let mut path = [0; 40];
    // It has room for any number. This does not allocate.
    if write!(&mut path[..], "/proc/self/task/{thread}/stat\0").is_err() {
        return false;
    }
    let mut text = [0u8; 128];
    // SAFETY: the path is a C string, and the text has room for what is asked for.
    let length = unsafe {
        let file = call(libc::SYS_open, [path.as_ptr().addr(), libc::O_RDONLY as usize, 0, 0, 0, 0]);
        if file < 0 {
            return false;
        }
        let length = call(libc::SYS_read, [file as usize, text.as_mut_ptr().addr(), text.len(), 0, 0, 0]);
        call(libc::SYS_close, [file as usize, 0, 0, 0, 0, 0]);
        length
    };
    let text = &text[..usize::try_from(length).unwrap_or(0)];
    // `1234 (name) S …`: the name may have anything in it.
    let state = text.iter().rposition(|&byte| byte == b')').and_then(|end| text.get(end + 2));
    matches!(state, Some(b'S' | b'D'))
}

/// The value of an atomic of so many bytes, if it is one that the processor loads at once.
///
/// # Safety
///
/// It lives.
pub unsafe fn load(address: usize, bytes: usize) -> Option<u64> {
    // SAFETY: the caller's promise; it is an atomic, so it is aligned.
    unsafe {
        Some(match bytes {
            1 => AtomicU8::from_ptr(address as *mut u8).load(Relaxed).into(),
            2 => AtomicU16::from_ptr(address as *mut u16).load(Relaxed).into(),
            4 => AtomicU32::from_ptr(address as *mut u32).load(Relaxed).into(),
            8 => AtomicU64::from_ptr(address as *mut u64).load(Relaxed),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_is_seen() {
        let (send, receive) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(thread_id()).unwrap_or_default();
            stopped.recv().unwrap_or_default();
        });
        let id = receive.recv().unwrap_or_default();
        while !sleeps(id) {
            std::thread::yield_now();
        }
        assert!(!sleeps(thread_id()) && !sleeps(i32::MAX));
        drop(stop);
        assert!(thread.join().is_ok());
    }
}
