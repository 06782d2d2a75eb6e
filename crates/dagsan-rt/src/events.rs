//! What a task runtime calls: the C interface of the tasks, one line each.
//!
//! None is ever inlined: the frame of each tells where that of its caller ends (`session`).
//!
//! Several task runtimes may run in each other's tasks. None of them remembers which task runs: they ask. What they have to
//! know of each other besides is a word per stack, the *context*: whoever switches stacks keeps it with them.

use std::cell::Cell;
use std::panic::Location as Place;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dagsan_core::contract::Opened;
use dagsan_core::{Event, TaskKind};
use dagsan_findings::{self as findings, ScheduleDependence, ScheduleDependent};

use crate::offers;
use crate::owned;
use crate::scopes::{adopt, close_scope, open_scope};
use crate::session::{self, Inside, in_order};
use crate::start::{self, frame};
use crate::tasks::{self, Birth, Handle, Stack};
use crate::threads;
use crate::turns;

/// The running task opens a finish, which is the innermost around it then, by the number that is returned.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_finish_begin() -> u32 {
    in_order();
    open_scope(frame(), Opened::Finish)
}

/// Its innermost finish ends, and all that was started in it has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_finish_end() {
    in_order();
    close_scope(frame(), Opened::Finish);
}

/// The running task is about to do what is more than to fork and join: all that comes before it is told first.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_in_order() {
    in_order();
}

/// A task runtime has state of this thread's own: what it runs stays here from now on, also what others do in its tasks.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_stay_here() {
    in_order();
    offers::stay_here();
}

/// The running task enters a procedure that spawns. The innermost finish around it, as [`__dagsan_innermost_finish`] has it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_frame_begin() -> u32 {
    open_scope(frame(), Opened::Frame)
}

/// What the procedure has spawned has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_sync() {
    session::called(frame(), session::Session::sync);
}

/// The procedure ends.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_frame_end() {
    close_scope(frame(), Opened::Frame);
}

/// The running task, to go on later.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_current() -> Handle {
    session::with(|session| session.tasks.handle()).unwrap_or(Handle::MAIN)
}

/// The innermost finish around the running task, by a number of its own while it is open; 0 if there is none.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_innermost_finish() -> u32 {
    session::with(|session| session.tasks.innermost_finish()).unwrap_or(0)
}

/// Is the running task in a scope that is checked?
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_is_checked() -> bool {
    session::with(|session| session.in_scope()).unwrap_or(false)
}

/// The whole stack that the running task is on, as far as it is known.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_stack() -> Stack {
    session::with(|session| session.tasks.whole_stack()).unwrap_or_else(threads::stack)
}

thread_local! {
    static CONTEXT: Cell<usize> = const { Cell::new(0) };
}

/// That the context leads to memory says nothing about whose that is.
pub fn context_is_the_runtimes() {
    if let Some(inside) = Inside::enter() {
        CONTEXT
            .with(|context| owned::is_runtimes(ptr::from_ref(context).addr(), size_of_val(context), &inside));
    }
}

/// The context of this stack: 0, or what was set last.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_context() -> usize {
    CONTEXT.get()
}

/// Sets the context, and returns what it was.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_set_context(context: usize) -> usize {
    CONTEXT.replace(context)
}

/// Creates a task and makes it the running one: what follows is on the stack from `low` to `high`, or below `high` on that
/// of the running task if `low` is 0. `kind` is 0 for async, 1 for spawn, 2 for a future, 3 for one that only the end of
/// the program joins, 4 for one that no scope joins, but some promise that it sets; 0x100 is added by rayon.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_spawn(
    kind: u32,
    place: &'static Place<'static>,
    low: usize,
    high: usize,
) -> Handle {
    begin(frame(), kind, place, Stack { low, high }).task
}

/// A task that has begun, and the one that has started it.
#[derive(Debug)]
#[repr(C)]
pub struct Begun {
    task: Handle,
    parent: Handle,
}

/// The same as [`__dagsan_spawn`], for who has to know which task goes on when this one has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_begin_task(
    kind: u32,
    place: &'static Place<'static>,
    low: usize,
    high: usize,
) -> Begun {
    begin(frame(), kind, place, Stack { low, high })
}

#[inline(always)]
fn begin(frame: usize, kind: u32, place: &'static Place<'static>, stack: Stack) -> Begun {
    const NOBODY: Begun = Begun { task: Handle::MAIN, parent: Handle::MAIN };
    let (kind, rayon) = (kind & 0xff, kind & 0x100 != 0);
    let (kind, name) = match (kind, rayon) {
        (0, false) => (TaskKind::Async, findings::TaskKind::Async),
        (0, true) => (TaskKind::Async, findings::TaskKind::Scope),
        (1, false) => (TaskKind::Spawn, findings::TaskKind::Spawn),
        (1, true) => (TaskKind::Spawn, findings::TaskKind::Join),
        (2, _) => (TaskKind::Future, findings::TaskKind::Future),
        (4, false) => (TaskKind::Detached, findings::TaskKind::Async),
        (4, true) => (TaskKind::Detached, findings::TaskKind::Scope),
        _ => (TaskKind::Detached, findings::TaskKind::Detached),
    };
    // Who runs ahead forks, and waits for its order before it does anything else.
    if kind != TaskKind::Spawn {
        in_order();
    }
    let for_good = name == findings::TaskKind::Detached;
    // There may be no scope, and so nobody who looks.
    if for_good && !turns::is_mine() && !adopt() {
        return NOBODY;
    }
    let birth = Birth { name, place: Some(place), call: None };
    session::called(frame, |session| {
        let parent = session.tasks.handle();
        let task = match for_good {
            true => session.spawn_detached(birth, stack),
            false => session.spawn(kind, birth, stack),
        };
        Begun { task, parent }
    })
    .unwrap_or(NOBODY)
}

