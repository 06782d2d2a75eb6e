//! Functions for `modules`: loops, calls and values that are compiled in a module of their own, and inlined into others late.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dagsan_task::Scope;

use crate::shared::{Pointer, Shared, at};

pub fn up(from: usize, to: usize, mut body: impl FnMut(usize)) {
    for index in from..to {
        body(index);
    }
}

pub fn down(from: usize, to: usize, mut body: impl FnMut(usize)) {
    for index in (from..to).rev() {
        body(index);
    }
}

pub fn stepped(from: usize, to: usize, step: usize, mut body: impl FnMut(usize)) {
    for index in (from..to).step_by(step) {
        body(index);
    }
}

/// Until the body has enough.
pub fn until(mut body: impl FnMut(usize) -> bool) {
    let mut index = 0;
    while body(index) {
        index += 1;
    }
}

pub fn rows(rows: usize, columns: usize, width: usize, mut body: impl FnMut(usize)) {
    for row in 0..rows {
        for column in 0..columns {
            body(row * width + column);
        }
    }
}

/// Half by half.
pub fn halves(from: usize, to: usize, body: &mut impl FnMut(usize)) {
    if to - from == 1 {
        return body(from);
    }
    let middle = from + (to - from) / 2;
    halves(from, middle, body);
    halves(middle, to, body);
}

pub fn by_object(from: usize, to: usize, body: &mut dyn FnMut(usize)) {
    (from..to).for_each(body);
}

/// With an atomic operation after each, which may end the strand.
pub fn up_with_borders(from: usize, to: usize, turns: &AtomicUsize, mut body: impl FnMut(usize)) {
    for index in from..to {
        body(index);
        turns.fetch_add(1, Ordering::AcqRel);
    }
}

/// With a task for each.
pub fn up_with_tasks(
    scope: &Scope,
    from: usize,
    to: usize,
    body: impl Fn(usize) + Send + Sync + Clone + 'static,
) {
    for index in from..to {
        let body = body.clone();
        scope.spawn(move |_| body(index));
    }
}

pub fn under_a_lock(lock: &Mutex<()>, mut body: impl FnMut()) {
    let _guard = lock.lock().unwrap();
    body();
}

/// Only reads, and stays a call.
#[inline(never)]
pub fn sum(from: Pointer<u64>, count: usize) -> u64 {
    // SAFETY: points keep to their buffers.
    (0..count).fold(0, |sum, index| sum ^ unsafe { *at(from, index).at() }) // race (1) of far_function, far_sum_first, far_sum_in_a_line, far_sum_last, far_sums
}

/// Calls what only reads.
#[inline(never)]
pub fn sum_of_two(one: Pointer<u64>, other: Pointer<u64>, count: usize) -> u64 {
    sum(one, count) ^ sum(other, count)
}

pub fn copy(from: Pointer<u8>, to: Pointer<u8>, count: usize) {
    // SAFETY: points keep to their buffers, which do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from.at(), to.at(), count) }; // race (1) of far_copy_from, far_copy_to
}

pub fn equal(one: Pointer<u8>, other: Pointer<u8>, count: usize) -> bool {
    // SAFETY: points keep to their buffers.
    unsafe {
        std::slice::from_raw_parts(one.at(), count) == std::slice::from_raw_parts(other.at(), count) // race (1) of far_comparison
    }
}

/// A body as in programs that simulate them.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Body {
    pub position: [f64; 3],
    pub velocity: [f64; 3],
    pub mass: f64,
}

/// What pulls at a place. Velocities are not read.
pub fn pull(place: [f64; 3], bodies: Pointer<Body>, count: usize) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for index in 0..count {
        // SAFETY: points keep to their buffers.
        let other = unsafe { &*at(bodies, index).at() };
        let d: [f64; 3] = std::array::from_fn(|axis| other.position[axis] - place[axis]); // race (1) of far_body_position
        let square = d.iter().map(|d| d * d).sum::<f64>() + 1e-6;
        let factor = other.mass / (square * square.sqrt()); // race (1) of far_body_mass
        sum = std::array::from_fn(|axis| sum[axis] + d[axis] * factor);
    }
    sum
}

/// The best of three neighbours and 0, along a row: reads `above` from 0 to `count`, and writes `here` from 0 to `count - 1`.
pub fn align(above: Pointer<i32>, here: Pointer<i32>, count: usize) -> i32 {
    // SAFETY: points keep to their buffers, which do not overlap.
    let (above, here) = unsafe {
        (std::slice::from_raw_parts(above.at(), count + 1), std::slice::from_raw_parts_mut(here.at(), count))
    };
    let (mut left, mut best) = (0, 0);
    for (cell, above) in here.iter_mut().zip(above.windows(2)) {
        left = (above[0] + 2).max(above[1] - 1).max(left - 1).max(0); // race (1) of far_align_above
        *cell = left; // race (1) of far_align_here
        best = best.max(left);
    }
    best
}

/// Three bytes by value.
pub fn exchange(place: Pointer<[u8; 3]>, value: [u8; 3]) -> [u8; 3] {
    // SAFETY: points keep to their buffers.
    unsafe { std::mem::replace(&mut *place.at(), value) } // race (1) of far_three_bytes
}

/// Writes when it is dropped.
pub struct Writes(pub Pointer<u64>);

impl Drop for Writes {
    fn drop(&mut self) {
        // SAFETY: points keep to their buffers.
        unsafe { *self.0.at() += 1 }; // race (1) of far_drop
    }
}

/// Reads with each step.
pub struct Reads {
    pub next: Pointer<u64>,
    pub left: usize,
}

impl Iterator for Reads {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: points keep to their buffers.
        let value = unsafe { *self.next.at() }; // race (1) of far_iterator
        self.next = at(self.next, 1);
        Some(value)
    }
}

pub static COUNT: Shared<u64> = Shared::new(0);

pub fn count() {
    // SAFETY: the tasks of a point run on one thread.
    unsafe { *COUNT.at() += 1 }; // race (1), (2) of far_static
}
