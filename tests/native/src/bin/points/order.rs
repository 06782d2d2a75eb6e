//! Order that the constructs make, and what they do not order.

use std::hint::black_box;

use dagsan_task::{Promise, finish, procedure};

use crate::Point;
use crate::shared::{Shared, load, spawn, store};

pub const POINTS: &[Point] = points![
    order_finish,
    order_nested_finish,
    order_future,
    order_promise,
    order_sync,
    order_moved_values,
    order_task_local_vectors,
    order_before_spawn,
    order_pipeline,
    order_continuation,
    order_inner_finish_only,
    order_spawn_without_sync,
    order_sync_joins_children_only,
    order_promise_read_before_get,
    order_promise_write_after_set,
    order_future_not_got,
    order_future_got_by_another,
    order_nothing_parallel,
    order_no_tasks,
];

// expect: race-free
fn order_finish() {
    let word = Shared::new(0u64);
    let at = &word;
    finish(|scope| spawn!(scope, store!(at, 1)));
    load!(word);
    finish(|scope| spawn!(scope, store!(at, 2)));
    store!(word, 3);
}

// expect: race-free
fn order_nested_finish() {
    let (outer, inner) = (Shared::new(0u64), Shared::new(0u64));
    finish(|scope| {
        let (outer, inner) = (&outer, &inner);
        spawn!(scope, store!(outer, 1));
        finish(|scope| {
            spawn!(scope, store!(inner, 1));
            spawn!(scope, black_box(()));
        });
        store!(inner, 2);
    });
    load!(outer);
}

// expect: race-free
fn order_future() {
    let word = Shared::new(0u64);
    finish(|scope| {
        let word = &word;
        let one = scope.future(move |_| {
            store!(word, 1);
            7u64
        });
        let two = scope.future(move |_| *one.get() + load!(word));
        assert_eq!(*two.get(), 8);
        store!(word, 2);
    });
}

// expect: race-free
fn order_promise() {
    let (word, ready) = (Shared::new(0u64), Promise::new());
    finish(|scope| {
        let (word, ready) = (&word, &ready);
        spawn!(scope, assert_eq!(*ready.get(), 5); load!(word));
        spawn!(scope, store!(word, 1); ready.set(5););
        ready.get();
        load!(word);
    });
}

// expect: race-free
fn order_sync() {
    let word = Shared::new(0u64);
    procedure(|p| {
        let word = &word;
        for i in 0..3 {
            p.spawn(move || store!(word, i)).take_no_result();
            p.sync();
        }
        load!(word);
    });
}

/// The result of a task that is `()` needs no join.
trait NoResult {
    fn take_no_result(self);
}

impl NoResult for dagsan_task::Spawned<'_, ()> {
    fn take_no_result(self) {}
}

/// Values that are made by one task and used by another, through every kind of handle.
// expect: race-free
fn order_moved_values() {
    fn make() -> Vec<u64> {
        black_box((0..100).collect())
    }
    let promise = Promise::new();
    let total: u64 = finish(|scope| {
        let future = scope.future(|_| make());
        let set = promise.clone();
        spawn!(scope, set.set(make()));
        let spawned = procedure(|p| {
            let one = p.spawn(make);
            let two = p.spawn(make);
            p.sync();
            let (mut one, two) = (one.join(), two.join());
            one.extend(two);
            one
        });
        spawned.iter().chain(future.get()).chain(promise.get()).sum()
    });
    assert_eq!(total, 4 * 4950);
}

// expect: race-free
fn order_task_local_vectors() {
    let mut results = [0u64; 5];
    finish(|scope| {
        for (i, result) in results.iter_mut().enumerate() {
            scope.spawn(move |_| {
                let mut own: Vec<u64> = (0..100).map(|n| n * i as u64).collect();
                own.retain(|n| n % 2 == 0);
                own.sort_by(|a, b| b.cmp(a));
                *result = own.iter().sum();
            });
        }
    });
    assert_eq!(results[1], 2450);
}

