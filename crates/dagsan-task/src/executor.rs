//! The serial executor: depth first, with switches where a task must wait. One per thread. Checked programs use this one, and so
//! do those with one worker; `parallel.rs` has the other one, which shares with it all but how tasks start and wait.
//!
//! This is the order that engines for promises need (paper 000, DRDP): a new task runs at once, and its parent goes on
//! when it has ended or must wait.
//!
//! ```text
//!   a task waits ─► is it over?  ──yes──► goes on
//!        ▲             │ no
//!        │             ▼
//!        ├── runs the first ready task, until that ends or waits
//!        │             │ none is ready
//!        │             ▼
//!        └── sleeps; whoever has woken it goes on ......... the main task cannot sleep: a deadlock
//! ```
//!
//! A task that can go on again joins the queue of the ready ones at its end, so the order of everything is a function
//! of the program and its input.
//!
//! **Where a task is.** It runs, or has started or woken the one that runs (a chain that ends in the main task), or is
//! in `ready`, or in `blocked`. If the main task runs, all others are in these two. So if it waits and nobody is ready,
//! every task is blocked. Not all of them at the end of a finish or a procedure, which wait for tasks inside them only:
//! some wait for promises or futures. Those are the deadlock, and their waits fail.
//!
//! **Why pointers to joins are good.** `finish` and `procedure` leave their frame after `finish_end` or `frame_end`,
//! which return when no task that points to the join is left. They do so also when the body panics.
//!
//! **rayon.** Tasks may run rayon's code, and that may start tasks. DagSan knows which task runs; this file does not. A scope
//! of rayon's that a task was started in, though a finish or a procedure outside of it joins the task, is the innermost one
//! for DagSan and would join it too. Such a task is told to be joined by nobody, and sets a promise at its end, which
//! its joins get. (`in_place_scope` is how it comes about.)
//!
//! **What is checked.** The public functions of this crate are generic, so they are compiled with the user's crate, and
//! instrumented. This file is not: what it does to memory is not seen by DagSan. All that generic code calls is
//! `#[inline(never)]`, which keeps it so.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use crate::deadlock::{self, Blocked};
use crate::error::{Failed, Refused};
use crate::events::{self, Kind, Place};
use crate::join::{Anything, Join, Payload};
use crate::latch::{Latch, State};
use crate::parallel::Post;
use crate::slot::Slot;
use crate::task::{Entry, Fiber, Task, Wait};
use crate::{sleepers, workers};

/// How the start of a task came out.
pub(crate) enum Started {
    /// It has ended.
    Ended,
    /// It has ended with a panic, which whoever joins it will see.
    Panicked,
    /// It waits for something, on this fiber.
    Waits(NonNull<Fiber>),
}

pub(crate) struct Executor {
    /// The fiber that runs; none for the main task.
    pub(crate) current: Cell<Option<NonNull<Fiber>>>,
    pub(crate) main: Task,
    /// Fibers without a task.
    pool: Cell<Option<NonNull<Fiber>>>,
    /// Is the present task in an isolated section?
    pub(crate) isolated: Cell<bool>,
    /// Do tasks run in parallel? Decided when the outermost scope is opened.
    pub(crate) parallel: Cell<bool>,
    /// If so, where this thread works, once there was a task.
    pub(crate) post: Cell<Option<NonNull<Post>>>,
    /// Those that can go on, the first one first.
    ready: RefCell<VecDeque<NonNull<Fiber>>>,
    /// Those that wait, by the address of what they wait for and by the number of their wait.
    blocked: RefCell<BTreeMap<(usize, u64), NonNull<Fiber>>>,
    /// How many are in `blocked`: mostly none, which should be cheap to see.
    sleeping: Cell<usize>,
    /// How many waits there were.
    waits: Cell<u64>,
}

