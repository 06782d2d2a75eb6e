//! What the allocator and the system write for the task that asks: the zeroes of `calloc`, the copies of `realloc` and
//! `mremap`. And what they do not do, if they fail.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    allocator_zeroes,
    allocator_zeroes_and_hands_over,
    allocator_zeroes_and_joins,
    allocator_zeroes_and_another_writes,
    allocator_zeroes_much,
    allocator_zeroes_much_and_hands_over,
    allocator_zeroes_for_c,
    allocator_zeroes_for_c_and_hands_over,
    allocator_zeroes_no_more_than_was_asked_for,
    allocator_does_not_zero,
    allocator_moves,
    allocator_moves_and_hands_over,
    allocator_moves_no_more_than_there_was,
    allocator_moves_a_vector,
    allocator_moves_a_vector_and_hands_over,
    allocator_shrinks,
    allocator_shrinks_and_joins,
    allocator_fails_to_move,
    allocator_fails_to_zero,
    allocator_moves_nothing,
    mapping_moves,
    mapping_moves_and_hands_over,
    mapping_moves_away,
    mapping_moves_from_under_another,
    mapping_fails_to_move,
    mapping_grows_and_shrinks_in_place,
    mapping_shrinks_from_under_another,
    mapping_fails_to_go,
    allocator_of_code_without_hooks,
    allocator_of_much_without_hooks,
    allocator_of_much_with_hooks,
];

/// Where a task leaves a pointer for another.
type Left<T> = AtomicPtr<T>;

fn nothing<T>() -> Left<T> {
    AtomicPtr::new(ptr::null_mut())
}

/// What the other has left, at some distance.
fn left<T>(left: &Left<T>, distance: usize) -> Pointer<T> {
    Pointer(left.load(Relaxed).wrapping_add(distance))
}

/// The same, with all that came before.
fn handed_over<T>(left: &Left<T>, distance: usize) -> Pointer<T> {
    Pointer(left.load(Acquire).wrapping_add(distance))
}

// expect: race write/read on 8 bytes of heap by 1/2
// expect heap=0: race-free
fn allocator_zeroes() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(vec![0u64; black_box(100)].leak().as_mut_ptr(), Relaxed)); // race (1)
        spawn!(scope, load!(left(at, 5))); // race (2)
    });
}

// expect: race-free, up to atomics
fn allocator_zeroes_and_hands_over() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(vec![0u64; black_box(100)].leak().as_mut_ptr(), Release));
        spawn!(scope, load!(handed_over(at, 5)));
    });
}

// expect: race-free
fn allocator_zeroes_and_joins() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, ());
        finish(|scope| spawn!(scope, at.store(vec![0u64; black_box(100)].leak().as_mut_ptr(), Relaxed)));
        load!(left(at, 5));
    });
}

// expect: race write/write on 8 bytes of heap by 1/2
fn allocator_zeroes_and_another_writes() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(vec![0u64; black_box(100)].leak().as_mut_ptr(), Relaxed)); // race (1)
        spawn!(scope, store!(left(at, 99), 1)); // race (2)
    });
}

/// A mapping of its own, of many lines; the first and the last are not whole ones.
// expect: race write/read on 16 bytes of heap by 1/2
fn allocator_zeroes_much() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(vec![0u64; black_box(1 << 20)].leak().as_mut_ptr(), Relaxed)); // race (1)
        spawn!(scope, load!(left(at, 0)); load!(left(at, (1 << 20) - 1))); // race (2)
    });
}

// expect: race-free, up to atomics
fn allocator_zeroes_much_and_hands_over() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(vec![0u64; black_box(1 << 20)].leak().as_mut_ptr(), Release));
        spawn!(scope, load!(handed_over(at, 0)); load!(handed_over(at, (1 << 20) - 1)));
    });
}

