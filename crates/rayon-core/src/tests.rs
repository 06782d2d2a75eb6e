//! What DagSan is told, call by call, and what programs see.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::events::Call::{
    Depends, FinishBegin, FinishEnd, FrameBegin, FrameEnd, PromiseGet, PromiseNew, PromiseSet, Resume, Spawn,
    Split, Sync, TaskEnd, WorkerBegin, WorkerEnd,
};
use crate::events::Kind::{self, Async};
use crate::events::{Call, Dependence, calls_of};
use crate::{ThreadPool, ThreadPoolBuilder, Yield, join, scope, scope_fifo, spawn};

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// The message of a panic with a text.
fn message(program: impl FnOnce()) -> &'static str {
    *catch_unwind(AssertUnwindSafe(program)).unwrap_err().downcast::<&'static str>().unwrap()
}

#[test]
fn the_first_of_a_join_is_a_task_and_the_second_is_not() {
    let calls = calls_of(|| _ = join(|| (), || ()));
    let expected = [FrameBegin, Spawn(Kind::Spawn, 1), TaskEnd, Resume(0), Sync, FrameEnd];
    assert_eq!(calls, expected);
}

#[test]
fn jobs_become_tasks_where_they_are_spawned_and_run_when_the_body_has_ended() {
    let calls = calls_of(|| scope(|s| s.spawn(|_| ())));
    assert_eq!(calls[..3], [FinishBegin, Spawn(Async, 1), Resume(0)]);
    assert_eq!(calls[3..], [Resume(1), TaskEnd, Resume(0), FinishEnd]);
}

#[test]
fn a_job_for_an_outer_scope_is_not_joined_by_the_inner_one() {
    let calls = calls_of(|| scope(|outer| scope(|_| outer.spawn(|_| ()))));
    assert_eq!(calls[..5], [FinishBegin, FinishBegin, Spawn(Kind::Outer, 1), Resume(0), FinishEnd]);
    let ends = [PromiseNew(0), PromiseSet(0), TaskEnd, Resume(0), PromiseGet(0), FinishEnd];
    assert_eq!(calls[5..], [&[Resume(1)], &ends[..]].concat());
}

#[test]
fn a_job_that_nobody_joins_needs_no_scope() {
    let calls = calls_of(|| spawn(|| ()));
    assert_eq!(calls, [Spawn(Kind::Detached, 1), TaskEnd, Resume(0)]);
}

#[test]
fn detached_jobs_of_a_join_run_after_it() {
    let calls = calls_of(|| _ = join(|| spawn(|| ()), || ()));
    let first = [FrameBegin, Spawn(Kind::Spawn, 1), Spawn(Kind::Detached, 2), Resume(1), TaskEnd, Resume(0)];
    assert_eq!(calls[..6], first);
    assert_eq!(calls[6..], [Sync, FrameEnd, Resume(2), TaskEnd, Resume(0)]);
}

#[test]
fn a_detached_job_runs_among_those_of_a_scope_and_is_not_joined_by_it() {
    let calls = calls_of(|| scope(|_| spawn(|| ())));
    let expected =
        [FinishBegin, Spawn(Kind::Detached, 1), Resume(0), Resume(1), TaskEnd, Resume(0), FinishEnd];
    assert_eq!(calls, expected);
}

#[test]
fn a_job_that_a_yield_runs_is_joined_by_its_own_scope() {
    let calls = calls_of(|| {
        scope(|outer| {
            scope(|_| {
                outer.spawn(|_| ());
                crate::yield_now();
            });
        });
    });
    let run = [Resume(1), PromiseNew(0), PromiseSet(0), TaskEnd, Resume(0)];
    assert_eq!(calls[2..9], [&[Spawn(Kind::Outer, 1), Resume(0)], &run[..]].concat());
    assert_eq!(calls[9..], [FinishEnd, PromiseGet(0), FinishEnd]);
}

