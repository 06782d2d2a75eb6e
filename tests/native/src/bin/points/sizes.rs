//! Accesses of other sizes than 1, 2, 4, 8 and 16 bytes: values of three to forty bytes, reads that are wider than the write
//! after them, and atomic operations that ThreadSanitizer's pass leaves out.

use std::hint::black_box;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, Shared, at, buffer, load, spawn, store};

pub const POINTS: &[Point] = points![
    size_3_passed,
    size_3_passed_apart,
    size_3_given_back,
    size_3_given_back_apart,
    size_5_passed,
    size_5_passed_apart,
    size_6_passed,
    size_6_passed_apart,
    size_7_passed,
    size_7_passed_apart,
    size_9_passed,
    size_9_passed_apart,
    size_12_compared,
    size_12_compared_apart,
    size_24_packed,
    size_24_packed_apart,
    size_40_by_value,
    size_40_by_value_apart,
    size_read_wider_than_the_write,
    size_read_wider_than_the_write_apart,
    size_atomic_max,
    size_atomic_max_twice,
    size_atomic_min_orders,
];

#[derive(Clone, Copy, PartialEq)]
struct Rgb {
    r: u8,
    g: u8,
    b: u8,
}

#[inline(never)]
fn invert(x: Rgb) -> Rgb {
    Rgb { r: !x.r, g: !x.g, b: !x.b }
}

/// So many bytes, passed by value.
#[inline(never)]
fn sum<const N: usize>(bytes: [u8; N]) -> u8 {
    bytes.iter().fold(0, |sum, &byte| black_box(sum ^ byte))
}

/// What is at a place, passed on as a value.
#[collapse_debuginfo(yes)]
macro_rules! value {
    ($place:expr) => {
        // SAFETY: points keep to their buffers, and no other thread uses them.
        unsafe { *$place.at() }
    };
}

const GREY: Rgb = Rgb { r: 1, g: 1, b: 1 };

// expect: race read/write on 3 bytes of heap by 1/2
fn size_3_passed() {
    let (_pixels, pixel) = buffer(GREY, 10);
    finish(|scope| {
        spawn!(scope, black_box(invert(value!(at(pixel, 5))))); // race (1)
        spawn!(scope, store!(at(pixel, 5), black_box(GREY))); // race (2)
    });
}

// expect: race-free
fn size_3_passed_apart() {
    let (_pixels, pixel) = buffer(GREY, 10);
    finish(|scope| {
        spawn!(scope, black_box(invert(value!(at(pixel, 5)))));
        spawn!(scope, store!(at(pixel, 4), black_box(GREY)));
        spawn!(scope, store!(at(pixel, 6), black_box(GREY)));
    });
}

// expect: race write/read on 3 bytes of heap by 1/2
fn size_3_given_back() {
    let (_pixels, pixel) = buffer(GREY, 10);
    finish(|scope| {
        spawn!(scope, store!(at(pixel, 1), invert(black_box(GREY)))); // race (1)
        spawn!(scope, black_box(invert(value!(at(pixel, 1))) == GREY)); // race (2)
    });
}

// expect: race-free
fn size_3_given_back_apart() {
    let (_pixels, pixel) = buffer(GREY, 10);
    finish(|scope| {
        spawn!(scope, store!(at(pixel, 1), invert(black_box(GREY))));
        spawn!(scope, store!(at(pixel, 2), invert(black_box(GREY))));
        spawn!(scope, black_box(invert(value!(at(pixel, 0))) == GREY));
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn size_5_passed() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 5]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value)))); // race (1)
        spawn!(scope, store!(at(byte, 7), black_box(1))); // race (2)
    });
}

// expect: race-free
fn size_5_passed_apart() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 5]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value))));
        spawn!(scope, store!(at(byte, 2), black_box(1)));
        spawn!(scope, store!(at(byte, 8), black_box(1)));
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn size_6_passed() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 6]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value)))); // race (1)
        spawn!(scope, store!(at(byte, 8), black_box(1))); // race (2)
    });
}

// expect: race-free
fn size_6_passed_apart() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 6]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value))));
        spawn!(scope, store!(at(byte, 2), black_box(1)));
        spawn!(scope, store!(at(byte, 9), black_box(1)));
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn size_7_passed() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 7]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value)))); // race (1)
        spawn!(scope, store!(at(byte, 9), black_box(1))); // race (2)
    });
}

// expect: race-free
fn size_7_passed_apart() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 7]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value))));
        spawn!(scope, store!(at(byte, 2), black_box(1)));
        spawn!(scope, store!(at(byte, 10), black_box(1)));
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn size_9_passed() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 9]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value)))); // race (1)
        spawn!(scope, store!(at(byte, 11), black_box(1))); // race (2)
    });
}

// expect: race-free
fn size_9_passed_apart() {
    let (_bytes, byte) = buffer(0u8, 64);
    let value = Pointer(at(byte, 3).at().cast::<[u8; 9]>());
    finish(|scope| {
        spawn!(scope, black_box(sum(value!(value))));
        spawn!(scope, store!(at(byte, 2), black_box(1)));
        spawn!(scope, store!(at(byte, 12), black_box(1)));
    });
}

// expect: race read/write on 4 bytes of heap by 1/2
fn size_12_compared() {
    let (_words, words) = buffer([1u32; 3], 10);
    finish(|scope| {
        // SAFETY: in the buffer.
        spawn!(scope, black_box(unsafe { *words.at() == *at(words, 5).at() })); // race (1)
        spawn!(scope, store!(Pointer(at(words, 5).at().cast::<u32>()), black_box(2))); // race (2)
    });
}

