//! `taskloop`, and reductions over tasks.
//!
//! A loop of tasks has a task for each grain, or, if the program does not say how large grains are, for each iteration, up to a number of tasks.
//!
//! Each task that takes part in a reduction has a copy of its own: which tasks share one depends on threads, and a program cannot rely on it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;

use dagsan_rt::team;

use crate::group::{self, Group, Reduction};
use crate::member;
use crate::refuse::Ident;
use crate::run;
use crate::static_loop::trips;
use crate::task::{self, Known, Task};

/// The part of a task of a loop that the runtime fills in.
#[repr(C)]
struct Bounds {
    known: Known,
    lower: u64,
    upper: u64,
    step: i64,
    is_last: i32,
    reductions: *mut Group,
}

/// So many tasks at most, if the program does not say.
const MOST: u64 = 1024;

const GRAINSIZE: i32 = 1;
const NUM_TASKS: i32 = 2;

type Duplicate = unsafe extern "C" fn(*mut Known, *mut Known, i32);

/// `#pragma omp taskloop`.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C-unwind" fn __kmpc_taskloop(
    _: *const Ident,
    _: i32,
    known: *mut Known,
    deferred: i32,
    lower: *const u64,
    upper: *const u64,
    step: i64,
    nogroup: i32,
    schedule: i32,
    grain: u64,
    duplicate: Option<Duplicate>,
) {
    let frame = team::frame();
    // SAFETY: the caller's promise.
    unsafe {
        let (low, high) = (*lower, *upper);
        let trips = trips(low.cast_signed().into(), high.cast_signed().into(), step.into());
        let tasks = match schedule {
            GRAINSIZE => (trips / grain.max(1)).max(1),
            NUM_TASKS => grain.clamp(1, trips.max(1)),
            _ => trips.min(MOST),
        };
        let original = Task::of(known);
        if nogroup == 0 {
            group::begin(frame);
        }
        let (each, more) = (trips / tasks.max(1), trips % tasks.max(1));
        let mut first = 0;
        for number in 0..if trips == 0 { 0 } else { tasks } {
            let count = each + u64::from(number < more);
            let is_last = i32::from(number + 1 == tasks);
            let piece = member::with(|member, region, inside| task::copy(member, region, original, inside));
            let to = Task::known(piece);
            let bounds = to.cast::<Bounds>();
            let at = |count: u64| low.wrapping_add(count.cast_signed().wrapping_mul(step).cast_unsigned());
            ((*bounds).lower, (*bounds).upper) = (at(first), at(first + count - 1));
            ((*bounds).step, (*bounds).is_last) = (step, is_last);
            first += count;
            if let Some(duplicate) = duplicate {
                duplicate(to, known, is_last);
            }
            if deferred == 0 {
                run::include(piece);
            } else {
                run::create(piece, frame);
            }
        }
        if nogroup == 0 {
            group::end(frame);
        }
        member::with(|_, _, inside| task::discard(original, inside));
    }
}

/// A variable that tasks reduce, as clang tells it.
#[repr(C)]
pub struct Input {
    shared: *mut u8,
    original: *mut u8,
    size: usize,
    init: *mut c_void,
    fini: *mut c_void,
    combine: *mut c_void,
    flags: u32,
}

/// `task_reduction`: the innermost group of the running task reduces these.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __kmpc_taskred_init(_: i32, count: i32, inputs: *const Input) -> *mut Group {
    member::with(|member, _, _| {
        // SAFETY: the running task lives, and so does the group that it has opened.
        let group = unsafe { (*member.task).inner_group };
        // SAFETY: as above.
        if let Some(known) = unsafe { group.as_mut() } {
            for number in 0..usize::try_from(count).unwrap_or(0) {
                // SAFETY: the caller's promise.
                let input = unsafe { &*inputs.add(number) };
                known.reductions.push(Reduction {
                    shared: input.shared,
                    original: input.original,
                    size: input.size,
                    init: input.init,
                    fini: input.fini,
                    combine: input.combine,
                    copies: Vec::new(),
                });
            }
        }
        group
    })
}

