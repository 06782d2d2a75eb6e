//! Thread-local variables: tasks of one thread use the same ones, and would not on several.

use std::cell::{Cell, RefCell};
use std::hint::black_box;

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, load, siblings, spawn, store};

pub const POINTS: &[Point] =
    points![thread_local_const, thread_local_lazy, thread_local_with_drop, thread_local_given_away];

// expect: race-free
// expect thread_locals=0: race
fn thread_local_const() {
    thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });
    siblings(|| COUNT.set(black_box(COUNT.get() + 1)));
    assert_eq!(COUNT.get(), 3);
}

// expect: race-free
// expect thread_locals=0: race
fn thread_local_lazy() {
    fn initial() -> Cell<u64> {
        Cell::new(black_box(40))
    }
    thread_local!(static COUNT: Cell<u64> = initial());
    siblings(|| COUNT.set(black_box(COUNT.get() + 1)));
    assert_eq!(COUNT.get(), 43);
}

// expect: race-free
// expect thread_locals=0: race
fn thread_local_with_drop() {
    thread_local!(static LIMIT: RefCell<Option<Box<u8>>> = const { RefCell::new(None) });
    siblings(|| assert!(LIMIT.with_borrow(Option::is_none)));
    LIMIT.take();
}

/// A limit: a variable of this thread that other tasks get by its address would be shared on several threads too, and is
/// taken for one that is not.
// expect: race-free
// expect thread_locals=0: race write/write on 8 bytes of other by 1/2
fn thread_local_given_away() {
    thread_local!(static WORD: Cell<u64> = const { Cell::new(0) });
    let word = Pointer(WORD.with(Cell::as_ptr));
    finish(|scope| {
        spawn!(scope, store!(word, 1)); // race (1)
        spawn!(scope, store!(word, 2)); // race (2)
    });
    load!(word);
}
