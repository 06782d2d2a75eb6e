//! The heap: the C library's allocator with a list of living blocks beside it, and what a free means.
//!
//! The program's `malloc` and its kin are these functions, for Rust's system allocator and for C. They pass everything on.
//! A free is a write to the whole block; what is allocated is other memory than what was there before. The zeroes of
//! `calloc` are writes of the task that asked for them, and so is what `realloc` copies, whether it moves it
//! or not; the old block is freed. What fails has not happened. A large block may go back to the system when it is freed, and
//! come back without our knowing: it is other memory from then on, and what tasks do to it later is not seen.
//! Blocks are remembered with the call stack that allocated them, for the report (`blocks`).
//!
//! What the runtime itself allocates comes here too, and passes through: see [`Inside`]. At the end of a program that is
//! cut off, it comes from [`reserve`].
//!
//! It cannot see what other allocators do with memory that they got in large pieces.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dagsan_findings::Memory;

use crate::blocks::{Block, Blocks, FRAMES, Living};
use crate::events;
use crate::reserve;
use crate::session::{self, Inside};
use crate::sites;
use crate::start;
use crate::state::{Flag, is_active, is_owner, worker};
use crate::system;
use crate::threads;
use crate::turns;
use crate::withheld::Withheld;

/// The memory of a race.
#[derive(Debug, Clone)]
pub enum Where {
    /// A block of the heap.
    Block(Block),
    /// Something else.
    Known(Memory),
}

/// Blocks of at least this size may be mappings of their own: the C library's threshold to begin with.
const LARGE: usize = 128 << 10;

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks::NONE);

/// A thread that reports why the program is cut off has waited for the list in vain: whoever has not given it back by then never will, and there is no time to wait for it at
/// each question.
static OUT_OF_REACH: Flag = Flag::new();

