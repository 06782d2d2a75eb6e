//! Explicit tasks: how they are created, run and waited for.
//!
//! A task runs at once, on the stack of the thread that creates it, as its specification allows; to the detector it is parallel to what follows,
//! until something joins it. It is queued if it has to wait for others (`depend`), if its creator holds a lock, which the task may need, or if
//! half of the stack is in use: tasks that create tasks may be many. Queued tasks are run where threads wait: descendants of the waiting task at `taskwait`, all of them at barriers.
//!
//! Undeferred tasks, and those that a final task creates, are part of the task that creates them.

use std::ptr;

use dagsan_rt::team::{self, Inside, Kind, Locks};

use crate::cancel;
use crate::group::Group;
use crate::lock;
use crate::member::{self, Member, Team};
use crate::refuse::Ident;
use crate::task::{Known, Task};

/// `#pragma omp task`.
///
/// # Safety
///
/// A task of `__kmpc_omp_task_alloc`.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C-unwind" fn __kmpc_omp_task(_: *const Ident, _: i32, known: *mut Known) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { create(Task::of(known), team::frame()) };
    0
}

/// The running task creates another, in a function with this frame, which has its dependences.
///
/// # Safety
///
/// It lives, and has not started.
pub unsafe fn create(task: *mut Task, frame: usize) {
    let member = member::this();
    // SAFETY: the caller's promise; this thread's member and its team.
    unsafe {
        if (*member).task == task {
            // An untied task that comes to a point where another thread might go on with it.
            (*task).again = true;
            return;
        }
        let parent = (*member).task;
        let region = (*member).team;
        let Some(inside) = team::enter() else {
            return run_included(None, member, task);
        };
        if (*parent).is_final {
            return run_included(Some(inside), member, task);
        }
        let kind = kind(task, parent, region);
        let at_once =
            (*task).waits_for == 0 && ((*member).held == 0 && !team::is_deep(frame) || (*region).level == 0);
        if at_once && kind == Kind::Explicit {
            return run_here(inside, member, task, frame);
        }
        (*task).handle = team::start(&inside, team::current(&inside), kind, frame, frame);
        enter(task, parent, region);
        (*parent).joinable.push(Task::hold(task));
        if (*member).held > 0 {
            (*task).under = team::locks(&inside).and(&(*parent).under);
        }
        if at_once {
            run(inside, member, task, frame);
        } else if (*task).waits_for == 0 {
            (*region).queue.push_back(task);
        }
    }
}

/// A task is among those that its parent, its group and its team wait for.
///
/// # Safety
///
/// All of them live.
unsafe fn enter(task: *mut Task, parent: *mut Task, region: *mut Team) {
    // SAFETY: the caller's promise.
    unsafe {
        (*parent).children += 1;
        (*region).unfinished += 1;
        let group = if (*parent).inner_group.is_null() { (*parent).group } else { (*parent).inner_group };
        ((*task).group, (*task).inner_group) = (group, ptr::null_mut());
        Group::enter(group);
    }
}

/// Runs a child of the running task where it is created, below a function with this frame: it waits for nobody, and nobody but its parent and the scopes around
/// waits for it.
///
/// # Safety
///
/// This thread's member, and a task that can run.
unsafe fn run_here(inside: Inside, member: *mut Member, task: *mut Task, frame: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let (parent, running) = ((*member).task, team::running(&inside));
        enter(task, parent, (*member).team);
        (*member).task = task;
        team::start_here(&inside, frame);
        drop(inside);
        call(None, member, task);
        let Some(inside) = team::enter() else { return };
        (*member).task = parent;
        (*task).known = false;
        match team::end_here(&inside, running, (*task).takes_part, frame) {
            Some(handle) => {
                ((*task).handle, (*task).known) = (handle, true);
                (*parent).joinable.push(Task::hold(task));
            }
            // Its event is to be asked for.
            None if (*task).detached.is_some() => (*parent).joinable.push(Task::hold(task)),
            None => {}
        }
        (*parent).unwaited.own |= !(*task).known;
        has_run(&inside, task);
        drop(inside);
    }
}

