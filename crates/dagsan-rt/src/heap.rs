//! The heap: the C library's allocator with a list of living blocks beside it, and what a free means.
//!
//! The program's `malloc` and its kin are these functions, for Rust's system allocator and for C. They pass everything on.
//! A free is a write to the whole block, and so is a realloc; what is allocated is other memory than what was there
//! before. A large block may go back to the system when it is freed, and come back without our knowing: it
//! is other memory from then on, and what tasks do to it later is not seen.
//! Blocks are remembered with the call stack that allocated them, for the report.
//!
//! What the runtime itself allocates comes here too, and passes through: see [`Inside`].
//!
//! It cannot see what other allocators do with memory that they got in large pieces.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dagsan_findings::Memory;

use crate::session::{self, Inside};
use crate::sites;
use crate::start;
use crate::state::ACTIVE;
use crate::threads;

/// How many frames of an allocation are kept: enough to get out of the standard library.
const FRAMES: usize = 12;

/// A block of the heap.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    pub start: usize,
    pub size: usize,
    frames: [usize; FRAMES],
}

impl Block {
    /// The call stack that allocated it.
    pub fn frames(&self) -> &[usize] {
        let count = self.frames.iter().position(|&frame| frame == 0).unwrap_or(FRAMES);
        &self.frames[..count]
    }
}

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

/// So many freed blocks are remembered.
const FREED: usize = 1024;

/// Blocks, by address.
#[derive(Debug)]
pub struct Living(BTreeMap<usize, Block>);

impl Living {
    const NONE: Living = Living(BTreeMap::new());

    /// The block that the address is in; of one without bytes, its start is taken for one.
    fn block(&self, address: usize) -> Option<&Block> {
        let (_, block) = self.0.range(..=address).next_back()?;
        (address - block.start < block.size.max(1)).then_some(block)
    }

    /// The memory of the block that the address is in.
    pub fn at(&self, address: usize) -> Option<Range<usize>> {
        let Block { start, size, .. } = *self.block(address)?;
        Some(start..start + size).filter(|block| block.contains(&address))
    }
}

#[derive(Debug)]
struct Blocks {
    living: Living,
    /// Those freed lately, the last one last.
    freed: VecDeque<Block>,
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { living: Living::NONE, freed: VecDeque::new() });

fn blocks() -> MutexGuard<'static, Blocks> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The living block that the address is in, or the one that was the last to be freed.
pub fn block_of(address: usize) -> Option<Block> {
    let blocks = blocks();
    let inside = |block: &&Block| (block.start..block.start + block.size.max(1)).contains(&address);
    blocks.living.block(address).or_else(|| blocks.freed.iter().rev().find(inside)).copied()
}

/// Does something with the living blocks. None of them can be freed meanwhile: to free a block it must be taken from the
/// list first. To be called by a thread that is [`Inside`].
pub fn with_living<R>(action: impl FnOnce(&Living) -> R) -> R {
    action(&blocks().living)
}

/// A block was allocated.
#[inline(always)]
fn allocated(start: *mut c_void, size: usize) -> *mut c_void {
    if start.is_null() {
        return failed(size);
    }
    if start::is_on()
        && let Some(inside) = Inside::enter()
    {
        let known = session::with_inside(&inside, |session| {
            // SAFETY: the allocator has just returned it.
            session.allocated(start as usize, unsafe { malloc_usable_size(start) });
            session.tasks.stack()
        });
        let stack = known.unwrap_or_else(threads::stack);
        let mut frames = [0; FRAMES];
        sites::walk(start::frame(), stack.low, stack.high, &mut frames);
        let start = start as usize;
        blocks().living.0.insert(start, Block { start, size, frames });
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

/// A block is about to be freed, or to be moved.
#[inline(always)]
fn freed(start: *mut c_void) {
    if start.is_null() || !start::is_on() {
        return;
    }
    let frame = start::frame();
    if ACTIVE.get() {
        // SAFETY: the program says that this is a block of the allocator's.
        let size = unsafe { malloc_usable_size(start) };
        session::with(|session| session.free(start as usize, size, size >= LARGE, frame));
    }
    if let Some(_inside) = Inside::enter() {
        let mut blocks = blocks();
        if let Some(block) = blocks.living.0.remove(&(start as usize)) {
            if blocks.freed.len() == FREED {
                blocks.freed.pop_front();
            }
            blocks.freed.push_back(block);
        }
    }
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
    // SAFETY: any size will do.
    allocated(unsafe { __libc_malloc(size) }, size)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: any sizes will do.
    allocated(unsafe { __libc_calloc(count, size) }, count.saturating_mul(size))
}

/// As in the C library.
///
/// # Safety
///
/// `block` is null or a living block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    freed(block);
    // SAFETY: the caller's promise.
    allocated(unsafe { __libc_realloc(block, size) }, size)
}

/// As in the C library.
///
/// # Safety
///
/// As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return std::ptr::null_mut() };
    freed(block);
    // SAFETY: the caller's promise.
    allocated(unsafe { __libc_realloc(block, size) }, size)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: any numbers will do.
    allocated(unsafe { __libc_memalign(alignment, size) }, size)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: any numbers will do.
    allocated(unsafe { __libc_memalign(alignment, size) }, size)
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
    // SAFETY: any numbers will do.
    let block = allocated(unsafe { __libc_memalign(alignment, size) }, size);
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
    freed(block);
    // SAFETY: the caller's promise.
    unsafe { __libc_free(block) }
}

/// As in the C library: the pages are other memory when they come back.
///
/// # Safety
///
/// As for the function of this name in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(start: *mut c_void, size: usize) -> c_int {
    if ACTIVE.get() && start::is_on() {
        let frame = start::frame();
        session::with(|session| session.free(start as usize, size, true, frame));
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, start, size) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_one_block_at_most() {
        let block = |start, size| (start, Block { start, size, frames: [0; FRAMES] });
        let living = Living(BTreeMap::from([block(64, 16), block(80, 0), block(96, 8)]));
        let starts = |address| living.block(address).map(|block| block.start);
        assert_eq!(
            [63, 64, 79, 80, 81, 95, 103, 104].map(starts),
            [None, Some(64), Some(64), Some(80), None, None, Some(96), None]
        );
        assert_eq!((living.at(70), living.at(80), living.at(200)), (Some(64..80), None, None));
    }
}
