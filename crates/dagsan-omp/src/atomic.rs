//! Atomic operations on what has no instruction: `long double`, complex numbers, structures. clang calls functions of libatomic for them, which have no hooks;
//! these are in their place.
//!
//! One thread runs at a time, so they are plain copies. The detector hears of atomic operations on the words.

use std::ffi::{c_int, c_void};
use std::ptr;

unsafe extern "C" {
    fn __tsan_atomic8_fetch_or(byte: *mut u8, value: u8, order: c_int) -> u8;
    fn __tsan_atomic64_fetch_or(word: *mut u64, value: u64, order: c_int) -> u64;
    fn __tsan_atomic8_load(byte: *const u8, order: c_int) -> u8;
    fn __tsan_atomic64_load(word: *const u64, order: c_int) -> u64;
}

/// The words of an object, and the bytes that are none.
fn parts(object: *const c_void, size: usize) -> impl Iterator<Item = (usize, bool)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let at = next;
        let is_word = object.wrapping_byte_add(at).addr().is_multiple_of(8) && at + 8 <= size;
        next += if is_word { 8 } else { 1 };
        (at < size).then_some((at, is_word))
    })
}

/// The program writes an object by an atomic operation. The values stay.
///
/// # Safety
///
/// It is the program's.
unsafe fn written(object: *mut c_void, size: usize, order: c_int) {
    for (at, is_word) in parts(object, size) {
        // SAFETY: the caller's promise; a word is aligned.
        unsafe {
            match is_word {
                true => _ = __tsan_atomic64_fetch_or(object.byte_add(at).cast(), 0, order),
                false => _ = __tsan_atomic8_fetch_or(object.byte_add(at).cast(), 0, order),
            }
        }
    }
}

/// It reads one.
///
/// # Safety
///
/// It is the program's.
unsafe fn read(object: *const c_void, size: usize, order: c_int) {
    for (at, is_word) in parts(object, size) {
        // SAFETY: the caller's promise; a word is aligned.
        unsafe {
            match is_word {
                true => _ = __tsan_atomic64_load(object.byte_add(at).cast(), order),
                false => _ = __tsan_atomic8_load(object.byte_add(at).cast(), order),
            }
        }
    }
}

/// Loads what is there.
///
/// # Safety
///
/// As for libatomic's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __atomic_load(size: usize, object: *const c_void, to: *mut c_void, order: c_int) {
    // SAFETY: the caller's promise.
    unsafe {
        read(object, size, order);
        ptr::copy(object.cast::<u8>(), to.cast(), size);
    }
}

/// Stores something there.
///
/// # Safety
///
/// As for libatomic's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __atomic_store(size: usize, object: *mut c_void, from: *const c_void, order: c_int) {
    // SAFETY: the caller's promise.
    unsafe {
        written(object, size, order);
        ptr::copy(from.cast::<u8>(), object.cast(), size);
    }
}

/// Stores something there, and tells what was there.
///
/// # Safety
///
/// As for libatomic's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __atomic_exchange(
    size: usize,
    object: *mut c_void,
    from: *const c_void,
    to: *mut c_void,
    order: c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        written(object, size, order);
        for number in 0..size {
            let (object, from, to) = (object.cast::<u8>(), from.cast::<u8>(), to.cast::<u8>());
            let new = *from.add(number);
            to.add(number).write(object.add(number).replace(new));
        }
    }
}

/// Stores something there, if what is there is as expected; tells what was there, if not.
///
/// # Safety
///
/// As for libatomic's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __atomic_compare_exchange(
    size: usize,
    object: *mut c_void,
    expected: *mut c_void,
    desired: *const c_void,
    success: c_int,
    failure: c_int,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        // Others may have the turn until this returns.
        read(object, size, failure);
        let bytes = |at: *const c_void| std::slice::from_raw_parts(at.cast::<u8>(), size);
        if bytes(object) != bytes(expected) {
            ptr::copy(object.cast::<u8>(), expected.cast(), size);
            return false;
        }
        ptr::copy(desired.cast::<u8>(), object.cast(), size);
        written(object, size, success);
        true
    }
}
