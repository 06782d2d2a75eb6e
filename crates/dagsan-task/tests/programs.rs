//! Whole programs: what they compute, and in which order things happen.

mod common;

use std::cell::RefCell;
use std::sync::Mutex;
use std::thread;

use dagsan_task::{Future, Promise, Scope, Spawned, finish, isolated, procedure};

use common::{each, serially};

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    procedure(|p| {
        let x = p.spawn(|| fib(n - 1));
        let y = p.spawn(|| fib(n - 2));
        p.sync();
        x.join() + y.join()
    })
}

#[test]
fn recursion_with_spawn() {
    each(|| {
        assert_eq!(fib(20), 6765);
    });
}

#[test]
fn recursion_with_futures() {
    each(|| {
        fn fib(scope: &Scope<'_>, n: u64) -> u64 {
            if n < 2 {
                return n;
            }
            let x = scope.future(move |scope| fib(scope, n - 1));
            let y = scope.future(move |scope| fib(scope, n - 2));
            x.get() + y.get()
        }
        assert_eq!(finish(|scope| fib(scope, 16)), 987);
    });
}

#[test]
fn tasks_borrow() {
    each(|| {
        let mut words = vec![String::from("a"), String::from("b"), String::from("c")];
        finish(|scope| {
            for word in &mut words {
                scope.spawn(|_| word.push('!'));
            }
        });
        let lengths = procedure(|p| {
            let spawned: Vec<Spawned<'_, usize>> = words.iter().map(|word| p.spawn(|| word.len())).collect();
            p.sync();
            spawned.into_iter().map(Spawned::join).sum::<usize>()
        });
        assert_eq!((words.concat().as_str(), lengths), ("a!b!c!", 6));
    });
}

#[test]
fn depth_first_with_switches_in_the_order_of_the_sets() {
    serially(|| {
        let log = Mutex::new(Vec::new());
        let note = |text: &'static str| log.lock().unwrap().push(text);
        let (note, one, two) = (&note, &Promise::new(), &Promise::new());
        finish(|scope| {
            scope.spawn(move |_| {
                note("a waits");
                one.get();
                note("a goes on");
            });
            scope.spawn(move |_| {
                note("b waits");
                two.get();
                note("b goes on");
                one.set(());
            });
            scope.spawn(move |_| {
                note("c waits");
                two.get();
                note("c goes on");
            });
            note("set");
            two.set(());
            note("end");
        });
        let expected = ["a waits", "b waits", "c waits", "set", "end", "b goes on", "c goes on", "a goes on"];
        assert_eq!(*log.lock().unwrap(), expected);
    });
}

#[test]
fn a_finish_inside_a_task_joins_across_waits() {
    each(|| {
        let (promise, sum) = (&Promise::new(), &Mutex::new(0));
        finish(|scope| {
            scope.spawn(|_| {
                finish(|scope| {
                    for i in 0..10 {
                        scope.spawn(move |_| *sum.lock().unwrap() += i * promise.get());
                    }
                });
                assert_eq!(*sum.lock().unwrap(), 90);
            });
            promise.set(2);
        });
    });
}

#[test]
fn the_end_of_its_last_task_makes_a_sleeping_finish_ready() {
    serially(|| {
        let log = Mutex::new(Vec::new());
        let note = |text: &'static str| log.lock().unwrap().push(text);
        let (note, p, q, r) = (&note, &Promise::new(), &Promise::new(), &Promise::new());
        finish(|scope| {
            scope.spawn(move |_| {
                finish(|scope| {
                    scope.spawn(move |_| {
                        p.get();
                        q.set(());
                    });
                });
                note("joined");
            });
            scope.spawn(move |_| {
                q.get();
                note("q");
                r.set(());
            });
            scope.spawn(move |_| {
                r.get();
                note("r");
            });
            p.set(());
        });
        assert_eq!(*log.lock().unwrap(), ["q", "joined", "r"]);
    });
}

#[test]
fn results_of_spawned_tasks_that_had_to_wait() {
    each(|| {
        let promise = &Promise::new();
        let text = procedure(|p| {
            let late = p.spawn(|| format!("late {}", promise.get()));
            let unwanted = p.spawn(|| format!("unwanted {}", promise.get()));
            drop(unwanted);
            let soon = p.spawn(|| String::from("soon"));
            drop(p.spawn(|| String::from("unwanted too")));
            promise.set(1);
            p.sync();
            late.join() + " " + &soon.join()
        });
        assert_eq!(text, "late 1 soon");
    });
}

