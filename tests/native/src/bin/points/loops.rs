//! Loops whose marks go to their ends as ranges: up and down, with steps, left early, inside of each other. Each has a
//! neighbour that touches the bytes just outside.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, at, buffer, load, spawn, store};

pub const POINTS: &[Point] = points![
    loop_up_first,
    loop_up_last,
    loop_up_apart,
    loop_down_last,
    loop_down_apart,
    loop_of_no_iteration,
    loop_left_before,
    loop_left_before_apart,
    loop_left_after,
    loop_left_after_apart,
    loop_left_by_a_panic,
    loop_left_by_a_panic_apart,
    loop_stride,
    loop_stride_between,
    loop_column,
    loop_column_between,
    loop_rows,
    loop_rows_between,
    loop_triangle,
    loop_triangle_apart,
    loop_stands_still,
    loop_to_the_end_of_a_line,
    loop_to_the_end_of_a_line_apart,
    loop_with_a_number_that_wraps,
    loop_with_a_number_that_wraps_apart,
    loop_with_a_condition,
    loop_with_a_condition_apart,
    loop_with_a_task,
];

/// Fills the elements from one index up to another.
#[collapse_debuginfo(yes)]
macro_rules! fill {
    ($buffer:expr, $range:expr) => {
        for index in $range {
            store!(at($buffer, index), 7)
        }
    };
}

/// A number that the compiler does not know.
fn n(number: usize) -> usize {
    black_box(number)
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_up_first() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        spawn!(scope, fill!(first, n(20)..n(60))); // race (1)
        spawn!(scope, load!(at(first, 20))); // race (2)
    });
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_up_last() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        spawn!(scope, fill!(first, n(20)..n(60))); // race (1)
        spawn!(scope, load!(at(first, 59))); // race (2)
    });
}

// expect: race-free
fn loop_up_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        spawn!(scope, fill!(first, n(20)..n(60)));
        spawn!(scope, store!(at(first, 19), 1));
        spawn!(scope, store!(at(first, 60), 1));
    });
}

// expect: race write/write on 4 bytes of heap by 1/2
fn loop_down_last() {
    let (_numbers, first) = buffer(0u32, 100);
    finish(|scope| {
        spawn!(scope, fill!(first, (n(20)..n(60)).rev())); // race (1)
        spawn!(scope, store!(at(first, 20), 1)); // race (2)
    });
}

// expect: race-free
fn loop_down_apart() {
    let (_numbers, first) = buffer(0u32, 100);
    finish(|scope| {
        spawn!(scope, fill!(first, (n(20)..n(60)).rev()));
        spawn!(scope, store!(at(first, 19), 1));
        spawn!(scope, store!(at(first, 60), 1));
    });
}

// expect: race-free
fn loop_of_no_iteration() {
    let (_numbers, first) = buffer(0u64, 10);
    finish(|scope| {
        spawn!(scope, fill!(first, n(5)..n(5)));
        spawn!(scope, fill!(first, n(0)..n(10)));
    });
}

/// Writes until a number is found; the one that is found is written as well if `with` is set.
#[collapse_debuginfo(yes)]
macro_rules! until {
    ($buffer:expr, $end:expr, $found:expr, $with:literal) => {{
        let mut index = n(0);
        loop {
            if !$with && index == $found {
                break;
            }
            store!(at($buffer, index), 7);
            if $with && index == $found {
                break;
            }
            index += 1;
            if index == $end {
                break;
            }
        }
    }};
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_left_before() {
    let (_numbers, first) = buffer(0u64, 100);
    let (end, found) = (n(100), n(40));
    finish(|scope| {
        spawn!(scope, until!(first, end, found, false)); // race (1)
        spawn!(scope, load!(at(first, 39))); // race (2)
    });
}

// expect: race-free
fn loop_left_before_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    let (end, found) = (n(100), n(40));
    finish(|scope| {
        spawn!(scope, until!(first, end, found, false));
        spawn!(scope, load!(at(first, 40)));
    });
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_left_after() {
    let (_numbers, first) = buffer(0u64, 100);
    let (end, found) = (n(100), n(40));
    finish(|scope| {
        spawn!(scope, until!(first, end, found, true)); // race (1)
        spawn!(scope, load!(at(first, 40))); // race (2)
    });
}

// expect: race-free
fn loop_left_after_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    let (end, found) = (n(100), n(40));
    finish(|scope| {
        spawn!(scope, until!(first, end, found, true));
        spawn!(scope, load!(at(first, 41)));
    });
}

