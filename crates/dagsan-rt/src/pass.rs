//! The calls that only DagSan's own pass inserts (`dagsan-pass`): vectors of which a mask picks elements, atomic operations that
//! ThreadSanitizer's pass leaves out, and a word where something is executed that cannot be seen.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};

use dagsan_core::AccessKind;

use crate::atomics::{before, done};
use crate::contention::Wants;
use crate::ranges::record;
use crate::session;
use crate::start::{self, frame};
use crate::state::is_active;
use crate::sync::{Change, Done, Order};
use crate::turns;

/// The bytes of those elements whose bits are set, neighbours together.
fn picked(address: usize, mut mask: u64, element: usize) -> impl Iterator<Item = (usize, usize)> {
    std::iter::from_fn(move || {
        let first = mask.trailing_zeros();
        let count = mask.checked_shr(first)?.trailing_ones();
        mask &= u64::MAX.checked_shl(first + count).unwrap_or(0);
        Some((address + first as usize * element, count as usize * element))
    })
}

/// A read of the elements of a vector whose bits are set.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_read_masked(address: usize, mask: u64, element: usize) {
    for (start, len) in picked(address, mask, element) {
        record(start, len, AccessKind::Read);
    }
}

/// A write of the elements of a vector whose bits are set.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_write_masked(address: usize, mask: u64, element: usize) {
    for (start, len) in picked(address, mask, element) {
        record(start, len, AccessKind::Write);
    }
}

/// The atomic maximum and minimum of a type; `$Bits` is the same without a sign, as other hooks see the word.
macro_rules! extrema {
    ($($T:ty, $Bits:ty, $Atomic:ty, $bytes:literal, $max:ident, $min:ident;)*) => {
        $(
            extrema!($T, $Bits, $Atomic, $bytes, $max, fetch_max, max);
            extrema!($T, $Bits, $Atomic, $bytes, $min, fetch_min, min);
        )*
    };
    ($T:ty, $Bits:ty, $Atomic:ty, $bytes:literal, $name:ident, $method:ident, $which:ident) => {
        /// Changes the value, and gives the old one.
        ///
        /// # Safety
        ///
        /// The address is that of a living atomic.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn $name(address: *mut $T, value: $T, order: i32) -> $T {
            before!(address, $bytes, Wants::Other);
            // SAFETY: the caller's promise. The strongest order is as good as any.
            let old = unsafe { <$Atomic>::from_ptr(address) }.$method(value, Ordering::SeqCst);
            let bits = |value: $T| value as $Bits as u64;
            let done = Done::Update { old: bits(old), new: bits(old.$which(value)), change: Change::Other };
            done!(address, $bytes, done, order);
            old
        }
    };
}

extrema! {
    i8, u8, AtomicI8, 1, __dagsan_atomic8_fetch_max, __dagsan_atomic8_fetch_min;
    u8, u8, AtomicU8, 1, __dagsan_atomic8_fetch_umax, __dagsan_atomic8_fetch_umin;
    i16, u16, AtomicI16, 2, __dagsan_atomic16_fetch_max, __dagsan_atomic16_fetch_min;
    u16, u16, AtomicU16, 2, __dagsan_atomic16_fetch_umax, __dagsan_atomic16_fetch_umin;
    i32, u32, AtomicI32, 4, __dagsan_atomic32_fetch_max, __dagsan_atomic32_fetch_min;
    u32, u32, AtomicU32, 4, __dagsan_atomic32_fetch_umax, __dagsan_atomic32_fetch_umin;
    i64, u64, AtomicI64, 8, __dagsan_atomic64_fetch_max, __dagsan_atomic64_fetch_min;
    u64, u64, AtomicU64, 8, __dagsan_atomic64_fetch_umax, __dagsan_atomic64_fetch_umin;
}

/// Something that cannot be seen is about to be executed.
///
/// # Safety
///
/// `what` is a text of the program's that ends with 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __dagsan_unseen(what: *const c_char) {
    if !is_active() || !turns::is_mine() {
        return;
    }
    session::called(frame(), |session| {
        let origin = session.origin_of_call(frame());
        let site = session.sites.number(origin, false);
        // SAFETY: the caller's promise.
        let what = unsafe { CStr::from_ptr(what) };
        match session.unseen.iter_mut().find(|unseen| unseen.what == what && unseen.site == site) {
            Some(unseen) => unseen.count += 1,
            None => session.unseen.push(Unseen { what: what.to_owned(), site, count: 1 }),
        }
    });
}

/// What was executed and cannot be seen.
#[derive(Debug)]
pub struct Unseen {
    pub what: std::ffi::CString,
    pub site: dagsan_core::SiteId,
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        let picked = |mask| picked(1000, mask, 4).collect::<Vec<_>>();
        assert_eq!(picked(0), []);
        assert_eq!(picked(0b1001_1010), [(1004, 4), (1012, 8), (1028, 4)]);
        assert_eq!(picked(u64::MAX), [(1000, 256)]);
        assert_eq!(picked(1 << 63), [(1252, 4)]);
    }
}
