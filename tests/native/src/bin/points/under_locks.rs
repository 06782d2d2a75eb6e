//! Sections that have nothing to do with each other, and tasks that are started and joined inside of a section.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Shared, load, spawn, store};

pub const POINTS: &[Point] = points![
    unrelated_sections,
    unrelated_fields,
    unrelated_reads,
    unrelated_neighbour_bytes,
    nested_tasks,
    nested_tasks_race_with_each_other,
    nested_tasks_race_with_the_section,
    nested_tasks_two_deep,
    nested_tasks_two_deep_race,
    nested_tasks_of_readers,
    nested_tasks_outlive_the_section,
    nested_tasks_and_a_stranger,
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sections of one lock that have nothing to do with each other.
// expect: race write/write on 8 bytes of stack by 1/2
// expect locks=0: race-free, up to atomics
fn unrelated_sections() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            store!(data, 1); // race (1)
            drop(lock(guard));
        );
        spawn!(scope,
            drop(lock(guard));
            store!(data, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn unrelated_fields() {
    let (data, pair) = (Shared::new(0u64), Mutex::new((0u64, 0u64)));
    finish(|scope| {
        let (data, pair) = (&data, &pair);
        spawn!(scope,
            store!(data, 1); // race (1)
            lock(pair).0 = 1;
        );
        spawn!(scope,
            lock(pair).1 = 1;
            store!(data, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn unrelated_reads() {
    let (data, value) = (Shared::new(0u64), Mutex::new(3u64));
    finish(|scope| {
        let (data, value) = (&data, &value);
        spawn!(scope,
            store!(data, 1); // race (1)
            std::hint::black_box(*lock(value));
        );
        spawn!(scope,
            std::hint::black_box(*lock(value));
            store!(data, 2); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn unrelated_neighbour_bytes() {
    let (data, bytes) = (Shared::new(0u64), Mutex::new([0u8; 8]));
    finish(|scope| {
        let (data, bytes) = (&data, &bytes);
        spawn!(scope,
            store!(data, 1); // race (1)
            lock(bytes)[std::hint::black_box(3)] = 1;
        );
        spawn!(scope,
            lock(bytes)[std::hint::black_box(4)] = 1;
            store!(data, 2); // race (2)
        );
    });
}

/// Tasks that are joined inside of a section are under its lock.
// expect: race-free, up to locks
fn nested_tasks() {
    let cells = Mutex::new([0u64; 4]);
    finish(|scope| {
        for _ in 0..2 {
            let cells = &cells;
            spawn!(scope,
                let mut cells = lock(cells);
                finish(|inner| {
                    for cell in cells.iter_mut() {
                        inner.spawn(move |_| *cell += 1);
                    }
                });
            );
        }
    });
}

/// But not kept apart from each other.
// expect: race write/write on 8 bytes of stack by 2/3, up to locks
fn nested_tasks_race_with_each_other() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            let _guard = lock(guard);
            finish(|inner| {
                spawn!(inner, store!(data, 1)); // race (1)
                spawn!(inner, store!(data, 2)); // race (2)
            });
        );
        spawn!(scope,
            let _guard = lock(guard);
            store!(data, 3);
        );
    });
}

// expect: race write/write on 8 bytes of stack by 2/1
fn nested_tasks_race_with_the_section() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            let _guard = lock(guard);
            finish(|inner| {
                spawn!(inner, store!(data, 1)); // race (1)
                store!(data, 2); // race (2)
            });
        );
    });
}

// expect: race-free, up to locks
fn nested_tasks_two_deep() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        for _ in 0..2 {
            let (data, guard) = (&data, &guard);
            spawn!(scope,
                let _guard = lock(guard);
                finish(|inner| {
                    spawn!(inner, finish(|innermost| spawn!(innermost, store!(data, load!(data) + 1))));
                });
            );
        }
    });
}

/// Under the lock of the inner section only, of two.
// expect: race write/write on 8 bytes of stack by 2/4
fn nested_tasks_two_deep_race() {
    let (data, one, two) = (Shared::new(0u64), Mutex::new(0), Mutex::new(0));
    finish(|scope| {
        let (data, one, two) = (&data, &one, &two);
        spawn!(scope,
            let mut guard = lock(one);
            *guard += 1;
            finish(|inner| spawn!(inner, store!(data, 1))); // race (1)
        );
        spawn!(scope,
            drop(lock(one));
            let _guard = lock(two);
            finish(|inner| spawn!(inner, store!(data, 2))); // race (2)
        );
    });
}

// expect: race write/write on 8 bytes of stack by 2/4
fn nested_tasks_of_readers() {
    let (data, guard) = (Shared::new(0u64), RwLock::new(()));
    // So that the lock is known for what it is.
    drop(guard.read());
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope, drop(guard.read()));
        spawn!(scope,
            let _guard = guard.read();
            store!(data, 1); // race (1)
        );
        spawn!(scope, drop(guard.read()));
        spawn!(scope,
            let _guard = guard.read();
            store!(data, 2); // race (2)
        );
    });
}

/// Started in the section, joined after it: not under the lock.
// expect: race write/write on 8 bytes of stack by 2/3
fn nested_tasks_outlive_the_section() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        scope.spawn(move |scope| {
            let _guard = lock(guard);
            spawn!(scope, store!(data, 1)); // race (1)
        });
        spawn!(scope,
            let _guard = lock(guard);
            store!(data, 2); // race (2)
        );
    });
}

/// Somebody without the lock.
// expect: race write/write on 8 bytes of stack by 2/3
fn nested_tasks_and_a_stranger() {
    let (data, guard) = (Shared::new(0u64), Mutex::new(()));
    finish(|scope| {
        let (data, guard) = (&data, &guard);
        spawn!(scope,
            let _guard = lock(guard);
            finish(|inner| spawn!(inner, store!(data, 1))); // race (1)
        );
        spawn!(scope, store!(data, 2)); // race (2)
    });
}