thread_local! {
    // Without a destructor, so that every access is one instruction, and so that destructors of other thread-locals may
    // still start tasks. `CLEANUP` does what is left to do.
    pub(crate) static EXECUTOR: ManuallyDrop<Executor> = const {
        ManuallyDrop::new(Executor {
            current: Cell::new(None),
            main: Task::new(),
            pool: Cell::new(None),
            isolated: Cell::new(false),
            parallel: Cell::new(false),
            post: Cell::new(None),
            ready: RefCell::new(VecDeque::new()),
            blocked: RefCell::new(BTreeMap::new()),
            sleeping: Cell::new(0),
            waits: Cell::new(0),
        })
    };

    /// Frees the pool when the thread ends.
    static CLEANUP: Cleanup = const { Cleanup };
}

struct Cleanup;

impl Drop for Cleanup {
    fn drop(&mut self) {
        EXECUTOR.with(|executor| {
            executor.ready.take();
            executor.blocked.take();
            let mut next = executor.pool.take();
            while let Some(fiber) = next {
                // SAFETY: a fiber is in the pool from the end of a task to the start of the next, and this one has just
                // been taken out.
                unsafe {
                    next = fiber.as_ref().task.next.get();
                    Fiber::free(fiber);
                }
            }
        });
    }
}

impl Executor {
    #[inline]
    pub(crate) fn task(&self) -> &Task {
        match self.current.get() {
            // SAFETY: fibers are freed when they are in the pool, and the one that runs is not.
            Some(fiber) => unsafe { &(*fiber.as_ptr()).task },
            None => &self.main,
        }
    }

    pub(crate) fn fiber(&self) -> Result<NonNull<Fiber>, Refused> {
        match self.pool.get() {
            Some(fiber) => {
                // SAFETY: fibers in the pool have not been freed.
                self.pool.set(unsafe { fiber.as_ref() }.task.next.get());
                Ok(fiber)
            }
            None => new_fiber(),
        }
    }

    /// Runs a task, which DagSan hears of by `enter`, until it ends or waits; then the present one goes on. `enter` says which one that is for DagSan: one of rayon's may
    /// have started the other.
    pub(crate) fn run(&self, fiber: NonNull<Fiber>, enter: impl FnOnce(&Task) -> events::Task) -> Started {
        let present = self.current.replace(Some(fiber));
        // SAFETY: freed only once it is in the pool.
        let task = unsafe { &fiber.as_ref().task };
        let running = enter(task);
        task.goes_on.set(running);
        let context = events::set_context(task.context.get());
        // SAFETY: the fiber comes from the pool or from `ready`, so it is of this thread, sleeps, and was not freed.
        unsafe { Fiber::wake(fiber) };
        self.current.set(present);
        events::set_context(context);
        if !task.ended.get() {
            events::resume(running);
            return Started::Waits(fiber);
        }
        task.next.set(self.pool.replace(Some(fiber)));
        if task.panicked.get() { Started::Panicked } else { Started::Ended }
    }

    /// The procedure that joins a task which `by` asks for, if it may start.
    pub(crate) fn spawner(&self, by: By<'_>) -> Result<Option<NonNull<Join>>, Refused> {
        if self.isolated.get() {
            return Err(Refused::Isolated);
        }
        let parent = self.task();
        match by {
            By::Finish(join) if is_inside(parent.finish.get(), join) => Ok(None),
            By::Frame(join) if parent.frame.get() == Some(NonNull::from(join)) => Ok(parent.frame.get()),
            By::Finish(_) => Err(Refused::OtherFinish),
            By::Frame(_) => Err(Refused::OtherFrame),
        }
    }

    #[inline]
    fn wait(&self, wait: Wait, place: Place) -> Result<(), Failed> {
        if wait.is_over() {
            Ok(())
        } else if self.parallel.get() {
            self.wait_in_crew(wait, place)
        } else {
            self.wait_long(wait, place)
        }
    }

