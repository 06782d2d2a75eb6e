//! Random programs whose result does not depend on the schedule: with several workers it is that of the serial executor.
//!
//! Every promise has one place that sets it, and isolated sections add. So what a task sees is a function of the program, also
//! whether a get fails: at a deadlock all tasks have come as far as they can, whoever ran them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{panic, thread};

use dagsan_task::{Promise, Scope, finish, isolated, procedure, with_workers};
use fastrand::Rng;

/// What a task does, in order.
enum Op {
    Spawn(Task),
    /// Got at once, by the next operation, or at the end of the task.
    Future(Task, bool),
    Finish(Vec<Op>),
    /// Spawns, does something itself, and syncs.
    Procedure(Vec<Task>, Vec<Op>),
    Isolated(u64),
    Set(usize),
    Get(usize),
    /// In a finish of its own, which passes it on.
    Panic,
    Delay(u32),
}

struct Task {
    number: usize,
    ops: Vec<Op>,
}

struct Generator {
    random: Rng,
    tasks: usize,
    /// Promises that nobody sets yet.
    unset: Vec<usize>,
    promises: usize,
}

impl Generator {
    fn task(&mut self, depth: u32) -> Task {
        self.tasks += 1;
        let number = self.tasks;
        Task { number, ops: self.ops(depth) }
    }

    fn ops(&mut self, depth: u32) -> Vec<Op> {
        (0..self.random.u32(1..6)).map(|_| self.op(depth)).collect()
    }

    fn op(&mut self, depth: u32) -> Op {
        let kind = if depth == 0 { self.random.u32(4..9) } else { self.random.u32(0..10) };
        match kind {
            0 | 9 => Op::Spawn(self.task(depth - 1)),
            1 => Op::Future(self.task(depth - 1), self.random.bool()),
            2 => Op::Finish(self.ops(depth - 1)),
            3 => {
                let count = self.random.u32(1..4);
                let tasks = (0..count).map(|_| self.task(depth - 1)).collect();
                Op::Procedure(tasks, self.ops(depth - 1))
            }
            4 => Op::Isolated(self.random.u64(0..100)),
            5 | 6 if !self.unset.is_empty() => {
                Op::Set(self.unset.swap_remove(self.random.usize(0..self.unset.len())))
            }
            7 => Op::Get(self.random.usize(0..self.promises)),
            8 if self.random.u32(0..8) == 0 => Op::Panic,
            _ => Op::Delay(self.random.u32(0..200)),
        }
    }
}

/// A run of a program.
struct Run {
    promises: Vec<Promise<u64>>,
    /// What every task has seen.
    seen: Vec<AtomicU64>,
    isolated: Mutex<u64>,
}

impl Run {
    fn of(program: &Task, tasks: usize, promises: usize) -> (Vec<u64>, u64) {
        let run = Run {
            promises: (0..promises).map(|_| Promise::new()).collect(),
            seen: (0..=tasks).map(|_| AtomicU64::new(0)).collect(),
            isolated: Mutex::new(0),
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| finish(|scope| run.task(program, scope)))).is_err();
        run.seen[0].store(u64::from(panicked), Relaxed);
        (run.seen.into_iter().map(AtomicU64::into_inner).collect(), run.isolated.into_inner().unwrap())
    }

    fn task<'a>(&'a self, task: &'a Task, scope: &Scope<'a>) -> u64 {
        let seen = self.ops(task.number as u64, &task.ops, scope);
        self.seen[task.number].store(seen, Relaxed);
        seen
    }

    fn ops<'a>(&'a self, mut seen: u64, ops: &'a [Op], scope: &Scope<'a>) -> u64 {
        let see = |seen: &mut u64, value: u64| *seen = seen.rotate_left(5).wrapping_mul(0x9e37_79b9) ^ value;
        let mut futures = Vec::new();
        for op in ops {
            match op {
                Op::Spawn(child) => scope.spawn(move |scope| _ = self.task(child, scope)),
                Op::Future(child, at_once) => {
                    let future = scope.future(move |scope| self.task(child, scope));
                    if *at_once {
                        see(&mut seen, future.try_get().map_or(1, |value| *value));
                    } else {
                        futures.push(future);
                    }
                }
                Op::Finish(ops) => {
                    let inner = catch_unwind(AssertUnwindSafe(|| finish(|scope| self.ops(seen, ops, scope))));
                    see(&mut seen, inner.unwrap_or(2));
                }
                Op::Procedure(children, ops) => {
                    let sum = catch_unwind(AssertUnwindSafe(|| {
                        procedure(|p| {
                            let spawned: Vec<_> = children
                                .iter()
                                .map(|child| p.spawn(move || finish(|scope| self.task(child, scope))))
                                .collect();
                            let own = finish(|scope| self.ops(seen, ops, scope));
                            p.sync();
                            spawned.into_iter().fold(own, |sum, spawned| sum.wrapping_add(spawned.join()))
                        })
                    }));
                    see(&mut seen, sum.unwrap_or(3));
                }
                Op::Isolated(value) => isolated(|| *self.isolated.lock().unwrap() += value),
                Op::Set(promise) => self.promises[*promise].set(seen),
                Op::Get(promise) => {
                    see(&mut seen, self.promises[*promise].try_get().map_or(4, |value| *value));
                }
                Op::Panic => panic!("on purpose"),
                Op::Delay(rounds) => (0..rounds * 10).for_each(|_| std::hint::spin_loop()),
            }
        }
        for future in futures {
            see(&mut seen, future.try_get().map_or(5, |value| *value));
        }
        seen
    }
}

#[test]
fn several_workers_compute_what_one_does() {
    panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref() != Some(&"on purpose") && thread::current().name().is_some() {
            eprintln!("{info}");
        }
    }));
    let (mut tasks, mut panics) = (0, 0);
    for seed in 0..500 {
        let promises = 1 + seed as usize % 6;
        let unset = (0..promises).collect();
        let mut generator = Generator { random: Rng::with_seed(seed), tasks: 0, unset, promises };
        let program = generator.task(4);
        let run = |workers| with_workers(workers, || Run::of(&program, generator.tasks, promises));
        let expected = run(1);
        for workers in [2, 4, 8] {
            assert_eq!(run(workers), expected, "program {seed} on {workers} workers");
        }
        tasks += generator.tasks;
        panics += expected.0[0];
    }
    assert!(tasks > 7_000 && panics > 5, "too tame: {tasks} tasks, {panics} panics");
}
