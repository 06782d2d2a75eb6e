//! A look at a word that may not be there any more.
//!
//! The runtime remembers addresses of atomics, and looks at them later: code without hooks may have changed them. By then
//! the memory may be gone, freed by a thread that is not checked, or the stack of a thread that has ended. A word in the
//! program's image is always there and is read as it is; for others the system is asked, which says no where a load
//! would end the program. That takes some tenths of a microsecond.
//!
//! Where the system does not let a process ask about itself (`process_vm_readv`), such words cannot be seen, and count as
//! they were.

use crate::image::Image;
use crate::system;

/// The value of an aligned word of up to eight bytes, if there is memory; of one of sixteen the first eight, those that
/// operations tell of.
pub fn peek(address: usize, bytes: usize, image: &Image) -> Option<u64> {
    let bytes = bytes.min(8);
    if !image.holds(address, bytes) {
        return ask(address, bytes);
    }
    // SAFETY: in the program's statics, which are there until its end; an atomic of the program, aligned to its size.
    unsafe { system::load(address, bytes) }
}

/// Has the system read the word.
fn ask(address: usize, bytes: usize) -> Option<u64> {
    let mut value = [0u8; 8];
    let to = libc::iovec { iov_base: value.as_mut_ptr().cast(), iov_len: bytes };
    let from = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes };
    // SAFETY: writes so many bytes of `value`; what it reads is for the system to check.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
    (usize::try_from(read) == Ok(bytes)).then(|| u64::from_le_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU16, AtomicU64};

    static WORD: AtomicU16 = AtomicU16::new(0x1234);

    #[test]
    fn words_are_seen_wherever_they_are_and_their_absence_is_too() {
        let image = Image::of_program();
        assert!(image.holds(WORD.as_ptr() as usize, 2));
        assert_eq!(peek(WORD.as_ptr() as usize, 2, &image), Some(0x1234));
        let local = AtomicU64::new(0x1122_3344_5566_7788);
        assert!(!image.holds(local.as_ptr() as usize, 8));
        for (bytes, value) in [(1, 0x88), (2, 0x7788), (4, 0x5566_7788), (8, 0x1122_3344_5566_7788)] {
            assert_eq!(peek(local.as_ptr() as usize, bytes, &image), Some(value));
        }
        assert_eq!(peek(local.as_ptr() as usize, 16, &image), Some(0x1122_3344_5566_7788));
        assert_eq!(peek(8, 8, &image), None);
        let (none, private) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which nobody can read.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, none, private, -1, 0) } as usize;
        assert_eq!(peek(page, 4, &image), None);
        // SAFETY: the mapping of before.
        assert_eq!(unsafe { libc::munmap(page as *mut libc::c_void, 4096) }, 0);
    }
}
