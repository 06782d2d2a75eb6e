//! Tasks, run on the stack of whoever runs them, and the frames that join them.
//!
//! The generic code of this crate is instantiated in the program. It hands its closures to these functions as `dyn`, so
//! that all that talks to DagSan is compiled here, without hooks.

use crate::events::{self, Kind, Place, Task};
use crate::local::{self, Seat};
use crate::stack::{self, here};
use crate::unwind::{Payload, catch};

/// A scope that DagSan knows of opens.
fn opened() {
    local::with(|local| local.scopes.set(local.scopes.get() + 1));
}

/// It has closed. With the outermost one DagSan would stop looking; a task that nobody has joined keeps it from that.
fn closed() {
    let keep = local::with(|local| {
        local.scopes.set(local.scopes.get() - 1);
        local.scopes.get() == 0 && local.detached.get()
    });
    if keep {
        look_on();
    }
}

/// Opens a frame for good: what this thread does is looked at until the program ends.
#[cold]
fn look_on() {
    local::with(|local| {
        local.scopes.set(local.scopes.get() + 1);
        local.detached.set(false);
    });
    events::frame_begin();
}

/// A task is about to be started that only the end of the program joins.
#[cold]
#[inline(never)]
pub(crate) fn detach() {
    let outside = local::with(|local| {
        local.detached.set(true);
        local.scopes.get() == 0
    });
    if outside {
        look_on();
    }
}

/// The running task starts to spawn.
#[inline(never)]
pub(crate) fn frame_begin() {
    opened();
    events::frame_begin();
}

/// It has spawned, and what it has spawned has ended.
#[inline(never)]
pub(crate) fn frame_end() {
    events::sync();
    events::frame_end();
    closed();
}

/// The running task opens a finish.
#[inline(never)]
pub(crate) fn finish_begin() {
    opened();
    events::finish_begin();
}

/// All that was started in it has ended.
#[inline(never)]
pub(crate) fn finish_end() {
    events::finish_end();
    closed();
}

/// Starts a task and runs it to its end. `body` must not unwind.
#[inline(never)]
pub(crate) fn run(kind: Kind, place: Place, body: &mut dyn FnMut()) {
    let task = events::spawn(kind, place, stack::low(), here!());
    enter(task, body);
}

/// Starts a task that runs a job to its end, and returns its panic.
///
/// # Safety
///
/// As for [`catch`].
#[inline(never)]
pub(crate) unsafe fn run_job(
    kind: Kind,
    place: Place,
    job: *const u8,
    call: unsafe fn(*const u8),
) -> Option<Payload> {
    let mut panic = None;
    // SAFETY: the caller's promise.
    run(kind, place, &mut || panic = unsafe { catch(job, call) });
    panic
}

/// Runs a job that is the rest of the running task and returns its panic. Another worker may have stolen it.
///
/// # Safety
///
/// As for [`catch`].
#[inline(never)]
pub(crate) unsafe fn run_rest(job: *const u8, call: unsafe fn(*const u8)) -> Option<Payload> {
    let _seat = Seat::stolen();
    // SAFETY: the caller's promise.
    unsafe { catch(job, call) }
}

/// Starts a task, to be run by [`enter`] in a frame below `high`.
#[inline(never)]
pub(crate) fn start(kind: Kind, place: Place, high: usize) -> Task {
    let task = events::spawn(kind, place, stack::low(), high);
    events::resume(local::with(|local| local.task.get()));
    task
}

/// The task that [`start`] has made goes on, to its end.
#[inline(never)]
pub(crate) fn go_on(task: Task, body: &mut dyn FnMut()) {
    events::resume(task);
    enter(task, body);
}

fn enter(task: Task, body: &mut dyn FnMut()) {
    let (before, worker) = local::with(|local| (local.task.replace(task), local.worker.get()));
    local::same_worker();
    body();
    events::task_end();
    local::with(|local| {
        local.task.set(before);
        local.worker.set(worker);
    });
    events::resume(before);
}
