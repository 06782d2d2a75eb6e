//! Panics in every place, deadlocks, and what may not be done: each ends in a message, and everything is joined.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use dagsan_task::{Future, GetError, Promise, finish, isolated, procedure};

use common::{each, serially};

/// The message of the panic that `program` ends in.
#[track_caller]
fn message<R>(program: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(program)) {
        Ok(_) => panic!("there was no panic"),
        Err(payload) => match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => payload.downcast_ref::<&str>().copied().unwrap_or("?").to_string(),
        },
    }
}

#[test]
fn a_finish_joins_the_others_and_passes_the_first_panic_on() {
    serially(|| {
        let (promise, ended) = (&Promise::new(), &AtomicUsize::new(0));
        let text = message(|| {
            finish(|scope| {
                scope.spawn(|_| {
                    promise.get();
                    ended.fetch_add(1, Relaxed);
                });
                scope.spawn(|_| panic!("first"));
                scope.spawn(|_| panic!("second"));
                scope.spawn(|_| _ = ended.fetch_add(1, Relaxed));
                promise.set(());
            });
        });
        assert_eq!((text.as_str(), ended.load(Relaxed)), ("first", 2));
    });
}

#[test]
fn a_body_that_panics_is_joined_first() {
    serially(|| {
        let (promise, ended) = (&Promise::new(), &AtomicUsize::new(0));
        let text = message(|| {
            finish(|scope| {
                let borrowed = Vec::<u32>::new();
                scope.spawn(|_| {
                    promise.get();
                    ended.fetch_add(1, Relaxed);
                    panic!("later");
                });
                promise.set(());
                panic!("body {}", borrowed.len());
            })
        });
        assert_eq!((text.as_str(), ended.load(Relaxed)), ("body 0", 1));
    });
}

#[test]
fn a_panic_comes_out_of_every_depth() {
    each(|| {
        fn down(depth: u32) {
            match depth {
                0 => panic!("bottom"),
                _ if depth.is_multiple_of(2) => finish(|scope| scope.spawn(move |_| down(depth - 1))),
                _ => procedure(|p| drop(p.spawn(move || down(depth - 1)))),
            }
        }
        assert_eq!(message(|| down(300)), "bottom");
    });
}

#[test]
fn a_sync_passes_the_panic_on_and_the_procedure_goes_on_if_it_is_caught() {
    each(|| {
        let text = message(|| procedure(|p| drop(p.spawn(|| panic!("at the end")))));
        assert_eq!(text, "at the end");
        let sum = procedure(|p| {
            let failed = p.spawn(|| -> u32 { panic!("at the sync") });
            assert_eq!(message(|| p.sync()), "at the sync");
            assert!(message(|| failed.join()).contains("has panicked"));
            let fine = p.spawn(|| 1);
            p.sync();
            fine.join()
        });
        assert_eq!(sum, 1);
    });
}

#[test]
fn a_late_panic_frees_the_slot_of_the_result() {
    each(|| {
        let promise = &Promise::new();
        let text = message(|| {
            procedure(|p| {
                let late = p.spawn(|| -> String { panic!("late {}", promise.get()) });
                promise.set(1);
                assert_eq!(message(|| p.sync()), "late 1");
                late.join()
            })
        });
        assert!(text.contains("has panicked"), "{text}");
    });
}

#[test]
fn a_result_is_not_there_before_the_sync() {
    each(|| {
        let text = message(|| procedure(|p| p.spawn(|| 1).join()));
        assert!(text.contains("before the sync"), "{text}");
    });
}

#[test]
fn futures_that_panic() {
    each(|| {
        let text = message(|| {
            finish(|scope| {
                let future = scope.future(|_| -> u32 { panic!("future") });
                let error = future.try_get().unwrap_err();
                assert!(
                    matches!(&error, GetError::Panicked(which) if which.contains("panics.rs")),
                    "{error}"
                );
                assert!(message(|| *future.get()).contains("has panicked"));
            });
        });
        assert_eq!(text, "future");
    });
}

#[test]
fn destructors_that_panic() {
    serially(|| {
        struct Bomb(&'static str);
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("{}", self.0);
            }
        }
        // The result of the body, while a task has panicked.
        let text = message(|| {
            finish(|scope| {
                scope.spawn(|_| panic!("task"));
                Bomb("result")
            })
        });
        assert_eq!(text, "result");
        // A result that nobody wants.
        assert_eq!(message(|| procedure(|p| drop(p.spawn(|| Bomb("leftover"))))), "leftover");
        // Payloads: the first is passed on, the second is dropped in silence.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            finish(|scope| {
                scope.spawn(|_| panic!("first"));
                scope.spawn(|_| std::panic::panic_any(Bomb("payload")));
            });
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"first"));
    });
}