// expect: race-free
fn order_before_spawn() {
    let word = Shared::new(0u64);
    finish(|scope| {
        let word = &word;
        spawn!(scope, black_box(()));
        store!(word, 1);
        spawn!(scope, load!(word));
        spawn!(scope, load!(word));
        load!(word);
    });
}

// expect: race-free
fn order_pipeline() {
    let cells: Vec<Promise<Box<u64>>> = (0..8).map(|_| Promise::new()).collect();
    finish(|scope| {
        let cells = &cells;
        for i in (1..8).rev() {
            spawn!(scope, cells[i].set(Box::new(**cells[i - 1].get() + 1)));
        }
        cells[0].set(Box::new(0));
        assert_eq!(**cells[7].get(), 7);
    });
}

// expect: race write/write on 8 bytes of stack by 1/0
fn order_continuation() {
    let word = Shared::new(0u64);
    finish(|scope| {
        let at = &word;
        spawn!(scope, store!(at, 1)); // race (1)
        store!(word, 2); // race (2)
    });
}

// expect: race write/read on 8 bytes of stack by 1/0
fn order_inner_finish_only() {
    let word = Shared::new(0u64);
    finish(|scope| {
        let at = &word;
        spawn!(scope, store!(at, 1)); // race (1)
        finish(|scope| spawn!(scope, black_box(())));
        load!(word); // race (2)
    });
}

// expect: race write/read on 8 bytes of stack by 1/0
fn order_spawn_without_sync() {
    let word = Shared::new(0u64);
    procedure(|p| {
        let at = &word;
        p.spawn(move || store!(at, 1)).take_no_result(); // race (1)
        load!(word); // race (2)
        p.sync();
    });
}

/// A sync joins what this procedure has spawned, not what others have.
// expect: race write/read on 8 bytes of stack by 1/0
fn order_sync_joins_children_only() {
    let word = Shared::new(0u64);
    procedure(|outer| {
        let at = &word;
        outer.spawn(move || store!(at, 1)).take_no_result(); // race (1)
        procedure(|inner| {
            inner.spawn(|| black_box(())).take_no_result();
            inner.sync();
            load!(word); // race (2)
        });
    });
}

// expect: race write/read on 8 bytes of stack by 1/0
fn order_promise_read_before_get() {
    let (word, ready) = (Shared::new(0u64), Promise::new());
    finish(|scope| {
        let (at, ready) = (&word, &ready);
        spawn!(scope,
            store!(at, 1); // race (1)
            ready.set(());
        );
        load!(word); // race (2)
        ready.get();
        load!(word);
    });
}

// expect: race write/read on 8 bytes of stack by 1/0
fn order_promise_write_after_set() {
    let (word, ready) = (Shared::new(0u64), Promise::new());
    finish(|scope| {
        let (at, ready) = (&word, &ready);
        spawn!(scope,
            ready.set(());
            store!(at, 1); // race (1)
        );
        ready.get();
        load!(word); // race (2)
    });
}

/// The main task and the future give up the result, and whoever comes last frees it, after the other.
// expect: race write/read on 8 bytes of stack by 1/0, up to atomics
fn order_future_not_got() {
    let word = Shared::new(0u64);
    finish(|scope| {
        let at = &word;
        let _future = scope.future(move |_| {
            store!(at, 1); // race (1)
        });
        load!(word); // race (2)
    });
}

// expect: race write/read on 8 bytes of stack by 1/3
fn order_future_got_by_another() {
    let word = Shared::new(0u64);
    finish(|scope| {
        let at = &word;
        let future = scope.future(move |_| {
            store!(at, 1); // race (1)
        });
        spawn!(scope, future.get(); load!(at));
        spawn!(scope, load!(at)); // race (2)
    });
}

/// A finish without tasks is nothing to check.
// expect: not checked
fn order_nothing_parallel() {
    let word = Shared::new(0u64);
    finish(|_| store!(word, 1));
    procedure(|p| {
        store!(word, 2);
        p.sync();
    });
    load!(word);
}

/// Nothing is checked, and nothing is claimed.
// expect: not checked
fn order_no_tasks() {
    let word = Shared::new(0u64);
    store!(word, 1);
    load!(word);
}