/// The running task ends.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_task_end() {
    session::called(frame(), session::Session::task_end);
}

/// The running task ends, and that one goes on.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_end_task(next: Handle) {
    session::called(frame(), |session| {
        session.task_end();
        session.resume(next);
    });
}

/// Another task goes on.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_resume(task: Handle) {
    session::called(frame(), |session| session.resume(task));
}

/// The running task joins a future that has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_future_get(future: Handle) {
    in_order();
    session::called(frame(), |session| {
        let task = session.told();
        session.event(Event::FutureGet { task, future: future.task() });
    });
}

/// A promise comes into being, perhaps while nothing is checked.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_promise_new() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}

/// The running task sets a promise.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_promise_set(promise: u64) {
    in_order();
    session::called(frame(), |session| session.promise_set(promise));
}

/// The running task gets a promise that has been set.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_promise_get(promise: u64) {
    in_order();
    session::called(frame(), |session| session.promise_get(promise));
}

/// Nobody has a handle to the future any more.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_future_drop(future: Handle) {
    in_order();
    session::with(|session| session.future_drop(future));
}

/// Nobody has a handle to the promise any more.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_promise_drop(promise: u64) {
    in_order();
    session::with(|session| session.promise_drop(promise));
}

/// The running task enters an isolated section.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_isolated_begin() {
    in_order();
    session::called(frame(), session::Session::isolated_begin);
}

/// It leaves the section.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_isolated_end() {
    in_order();
    session::called(frame(), session::Session::isolated_end);
}

/// A task that was started and has not run yet will be below `high` on the stack of the running one, where no frames are
/// any more.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_set_stack(task: Handle, high: usize) {
    in_order();
    session::called(frame(), |session| session.set_stack(task, high));
}

/// A thread-local variable of this thread is the task runtime's own: that it leads to memory says nothing about whose
/// that is.
#[unsafe(no_mangle)]
pub extern "C" fn __dagsan_runtime_variable(start: usize, size: usize) {
    if start::is_on()
        && let Some(inside) = Inside::enter()
    {
        owned::is_runtimes(start, size, &inside);
    }
}

thread_local! {
    static KEEPS_BOOKS: Cell<bool> = const { Cell::new(false) };
}

/// What the allocator writes and frees on this thread from here on, or until here, is a task runtime's own business: lists that it
/// keeps of tasks, and that parallel tasks make grow, also when they have ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_keep_books(keeps: bool) {
    KEEPS_BOOKS.set(keeps);
}

/// Does a task runtime keep its books?
pub fn keeps_books() -> bool {
    KEEPS_BOOKS.get()
}

/// Parallel iterators are split into about so many pieces, or down to single items (0).
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_split(pieces: u32) {
    session::called(frame(), |session| session.uses.split = Some(pieces));
}

/// The running task is on a worker, which runs one task at a time. Whatever number the worker has, no other has it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_worker_begin(worker: u64) {
    in_order();
    session::called(frame(), |session| session.worker_begin(worker));
}

/// It is there no longer.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_worker_end(worker: u64) {
    in_order();
    session::called(frame(), |session| session.worker_end(worker));
}

/// The running task asks for something that depends on the schedule: 0 which worker runs it, 1 which items it gets.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_schedule_dependent(place: &'static Place<'static>, what: u32) {
    in_order();
    session::called(frame(), |session| {
        let what = match what {
            0 => ScheduleDependent::Worker,
            _ => ScheduleDependent::Bridge,
        };
        let place = Some(tasks::place(place));
        let known = &mut session.uses.schedule;
        match known.iter_mut().find(|known| known.what == what && known.place == place) {
            Some(known) => known.count += 1,
            None => {
                known.push(ScheduleDependence {
                    what,
                    place,
                    stack: None,
                    other: None,
                    call: None,
                    count: 1,
                });
            }
        }
    });
}

/// A task that waits for ever, as a task runtime tells it.
#[derive(Debug)]
#[repr(C)]
pub struct Blocked {
    task: Handle,
    place: &'static Place<'static>,
    waits_for: *const u8,
    waits_for_len: usize,
}

/// Tasks remain, and none can run.
///
/// # Safety
///
/// `blocked` points to `count` entries, whose texts are UTF-8.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn __dagsan_deadlock(blocked: *const Blocked, count: usize) {
    // SAFETY: the caller's promise.
    let blocked = unsafe { std::slice::from_raw_parts(blocked, count) };
    in_order();
    session::called(frame(), |session| {
        session.tell();
        let tell = |blocked: &Blocked| {
            // SAFETY: the caller's promise.
            let text = unsafe { std::slice::from_raw_parts(blocked.waits_for, blocked.waits_for_len) };
            let task = session.tasks.of_handle(blocked.task).0;
            session.found.mention(task, &session.tasks, None);
            let waits_for = String::from_utf8_lossy(text).into_owned();
            findings::Blocked { task, place: Some(tasks::place(blocked.place)), waits_for }
        };
        let blocked = blocked.iter().map(tell).collect();
        session.deadlock.get_or_insert(findings::End::Deadlock(blocked));
    });
}
