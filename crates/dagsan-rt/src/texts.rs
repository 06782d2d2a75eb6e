//! Strings and vectors of bytes that code without hooks reads or changes: the program tells of them where it calls that code
//! (`dagsan-pass`, `thunks`).
//!
//! Only Rust knows where such a value has its address and length. The runtime is compiled by the program's own compiler, so it may look. A
//! `String`, an `OsString` and a `PathBuf` are a vector of bytes and nothing else.

use dagsan_core::AccessKind;

use crate::ranges::touched;
use crate::state::is_active;

/// Tells of a vector itself.
fn itself(vector: &Vec<u8>, kind: AccessKind, frame: usize) {
    touched((&raw const *vector).addr(), size_of::<Vec<u8>>(), kind, frame);
}

/// The code that has called the function of this frame reads a vector by it, and its contents.
///
/// # Safety
///
/// There is a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __dagsan_text_read(vector: *const Vec<u8>, frame: usize) {
    if is_active() {
        // SAFETY: the caller's promise.
        let vector = unsafe { &*vector };
        itself(vector, AccessKind::Read, frame);
        touched(vector.as_ptr().addr(), vector.len(), AccessKind::Read, frame);
    }
}

/// How long a vector is, before a call that may change it.
///
/// # Safety
///
/// There is a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __dagsan_text_length(vector: *const Vec<u8>) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*vector).len() }
}

/// The function of this frame has changed a vector that had this length: what it has besides is new. If its length is the same, nothing was
/// changed.
///
/// # Safety
///
/// There is a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __dagsan_text_changed(vector: *const Vec<u8>, had: usize, frame: usize) {
    // SAFETY: the caller's promise.
    let vector = unsafe { &*vector };
    if is_active() && vector.len() != had {
        itself(vector, AccessKind::Write, frame);
        if let Some(new) = vector.get(had..) {
            touched(new.as_ptr().addr(), new.len(), AccessKind::Write, frame);
        }
    }
}

/// The function of this frame has written a vector: itself, and so many bytes at its end.
///
/// # Safety
///
/// There is a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __dagsan_text_written(vector: *const Vec<u8>, bytes: usize, frame: usize) {
    // SAFETY: the caller's promise.
    let vector = unsafe { &*vector };
    if is_active()
        && bytes > 0
        && let Some(first) = vector.len().checked_sub(bytes)
    {
        itself(vector, AccessKind::Write, frame);
        touched(vector.as_ptr().addr() + first, bytes, AccessKind::Write, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_vectors_of_bytes() {
        let text = String::from("fourteen bytes");
        // SAFETY: what the test is about.
        let length = unsafe { __dagsan_text_length((&raw const text).cast()) };
        assert_eq!(length, 14);
        let path = std::path::PathBuf::from("/some/path");
        // SAFETY: the same.
        let length = unsafe { __dagsan_text_length((&raw const path).cast()) };
        assert_eq!(length, 10);
    }
}
