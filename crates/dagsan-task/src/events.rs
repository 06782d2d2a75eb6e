//! What the executor tells DagSan, and the only place where the two meet.
//!
//! Built with `--cfg dagsan`, each function is a call of the runtime that is linked into the checked program. Built
//! without, there is no runtime, and the calls are nothing. Unit tests have a third form, which writes the calls
//! down, so that `tests.rs` can hold them against the rules of the core.
//!
//! A join (`finish_end`, `sync`, `future_get`, `promise_get`) is announced when what it waits for is over, never
//! before. `spawn` and `resume` say whose code runs from there on.

use std::panic::Location;

/// A task's name, for ever. Opaque; 0 without DagSan.
pub(crate) type Task = u64;

/// How a task was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// Joined by the finish around it.
    Async = 0,
    /// Joined by the next sync of its procedure.
    Spawn = 1,
    /// Joined by gets, and by the finish around it.
    Future = 2,
}

/// A place in the source.
pub(crate) type Place = &'static Location<'static>;

#[cfg(all(not(dagsan), not(test)))]
pub(crate) use silent::*;

#[cfg(all(dagsan, not(test)))]
pub(crate) use announced::*;

#[cfg(test)]
pub(crate) use recorded::*;

#[cfg(all(not(dagsan), not(test)))]
mod silent {
    use super::{Kind, Place, Task};
    use crate::deadlock::Blocked;

    macro_rules! nothing {
        ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
            $(
                #[inline(always)]
                pub(crate) fn $name($($argument: $kind),*) $(-> $result)? {
                    $(let _ = $argument;)*
                    $(<$result>::default())?
                }
            )*
        };
    }

    nothing! {
        fn finish_begin();
        fn finish_end();
        fn frame_begin();
        fn sync();
        fn frame_end();
        fn spawn(kind: Kind, place: Place, stack_low: usize, stack_high: usize) -> Task;
        fn task_end();
        fn resume(task: Task);
        fn main() -> Task;
        fn future_get(task: Task);
        fn promise_new() -> u64;
        fn promise_set(promise: u64);
        fn future_drop(task: Task);
        fn promise_get(promise: u64);
        fn promise_drop(promise: u64);
        fn runtime_variable(start: usize, size: usize);
        fn isolated_begin();
        fn isolated_end();
        fn deadlock(blocked: &[Blocked]);
    }
}

#[cfg(all(dagsan, not(test)))]
mod announced {
    use super::{Kind, Place, Task};
    use crate::deadlock::Blocked;

    /// [`Blocked`] as C sees it.
    #[repr(C)]
    struct RawBlocked {
        task: Task,
        place: Place,
        waits_for: *const u8,
        waits_for_len: usize,
    }

    // The runtime knows a `Location` as Rust does: it is compiled by the same compiler, into the same program.
    #[allow(improper_ctypes)]
    unsafe extern "C" {
        #[link_name = "__dagsan_finish_begin"]
        pub(crate) safe fn finish_begin();
        #[link_name = "__dagsan_finish_end"]
        pub(crate) safe fn finish_end();
        #[link_name = "__dagsan_frame_begin"]
        pub(crate) safe fn frame_begin();
        #[link_name = "__dagsan_sync"]
        pub(crate) safe fn sync();
        #[link_name = "__dagsan_frame_end"]
        pub(crate) safe fn frame_end();
        #[link_name = "__dagsan_task_end"]
        pub(crate) safe fn task_end();
        #[link_name = "__dagsan_resume"]
        pub(crate) safe fn resume(task: Task);
        #[link_name = "__dagsan_main"]
        pub(crate) safe fn main() -> Task;
        #[link_name = "__dagsan_future_get"]
        pub(crate) safe fn future_get(task: Task);
        #[link_name = "__dagsan_promise_new"]
        pub(crate) safe fn promise_new() -> u64;
        #[link_name = "__dagsan_promise_set"]
        pub(crate) safe fn promise_set(promise: u64);
        #[link_name = "__dagsan_promise_get"]
        pub(crate) safe fn promise_get(promise: u64);
        #[link_name = "__dagsan_future_drop"]
        pub(crate) safe fn future_drop(task: Task);
        #[link_name = "__dagsan_promise_drop"]
        pub(crate) safe fn promise_drop(promise: u64);
        #[link_name = "__dagsan_runtime_variable"]
        pub(crate) safe fn runtime_variable(start: usize, size: usize);
        #[link_name = "__dagsan_isolated_begin"]
        pub(crate) safe fn isolated_begin();
        #[link_name = "__dagsan_isolated_end"]
        pub(crate) safe fn isolated_end();
        safe fn __dagsan_spawn(kind: u32, place: Place, stack_low: usize, stack_high: usize) -> Task;
        fn __dagsan_deadlock(blocked: *const RawBlocked, count: usize);
    }

