//! What the drop-in tells DagSan, and the only place where the two meet.
//!
//! Built with `--cfg dagsan`, each function is a call of the runtime that is linked into the checked program. Built
//! without, there is no runtime, and the calls are nothing. Unit tests have a third form, which writes the calls down.

use std::panic::Location;

/// A task's name, until it has ended. Opaque; 0 without DagSan.
pub(crate) type Task = u64;

/// Who joins a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// The finish around it.
    Async = 0,
    /// The next sync of the frame that it was started in.
    Spawn = 1,
    /// Nobody but the end of the program.
    Detached = 3,
}

/// What a program asks for that depends on the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Dependence {
    /// The worker that runs a task.
    Worker = 0,
    /// The items that a task of `par_bridge` gets.
    Bridge = 1,
}

/// A place in the source.
pub(crate) type Place = &'static Location<'static>;

#[cfg(all(not(dagsan), not(test)))]
pub(crate) use self::silent::*;

#[cfg(all(dagsan, not(test)))]
pub(crate) use self::announced::*;

#[cfg(test)]
pub(crate) use self::recorded::*;

#[cfg(all(not(dagsan), not(test)))]
mod silent {
    use super::{Dependence, Kind, Place, Task};

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
        fn promise_new() -> u64;
        fn promise_set(promise: u64);
        fn promise_get(promise: u64);
        fn set_stack(task: Task, low: usize, high: usize);
        fn split(pieces: u32);
        fn schedule_dependent(place: Place, what: Dependence);
        fn runtime_variable(start: usize, size: usize);
        fn worker_begin(worker: u64);
        fn worker_end(worker: u64);
    }
}

#[cfg(all(dagsan, not(test)))]
mod announced {
    use super::{Dependence, Kind, Place, Task};

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
        #[link_name = "__dagsan_promise_new"]
        pub(crate) safe fn promise_new() -> u64;
        #[link_name = "__dagsan_promise_set"]
        pub(crate) safe fn promise_set(promise: u64);
        #[link_name = "__dagsan_promise_get"]
        pub(crate) safe fn promise_get(promise: u64);
        #[link_name = "__dagsan_set_stack"]
        pub(crate) safe fn set_stack(task: Task, low: usize, high: usize);
        #[link_name = "__dagsan_split"]
        pub(crate) safe fn split(pieces: u32);
        #[link_name = "__dagsan_runtime_variable"]
        pub(crate) safe fn runtime_variable(start: usize, size: usize);
        #[link_name = "__dagsan_worker_begin"]
        pub(crate) safe fn worker_begin(worker: u64);
        #[link_name = "__dagsan_worker_end"]
        pub(crate) safe fn worker_end(worker: u64);
        safe fn __dagsan_schedule_dependent(place: Place, what: u32);
        safe fn __dagsan_spawn(kind: u32, place: Place, stack_low: usize, stack_high: usize) -> Task;
    }

    /// Of the kind of a task: it is rayon's.
    const RAYON: u32 = 0x100;

    pub(crate) fn spawn(kind: Kind, place: Place, stack_low: usize, stack_high: usize) -> Task {
        __dagsan_spawn(kind as u32 | RAYON, place, stack_low, stack_high)
    }

    pub(crate) fn schedule_dependent(place: Place, what: Dependence) {
        __dagsan_schedule_dependent(place, what as u32);
    }
}

/// Writes the calls down, in the order in which they are made on this thread.
#[cfg(test)]
mod recorded {
    use std::cell::RefCell;

    use super::{Dependence, Kind, Place, Task};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Call {
        FinishBegin,
        FinishEnd,
        FrameBegin,
        Sync,
        FrameEnd,
        Spawn(Kind, Task),
        TaskEnd,
        Resume(Task),
        PromiseSet(u64),
        PromiseGet(u64),
        Split(u32),
        Depends(Dependence),
        WorkerBegin(u64),
        WorkerEnd(u64),
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
    }

    pub(crate) fn spawn(kind: Kind, _: Place, _: usize, _: usize) -> Task {
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

    pub(crate) fn promise_new() -> u64 {
        LOG.with_borrow_mut(|log| {
            log.promises += 1;
            log.promises
        })
    }

    pub(crate) fn promise_set(promise: u64) {
        call(Call::PromiseSet(promise));
    }

    pub(crate) fn promise_get(promise: u64) {
        call(Call::PromiseGet(promise));
    }

    pub(crate) fn worker_begin(worker: u64) {
        call(Call::WorkerBegin(worker));
    }

    pub(crate) fn worker_end(worker: u64) {
        call(Call::WorkerEnd(worker));
    }

    /// Where stacks and variables are is not written down.
    pub(crate) fn set_stack(_: Task, _: usize, _: usize) {}

    pub(crate) fn runtime_variable(_: usize, _: usize) {}

    pub(crate) fn split(pieces: u32) {
        call(Call::Split(pieces));
    }

    pub(crate) fn schedule_dependent(_: Place, what: Dependence) {
        call(Call::Depends(what));
    }
}