    #[cold]
    pub(crate) fn wait_long(&self, wait: Wait, place: Place) -> Result<(), Failed> {
        while !wait.is_over() {
            if self.isolated.get() {
                return Err(Failed::Isolated(wait.describe()));
            }
            let ready = self.ready.borrow_mut().pop_front();
            match (ready, self.current.get()) {
                (Some(fiber), _) => _ = self.run(fiber, |task| events::switch(task.id.get())),
                (None, Some(fiber)) => self.sleep(fiber, wait, place)?,
                (None, None) => self.deadlock(wait, place)?,
            }
        }
        Ok(())
    }

    /// The present task, which is not the main task, sleeps until `wait` is over, or in vain.
    fn sleep(&self, fiber: NonNull<Fiber>, wait: Wait, place: Place) -> Result<(), Failed> {
        // SAFETY: the running fiber is not freed.
        let fiber_ref = unsafe { fiber.as_ref() };
        let number = self.waits.get();
        self.waits.set(number + 1);
        self.blocked.borrow_mut().insert((wait.address(), number), fiber);
        self.sleeping.set(self.sleeping.get() + 1);
        fiber_ref.task.wait.set(Some((wait, place)));
        fiber_ref.task.id.set(events::current());
        fiber_ref.task.context.set(events::context());
        fiber_ref.sleep();
        fiber_ref.task.wait.set(None);
        fiber_ref.task.deadlock.take().map_or(Ok(()), |report| Err(Failed::Deadlock(report)))
    }

    /// What is at `address` is over: those that wait for it are ready, in the order in which they came.
    #[inline]
    fn over(&self, address: usize) {
        if self.sleeping.get() > 0 {
            self.make_ready(address);
        }
    }

    #[cold]
    fn make_ready(&self, address: usize) {
        let mut blocked = self.blocked.borrow_mut();
        events::books(|| {
            while let Some((&key, &fiber)) = blocked.range((address, 0)..=(address, u64::MAX)).next() {
                blocked.remove(&key);
                self.ready.borrow_mut().push_back(fiber);
            }
        });
        self.sleeping.set(blocked.len());
    }

    /// The main task waits, and nobody is ready. Every get that waits fails, and so does this wait if it is a get.
    #[cold]
    fn deadlock(&self, wait: Wait, place: Place) -> Result<(), Failed> {
        let mut blocked: Vec<((usize, u64), NonNull<Fiber>)> =
            self.blocked.borrow().iter().map(|(&key, &fiber)| (key, fiber)).collect();
        blocked.sort_unstable_by_key(|&((_, number), _)| number);
        let mut entries = Vec::new();
        let in_vain = matches!(wait, Wait::Latch(_));
        if in_vain {
            let task = events::current();
            entries.push(Blocked { task, started: None, place, waits_for: wait.describe() });
        }
        let mut elsewhere = wait.is_over();
        for &(key, fiber) in &blocked {
            // SAFETY: blocked fibers have a task, so they are not in the pool, and not freed.
            let task = unsafe { &fiber.as_ref().task };
            let Some((wait, place)) = task.wait.get() else { unreachable!("blocked, and waits for nothing") };
            // Another thread has set a promise meanwhile.
            elsewhere |= wait.is_over();
            if wait.is_over() {
                self.over(key.0);
            }
            let (started, waits_for) = (task.started.get(), wait.describe());
            entries.push(Blocked { task: task.id.get(), started, place, waits_for });
        }
        if elsewhere {
            return Ok(());
        }
        let report = deadlock::report(&entries);
        for &(key, fiber) in &blocked {
            // SAFETY: as above.
            let task = unsafe { &fiber.as_ref().task };
            if let Some((Wait::Latch(_), _)) = task.wait.get() {
                task.deadlock.set(Some(report.clone()));
                self.over(key.0);
            }
        }
        if in_vain { Err(Failed::Deadlock(report)) } else { Ok(()) }
    }
}