/// Asks C's allocator for zeroes. Like the other macros here, what it does counts as done where it is used.
#[collapse_debuginfo(yes)]
macro_rules! zeroes {
    ($count:expr) => {
        // SAFETY: any numbers will do.
        unsafe { libc::calloc($count, size_of::<u64>()).cast::<u64>() }
    };
}

// expect: race write/read on 8 bytes of heap by 1/2
fn allocator_zeroes_for_c() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(zeroes!(black_box(3)), Relaxed)); // race (1)
        spawn!(scope, load!(left(at, 2))); // race (2)
    });
}

// expect: race-free, up to atomics
fn allocator_zeroes_for_c_and_hands_over() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(zeroes!(black_box(3)), Release));
        spawn!(scope, load!(handed_over(at, 2)));
    });
}

/// The C library rounds sizes up; what it does there is its own business.
// expect: race-free
fn allocator_zeroes_no_more_than_was_asked_for() {
    let at = &nothing();
    finish(|scope| {
        // SAFETY: any numbers will do.
        spawn!(scope, at.store(unsafe { libc::calloc(17, 1) }.cast::<u8>(), Relaxed));
        spawn!(scope, store!(left(at, 20), 1));
    });
}

/// Asks C's allocator for memory that it need not write.
#[inline(always)]
fn memory(size: usize) -> *mut u64 {
    // SAFETY: any size will do.
    unsafe { libc::malloc(size).cast() }
}

// expect: race-free
fn allocator_does_not_zero() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(memory(black_box(800)), Relaxed));
        spawn!(scope, store!(left(at, 5), 1));
    });
}

/// Moves a block, or makes it smaller.
#[collapse_debuginfo(yes)]
macro_rules! resized {
    ($block:expr, $count:expr) => {
        // SAFETY: the points give away each block once.
        unsafe { libc::realloc($block.cast(), usize::saturating_mul($count, size_of::<u64>())).cast::<u64>() }
    };
}

/// A block, and another behind it, so that the first cannot grow where it is.
fn hemmed_in(count: usize) -> Pointer<u64> {
    let block = Pointer(zeroes!(count));
    black_box(zeroes!(count));
    block
}

// expect: race write/read on 8 bytes of heap by 1/2
fn allocator_moves() {
    let (at, block) = (&nothing(), hemmed_in(10));
    finish(|scope| {
        spawn!(scope, at.store(resized!(block.at(), 1000), Relaxed)); // race (1)
        spawn!(scope, load!(left(at, 9))); // race (2)
    });
}

// expect: race-free, up to atomics
fn allocator_moves_and_hands_over() {
    let (at, block) = (&nothing(), hemmed_in(10));
    finish(|scope| {
        spawn!(scope, at.store(resized!(block.at(), 1000), Release));
        spawn!(scope, load!(handed_over(at, 9)));
    });
}

// expect: race-free
fn allocator_moves_no_more_than_there_was() {
    let (at, block) = (&nothing(), hemmed_in(10));
    finish(|scope| {
        spawn!(scope, at.store(resized!(block.at(), 1000), Relaxed));
        spawn!(scope, store!(left(at, 10), 1));
    });
}

/// A vector with room for one more, if it moves.
fn full_vector() -> Vec<u64> {
    let full = vec![1; 10];
    black_box(zeroes!(10));
    full
}

// expect: race write/read on 8 bytes of heap by 1/2
fn allocator_moves_a_vector() {
    let at = &nothing();
    let mut grows = full_vector();
    finish(|scope| {
        scope.spawn(move |_| {
            grows.reserve(black_box(1000)); // race (1)
            at.store(grows.leak().as_mut_ptr(), Relaxed);
        });
        spawn!(scope, load!(left(at, 9))); // race (2)
    });
}

// expect: race-free, up to atomics
fn allocator_moves_a_vector_and_hands_over() {
    let at = &nothing();
    let mut grows = full_vector();
    finish(|scope| {
        scope.spawn(move |_| {
            grows.reserve(black_box(1000));
            at.store(grows.leak().as_mut_ptr(), Release);
        });
        spawn!(scope, load!(handed_over(at, 9)));
    });
}

