//! A program with a global allocator of its own, which counts. Its code has hooks, and the runtime allocates with it too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use dagsan_task::finish;

struct Counting {
    largest: usize,
    small: AtomicUsize,
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() <= self.largest {
            self.small.fetch_add(1, Ordering::Relaxed);
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
static ALLOCATOR: Counting = Counting { largest: 1000, small: AtomicUsize::new(0) };

fn main() {
    finish(|scope| {
        for task in 0..100 {
            scope.spawn(move |_| {
                let mut block = vec![task; black_box(100)];
                black_box(&mut block)[7] += 1;
            });
        }
    });
    assert!(ALLOCATOR.small.load(Ordering::Relaxed) >= 100);
}
