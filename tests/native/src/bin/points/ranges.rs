//! Ranges: copies, fills, comparisons, vector loops; overlapping and side by side.

use std::hint::black_box;

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, buffer, spawn};

pub const POINTS: &[Point] = points![
    range_copy_to,
    range_copy_from,
    range_copy_within,
    range_fill,
    range_compare,
    range_compare_stops,
    range_side_by_side,
    range_copy_side_by_side,
    range_vector_add_f32,
    range_vector_add_f64,
    range_vector_side_by_side,
    range_sort_halves,
    range_sort_overlapping,
    range_clone,
    range_strings,
    range_c_comparison,
    range_without_hooks,
];

/// A part of a buffer, for a task that need not be the only one that has it.
fn part<'a, T>(buffer: Pointer<T>, from: usize, to: usize) -> &'a mut [T] {
    // SAFETY: points keep to their buffers, which outlive the tasks. Parts of parallel tasks may overlap, but the tasks
    // of a thread do not run at the same time, and none keeps its part.
    unsafe { std::slice::from_raw_parts_mut(buffer.at().add(from), to - from) }
}

// expect: race write/write on 10 bytes of heap by 1/2
fn range_copy_to() {
    let (_bytes, at) = buffer(0u8, 1000);
    let source = black_box([7u8; 300]);
    finish(|scope| {
        let source = &source;
        spawn!(scope, part(at, 0, 300).copy_from_slice(source)); // race (1)
        spawn!(scope, part(at, 290, 590).copy_from_slice(source)); // race (2)
    });
}

// expect: race read/write on 1 bytes of heap by 1/2
fn range_copy_from() {
    let (_bytes, at) = buffer(0u8, 1000);
    finish(|scope| {
        spawn!(scope,
            let mut target = black_box([0u8; 300]);
            target.copy_from_slice(part(at, 0, 300)); // race (1)
            black_box(target)
        );
        spawn!(scope, part(at, 299, 599).fill(black_box(3))); // race (2)
    });
}

// expect: race write/write on 100 bytes of heap by 1/2
fn range_copy_within() {
    let (_bytes, at) = buffer(0u8, 1000);
    finish(|scope| {
        spawn!(scope, part(at, 0, 300).copy_within(black_box(0..200), 100)); // race (1)
        spawn!(scope, part(at, 200, 600).fill(black_box(1))); // race (2)
    });
}

// expect: race write/write on 3 bytes of heap by 1/2
fn range_fill() {
    let (_bytes, at) = buffer(0u8, 1000);
    finish(|scope| {
        spawn!(scope, part(at, 0, black_box(503)).fill(1)); // race (1)
        spawn!(scope, part(at, black_box(500), 1000).fill(2)); // race (2)
    });
}

// expect: race write/read on 50 bytes of heap by 1/2
fn range_compare() {
    let (_bytes, at) = buffer(0u8, 1000);
    let same = black_box(vec![0u8; 200]);
    finish(|scope| {
        let same = &same;
        spawn!(scope, part(at, black_box(150), 300).fill(0)); // race (1)
        spawn!(scope, black_box(*part(at, 0, black_box(200)) == **same)); // race (2)
    });
}

/// A comparison reads no further than to the first difference.
// expect: race-free
fn range_compare_stops() {
    let (_bytes, at) = buffer(0u8, 1000);
    let other = black_box(vec![1u8; 200]);
    finish(|scope| {
        let other = &other;
        spawn!(scope, part(at, black_box(150), 300).fill(0));
        spawn!(scope, black_box(*part(at, 0, black_box(200)) < **other));
    });
}

// expect: race-free
fn range_side_by_side() {
    let (bytes, at) = buffer(0u8, 1000);
    finish(|scope| {
        for i in 0..10 {
            spawn!(scope, part(at, i * 100, (i + 1) * 100).fill(black_box(1)));
        }
    });
    assert_eq!(bytes, [1; 1000]);
}

// expect: race-free
fn range_copy_side_by_side() {
    let (_bytes, at) = buffer(1u8, 1000);
    finish(|scope| {
        for i in 0..9 {
            spawn!(scope, part(at, i * 111, (i + 1) * 111).copy_within(black_box(0..50), 61));
        }
    });
}

