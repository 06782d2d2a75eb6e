//! What task runtimes tell DagSan, and the only place where they and DagSan meet.
//!
//! One file for both, rayon's drop-in and dagsan-task, which includes it; each uses a part. Built with `--cfg dagsan`, each
//! function is a call of the runtime that is linked into the checked program. Built without, there is no runtime, and the
//! calls are nothing. Unit tests have a third form, which writes the calls down.
//!
//! A join (`finish_end`, `sync`, `future_get`, `promise_get`) is announced when what it waits for is over, never
//! before. `spawn`, `begin_task`, `end_task` and `resume` say whose code runs from there on, and `current` asks: a task of either runtime may have
//! started tasks of the other.
//!
//! The *context* is a word per stack, of the drop-in's own (`local.rs` there). dagsan-task, which switches stacks, keeps it
//! for those that sleep, and has a task begin with that of the scope it belongs to.

use std::panic::Location;
use std::sync::atomic::AtomicU32;

/// A task's name, until it has ended; that of a future for ever. Opaque; 0 without DagSan.
pub(crate) type Task = u64;

/// Who joins a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// The finish around it.
    Async = 0,
    /// The next sync of the procedure that it was started in, and the finish around it.
    Spawn = 1,
    /// Gets, and the finish around it.
    Future = 2,
    /// Nobody but the end of the program.
    Detached = 3,
    /// A scope that is not the innermost one, where the task is started, by way of a promise that the task sets at its end.
    Outer = 4,
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

/// A stack in memory.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Stack {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

/// A task that has begun, and the one that has started it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Begun {
    pub(crate) task: Task,
    pub(crate) parent: Task,
}

/// A task that waits for ever: where, and for what.
pub(crate) struct Blocked<'a> {
    pub(crate) task: Task,
    pub(crate) place: Place,
    pub(crate) waits_for: &'a str,
}

/// The second of a join, which others may run before its turn: what DagSan has of it, in a frame of the join.
///
/// ```text
///   [ run │ state │ DagSan's own … ]      state: 0, 1 nobody else has heard of it; from 2 on somebody has
///     8     4       52 bytes
/// ```
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct Offer {
    run: usize,
    state: AtomicU32,
    room: [u32; 13],
}

impl Offer {
    pub(crate) const fn new() -> Offer {
        Offer { run: 0, state: AtomicU32::new(OWN), room: [0; 13] }
    }
}

/// It is taken back.
const OWN: u32 = 1;

/// A place in the source.
pub(crate) type Place = &'static Location<'static>;

/// Changes a list of the runtime's own, which tasks share without the program's knowing. Its memory grows unseen.
#[inline]
pub(crate) fn books<R>(change: impl FnOnce() -> R) -> R {
    keep_books(true);
    let result = change();
    keep_books(false);
    result
}

/// That task goes on. Returns the one that has run so far.
pub(crate) fn switch(to: Task) -> Task {
    let from = current();
    resume(to);
    from
}

/// A promise that is set here and now.
pub(crate) fn promise_here() -> u64 {
    let promise = promise_new();
    promise_set(promise);
    promise
}

#[cfg(all(not(dagsan), not(test)))]
pub(crate) use self::silent::*;

#[cfg(all(dagsan, not(test)))]
pub(crate) use self::announced::*;

#[cfg(test)]
pub(crate) use self::recorded::*;