/// A slice at the start of a buffer.
fn slice(first: Pointer<u64>, length: usize) -> &'static mut [u64] {
    // SAFETY: points keep to their buffers, which are longer, and no other thread uses them.
    unsafe { std::slice::from_raw_parts_mut(first.at(), length) }
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_left_by_a_panic() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        scope.spawn(move |_| {
            let numbers = slice(first, n(30));
            let body = AssertUnwindSafe(|| {
                for index in 0..n(31) {
                    numbers[index] = 7; // race (1)
                }
            });
            assert!(catch_unwind(body).is_err());
        });
        spawn!(scope, load!(at(first, 29))); // race (2)
    });
}

// expect: race-free
fn loop_left_by_a_panic_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        scope.spawn(move |_| {
            let numbers = slice(first, n(30));
            let body = AssertUnwindSafe(|| {
                for index in 0..n(31) {
                    numbers[index] = 7;
                }
            });
            assert!(catch_unwind(body).is_err());
        });
        spawn!(scope, load!(at(first, 30)));
    });
}

// expect: race write/read on 4 bytes of heap by 1/2
fn loop_stride() {
    let (_numbers, first) = buffer(0u32, 100);
    finish(|scope| {
        spawn!(scope, fill!(first, (n(1)..n(80)).step_by(3))); // race (1)
        spawn!(scope, load!(at(first, 43))); // race (2)
    });
}

// expect: race-free
fn loop_stride_between() {
    let (_numbers, first) = buffer(0u32, 100);
    finish(|scope| {
        spawn!(scope, fill!(first, (n(1)..n(80)).step_by(3)));
        spawn!(scope, fill!(first, (n(0)..n(80)).step_by(3)));
        spawn!(scope, fill!(first, (n(2)..n(80)).step_by(3)));
    });
}

/// Fills a column of a matrix whose rows have `width` elements.
#[collapse_debuginfo(yes)]
macro_rules! column {
    ($buffer:expr, $width:expr, $column:expr) => {
        for row in 0..n(9) {
            store!(at($buffer, row * $width + $column), 7)
        }
    };
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_column() {
    let (_numbers, first) = buffer(0u64, 100);
    let width = n(11);
    finish(|scope| {
        spawn!(scope, column!(first, width, 4)); // race (1)
        spawn!(scope, load!(at(first, 8 * 11 + 4))); // race (2)
    });
}

// expect: race-free
fn loop_column_between() {
    let (_numbers, first) = buffer(0u64, 100);
    let width = n(11);
    finish(|scope| {
        spawn!(scope, column!(first, width, 4));
        spawn!(scope, column!(first, width, 3));
        spawn!(scope, column!(first, width, 5));
        spawn!(scope, load!(at(first, 9 * 11 + 4 - 11 + 10)));
    });
}

/// Fills a part of each row of a matrix.
#[collapse_debuginfo(yes)]
macro_rules! rows {
    ($buffer:expr, $width:expr, $columns:expr) => {
        for row in 0..n(9) {
            for column in 0..$columns {
                store!(at($buffer, row * $width + column), 7)
            }
        }
    };
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_rows() {
    let (_numbers, first) = buffer(0u64, 100);
    let (width, columns) = (n(11), n(7));
    finish(|scope| {
        spawn!(scope, rows!(first, width, columns)); // race (1)
        spawn!(scope, load!(at(first, 8 * 11 + 6))); // race (2)
    });
}

// expect: race-free
fn loop_rows_between() {
    let (_numbers, first) = buffer(0u64, 100);
    let (width, columns) = (n(11), n(7));
    finish(|scope| {
        spawn!(scope, rows!(first, width, columns));
        spawn!(scope, load!(at(first, 10)));
        spawn!(scope, load!(at(first, 8 * 11 + 7)));
    });
}

/// Fills a triangle of a matrix.
#[collapse_debuginfo(yes)]
macro_rules! triangle {
    ($buffer:expr) => {
        for row in 0..n(9) {
            for column in 0..row {
                store!(at($buffer, row * 10 + column), 7)
            }
        }
    };
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_triangle() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        spawn!(scope, triangle!(first)); // race (1)
        spawn!(scope, load!(at(first, 87))); // race (2)
    });
}

