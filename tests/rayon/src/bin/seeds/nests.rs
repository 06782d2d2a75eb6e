//! rayon and dagsan-task inside of each other: what each joins, and what it does not.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dagsan_task::{Promise, finish, isolated, procedure};
use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    join_in_a_task, join_in_a_task_fixed;
    join_in_two_tasks, join_in_two_tasks_fixed;
    task_in_a_join, task_in_a_join_fixed;
    scope_in_a_future, scope_in_a_future_fixed;
    future_got_in_a_job, future_got_in_a_job_fixed;
    promise_awaited_in_a_job, promise_awaited_in_a_job_fixed;
    promise_set_in_a_job, promise_set_in_a_job_fixed;
    scopes_of_waiting_tasks, scopes_of_waiting_tasks_fixed;
    waits_in_a_join, waits_in_a_join_fixed;
    detached_in_a_task, detached_in_a_task_fixed;
    task_in_a_detached_job, task_in_a_detached_job_fixed;
    job_of_a_scope_around_the_finish, job_of_a_scope_around_the_finish_fixed;
    task_of_a_finish_around_the_scope, task_of_a_finish_around_the_scope_fixed;
    waiting_task_of_a_finish_around_the_scope, waiting_task_of_a_finish_around_the_scope_fixed;
    future_of_a_finish_around_the_scope, future_of_a_finish_around_the_scope_fixed;
    spawn_of_a_procedure_around_the_scope, spawn_of_a_procedure_around_the_scope_fixed;
    sync_in_a_scope, sync_in_a_scope_fixed;
    items_in_tasks, items_in_tasks_fixed;
    tasks_in_items, tasks_in_items_fixed;
    sections_in_items, sections_in_items_fixed;
    four_deep, four_deep_fixed;
    four_deep_the_other_way, four_deep_the_other_way_fixed;
    panics_through_both, panics_through_both_fixed;
    pool_in_a_task, pool_in_a_task_fixed;
    broadcast_in_a_task, broadcast_in_a_task_fixed;
    yield_in_a_task, yield_in_a_task_fixed;
    locals_of_jobs_on_fibers, locals_of_jobs_on_fibers_fixed;
    jobs_that_wait_for_each_other, jobs_that_wait_for_each_other_fixed;
];

/// A cell that tasks share.
type Cell = Shared<u32>;

/// One more, unprotected.
macro_rules! bump {
    ($cell:expr) => {{
        // SAFETY: whether somebody else does so is what these programs are about.
        unsafe { *$cell.get() += 1 }
    }};
}

fn join_in_a_task() {
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| {
            rayon::join(
                || bump!(x), // race
                || bump!(x), // race
            );
        });
    });
}

fn join_in_a_task_fixed() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    finish(|s| {
        s.spawn(move |_| {
            rayon::join(|| bump!(x), || bump!(y));
            bump!(x);
            bump!(y);
        });
    });
    bump!(x);
}

/// Each task has a join, and the joins have nothing to do with each other.
fn join_in_two_tasks() {
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| {
            rayon::join(|| bump!(x), || ()); // race
        });
        s.spawn(move |_| {
            rayon::join(|| (), || bump!(x)); // race
        });
    });
}

fn join_in_two_tasks_fixed() {
    let x = &Cell::new(0);
    finish(|s| {
        finish(|s| {
            s.spawn(move |_| {
                rayon::join(|| bump!(x), || ());
            });
        });
        s.spawn(move |_| {
            rayon::join(|| (), || bump!(x));
        });
    });
}

fn task_in_a_join() {
    let x = &Cell::new(0);
    rayon::join(
        || finish(|s| s.spawn(move |_| bump!(x))), // race
        || bump!(x),                               // race
    );
}

fn task_in_a_join_fixed() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    rayon::join(
        || {
            finish(|s| s.spawn(move |_| bump!(x)));
            bump!(x);
        },
        || bump!(y),
    );
    bump!(x);
    bump!(y);
}

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

/// A finish does not join what was spawned in no scope of rayon's.
fn detached_in_a_task() {
    static X: Cell = Cell::new(0);
    finish(|s| s.spawn(|_| rayon::spawn(|| bump!(X)))); // race
    bump!(X); // race
}

