//! The memory of tasks: what one has given back, the next gets.
//!
//! There may be millions, one after the other, in the same few pieces of memory. With each piece comes the *epoch* in which it became other memory than before: if nothing has been
//! told to the detector since then, nothing is known of what it was that would have to be forgotten (`dagsan_rt::team::reused`).

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Pieces are kept by their sizes, in steps, up to the largest.
const STEP: usize = 64;
const SIZES: usize = 32;
/// So many of each.
const MOST: usize = 256;

/// A piece of memory, and its epoch, if it has one.
type Piece = (*mut u8, Option<u64>);

struct Pool {
    busy: AtomicBool,
    pieces: UnsafeCell<[Vec<Piece>; SIZES]>,
}

// SAFETY: `with` lets one thread in at a time.
unsafe impl Sync for Pool {}

static POOL: Pool =
    Pool { busy: AtomicBool::new(false), pieces: UnsafeCell::new([const { Vec::new() }; SIZES]) };

/// Does something with what is kept of that size, unless another thread is at it: threads that take turns never are, others do without.
fn with<R>(layout: Layout, action: impl FnOnce(&mut Vec<Piece>) -> Option<R>) -> Option<R> {
    let size = layout.size() / STEP;
    // Acquire: what the thread has done that was here before comes before this.
    if size >= SIZES || POOL.busy.swap(true, Acquire) {
        return None;
    }
    // SAFETY: this thread has found nobody here, and says when it leaves.
    let result = action(unsafe { &mut (*POOL.pieces.get())[size] });
    // Release: the other half.
    POOL.busy.store(false, Release);
    result
}

/// The layout of the pieces that are taken for such a one.
pub fn rounded(layout: Layout) -> Layout {
    Layout::from_size_align(layout.size().next_multiple_of(STEP), layout.align()).unwrap_or(layout)
}

/// A piece of memory; of zeroes, if nobody has had it before.
pub fn take(layout: Layout) -> Piece {
    let layout = rounded(layout);
    with(layout, Vec::pop).unwrap_or_else(|| {
        // SAFETY: no task is of no size.
        let piece = unsafe { alloc_zeroed(layout) };
        if piece.is_null() {
            handle_alloc_error(layout);
        }
        (piece, None)
    })
}

/// It is not needed any more.
///
/// # Safety
///
/// A piece of that layout, which nobody uses.
pub unsafe fn give_back(piece: *mut u8, layout: Layout, epoch: Option<u64>) {
    let layout = rounded(layout);
    let kept = with(layout, |pieces| (pieces.len() < MOST).then(|| pieces.push((piece, epoch))));
    if kept.is_none() {
        // SAFETY: the caller's promise.
        unsafe { dealloc(piece, layout) };
    }
}