/// Makes a fiber, and sees to it that the pool is freed when this thread ends.
#[cold]
fn new_fiber() -> Result<NonNull<Fiber>, Refused> {
    workers::wanted()?;
    // If the thread is ending, and `CLEANUP` has run, then what comes now stays with the process.
    _ = events::books(|| CLEANUP.try_with(|_| ()));
    // It leads to the fibers, and so to all that tasks were started with.
    EXECUTOR.with(|executor| {
        events::runtime_variable(ptr::from_ref(executor).addr(), size_of_val(executor));
    });
    Ok(Fiber::new(Task::new(), run_task)?)
}

/// Runs on the fiber, once per task.
fn run_task(fiber: &Fiber) {
    let task = &fiber.task;
    let (entry, data, finish) = (task.entry.get(), task.data.get(), task.finish.get());
    // SAFETY: `start` was given the two together, and its caller guarantees that they fit. The finish is that in which
    // the task was started, and is open.
    let outcome = caught(|| unsafe { entry(data, finish) });
    task.panicked.set(outcome.is_err());
    let spawner = task.spawner.get();
    if let Err(payload) = outcome {
        // Before it ends: an ended task can do nothing more, not even allocate.
        leave_panic(finish, spawner, payload);
    }
    if let Some(promise) = task.ends.take() {
        events::promise_set(promise);
    }
    events::end_task(task.goes_on.get());
    task.ended.set(true);
    end_task(finish, spawner);
}

/// Runs `body`, and catches its panic: whoever joins the task goes on with it.
pub(crate) fn caught(body: impl FnOnce()) -> Result<(), Payload> {
    catch_unwind(AssertUnwindSafe(body))
}

/// A task, which is about to end, has panicked: whoever joins it goes on with that.
pub(crate) fn leave_panic(finish: Option<NonNull<Join>>, spawner: Option<NonNull<Join>>, payload: Payload) {
    if let Some(join) = spawner.or(finish) {
        // SAFETY: a join lives until its last task has ended, and this one has not. (Module documentation.)
        unsafe { join.as_ref() }.panicked(payload);
    }
}

/// A task has ended: those who join it are told.
pub(crate) fn end_task(finish: Option<NonNull<Join>>, spawner: Option<NonNull<Join>>) {
    EXECUTOR.with(|executor| {
        for join in [finish, spawner].into_iter().flatten() {
            let address = join.as_ptr() as usize;
            // SAFETY: as in `leave_panic`; `running` still counts this task. Whoever is woken when it is 0 runs later, or on another
            // thread: the join is not used here again.
            let running = unsafe { &join.as_ref().running };
            if executor.parallel.get() {
                if running.ended() {
                    sleepers::wake(address);
                }
            } else {
                running.set(running.get() - 1);
                if running.get() == 0 {
                    executor.over(address);
                }
            }
        }
    });
}

// ---- what the generic code calls ---------------------------------------------------------------------------

/// Opens a finish, at `place`.
///
/// # Safety
/// What is at `place` stays there until [`finish_end`] has returned, which is called by the same task, with scopes closed
/// in the reverse order of their opening, and also if there is a panic in between.
#[inline(never)]
pub(crate) unsafe fn finish_begin(place: &mut MaybeUninit<Join>) -> &Join {
    let join = place.write(Join::default());
    EXECUTOR.with(|executor| {
        executor.opens();
        opened(join, events::finish_begin());
        join.outer.set(executor.task().finish.replace(Some(NonNull::from(&*join))));
    });
    join
}

/// Waits for the tasks of the finish, and closes it. Returns the first panic, and leaves nothing that needs to be dropped.
#[inline(never)]
pub(crate) fn finish_end(join: &Join, place: Place) -> Option<Payload> {
    EXECUTOR.with(|executor| {
        wait_for_tasks(executor, join, place);
        join_strays(join);
        executor.task().finish.set(join.outer.get());
        events::finish_end();
        executor.closed();
    });
    join.take_panic()
}