/// The task has run, and is over, unless its event is to come.
///
/// # Safety
///
/// It lives.
unsafe fn has_run(inside: &Inside, task: *mut Task) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*task).detached.as_ref().is_none_or(|detached| detached.fulfilled) {
            is_over(inside, task);
        } else {
            // Until its event is fulfilled.
            (*task).again = true;
        }
    }
}

/// What a task is to the detector. Where it is part of another one, or of the task that has encountered its region, that one has children of its own,
/// for which a `taskwait` here does not wait.
///
/// # Safety
///
/// All of them live.
unsafe fn kind(task: *const Task, parent: *const Task, region: *const Team) -> Kind {
    // SAFETY: the caller's promise.
    unsafe {
        let is_part = (*parent).included || ((*region).size == 1 && (*region).level > 0);
        if is_part || (*task).depends_on_siblings { Kind::Loose } else { Kind::Explicit }
    }
}

/// Runs a task as part of the one that creates it, which is the running one.
///
/// # Safety
///
/// It lives, and has not started.
pub unsafe fn include(task: *mut Task) {
    // SAFETY: the caller's promise; this thread's member.
    unsafe { run_included(None, member::this(), task) };
}

/// Runs a task as part of the one that creates it.
///
/// # Safety
///
/// This thread's member, and a task that has not started.
unsafe fn run_included(inside: Option<Inside>, member: *mut Member, task: *mut Task) {
    // SAFETY: the caller's promise.
    unsafe {
        let parent = begin_included(member, task);
        call(inside, member, task);
        let inside = team::enter();
        end_included(inside.as_ref(), member, task, parent);
        drop(inside);
    }
}

/// # Safety
///
/// As for [`run_included`].
unsafe fn begin_included(member: *mut Member, task: *mut Task) -> *mut Task {
    // SAFETY: the caller's promise.
    unsafe {
        let parent = (*member).task;
        (*task).included = true;
        (*task).handle = (*parent).handle;
        let group = if (*parent).inner_group.is_null() { (*parent).group } else { (*parent).inner_group };
        (*task).group = group;
        (*member).task = task;
        parent
    }
}

/// # Safety
///
/// As for [`run_included`].
unsafe fn end_included(inside: Option<&Inside>, member: *mut Member, task: *mut Task, parent: *mut Task) {
    // SAFETY: the caller's promise.
    unsafe {
        (*member).task = parent;
        (*task).over = true;
        Task::unlink(task, inside);
        Task::let_go(task, inside);
    }
}

/// Calls the function of a task, again if it is to go on.
///
/// # Safety
///
/// It is the running one.
unsafe fn call(inside: Option<Inside>, member: *mut Member, task: *mut Task) {
    let known = Task::known(task);
    drop(inside);
    // SAFETY: the task lives until it is let go, and its function takes it.
    unsafe {
        if cancel::leaves_out(task) {
            return;
        }
        let number = (*member).number as i32;
        loop {
            (*task).again = false;
            if let Some(entry) = (*known).entry {
                entry(number, known);
            }
            if !(*task).again {
                return;
            }
        }
    }
}

/// Runs a task that was started, below a function with this frame, and then goes on.
///
/// # Safety
///
/// This thread's member, and a task that can run.
unsafe fn run(inside: Inside, member: *mut Member, task: *mut Task, frame: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let (before, running) = ((*member).task, team::running(&inside));
        (*member).task = task;
        team::run(&inside, (*task).handle, frame);
        let after = std::mem::take(&mut (*task).after);
        for other in after {
            comes_after(&inside, other, frame);
            Task::let_go(other, Some(&inside));
        }
        let alone = (*task).alone.clone();
        drop(inside);
        alone.iter().for_each(|word| lock::take(word.as_ptr()));
        call(None, member, task);
        alone.iter().rev().for_each(|word| lock::give_back(word.as_ptr()));
        let Some(inside) = team::enter() else { return };
        drop(alone);
        team::end(&inside, frame);
        team::resume(&inside, running);
        (*member).task = before;
        has_run(&inside, task);
        drop(inside);
    }
}

/// The running task comes after another, which is over.
///
/// # Safety
///
/// It is held.
unsafe fn comes_after(inside: &Inside, other: *mut Task, frame: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*other).included {
            team::join(inside, (*other).handle, frame);
        }
        comes_after_event(inside, other, frame);
    }
}

