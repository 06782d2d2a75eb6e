//! Mappings of the program's own: memory that the system gives and takes.
//!
//! What is unmapped is freed; what `mremap` moves is other memory, which the task that asked has written. A mapping at an address of the program's choice may be
//! where the tables have no window yet (`layout`).
//!
//! It cannot see a mapping that is put over another (`MAP_FIXED`), nor those that the C library makes for itself.

use std::ffi::{c_int, c_void};

use crate::blocks::FRAMES;
use crate::exit;
use crate::layout;
use crate::session;
use crate::sites;
use crate::start;
use crate::state::{is_active, worker};

/// There is something at these addresses from here on.
fn covered(start: *mut c_void, size: usize) {
    let start = start as usize;
    if let Err(error) = layout::cover(start..start.saturating_add(size)) {
        exit::refuse(&format!("a mapping of the program's cannot be checked: {error}"));
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let mapped =
        unsafe { libc::syscall(libc::SYS_mmap, at, size, protection, flags, file, offset) } as *mut c_void;
    if mapped != libc::MAP_FAILED {
        covered(mapped, size);
    }
    mapped
}

/// As in the C library, where it is the same on x86-64.
///
/// # Safety
///
/// As for [`mmap`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { mmap(at, size, protection, flags, file, offset) }
}

/// As in the C library: the pages are other memory when they come back.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(start: *mut c_void, size: usize) -> c_int {
    if worker().is_ahead() && start::is_on() {
        let frame = start::frame();
        let withheld = session::with(|session| {
            session.free(start as usize, size, true, frame);
            session.freed.put_pages(start as usize, size);
        });
        if withheld.is_some() {
            return 0;
        }
    }
    // SAFETY: the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_munmap, start, size) as c_int };
    if result == 0 && is_active() && start::is_on() {
        let frame = start::frame();
        session::with(|session| session.free(start as usize, size, true, frame));
    }
    result
}

/// As in the C library: what has moved is other memory, which this task has written; what was cut off is freed. The last
/// argument is there with certain flags only; otherwise it is whatever the register holds, as in the system call.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_size: usize,
    new_size: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    session::in_order();
    // SAFETY: the caller's promise.
    let new =
        unsafe { libc::syscall(libc::SYS_mremap, old, old_size, new_size, flags, place) } as *mut c_void;
    if new == libc::MAP_FAILED {
        return new;
    }
    covered(new, new_size);
    if is_active() && start::is_on() {
        let frame = start::frame();
        session::with(|session| {
            let (from, to) = (old as usize, new as usize);
            if from == to {
                let end = old_size.min(new_size);
                session.free(from + end, old_size - end, true, frame);
                return session.allocated(from + end, new_size - end);
            }
            session.free(from, old_size, true, frame);
            session.allocated(to, new_size);
            let stack = session.tasks.stack();
            let mut frames = [0; FRAMES];
            let count = sites::walk(frame, stack.low, stack.high, &mut frames);
            session.filled(to, old_size.min(new_size), &frames[..count]);
        });
    }
    new
}