fn detached_in_a_task_fixed() {
    static X: Cell = Cell::new(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    finish(|s| s.spawn(|_| pool.spawn(|| bump!(X))));
    drop(pool);
    bump!(X);
}

fn task_in_a_detached_job() {
    static X: Cell = Cell::new(0);
    rayon::spawn(|| finish(|s| s.spawn(|_| bump!(X)))); // race
    finish(|s| s.spawn(|_| bump!(X))); // race
}

fn task_in_a_detached_job_fixed() {
    static X: Cell = Cell::new(0);
    let done = &Promise::new();
    let set = done.clone();
    finish(|s| {
        s.spawn(move |_| {
            rayon::spawn(move || {
                finish(|s| s.spawn(|_| bump!(X)));
                set.set(());
            });
        });
        s.spawn(move |_| {
            done.get();
            bump!(X);
        });
    });
}

/// A job of the outer scope is not over when the finish is.
fn job_of_a_scope_around_the_finish() {
    let x = &Cell::new(0);
    rayon::scope(|r| {
        finish(|s| s.spawn(move |_| r.spawn(move |_| bump!(x)))); // race
        bump!(x); // race
    });
}

fn job_of_a_scope_around_the_finish_fixed() {
    let x = &Cell::new(0);
    rayon::scope(|r| {
        finish(|s| {
            s.spawn(move |_| {
                bump!(x);
                r.spawn(move |_| bump!(x));
            });
        });
    });
    bump!(x);
}

/// Nor is a task of the outer finish when the scope is.
fn task_of_a_finish_around_the_scope() {
    let x = &Cell::new(0);
    finish(|s| {
        rayon::in_place_scope(|_| s.spawn(move |_| bump!(x))); // race
        bump!(x); // race
    });
}

fn task_of_a_finish_around_the_scope_fixed() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    finish(|s| {
        rayon::in_place_scope(|r| {
            s.spawn(move |s| {
                bump!(x);
                s.spawn(move |_| bump!(x));
            });
            r.spawn(move |_| bump!(y));
        });
        bump!(y);
    });
    bump!(x);
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

fn future_of_a_finish_around_the_scope() {
    let x = &Cell::new(0);
    finish(|s| {
        let future = rayon::in_place_scope(|_| s.future(move |_| bump!(x))); // race
        bump!(x); // race
        future.get();
    });
}

fn future_of_a_finish_around_the_scope_fixed() {
    let x = &Cell::new(0);
    finish(|s| {
        let future = rayon::in_place_scope(|_| s.future(move |_| bump!(x)));
        future.get();
        bump!(x);
    });
    bump!(x);
}

fn spawn_of_a_procedure_around_the_scope() {
    let x = &Cell::new(0);
    procedure(|p| {
        rayon::in_place_scope(|_| drop(p.spawn(move || bump!(x)))); // race
        bump!(x); // race
        p.sync();
    });
}

fn spawn_of_a_procedure_around_the_scope_fixed() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    procedure(|p| {
        rayon::in_place_scope(|r| {
            r.spawn(move |_| bump!(y));
            drop(p.spawn(move || bump!(x)));
        });
        bump!(y);
        p.sync();
        bump!(x);
    });
}

fn sync_in_a_scope() {
    let x = &Cell::new(0);
    procedure(|p| {
        drop(p.spawn(move || bump!(x))); // race
        rayon::in_place_scope(|r| {
            r.spawn(move |_| bump!(x)); // race
            p.sync();
        });
    });
}

fn sync_in_a_scope_fixed() {
    let x = &Cell::new(0);
    procedure(|p| {
        drop(p.spawn(move || bump!(x)));
        rayon::in_place_scope(|r| {
            p.sync();
            r.spawn(move |_| bump!(x));
        });
        bump!(x);
    });
}

/// Two neighbours share a slot. How far iterators are cut does not depend on the stack that they are on.
fn items_in_tasks() {
    let mut slots = [[0u8; 64]; 3];
    finish(|s| {
        for slots in &mut slots {
            let slots = Raw::new(slots);
            // SAFETY: "every item has its own".
            let item = move |i: usize| unsafe { *slots.at((i + 1) / 2) += 1 }; // race
            s.spawn(move |_| (0..64).into_par_iter().for_each(item));
        }
    });
}

