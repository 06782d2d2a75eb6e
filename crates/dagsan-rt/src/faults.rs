//! Faults of the program: it dies by a signal, as it would without us, but what was found until then is written first.
//!
//! For C and C++. In Rust the standard library has a handler of its own, which tells an overflow of the stack from other faults and aborts; and safe code has
//! no others. A handler of the program's takes the place of this one.
//!
//! A stack that has overflowed is no place for a handler, so each thread has another one for it.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::exit;
use crate::session::Inside;

/// What the program does wrong itself.
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// Room for a handler, and for the registers of any processor; the report is made elsewhere (`reserve`).
const SIZE: usize = 64 << 10;

/// Has faults heard of that nobody else wants to hear of. To be called by the first thread.
pub fn prepare() {
    // The first thread lives as long as the process.
    std::mem::forget(Stack::new());
    for signal in FAULTS {
        // SAFETY: plain calls of the C library; the handler has the right type.
        unsafe {
            let mut known: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut known);
            if known.sa_sigaction == libc::SIG_DFL {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = exit::at_abort as *const () as usize;
                action.sa_flags = libc::SA_ONSTACK;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}

/// The stack that handlers have on this thread, as long as it lives. Null if there is no memory for it.
pub struct Stack(*mut c_void);

impl Stack {
    /// For the present thread.
    pub fn new() -> Stack {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which is the handlers' from here on.
        unsafe {
            let at = libc::mmap(ptr::null_mut(), SIZE, access, flags, -1, 0);
            if at == libc::MAP_FAILED {
                return Stack(ptr::null_mut());
            }
            let stack = libc::stack_t { ss_sp: at, ss_flags: 0, ss_size: SIZE };
            libc::sigaltstack(&raw const stack, ptr::null_mut());
            Stack(at)
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.0.is_null() {
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: SIZE };
            let inside = Inside::enter();
            // SAFETY: the mapping of `new`; no handler runs on it, as this is not one.
            unsafe {
                libc::sigaltstack(&raw const none, ptr::null_mut());
                libc::munmap(self.0, SIZE);
            }
            drop(inside);
        }
    }
}