    pub(crate) fn spawn(kind: Kind, place: Place, stack_low: usize, stack_high: usize) -> Task {
        __dagsan_spawn(kind as u32, place, stack_low, stack_high)
    }

    pub(crate) fn deadlock(blocked: &[Blocked]) {
        let raw: Vec<RawBlocked> = blocked
            .iter()
            .map(|entry| RawBlocked {
                task: entry.task,
                place: entry.place,
                waits_for: entry.waits_for.as_ptr(),
                waits_for_len: entry.waits_for.len(),
            })
            .collect();
        // SAFETY: pointer and count are those of a vector that lives until the call returns, and so do the texts in
        // `blocked` that it points to; the runtime copies what it keeps.
        unsafe { __dagsan_deadlock(raw.as_ptr(), raw.len()) }
    }
}

/// Writes the calls down, in the order in which they are made on this thread. Tasks and promises are numbered as the
/// core numbers them.
#[cfg(test)]
pub(crate) mod recorded {
    use std::cell::RefCell;

    use super::{Kind, Place, Task};
    use crate::deadlock::Blocked;

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) enum Call {
        FinishBegin,
        FinishEnd,
        FrameBegin,
        Sync,
        FrameEnd,
        Spawn(Kind, Task),
        TaskEnd,
        Resume(Task),
        FutureGet(Task),
        PromiseNew(u64),
        PromiseSet(u64),
        PromiseGet(u64),
        FutureDrop(Task),
        PromiseDrop(u64),
        IsolatedBegin,
        IsolatedEnd,
        Deadlock(Vec<(Task, String)>),
    }

    #[derive(Default)]
    struct Log {
        calls: Vec<Call>,
        tasks: u64,
        promises: u64,
    }

    thread_local! {
        static LOG: RefCell<Log> = RefCell::default();
    }

    fn call(call: Call) {
        LOG.with_borrow_mut(|log| log.calls.push(call));
    }

    /// The calls that `program` makes.
    pub(crate) fn calls_of(program: impl FnOnce()) -> Vec<Call> {
        LOG.take();
        program();
        LOG.take().calls
    }

    macro_rules! plain {
        ($($name:ident => $call:ident;)*) => {
            $(pub(crate) fn $name() { call(Call::$call); })*
        };
    }

    plain! {
        finish_begin => FinishBegin;
        finish_end => FinishEnd;
        frame_begin => FrameBegin;
        sync => Sync;
        frame_end => FrameEnd;
        task_end => TaskEnd;
        isolated_begin => IsolatedBegin;
        isolated_end => IsolatedEnd;
    }

    /// Where variables are is not written down.
    pub(crate) fn runtime_variable(_: usize, _: usize) {}

    pub(crate) fn spawn(kind: Kind, _: Place, stack_low: usize, stack_high: usize) -> Task {
        let local = 0u8;
        let here = &raw const local as usize;
        assert!(
            stack_low < stack_high && !(stack_low..stack_high).contains(&here),
            "called on the child's stack"
        );
        let task = LOG.with_borrow_mut(|log| {
            log.tasks += 1;
            log.tasks
        });
        call(Call::Spawn(kind, task));
        task
    }

    pub(crate) fn resume(task: Task) {
        call(Call::Resume(task));
    }

    pub(crate) fn main() -> Task {
        0
    }

    pub(crate) fn future_get(task: Task) {
        call(Call::FutureGet(task));
    }

    pub(crate) fn promise_new() -> u64 {
        let promise = LOG.with_borrow_mut(|log| {
            log.promises += 1;
            log.promises - 1
        });
        call(Call::PromiseNew(promise));
        promise
    }

    pub(crate) fn promise_set(promise: u64) {
        call(Call::PromiseSet(promise));
    }

    pub(crate) fn promise_get(promise: u64) {
        call(Call::PromiseGet(promise));
    }

    pub(crate) fn future_drop(task: Task) {
        call(Call::FutureDrop(task));
    }

    pub(crate) fn promise_drop(promise: u64) {
        call(Call::PromiseDrop(promise));
    }

    pub(crate) fn deadlock(blocked: &[Blocked]) {
        call(Call::Deadlock(blocked.iter().map(|entry| (entry.task, entry.waits_for.clone())).collect()));
    }
}