/// The list. None if it is not to be had: a thread that reports why the program is cut off waits only so long for
/// others, who may wait for what it holds itself.
fn blocks() -> Option<MutexGuard<'static, Blocks>> {
    if reserve::is_mine() {
        let attempt = || BLOCKS.try_lock().ok();
        let blocks = if OUT_OF_REACH.get() { attempt() } else { session::be_patient(attempt) };
        OUT_OF_REACH.set(blocks.is_none());
        return blocks;
    }
    Some(BLOCKS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The living block that the address is in, or the one that was the last to be freed.
pub fn block_of(address: usize) -> Option<Block> {
    blocks()?.of(address)
}

/// Does something with the living blocks, or with none if the list is not to be had. None of them can be freed meanwhile:
/// to free a block it must be taken from the list first. To be called by a thread that is [`Inside`].
pub fn with_living<R>(action: impl FnOnce(&Living) -> R) -> R {
    match blocks() {
        Some(blocks) => action(&blocks.living),
        None => action(&Living::NONE),
    }
}

/// A block was allocated, and so many bytes of it written.
#[inline(always)]
fn allocated(start: *mut c_void, size: usize, filled: usize) -> *mut c_void {
    if start.is_null() {
        return failed(size);
    }
    if start::is_on()
        && let Some(inside) = Inside::enter()
    {
        let frame = start::frame();
        let start = start as usize;
        let mut frames = [0; FRAMES];
        let known = session::with_inside(&inside, |session| {
            let stack = session.tasks.stack();
            let count = sites::walk(frame, stack.low, stack.high, &mut frames);
            // SAFETY: the allocator has just returned it.
            session.allocated(start, unsafe { malloc_usable_size(start as *mut c_void) });
            if filled > 0 && !events::keeps_books() {
                session.filled(start, filled, &frames[..count]);
            }
        });
        if known.is_none() {
            let stack = threads::stack();
            sites::walk(frame, stack.low, stack.high, &mut frames);
        }
        if let Some(mut blocks) = blocks() {
            blocks.insert(start, size, frames);
        }
    }
    start
}

/// There is no memory. If it is the runtime that needs it, this is the end; else the program decides.
#[cold]
fn failed(size: usize) -> *mut c_void {
    if start::is_on() && size != 0 {
        match Inside::enter() {
            Some(_inside) => {}
            None => crate::exit::out_of_memory(),
        }
    }
    std::ptr::null_mut()
}

/// A block is about to be freed.
#[inline(always)]
fn freed(start: *mut c_void) {
    if start.is_null() || !start::is_on() {
        return;
    }
    let frame = start::frame();
    if worker().is_ahead() {
        session::with(|session| session.frees_own(start as usize));
    }
    if is_active() {
        // SAFETY: the program says that this is a block of the allocator's.
        let size = unsafe { malloc_usable_size(start) };
        tell_free(start as usize, size, frame);
    }
    change(|blocks| {
        let block = blocks.living.remove(start as usize);
        blocks.remember(block);
    });
}

/// Tells the session of a free. One of a task runtime's books is no write of the running task, which may even have ended.
fn tell_free(start: usize, size: usize, frame: usize) {
    session::with(|session| match events::keeps_books() {
        true => session.allocated(start, size),
        false => session.free(start, size, size >= LARGE, frame),
    });
}

/// Does something with the list, unless this thread is inside of the runtime.
fn change<R>(action: impl FnOnce(&mut Blocks) -> R) -> Option<R> {
    let _inside = Inside::enter()?;
    Some(action(&mut *blocks()?))
}

/// A block gets another size, and perhaps another place.
///
/// # Safety
///
/// As for `realloc`.
#[inline(always)]
unsafe fn resized(old: *mut c_void, size: usize) -> *mut c_void {
    if old.is_null() {
        // SAFETY: any size will do.
        return allocated(unsafe { __libc_malloc(size) }, size, 0);
    }
    if !start::is_on() {
        // SAFETY: the caller's promise.
        return unsafe { __libc_realloc(old, size) };
    }
    // SAFETY: the caller's promise.
    let had = unsafe { malloc_usable_size(old) };
    if is_active() && turns::is_mine() && (had < LARGE || worker().is_ahead()) && size != 0 {
        // SAFETY: any size will do.
        let new = withheld(size).unwrap_or_else(|| unsafe { __libc_malloc(size) });
        if new.is_null() {
            return failed(size);
        }
        // As long as the old block is there, it can be asked whose it is.
        let filled = change(|blocks| blocks.living.size_of(old as usize)).flatten();
        freed(old);
        // SAFETY: both have so many bytes, and the new one is nobody else's; the old one is not used any more.
        unsafe {
            std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), had.min(size));
            give_back(old);
        }
        return allocated(new, size, filled.unwrap_or(had).min(size));
    }
    // When it is freed, another thread may get its address at once.
    let block = change(|blocks| blocks.living.remove(old as usize)).flatten();
    // SAFETY: the caller's promise.
    let new = unsafe { __libc_realloc(old, size) };
    if new.is_null() && size != 0 {
        // It is where it was.
        change(|blocks| block.into_iter().for_each(|block| blocks.living.insert(block)));
        return failed(size);
    }
    // Before the free is told: if it races, the block is asked for.
    change(|blocks| blocks.remember(block));
    if is_active() {
        tell_free(old as usize, had, start::frame());
    }
    let filled = block.map_or(had, |block| block.size).min(size);
    if new.is_null() { new } else { allocated(new, size, filled) }
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn malloc_usable_size(block: *mut c_void) -> usize;
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    if reserve::is_mine() {
        return reserve::allocate(size, 0);
    }
    // SAFETY: any size will do.
    let block = withheld(size).unwrap_or_else(|| unsafe { __libc_malloc(size) });
    allocated(block, size, 0)
}