#[test]
fn an_unwanted_result_lives_until_the_sync() {
    each(|| {
        struct Noted<'a>(&'a Mutex<Vec<&'static str>>);
        impl Drop for Noted<'_> {
            fn drop(&mut self) {
                self.0.lock().unwrap().push("dropped");
            }
        }
        let log = &Mutex::new(Vec::new());
        procedure(|p| {
            drop(p.spawn(|| Noted(log)));
            log.lock().unwrap().push("before the sync");
            p.sync();
            log.lock().unwrap().push("after the sync");
            drop(p.spawn(|| Noted(log)));
            log.lock().unwrap().push("end");
        });
        let expected = ["before the sync", "dropped", "after the sync", "end", "dropped"];
        assert_eq!(*log.lock().unwrap(), expected);
    });
}

#[test]
fn promises_across_finishes() {
    each(|| {
        let (early, late) = (Promise::<u32>::new(), Promise::new());
        finish(|scope| {
            scope.spawn(|_| late.set(early.get() + 1));
            finish(|scope| {
                scope.spawn(|_| early.set(1));
                scope.spawn(|_| assert_eq!(*late.get(), 2));
            });
            assert!(late.is_set());
        });
        assert_eq!(late.try_set(9).unwrap_err().0, 9);
    });
}

#[test]
fn handles_travel_through_promises() {
    each(|| {
        let handle: Promise<Future<Box<u32>>> = Promise::default();
        let result = finish(|scope| {
            let reader = scope.future(|_| **handle.get().get() + 1);
            let writer = scope.future(|_| Box::new(41));
            handle.set(writer.clone());
            reader
        });
        // The future is over, and its handle good for ever.
        assert_eq!(*result.get(), 42);
    });
}

#[test]
fn promises_that_are_never_set() {
    each(|| {
        let unused = Promise::<String>::named("unused");
        finish(|scope| {
            let unused = unused.clone();
            scope.spawn(move |_| drop(unused));
        });
        assert!(!unused.is_set());
    });
}

#[test]
fn a_pipeline_of_thousands_of_sleepers() {
    each(|| {
        let count = 5000;
        let stages: Vec<Promise<usize>> = (0..=count).map(|_| Promise::new()).collect();
        finish(|scope| {
            for stage in 0..count {
                let stages = &stages;
                scope.spawn(move |_| stages[stage + 1].set(stages[stage].get() + 1));
            }
            stages[0].set(0);
        });
        assert_eq!(*stages[count].get(), count);
    });
}

#[test]
fn thousands_wait_for_one() {
    serially(|| {
        let (promise, order) = (&Promise::new(), &Mutex::new(Vec::new()));
        finish(|scope| {
            for i in 0..5000 {
                scope.spawn(move |_| {
                    promise.get();
                    order.lock().unwrap().push(i);
                });
            }
            promise.set(());
        });
        assert!(order.lock().unwrap().iter().copied().eq(0..5000));
    });
}

#[test]
fn tasks_inside_tasks_inside_tasks() {
    each(|| {
        fn down(depth: u32) -> u32 {
            if depth == 0 { 0 } else { finish(|scope| *scope.future(move |_| down(depth - 1)).get()) + 1 }
        }
        assert_eq!(down(5000), 5000);
    });
}

#[test]
fn isolated_sections_return_values() {
    each(|| {
        let total = Mutex::new(0);
        finish(|scope| {
            for i in 1..=10 {
                let total = &total;
                scope.spawn(move |_| {
                    let seen = isolated(|| {
                        *total.lock().unwrap() += i;
                        *total.lock().unwrap()
                    });
                    assert!(seen >= i);
                });
            }
        });
        assert_eq!(*total.lock().unwrap(), 55);
    });
}

#[test]
fn threads_have_executors_of_their_own() {
    let set_before = Promise::new();
    set_before.set(7);
    let results: Vec<u64> = thread::scope(|threads| {
        let set_before = &set_before;
        let threads: Vec<_> =
            (10..14).map(|n| threads.spawn(move || isolated(|| 0) + fib(n) + set_before.get())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results, [62, 96, 151, 240]);
}

#[test]
fn another_thread_sets() {
    each(|| {
        let (asked, answer) = (Promise::new(), Promise::new());
        thread::scope(|threads| {
            threads.spawn(|| {
                while !asked.is_set() {
                    thread::yield_now();
                }
                answer.set(*asked.get() * 2);
            });
            finish(|scope| {
                scope.spawn(|_| assert_eq!(*answer.get(), 42)); // sleeps
                asked.set(21);
                while !answer.is_set() {
                    thread::yield_now();
                }
            }); // and is found to be ready here
        });
    });
}

#[test]
fn tasks_start_while_a_thread_ends() {
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            assert_eq!(fib(5), 5);
        }
    }
    thread_local!(static LOCAL: RefCell<Option<AtExit>> = const { RefCell::new(None) });
    thread::spawn(|| {
        LOCAL.set(Some(AtExit));
        assert_eq!(fib(5), 5);
    })
    .join()
    .unwrap();
}

#[test]
fn what_can_be_sent() {
    fn shared<T: Send + Sync>() {}
    shared::<Future<String>>();
    shared::<Promise<String>>();
}
