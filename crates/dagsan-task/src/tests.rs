//! What the executor tells DagSan, held against the rules of the core.
//!
//! The calls of a program are written down (`events::recorded`) and replayed into the core's own stream, which checks
//! every event. Some programs are also compared call by call.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dagsan_core::{Consumer, Dropped, Error, Event, PromiseId, Step, Strand, Stream, TaskId, TaskKind};

use crate::events::Kind;
use crate::events::recorded::Call::{self, *};
use crate::events::recorded::calls_of;
use crate::{Promise, Scope, finish, isolated, procedure};

struct Nobody;

impl Consumer for Nobody {
    fn accesses(&mut self, _: &Strand, _: &[dagsan_core::Run]) -> Result<(), Error> {
        Ok(())
    }
    fn event(&mut self, _: &Step<'_>) -> Result<(), Error> {
        Ok(())
    }
    fn erase(&mut self, _: dagsan_core::Bytes) -> Result<(), Error> {
        Ok(())
    }
}

/// Replays the calls. An error says which call breaks which rule.
fn replay(calls: &[Call]) -> Result<(), String> {
    let mut stream = Stream::new(Nobody);
    let mut current = Some(TaskId(0));
    for (at, call) in calls.iter().enumerate() {
        let dropped = match call {
            Resume(task) => {
                current = Some(TaskId(*task as u32));
                continue;
            }
            Deadlock(_) => continue,
            FutureDrop(future) => Some(Dropped::Future(TaskId(*future as u32))),
            PromiseDrop(number) => Some(Dropped::Promise(PromiseId(*number as u32))),
            _ => None,
        };
        if let Some(dropped) = dropped {
            stream.dropped(dropped).map_err(|error| format!("{at}: {call:?}: {error}"))?;
            continue;
        }
        let task = current.ok_or_else(|| format!("{at}: {call:?}: no task is current"))?;
        let promise = |number: &u64| PromiseId(*number as u32);
        let event = match call {
            FinishBegin => Event::FinishBegin { task },
            FinishEnd => Event::FinishEnd { task },
            FrameBegin => Event::FrameBegin { task },
            Sync => Event::Sync { task },
            FrameEnd => Event::FrameEnd { task },
            Spawn(kind, child) => {
                let child = TaskId(*child as u32);
                current = Some(child);
                let kind = match kind {
                    Kind::Async => TaskKind::Async,
                    Kind::Spawn => TaskKind::Spawn,
                    Kind::Future => TaskKind::Future,
                    Kind::Detached | Kind::Outer => TaskKind::Detached,
                };
                Event::Spawn { parent: task, child, kind }
            }
            TaskEnd => {
                current = None;
                Event::TaskEnd { task }
            }
            FutureGet(future) => Event::FutureGet { task, future: TaskId(*future as u32) },
            PromiseNew(number) => Event::PromiseNew { task, promise: promise(number) },
            PromiseSet(number) => Event::PromiseSet { task, promise: promise(number) },
            PromiseGet(number) => Event::PromiseGet { task, promise: promise(number) },
            IsolatedBegin => Event::IsolatedBegin { task },
            IsolatedEnd => Event::IsolatedEnd { task },
            _ => continue,
        };
        stream.event(event).map_err(|error| format!("{at}: {call:?}: {error}"))?;
    }
    if current == Some(TaskId(0)) { Ok(()) } else { Err(format!("ends in {current:?}")) }
}

/// The calls of a program, which must be well-formed. The program may panic.
fn checked(program: impl FnOnce()) -> Vec<Call> {
    let calls = calls_of(|| _ = catch_unwind(AssertUnwindSafe(program)));
    if let Err(error) = replay(&calls) {
        panic!("{error}\n{calls:#?}");
    }
    calls
}

#[test]
fn the_judge_can_fail() {
    assert!(replay(&[FinishBegin, Spawn(Kind::Async, 1), Resume(0), FinishEnd]).is_err(), "not joined");
    assert!(replay(&[FinishBegin, Spawn(Kind::Async, 1), TaskEnd, FinishEnd]).is_err(), "nobody is current");
    assert!(replay(&[FrameBegin, Spawn(Kind::Spawn, 1), TaskEnd, Resume(0), FrameEnd]).is_err(), "no sync");
    assert!(replay(&[PromiseNew(0), PromiseGet(0)]).is_err(), "not set");
    assert!(replay(&[FinishBegin, Spawn(Kind::Future, 1), Resume(0), FutureGet(1)]).is_err(), "not ended");
}

#[test]
fn finish_and_async() {
    let calls = checked(|| finish(|scope| scope.spawn(|scope| scope.spawn(|_| {}))));
    let spawn = |task| Spawn(Kind::Async, task);
    let expected = [FinishBegin, spawn(1), spawn(2), TaskEnd, Resume(1), TaskEnd, Resume(0), FinishEnd];
    assert_eq!(calls, expected);
}

#[test]
fn spawn_and_sync() {
    let calls = checked(|| {
        let value = procedure(|p| {
            let value = p.spawn(|| 1);
            p.sync();
            p.sync();
            value.join()
        });
        assert_eq!(value, 1);
        procedure(|p| drop(p.spawn(|| 2)));
        procedure(|_| {});
    });
    let child = |task| [Spawn(Kind::Spawn, task), TaskEnd, Resume(0), Sync];
    let expected =
        [&[FrameBegin][..], &child(1), &[FrameEnd, FrameBegin], &child(2), &[FrameEnd, FrameBegin, FrameEnd]];
    assert_eq!(calls, expected.concat());
}