// expect: race-free
fn loop_triangle_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        spawn!(scope, triangle!(first));
        spawn!(scope, load!(at(first, 0)));
        spawn!(scope, load!(at(first, 44)));
        spawn!(scope, load!(at(first, 88)));
    });
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_stands_still() {
    let (_numbers, first) = buffer(0u64, 10);
    finish(|scope| {
        scope.spawn(move |_| {
            for _ in 0..n(3) {
                store!(first, black_box(1)); // race (1)
            }
            for _ in 0..n(0) {
                store!(at(first, 1), black_box(1));
            }
        });
        spawn!(scope, load!(first)); // race (2)
        spawn!(scope, load!(at(first, 1)));
    });
}

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Fills some lines, and then more of them, up to the end of one: most of it is known then.
#[collapse_debuginfo(yes)]
macro_rules! twice {
    ($buffer:expr) => {
        for end in [n(18), n(24)] {
            for index in 0..end {
                store!(at($buffer, index), 7)
            }
        }
    };
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_to_the_end_of_a_line() {
    let (lines, line) = buffer(Line([0; 8]), 4);
    let first = Pointer(line.at().cast::<u64>());
    finish(|scope| {
        spawn!(scope, twice!(first)); // race (1)
        spawn!(scope, load!(at(first, 23))); // race (2)
    });
    black_box(lines[0].0[0]);
}

// expect: race-free
fn loop_to_the_end_of_a_line_apart() {
    let (lines, line) = buffer(Line([0; 8]), 4);
    let first = Pointer(line.at().cast::<u64>());
    finish(|scope| {
        spawn!(scope, twice!(first));
        spawn!(scope, load!(at(first, 24)));
    });
    black_box(lines[0].0[0]);
}

/// Writes at indices that go round.
#[collapse_debuginfo(yes)]
macro_rules! wrapping {
    ($buffer:expr) => {{
        let mut index = black_box(240u8);
        for _ in 0..n(4) {
            store!(at($buffer, usize::from(index)), 7);
            index = index.wrapping_add(10);
        }
    }};
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_with_a_number_that_wraps() {
    let (_numbers, first) = buffer(0u64, 300);
    finish(|scope| {
        spawn!(scope, wrapping!(first)); // race (1)
        spawn!(scope, load!(at(first, 14))); // race (2)
    });
}

// expect: race-free
fn loop_with_a_number_that_wraps_apart() {
    let (_numbers, first) = buffer(0u64, 300);
    finish(|scope| {
        spawn!(scope, wrapping!(first));
        spawn!(scope, load!(at(first, 260)));
        spawn!(scope, load!(at(first, 270)));
    });
}

/// Writes every element whose number is even.
#[collapse_debuginfo(yes)]
macro_rules! even {
    ($numbers:expr, $buffer:expr) => {
        for index in 0..n(20) {
            if load!(at($numbers, index)) % 2 == 0 {
                store!(at($buffer, index), 7)
            }
        }
    };
}

// expect: race write/read on 8 bytes of heap by 1/2
fn loop_with_a_condition() {
    let (mut numbers, number) = buffer(1u64, 20);
    numbers[13] = 2;
    let (_others, first) = buffer(0u64, 20);
    finish(|scope| {
        spawn!(scope, even!(number, first)); // race (1)
        spawn!(scope, load!(at(first, 13))); // race (2)
    });
}

// expect: race-free
fn loop_with_a_condition_apart() {
    let (mut numbers, number) = buffer(1u64, 20);
    numbers[13] = 2;
    let (_others, first) = buffer(0u64, 20);
    finish(|scope| {
        spawn!(scope, even!(number, first));
        spawn!(scope, load!(at(first, 12)));
        spawn!(scope, load!(at(first, 14)));
    });
}

/// What the loop has written before it starts a task is before the task, and what comes after is parallel to it.
// expect: race write/write on 8 bytes of heap by 1/0
fn loop_with_a_task() {
    let (_numbers, first) = buffer(0u64, 4);
    finish(|scope| {
        for index in 0..n(4) {
            store!(at(first, index), 7); // race (2)
            if index == 2 {
                spawn!(scope, store!(at(first, 1), 8); store!(at(first, 3), 8)); // race (1)
            }
        }
    });
}
