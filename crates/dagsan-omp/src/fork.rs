//! Parallel regions: a team of threads runs the same function.
//!
//! The thread that comes to a region is its thread 0. The others are idle ones of earlier regions, or new.

use std::cell::UnsafeCell;
use std::ffi::c_void;

use dagsan_rt::team::{self, Inside, Kind, Seat};

use crate::api;
use crate::barrier;
use crate::call::{self, Micro};
use crate::member::{self, Member, Team};
use crate::refuse::{Ident, refuse};

/// Threads without a team.
struct Idle(UnsafeCell<Vec<*mut Hand>>);

// SAFETY: only the thread that has the turn uses it.
unsafe impl Sync for Idle {}

static IDLE: Idle = Idle(UnsafeCell::new(Vec::new()));

/// A thread that can be given a member to be.
struct Hand {
    seat: Option<Seat>,
    member: *mut Member,
    /// Its number in regions that are in no other: threadprivate variables keep their values from one to the next.
    number: Option<usize>,
}

/// Takes an idle thread for that number, if there is one.
fn idle_for(idle: &mut Vec<*mut Hand>, number: Option<usize>) -> Option<*mut Hand> {
    // SAFETY: idle threads live, and belong to whoever has the turn.
    let of = |wanted: Option<usize>| move |hand: &*mut Hand| unsafe { (**hand).number == wanted };
    let at = idle.iter().rposition(of(number)).or_else(|| idle.iter().rposition(of(None)))?;
    Some(idle.swap_remove(at))
}

/// Behind `__kmpc_fork_call`. `frame` is that of the function that the program has called; of its arguments three are in `registers`, the others
/// in `stack`.
///
/// # Safety
///
/// As clang calls it.
pub unsafe extern "C" fn fork(
    _: *const Ident,
    count: i32,
    micro: Micro,
    registers: *const *mut c_void,
    stack: *const *mut c_void,
    frame: usize,
) {
    let argument = |number: usize| {
        // SAFETY: so many were passed.
        unsafe { if number < 3 { *registers.add(number) } else { *stack.add(number - 3) } }
    };
    let member = member::this();
    // SAFETY: this thread's own.
    let size = unsafe {
        let wanted = (*member).wanted.take().unwrap_or((*member).threads);
        if (*(*member).team).active_level >= api::max_active_levels() {
            1
        } else {
            wanted.clamp(1, api::limit())
        }
    };
    begin(member, size, frame);
    let inside = team::enter();
    let arguments: Vec<*mut c_void> = (0..usize::try_from(count).unwrap_or(0)).map(argument).collect();
    let inner = member::this();
    // SAFETY: the team that was just made, and whose other threads do not run yet.
    unsafe {
        let region = &mut *(*inner).team;
        region.micro = Some(micro);
        region.arguments.clone_from(&arguments);
        if let Some(inside) = inside.as_ref().filter(|_| size > 1 && region.checked) {
            start_all(inside, region, frame);
        }
    }
    drop(inside);
    // SAFETY: the region's function, with its arguments.
    unsafe { call::call(micro, &arguments, 0) };
    let inside = team::enter();
    drop(arguments);
    drop(inside);
    end(frame);
}

/// Behind `__kmpc_fork_teams`.
///
/// # Safety
///
/// As clang calls it.
pub unsafe extern "C" fn teams(
    ident: *const Ident,
    count: i32,
    micro: Micro,
    registers: *const *mut c_void,
    stack: *const *mut c_void,
    frame: usize,
) {
    let member = member::this();
    // SAFETY: the caller's promise. A league has one team, which the program cannot rely on, and the specification allows.
    unsafe {
        (*member).wanted = Some(1);
        api::set_teams(true);
        fork(ident, count, micro, registers, stack, frame);
        api::set_teams(false);
    }
}

/// This thread is thread 0 of a new team.
fn begin(outer: *mut Member, size: usize, frame: usize) {
    let checked = team::open(frame);
    let inside = team::enter();
    let region = Team::new(if checked { size } else { 1 }, inside.as_ref().map(team::current));
    let inner = Member::new(region, 0, outer);
    // SAFETY: the team and the member were just made; the one around is this thread's.
    unsafe {
        let around = &*(*outer).team;
        (*region).checked = checked;
        (*region).level = around.level + 1;
        (*region).active_level = around.active_level + usize::from((*region).size > 1);
        (*(*inner).task).handle = (*region).encountering;
        // Private variables of the region are below.
        if let Some(inside) = &inside {
            if around.active_level == 0 {
                team::own_stack(inside, frame - PADDING);
            } else if (*region).size > 1 {
                (*region).own_frames = team::begin_own_frames(inside, frame - PADDING);
            }
        }
    }
    member::set(inner);
}

/// Between the frames of the encountering function and those of the region there is at least a line.
const PADDING: usize = 64;

