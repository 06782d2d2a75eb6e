//! Scopes and spawned jobs that are believed to have ended.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    body_reads_early, body_reads_early_fixed;
    jobs_share_a_cell, jobs_share_a_cell_fixed;
    job_of_the_outer_scope, job_of_the_outer_scope_fixed;
    job_run_by_a_yield, job_run_by_a_yield_fixed;
    spawned_and_forgotten, spawned_and_forgotten_fixed;
    detached_in_a_scope, detached_in_a_scope_fixed;
    detached_behind_a_flag, detached_behind_a_flag_fixed;
    spawned_and_passed_by, spawned_and_passed_by_fixed;
    broadcast_into_one, broadcast_into_one_fixed;
    loop_variable, loop_variable_fixed;
];

/// The body of a scope looks at what its job computes.
fn body_reads_early() {
    let result = Shared::new(0u32);
    rayon::scope(|scope| {
        // SAFETY: "it is there when we look".
        scope.spawn(|_| unsafe { *result.get() = 5 }); // race
        // SAFETY: as above.
        black_box(unsafe { *result.get() }); // race
    });
}

fn body_reads_early_fixed() {
    let result = Shared::new(0u32);
    // SAFETY: nobody else does.
    rayon::scope(|scope| scope.spawn(|_| unsafe { *result.get() = 5 }));
    // SAFETY: the scope has ended.
    black_box(unsafe { *result.get() });
}

/// A job spawns another, and goes on with what it gave away.
fn jobs_share_a_cell() {
    let cell = &Shared::new([0u8; 4]);
    rayon::scope(|scope| {
        scope.spawn(move |scope| {
            // SAFETY: "the new job starts later".
            scope.spawn(move |_| unsafe { cell.get()[1] += 1 }); // race
            // SAFETY: as above.
            unsafe { cell.get()[1] += 1 }; // race
        });
    });
    black_box(cell);
}

fn jobs_share_a_cell_fixed() {
    let cell = &Shared::new([0u8; 4]);
    rayon::scope(|scope| {
        scope.spawn(move |scope| {
            // SAFETY: before the new job is there.
            unsafe { cell.get()[1] += 1 };
            // SAFETY: nobody else does any more.
            scope.spawn(move |_| unsafe { cell.get()[1] += 1 });
        });
    });
    black_box(cell);
}

/// The inner scope has ended; its jobs have not, if they were spawned in the outer one.
fn job_of_the_outer_scope() {
    let cell = &Shared::new(0u64);
    rayon::scope(|outer| {
        rayon::scope(|_| {
            // SAFETY: "the inner scope waits for it".
            outer.spawn(move |_| unsafe { *cell.get() += 1 }); // race
        });
        // SAFETY: as above.
        unsafe { *cell.get() += 1 }; // race
    });
    black_box(cell);
}

fn job_of_the_outer_scope_fixed() {
    let cell = &Shared::new(0u64);
    rayon::scope(|_| {
        rayon::scope(|inner| {
            // SAFETY: the inner scope waits for it.
            inner.spawn(move |_| unsafe { *cell.get() += 1 });
        });
        // SAFETY: as above.
        unsafe { *cell.get() += 1 };
    });
    black_box(cell);
}

/// The inner scope has ended, and so, this time, has the job: a yield has run it.
fn job_run_by_a_yield() {
    let cell = &Shared::new(0u64);
    rayon::scope(|outer| {
        rayon::scope(|_| {
            // SAFETY: "the yield waits for it".
            outer.spawn(move |_| unsafe { *cell.get() += 1 }); // race
            rayon::yield_now();
        });
        // SAFETY: as above.
        unsafe { *cell.get() += 1 }; // race
    });
    black_box(cell);
}

fn job_run_by_a_yield_fixed() {
    let cell = &Shared::new(0u64);
    rayon::scope(|outer| {
        rayon::scope(|_| {
            // SAFETY: after what comes before the spawn, and before the end of the outer scope.
            outer.spawn(move |_| unsafe { *cell.get() += 1 });
            rayon::yield_now();
        });
    });
    // SAFETY: the outer scope has ended.
    unsafe { *cell.get() += 1 };
    black_box(cell);
}

/// A detached job, and nobody waits for it.
fn spawned_and_forgotten() {
    static TOTAL: Shared<u64> = Shared::new(0);
    // SAFETY: "it will be done by then".
    rayon::spawn(|| unsafe { *TOTAL.get() = 9 }); // race
    // SAFETY: as above.
    black_box(unsafe { *TOTAL.get() }); // race
}

fn spawned_and_forgotten_fixed() {
    static TOTAL: Shared<u64> = Shared::new(0);
    let (done, wait) = mpsc::channel();
    rayon::spawn(move || {
        // SAFETY: before the message.
        unsafe { *TOTAL.get() = 9 };
        done.send(()).unwrap();
    });
    wait.recv().unwrap();
    // SAFETY: after the message.
    black_box(unsafe { *TOTAL.get() });
}

