//! Allocations that fail, below the runtime and below the program: a library for `LD_PRELOAD`, without hooks, that has what
//! the runtime calls of the C library's allocator. The tests compile it with plain `rustc`.
//!
//! `FAIL=MODE:N` in the environment says what happens to the N-th allocation of the process, counted from its start:
//!
//! ```text
//!   once     it fails
//!   from     it fails, and so does every later one
//!   abort    the allocator aborts, as it does when it finds its memory corrupted, and is not to be entered again
//!   stuck    the same for the first one from the N-th on that is not the main thread's, which comes to wait meanwhile
//! ```
//!
//! What has happened is said on standard error.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

unsafe extern "C" {
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn malloc_usable_size(block: *mut c_void) -> usize;
    fn getenv(name: *const c_char) -> *const c_char;
    fn write(file: c_int, text: *const c_void, len: usize) -> isize;
    fn usleep(microseconds: u32) -> c_int;
    fn abort() -> !;
    fn getpid() -> c_int;
    fn gettid() -> c_int;
}

static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Only one thread is in the allocator at a time, and if it never leaves, none.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// The mode and the number that the environment asks for.
fn wanted() -> Option<(&'static [u8], usize)> {
    // SAFETY: C strings; the program does not change its environment.
    let text = unsafe {
        let text = getenv(c"FAIL".as_ptr());
        if text.is_null() {
            return None;
        }
        CStr::from_ptr(text).to_bytes()
    };
    let colon = text.iter().position(|&byte| byte == b':')?;
    let number = text[colon + 1..].iter().fold(0, |number, &digit| 10 * number + usize::from(digit - b'0'));
    Some((&text[..colon], number))
}

fn say(text: &str) {
    // SAFETY: the bytes of a text.
    unsafe { write(2, text.as_ptr().cast(), text.len()) };
}

/// Does the next allocation succeed?
fn succeeds() -> bool {
    while IN_USE.swap(true, Acquire) {
        std::hint::spin_loop();
    }
    let number = COUNT.fetch_add(1, Relaxed) + 1;
    let succeeds = match wanted() {
        Some((b"once", at)) => number != at,
        Some((b"from", at)) => number < at,
        Some((b"abort", at)) if number == at => {
            say("failing: abort\n");
            // SAFETY: a plain call.
            unsafe { abort() }
        }
        // SAFETY: plain calls.
        Some((b"stuck", at)) if number >= at && unsafe { gettid() != getpid() } => unsafe {
            usleep(50_000);
            say("failing: abort\n");
            abort()
        },
        _ => true,
    };
    if !succeeds {
        say("failing: no memory\n");
    }
    IN_USE.store(false, Release);
    succeeds
}

/// In the place of the C library's.
#[unsafe(no_mangle)]
pub extern "C" fn __libc_malloc(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    if succeeds() { unsafe { __libc_memalign(16, size) } } else { std::ptr::null_mut() }
}

/// In the place of the C library's.
#[unsafe(no_mangle)]
pub extern "C" fn __libc_calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return std::ptr::null_mut() };
    let block = __libc_malloc(size);
    if !block.is_null() {
        // SAFETY: the block has this size.
        unsafe { block.cast::<u8>().write_bytes(0, size) };
    }
    block
}

/// In the place of the C library's.
///
/// # Safety
///
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let new = __libc_malloc(size);
    if !new.is_null() {
        // SAFETY: the caller's promise; both blocks are that long.
        unsafe {
            let both = malloc_usable_size(block).min(size);
            block.cast::<u8>().copy_to_nonoverlapping(new.cast(), both);
            __libc_free(block);
        }
    }
    new
}