#[test]
fn a_get_is_announced_after_the_set() {
    let calls = checked(|| {
        let promise = Promise::new();
        finish(|scope| {
            let value = scope.future(|_| *promise.get());
            promise.set(1);
            assert_eq!(*value.get(), 1);
        });
    });
    let expected = [
        &[PromiseNew(0), FinishBegin, Spawn(Kind::Future, 1), Resume(0), PromiseSet(0)][..],
        &[
            Resume(1),
            PromiseGet(0),
            TaskEnd,
            Resume(0),
            FutureGet(1),
            FutureDrop(1),
            FinishEnd,
            PromiseDrop(0),
        ],
    ];
    assert_eq!(calls, expected.concat());
}

#[test]
fn isolated_sections() {
    let calls = checked(|| finish(|scope| scope.spawn(|_| isolated(|| {}))));
    assert_eq!(calls[2..4], [IsolatedBegin, IsolatedEnd]);
    checked(|| isolated(|| panic!("in a section")));
    checked(|| isolated(|| finish(|scope| scope.spawn(|_| {}))));
    checked(|| isolated(|| isolated(|| {})));
    checked(|| isolated(|| procedure(|p| p.spawn(|| {}).join())));
    checked(|| isolated(|| drop(Promise::<()>::new().try_get().map(drop))));
}

#[test]
fn a_deadlock_is_announced_with_all_that_wait() {
    let calls = checked(|| {
        let (left, right) = (Promise::<u32>::named("left"), Promise::named("right"));
        finish(|scope| {
            scope.spawn(|_| right.set(*left.get()));
            scope.spawn(|_| left.set(*right.get()));
            scope.spawn(|_| finish(|scope| scope.spawn(|_| drop(left.try_get().map(|_| ())))));
        });
    });
    let deadlocks: Vec<_> = calls.iter().filter(|call| matches!(call, Deadlock(_))).collect();
    let blocked = [
        (1, "promise `left`"),
        (2, "promise `right`"),
        (4, "promise `left`"),
        (3, "the tasks that it has to join there"),
    ];
    let blocked = blocked.map(|(task, waits_for)| (task, waits_for.to_string())).to_vec();
    assert_eq!(deadlocks, [&Deadlock(blocked)]);
    assert!(!calls.iter().any(|call| matches!(call, PromiseGet(_))), "gets that fail join nothing");
}

#[test]
fn panics_leave_the_calls_well_formed() {
    checked(|| finish(|scope| scope.spawn(|_| panic!("task"))));
    checked(|| finish(|_| panic!("body")));
    checked(|| procedure(|p| drop(p.spawn(|| panic!("task")))));
    checked(|| procedure(|_| panic!("body")));
    checked(|| finish(|scope| scope.spawn(|_| procedure(|p| drop(p.spawn(|| finish(|_| panic!("deep"))))))));
    checked(|| {
        let promise = Promise::<u32>::new();
        finish(|scope| {
            let future = scope.future(|_| -> u32 { panic!("future of {}", promise.get()) });
            scope.spawn(move |_| _ = future.get());
            promise.set(1);
        });
    });
}

/// A finish joins what was spawned in it; a sync inside a finish joins what was spawned before it.
#[test]
fn scopes_in_odd_orders() {
    checked(|| procedure(|p| finish(|_| drop(p.spawn(|| {})))));
    checked(|| {
        let promise = Promise::new();
        procedure(|p| {
            let value = p.spawn(|| *promise.get());
            finish(|scope| {
                scope.spawn(|_| promise.set(1));
                p.sync();
            });
            assert_eq!(value.join(), 1);
        });
    });
    checked(|| {
        let promise = Promise::new();
        finish(|outer| {
            finish(|inner| {
                outer.spawn(|_| _ = promise.get());
                inner.spawn(|_| promise.set(()));
            });
            outer.spawn(|_| {});
        });
    });
    checked(|| {
        let promise = Promise::new();
        procedure(|p| {
            finish(|_| {
                drop(p.spawn(|| promise.get()));
                promise.set(());
            });
        });
    });
}

/// Random trees of tasks that set and get promises, with panics and deadlocks by chance.
#[test]
fn random_programs() {
    fn task<'scope>(scope: &Scope<'scope>, promises: &'scope [Promise<u64>], mut seed: u64, depth: u32) {
        for _ in 0..4 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let promise = &promises[(seed >> 40) as usize % promises.len()];
            let next = seed ^ u64::from(depth);
            match (seed >> 33) % 10 {
                _ if depth == 0 => {}
                0 | 1 => scope.spawn(move |scope| task(scope, promises, next, depth - 1)),
                2 => _ = scope.future(move |scope| task(scope, promises, next, depth - 1)).try_get(),
                3 => drop(scope.future(move |scope| task(scope, promises, next, depth - 1))),
                4 => finish(|scope| task(scope, promises, next, depth - 1)),
                5 => procedure(|p| {
                    drop(p.spawn(move || finish(|scope| task(scope, promises, next, depth - 1))));
                    task(scope, promises, next + 1, depth - 1);
                    p.sync();
                }),
                6 => isolated(|| _ = promise.try_set(seed)),
                7 => _ = promise.try_set(seed),
                8 => _ = promise.try_get(),
                _ => _ = promise.get(),
            }
        }
    }
    let (mut deadlocks, mut calls) = (0, 0);
    for seed in 0..2000 {
        let program = checked(|| {
            let promises: Vec<_> = (0..3).map(|_| Promise::new()).collect();
            finish(|scope| task(scope, &promises, seed, 4));
        });
        deadlocks += program.iter().filter(|call| matches!(call, Deadlock(_))).count();
        calls += program.len();
    }
    assert!(deadlocks > 100 && calls > 50_000, "too tame: {deadlocks} deadlocks, {calls} calls");
}
