//! `cancel`, and `cancellation point`, if `OMP_CANCELLATION` is set.
//!
//! Who cancels a region, a loop, sections or a taskgroup goes to its end, and so does whoever comes to a cancellation point of it later, or to a barrier in the region; clang makes the jumps. Tasks of a
//! taskgroup that have not begun by then never do. What is left out depends on the schedule, and the verdict says so. Nothing is ordered by it: who sees that
//! something was cancelled knows no more than that.

use std::ffi::c_int;

use dagsan_rt::team::{self, Inside};

use crate::api;
use crate::barrier;
use crate::dispatch;
use crate::group::Group;
use crate::member::{self, Member, Team};
use crate::refuse::Ident;
use crate::single;
use crate::task::Task;

/// What clang calls the constructs.
const PARALLEL: i32 = 1;
const LOOP: i32 = 2;
const SECTIONS: i32 = 3;

/// The group that the running task is in.
fn group_of(member: &Member) -> *mut Group {
    // SAFETY: the running task lives.
    unsafe {
        let Task { group, inner_group, .. } = &*member.task;
        if inner_group.is_null() { *group } else { *inner_group }
    }
}

/// Is a task left out, as its group was cancelled before it has begun?
///
/// # Safety
///
/// It lives.
pub unsafe fn leaves_out(task: *const Task) -> bool {
    // SAFETY: the caller's promise; a group lives as long as its tasks have not ended.
    unsafe { (*task).group.as_ref().is_some_and(|group| group.cancelled) }
}

/// The thread goes to the end of the loop or the sections that it is in.
fn leave(member: &mut Member, region: &mut Team, inside: Option<&Inside>, frame: usize) {
    single::end_piece(member, inside, frame);
    dispatch::leave(member, region, inside);
}

/// `#pragma omp cancel`: is the construct cancelled?
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_cancel(_: *const Ident, _: i32, kind: i32) -> c_int {
    let frame = team::frame();
    if !api::cancellation() {
        return 0;
    }
    team::cancels();
    member::with(|member, region, inside| {
        match kind {
            PARALLEL => region.cancelled = PARALLEL,
            LOOP | SECTIONS => {
                if region.cancelled == 0 {
                    region.cancelled = kind;
                }
                leave(member, region, inside, frame);
            }
            // SAFETY: the group lives as long as its tasks have not ended.
            _ => match unsafe { group_of(member).as_mut() } {
                Some(group) => group.cancelled = true,
                None => return 0,
            },
        }
        1
    })
}

/// `#pragma omp cancellation point`: was it?
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_cancellationpoint(_: *const Ident, _: i32, kind: i32) -> c_int {
    let frame = team::frame();
    if !api::cancellation() {
        return 0;
    }
    member::with(|member, region, inside| {
        let cancelled = match kind {
            PARALLEL | LOOP | SECTIONS => region.cancelled == kind,
            // SAFETY: the group lives as long as its tasks have not ended.
            _ => unsafe { group_of(member).as_ref().is_some_and(|group| group.cancelled) },
        };
        if cancelled && matches!(kind, LOOP | SECTIONS) {
            leave(member, region, inside, frame);
        }
        c_int::from(cancelled)
    })
}

/// A barrier in a region in which something may be cancelled: was it?
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_cancel_barrier(_: *const Ident, _: i32) -> c_int {
    let frame = team::frame();
    barrier::barrier(frame);
    let cancelled = member::with(|_, region, _| region.cancelled);
    if cancelled == 0 {
        return 0;
    }
    // All have looked.
    barrier::barrier(frame);
    member::with(|_, region, _| region.cancelled = 0);
    if cancelled != PARALLEL {
        // Nobody cancels the next one before all have come by.
        barrier::barrier(frame);
    }
    1
}
