//! Accesses to ranges of any length: copies, fills, comparisons.
//!
//! They are calls anyway, so nothing here is inlined, and the code that made the access is who called.

use std::ffi::{c_int, c_void};

use dagsan_core::{AccessKind, Bytes, Location};

use crate::kept_ranges::{self, Strided};
use crate::layout;
use crate::log::{self, table};
use crate::session;
use crate::shared::is_kept;
use crate::start;
use crate::state::{EXACT, is_active};
use crate::turns;

/// Records an access to `len` bytes by the caller of the function that this is inlined into.
#[inline(always)]
pub fn record(start: usize, len: usize, kind: AccessKind) {
    if is_active() && len != 0 && turns::is_mine() && !settled(start, len, kind) {
        record_from(start, len, 1, 0, kind, start::frame());
    }
}

/// Records `count` pieces of `width` bytes, each `stride` behind the one before.
#[inline(always)]
fn record_strided(start: usize, stride: usize, count: usize, width: usize, kind: AccessKind) {
    if !is_active() || width == 0 || !turns::is_mine() {
        return;
    }
    let asked = Strided { start, stride, count, width };
    if kind == AccessKind::Read && kept_ranges::knows(&asked) {
        return;
    }
    let (mut piece, mut left) = (start, count);
    while left > 0 && settled(piece, width, kind) {
        (piece, left) = (piece.wrapping_add(stride), left - 1);
    }
    if left > 0 {
        record_from(piece, width, left, stride, kind, start::frame());
    } else if kind == AccessKind::Read {
        kept_ranges::remember(&asked);
    }
}

/// Does the strand know all of these bytes, of which there are some? It does if their lines are in its log, unless each code is wanted:
/// then their bits are set here.
#[inline(always)]
pub fn settled(start: usize, len: usize, kind: AccessKind) -> bool {
    let last = start.wrapping_add(len - 1);
    let [first_line, last_line] = [start, last].map(|address| (address >> layout::LINE_SHIFT) as u64);
    let mut mask = u64::MAX << (start & 63);
    let mut line = first_line;
    loop {
        if line == last_line {
            mask &= u64::MAX >> (!last & 63);
        }
        // SAFETY: this thread owns the session, and so the tables, which cover all addresses of the program.
        unsafe {
            let known = *layout::mask(table(kind), line);
            if !known & mask != 0 && !(known == 0 && is_kept(line, mask, kind)) {
                if known == 0 || EXACT.get() {
                    return false;
                }
                log::set(Location { line, mask }, kind);
            }
        }
        if line == last_line {
            return true;
        }
        (line, mask) = (line.wrapping_add(1), u64::MAX);
    }
}

/// Records pieces that are not all known.
#[inline(never)]
fn record_from(start: usize, len: usize, count: usize, stride: usize, kind: AccessKind, frame: usize) {
    session::with(|session| {
        let origin = session.origin_of_call(frame);
        for number in 0..count {
            let piece = start.wrapping_add(stride.wrapping_mul(number));
            let Ok(bytes) = Bytes::new(piece as u64, len as u64) else { return };
            log::record_bytes(session, bytes, kind, origin);
        }
    });
}

/// A read of `size` bytes.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __tsan_read_range(address: usize, size: usize) {
    record(address, size, AccessKind::Read);
}

/// A write of `size` bytes.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __tsan_write_range(address: usize, size: usize) {
    record(address, size, AccessKind::Write);
}

/// The code that has called the function of this frame, which has no hooks, has read or written so many bytes by it.
#[unsafe(no_mangle)]
pub extern "C" fn __dagsan_touched(address: usize, size: usize, written: c_int, frame: usize) {
    touched(address, size, if written == 0 { AccessKind::Read } else { AccessKind::Write }, frame);
}

/// The same for the runtime.
pub fn touched(address: usize, size: usize, kind: AccessKind, frame: usize) {
    if size > 0 && is_active() && turns::is_mine() && !settled(address, size, kind) {
        record_from(address, size, 1, 0, kind, frame);
    }
}

/// Reads of `count` pieces of `width` bytes, each `stride` bytes behind the one before.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_read_strided(start: usize, stride: usize, count: usize, width: usize) {
    record_strided(start, stride, count, width, AccessKind::Read);
}