#[cfg(all(not(dagsan), not(test)))]
mod silent {
    use super::{Begun, Blocked, Dependence, Kind, Place, Task};

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
        fn finish_begin() -> u32;
        fn finish_end();
        fn innermost_finish() -> u32;
        fn frame_begin() -> u32;
        fn sync();
        fn frame_end();
        fn spawn(kind: Kind, place: Place, low: usize, high: usize) -> Task;
        fn begin_task(kind: Kind, place: Place, low: usize, high: usize) -> Begun;
        fn end_task(next: Task);
        fn current() -> Task;
        fn is_checked() -> bool;
        fn resume(task: Task);
        fn future_get(task: Task);
        fn promise_new() -> u64;
        fn promise_set(promise: u64);
        fn promise_get(promise: u64);
        fn future_drop(task: Task);
        fn promise_drop(promise: u64);
        fn isolated_begin();
        fn isolated_end();
        fn deadlock(blocked: &[Blocked<'_>]);
        fn set_stack(task: Task, high: usize);
        fn keep_books(keeps: bool);
        fn split(pieces: u32);
        fn schedule_dependent(place: Place, what: Dependence);
        fn runtime_variable(start: usize, size: usize);
        fn worker_begin(worker: u64);
        fn worker_end(worker: u64);
    }

    nothing! {
        fn in_order();
        fn stay_here();
    }

    pub(crate) use super::context::{context, set_context};
    #[allow(unused_imports, reason = "for rayon's drop-in")]
    pub(crate) use super::serial::{join_begin, join_end, take_back};
}

#[cfg(all(dagsan, not(test)))]
mod announced {
    use std::sync::atomic::Ordering::Relaxed;

    use super::{Begun, Blocked, Dependence, Kind, OWN, Offer, Place, Stack, Task};

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
        pub(crate) safe fn finish_begin() -> u32;
        #[link_name = "__dagsan_finish_end"]
        pub(crate) safe fn finish_end();
        #[link_name = "__dagsan_innermost_finish"]
        pub(crate) safe fn innermost_finish() -> u32;
        #[link_name = "__dagsan_frame_begin"]
        pub(crate) safe fn frame_begin() -> u32;
        #[link_name = "__dagsan_sync"]
        pub(crate) safe fn sync();
        #[link_name = "__dagsan_frame_end"]
        pub(crate) safe fn frame_end();
        #[link_name = "__dagsan_end_task"]
        pub(crate) safe fn end_task(next: Task);
        #[link_name = "__dagsan_current"]
        pub(crate) safe fn current() -> Task;
        #[link_name = "__dagsan_is_checked"]
        pub(crate) safe fn is_checked() -> bool;
        #[link_name = "__dagsan_resume"]
        pub(crate) safe fn resume(task: Task);
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
        #[link_name = "__dagsan_isolated_begin"]
        pub(crate) safe fn isolated_begin();
        #[link_name = "__dagsan_isolated_end"]
        pub(crate) safe fn isolated_end();
        #[link_name = "__dagsan_context"]
        pub(crate) safe fn context() -> usize;
        #[link_name = "__dagsan_set_context"]
        pub(crate) safe fn set_context(context: usize) -> usize;
        #[link_name = "__dagsan_stack"]
        pub(crate) safe fn stack() -> Stack;
        #[link_name = "__dagsan_set_stack"]
        pub(crate) safe fn set_stack(task: Task, high: usize);
        #[link_name = "__dagsan_keep_books"]
        pub(crate) safe fn keep_books(keeps: bool);
        #[link_name = "__dagsan_split"]
        pub(crate) safe fn split(pieces: u32);
        #[link_name = "__dagsan_runtime_variable"]
        pub(crate) safe fn runtime_variable(start: usize, size: usize);
        #[link_name = "__dagsan_worker_begin"]
        pub(crate) safe fn worker_begin(worker: u64);
        #[link_name = "__dagsan_worker_end"]
        pub(crate) safe fn worker_end(worker: u64);
        #[link_name = "__dagsan_in_order"]
        pub(crate) safe fn in_order();
        #[link_name = "__dagsan_stay_here"]
        pub(crate) safe fn stay_here();
        #[link_name = "__dagsan_join_begin"]
        pub(crate) fn join_begin(offer: *mut Offer, run: extern "C" fn(*mut Offer), code: usize);
        #[link_name = "__dagsan_join_end"]
        pub(crate) fn join_end(offer: *mut Offer);
        fn __dagsan_take_back(offer: *mut Offer) -> bool;
        safe fn __dagsan_schedule_dependent(place: Place, what: u32);
        safe fn __dagsan_spawn(kind: u32, place: Place, low: usize, high: usize) -> Task;
        safe fn __dagsan_begin_task(kind: u32, place: Place, low: usize, high: usize) -> Begun;
        fn __dagsan_deadlock(blocked: *const RawBlocked, count: usize);
    }

