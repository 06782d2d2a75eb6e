//! Loops and accesses whose parts are in different modules (`far`): those of optimised programs come together after each has been optimised once, and
//! marks wait for that. Each has a neighbour that touches the bytes just outside.

// tidy: long because each of the ways by which code comes from another module has its points side by side.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use dagsan_task::finish;

use crate::Point;
use crate::far::{self, Body};
use crate::shared::{Pointer, at, buffer, load, spawn, store};

pub const POINTS: &[Point] = points![
    far_up_first,
    far_up_last,
    far_up_apart,
    far_down_last,
    far_down_apart,
    far_steps,
    far_steps_between,
    far_until,
    far_until_apart,
    far_rows,
    far_rows_between,
    far_halves,
    far_halves_apart,
    far_object,
    far_object_apart,
    far_function,
    far_function_apart,
    far_borders_first,
    far_borders_last,
    far_borders_apart,
    far_panic,
    far_panic_apart,
    far_tasks,
    far_tasks_apart,
    far_lock,
    far_lock_beside,
    far_sum_first,
    far_sum_last,
    far_sum_apart,
    far_sum_in_a_line,
    far_sum_in_a_line_before,
    far_sum_in_a_line_behind,
    far_sum_in_a_line_apart,
    far_sums,
    far_sums_apart,
    far_copy_from,
    far_copy_to,
    far_copy_apart,
    far_comparison,
    far_comparison_apart,
    far_body_mass,
    far_body_position,
    far_body_velocity,
    far_body_behind,
    far_align_above,
    far_align_here,
    far_align_apart,
    far_three_bytes,
    far_three_bytes_apart,
    far_drop,
    far_drop_apart,
    far_iterator,
    far_iterator_apart,
    far_static,
];

/// A number that the compiler does not know.
fn n(number: usize) -> usize {
    black_box(number)
}

/// Tasks that are parallel: the second one, and the third one if there is one, beside the first one.
macro_rules! parallel {
    ($($body:expr;)*) => {
        finish(|scope| {
            $(spawn!(scope, $body);)*
        })
    };
}

/// Numbers whose first one is at the start of a line.
fn lines() -> (Vec<[u64; 8]>, Pointer<u64>) {
    let (lines, first) = buffer([0u64; 8], 4);
    let start = first.at().cast::<u64>();
    (lines, Pointer(start.map_addr(|address| address.next_multiple_of(64))))
}

fn mass(bodies: Pointer<Body>, index: usize) -> Pointer<f64> {
    axis(bodies, index, 6)
}

/// A number of a body: those of the position, of the velocity, the mass.
fn axis(bodies: Pointer<Body>, index: usize, number: usize) -> Pointer<f64> {
    Pointer(at(bodies, index).at().cast::<f64>().wrapping_add(number))
}

// expect: race
fn far_up_first() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::up(n(20), n(60), |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 20)); // race (2)
    }
}

// expect: race
fn far_up_last() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::up(n(20), n(60), |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 59)); // race (2)
    }
}

// expect: race-free
fn far_up_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::up(n(20), n(60), |index| store!(at(first, index), 7));
        store!(at(first, 19), 1);
        store!(at(first, 60), 1);
    }
}

// expect: race
fn far_down_last() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::down(n(20), n(60), |index| store!(at(first, index), 7)); // race (1)
        store!(at(first, 20), 1); // race (2)
    }
}

// expect: race-free
fn far_down_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::down(n(20), n(60), |index| store!(at(first, index), 7));
        store!(at(first, 19), 1);
        store!(at(first, 60), 1);
    }
}

// expect: race
fn far_steps() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::stepped(n(20), n(60), n(3), |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 59)); // race (2)
    }
}

// expect: race-free
fn far_steps_between() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::stepped(n(20), n(60), n(3), |index| store!(at(first, index), 7));
        load!(at(first, 58));
        load!(at(first, 21));
        load!(at(first, 62));
    }
}

// expect: race
fn far_until() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::until(|index| {
            store!(at(first, index), 7); // race (1)
            index < black_box(40)
        });
        load!(at(first, 40)); // race (2)
    }
}

// expect: race-free
fn far_until_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::until(|index| {
            store!(at(first, index), 7);
            index < black_box(40)
        });
        load!(at(first, 41));
    }
}

// expect: race
fn far_rows() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::rows(n(5), n(4), n(10), |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 43)); // race (2)
    }
}

// expect: race-free
fn far_rows_between() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::rows(n(5), n(4), n(10), |index| store!(at(first, index), 7));
        load!(at(first, 44));
        load!(at(first, 39));
        load!(at(first, 50));
    }
}

// expect: race
fn far_halves() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::halves(n(20), n(33), &mut |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 32)); // race (2)
    }
}

// expect: race-free
fn far_halves_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::halves(n(20), n(33), &mut |index| store!(at(first, index), 7));
        load!(at(first, 33));
        load!(at(first, 19));
    }
}

// expect: race
fn far_object() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::by_object(n(20), n(60), &mut |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 59)); // race (2)
    }
}

