//! rayon and dagsan-task inside of each other: tasks that wait in the middle of rayon's code, stacks, pools, panics.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use dagsan_task::{Promise, finish, procedure};

use crate::Seed;
use crate::shared::Shared;

pub const SEEDS: &[Seed] = seeds![
    scope_in_a_future, scope_in_a_future_fixed;
    future_got_in_a_job, future_got_in_a_job_fixed;
    promise_awaited_in_a_job, promise_awaited_in_a_job_fixed;
    promise_set_in_a_job, promise_set_in_a_job_fixed;
    scopes_of_waiting_tasks, scopes_of_waiting_tasks_fixed;
    waits_in_a_join, waits_in_a_join_fixed;
    waiting_task_of_a_finish_around_the_scope, waiting_task_of_a_finish_around_the_scope_fixed;
    panics_through_both, panics_through_both_fixed;
    pool_in_a_task, pool_in_a_task_fixed;
    broadcast_in_a_task, broadcast_in_a_task_fixed;
    yield_in_a_task, yield_in_a_task_fixed;
    locals_of_jobs_on_fibers, locals_of_jobs_on_fibers_fixed;
    jobs_that_wait_for_each_other, jobs_that_wait_for_each_other_fixed;
    many_that_wait, many_that_wait_fixed;
    many_for_the_outer_scope, many_for_the_outer_scope_fixed;
    many_in_a_pool, many_in_a_pool_fixed;
];

/// A cell that tasks share.
type Cell = Shared<u32>;

fn scope_in_a_future() {
    let x = &Cell::new(0);
    finish(|s| {
        let future = s.future(move |_| rayon::scope(|r| r.spawn(move |_| bump!(x)))); // race
        bump!(x); // race
        future.get();
    });
}

fn scope_in_a_future_fixed() {
    let x = &Cell::new(0);
    finish(|s| {
        let future = s.future(move |_| rayon::scope(|r| r.spawn(move |_| bump!(x))));
        future.get();
        bump!(x);
    });
}

/// One of two jobs gets the future.
fn future_got_in_a_job() {
    let x = &Cell::new(0);
    finish(|s| {
        let future = s.future(move |_| bump!(x)); // race
        rayon::scope(|r| {
            r.spawn(|_| _ = future.get());
            r.spawn(move |_| bump!(x)); // race
        });
    });
}

fn future_got_in_a_job_fixed() {
    let x = &Cell::new(0);
    finish(|s| {
        let future = s.future(move |_| bump!(x));
        rayon::scope(|r| {
            r.spawn(|_| {
                future.get();
                bump!(x);
            });
        });
        bump!(x);
    });
}

/// The task waits in the middle of a rayon job, and its parent goes on.
fn promise_awaited_in_a_job() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            rayon::scope(|r| {
                r.spawn(move |_| {
                    ready.get();
                    bump!(x); // race
                });
            });
        });
        ready.set(());
        bump!(x); // race
    });
}

fn promise_awaited_in_a_job_fixed() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            rayon::scope(|r| {
                r.spawn(move |_| {
                    ready.get();
                    bump!(x);
                });
            });
            bump!(x);
        });
        bump!(x);
        ready.set(());
    });
    bump!(x);
}

fn promise_set_in_a_job() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            ready.get();
            bump!(x); // race
        });
        rayon::scope(|r| {
            r.spawn(move |_| {
                ready.set(());
                bump!(x); // race
            });
        });
    });
}

fn promise_set_in_a_job_fixed() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            ready.get();
            bump!(x);
        });
        rayon::scope(|r| {
            r.spawn(move |_| {
                bump!(x);
                ready.set(());
            });
        });
    });
}

/// Both tasks have a scope open while the other one runs.
fn scopes_of_waiting_tasks() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    let (ping, pong) = (&Promise::new(), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            rayon::scope(|r| {
                r.spawn(move |_| bump!(x));
                ping.get();
                r.spawn(move |_| bump!(y)); // race
                pong.set(());
            });
            bump!(x);
        });
        s.spawn(move |_| {
            rayon::scope(|r| {
                ping.set(());
                pong.get();
                r.spawn(move |_| bump!(y)); // race
            });
        });
    });
}

fn scopes_of_waiting_tasks_fixed() {
    let (x, y, z) = (&Cell::new(0), &Cell::new(0), &Cell::new(0));
    let (ping, pong) = (&Promise::new(), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            rayon::scope(|r| {
                r.spawn(move |_| bump!(x));
                ping.get();
                rayon::scope(|r| r.spawn(move |_| bump!(y)));
                r.spawn(move |_| bump!(z));
                pong.set(());
            });
            bump!(x);
            bump!(z);
        });
        s.spawn(move |_| {
            rayon::scope(|r| {
                ping.set(());
                pong.get();
                r.spawn(move |_| bump!(y));
            });
            bump!(y);
        });
    });
}