/// The running task comes after what has fulfilled the event of another, if it has one.
///
/// # Safety
///
/// It is held.
unsafe fn comes_after_event(inside: &Inside, other: *mut Task, frame: usize) {
    // SAFETY: the caller's promise.
    if let Some(order) = unsafe { (*other).detached.as_ref().and_then(|detached| detached.order) } {
        team::acquire(inside, order, frame);
    }
}

/// The task has come to its end: whoever waits for that can go on.
///
/// # Safety
///
/// It lives.
unsafe fn is_over(inside: &Inside, task: *mut Task) {
    // SAFETY: the caller's promise. A task is held by itself until here, and its parent by it.
    unsafe {
        (*task).over = true;
        let (region, parent) = ((*task).team, (*task).parent);
        for next in std::mem::take(&mut (*task).before) {
            (*next).waits_for -= 1;
            if (*next).waits_for == 0 {
                (*region).queue.push_back(next);
                team::wake(inside, (*next).parent.addr());
                team::wake(inside, Team::at_barrier(region));
            }
        }
        (*parent).children -= 1;
        (*region).unfinished -= 1;
        Group::leave(inside, (*task).group);
        team::wake(inside, parent.addr());
        if (*region).unfinished == 0 {
            team::wake(inside, Team::at_barrier(region));
        }
        Task::unlink(task, Some(inside));
        Task::let_go(task, Some(inside));
    }
}

/// Runs all tasks that can run, whoever has created them.
///
/// # Safety
///
/// This thread's member, which is at a barrier.
pub unsafe fn run_all(inside: &Inside, member: *mut Member, frame: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let region = (*member).team;
        // One whose parent holds a lock still is left to it: it may wait for the task before it gives the lock back.
        let is_free =
            |&task: &*mut Task| (*task).under.is_empty() || !team::is_held_since(inside, &(*task).under);
        while let Some(at) = (*region).queue.iter().position(is_free) {
            let Some(task) = (*region).queue.remove(at) else { return };
            (*task).under = Locks::default();
            team::outside(inside, || run_from_queue(member, task, frame));
        }
    }
}

/// # Safety
///
/// As for [`run`].
unsafe fn run_from_queue(member: *mut Member, task: *mut Task, frame: usize) {
    if let Some(inside) = team::enter() {
        // SAFETY: the caller's promise.
        unsafe { run(inside, member, task, frame) };
    }
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// All its children: they are under the locks that it has held since it has created them.
    Children,
    /// The tasks of a group.
    Group(*mut Group),
    /// Something else, or nothing.
    Other,
}

/// Runs a task that descends from the running one, if there is one that can run, while the running one waits.
///
/// # Safety
///
/// This thread's member.
pub unsafe fn run_descendant(inside: &Inside, member: *mut Member, waits: For, frame: usize) -> bool {
    // SAFETY: the caller's promise; tasks in the queue live.
    unsafe {
        let region = (*member).team;
        let own = (*member).task;
        let queue = &mut (*region).queue;
        // Those that a taskwait may come for in the section of a lock in which they were created are the last, else.
        let can_wait = |task: *mut Task| match waits {
            For::Children => false,
            For::Group(group) => (*task).group != group && !(*task).under.is_empty(),
            For::Other => !(*task).under.is_empty(),
        };
        let of_own = |&task: &*mut Task| Task::descends_from(task, own);
        let first = queue.iter().position(|task| of_own(task) && !can_wait(*task));
        let Some(at) = first.or_else(|| queue.iter().position(of_own)) else {
            return false;
        };
        if let Some(task) = (*region).queue.remove(at) {
            if waits == For::Children && (*task).parent == own && !(*task).under.is_empty() {
                team::put_under(inside, (*task).handle, &(*task).under, frame);
            } else {
                (*task).under = Locks::default();
            }
            team::outside(inside, || run_from_queue(member, task, frame));
        }
        true
    }
}

const CHILDREN: &str = "its child tasks, at a taskwait";

/// `#pragma omp taskwait`.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C-unwind" fn __kmpc_omp_taskwait(_: *const Ident, _: i32) -> i32 {
    taskwait(team::frame());
    0
}