/// Opens a procedure, at `place`.
///
/// # Safety
/// As [`finish_begin`], with [`frame_end`].
#[inline(never)]
pub(crate) unsafe fn frame_begin(place: &mut MaybeUninit<Join>) -> &Join {
    let join = place.write(Join::default());
    EXECUTOR.with(|executor| {
        executor.opens();
        opened(join, events::frame_begin());
        join.outer.set(executor.task().frame.replace(Some(NonNull::from(&*join))));
    });
    join
}

/// Waits for the tasks that the procedure has spawned. Returns the first panic.
#[inline(never)]
pub(crate) fn sync(join: &Join, place: Place) -> Result<Option<Payload>, Failed> {
    EXECUTOR.with(|executor| {
        if executor.task().frame.get() != Some(NonNull::from(join)) {
            return Err(Failed::OtherFrame);
        }
        executor.wait(Wait::Join(NonNull::from(join)), place)?;
        synced(join);
        join.drop_leftovers();
        Ok(join.take_panic())
    })
}

/// Waits for the tasks that the procedure has spawned, and closes it. Returns the first panic, and leaves nothing that
/// needs to be dropped.
#[inline(never)]
pub(crate) fn frame_end(join: &Join, place: Place) -> Option<Payload> {
    EXECUTOR.with(|executor| {
        wait_for_tasks(executor, join, place);
        synced(join);
        executor.task().frame.set(join.outer.get());
        events::frame_end();
        executor.closed();
    });
    join.drop_leftovers();
    join.take_panic()
}

/// The body of a scope has panicked.
#[cold]
#[inline(never)]
pub(crate) fn panicked(join: &Join, payload: Payload) {
    join.panicked(payload);
}

/// A wait at the end of a scope, which must not fail: tasks have pointers into the frame that would be left. It cannot,
/// since only a wait for a latch is ever in vain, and since no task can be started in an isolated section: a scope that
/// was opened in one has none to wait for, and one that was opened before it ends after it.
fn wait_for_tasks(executor: &Executor, join: &Join, place: Place) {
    if executor.wait(Wait::Join(NonNull::from(join)), place).is_err() {
        std::process::abort();
    }
}

/// What tasks of the join will have to know.
fn opened(join: &Join, innermost_finish: u32) {
    join.number.set(innermost_finish);
    join.context.set(events::context());
}

fn synced(join: &Join) {
    join.syncs.set(join.syncs.get() + 1);
    if join.unsynced.replace(false) {
        events::sync();
        join_strays(join);
    }
}

/// Joins those that are joined by promises.
fn join_strays(join: &Join) {
    for promise in join.take_strays() {
        events::promise_get(promise);
    }
}

/// How many syncs the procedure has seen.
#[inline(never)]
pub(crate) fn syncs(join: &Join) -> u64 {
    join.syncs.get()
}

/// Keeps a value until the next sync of the procedure.
#[cold]
#[inline(never)]
pub(crate) fn leave(join: &Join, value: Box<dyn Anything>) {
    join.leave(value);
}

