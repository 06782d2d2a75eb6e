//! Memory of the heap comes back as something else: the block that a task frees is what its sibling gets.

use std::alloc::Layout;
use std::array;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, Shared, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    heap_box,
    heap_calloc,
    heap_growth,
    heap_aligned,
    heap_malloc,
    heap_realloc,
    heap_large,
    heap_mapped,
    heap_strings,
    heap_freed_by_another_task,
    heap_free_and_read,
    heap_read_and_free,
    heap_free_and_write,
    heap_large_realloc_and_read,
    heap_large_realloc_before_a_read,
    heap_realloc_and_read,
    heap_unmap_and_read,
    heap_freed_after_join,
    heap_handed_over_where_another_was,
    heap_handed_over_and_written,
    heap_freed_where_it_was_allocated_and_read,
];

/// So many blocks at a time.
const MANY: usize = 20;

// expect: race-free
// expect heap=0: race
fn heap_box() {
    siblings(|| {
        let block = black_box(Box::new(Shared::new([1u64; 30])));
        store!(block, black_box([2; 30]));
    });
}

/// Many at a time, and all of them written: which memory comes back when is the allocator's business, but then some does.
// expect: race-free
// expect heap=0: race
fn heap_calloc() {
    siblings(|| {
        let mut blocks: [Vec<u32>; MANY] = array::from_fn(|_| vec![0; black_box(300)]);
        for block in &mut blocks {
            black_box(block).fill(1);
        }
        black_box(&blocks);
    });
}

// expect: race-free
// expect heap=0: race
fn heap_growth() {
    siblings(|| {
        let mut grows = Vec::new();
        for i in 0..black_box(2000u64) {
            grows.push(i);
        }
        black_box(&grows);
    });
}

/// Large, so that nothing is left between them.
// expect: race-free
// expect heap=0: race
fn heap_aligned() {
    siblings(|| {
        let Ok(layout) = Layout::from_size_align(black_box(200_000), 4096) else { return };
        // SAFETY: the layout is not empty; blocks are written within their bounds, and freed once, as they were allocated.
        unsafe {
            let blocks: [*mut u8; MANY] = array::from_fn(|_| black_box(std::alloc::alloc(layout)));
            for block in blocks {
                assert!(block.addr().is_multiple_of(4096));
                block.write_bytes(1, 200_000);
                std::alloc::dealloc(black_box(block), layout);
            }
        }
    });
}

// expect: race-free
// expect heap=0: race
fn heap_malloc() {
    siblings(|| {
        // SAFETY: the block is written within its bounds, and freed once.
        unsafe {
            let block: *mut u64 = black_box(libc::malloc(800)).cast();
            block.add(99).write(1);
            black_box(block);
            libc::free(block.cast());
        }
    });
}

// expect: race-free
// expect heap=0: race
fn heap_realloc() {
    siblings(|| {
        // SAFETY: each block is written within its bounds, and the last ones are freed once.
        unsafe {
            let resize = |block: *mut u8, size| black_box(libc::realloc(block.cast(), size)).cast::<u8>();
            let small: [*mut u8; MANY] = array::from_fn(|_| black_box(libc::malloc(40)).cast());
            small.iter().for_each(|block| block.add(39).write(1));
            let large = small.map(|block| resize(block, 4000));
            large.iter().for_each(|block| block.add(3999).write(2));
            let small = large.map(|block| resize(block, 100));
            small.iter().for_each(|block| block.add(99).write(3));
            small.iter().for_each(|&block| libc::free(black_box(block).cast()));
        }
    });
}

/// The allocator maps blocks of this size one by one, and gives them back to the system.
// expect: race-free
// expect heap=0: race
fn heap_large() {
    // That some of them are at one address is up to the allocator.
    finish(|scope| {
        for _ in 0..8 {
            spawn!(scope, {
                let mut block = vec![1u8; black_box(3 << 20)];
                black_box(&mut block)[2 << 20] = 2;
            });
        }
    });
}

// expect: race-free
// expect heap=0: race
fn heap_mapped() {
    // The first task's stack is mapped now, and not where the blocks are to be.
    siblings(|| ());
    // The system need not take the address that it is asked for, but does if it is free: this one is.
    let size = 1 << 16;
    let wanted = Pointer(map(ptr::null_mut(), size));
    // SAFETY: the memory is unmapped once, and was not used.
    assert_eq!(unsafe { libc::munmap(wanted.at().cast(), size) }, 0);
    siblings(|| {
        let block = map(wanted.at(), size);
        assert_eq!(block, wanted.at());
        // SAFETY: new memory, which is written within its bounds and unmapped once.
        unsafe {
            block.add(5000).write(1);
            assert_eq!(libc::munmap(block.cast(), size), 0);
        }
    });
}

/// New memory, at the address if that is free.
fn map(wanted: *mut u8, size: usize) -> *mut u8 {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: whatever the address, it is a wish.
    let block = unsafe { libc::mmap(wanted.cast(), size, access, flags, -1, 0) };
    assert_ne!(block, libc::MAP_FAILED);
    block.cast()
}

/// What programs do all the time.
// expect: race-free
// expect heap=0: race
fn heap_strings() {
    siblings(|| {
        let mut words: Vec<String> = (0..black_box(30)).map(|i| format!("word {i}")).collect();
        words.sort();
        let text = words.join(", ");
        assert!(black_box(text).starts_with("word 0, word 1, word 10"));
    });
}

/// The parent frees what its child has made, after it has waited for it.
// expect: race-free
// expect heap=0: race
fn heap_freed_by_another_task() {
    siblings(|| {
        let block = Shared::new(None);
        finish(|scope| {
            let block = &block;
            // Not a size that a growing table of the runtime has: it would get the block.
            spawn!(scope, store!(block, Some(Box::new(black_box([7u8; 1000])))));
        });
        // SAFETY: the task that has made it has ended.
        let block = unsafe { (*block.at()).take() };
        assert!(block.is_some_and(|bytes| black_box(bytes)[999] == 7));
    });
}

