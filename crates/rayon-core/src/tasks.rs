//! Tasks, run on the stack of whoever runs them, and the frames that join them.
//!
//! The generic code of this crate is instantiated in the program. It hands its closures to these functions as `dyn`, so
//! that all that talks to DagSan is compiled here, without hooks.

use crate::events::{self, Kind, Place, Task};
use crate::local::{self, Context};
use crate::stack::here;
use crate::unwind::{Payload, catch};

/// The running task starts to spawn.
#[inline(never)]
pub(crate) fn frame_begin() {
    events::frame_begin();
}

/// It has spawned, and what it has spawned has ended.
#[inline(never)]
pub(crate) fn frame_end() {
    events::sync();
    events::frame_end();
}

/// The running task opens a finish.
#[inline(never)]
pub(crate) fn finish_begin() {
    events::finish_begin();
}

/// All that was started in it has ended.
#[inline(never)]
pub(crate) fn finish_end() {
    events::finish_end();
}

/// Starts a task and runs it to its end. `body` must not unwind.
#[inline(never)]
pub(crate) fn run(kind: Kind, place: Place, context: &Context, body: &mut dyn FnMut()) {
    let before = events::current();
    events::spawn(kind, place, 0, here!());
    enter(before, context, body);
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
    run(kind, place, &Context::copy(), &mut || panic = unsafe { catch(job, call) });
    panic
}

/// Runs a job that is the rest of the running task and returns its panic. Another worker may have stolen it.
///
/// # Safety
///
/// As for [`catch`].
#[inline(never)]
pub(crate) unsafe fn run_rest(job: *const u8, call: unsafe fn(*const u8)) -> Option<Payload> {
    let mut panic = None;
    // SAFETY: the caller's promise.
    local::stolen(&mut || panic = unsafe { catch(job, call) });
    panic
}

/// Starts a task, to be run by [`go_on`].
#[inline(never)]
pub(crate) fn start(kind: Kind, place: Place) -> Task {
    let before = events::current();
    // It has no frames yet.
    let here = here!();
    let task = events::spawn(kind, place, here, here);
    events::resume(before);
    task
}

/// The task that [`start`] has made goes on, to its end.
#[inline(never)]
pub(crate) fn go_on(task: Task, context: &Context, body: &mut dyn FnMut()) {
    let before = events::current();
    events::set_stack(task, here!());
    events::resume(task);
    enter(before, context, body);
}

fn enter(before: Task, context: &Context, body: &mut dyn FnMut()) {
    local::task(context, body);
    events::task_end();
    events::resume(before);
}