/// Who asks for a task, which decides who joins it.
pub(crate) enum By<'a> {
    /// The scope of this finish. The task belongs to the innermost one, as in X10: that is this one, or inside it.
    Finish(&'a Join),
    /// This procedure. The innermost finish joins the task too, if it is inside the procedure.
    Frame(&'a Join),
}

/// Starts a task and runs it until it ends or waits.
///
/// # Safety
/// `data` fits `entry`, which must be called once, on any fiber of this thread; it may use `data` until this function
/// returns. What it borrows beyond that outlives the join in `by`. If the task is refused, `entry` is not called.
#[inline(never)]
pub(crate) unsafe fn start(
    kind: Kind,
    place: Place,
    by: By<'_>,
    latch: Option<&Latch>,
    entry: Entry,
    data: *mut (),
) -> Result<Started, Box<Refused>> {
    EXECUTOR.with(|executor| {
        let spawner = executor.spawner(by)?;
        let parent = executor.task();
        let fiber = executor.fiber()?;
        // SAFETY: open, so they live. (Module documentation.)
        let joins = [spawner, parent.finish.get()].map(|join| join.map(|join| unsafe { join.as_ref() }));
        let innermost = events::innermost_finish();
        let stray = !joins.iter().flatten().any(|join| join.number.get() == innermost);
        let (kind, ends) = if stray { (Kind::Outer, Some(events::promise_new())) } else { (kind, None) };
        for join in joins.into_iter().flatten() {
            join.running.set(join.running.get() + 1);
            // Means nothing to a finish.
            join.unsynced.set(true);
            if let Some(promise) = ends {
                join.await_stray(promise);
            }
        }
        // SAFETY: just taken from the pool, so it is not freed.
        let Fiber { task, stack: (low, high), .. } = unsafe { fiber.as_ref() };
        task.prepare(place, parent.finish.get(), spawner, entry, data);
        task.ends.set(ends);
        task.context.set(joins.into_iter().flatten().next().map_or(0, |join| join.context.get()));
        Ok(executor.run(fiber, |task| {
            let begun = events::begin_task(kind, place, *low, *high);
            task.id.set(begun.task);
            if let Some(latch) = latch {
                latch.set_number(begun.task, ends);
            }
            begun.parent
        }))
    })
}

/// Is the finish `inner` that of `join`, or inside it?
fn is_inside(inner: Option<NonNull<Join>>, join: &Join) -> bool {
    let mut next = inner;
    while let Some(open) = next {
        if ptr::eq(open.as_ptr(), join) {
            return true;
        }
        // SAFETY: the finishes around the present task are open, so they live.
        next = unsafe { open.as_ref() }.outer.get();
    }
    false
}

/// Waits until the latch is open, and joins what has opened it.
#[inline(never)]
pub(crate) fn get(latch: &Latch, place: Place) -> Result<State, Failed> {
    EXECUTOR.with(|executor| executor.wait(Wait::Latch(NonNull::from(latch)), place))?;
    latch.joined();
    Ok(latch.state())
}

/// Opens the latch, whose value is there if `state` says so.
#[inline(never)]
pub(crate) fn open(latch: &Latch, state: State) {
    let address = ptr::from_ref(latch) as usize;
    if latch.open(state) {
        sleepers::wake(address);
    }
    EXECUTOR.with(|executor| executor.over(address));
}

/// The task on `fiber`, which waits, shall leave its result in `slot` and not with its parent.
#[inline(never)]
pub(crate) fn redirect(fiber: NonNull<Fiber>, slot: Slot) {
    // SAFETY: it waits, so it is not in the pool, and not freed.
    unsafe { fiber.as_ref() }.task.slot.set(Some(slot));
}

/// The slot of the present task, if it was redirected. Takes it: the next call finds none.
#[inline(never)]
pub(crate) fn take_slot() -> Option<Slot> {
    EXECUTOR.with(|executor| executor.task().slot.take())
}

/// The present task enters an isolated section. Says whether it can: it must not be in one.
pub(crate) fn isolated_begin() -> bool {
    EXECUTOR.with(|executor| !executor.isolated.replace(true))
}

/// The present task leaves its isolated section.
pub(crate) fn isolated_end() {
    EXECUTOR.with(|executor| executor.isolated.set(false));
}

/// Moves a value between the frames of a parent and its child. The frame of the parent will be used for other things
/// while the child still runs, so DagSan must not see the child touch it: hence this function, which is not generic.
///
/// # Safety
/// As `ptr::copy_nonoverlapping`, for bytes.
#[cfg_attr(dagsan, inline(never))]
#[cfg_attr(not(dagsan), inline(always))]
pub(crate) unsafe fn move_bytes(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: the caller guarantees it.
    unsafe { ptr::copy_nonoverlapping(from, to, count) };
}
