//! Thread-local variables: tasks of one thread use the same ones, and would not on several.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Release;

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, Shared, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    thread_local_const,
    thread_local_lazy,
    thread_local_with_drop,
    thread_local_given_away,
    thread_local_buffer,
    thread_local_list,
    thread_local_that_a_static_knows,
    thread_local_that_is_lent,
    thread_local_that_is_freed,
    thread_local_beside_another_block,
    thread_local_vector_that_grows,
    thread_local_taken_out,
    thread_local_taken_out_and_lent,
    thread_local_put_in_for_a_while,
];

thread_local!(static BUFFER: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });

/// Fills the buffer of this thread, which grows.
fn fill(length: u64) {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        (0..length).for_each(|number| buffer.push(black_box(number)));
    });
}

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

// expect: race-free, depending on the worker
// expect thread_locals=0: race
fn thread_local_buffer() {
    siblings(|| {
        fill(10);
        // Another block, which nobody has seen yet.
        fill(1000);
        BUFFER.with_borrow(|buffer| assert_eq!(buffer.iter().sum::<u64>(), 499_500));
    });
    BUFFER.take();
}

/// A block that is reached by way of others, and by a pointer to its inside.
// expect: race-free, depending on the worker
// expect thread_locals=0: race
fn thread_local_list() {
    struct Node {
        next: Option<Box<Node>>,
        value: Cell<*mut u64>,
    }
    thread_local!(static LIST: RefCell<Option<Box<Node>>> = const { RefCell::new(None) });
    let node = |next, value| Some(Box::new(Node { next, value: Cell::new(value) }));
    let values: &mut [u64] = Box::leak(Box::new([0; 8]));
    LIST.set(node(node(node(None, &raw mut values[7]), std::ptr::null_mut()), std::ptr::null_mut()));
    siblings(|| {
        LIST.with_borrow(|list| {
            let mut last = list.as_ref().unwrap();
            while let Some(next) = &last.next {
                last = next;
            }
            // SAFETY: it points to the last value, and no other thread uses it.
            unsafe { *last.value.get() += 1 };
        });
    });
}

/// What a static leads to other threads find too.
// expect: race write/write on 8 bytes of heap by 1/2
fn thread_local_that_a_static_knows() {
    static KNOWN: Shared<Option<Pointer<u64>>> = Shared::new(None);
    BUFFER.set(vec![0; 100]);
    store!(KNOWN, BUFFER.with_borrow_mut(|buffer| Some(Pointer(buffer.as_mut_ptr()))));
    finish(|scope| {
        spawn!(scope, BUFFER.with_borrow_mut(|buffer| buffer[0] = 1)); // race (1)
        spawn!(scope, BUFFER.with_borrow_mut(|buffer| buffer[0] = 2)); // race (2)
    });
    black_box(load!(KNOWN));
    BUFFER.take();
}

/// A task that has its buffer in hand lends it to others.
// expect: race write/write on 8 bytes of heap by 1/2
fn thread_local_that_is_lent() {
    BUFFER.set(vec![0; 100]);
    BUFFER.with_borrow_mut(|buffer| {
        let first = Pointer(buffer.as_mut_ptr());
        finish(|scope| {
            spawn!(scope, store!(first, 1)); // race (1)
            spawn!(scope, store!(first, 2)); // race (2)
        });
    });
    BUFFER.take();
}

/// A block that was the thread's is freed; the next one at its place is not.
// expect: race write/write on 8 bytes of heap by 4/5, depending on the worker
fn thread_local_that_is_freed() {
    finish(|scope| {
        for _ in 0..3 {
            scope.spawn(|_| fill(100));
        }
        let at = BUFFER.with_borrow_mut(|buffer| buffer.as_ptr());
        let capacity = BUFFER.take().capacity();
        let mut shared: Vec<u64> = Vec::with_capacity(capacity);
        assert_eq!(shared.as_ptr(), at);
        let first = Pointer(shared.as_mut_ptr());
        finish(|scope| {
            spawn!(scope, store!(first, 1)); // race (1)
            spawn!(scope, store!(first, 2)); // race (2)
        });
    });
}

/// The same code does the same to a block of the thread and to one that is shared: the race on that is found.
// expect: race write/write on 8 bytes of heap by 1/2, depending on the worker
fn thread_local_beside_another_block() {
    let mut shared = vec![0u64; 8];
    let shared = Pointer(shared.as_mut_ptr());
    siblings(|| {
        fill(8);
        let own = BUFFER.with_borrow_mut(|buffer| Pointer(buffer.as_mut_ptr()));
        for place in [own, shared] {
            store!(place, black_box(1)); // race (1) (2)
        }
    });
    BUFFER.take();
}

/// Whose the old block is, is asked while it is still there.
// expect: race-free, depending on the worker
fn thread_local_vector_that_grows() {
    thread_local! { static LIST: std::cell::RefCell<Vec<u32>> = const { std::cell::RefCell::new(Vec::new()) }; }
    siblings(|| LIST.with_borrow_mut(|list| list.extend(0..std::hint::black_box(9))));
}

/// Ends the strand, and orders nothing: nobody acquires.
fn end_strand() {
    static STEPS: AtomicU64 = AtomicU64::new(1);
    STEPS.store(1, Release);
}

/// A buffer that is in no variable while it is used, for more than a strand. So crossbeam's channels do with what they know of a thread.
// expect: race-free, depending on the worker
// expect thread_locals=0: race
fn thread_local_taken_out() {
    BUFFER.set(vec![0; 100]);
    siblings(|| {
        for _ in 0..2 {
            let mut buffer = BUFFER.take();
            end_strand();
            buffer[0] += 1;
            end_strand();
            buffer[1] += 1;
            BUFFER.set(buffer);
            end_strand();
        }
    });
    assert_eq!(BUFFER.take()[..2], [6, 6]);
}

/// Tasks that are given the buffer by the one that has taken it out.
// expect: race write/write on 8 bytes of heap by 2/1
fn thread_local_taken_out_and_lent() {
    BUFFER.set(vec![0; 100]);
    finish(|scope| {
        scope.spawn(|_| {
            let mut buffer = BUFFER.take();
            end_strand();
            let first = Pointer(buffer.as_mut_ptr());
            finish(|scope| {
                spawn!(scope, store!(first, 1)); // race (1)
                end_strand();
                store!(first, 2); // race (2)
            });
            BUFFER.set(buffer);
        });
    });
    BUFFER.take();
}

/// A block that all tasks have, and that each leaves in its variable for a while.
// expect: race write/write on 8 bytes of heap by 1/2
fn thread_local_put_in_for_a_while() {
    thread_local!(static PRESENT: Cell<*mut u64> = const { Cell::new(std::ptr::null_mut()) });
    let mut shared = vec![0u64; 8];
    let shared = Pointer(shared.as_mut_ptr());
    siblings(|| {
        PRESENT.set(shared.at());
        end_strand();
        PRESENT.set(std::ptr::null_mut());
        end_strand();
        store!(shared, black_box(1)); // race (1) (2)
    });
}