#[test]
fn a_pool_comes_after_its_jobs() {
    let calls = calls_of(|| pool(2).spawn(|| ()));
    let run = [Spawn(Kind::Detached, 1), PromiseNew(0), PromiseSet(0), TaskEnd, Resume(0), PromiseGet(0)];
    assert_eq!(calls, run);
}

#[test]
fn a_broadcast_is_a_task_for_each_thread() {
    let mut results = Vec::new();
    let calls =
        calls_of(|| results = pool(3).broadcast(|context| context.index() * 10 + context.num_threads()));
    assert_eq!(results, [3, 13, 23]);
    assert_eq!(calls.iter().filter(|call| matches!(call, Spawn(Kind::Spawn, _))).count(), 3);
    assert_eq!(calls[calls.len() - 2..], [Sync, FrameEnd]);
}

#[test]
fn both_of_a_join_are_run_and_the_first_panic_counts() {
    let ran = Mutex::new(0);
    let text = message(|| {
        join(
            || panic!("a"),
            || {
                *ran.lock().unwrap() += 1;
                panic!("b")
            },
        );
    });
    assert_eq!((text, *ran.lock().unwrap()), ("a", 1));
    assert_eq!(message(|| _ = join(|| (), || panic!("b"))), "b");
}

#[test]
fn all_of_a_scope_are_run_and_a_panic_is_carried_to_its_end() {
    let ran = Mutex::new(0);
    let text = message(|| {
        scope(|s| {
            s.spawn(|_| *ran.lock().unwrap() += 1);
            s.spawn(|_| panic!("job"));
        });
    });
    assert_eq!((text, *ran.lock().unwrap()), ("job", 1));
    // The thread is fit for more.
    assert_eq!(join(|| 1, || 2), (1, 2));
}

#[test]
fn the_handler_of_a_pool_hears_of_panics_that_nobody_joins() {
    let (send, receive) = channel();
    let send = Mutex::new(send);
    let handler = move |payload: Box<dyn std::any::Any + Send>| {
        send.lock().unwrap().send(*payload.downcast::<&str>().unwrap()).unwrap();
    };
    let pool = ThreadPoolBuilder::new().panic_handler(handler).build().unwrap();
    pool.spawn(|| panic!("detached"));
    assert_eq!(receive.recv().unwrap(), "detached");
}

#[test]
fn jobs_have_the_order_of_one_worker() {
    let order = &Mutex::new(Vec::new());
    scope(|s| {
        for i in 0..3 {
            s.spawn(move |_| order.lock().unwrap().push(i));
        }
    });
    scope_fifo(|s| {
        for i in 3..6 {
            s.spawn_fifo(move |_| order.lock().unwrap().push(i));
        }
    });
    assert_eq!(*order.lock().unwrap(), [2, 1, 0, 3, 4, 5]);
}

#[test]
fn a_job_from_outside_runs_at_once_and_one_from_inside_when_its_worker_yields() {
    let (send, receive) = channel();
    let again = send.clone();
    spawn(move || send.send(1).unwrap());
    assert_eq!(receive.try_recv(), Ok(1));
    pool(1).install(move || {
        spawn(move || again.send(2).unwrap());
        assert!(receive.try_recv().is_err());
        assert_eq!(crate::current_thread_has_pending_tasks(), Some(true));
        assert_eq!(crate::yield_now(), Some(Yield::Executed));
        assert_eq!(receive.try_recv(), Ok(2));
        assert_eq!(crate::yield_local(), Some(Yield::Idle));
    });
    assert_eq!(crate::yield_now(), None);
}

#[test]
fn pools_know_their_threads() {
    let (outer, inner) = (pool(5), pool(7));
    assert_eq!((outer.current_num_threads(), outer.current_thread_index()), (5, None));
    let seen = outer.install(|| {
        let seen = inner.install(|| (crate::current_num_threads(), outer.current_thread_index()));
        (crate::current_num_threads(), crate::current_thread_index(), seen)
    });
    assert_eq!(seen, (5, Some(0), (7, None)));
    assert_eq!(crate::current_thread_index(), None);
}

