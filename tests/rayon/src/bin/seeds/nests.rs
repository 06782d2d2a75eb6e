//! rayon and dagsan-task inside of each other: what each joins, and what it does not.

use std::hint::black_box;

use dagsan_task::{Promise, finish, isolated, procedure};
use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    join_in_a_task, join_in_a_task_fixed;
    join_in_two_tasks, join_in_two_tasks_fixed;
    task_in_a_join, task_in_a_join_fixed;
    detached_in_a_task, detached_in_a_task_fixed;
    task_in_a_detached_job, task_in_a_detached_job_fixed;
    job_of_a_scope_around_the_finish, job_of_a_scope_around_the_finish_fixed;
    task_of_a_finish_around_the_scope, task_of_a_finish_around_the_scope_fixed;
    future_of_a_finish_around_the_scope, future_of_a_finish_around_the_scope_fixed;
    spawn_of_a_procedure_around_the_scope, spawn_of_a_procedure_around_the_scope_fixed;
    sync_in_a_scope, sync_in_a_scope_fixed;
    items_in_tasks, items_in_tasks_fixed;
    tasks_in_items, tasks_in_items_fixed;
    sections_in_items, sections_in_items_fixed;
    four_deep, four_deep_fixed;
    four_deep_the_other_way, four_deep_the_other_way_fixed;
];

/// A cell that tasks share.
type Cell = Shared<u32>;

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
