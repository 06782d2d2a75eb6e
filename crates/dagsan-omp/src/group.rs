//! `taskgroup`: waits for all tasks that are created in it, and for their descendants. To the detector it is a finish.

use std::ffi::c_void;

use dagsan_rt::team::{self, Inside};

use crate::member;
use crate::refuse::Ident;
use crate::run::{self, For};
use crate::task::Task;

/// A group of tasks.
pub struct Group {
    /// The one that is around it in the same task.
    outer: *mut Group,
    /// How many tasks have not ended.
    running: usize,
    /// Do its tasks that have not begun never begin?
    pub cancelled: bool,
    /// Is its end that of a finish?
    pub checked: bool,
    /// Tasks that take part in its reductions, if it is not.
    pub takers: Vec<*mut Task>,
    /// The memory of task reductions: what is reduced, and each thread's own.
    pub reductions: Vec<Reduction>,
}

/// A variable that tasks of a group reduce.
pub struct Reduction {
    pub shared: *mut u8,
    pub size: usize,
    pub init: *mut c_void,
    pub combine: *mut c_void,
    pub fini: *mut c_void,
    pub original: *mut u8,
    /// Of each task that takes part, by thread.
    pub copies: Vec<(usize, *mut u8)>,
}

impl Group {
    /// A task is created in the group, if there is one.
    ///
    /// # Safety
    ///
    /// The group lives.
    pub unsafe fn enter(group: *mut Group) {
        // SAFETY: the caller's promise; whoever calls has the turn.
        if let Some(group) = unsafe { group.as_mut() } {
            group.running += 1;
        }
    }

    /// It has ended.
    ///
    /// # Safety
    ///
    /// The group lives.
    pub unsafe fn leave(inside: &Inside, group: *mut Group) {
        // SAFETY: the caller's promise; whoever calls has the turn.
        if let Some(known) = unsafe { group.as_mut() } {
            known.running -= 1;
            if known.running == 0 {
                team::wake(inside, group.addr());
            }
        }
    }

    /// The next group around it, as the task sees it that is in it.
    pub fn around_in(&self, task: *const Task) -> *mut Group {
        // SAFETY: the running task lives.
        let created_in = unsafe { (*task).group };
        let is_own = !std::ptr::eq(self, created_in);
        if self.outer.is_null() && is_own { created_in } else { self.outer }
    }
}

/// `#pragma omp taskgroup` begins.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __kmpc_taskgroup(_: *const Ident, _: i32) {
    begin(team::frame());
}

/// It ends.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C-unwind" fn __kmpc_end_taskgroup(_: *const Ident, _: i32) {
    end(team::frame());
}

/// The running task opens a group, in a function with this frame.
pub fn begin(frame: usize) {
    member::has_tasks(frame);
    let checked = member::with(|_, region, _| region.checked);
    if checked {
        team::open(frame);
    }
    open(checked);
}

/// The running task opens a group that other constructs end in, barriers too: `reduction(task, …)`. To the detector it is none; what its tasks
/// reduce comes before its end.
pub fn begin_loose() {
    open(false);
}

fn open(checked: bool) {
    member::with(|member, _, _| {
        // SAFETY: the running task lives.
        let task = unsafe { &mut *member.task };
        let outer = task.inner_group;
        let (takers, reductions) = (Vec::new(), Vec::new());
        let group = Group { outer, running: 0, cancelled: false, checked, takers, reductions };
        task.inner_group = Box::into_raw(Box::new(group));
    });
}

/// It closes it, when all its tasks have ended.
pub fn end(frame: usize) {
    let member = member::this();
    let inside = team::enter();
    // SAFETY: this thread's member, the task that it runs, and the group that it has opened last.
    let (group, task) = unsafe { ((*(*member).task).inner_group, (*member).task) };
    if group.is_null() {
        return;
    }
    // SAFETY: as above.
    unsafe {
        if let Some(inside) = &inside {
            loop {
                // Others change it while this thread waits.
                if (*group).running == 0 {
                    break;
                }
                if !run::run_descendant(inside, member, For::Group(group), frame) && (*group).running > 0 {
                    team::wait(inside, group.addr(), "the tasks of a taskgroup");
                }
            }
        }
        (*task).inner_group = (*group).outer;
    }
    // SAFETY: nobody else knows the group any more.
    let group = unsafe { Box::from_raw(group) };
    for &taker in &group.takers {
        // SAFETY: it was held, and has ended, or is the running one.
        unsafe {
            if let Some(inside) = inside.as_ref().filter(|_| !(*taker).parent.is_null()) {
                team::join(inside, (*taker).handle, frame);
            }
            Task::let_go(taker, inside.as_ref());
        }
    }
    drop(inside);
    if group.checked {
        team::close(frame);
    }
    crate::taskloop::reduce(&group);
    let inside = team::enter();
    drop(group);
    drop(inside);
}
