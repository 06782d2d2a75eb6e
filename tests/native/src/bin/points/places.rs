//! Accesses that libraries make for the program: their place is the line that calls the library, whether the call is the last
//! one of its task, and calls might become jumps, or lies below many functions of the library.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, Shared};

pub const POINTS: &[Point] = points![
    place_push,
    place_push_apart,
    place_push_str,
    place_push_str_apart,
    place_push_back,
    place_copy_within,
    place_copy_within_apart,
    place_sort,
    place_sort_apart,
    place_insert_hash,
    place_insert_tree,
    place_swap,
    place_fill,
    place_last_call_drop,
    place_last_call_drop_joined,
    place_last_call_atomic,
    place_last_call_helper,
    place_two_helpers,
];

/// A reference from nowhere.
#[allow(clippy::mut_from_ref)]
fn get<T>(shared: &Shared<T>) -> &mut T {
    // SAFETY: alive, and tasks run one at a time.
    unsafe { &mut *shared.at() }
}

/// Two tasks whose bodies end with a call.
#[collapse_debuginfo(yes)]
macro_rules! two {
    ($one:expr, $two:expr $(,)?) => {
        finish(|scope| {
            scope.spawn(|_| $one);
            scope.spawn(|_| $two);
        })
    };
}

// expect: race
fn place_push() {
    let list = Shared::new(Vec::with_capacity(8));
    two!(
        get(&list).push(1u64), // race (1)
        get(&list).push(2u64), // race (2)
    );
}

// expect: race-free
fn place_push_apart() {
    let lists = [Shared::new(Vec::with_capacity(8)), Shared::new(Vec::with_capacity(8))];
    two!(get(&lists[0]).push(1u64), get(&lists[1]).push(2u64));
}

// expect: race
fn place_push_str() {
    let text = Shared::new(String::with_capacity(8));
    two!(
        get(&text).push_str("a"), // race (1)
        get(&text).push_str("b"), // race (2)
    );
}

// expect: race-free
fn place_push_str_apart() {
    let text = Shared::new(String::with_capacity(8));
    finish(|scope| scope.spawn(|_| get(&text).push_str("a")));
    finish(|scope| scope.spawn(|_| get(&text).push_str("b")));
}

// expect: race
fn place_push_back() {
    let queue = Shared::new(VecDeque::with_capacity(8));
    two!(
        get(&queue).push_back(1u64), // race (1)
        get(&queue).push_back(2u64), // race (2)
    );
}

// expect: race
fn place_copy_within() {
    let cells = Shared::new(vec![0u64; 64]);
    two!(
        get(&cells).copy_within(0..10, 20),  // race (1)
        get(&cells).copy_within(25..35, 40), // race (2)
    );
}

// expect: race-free
fn place_copy_within_apart() {
    let cells = Shared::new(vec![0u64; 64]);
    two!(get(&cells).copy_within(0..10, 20), get(&cells).copy_within(35..40, 50));
}

// expect: race
fn place_sort() {
    let cells = Shared::new(vec![3u64, 1, 2, 9, 4]);
    two!(
        get(&cells).sort(), // race (1)
        get(&cells).sort(), // race (2)
    );
}

// expect: race-free
fn place_sort_apart() {
    let cells = Shared::new(vec![3u64, 1, 2, 9, 4, 7]);
    two!(get(&cells)[..3].sort(), get(&cells)[3..].sort());
}

// expect: race
fn place_insert_hash() {
    let map = Shared::new(HashMap::from([(1u64, 1u64)]));
    two!(
        _ = get(&map).insert(1, 2), // race (1)
        _ = get(&map).insert(1, 3), // race (2)
    );
}

// expect: race
fn place_insert_tree() {
    let map = Shared::new(BTreeMap::from([(1u64, 1u64)]));
    two!(
        _ = get(&map).insert(2, 2), // race (1)
        _ = get(&map).insert(3, 3), // race (2)
    );
}

// expect: race
fn place_swap() {
    let cells = Shared::new([1u64, 2, 3]);
    two!(
        get(&cells).swap(0, 1), // race (1)
        get(&cells).swap(1, 2), // race (2)
    );
}

// expect: race
fn place_fill() {
    let cells = Shared::new([0u64; 40]);
    two!(
        get(&cells)[..30].fill(1), // race (1)
        get(&cells)[10..].fill(2), // race (2)
    );
}

// expect: race read/free on 8 bytes of heap by 1/2
fn place_last_call_drop() {
    let block = Pointer(Box::into_raw(Box::new(5u64)));
    finish(|scope| {
        // SAFETY: alive, in this run.
        scope.spawn(move |_| _ = std::hint::black_box(unsafe { *block.at() })); // race (1)
        // SAFETY: as above.
        scope.spawn(move |_| drop(unsafe { Box::from_raw(block.at()) })); // race (2)
    });
}

// expect: race-free
fn place_last_call_drop_joined() {
    let block = Pointer(Box::into_raw(Box::new(5u64)));
    finish(|scope| {
        // SAFETY: alive.
        scope.spawn(move |_| _ = std::hint::black_box(unsafe { *block.at() }));
    });
    // SAFETY: nobody uses it any more.
    finish(|scope| scope.spawn(move |_| drop(unsafe { Box::from_raw(block.at()) })));
}

// expect: race write/atomic write on 8 bytes of stack by 1/2
fn place_last_call_atomic() {
    let word = Shared::new(0u64);
    two!(
        *get(&word) = 1, // race (1)
        // SAFETY: alive, and aligned.
        unsafe { AtomicU64::from_ptr(word.at()) }.store(2, Relaxed), // race (2)
    );
}

#[inline(never)]
fn write(word: &Shared<u64>, value: u64) {
    *get(word) = value;
    std::hint::black_box(word);
}

// expect: race write/write on 8 bytes of stack by 1/2
fn place_last_call_helper() {
    /// The access is here, and this is the user's too.
    #[inline(never)]
    fn helper(word: &Shared<u64>) {
        *get(word) = 1; // race (1) (2)
    }
    let word = Shared::new(0u64);
    two!(helper(&word), helper(&word));
    write(&word, 2);
}

// expect: race-free
fn place_two_helpers() {
    let words = [Shared::new(0u64), Shared::new(0u64)];
    two!(write(&words[0], 1), write(&words[1], 2));
}