fn items_in_tasks_fixed() {
    let mut slots = [[0u8; 64]; 3];
    finish(|s| {
        for slots in &mut slots {
            s.spawn(move |_| slots.par_iter_mut().for_each(|slot| *slot += 1));
        }
    });
    black_box(slots);
}

fn tasks_in_items() {
    let mut sums = [0u64; 8];
    let slots = Raw::new(&mut sums);
    (0..8usize).into_par_iter().for_each(|i| {
        finish(|s| {
            // SAFETY: "every item has its own".
            s.spawn(move |_| unsafe { *slots.at(i / 2) += 1 }); // race
        });
    });
}

fn tasks_in_items_fixed() {
    let mut sums = [0u64; 8];
    sums.par_iter_mut().for_each(|sum| {
        let (left, right) = finish(|s| (s.future(|_| 1), s.future(|_| 2)));
        *sum = left.get() + right.get();
    });
    assert_eq!(sums, [3; 8]);
}

fn sections_in_items() {
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| (0..8).into_par_iter().for_each(|_| isolated(|| bump!(x)))); // race
        s.spawn(move |_| rayon::scope(|_| bump!(x))); // race
    });
}

fn sections_in_items_fixed() {
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| (0..8).into_par_iter().for_each(|_| isolated(|| bump!(x))));
        s.spawn(move |_| rayon::scope(|_| isolated(|| bump!(x))));
    });
}

fn four_deep() {
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| {
            rayon::scope(|r| {
                r.spawn(move |_| {
                    procedure(|p| {
                        drop(p.spawn(move || {
                            rayon::join(|| bump!(x), || ()); // race
                        }));
                        rayon::join(|| (), || bump!(x)); // race
                    });
                });
            });
        });
    });
}

fn four_deep_fixed() {
    let x = &Cell::new(0);
    finish(|s| {
        s.spawn(move |_| {
            rayon::scope(|r| {
                r.spawn(move |_| {
                    procedure(|p| {
                        drop(p.spawn(move || {
                            rayon::join(|| bump!(x), || ());
                            bump!(x);
                        }));
                        p.sync();
                        rayon::join(|| (), || bump!(x));
                    });
                    bump!(x);
                });
            });
            bump!(x);
        });
    });
    bump!(x);
}

fn four_deep_the_other_way() {
    let x = &Cell::new(0);
    rayon::join(
        || {
            finish(|s| {
                let future = s.future(move |_| {
                    rayon::scope(|r| {
                        r.spawn(move |_| finish(|s| s.spawn(move |_| bump!(x)))); // race
                        r.spawn(move |_| finish(|s| s.spawn(move |_| bump!(x)))); // race
                    });
                });
                future.get();
            });
        },
        || (),
    );
}

fn four_deep_the_other_way_fixed() {
    let (x, y) = (&Cell::new(0), &Cell::new(0));
    rayon::join(
        || {
            finish(|s| {
                let future = s.future(move |_| {
                    rayon::scope(|r| {
                        r.spawn(move |_| finish(|s| s.spawn(move |_| bump!(x))));
                        r.spawn(move |_| finish(|s| s.spawn(move |_| bump!(y))));
                    });
                    bump!(x);
                });
                future.get();
                bump!(y);
            });
            bump!(x);
        },
        || (),
    );
    bump!(y);
}

/// Panics, of a job and of a task, from a scope in a task in a join.
fn fails_inside(x: &Cell) {
    let fails = || {
        rayon::join(
            || {
                finish(|s| {
                    s.spawn(|_| {
                        rayon::scope(|r| {
                            r.spawn(|_| panic!("job"));
                            r.spawn(|_| finish(|s| s.spawn(|_| panic!("task"))));
                        });
                    });
                    s.spawn(|_| bump!(x));
                });
            },
            || procedure(|p| p.spawn(|| rayon::in_place_scope(|_| panic!("body"))).join()),
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