/// Writes of `count` pieces of `width` bytes, each `stride` bytes behind the one before.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_write_strided(start: usize, stride: usize, count: usize, width: usize) {
    record_strided(start, stride, count, width, AccessKind::Write);
}

/// Copies, and records both sides.
///
/// # Safety
///
/// As for `memcpy` in the C library.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __tsan_memcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    record(from as usize, len, AccessKind::Read);
    record(to as usize, len, AccessKind::Write);
    // SAFETY: the caller's promise.
    unsafe { libc::memcpy(to, from, len) }
}

/// Moves, and records both sides.
///
/// # Safety
///
/// As for `memmove` in the C library.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __tsan_memmove(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    record(from as usize, len, AccessKind::Read);
    record(to as usize, len, AccessKind::Write);
    // SAFETY: the caller's promise.
    unsafe { libc::memmove(to, from, len) }
}

/// Fills, and records it.
///
/// # Safety
///
/// As for `memset` in the C library.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __tsan_memset(to: *mut c_void, value: c_int, len: usize) -> *mut c_void {
    record(to as usize, len, AccessKind::Write);
    // SAFETY: the caller's promise.
    unsafe { libc::memset(to, value, len) }
}

/// Records both sides of a comparison that is to come: DagSan's own pass calls it before those of the program.
///
/// # Safety
///
/// As for `memcmp` in the C library.
#[cfg(feature = "pass")]
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __dagsan_compare(a: *const c_void, b: *const c_void, len: usize) {
    if is_active() && turns::is_mine() {
        // SAFETY: the caller's promise.
        let (_, seen) = unsafe { compare(a.cast(), b.cast(), len) };
        record(a as usize, seen, AccessKind::Read);
        record(b as usize, seen, AccessKind::Read);
    }
}

/// Compares, and records both sides: slices are compared by calls that the compiler puts no hooks around. That sees the
/// comparisons of code without hooks too, whose locks nobody sees.
///
/// # Safety
///
/// As for `memcmp` in the C library.
#[cfg(not(feature = "pass"))]
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn memcmp(a: *const c_void, b: *const c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    let (order, seen) = unsafe { compare(a.cast(), b.cast(), len) };
    record(a as usize, seen, AccessKind::Read);
    record(b as usize, seen, AccessKind::Read);
    order
}

/// The same as [`memcmp`], which also says in which order the two are.
///
/// # Safety
///
/// As for [`memcmp`].
#[cfg(not(feature = "pass"))]
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn bcmp(a: *const c_void, b: *const c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    let (order, seen) = unsafe { compare(a.cast(), b.cast(), len) };
    record(a as usize, seen, AccessKind::Read);
    record(b as usize, seen, AccessKind::Read);
    order
}

/// The order of two pieces of memory, and how many bytes decide it.
///
/// # Safety
///
/// `len` bytes of both can be read.
#[inline(always)]
unsafe fn compare(a: *const u8, b: *const u8, len: usize) -> (c_int, usize) {
    let mut at = 0;
    // SAFETY: words and bytes below `len`, which the caller says can be read.
    unsafe {
        while at + 8 <= len {
            let (x, y) = (a.add(at).cast::<u64>().read_unaligned(), b.add(at).cast::<u64>().read_unaligned());
            if x != y {
                break;
            }
            at += 8;
        }
        while at < len {
            let (x, y) = (a.add(at).read(), b.add(at).read());
            if x != y {
                return (c_int::from(x) - c_int::from(y), at + 1);
            }
            at += 1;
        }
    }
    (0, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_see_up_to_the_first_difference() {
        let compare = |a: &[u8], b: &[u8]| {
            // SAFETY: both are slices of that length.
            let (order, seen) = unsafe { compare(a.as_ptr(), b.as_ptr(), a.len()) };
            (order.signum(), seen)
        };
        assert_eq!(compare(b"", b""), (0, 0));
        assert_eq!(compare(b"0123456789", b"0123456789"), (0, 10));
        assert_eq!(compare(b"0123456789", b"0123456089"), (1, 8));
        assert_eq!(compare(b"0023456789", b"0123456789"), (-1, 2));
    }
}