    /// Is the second of the join to be run now? If not, somebody has.
    ///
    /// # Safety
    ///
    /// The offer is that of a join that has begun, and whose first has ended.
    #[inline]
    pub(crate) unsafe fn take_back(offer: *mut Offer) -> bool {
        // SAFETY: the caller's promise. As long as nobody has heard of it, this thread alone changes the state.
        unsafe {
            let state = &(*offer).state;
            if state.load(Relaxed) > OWN {
                return __dagsan_take_back(offer);
            }
            state.store(OWN, Relaxed);
        }
        true
    }

    pub(crate) fn spawn(kind: Kind, place: Place, low: usize, high: usize) -> Task {
        __dagsan_spawn(kind as u32 | crate::RUNTIME, place, low, high)
    }

    pub(crate) fn begin_task(kind: Kind, place: Place, low: usize, high: usize) -> Begun {
        __dagsan_begin_task(kind as u32 | crate::RUNTIME, place, low, high)
    }

    pub(crate) fn schedule_dependent(place: Place, what: Dependence) {
        __dagsan_schedule_dependent(place, what as u32);
    }

    pub(crate) fn deadlock(blocked: &[Blocked<'_>]) {
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

/// Joins, where there is nobody who could run the second.
#[cfg(any(not(dagsan), test))]
mod serial {
    use super::{Offer, frame_begin, frame_end, sync};

    pub(crate) unsafe fn join_begin(_: *mut Offer, _: extern "C" fn(*mut Offer), _: usize) {
        frame_begin();
    }

    pub(crate) unsafe fn take_back(_: *mut Offer) -> bool {
        true
    }

    pub(crate) unsafe fn join_end(_: *mut Offer) {
        sync();
        frame_end();
    }
}

/// The context, where there is no DagSan to keep it.
#[cfg(any(not(dagsan), test))]
mod context {
    use std::cell::Cell;

    thread_local! {
        static CONTEXT: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn context() -> usize {
        CONTEXT.get()
    }

    pub(crate) fn set_context(context: usize) -> usize {
        CONTEXT.replace(context)
    }
}

/// Writes the calls down, in the order in which they are made on this thread. Tasks and promises are numbered as the
/// core numbers them.
#[cfg(test)]
pub(crate) mod recorded {
    use std::cell::RefCell;
    use std::collections::{HashMap, HashSet};

    use super::{Begun, Blocked, Dependence, Kind, Place, Task};

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
        current: Task,
        /// The finishes around each task, innermost last.
        finishes: HashMap<Task, Vec<u32>>,
        opened: u32,
        /// How many scopes are open. If none is, and no task is detached, nobody looks.
        scopes: u32,
        /// The tasks that are on workers.
        seats: HashSet<(Task, u64)>,
    }

    impl Log {
        fn around(&mut self) -> &mut Vec<u32> {
            self.finishes.entry(self.current).or_default()
        }
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
        ($($name:ident($($argument:ident: $kind:ty)?) => $call:ident;)*) => {
            $(pub(crate) fn $name($($argument: $kind)?) { call(Call::$call$(($argument))?); })*
        };
    }

    plain! {
        sync() => Sync;
        isolated_begin() => IsolatedBegin;
        isolated_end() => IsolatedEnd;
        future_get(task: Task) => FutureGet;
        promise_set(promise: u64) => PromiseSet;
        promise_get(promise: u64) => PromiseGet;
        future_drop(task: Task) => FutureDrop;
        promise_drop(promise: u64) => PromiseDrop;
        split(pieces: u32) => Split;
    }

    pub(crate) fn frame_begin() -> u32 {
        call(Call::FrameBegin);
        LOG.with_borrow_mut(|log| log.scopes += 1);
        innermost_finish()
    }

    pub(crate) fn frame_end() {
        call(Call::FrameEnd);
        LOG.with_borrow_mut(|log| log.scopes -= 1);
    }

    pub(crate) fn finish_begin() -> u32 {
        call(Call::FinishBegin);
        LOG.with_borrow_mut(|log| {
            log.scopes += 1;
            log.opened += 1;
            let finish = log.opened;
            log.around().push(finish);
            finish
        })
    }

    pub(crate) fn finish_end() {
        call(Call::FinishEnd);
        LOG.with_borrow_mut(|log| {
            log.scopes -= 1;
            log.around().pop();
        });
    }

    pub(crate) fn innermost_finish() -> u32 {
        LOG.with_borrow_mut(|log| log.around().last().copied().unwrap_or(0))
    }

    pub(crate) fn spawn(kind: Kind, _: Place, low: usize, high: usize) -> Task {
        let local = 0u8;
        let here = &raw const local as usize;
        assert!(low == 0 || !(low..high).contains(&here), "called on the child's stack");
        let outlives = matches!(kind, Kind::Detached | Kind::Outer);
        let finish = if outlives { 0 } else { innermost_finish() };
        let task = LOG.with_borrow_mut(|log| {
            log.scopes += u32::from(kind == Kind::Detached);
            log.tasks += 1;
            log.current = log.tasks;
            log.around().push(finish);
            log.tasks
        });
        call(Call::Spawn(kind, task));
        task
    }

    pub(crate) fn begin_task(kind: Kind, place: Place, low: usize, high: usize) -> Begun {
        let parent = current();
        Begun { task: spawn(kind, place, low, high), parent }
    }

    pub(crate) fn end_task(next: Task) {
        call(Call::TaskEnd);
        resume(next);
    }

    pub(crate) fn current() -> Task {
        LOG.with_borrow(|log| log.current)
    }

    pub(crate) fn resume(task: Task) {
        call(Call::Resume(task));
        LOG.with_borrow_mut(|log| log.current = task);
    }

    pub(crate) fn promise_new() -> u64 {
        let promise = LOG.with_borrow_mut(|log| {
            log.promises += 1;
            log.promises - 1
        });
        call(Call::PromiseNew(promise));
        promise
    }

    pub(crate) fn deadlock(blocked: &[Blocked<'_>]) {
        let entry = |entry: &Blocked<'_>| (entry.task, entry.waits_for.to_owned());
        call(Call::Deadlock(blocked.iter().map(entry).collect()));
    }

    pub(crate) fn is_checked() -> bool {
        LOG.with_borrow(|log| log.scopes > 0)
    }

    pub(crate) fn schedule_dependent(_: Place, what: Dependence) {
        if is_checked() {
            call(Call::Depends(what));
        }
    }

    pub(crate) fn worker_begin(worker: u64) {
        if is_checked() && LOG.with_borrow_mut(|log| log.seats.insert((log.current, worker))) {
            call(Call::WorkerBegin(worker));
        }
    }

    pub(crate) fn worker_end(worker: u64) {
        if LOG.with_borrow_mut(|log| log.seats.remove(&(log.current, worker))) {
            call(Call::WorkerEnd(worker));
        }
    }

    /// Where stacks and variables are is not written down.
    pub(crate) fn set_stack(_: Task, _: usize) {}

    pub(crate) fn runtime_variable(_: usize, _: usize) {}

    pub(crate) fn keep_books(_: bool) {}

    pub(crate) fn in_order() {}

    pub(crate) fn stay_here() {}

    pub(crate) use super::context::{context, set_context};
    #[allow(unused_imports, reason = "for rayon's drop-in")]
    pub(crate) use super::serial::{join_begin, join_end, take_back};
}
