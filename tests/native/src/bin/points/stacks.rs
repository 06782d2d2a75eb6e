//! Stacks of tasks come back: the sibling of a task that has ended runs where it ran.

use std::hint::black_box;

use dagsan_task::{Promise, finish, procedure};

use crate::Point;
use crate::shared::{Pointer, Shared, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    stack_borrowed_by_children,
    stack_of_suspended_tasks,
    stack_of_procedures,
    stack_deep,
    stack_read_after_finish,
    stack_written_by_two_children,
    stack_of_parent_and_child,
];

/// Only what a child can see is recorded of a stack, so these have children.
// expect: race-free
// expect task_stacks=0: race
fn stack_borrowed_by_children() {
    siblings(|| {
        let local = Shared::new(0u64);
        finish(|scope| {
            let local = &local;
            spawn!(scope, store!(local, 1));
        });
        load!(local);
    });
}

/// The first task waits, and ends while its sibling waits for it. The third gets its stack.
// expect: race-free
// expect task_stacks=0: race
fn stack_of_suspended_tasks() {
    let (go, gone) = (Promise::new(), Promise::new());
    finish(|scope| {
        let (go, gone) = (&go, &gone);
        spawn!(scope, one(); go.get(); gone.set(()););
        spawn!(scope, go.set(()); gone.get(););
        spawn!(scope, one(););
    });

    fn one() {
        let local = Shared::new([0u64; 8]);
        finish(|scope| {
            let local = &local;
            spawn!(scope, store!(local, black_box([1; 8])));
        });
        load!(local);
    }
}

// expect: race-free
// expect task_stacks=0: race
fn stack_of_procedures() {
    fn sum(numbers: &[u64]) -> u64 {
        let [one, two, ..] = numbers else { return numbers.iter().sum() };
        let first = Shared::new(one + two);
        let (left, right) = numbers[2..].split_at(numbers.len() / 2 - 1);
        procedure(|p| {
            let left = p.spawn(|| load!(first) + sum(left));
            let right = sum(right);
            p.sync();
            left.join() + right
        })
    }
    let numbers: Vec<u64> = (1..=50).collect();
    assert_eq!(sum(&numbers), 1275);
}

/// Long arrays in frames that are left before the next ones are entered.
// expect: race-free
// expect task_stacks=0: race
fn stack_deep() {
    fn level(depth: u32) -> u64 {
        let local = Shared::new([u64::from(depth); 100]);
        finish(|scope| {
            let (local, inner) = (&local, depth);
            scope.spawn(move |_| {
                // SAFETY: the parent waits.
                unsafe { (*local.at())[black_box(3)] = 5 };
                if inner > 0 {
                    level(inner - 1);
                }
            });
        });
        // SAFETY: the child has ended.
        unsafe { (*local.at())[black_box(3)] }
    }
    siblings(|| assert_eq!(level(4), 5));
}

// expect: race-free
fn stack_read_after_finish() {
    let mut parts = [0u64; 8];
    finish(|scope| {
        for (i, part) in parts.iter_mut().enumerate() {
            scope.spawn(move |_| *part = i as u64);
        }
    });
    assert_eq!(black_box(parts).iter().sum::<u64>(), 28);
}

// expect: race write/write on 8 bytes of stack by 2/3
fn stack_written_by_two_children() {
    finish(|scope| {
        scope.spawn(|_| {
            let local = Shared::new(0u64);
            finish(|scope| {
                let local = &local;
                spawn!(scope, store!(local, 1)); // race (1)
                spawn!(scope, store!(local, 2)); // race (2)
            });
        });
    });
}

// expect: race write/read on 4 bytes of stack by 1/0
fn stack_of_parent_and_child() {
    let local = Shared::new(0u32);
    let inside = Pointer(local.at());
    finish(|scope| {
        spawn!(scope, store!(inside, 1)); // race (1)
        load!(local); // race (2)
    });
}