// expect: race-free
fn far_object_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::by_object(n(20), n(60), &mut |index| store!(at(first, index), 7));
        load!(at(first, 60));
    }
}

// expect: race
fn far_function() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        {
            let sum: fn(Pointer<u64>, usize) -> u64 = black_box(far::sum);
            sum(first, n(8))
        };
        store!(at(first, 7), 1); // race (2)
    }
}

// expect: race-free
fn far_function_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        {
            let sum: fn(Pointer<u64>, usize) -> u64 = black_box(far::sum);
            sum(first, n(8))
        };
        store!(at(first, 8), 1);
    }
}

// expect: race
fn far_borders_first() {
    let (_numbers, first) = buffer(0u64, 100);
    let turns = &AtomicUsize::new(0);
    parallel! {
        far::up_with_borders(n(20), n(60), turns, |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 20)); // race (2)
    }
}

// expect: race
fn far_borders_last() {
    let (_numbers, first) = buffer(0u64, 100);
    let turns = &AtomicUsize::new(0);
    parallel! {
        far::up_with_borders(n(20), n(60), turns, |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 59)); // race (2)
    }
}

// expect: race-free
fn far_borders_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    let turns = &AtomicUsize::new(0);
    parallel! {
        far::up_with_borders(n(20), n(60), turns, |index| store!(at(first, index), 7));
        load!(at(first, 60));
        load!(at(first, 19));
    }
}

// expect: race
fn far_panic() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        catch_unwind(AssertUnwindSafe(|| {
            far::up(n(20), n(60), |index| {
                store!(at(first, index), 7); // race (1)
                assert!(index < black_box(40), "an end");
            });
        }));
        load!(at(first, 40)); // race (2)
    }
}

// expect: race-free
fn far_panic_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        catch_unwind(AssertUnwindSafe(|| {
            far::up(n(20), n(60), |index| {
                store!(at(first, index), 7);
                assert!(index < black_box(40), "an end");
            });
        }));
        load!(at(first, 41));
    }
}

// expect: race
fn far_tasks() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        far::up_with_tasks(scope, n(20), n(30), move |index| store!(at(first, index), 7)); // race (1)
        load!(at(first, 29)); // race (2)
    });
}

// expect: race-free
fn far_tasks_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    finish(|scope| {
        far::up_with_tasks(scope, n(20), n(30), move |index| store!(at(first, index), 7));
        load!(at(first, 30));
    });
}

// expect: race-free, up to locks
fn far_lock() {
    let (_numbers, first) = buffer(0u64, 100);
    let lock = &Mutex::new(());
    parallel! {
        far::under_a_lock(lock, || far::up(n(20), n(30), |index| store!(at(first, index), 7)));
        far::under_a_lock(lock, || far::up(n(20), n(30), |index| store!(at(first, index), 7)));
    }
}

// expect: race
fn far_lock_beside() {
    let (_numbers, first) = buffer(0u64, 100);
    let lock = &Mutex::new(());
    parallel! {
        far::under_a_lock(lock, || far::up(n(20), n(30), |index| store!(at(first, index), 7))); // race (1)
        load!(at(first, 29)); // race (2)
    }
}

// expect: race
fn far_sum_first() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::sum(at(first, 20), n(8));
        store!(at(first, 20), 1); // race (2)
    }
}

// expect: race
fn far_sum_last() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::sum(at(first, 20), n(8));
        store!(at(first, 27), 1); // race (2)
    }
}

// expect: race-free
fn far_sum_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::sum(at(first, 20), n(8));
        store!(at(first, 19), 1);
        store!(at(first, 28), 1);
    }
}

// expect: race
fn far_sum_in_a_line() {
    let (_lines, first) = lines();
    parallel! {
        {
            store!(at(first, 8), 1);
            let read = far::sum(at(first, 9), n(3));
            store!(at(first, 12), read);
        };
        store!(at(first, 11), 1); // race (2)
    }
}

// expect: race
fn far_sum_in_a_line_before() {
    let (_lines, first) = lines();
    parallel! {
        {
            store!(at(first, 8), 1); // race (1)
            let read = far::sum(at(first, 9), n(3));
            store!(at(first, 12), read);
        };
        load!(at(first, 8)); // race (2)
    }
}

// expect: race
fn far_sum_in_a_line_behind() {
    let (_lines, first) = lines();
    parallel! {
        {
            store!(at(first, 8), 1);
            let read = far::sum(at(first, 9), n(3));
            store!(at(first, 12), read); // race (1)
        };
        load!(at(first, 12)); // race (2)
    }
}

// expect: race-free
fn far_sum_in_a_line_apart() {
    let (_lines, first) = lines();
    parallel! {
        {
            store!(at(first, 8), 1);
            let read = far::sum(at(first, 9), n(3));
            store!(at(first, 12), read);
        };
        store!(at(first, 7), 1);
        store!(at(first, 13), 1);
        load!(at(first, 9));
    }
}

// expect: race
fn far_sums() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::sum_of_two(first, at(first, 50), n(8));
        store!(at(first, 57), 1); // race (2)
    }
}