fn taskwait(frame: usize) {
    let Some(inside) = team::enter() else { return };
    let member = member::this();
    // SAFETY: this thread's member and the task that it runs.
    unsafe {
        let task = (*member).task;
        loop {
            // Others change it while this thread waits.
            if (*task).children == 0 {
                break;
            }
            if !run_descendant(&inside, member, For::Children, frame) && (*task).children > 0 {
                team::wait(&inside, task.addr(), CHILDREN);
            }
        }
        let (children, others) =
            (std::mem::take(&mut (*task).joinable), std::mem::take(&mut (*task).unwaited));
        if children.is_empty() && !others.own && !others.of_pieces {
            return;
        }
        if others.of_pieces || children.iter().any(|&child| (*child).of_piece) {
            team::waits_for_tasks_of_piece();
        }
        let known = children.iter().filter(|&&child| (*child).known).map(|&child| (*child).handle);
        team::join_all(&inside, known, others, frame);
        for child in children {
            comes_after_event(&inside, child, frame);
            Task::let_go(child, Some(&inside));
        }
    }
}

/// Waits until a task is over, and comes after it.
///
/// # Safety
///
/// It is held.
pub unsafe fn wait_for(inside: &Inside, member: *mut Member, other: *mut Task, frame: usize) {
    // SAFETY: the caller's promise; the running task lives.
    unsafe {
        loop {
            // Others change it while this thread waits.
            if (*other).over {
                break;
            }
            if !run_descendant(inside, member, For::Other, frame) && !(*other).over {
                team::wait(inside, (*other).parent.addr(), "tasks that it depends on");
            }
        }
        comes_after(inside, other, frame);
    }
}

/// An undeferred task begins.
///
/// # Safety
///
/// A task of `__kmpc_omp_task_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __kmpc_omp_task_begin_if0(_: *const Ident, _: i32, known: *mut Known) {
    let member = member::this();
    // SAFETY: the caller's promise; this thread's member.
    unsafe {
        let task = Task::of(known);
        begin_included(member, task);
        let alone = std::mem::take(&mut (*member).alone);
        alone.iter().for_each(|word| lock::take(word.as_ptr()));
        (*task).alone = alone;
    }
}

/// An undeferred task ends.
///
/// # Safety
///
/// The task that has begun last.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __kmpc_omp_task_complete_if0(_: *const Ident, _: i32, known: *mut Known) {
    let (member, task) = (member::this(), Task::of(known));
    // SAFETY: the caller's promise; this thread's member.
    unsafe {
        // An untied one has not come to its end yet: the program calls it once.
        if (*task).again {
            call(None, member, task);
        }
        let alone = std::mem::take(&mut (*task).alone);
        alone.iter().rev().for_each(|word| lock::give_back(word.as_ptr()));
        let inside = team::enter();
        drop(alone);
        end_included(inside.as_ref(), member, task, (*task).parent);
        drop(inside);
    }
}

/// `#pragma omp taskyield`: another task may run.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C-unwind" fn __kmpc_omp_taskyield(_: *const Ident, _: i32, _: i32) -> i32 {
    let frame = team::frame();
    let member = member::this();
    if let Some(inside) = team::enter() {
        // SAFETY: this thread's member.
        unsafe {
            if (*member).held == 0 {
                run_descendant(&inside, member, For::Other, frame);
            }
            if (*(*member).team).size > 1 {
                team::yield_now(&inside);
            }
        }
    }
    0
}

/// `detach`: the event of a task.
#[unsafe(no_mangle)]
pub extern "C" fn __kmpc_task_allow_completion_event(
    _: *const Ident,
    _: i32,
    known: *mut Known,
) -> *mut Known {
    known
}

/// The event of a task is fulfilled: if it has run, it is over.
///
/// # Safety
///
/// An event of a task that is not over.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn omp_fulfill_event(event: *mut Known) {
    let (frame, task) = (team::frame(), Task::of(event));
    let Some(inside) = team::enter() else { return };
    // SAFETY: the caller's promise.
    unsafe {
        let Some(detached) = (*task).detached.as_mut() else { return };
        detached.fulfilled = true;
        if let Some(order) = detached.order {
            team::release(&inside, order, frame);
        }
        if (*task).again {
            is_over(&inside, task);
        }
    }
}
