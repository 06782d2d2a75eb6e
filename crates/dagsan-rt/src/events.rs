//! What a task runtime calls: the C interface of the tasks, one line each.
//!
//! None is ever inlined: the frame of each tells where that of its caller ends (`session`).

use std::panic::Location as Place;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dagsan_core::{Event, TaskKind};
use dagsan_findings::{self as findings, ScheduleDependence, ScheduleDependent};

use crate::owned;
use crate::session::{self, Inside, close_scope, open_scope};
use crate::start::frame;
use crate::tasks::{self, Handle, Stack};

/// The running task opens a finish.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_finish_begin() {
    open_scope(frame(), |task| Event::FinishBegin { task });
}

/// Its innermost finish ends, and all that was started in it has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_finish_end() {
    close_scope(frame(), |task| Event::FinishEnd { task });
}

/// The running task enters a procedure that spawns.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_frame_begin() {
    open_scope(frame(), |task| Event::FrameBegin { task });
}

/// What the procedure has spawned has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_sync() {
    session::called(frame(), |session| session.event(Event::Sync { task: session.tasks.current() }));
}

/// The procedure ends.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_frame_end() {
    close_scope(frame(), |task| Event::FrameEnd { task });
}

/// Creates a task and makes it the running one: what follows is on the stack from `low` to `high`. `kind` is 0 for
/// async, 1 for spawn, 2 for a future, 3 for one that only the end of the program joins.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_spawn(
    kind: u32,
    place: &'static Place<'static>,
    low: usize,
    high: usize,
) -> Handle {
    let kind = match kind {
        0 => TaskKind::Async,
        1 => TaskKind::Spawn,
        2 => TaskKind::Future,
        _ => TaskKind::Detached,
    };
    session::called(frame(), |session| session.spawn(kind, place, Stack { low, high }))
        .unwrap_or(Handle::MAIN)
}

/// The running task ends.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_task_end() {
    session::called(frame(), session::Session::task_end);
}

/// Another task goes on.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_resume(task: Handle) {
    session::called(frame(), |session| session.resume(task));
}

/// The task that runs outside of all others.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_main() -> Handle {
    Handle::MAIN
}

/// The running task joins a future that has ended.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_future_get(future: Handle) {
    session::called(frame(), |session| {
        session.event(Event::FutureGet { task: session.tasks.current(), future: future.task() });
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
    session::called(frame(), |session| session.promise_set(promise));
}

/// The running task gets a promise that has been set.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_promise_get(promise: u64) {
    session::called(frame(), |session| session.promise_get(promise));
}

/// Nobody has a handle to the future any more.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_future_drop(future: Handle) {
    session::with(|session| session.future_drop(future));
}

/// Nobody has a handle to the promise any more.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_promise_drop(promise: u64) {
    session::with(|session| session.promise_drop(promise));
}

/// The running task enters an isolated section.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_isolated_begin() {
    session::called(frame(), session::Session::isolated_begin);
}

/// It leaves the section.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_isolated_end() {
    session::called(frame(), session::Session::isolated_end);
}

/// A task that was started and has not run yet will be on the stack from `low` to `high`, where no frames are any more.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_set_stack(task: Handle, low: usize, high: usize) {
    session::called(frame(), |session| session.set_stack(task, Stack { low, high }));
}

/// A thread-local variable of this thread is the task runtime's own: that it leads to memory says nothing about whose
/// that is.
#[unsafe(no_mangle)]
pub extern "C" fn __dagsan_runtime_variable(start: usize, size: usize) {
    if let Some(inside) = Inside::enter() {
        owned::is_runtimes(start, size, &inside);
    }
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
    session::called(frame(), |session| session.worker_begin(worker));
}

/// It is there no longer.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_worker_end(worker: u64) {
    session::called(frame(), |session| session.worker_end(worker));
}

/// The running task asks for something that depends on the schedule: 0 which worker runs it, 1 which items it gets.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __dagsan_schedule_dependent(place: &'static Place<'static>, what: u32) {
    session::called(frame(), |session| {
        let what = match what {
            0 => ScheduleDependent::Worker,
            _ => ScheduleDependent::Bridge,
        };
        let place = Some(tasks::place(place));
        let known = &mut session.uses.schedule;
        match known.iter_mut().find(|known| known.what == what && known.place == place) {
            Some(known) => known.count += 1,
            None => known.push(ScheduleDependence { what, place, stack: None, count: 1 }),
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
    session::called(frame(), |session| {
        let tell = |blocked: &Blocked| {
            // SAFETY: the caller's promise.
            let text = unsafe { std::slice::from_raw_parts(blocked.waits_for, blocked.waits_for_len) };
            let task = blocked.task.task().0;
            session.tasks.mention(task, &mut session.found.tasks);
            let waits_for = String::from_utf8_lossy(text).into_owned();
            findings::Blocked { task, place: Some(tasks::place(blocked.place)), waits_for }
        };
        let blocked = blocked.iter().map(tell).collect();
        session.deadlock.get_or_insert(findings::End::Deadlock(blocked));
    });
}