/// It might have stayed where it is; but it might have moved, and the other read what is freed.
// expect: race free/read on 8 bytes of heap by 1/2
fn allocator_shrinks() {
    let block = hemmed_in(1000);
    finish(|scope| {
        spawn!(scope, black_box(resized!(block.at(), 10))); // race (1)
        spawn!(scope, load!(block)); // race (2)
    });
}

// expect: race-free
fn allocator_shrinks_and_joins() {
    let block = hemmed_in(1000);
    finish(|scope| {
        spawn!(scope, ());
        finish(|scope| spawn!(scope, black_box(resized!(block.at(), 10))));
        load!(block);
    });
}

/// There is no memory for it: the block is as it was, and nothing has happened to it.
// expect: race-free
fn allocator_fails_to_move() {
    let block = hemmed_in(10);
    finish(|scope| {
        spawn!(scope, assert!(resized!(block.at(), usize::MAX).is_null()));
        spawn!(scope, load!(block));
    });
    // SAFETY: the block is still there, and is freed once.
    unsafe { libc::free(block.at().cast()) };
}

// expect: race-free
fn allocator_fails_to_zero() {
    siblings(|| {
        // SAFETY: any numbers will do.
        let nothing = black_box(unsafe { libc::calloc(usize::MAX, black_box(16)) });
        assert!(nothing.is_null());
        // SAFETY: as above; there is no block to be moved.
        let nothing = black_box(unsafe { libc::reallocarray(ptr::null_mut(), usize::MAX, black_box(16)) });
        assert!(nothing.is_null());
    });
}

/// A block of no size is moved: it is freed.
// expect: race free/read on 8 bytes of heap by 1/2
fn allocator_moves_nothing() {
    let block = hemmed_in(10);
    finish(|scope| {
        spawn!(scope, black_box(resized!(block.at(), 0))); // race (1)
        spawn!(scope, load!(block)); // race (2)
    });
}

/// So many bytes are mapped in one piece.
const PIECE: usize = 64 << 10;

/// Maps memory, anywhere.
fn mapped(size: usize) -> *mut u64 {
    map(ptr::null_mut(), size, 0)
}

