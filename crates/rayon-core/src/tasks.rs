//! Tasks, run on the stack of whoever runs them, and the frames that join them.
//!
//! The generic code of this crate is instantiated in the program. It hands its closures to these functions as `dyn`, so
//! that all that talks to DagSan is compiled here, without hooks.

use crate::events::{self, Kind, Offer, Place, Task};
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

/// The running task opens a finish. Its number.
#[inline(never)]
pub(crate) fn finish_begin() -> u32 {
    events::finish_begin()
}

/// All that was started in it has ended.
#[inline(never)]
pub(crate) fn finish_end() {
    events::finish_end();
}

/// Starts a task and runs it to its end. `body` must not unwind.
#[inline(never)]
pub(crate) fn run(kind: Kind, place: Place, context: &Context, body: &mut dyn FnMut()) {
    let begun = events::begin_task(kind, place, 0, here!());
    enter(begun.parent, context, body);
}

/// A job, and the function that runs it.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    job: *const u8,
    enter: unsafe fn(*const u8),
}

impl Call {
    /// # Safety
    ///
    /// As for [`catch`], once.
    pub(crate) unsafe fn new(job: *const u8, enter: unsafe fn(*const u8)) -> Call {
        Call { job, enter }
    }

    /// Runs it, and returns its panic. To be called once.
    fn run(self) -> Option<Payload> {
        // SAFETY: the promise of `new`.
        unsafe { catch(self.job, self.enter) }
    }
}

/// Starts a task that runs a job to its end, and returns its panic.
#[inline(never)]
pub(crate) fn run_job(kind: Kind, place: Place, call: Call) -> Option<Payload> {
    let mut panic = None;
    run(kind, place, &Context::copy(), &mut || panic = call.run());
    panic
}

/// The second of a join, for whoever runs it.
#[repr(C)]
struct Rest {
    offer: Offer,
    call: Call,
    context: Context,
    panic: Option<Payload>,
}

/// Runs the first as a task, and the second as the rest of the running task, perhaps at the same time. Returns their panics.
///
/// # Safety
///
/// The second may run on another thread.
#[inline(never)]
pub(crate) unsafe fn run_both(place: Place, first: Call, second: Call) -> (Option<Payload>, Option<Payload>) {
    // Another worker may have stolen it. Its context is made now: later on it is the other thread's to read.
    let mut rest = Rest { offer: Offer::new(), call: second, context: local::elsewhere(), panic: None };
    let rest = &raw mut rest;
    // SAFETY: it stays where it is until the join has ended. Whoever runs it has it for himself, until it is taken back.
    unsafe {
        let offer = (&raw mut (*rest).offer).cast();
        events::join_begin(offer, run_offered, second.enter as usize);
        let first = run_job(Kind::Spawn, place, first);
        if events::take_back(offer) {
            local::stolen(&mut || (*rest).panic = (*rest).call.run());
        }
        events::join_end(offer);
        (first, (*rest).panic.take())
    }
}

/// Runs the second of a join on a thread that has taken it.
extern "C" fn run_offered(offer: *mut Offer) {
    let rest = offer.cast::<Rest>();
    // SAFETY: DagSan gives it to one thread only, while the one that has offered it waits, or runs the first.
    unsafe { local::offered(&(*rest).context, &mut || (*rest).panic = (*rest).call.run()) };
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
    events::set_stack(task, here!());
    let before = events::switch(task);
    enter(before, context, body);
}

fn enter(before: Task, context: &Context, body: &mut dyn FnMut()) {
    local::task(context, body);
    events::end_task(before);
}
