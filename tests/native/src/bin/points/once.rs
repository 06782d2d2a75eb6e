//! Values that are initialised once, by whoever comes first, and then only read.

use std::hint::black_box;
use std::sync::{LazyLock, Once, OnceLock};

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Shared, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    once_lock,
    once_lock_on_the_heap,
    once_lock_set,
    once_lazy_lock,
    once_with_a_static,
    once_with_tasks_inside,
    once_and_a_write_afterwards,
    once_unsynchronised,
];

fn table() -> [u64; 40] {
    black_box([3; 40])
}

// expect: race-free, up to atomics
// expect once=0: race
fn once_lock() {
    static TABLE: OnceLock<[u64; 40]> = OnceLock::new();
    siblings(|| assert_eq!(TABLE.get_or_init(table)[black_box(20)], 3));
}

// expect: race-free, up to atomics
// expect once=0: race
fn once_lock_on_the_heap() {
    let owner: Box<OnceLock<Vec<u64>>> = black_box(Box::default());
    let lock = &*owner;
    siblings(|| assert_eq!(lock.get_or_init(|| table().to_vec())[black_box(20)], 3));
}

// expect: race-free, up to atomics
// expect once=0: race
fn once_lock_set() {
    static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
    siblings(|| match TABLE.get() {
        None => assert!(TABLE.set(table().to_vec()).is_ok()),
        Some(table) => assert_eq!(table[black_box(20)], 3),
    });
}

// expect: race-free, up to atomics
// expect once=0: race
fn once_lazy_lock() {
    static TABLE: LazyLock<Vec<u64>> = LazyLock::new(|| table().to_vec());
    siblings(|| assert_eq!(TABLE[black_box(20)], 3));
}

// expect: race-free, up to atomics
// expect once=0: race
fn once_with_a_static() {
    static READY: Once = Once::new();
    static WORD: Shared<u64> = Shared::new(0);
    siblings(|| {
        READY.call_once(|| store!(WORD, black_box(7)));
        assert_eq!(load!(WORD), 7);
    });
}

/// The initialiser waits for tasks of its own, whose work counts as done for those who come later.
// expect: race-free, up to atomics
// expect once=0: race
fn once_with_tasks_inside() {
    static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
    siblings(|| {
        let table = TABLE.get_or_init(|| {
            let mut table = vec![0; 64];
            finish(|scope| {
                for part in table.chunks_mut(16) {
                    spawn!(scope, black_box(part).fill(3));
                }
            });
            table
        });
        assert_eq!(table[black_box(40)], 3);
    });
}

/// What comes after the initialiser is not covered by it.
// expect: race write/read on 8 bytes of static by 1/2, up to atomics
fn once_and_a_write_afterwards() {
    static READY: Once = Once::new();
    static WORD: Shared<u64> = Shared::new(0);
    finish(|scope| {
        spawn!(scope,
            READY.call_once(|| ());
            black_box(());
            finish(|_| ());
            store!(WORD, black_box(1)); // race (1)
        );
        spawn!(scope,
            READY.call_once(|| ());
            load!(WORD); // race (2)
        );
    });
}

// expect: race write/read on 8 bytes of static by 1/2
fn once_unsynchronised() {
    static READY: OnceLock<()> = OnceLock::new();
    static WORD: Shared<u64> = Shared::new(0);
    finish(|scope| {
        spawn!(scope, READY.get_or_init(|| store!(WORD, black_box(1)));); // race (1)
        spawn!(scope, load!(WORD)); // race (2)
    });
}
