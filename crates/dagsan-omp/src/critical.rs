//! Critical sections, and reductions at the end of regions and loops.
//!
//! A critical section is a lock with a name. A reduction combines each thread's own copy with the original, one thread after the other in an order that
//! nobody knows; it is told as mutual exclusion that orders nothing.

use std::ffi::{c_int, c_void};

use dagsan_rt::team;

use crate::barrier;
use crate::lock::{self, Word};
use crate::member;
use crate::refuse::Ident;

/// `#pragma omp critical`.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_critical(_: *const Ident, _: i32, name: *mut Word) {
    lock::take(name);
}

/// The same with a hint.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_critical_with_hint(_: *const Ident, _: i32, name: *mut Word, _: u32) {
    lock::take(name);
}

/// Its end.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_end_critical(_: *const Ident, _: i32, name: *mut Word) {
    lock::give_back(name);
}

/// The program combines its copy with the original itself.
const COMBINE: c_int = 1;

fn begin(name: *mut Word, frame: usize) {
    if let Some(inside) = team::enter() {
        team::exclude(&inside, number(name), frame);
    }
}

fn end(name: *mut Word, frame: usize) {
    if let Some(inside) = team::enter() {
        team::include(&inside, number(name), frame);
    }
}

/// A number for the lock of a reduction.
fn number(name: *mut Word) -> u32 {
    (name.addr() >> 2) as u32
}

/// A reduction, which ends with a barrier.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_reduce(
    _: *const Ident,
    _: i32,
    _: i32,
    _: usize,
    _: *mut c_void,
    _: *mut c_void,
    name: *mut Word,
) -> c_int {
    begin(name, team::frame());
    COMBINE
}

/// Its end.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_end_reduce(_: *const Ident, _: i32, name: *mut Word) {
    let frame = team::frame();
    end(name, frame);
    barrier::barrier(frame);
}

/// A reduction without a barrier.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_reduce_nowait(
    _: *const Ident,
    _: i32,
    _: i32,
    _: usize,
    _: *mut c_void,
    _: *mut c_void,
    name: *mut Word,
) -> c_int {
    begin(name, team::frame());
    COMBINE
}

/// Its end.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_end_reduce_nowait(_: *const Ident, _: i32, name: *mut Word) {
    end(name, team::frame());
}

/// `#pragma omp flush`: a fence, of release and acquire order; clang does not say which of them was written. Whoever spins sees what others have done.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_flush(_: *const Ident) {
    let frame = team::frame();
    let size = member::with(|_, region, _| region.size);
    let Some(inside) = team::enter() else { return };
    team::fence(&inside, frame);
    if size > 1 {
        team::yield_now(&inside);
    }
}