#[test]
fn a_pool_whose_threads_the_program_starts_runs_on_the_first() {
    let name = |thread: crate::ThreadBuilder| thread.run();
    let seen = ThreadPoolBuilder::new()
        .num_threads(2)
        .thread_name(|index| format!("worker {index}"))
        .build_scoped(name, |pool| pool.install(|| std::thread::current().name().map(str::to_owned)))
        .unwrap();
    assert_eq!(seen.as_deref(), Some("worker 0"));
}

#[test]
fn asking_for_the_worker_is_told_and_so_is_the_splitting() {
    let ask =
        |context: crate::FnContext| assert!(context.migrated() && crate::current_thread_index().is_some());
    let calls = calls_of(|| _ = crate::join_context(ask, ask));
    assert!(calls.contains(&Split(0)));
    assert_eq!(calls.iter().filter(|call| **call == Depends(Dependence::Worker)).count(), 2);
    let alone = calls_of(|| pool(1).install(|| assert_eq!(crate::current_thread_index(), Some(0))));
    assert_eq!(alone, [], "there is no other task");
}

/// The numbers of workers, from the names that DagSan is told; they begin with the first that it hears of.
fn workers(calls: &[Call]) -> Vec<(bool, u64)> {
    let told = calls.iter().filter_map(|call| match call {
        WorkerBegin(worker) => Some((true, *worker)),
        WorkerEnd(worker) => Some((false, *worker)),
        _ => None,
    });
    let told: Vec<(bool, u64)> = told.collect();
    let first = told.first().map_or(0, |(_, worker)| *worker);
    told.into_iter().map(|(begins, worker)| (begins, worker - first)).collect()
}

#[test]
fn numbers_are_handed_out_in_turn_and_stay_with_their_task() {
    let pool = pool(2);
    let ask = || {
        let index = pool.current_thread_index();
        assert_eq!(crate::current_thread_index(), index);
        index
    };
    let mut seen = (None, None);
    let calls = calls_of(|| seen = pool.join(ask, ask));
    assert_eq!(seen, (Some(0), Some(1)));
    assert_eq!(workers(&calls), [(true, 0), (true, 1), (false, 1)]);
    assert_eq!(pool.join(|| (), ask).1, Some(0), "it is the turn of the first again");
}

#[test]
fn the_first_of_a_join_stays_on_the_worker_and_the_second_may_be_stolen() {
    let pool = pool(2);
    let calls = calls_of(|| {
        pool.scope(|_| {
            let index = crate::current_thread_index();
            let (first, second) = join(crate::current_thread_index, crate::current_thread_index);
            assert_eq!((index, first, second), (Some(0), Some(0), Some(1)));
            assert_eq!(crate::current_thread_index(), index);
        });
    });
    let expected = [
        // The body asks, and the first of the join is another task on the same worker.
        (true, 0),
        (true, 0),
        // The body leaves it for the second, and comes back.
        (false, 0),
        (true, 1),
        (false, 1),
        (true, 0),
        (false, 0),
    ];
    assert_eq!(workers(&calls), expected);
}

#[test]
fn jobs_have_a_worker_of_their_own_and_broadcasts_a_certain_one() {
    let pool = pool(3);
    let calls = calls_of(|| {
        pool.scope(|scope| {
            assert_eq!(crate::current_thread_index(), Some(0));
            scope.spawn(|_| assert_eq!(crate::current_thread_index(), Some(1)));
        });
        pool.broadcast(|context| assert_eq!(pool.current_thread_index(), Some(context.index())));
    });
    // The body leaves its worker at the end; the others are on theirs to the end of their tasks.
    assert_eq!(workers(&calls), [(true, 0), (true, 1), (false, 0), (true, 0), (true, 1), (true, 2)]);
}
