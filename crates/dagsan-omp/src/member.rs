//! Teams, their threads, and what each is doing.
//!
//! A *member* is a thread in a team. A thread that is in nested regions is a member of several teams, and the innermost counts. All of this belongs to
//! whoever has the turn: a thread reaches its member through a thread-local variable, others through the team, and no two do so at once. References
//! do not outlive a wait.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;

use dagsan_rt::team::{self, Inside, Seat};

use crate::call::Micro;
use crate::dispatch::{Dispatched, Loop};
use crate::lock::Shared;
use crate::ordered::Doacross;
use crate::single::Piece;
use crate::task::Task;

/// A team.
pub struct Team {
    /// How many threads it has.
    pub size: usize,
    /// The task that has encountered the region.
    pub encountering: team::Task,
    pub members: Vec<*mut Member>,
    pub micro: Option<Micro>,
    pub arguments: Vec<*mut c_void>,
    /// How many are at the barrier.
    pub arrived: usize,
    /// How many `single`s were taken.
    pub singles: u64,
    /// The loops that somebody is in, and the number of the first of them.
    pub loops: VecDeque<Loop>,
    pub first_loop: u64,
    /// The same for loops with dependences between iterations.
    pub doacross: VecDeque<Doacross>,
    pub first_doacross: u64,
    /// Explicit tasks that can run, and that nobody runs.
    pub queue: VecDeque<*mut Task>,
    /// How many explicit tasks have not come to their end.
    pub unfinished: usize,
    /// What `copyprivate` copies.
    pub copied: *mut c_void,
    /// How many regions are around, and how many of these have more than one thread.
    pub level: usize,
    pub active_level: usize,
    /// What of it was cancelled, by the number of the construct; 0 if nothing was.
    pub cancelled: i32,
    /// Is it checked?
    pub checked: bool,
    /// Where the frames of thread 0 begin, if the region is in a piece of work of another one.
    pub own_frames: Option<usize>,
}

/// A thread in a team.
pub struct Member {
    pub team: *mut Team,
    pub number: usize,
    /// The same thread in the team around.
    pub outer: *mut Member,
    /// Where it takes turns.
    pub seat: Option<Seat>,
    /// The task that it runs, implicit or explicit.
    pub task: *mut Task,
    /// How many `single`s and loops it has come to.
    pub singles: u64,
    pub loops: u64,
    pub doacross: u64,
    /// The loop that it is in.
    pub dispatched: Option<Dispatched>,
    /// What it was before it got the piece that it is in.
    pub piece: Option<Piece>,
    /// How many sections it has got, none of which it has been told of yet.
    pub sections: u64,
    /// The lowest frame at which it was at a barrier.
    pub lowest: usize,
    /// What the next region was asked to have.
    pub wanted: Option<usize>,
    /// How many threads regions have that do not say it.
    pub threads: usize,
    /// What the undeferred task has to have alone that comes next.
    pub alone: Vec<Shared>,
    /// How many locks and critical sections it is in.
    pub held: u32,
    /// The schedule of loops with `schedule(runtime)`.
    pub schedule: (i32, i64),
}

thread_local! {
    static MEMBER: Cell<*mut Member> = const { Cell::new(ptr::null_mut()) };
}

/// The member that this thread is.
pub fn this() -> *mut Member {
    let member = MEMBER.get();
    if member.is_null() { initial() } else { member }
}

/// This thread is another member from here on.
pub fn set(member: *mut Member) {
    MEMBER.set(member);
}

/// A thread that no region has started is a team of its own.
#[cold]
fn initial() -> *mut Member {
    // What the runtime allocates is its own, also before anything is checked.
    let inside = team::enter();
    let team = Team::new(1, inside.as_ref().map(team::current));
    let member = Member::new(team, 0, ptr::null_mut());
    set(member);
    drop(inside);
    member
}

impl Team {
    /// A team, for as long as its region lasts.
    pub fn new(size: usize, encountering: Option<team::Task>) -> *mut Team {
        Box::into_raw(Box::new(Team {
            size,
            encountering: encountering.unwrap_or_else(team::Task::main),
            members: Vec::with_capacity(size),
            micro: None,
            arguments: Vec::new(),
            arrived: 0,
            singles: 0,
            loops: VecDeque::new(),
            first_loop: 0,
            doacross: VecDeque::new(),
            first_doacross: 0,
            queue: VecDeque::new(),
            unfinished: 0,
            copied: ptr::null_mut(),
            level: 0,
            active_level: 0,
            cancelled: 0,
            checked: false,
            own_frames: None,
        }))
    }

    /// Who waits for the others at a barrier waits for this address.
    pub fn at_barrier(team: *const Team) -> usize {
        // SAFETY: only the address is taken.
        unsafe { (&raw const (*team).arrived).addr() }
    }
}

impl Member {
    /// A member, and the implicit task that it runs.
    pub fn new(team: *mut Team, number: usize, outer: *mut Member) -> *mut Member {
        // SAFETY: the member around lives as long as this one, and nobody changes it meanwhile.
        let inherited = unsafe { outer.as_ref() }.map(|outer| (outer.threads, outer.schedule));
        let (threads, schedule) = inherited.unwrap_or_else(crate::api::from_environment);
        // SAFETY: as above; its task lives, too.
        let is_final = unsafe { outer.as_ref().is_some_and(|outer| (*outer.task).is_final) };
        let member = Box::into_raw(Box::new(Member {
            team,
            number,
            outer,
            seat: None,
            task: Task::implicit(team, is_final),
            singles: 0,
            loops: 0,
            doacross: 0,
            dispatched: None,
            piece: None,
            sections: 0,
            lowest: usize::MAX,
            wanted: None,
            threads,
            alone: Vec::new(),
            held: 0,
            schedule,
        }));
        // SAFETY: a team that was just made, or that of this thread.
        unsafe { (*team).members.push(member) };
        member
    }

    /// Gives back what `new` has made.
    ///
    /// # Safety
    ///
    /// Nobody uses it any more.
    pub unsafe fn free(member: *mut Member) {
        // SAFETY: the caller's promise; both come from `Box::into_raw`.
        unsafe {
            let member = Box::from_raw(member);
            Task::let_go(member.task, None);
        }
    }
}

/// Tasks are about to be created, from a function with this frame. Those of a thread outside of all regions are parallel to what it does, too.
pub fn has_tasks(frame: usize) {
    // SAFETY: this thread's member and its team.
    unsafe {
        let member = this();
        if (*member).outer.is_null() && !(*(*member).team).checked && (*(*member).team).level == 0 {
            (*(*member).team).checked = team::watch(frame);
        }
    }
}

/// Does something with the member and the team of this thread, in the runtime. Without a check, and in a process that was forked, it is done all the same.
pub fn with<R>(action: impl FnOnce(&mut Member, &mut Team, Option<&Inside>) -> R) -> R {
    let member = this();
    let inside = team::enter();
    // SAFETY: this thread's member and its team live, and the thread has the turn, so nobody else has a reference.
    let (member, team) = unsafe { (&mut *member, &mut *(*member).team) };
    let result = action(member, team, inside.as_ref());
    drop(inside);
    result
}