fn map(place: *mut c_void, size: usize, flags: i32) -> *mut u64 {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which takes the place of no other.
    let at = unsafe { libc::mmap(place, size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    at.cast()
}

/// Moves a piece to another place, where there is a mapping.
#[collapse_debuginfo(yes)]
macro_rules! moved {
    ($from:expr, $to:expr) => {
        // SAFETY: both are mappings of the point's own, and not used any more.
        unsafe {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            libc::mremap($from.cast(), PIECE, PIECE, flags, $to.cast::<c_void>()).cast::<u64>()
        }
    };
}

// expect: race write/read on 8 bytes of other by 1/2
fn mapping_moves() {
    let (at, from) = (&nothing(), Pointer(mapped(PIECE)));
    finish(|scope| {
        spawn!(scope, at.store(moved!(from.at(), mapped(PIECE)), Relaxed)); // race (1)
        spawn!(scope, load!(left(at, 7))); // race (2)
    });
}

// expect: race-free, up to atomics
fn mapping_moves_and_hands_over() {
    let (at, from) = (&nothing(), Pointer(mapped(PIECE)));
    finish(|scope| {
        spawn!(scope, at.store(moved!(from.at(), mapped(PIECE)), Release));
        spawn!(scope, load!(handed_over(at, 7)));
    });
}

/// What comes to the old place is other memory.
// expect: race-free
// expect heap=0: race
fn mapping_moves_away() {
    let [from, to] = [(); 2].map(|()| Pointer(mapped(PIECE)));
    finish(|scope| {
        scope.spawn(move |_| {
            store!(from, 1);
            black_box(moved!(from.at(), to.at()));
            assert_eq!(map(from.at().cast(), PIECE, libc::MAP_FIXED_NOREPLACE), from.at());
        });
        spawn!(scope, store!(from, 2));
    });
}

// expect: race read/free on 8 bytes of other by 1/2
fn mapping_moves_from_under_another() {
    let from = Pointer(mapped(PIECE));
    finish(|scope| {
        spawn!(scope, load!(from)); // race (1)
        spawn!(scope, black_box(moved!(from.at(), mapped(PIECE)))); // race (2)
    });
}

// expect: race-free
fn mapping_fails_to_move() {
    let from = Pointer(mapped(PIECE));
    finish(|scope| {
        // SAFETY: there is no room for so much: nothing happens.
        let fail = move || unsafe { libc::mremap(from.at().cast(), PIECE, 1 << 60, libc::MREMAP_MAYMOVE) };
        spawn!(scope, assert_eq!(fail(), libc::MAP_FAILED));
        spawn!(scope, load!(from));
    });
}

/// What stays is not touched.
// expect: race-free
fn mapping_grows_and_shrinks_in_place() {
    let whole = Pointer(mapped(2 * PIECE));
    finish(|scope| {
        spawn!(scope, load!(whole));
        scope.spawn(move |_| {
            // SAFETY: the second half is nobody's.
            let half = unsafe { libc::mremap(whole.at().cast(), 2 * PIECE, PIECE, 0) };
            assert_eq!(half, whole.at().cast());
            // SAFETY: what was behind the first half has just gone.
            let again = unsafe { libc::mremap(half, PIECE, 2 * PIECE, 0) };
            assert_eq!(again, half);
        });
    });
}

// expect: race read/free on 8 bytes of other by 1/2
fn mapping_shrinks_from_under_another() {
    let whole = Pointer(mapped(2 * PIECE));
    let end = Pointer(whole.at().wrapping_add(2 * PIECE / size_of::<u64>() - 1));
    finish(|scope| {
        spawn!(scope, load!(end)); // race (1)
        // SAFETY: the other task has read what goes.
        spawn!(scope, black_box(unsafe { libc::mremap(whole.at().cast(), 2 * PIECE, PIECE, 0) })); // race (2)
    });
}

// expect: race-free
fn mapping_fails_to_go() {
    let whole = Pointer(mapped(PIECE));
    finish(|scope| {
        spawn!(scope, load!(Pointer(whole.at().wrapping_add(1))));
        // SAFETY: mappings go by pages: nothing happens.
        spawn!(scope, assert_eq!(unsafe { libc::munmap(whole.at().wrapping_add(1).cast(), PIECE) }, -1));
    });
}

/// The standard library keeps what it has read of the program, in vectors behind a lock of its own, without hooks.
// expect: race-free
fn allocator_of_code_without_hooks() {
    siblings(|| {
        let stack = std::backtrace::Backtrace::force_capture();
        black_box(stack.to_string().len());
    });
}

/// A block that is larger than the number of races that are kept. Who passes it on does so under a lock that nobody sees.
// expect: race-free
fn allocator_of_much_without_hooks() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(zeroes!(black_box(1 << 20)), Relaxed));
        // SAFETY: the block is there, and is freed once.
        spawn!(scope, unsafe { libc::free(at.load(Relaxed).cast()) });
    });
}

// expect: race write/free on 8 bytes of heap by 1/2
fn allocator_of_much_with_hooks() {
    let at = &nothing();
    finish(|scope| {
        spawn!(scope, at.store(zeroes!(black_box(1 << 20)), Relaxed); store!(left(at, 12345), 1)); // race (1)
        // SAFETY: the block is there, and is freed once.
        spawn!(scope, unsafe { libc::free(at.load(Relaxed).cast()) }); // race (2)
    });
}