#[test]
fn a_cycle_of_promises() {
    each(|| {
        let (left, right) = (&Promise::named("left"), &Promise::new());
        let text = message(|| {
            finish(|scope| {
                scope.spawn(|_| right.set(*left.get()));
                scope.spawn(|_| left.set(1 + right.get()));
            });
        });
        for part in ["2 tasks wait for ever", "promise `left`", "the promise created at", "panics.rs"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    });
}

#[test]
fn a_future_that_waits_for_itself() {
    each(|| {
        let own = &Promise::<Future<u32>>::new();
        let text = message(|| {
            finish(|scope| {
                let future = scope.future(|_| match own.get().try_get() {
                    Err(GetError::NeverEnds(text)) if text.contains("the future created at") => 1,
                    other => panic!("{other:?}"),
                });
                own.set(future.clone());
                *future.get() // in the cycle, too
            })
        });
        assert!(text.contains("the main task waits at"), "{text}");
    });
}

#[test]
fn after_a_deadlock_tasks_may_go_on() {
    each(|| {
        let (never, done) = (&Promise::<u32>::named("never"), &Promise::new());
        let value = finish(|scope| {
            scope.spawn(|_| done.set(never.try_get().map_or(-1, |_| 1)));
            scope.spawn(|_| assert!(finish(|_| never.try_get().is_err())));
            0
        });
        assert_eq!((value, *done.get()), (0, -1));
        assert!(never.try_get().unwrap_err().to_string().contains("1 task waits for ever"));
    });
}

#[test]
fn a_deadlock_of_many_is_told_by_some() {
    each(|| {
        let never = &Promise::<u32>::named("never");
        let text = message(|| finish(|scope| (0..100).for_each(|_| scope.spawn(|_| _ = never.get()))));
        assert!(text.contains("100 tasks wait for ever") && text.ends_with("\n  and 84 more"), "{text}");
    });
}

#[test]
fn a_finish_that_waits_for_a_task_that_waits_for_what_comes_after_it() {
    each(|| {
        let promise = &Promise::named("after");
        let text = message(|| {
            finish(|scope| {
                scope.spawn(|_| {
                    finish(|scope| scope.spawn(|_| _ = promise.get()));
                    promise.set(());
                });
            });
        });
        assert!(text.contains("promise `after`") && text.contains("has to join there"), "{text}");
    });
}

#[test]
fn a_promise_is_set_once() {
    each(|| {
        let promise = Promise::named("once");
        promise.set(1);
        assert_eq!(message(|| promise.set(2)), "promise `once` is set for the second time");
        assert_eq!(*promise.get(), 1);
    });
}

#[test]
fn what_isolated_sections_may_not_do() {
    each(|| {
        let promise = &Promise::<u32>::named("unset");
        for (text, expected) in [
            (message(|| isolated(|| isolated(|| {}))), "begins in another one"),
            (message(|| finish(|scope| isolated(|| scope.spawn(|_| {})))), "may not start tasks"),
            (message(|| finish(|scope| isolated(|| scope.future(|_| 1)))), "may not start tasks"),
            (message(|| procedure(|p| isolated(|| drop(p.spawn(|| {}))))), "may not start tasks"),
            (
                message(|| isolated(|| _ = promise.try_get())),
                "wait for promise `unset` in an isolated section",
            ),
            (
                message(|| {
                    procedure(|p| {
                        drop(p.spawn(|| promise.try_get().is_ok()));
                        isolated(|| p.sync());
                    });
                }),
                "in an isolated section",
            ),
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        // None of it has left a section open.
        assert_eq!(isolated(|| finish(|_| 1)), 1);
    });
}

#[test]
fn a_procedure_that_has_called_another_one() {
    each(|| {
        let text = message(|| procedure(|outer| procedure(|_| drop(outer.spawn(|| {})))));
        assert!(text.contains("a procedure spawns while another one"), "{text}");
        let text = message(|| procedure(|outer| procedure(|_| outer.sync())));
        assert!(text.contains("a procedure syncs while another one"), "{text}");
    });
}

#[test]
fn a_refused_task_is_dropped() {
    each(|| {
        let counted = std::sync::Arc::new(());
        let inside = counted.clone();
        message(|| finish(|scope| isolated(|| scope.spawn(move |_| drop(inside)))));
        let inside = counted.clone();
        message(|| procedure(|p| isolated(|| drop(p.spawn(move || drop(inside))))));
        assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    });
}