/// A scope waits for its own jobs, not for those that are spawned past it.
fn detached_in_a_scope() {
    static TOTAL: Shared<u64> = Shared::new(0);
    rayon::scope(|scope| {
        scope.spawn(|_| {
            // SAFETY: "the scope waits for all that is spawned in it".
            rayon::spawn(|| unsafe { *TOTAL.get() = 9 }); // race
        });
    });
    // SAFETY: as above.
    black_box(unsafe { *TOTAL.get() }); // race
}

fn detached_in_a_scope_fixed() {
    static TOTAL: Shared<u64> = Shared::new(0);
    let (done, wait) = mpsc::channel();
    // SAFETY: before the job is there.
    unsafe { *TOTAL.get() = 3 };
    rayon::scope(|scope| {
        scope.spawn(|_| {
            rayon::spawn(move || {
                // SAFETY: after what comes before the spawn, and before the message.
                unsafe { *TOTAL.get() *= 3 };
                done.send(()).unwrap();
            });
        });
    });
    wait.recv().unwrap();
    // SAFETY: after the message.
    black_box(unsafe { *TOTAL.get() });
}

/// A detached job says that it has begun, and not that it has ended.
fn detached_behind_a_flag() {
    static TOTAL: Shared<u64> = Shared::new(0);
    static READY: AtomicBool = AtomicBool::new(false);
    rayon::join(
        || {
            rayon::scope(|_| {
                rayon::spawn(|| {
                    READY.store(true, Release);
                    // SAFETY: "nobody is that fast".
                    unsafe { *TOTAL.get() = 9 }; // race
                });
            });
        },
        || (),
    );
    if READY.load(Acquire) {
        // SAFETY: as above.
        black_box(unsafe { *TOTAL.get() }); // race
    }
}

fn detached_behind_a_flag_fixed() {
    static TOTAL: Shared<u64> = Shared::new(0);
    static READY: AtomicBool = AtomicBool::new(false);
    rayon::join(
        || {
            rayon::scope(|_| {
                rayon::spawn(|| {
                    // SAFETY: nobody looks before the flag is set.
                    unsafe { *TOTAL.get() = 9 };
                    READY.store(true, Release);
                });
            });
        },
        || (),
    );
    if READY.load(Acquire) {
        // SAFETY: as above.
        black_box(unsafe { *TOTAL.get() });
    }
}

/// A job and the call that has spawned it go on side by side.
fn spawned_and_passed_by() {
    let cell: &Shared<u64> = Box::leak(Box::new(Shared::new(0)));
    let spawns = || {
        // SAFETY: "the job runs when the call is over".
        rayon::spawn(|| unsafe { *cell.get() += 1 }); // race
        // SAFETY: as above.
        unsafe { *cell.get() += 1 }; // race
    };
    rayon::join(|| (), spawns);
}

/// What each has on its stack is its own, though the job runs where the frames of the call were.
fn spawned_and_passed_by_fixed() {
    #[inline(never)]
    fn around(event: impl FnOnce()) {
        let mut words = [0u64; 512];
        event();
        black_box(&mut words).fill(1);
    }
    let job = || around(|| _ = rayon::join(|| (), || ()));
    rayon::join(|| (), || around(|| rayon::spawn(job)));
}

/// Every worker writes to the first slot.
fn broadcast_into_one() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let mut slots = vec![0usize; 3];
    let raw = Raw::new(&mut slots);
    // SAFETY: "each worker has a slot".
    pool.broadcast(|worker| unsafe { *raw.at(worker.index() / 3) += 1 }); // race
    black_box(slots);
}

fn broadcast_into_one_fixed() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let mut slots = vec![0usize; 3];
    let raw = Raw::new(&mut slots);
    // SAFETY: each worker has a slot.
    pool.broadcast(|worker| unsafe { *raw.at(worker.index()) += 1 });
    black_box(slots);
}

/// Jobs that read the variable of the loop that spawns them.
fn loop_variable() {
    let current = &Shared::new(0usize);
    let mut out = vec![0; 4];
    let raw = Raw::new(&mut out);
    rayon::scope(|scope| {
        for i in 0..4 {
            // SAFETY: "the job copies it at once".
            unsafe { *current.get() = i }; // race
            scope.spawn(move |_| {
                // SAFETY: as above.
                let own = unsafe { *current.get() }; // race
                // SAFETY: one each.
                unsafe { *raw.at(own) += 1 }; // race
            });
        }
    });
    black_box(out);
}

fn loop_variable_fixed() {
    let mut out = vec![0; 4];
    let raw = Raw::new(&mut out);
    rayon::scope(|scope| {
        for own in 0..4 {
            // SAFETY: one each.
            scope.spawn(move |_| unsafe { *raw.at(own) += 1 });
        }
    });
    black_box(out);
}