/// A task waits in the first half of a join; the second half has nothing to wait for.
fn waits_in_a_join() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            rayon::join(|| _ = ready.get(), || bump!(x)); // race
        });
        bump!(x); // race
        ready.set(());
    });
}

fn waits_in_a_join_fixed() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        s.spawn(move |_| {
            rayon::join(|| _ = ready.get(), || ());
            bump!(x);
        });
        bump!(x);
        ready.set(());
    });
}

fn waiting_task_of_a_finish_around_the_scope() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        rayon::in_place_scope(|_| {
            s.spawn(move |_| {
                ready.get();
                rayon::join(|| bump!(x), || ()); // race
            });
        });
        ready.set(());
        bump!(x); // race
    });
}

fn waiting_task_of_a_finish_around_the_scope_fixed() {
    let (x, ready) = (&Cell::new(0), &Promise::new());
    finish(|s| {
        rayon::in_place_scope(|r| {
            s.spawn(move |_| {
                ready.get();
                rayon::join(|| bump!(x), || ());
            });
            r.spawn(move |_| bump!(x));
        });
        bump!(x);
        ready.set(());
    });
    bump!(x);
}

/// Panics, and prints nothing: what the standard library does for that is under locks that nobody sees.
fn fail() {
    resume_unwind(Box::new("failed"))
}

/// Panics, of a job and of a task, from a scope in a task in a join.
fn fails_inside(x: &Cell) {
    let fails = || {
        rayon::join(
            || {
                finish(|s| {
                    s.spawn(|_| {
                        rayon::scope(|r| {
                            r.spawn(|_| fail());
                            r.spawn(|_| finish(|s| s.spawn(|_| fail())));
                        });
                    });
                    s.spawn(|_| bump!(x));
                });
            },
            || procedure(|p| p.spawn(|| rayon::in_place_scope(|_| fail())).join()),
        );
    };
    assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
}

fn panics_through_both() {
    let x = &Cell::new(0);
    fails_inside(x);
    finish(|s| {
        s.spawn(move |_| {
            rayon::join(|| bump!(x), || ()); // race
        });
        bump!(x); // race
    });
}

fn panics_through_both_fixed() {
    let x = &Cell::new(0);
    fails_inside(x);
    finish(|s| s.spawn(move |_| fails_inside(x)));
    rayon::scope(|r| r.spawn(move |_| fails_inside(x)));
    bump!(x);
}

fn pool_in_a_task() {
    let pool = &rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| {
            pool.install(|| finish(|s| s.spawn(move |_| bump!(x)))); // race
        });
        s.spawn(move |_| pool.scope(|r| r.spawn(move |_| bump!(x)))); // race
    });
}

fn pool_in_a_task_fixed() {
    let pool = &rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let (x, ready) = (&Cell::new(0), &Promise::new());
    let outside = rayon::current_num_threads();
    finish(|s| {
        s.spawn(move |_| {
            pool.install(|| {
                finish(|s| {
                    s.spawn(move |_| {
                        ready.get();
                        assert_eq!(rayon::current_num_threads(), 3);
                        bump!(x);
                    });
                    assert_eq!(rayon::current_num_threads(), 3);
                });
                bump!(x);
            });
            assert_eq!(rayon::current_num_threads(), outside);
        });
        s.spawn(move |_| {
            assert_eq!(rayon::current_num_threads(), outside);
            pool.scope(|r| r.spawn(move |_| bump!(x)));
            ready.set(());
        });
    });
}

fn broadcast_in_a_task() {
    let pool = &rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| {
            pool.broadcast(|_| finish(|s| s.spawn(move |_| bump!(x)))); // race
        });
    });
}

fn broadcast_in_a_task_fixed() {
    let pool = &rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let slots = &[const { Cell::new(0) }; 3];
    finish(|s| {
        s.spawn(move |_| {
            pool.broadcast(|context| {
                let slot = &slots[context.index()];
                finish(|s| s.spawn(move |_| bump!(slot)));
            });
            bump!(slots[1]);
        });
    });
}

/// A task lets a job of the scope around it run; it is not joined by that.
fn yield_in_a_task() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    rayon::scope(|r| {
        r.spawn(move |_| {
            rayon::join(|| bump!(x), || bump!(y)); // race
        });
        finish(|s| s.spawn(|_| _ = rayon::yield_now()));
        bump!(x); // race
    });
}

