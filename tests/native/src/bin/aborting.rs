//! A program whose own global allocator aborts in its middle, and is not to be entered again. The runtime allocates with
//! it too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::hint::black_box;

use dagsan_task::finish;

struct Aborting {
    in_use: UnsafeCell<bool>,
}

// SAFETY: the program has one thread.
unsafe impl Sync for Aborting {}

/// The size that it does not like.
const ODD: usize = 12_345;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Aborting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: there is one thread.
        while unsafe { self.in_use.get().read_volatile() } {}
        if layout.size() == ODD {
            // SAFETY: as above.
            unsafe { self.in_use.get().write_volatile(true) };
            std::process::abort();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Aborting = Aborting { in_use: UnsafeCell::new(false) };

fn main() {
    finish(|scope| scope.spawn(|_| drop(black_box(Vec::<u8>::with_capacity(black_box(ODD))))));
}