// expect: race-free
fn size_12_compared_apart() {
    let (_words, words) = buffer([1u32; 3], 10);
    finish(|scope| {
        // SAFETY: in the buffer.
        spawn!(scope, black_box(unsafe { *words.at() == *at(words, 5).at() }));
        spawn!(scope, store!(Pointer(at(words, 6).at().cast::<u32>()), black_box(2)));
    });
}

/// No field but the first is aligned.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Packed {
    tag: u8,
    number: u16,
    value: u64,
    rest: [u8; 13],
}

const PACKED: Packed = Packed { tag: 0, number: 1, value: 2, rest: [3; 13] };

// expect: race write/read on 8 bytes of heap by 1/2
fn size_24_packed() {
    let (_all, all) = buffer(PACKED, 4);
    finish(|scope| {
        spawn!(scope, store!(at(all, 1), black_box(PACKED))); // race (1)
        // SAFETY: in the buffer.
        spawn!(scope, black_box(unsafe { (*at(all, 1).at()).value })); // race (2)
    });
}

// expect: race-free
fn size_24_packed_apart() {
    let (_all, all) = buffer(PACKED, 4);
    finish(|scope| {
        // SAFETY: in the buffer, as all below.
        spawn!(scope, unsafe { (*at(all, 1).at()).number = black_box(3) });
        spawn!(scope, black_box(unsafe { (*at(all, 1).at()).value }));
        spawn!(scope, black_box(unsafe { (*at(all, 1).at()).tag }));
        spawn!(scope, unsafe { (*at(all, 1).at()).rest = black_box([4; 13]) });
    });
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Five([u64; 5]);

#[inline(never)]
extern "C" fn last(five: Five) -> u64 {
    black_box(&five).0[4]
}

// expect: race read/write on 8 bytes of heap by 1/2
fn size_40_by_value() {
    let (_all, all) = buffer(Five([0; 5]), 4);
    finish(|scope| {
        // SAFETY: in the buffer, as below.
        spawn!(scope, black_box(last(unsafe { *at(all, 2).at() }))); // race (1)
        spawn!(scope, unsafe { (*at(all, 2).at()).0[3] = black_box(1) }); // race (2)
    });
}

// expect: race-free
fn size_40_by_value_apart() {
    let (_all, all) = buffer(Five([0; 5]), 4);
    finish(|scope| {
        // SAFETY: in the buffer, as below.
        spawn!(scope, black_box(last(unsafe { *at(all, 2).at() })));
        spawn!(scope, unsafe { (*at(all, 1).at()).0[4] = black_box(1) });
        spawn!(scope, unsafe { (*at(all, 3).at()).0[0] = black_box(1) });
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn size_read_wider_than_the_write() {
    #[inline(never)]
    fn take_and_mark(word: Pointer<u64>) -> u64 {
        let old = value!(word); // race (1)
        store!(Pointer(word.at().cast::<u8>()), 9);
        old
    }
    let (_words, words) = buffer(0u64, 4);
    let byte = Pointer(words.at().cast::<u8>());
    finish(|scope| {
        spawn!(scope, black_box(take_and_mark(words)));
        spawn!(scope, store!(at(byte, 7), black_box(1))); // race (2)
    });
}

// expect: race-free
fn size_read_wider_than_the_write_apart() {
    #[inline(never)]
    fn take_and_mark(word: Pointer<u64>) -> u64 {
        let old = value!(word);
        store!(Pointer(word.at().cast::<u8>()), 9);
        old
    }
    let (_words, words) = buffer(0u64, 4);
    let byte = Pointer(words.at().cast::<u8>());
    finish(|scope| {
        spawn!(scope, black_box(take_and_mark(words)));
        spawn!(scope, store!(at(byte, 8), black_box(1)));
    });
}

// expect: race atomic write/write on 4 bytes of heap by 1/2
fn size_atomic_max() {
    let word = black_box(Box::new((AtomicI32::new(0), ())));
    finish(|scope| {
        let word = &word.0;
        spawn!(scope, word.fetch_max(7, Ordering::Relaxed)); // race (1)
        spawn!(scope, store!(Pointer(word.as_ptr()), 3)); // race (2)
    });
}

// expect: race-free
fn size_atomic_max_twice() {
    let words = black_box(Box::new((AtomicI32::new(0), AtomicU64::new(9))));
    finish(|scope| {
        let (small, large) = (&words.0, &words.1);
        for value in [3, 8, 5] {
            spawn!(scope, small.fetch_max(value, Ordering::Relaxed));
            spawn!(scope, large.fetch_min(value as u64, Ordering::Relaxed));
        }
    });
    assert_eq!((words.0.load(Ordering::Relaxed), words.1.load(Ordering::Relaxed)), (8, 3));
}

// expect: race-free, up to atomics
// expect atomics=0: race
fn size_atomic_min_orders() {
    let words = black_box(Box::new((AtomicI32::new(5), Shared::new(0u64))));
    finish(|scope| {
        let (flag, data) = (&words.0, &words.1);
        spawn!(scope,
            store!(data, 1);
            flag.fetch_min(-1, Ordering::Release)
        );
        spawn!(
            scope,
            if flag.load(Ordering::Acquire) < 0 {
                load!(data);
            }
        );
    });
}