fn yield_in_a_task_fixed() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    rayon::scope(|r| {
        finish(|s| {
            s.spawn(move |_| {
                r.spawn(move |_| {
                    rayon::join(|| bump!(x), || bump!(y));
                });
                rayon::yield_now();
            });
        });
    });
    bump!(x);
    bump!(y);
}

/// The frames of jobs lie where those of other jobs were, on stacks that other tasks have had.
#[inline(never)]
fn with_a_local(depth: u32, body: fn(&Cell)) {
    let local = Cell::new(0);
    let task = || {
        let own = &Cell::new(0);
        rayon::join(|| finish(|s| s.spawn(|_| bump!(own))), || ());
        bump!(own);
        black_box(own);
    };
    rayon::scope(|r| {
        r.spawn(|_| task());
        r.spawn(|_| task());
        finish(|s| {
            s.spawn(|_| task());
            if depth > 0 {
                s.spawn(|_| with_a_local(depth - 1, |_| ()));
            }
        });
    });
    body(&local);
}

fn locals_of_jobs_on_fibers() {
    with_a_local(2, |local| {
        rayon::join(
            || bump!(local), // race
            || bump!(local), // race
        );
    });
}

fn locals_of_jobs_on_fibers_fixed() {
    for _ in 0..3 {
        finish(|s| {
            for _ in 0..3 {
                s.spawn(|_| {
                    with_a_local(2, |local| {
                        rayon::join(|| bump!(local), || ());
                        bump!(local);
                    });
                });
            }
        });
    }
}

/// Jobs of different scopes, each in a task of its own, hand a cell around.
fn jobs_that_wait_for_each_other() {
    let x = &Cell::new(0);
    let turns: &[Promise<()>] = &[Promise::new(), Promise::new(), Promise::new()];
    finish(|s| {
        for (i, turn) in turns.iter().enumerate() {
            s.spawn(move |_| {
                rayon::scope_fifo(|r| {
                    r.spawn_fifo(move |_| {
                        turn.get();
                        // The first passes it on too early.
                        if i == 0 {
                            turns[1].set(());
                        }
                        rayon::join(|| bump!(x), || ()); // race
                        if i == 1 {
                            turns[2].set(());
                        }
                    });
                });
            });
        }
        turns[0].set(());
    });
}

fn jobs_that_wait_for_each_other_fixed() {
    let x = &Cell::new(0);
    let turns: &[Promise<()>] = &[Promise::new(), Promise::new(), Promise::new()];
    finish(|s| {
        for (i, turn) in turns.iter().enumerate() {
            s.spawn(move |_| {
                rayon::scope_fifo(|r| {
                    r.spawn_fifo(move |_| {
                        turn.get();
                        rayon::join(|| bump!(x), || ());
                        if let Some(next) = turns.get(i + 1) {
                            next.set(());
                        }
                    });
                });
            });
        }
        turns[0].set(());
    });
    bump!(x);
}

/// Parallel tasks make the runtime's own lists grow, which is no business of the program's.
fn wakes_many(x: &Cell, wake: fn(&Cell)) {
    let promises: Vec<Promise<()>> = (0..40).map(|_| Promise::new()).collect();
    let promises = &promises[..];
    finish(|s| {
        for promise in promises {
            s.spawn(move |_| _ = promise.get());
        }
        for part in promises.chunks(10) {
            s.spawn(move |_| {
                part.iter().for_each(|promise| promise.set(()));
                wake(x);
            });
        }
    });
}

fn many_that_wait() {
    wakes_many(&Cell::new(0), |x| bump!(x)); // race
}

fn many_that_wait_fixed() {
    wakes_many(&Cell::new(0), |_| ());
}

fn many_for_the_outer_scope() {
    let x = &Cell::new(0);
    rayon::scope(|r| {
        for _ in 0..4 {
            r.spawn(move |r| finish(|_| (0..20).for_each(|_| r.spawn(move |_| bump!(x))))); // race
        }
    });
}

fn many_for_the_outer_scope_fixed() {
    rayon::scope(|r| {
        for _ in 0..4 {
            r.spawn(move |r| finish(|_| (0..20).for_each(|_| r.spawn(|_| ()))));
        }
    });
}

fn many_in_a_pool() {
    static X: Cell = Cell::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    finish(|s| {
        for _ in 0..4 {
            s.spawn(|_| (0..20).for_each(|_| pool.spawn(|| bump!(X)))); // race
        }
    });
}

fn many_in_a_pool_fixed() {
    static X: Cell = Cell::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    finish(|s| {
        for _ in 0..4 {
            s.spawn(|_| (0..20).for_each(|_| pool.spawn(|| ())));
        }
    });
    drop(pool);
    bump!(X);
}