/// Starts the tasks of all threads, and those that are not thread 0. This one goes on with its own.
///
/// # Safety
///
/// This thread is thread 0, and runs the encountering task.
unsafe fn start_all(inside: &Inside, region: &mut Team, frame: usize) {
    // SAFETY: idle threads and those that this makes belong to whoever has the turn, until they have it.
    unsafe {
        let idle = &mut *IDLE.0.get();
        let outermost = region.active_level == 1;
        for number in 1..region.size {
            let member = Member::new(region, number, std::ptr::null_mut());
            let outer = &**region.members.first().unwrap_or(&member);
            ((*member).threads, (*member).schedule) = (outer.threads, outer.schedule);
            let task = team::start(inside, region.encountering, Kind::Implicit, frame, frame);
            (*(*member).task).handle = task;
            let kept = outermost.then_some(number);
            match idle_for(idle, kept) {
                Some(hand) => {
                    ((*hand).member, (*hand).number) = (member, kept);
                    (*member).seat = (*hand).seat;
                    if let Some(seat) = (*hand).seat {
                        team::give(inside, seat, task);
                    }
                }
                None => {
                    let hand = Box::into_raw(Box::new(Hand { seat: None, member, number: kept }));
                    let seat = team::hire(inside, task, work, hand.addr());
                    if seat.is_none() {
                        refuse("no more threads can be started: set OMP_NUM_THREADS to fewer");
                    }
                    ((*hand).seat, (*member).seat) = (seat, seat);
                }
            }
        }
        let Some(&own) = region.members.first() else { return };
        let task = team::start(inside, region.encountering, Kind::Implicit, frame, frame);
        (*(*own).task).handle = task;
        (*own).seat = Some(team::seat());
        go_on(inside, task, frame);
    }
}

/// Thread 0 goes on with its task, which was just started.
pub fn go_on(inside: &Inside, task: team::Task, frame: usize) {
    team::resume(inside, task);
    team::begin(inside, frame);
}

/// What a thread does that is not thread 0: one region after the other.
extern "C" fn work(hand: usize) {
    let hand = std::ptr::with_exposed_provenance_mut::<Hand>(hand);
    loop {
        let Some(inside) = team::enter() else { return };
        let frame = team::frame();
        // SAFETY: whoever gave this thread the turn has given it a member. Its team lives until all have left.
        let (micro, arguments, number) = unsafe {
            let member = (*hand).member;
            member::set(member);
            team::own_stack(&inside, team::stack_top());
            team::begin(&inside, frame);
            (*member).lowest = frame;
            let region = &*(*member).team;
            (region.micro, region.arguments.clone(), (*member).number)
        };
        drop(inside);
        if let Some(micro) = micro {
            // SAFETY: the region's function, with its arguments.
            unsafe { call::call(micro, &arguments, number) };
        }
        let Some(inside) = team::enter() else { return };
        drop(arguments);
        barrier::leave(&inside, frame);
        // SAFETY: this thread has the turn.
        unsafe { (*IDLE.0.get()).push(hand) };
        team::idle(&inside);
    }
}

/// The region of this thread, which is its thread 0, ends.
fn end(frame: usize) {
    let member = member::this();
    barrier::join(frame);
    let inside = team::enter();
    // SAFETY: all others have left the team.
    unsafe {
        let region = (*member).team;
        if let Some((inside, top)) = inside.as_ref().zip((*region).own_frames) {
            team::end_own_frames(inside, top);
        }
        member::set((*member).outer);
        for &member in &(*region).members {
            Member::free(member);
        }
        drop(Box::from_raw(region));
    }
    drop(inside);
    team::close(frame);
}

/// `#pragma omp parallel if(0)`: a team of one thread.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_serialized_parallel(_: *const Ident, _: i32) {
    begin(member::this(), 1, team::frame());
}

/// Its end.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_end_serialized_parallel(_: *const Ident, _: i32) {
    end(team::frame());
}

/// `num_threads`.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_push_num_threads(_: *const Ident, _: i32, threads: i32) {
    member::with(|member, _, _| member.wanted = usize::try_from(threads).ok().filter(|&threads| threads > 0));
}

/// `proc_bind`: threads take turns, wherever they are.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_push_proc_bind(_: *const Ident, _: i32, _: i32) {}

/// `num_teams`, `thread_limit`.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_push_num_teams(_: *const Ident, _: i32, _: i32, _: i32) {}

/// `thread_limit` of a `target`: there is one team.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_set_thread_limit(_: *const Ident, _: i32, _: i32) {}

/// The number of this thread, which calls of the runtime get. Functions that have tasks ask for it first, whatever they do then.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_global_thread_num(_: *const Ident) -> i32 {
    // SAFETY: this thread's own, whose number never changes.
    unsafe { (*member::this()).number as i32 }
}

/// Is the runtime there?
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_begin(_: *const Ident, _: i32) {}

/// It is not needed any more.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_end(_: *const Ident) {}