// expect: race write/write on 4 bytes of heap by 1/2
fn range_vector_add_f32() {
    let (_words, at) = buffer(1f32, 2000);
    let source = black_box(vec![2f32; 1000]);
    finish(|scope| {
        let source = &source;
        spawn!(
            scope,
            for (a, b) in part(at, 0, 1000).iter_mut().zip(source) {
                *a += b; // race (1)
            }
        );
        spawn!(
            scope,
            for (a, b) in part(at, 999, 1999).iter_mut().zip(source) {
                *a += b; // race (2)
            }
        );
    });
}

// expect: race write/write on 8 bytes of heap by 1/2
fn range_vector_add_f64() {
    let (_words, at) = buffer(1f64, 2000);
    let source = black_box(vec![2f64; 1000]);
    finish(|scope| {
        let source = &source;
        spawn!(
            scope,
            for (a, b) in part(at, 0, 999).iter_mut().zip(source) {
                *a += b; // race (1)
            }
        );
        spawn!(
            scope,
            for (a, b) in part(at, 998, 1998).iter_mut().zip(source) {
                *a += b; // race (2)
            }
        );
    });
}

// expect: race-free
fn range_vector_side_by_side() {
    let (_words, at) = buffer(1f32, 2001);
    finish(|scope| {
        for i in 0..3 {
            spawn!(
                scope,
                for a in part(at, i * 667, (i + 1) * 667) {
                    *a *= 1.5;
                }
            );
        }
    });
}

// expect: race-free
fn range_sort_halves() {
    let mut words: Vec<u64> = (0..1000).map(|i| i * 7919 % 1000).collect();
    let (left, right) = words.split_at_mut(500);
    finish(|scope| {
        spawn!(scope, left.sort_unstable());
        spawn!(scope, right.sort());
    });
    words.sort();
    assert_eq!(words[999], 999);
}

// expect: race
fn range_sort_overlapping() {
    let mut words: Vec<u64> = (0..1000).map(|i| i * 7919 % 1000).collect();
    let at = Pointer(words.as_mut_ptr());
    finish(|scope| {
        spawn!(scope, part(at, 0, 501).sort_unstable()); // race (1)
        spawn!(scope, part(at, 500, 1000).sort_unstable()); // race (2)
    });
}

// expect: race write/read on 64 bytes of heap by 1/2
fn range_clone() {
    let (words, at) = buffer(1u64, 100);
    finish(|scope| {
        spawn!(scope, part(at, 92, 100).copy_from_slice(&black_box([2; 8]))); // race (1)
        let words = &words;
        spawn!(scope, black_box(words.clone())); // race (2)
    });
}

// expect: race write/read on 5 bytes of heap by 1/2
fn range_strings() {
    let mut text = black_box("one two three".to_owned());
    let at = Pointer(text.as_mut_ptr());
    let wanted = black_box("three".to_owned());
    finish(|scope| {
        spawn!(scope, part(at, 8, 13).copy_from_slice(b"THREE")); // race (1)
        let (text, wanted) = (&text, &wanted);
        spawn!(scope, black_box(text[8..].to_ascii_lowercase() == **wanted)); // race (2)
    });
}

/// Called as C does.
// expect: race write/read on 20 bytes of heap by 1/2
fn range_c_comparison() {
    let (_bytes, at) = buffer(1u8, 100);
    finish(|scope| {
        spawn!(scope, part(at, 0, black_box(60)).fill(1)); // race (1)
        spawn!(scope,
            let same = black_box([1u8; 60]);
            // SAFETY: within both.
            black_box(unsafe { libc::memcmp(at.at().add(40).cast(), same.as_ptr().cast(), black_box(60)) }) // race (2)
        );
    });
}

/// A limit: what functions of the C library write is not seen, unless the compiler knows them for what they do.
// expect: race-free
fn range_without_hooks() {
    let (_bytes, at) = buffer(1u8, 100);
    type Fill = unsafe extern "C" fn(*mut libc::c_void, i32, usize) -> *mut libc::c_void;
    let fill: Fill = black_box(libc::memset);
    finish(|scope| {
        for _ in 0..2 {
            // SAFETY: within the buffer.
            spawn!(scope, unsafe { fill(at.at().cast(), 1, 60) });
        }
    });
}