// expect: race free/read on 8 bytes of heap by 1/2
fn heap_free_and_read() {
    let block = black_box(vec![1u64; 4]);
    let inside = Pointer(block.as_ptr().cast_mut());
    let owner = Shared::new(Some(block));
    finish(|scope| {
        let owner = &owner;
        // SAFETY: nobody else looks at the owner.
        spawn!(scope, drop(unsafe { (*owner.at()).take() })); // race (1)
        // The block is free: nothing but this program uses it so soon again, and it only reads.
        spawn!(scope, load!(inside)); // race (2)
    });
}

// expect: race read/free on 8 bytes of heap by 1/2
fn heap_read_and_free() {
    let block = black_box(vec![1u64; 4]);
    let inside = Pointer(block.as_ptr().cast_mut());
    finish(|scope| {
        spawn!(scope, load!(inside)); // race (1)
        spawn!(scope, drop(block)); // race (2)
    });
}

// expect: race write/free on 1 bytes of heap by 1/2
fn heap_free_and_write() {
    // SAFETY: any size will do.
    let block = Pointer(unsafe { libc::malloc(black_box(100)) }.cast::<u8>());
    finish(|scope| {
        spawn!(scope, store!(block, 1)); // race (1)
        // SAFETY: the block is freed once.
        spawn!(scope, unsafe { libc::free(block.at().cast()) }); // race (2)
    });
}

// expect: race read/free on 8 bytes of heap by 1/2
fn heap_realloc_and_read() {
    let mut grows: Vec<u64> = black_box(Vec::with_capacity(4));
    grows.extend([1, 2, 3, 4]);
    let inside = Pointer(grows.as_mut_ptr());
    finish(|scope| {
        spawn!(scope, load!(inside)); // race (1)
        spawn!(scope, grows.reserve(1000); black_box(&grows);); // race (2)
    });
}

/// A block that is a mapping of its own.
// expect: race read/free on 8 bytes of heap by 1/2
fn heap_large_realloc_and_read() {
    let mut grows: Vec<u64> = black_box(Vec::with_capacity(1 << 15));
    grows.resize(1 << 15, 1);
    let inside = Pointer(grows.as_mut_ptr());
    finish(|scope| {
        spawn!(scope, load!(inside)); // race (1)
        spawn!(scope, grows.reserve(1 << 16); black_box(&grows);); // race (2)
    });
}

// expect: race-free
fn heap_large_realloc_before_a_read() {
    let mut grows: Vec<u64> = black_box(Vec::with_capacity(1 << 15));
    grows.resize(1 << 15, 1);
    let grown = &mut grows;
    finish(|scope| spawn!(scope, grown.reserve(1 << 16); black_box(&grown);));
    let inside = Pointer(grows.as_mut_ptr());
    finish(|scope| {
        for _ in 0..2 {
            spawn!(scope, load!(inside));
        }
    });
}

// expect: race read/free on 1 bytes of other by 1/2
fn heap_unmap_and_read() {
    let block = Pointer(map(ptr::null_mut(), 4096));
    finish(|scope| {
        spawn!(scope, load!(block)); // race (1)
        // SAFETY: the memory is unmapped once.
        spawn!(scope, assert_eq!(unsafe { libc::munmap(block.at().cast(), 4096) }, 0)); // race (2)
    });
}

// expect: race-free
fn heap_freed_after_join() {
    let block = black_box(vec![1u64; 400]);
    finish(|scope| {
        let half = &block[..200];
        spawn!(scope, black_box(half.iter().sum::<u64>()));
        let half = &block[200..];
        spawn!(scope, black_box(half.iter().sum::<u64>()));
    });
    drop(block);
}

/// A block that the task has allocated and freed itself, and another at its address.
fn second_at_one_address() -> Pointer<u8> {
    // SAFETY: the first block is freed once.
    unsafe {
        libc::free(black_box(libc::malloc(black_box(100))));
        Pointer(black_box(libc::malloc(black_box(100))).cast())
    }
}

/// Nobody has touched the second block, and that there was another at its address means nothing.
// expect: race-free
fn heap_handed_over_where_another_was() {
    static BLOCK: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
    finish(|scope| {
        spawn!(scope, BLOCK.store(second_at_one_address().at(), Relaxed));
        // SAFETY: the block is freed once.
        spawn!(scope, unsafe { libc::free(BLOCK.load(Relaxed).cast()) });
    });
}

// expect: race write/free on 1 bytes of heap by 1/2
fn heap_handed_over_and_written() {
    static BLOCK: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
    finish(|scope| {
        spawn!(scope, {
            let block = second_at_one_address();
            store!(block, 1); // race (1)
            BLOCK.store(block.at(), Relaxed);
        });
        // SAFETY: the block is freed once.
        spawn!(scope, unsafe { libc::free(BLOCK.load(Relaxed).cast()) }); // race (2)
    });
}

/// The free waits for the end of the strand, and is not lost: it is a write then, unless places are to be exact.
// expect: race
fn heap_freed_where_it_was_allocated_and_read() {
    static BLOCK: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
    finish(|scope| {
        spawn!(scope, {
            // SAFETY: the block is freed once.
            let block = unsafe { black_box(libc::malloc(black_box(100))) };
            BLOCK.store(block.cast(), Relaxed);
            unsafe { libc::free(block) }; // race (1)
        });
        spawn!(scope, load!(Pointer(BLOCK.load(Relaxed)))); // race (2)
    });
}