// expect: race-free
fn far_sums_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        far::sum_of_two(first, at(first, 50), n(8));
        store!(at(first, 8), 1);
        store!(at(first, 58), 1);
        store!(at(first, 49), 1);
    }
}

// expect: race
fn far_copy_from() {
    let (_bytes, first) = buffer(0u8, 300);
    parallel! {
        far::copy(first, at(first, 150), n(77));
        store!(at(first, 76), 1); // race (2)
    }
}

// expect: race
fn far_copy_to() {
    let (_bytes, first) = buffer(0u8, 300);
    parallel! {
        far::copy(first, at(first, 150), n(77));
        load!(at(first, 226)); // race (2)
    }
}

// expect: race-free
fn far_copy_apart() {
    let (_bytes, first) = buffer(0u8, 300);
    parallel! {
        far::copy(first, at(first, 150), n(77));
        store!(at(first, 77), 1);
        store!(at(first, 149), 1);
        store!(at(first, 227), 1);
    }
}

// expect: race
fn far_comparison() {
    let (_bytes, first) = buffer(0u8, 300);
    parallel! {
        black_box(far::equal(first, at(first, 150), n(77)));
        store!(at(first, 226), 0); // race (2)
    }
}

// expect: race-free
fn far_comparison_apart() {
    let (_bytes, first) = buffer(0u8, 300);
    parallel! {
        black_box(far::equal(first, at(first, 150), n(77)));
        store!(at(first, 227), 0);
        store!(at(first, 77), 0);
    }
}

// expect: race
fn far_body_mass() {
    let (_bodies, first) = buffer(Body::default(), 9);
    parallel! {
        black_box(far::pull(black_box([1.0; 3]), first, n(8)));
        store!(mass(first, 7), 1.0); // race (2)
    }
}

// expect: race
fn far_body_position() {
    let (_bodies, first) = buffer(Body::default(), 9);
    parallel! {
        black_box(far::pull(black_box([1.0; 3]), first, n(8)));
        store!(axis(first, 7, 2), 1.0); // race (2)
    }
}

// expect: race-free
fn far_body_velocity() {
    let (_bodies, first) = buffer(Body::default(), 9);
    parallel! {
        black_box(far::pull(black_box([1.0; 3]), first, n(8)));
        store!(axis(first, 7, 3), 1.0);
        store!(axis(first, 0, 5), 1.0);
    }
}

// expect: race-free
fn far_body_behind() {
    let (_bodies, first) = buffer(Body::default(), 9);
    parallel! {
        black_box(far::pull(black_box([1.0; 3]), first, n(8)));
        store!(axis(first, 8, 0), 1.0);
    }
}

// expect: race
fn far_align_above() {
    let (_table, first) = buffer(0i32, 400);
    parallel! {
        black_box(far::align(first, at(first, 200), n(99)));
        store!(at(first, 99), 1); // race (2)
    }
}

// expect: race
fn far_align_here() {
    let (_table, first) = buffer(0i32, 400);
    parallel! {
        black_box(far::align(first, at(first, 200), n(99)));
        load!(at(first, 298)); // race (2)
    }
}

// expect: race-free
fn far_align_apart() {
    let (_table, first) = buffer(0i32, 400);
    parallel! {
        black_box(far::align(first, at(first, 200), n(99)));
        store!(at(first, 100), 1);
        store!(at(first, 199), 1);
        store!(at(first, 299), 1);
        load!(at(first, 0));
    }
}

// expect: race
fn far_three_bytes() {
    let (_three, first) = buffer([0u8; 3], 5);
    parallel! {
        black_box(far::exchange(at(first, 2), black_box([1, 2, 3])));
        load!(Pointer(first.at().cast::<u8>().wrapping_add(8))); // race (2)
    }
}

// expect: race-free
fn far_three_bytes_apart() {
    let (_three, first) = buffer([0u8; 3], 5);
    parallel! {
        black_box(far::exchange(at(first, 2), black_box([1, 2, 3])));
        store!(at(first, 1), [1; 3]);
        store!(at(first, 3), [1; 3]);
    }
}

// expect: race
fn far_drop() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        drop(black_box(far::Writes(at(first, 20))));
        load!(at(first, 20)); // race (2)
    }
}

// expect: race-free
fn far_drop_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        drop(black_box(far::Writes(at(first, 20))));
        load!(at(first, 21));
    }
}

// expect: race
fn far_iterator() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        black_box(far::Reads { next: at(first, 20), left: n(8) }.sum::<u64>());
        store!(at(first, 27), 1); // race (2)
    }
}

// expect: race-free
fn far_iterator_apart() {
    let (_numbers, first) = buffer(0u64, 100);
    parallel! {
        black_box(far::Reads { next: at(first, 20), left: n(8) }.sum::<u64>());
        store!(at(first, 28), 1);
        store!(at(first, 19), 1);
    }
}

// expect: race
fn far_static() {
    parallel! {
        far::count();
        far::count();
    }
}