/// `reduction(task, …)` of a region or loop: tasks that the running one creates until its end may take part.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __kmpc_taskred_modifier_init(
    _: *const Ident,
    number: i32,
    _: i32,
    count: i32,
    inputs: *const Input,
) -> *mut Group {
    group::begin_loose();
    // SAFETY: the caller's promise.
    unsafe { __kmpc_taskred_init(number, count, inputs) }
}

/// Its end: what the tasks have is part of what the running one has.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C-unwind" fn __kmpc_task_reduction_modifier_fini(_: *const Ident, _: i32, _: i32) {
    group::end(team::frame());
}

/// The running task's copy of a variable that is reduced: `in_reduction`.
///
/// # Safety
///
/// As clang calls it.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __kmpc_task_reduction_get_th_data(_: i32, _: *mut Group, item: *mut u8) -> *mut u8 {
    let frame = team::frame();
    let found = member::with(|member, _, inside| {
        // SAFETY: the running task and the groups around it live.
        unsafe {
            let task = member.task;
            let mut group = if (*task).inner_group.is_null() { (*task).group } else { (*task).inner_group };
            while let Some(known) = group.as_mut() {
                for reduction in &mut known.reductions {
                    let is_copy = reduction.copies.iter().any(|&(_, copy)| copy == item);
                    if reduction.shared != item && !is_copy {
                        continue;
                    }
                    if let Some(&(_, copy)) = reduction.copies.iter().find(|(by, _)| *by == task.addr()) {
                        return (copy, None);
                    }
                    let layout = copy_layout(reduction.size);
                    let copy = alloc_zeroed(layout);
                    if let Some(inside) = inside {
                        team::allocated(inside, copy.addr(), layout.size());
                    }
                    // Its address may be that of another task later, but not while this one's copy is in the list.
                    Task::hold(task);
                    reduction.copies.push((task.addr(), copy));
                    if !known.checked {
                        if let Some(inside) = inside {
                            team::will_be_joined(inside, frame);
                        }
                        let taker = Task::that_is_one(task);
                        (*taker).takes_part = true;
                        known.takers.push(Task::hold(taker));
                    }
                    return (copy, Some((reduction.init, reduction.original)));
                }
                group = known.around_in(task);
            }
            (item, None)
        }
    });
    let (copy, fresh) = found;
    if let Some((init, original)) = fresh.filter(|(init, _)| !init.is_null()) {
        // SAFETY: clang's function, which initialises a copy.
        unsafe {
            let init: unsafe extern "C" fn(*mut u8, *mut u8) = std::mem::transmute(init);
            init(copy, original);
        }
    }
    copy
}

fn copy_layout(size: usize) -> Layout {
    // A size beyond all reckoning could not be allocated either.
    Layout::from_size_align(size.max(1), 64).unwrap_or(Layout::new::<u64>())
}

/// The tasks of a group are over: what they have is combined.
pub fn reduce(group: &Group) {
    for reduction in &group.reductions {
        for &(task, copy) in &reduction.copies {
            // SAFETY: clang's functions, which combine a copy with the variable, and drop it. The task was held.
            unsafe {
                let combine: unsafe extern "C" fn(*mut u8, *mut u8) = std::mem::transmute(reduction.combine);
                combine(reduction.shared, copy);
                if !reduction.fini.is_null() {
                    let fini: unsafe extern "C" fn(*mut u8) = std::mem::transmute(reduction.fini);
                    fini(copy);
                }
                let inside = team::enter();
                dealloc(copy, copy_layout(reduction.size));
                Task::let_go(std::ptr::with_exposed_provenance_mut(task), inside.as_ref());
                drop(inside);
            }
        }
    }
}