/// A block that the part which this thread runs has freed, and that is as large as the allocator's would be.
#[inline(always)]
fn withheld(size: usize) -> Option<*mut c_void> {
    if worker().is_ahead() { session::with(|session| session.freed.take(size)).flatten() } else { None }
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let all = count.saturating_mul(size);
    if reserve::is_mine() {
        return reserve::allocate(all, 0);
    }
    if let Some(block) = withheld(all) {
        // SAFETY: it has so many bytes, and is nobody else's.
        unsafe { block.cast::<u8>().write_bytes(0, all) };
        return allocated(block, all, all);
    }
    // SAFETY: any sizes will do.
    allocated(unsafe { __libc_calloc(count, size) }, all, all)
}

/// As in the C library.
///
/// # Safety
///
/// `block` is null or a living block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if reserve::is_mine() {
        // SAFETY: the caller's promise.
        return unsafe { reallocated(block, size) };
    }
    // SAFETY: the caller's promise.
    unsafe { resized(block, size) }
}

/// A copy of a block in [`reserve`], where nothing is freed.
///
/// # Safety
///
/// As for [`realloc`].
#[cold]
unsafe fn reallocated(old: *mut c_void, size: usize) -> *mut c_void {
    let new = reserve::allocate(size, 0);
    if !old.is_null() {
        // SAFETY: a block of the one or of the other; so many bytes of both are there.
        unsafe {
            let had = reserve::size_of(old).unwrap_or_else(|| malloc_usable_size(old));
            std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), had.min(size));
        }
    }
    new
}

/// As in the C library.
///
/// # Safety
///
/// As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else {
        // SAFETY: this thread's number of the last error.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        return std::ptr::null_mut();
    };
    if reserve::is_mine() {
        // SAFETY: the caller's promise.
        return unsafe { reallocated(block, size) };
    }
    // SAFETY: the caller's promise.
    unsafe { resized(block, size) }
}

/// Memory at an address that the alignment divides.
#[inline(always)]
fn aligned(alignment: usize, size: usize) -> *mut c_void {
    if reserve::is_mine() {
        return reserve::allocate(size, alignment);
    }
    // SAFETY: any numbers will do.
    allocated(unsafe { __libc_memalign(alignment, size) }, size, 0)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    aligned(alignment, size)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    aligned(alignment, size)
}

/// As in the C library.
///
/// # Safety
///
/// `into` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(into: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let block = aligned(alignment, size);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise.
    unsafe { into.write(block) };
    0
}

/// As in the C library.
///
/// # Safety
///
/// `block` is null or a living block, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if reserve::is_mine() {
        return;
    }
    freed(block);
    // SAFETY: the caller's promise.
    unsafe { give_back(block) }
}

/// The allocator and the system get back what a part has freed.
pub fn give_back_all(freed: &mut Withheld) {
    // SAFETY: each was freed once, and was not used since.
    freed.take_all().for_each(|block| unsafe { __libc_free(block) });
    for (start, size) in freed.take_pages() {
        // SAFETY: the program has given them back.
        unsafe { system::call(libc::SYS_munmap, [start, size, 0, 0, 0, 0]) };
    }
}

/// The allocator gets a block back, or one that has waited long enough (`quarantine`).
///
/// # Safety
///
/// As for [`free`].
#[inline]
unsafe fn give_back(block: *mut c_void) {
    let mut block = block;
    if worker().is_ahead() && is_owner() && !block.is_null() {
        // SAFETY: the caller's promise.
        let size = unsafe { malloc_usable_size(block) };
        let is_mine = session::with(|session| {
            if session.freed.put(block, size) {
                worker().want_order();
            }
        });
        if is_mine.is_some() {
            return;
        }
    }
    if is_active() && threads::all_code_has_hooks() && !block.is_null() {
        // SAFETY: the caller's promise.
        let size = unsafe { malloc_usable_size(block) };
        block = session::with(|session| session.quarantine.put(block, size)).unwrap_or(block);
    }
    // SAFETY: the caller's promise, and that of whoever has freed the other one.
    unsafe { __libc_free(block) }
}
