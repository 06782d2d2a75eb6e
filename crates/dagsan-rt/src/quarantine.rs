//! Blocks that were freed lately, and that the allocator does not have back yet.
//!
//! A program that uses a block after another task has freed it writes over what the allocator keeps there, and the next allocation may be its end,
//! before the race was told. So in C and C++ blocks that are freed while something is parallel wait here: for so many others to be freed. In Rust few programs
//! can do that, and memory that comes back at once is the faster.
//!
//! ```text
//!   ring   [ block … block ]     the eldest makes room for the next
//! ```

use std::ffi::c_void;
use std::ptr;

/// So many wait.
const BLOCKS: usize = 256;
/// Larger ones do not: all of them together have this many bytes 256 times at most.
const LARGEST: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub struct Quarantine {
    ring: Box<[*mut c_void]>,
    next: usize,
}

impl Quarantine {
    pub fn new() -> Quarantine {
        Quarantine { ring: vec![ptr::null_mut(); BLOCKS].into(), next: 0 }
    }

    /// A block of this size waits. Returns the one that the allocator gets back, or null.
    #[inline]
    pub fn put(&mut self, block: *mut c_void, size: usize) -> *mut c_void {
        if size > LARGEST {
            return block;
        }
        self.next = (self.next + 1) % BLOCKS;
        std::mem::replace(&mut self.ring[self.next], block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_after_many_others() {
        let mut quarantine = Quarantine::new();
        let block = |number: usize| ptr::without_provenance_mut::<c_void>(number << 4);
        for number in 1..=BLOCKS {
            assert!(quarantine.put(block(number), 16).is_null());
        }
        for number in 1..=2 * BLOCKS {
            assert_eq!(quarantine.put(block(BLOCKS + number), 16), block(number));
        }
        assert_eq!(quarantine.put(block(1), LARGEST + 1), block(1));
    }
}
