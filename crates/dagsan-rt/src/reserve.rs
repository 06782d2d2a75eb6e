//! Memory for the last report of a program that is cut off: it has run out of memory, or was aborted, perhaps in the middle
//! of its allocator, which then is not to be entered again.
//!
//! One thread, the one that reports, gets what it allocates from here, and from the moment it begins frees nothing: the process
//! is about to end. Some room is there from the start of the program; more is asked of the system when it is needed.
//! There is a stack too: that of the thread may be full.
//!
//! ```text
//!   room    … │ size, mark │ block │ size, mark │ block │ free …
//!                   16                   16
//! ```

use std::ffi::c_void;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::exit;
use crate::state::{Thread, this_thread};

/// The room that is there from the start.
const ROOM: usize = 8 << 20;
/// The stack.
const STACK: usize = 1 << 20;
/// What stands before a block: its size, and the mark.
const HEAD: usize = 16;
/// No block has this size.
const MARK: usize = 0xda65_a4da_65a4_0001;

/// The thread that reports.
static USER: Thread = Thread::nobody();
/// The free room. Only the user changes these, after the start.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// The end of the stack.
static TOP: AtomicUsize = AtomicUsize::new(0);

/// Sets some memory aside. To be called once, when the program starts.
pub fn prepare() -> io::Result<()> {
    let start = map(STACK + ROOM)?;
    // What the stack cannot hold is a fault, and not written elsewhere.
    // SAFETY: a page of the new mapping.
    if unsafe { libc::mprotect(start as *mut c_void, 4096, libc::PROT_NONE) } != 0 {
        return Err(io::Error::last_os_error());
    }
    TOP.store(start + STACK, Relaxed);
    NEXT.store(start + STACK, Relaxed);
    END.store(start + STACK + ROOM, Relaxed);
    Ok(())
}

fn map(size: usize) -> io::Result<usize> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at as usize) }
}

/// From here on this thread allocates here. If some thread does already, it is named.
pub fn begin() -> Result<(), usize> {
    USER.take()
}

/// Is it this thread that allocates here?
#[inline(always)]
pub fn is_mine() -> bool {
    let user = USER.get();
    user != 0 && user == this_thread()
}

/// A new block, of zeroes, for the thread that allocates here.
#[cold]
pub fn allocate(size: usize, alignment: usize) -> *mut c_void {
    let alignment = alignment.max(HEAD);
    let mut next = NEXT.load(Relaxed);
    let needed = size.saturating_add(HEAD + alignment);
    if needed > END.load(Relaxed) - next {
        let more = needed.max(ROOM);
        next = map(more).unwrap_or_else(|_| {
            exit::say("dagsan: not even the report of what was found has room\n");
            // SAFETY: a plain call.
            unsafe { libc::_exit(1) }
        });
        END.store(next + more, Relaxed);
    }
    let block = (next + HEAD).next_multiple_of(alignment);
    NEXT.store(block + size, Relaxed);
    // SAFETY: the room from `next` to the end is nobody's, and has place for a head before the block.
    unsafe { ((block - HEAD) as *mut [usize; 2]).write_unaligned([size, MARK]) };
    block as *mut c_void
}

/// The size of a block, if it is from here.
///
/// # Safety
///
/// It is a block, from here or of the C library's allocator, which has 16 bytes of its own before each block too, the last
/// eight of them its size.
#[cold]
pub unsafe fn size_of(block: *mut c_void) -> Option<usize> {
    // SAFETY: the caller's promise.
    let [size, mark] = unsafe { ((block as usize - HEAD) as *const [usize; 2]).read_unaligned() };
    (mark == MARK).then_some(size)
}

/// Calls the function on the stack that is kept here, if it is not in use.
///
/// # Safety
///
/// The thread allocates here: so nobody else uses the stack, and it has not been there before.
pub unsafe fn on_stack(action: extern "C" fn(*mut c_void), argument: *mut c_void) {
    let top = TOP.load(Relaxed);
    // SAFETY: the stack is mapped, aligned and nobody's (the caller's promise); the stack pointer is kept in a register
    // that the function preserves, and the ABI's other registers are given up.
    unsafe {
        std::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {action}",
            "mov rsp, r12",
            top = in(reg) top,
            action = in(reg) action,
            in("rdi") argument,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}
