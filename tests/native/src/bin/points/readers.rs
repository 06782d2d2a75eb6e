//! Tables that many tasks read, and counters that many tasks change: most of them need not be told of, and none of their races may be lost.
//!
//! The tables have more lines than a tiny task may touch.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dagsan_task::{Promise, finish};

use crate::Point;
use crate::shared::{Shared, at, buffer, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    readers_and_a_writer,
    readers_before_a_writer,
    readers_of_halves_and_a_writer,
    reader_in_a_child,
    reader_in_a_joined_child,
    reader_after_a_join,
    reader_after_a_join_that_is_joined,
    reader_in_a_tree,
    reader_of_what_was_written,
    reader_of_what_was_written_before,
    reader_of_another_block,
    reader_of_another_block_too,
    reader_that_nobody_waits_for,
    reader_that_somebody_waits_for,
    reader_under_a_lock,
    reader_of_what_a_lock_guards,
    counters_read_plainly,
    counters_read_plainly_later,
    counters_in_a_child,
    block_of_one_strand,
    block_of_one_strand_and_a_reader,
    block_freed_beside_a_writer,
    readers_of_a_field_and_a_writer,
    readers_of_a_field_before_a_writer,
    readers_of_a_field_that_is_written_between,
    readers_of_a_field_and_a_writer_of_another,
];

const WORDS: usize = 256;

#[repr(align(64))]
struct Table([Shared<u64>; WORDS]);

impl Table {
    const fn new() -> Table {
        Table([const { Shared::new(0) }; WORDS])
    }
}

/// All words, as if somebody needed them.
#[collapse_debuginfo(yes)]
macro_rules! read_all {
    ($table:expr) => {
        for word in &$table.0 {
            load!(word);
        }
    };
}

// expect: race read/write on 8 bytes of static by 1/4
fn readers_and_a_writer() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        for _ in 0..3 {
            spawn!(scope, read_all!(TABLE)); // race (1)
        }
        spawn!(scope, store!(TABLE.0[77], 1)); // race (2)
    });
}

// expect: race-free
fn readers_before_a_writer() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        spawn!(scope, {
            finish(|scope| {
                for _ in 0..3 {
                    spawn!(scope, read_all!(TABLE));
                }
            });
            store!(TABLE.0[77], 1);
        });
        spawn!(scope, black_box(1));
    });
}

/// Each reads other bytes of every line.
// expect: race read/write on 8 bytes of static by 2/4
fn readers_of_halves_and_a_writer() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        spawn!(
            scope,
            for word in TABLE.0.iter().step_by(2) {
                load!(word);
            }
        );
        spawn!(
            scope,
            for word in TABLE.0.iter().skip(1).step_by(2) {
                load!(word); // race (1)
            }
        );
        spawn!(scope, read_all!(TABLE));
        spawn!(scope, store!(TABLE.0[77], 1)); // race (2)
    });
}

/// What its parent has read before does not stand for the child.
// expect: race read/write on 8 bytes of static by 2/0
fn reader_in_a_child() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        spawn!(scope, black_box(1));
        read_all!(TABLE);
        spawn!(scope, read_all!(TABLE)); // race (1)
        store!(TABLE.0[77], 1); // race (2)
    });
}

// expect: race-free
fn reader_in_a_joined_child() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        spawn!(scope, black_box(1));
        read_all!(TABLE);
        finish(|scope| spawn!(scope, read_all!(TABLE)));
        store!(TABLE.0[77], 1);
    });
}

/// Nor does one that was joined before.
// expect: race read/write on 8 bytes of static by 3/0
fn reader_after_a_join() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        spawn!(scope, black_box(1));
        finish(|scope| spawn!(scope, read_all!(TABLE)));
        spawn!(scope, read_all!(TABLE)); // race (1)
        store!(TABLE.0[77], 1); // race (2)
    });
}

// expect: race-free
fn reader_after_a_join_that_is_joined() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        spawn!(scope, black_box(1));
        finish(|scope| spawn!(scope, read_all!(TABLE)));
        finish(|scope| spawn!(scope, read_all!(TABLE)));
        store!(TABLE.0[77], 1);
    });
}

/// A tree of joins reads; beside it somebody writes.
// expect: race
fn reader_in_a_tree() {
    static TABLE: Table = Table::new();
    fn tree(depth: u32) {
        if depth == 0 {
            return read_all!(TABLE); // race (1)
        }
        finish(|scope| {
            scope.spawn(move |_| tree(depth - 1));
            tree(depth - 1);
        });
    }
    finish(|scope| {
        spawn!(scope, tree(3));
        spawn!(scope, store!(TABLE.0[77], 1)); // race (2)
    });
}

// expect: race write/read on 8 bytes of static by 0/3
fn reader_of_what_was_written() {
    static TABLE: Table = Table::new();
    let waits = &Promise::new();
    finish(|scope| {
        spawn!(scope, black_box(1));
        finish(|scope| spawn!(scope, read_all!(TABLE)));
        spawn!(scope, {
            waits.get();
            read_all!(TABLE); // race (2)
        });
        waits.set(());
        store!(TABLE.0[77], 1); // race (1)
    });
}

// expect: race-free
fn reader_of_what_was_written_before() {
    static TABLE: Table = Table::new();
    finish(|scope| {
        spawn!(scope, black_box(1));
        finish(|scope| spawn!(scope, read_all!(TABLE)));
        store!(TABLE.0[77], 1);
        for _ in 0..2 {
            spawn!(scope, read_all!(TABLE));
        }
    });
}

/// Two tasks read a block, which is freed. The next one is most likely where it was.
macro_rules! with_another_block {
    ($scope:ident, $block:ident, $then:block) => {
        finish(|scope| {
            spawn!(scope, black_box(1));
            let (first, block) = buffer(0u64, WORDS);
            finish(|scope| {
                for _ in 0..2 {
                    spawn!(
                        scope,
                        for index in 0..WORDS {
                            load!(at(block, index));
                        }
                    );
                }
            });
            drop(first);
            let (_second, $block) = buffer(0u64, WORDS);
            finish(|$scope| $then);
        })
    };
}

/// The addresses are the same, the memory is not: the first readers have nothing to do with the second block.
// expect: race read/write on 8 bytes of heap by 4/5
fn reader_of_another_block() {
    with_another_block!(scope, block, {
        spawn!(
            scope,
            for index in 0..WORDS {
                load!(at(block, index)); // race (1)
            }
        );
        spawn!(scope, store!(at(block, 77), 1)); // race (2)
    });
}

// expect: race-free
fn reader_of_another_block_too() {
    with_another_block!(scope, block, {
        spawn!(
            scope,
            for index in 0..WORDS {
                load!(at(block, index));
            }
        );
        spawn!(scope, load!(at(block, 77)));
    });
}

/// Who waits for the first reader does not wait for the second.
// expect: race read/write on 8 bytes of static by 2/3
fn reader_that_nobody_waits_for() {
    static TABLE: Table = Table::new();
    let has_read = &Promise::new();
    finish(|scope| {
        spawn!(scope, {
            read_all!(TABLE);
            has_read.set(());
        });
        spawn!(scope, read_all!(TABLE)); // race (1)
        spawn!(scope, {
            has_read.get();
            store!(TABLE.0[77], 1); // race (2)
        });
    });
}

// expect: race-free
fn reader_that_somebody_waits_for() {
    static TABLE: Table = Table::new();
    let (one, two) = (&Promise::new(), &Promise::new());
    finish(|scope| {
        for has_read in [one, two] {
            spawn!(scope, {
                read_all!(TABLE);
                has_read.set(());
            });
        }
        spawn!(scope, {
            one.get();
            two.get();
            store!(TABLE.0[77], 1);
        });
    });
}

/// The lock keeps the second reader and the writer apart, but not the first.
// expect: race read/write on 8 bytes of static by 1/3, up to locks
fn reader_under_a_lock() {
    static TABLE: Table = Table::new();
    let lock = &Mutex::new(());
    finish(|scope| {
        spawn!(scope, read_all!(TABLE)); // race (1)
        spawn!(scope, {
            let _guard = lock.lock().unwrap();
            read_all!(TABLE);
        });
        spawn!(scope, {
            let _guard = lock.lock().unwrap();
            store!(TABLE.0[77], 1); // race (2)
        });
    });
}

/// A section that reads what another writes comes before it, and so does what is done before and after the two.
// expect: race-free, up to locks
fn reader_of_what_a_lock_guards() {
    static TABLE: Table = Table::new();
    static WORD: Shared<u64> = Shared::new(0);
    let lock = &Mutex::new(());
    finish(|scope| {
        spawn!(scope, finish(|scope| spawn!(scope, black_box(1))));
        spawn!(scope, {
            store!(WORD, 1);
            let _guard = lock.lock().unwrap();
            read_all!(TABLE);
        });
        spawn!(scope, {
            {
                let _guard = lock.lock().unwrap();
                store!(TABLE.0[77], 1);
            }
            load!(WORD)
        });
    });
}

static COUNTERS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

#[inline(always)]
fn count() {
    COUNTERS.iter().for_each(|counter| _ = counter.fetch_add(1, Relaxed));
}

/// Some of the many that count.
// expect: race atomic write/read on 8 bytes of static by 1/4
fn counters_read_plainly() {
    finish(|scope| {
        for _ in 0..3 {
            spawn!(
                scope,
                for counter in &COUNTERS {
                    counter.fetch_add(1, Relaxed); // race (1)
                }
            );
        }
        // SAFETY: no other thread is there.
        spawn!(scope, black_box(unsafe { *COUNTERS[77].as_ptr() })); // race (2)
    });
}

// expect: race-free
fn counters_read_plainly_later() {
    siblings(count);
    finish(|scope| {
        // SAFETY: as above.
        spawn!(scope, black_box(unsafe { *COUNTERS[77].as_ptr() }));
        spawn!(scope, black_box(unsafe { *COUNTERS[77].as_ptr() }));
    });
}

/// What its parent has counted does not stand for the child.
// expect: race atomic write/write on 8 bytes of static by 2/0
fn counters_in_a_child() {
    finish(|scope| {
        spawn!(scope, black_box(1));
        count();
        spawn!(
            scope,
            for counter in &COUNTERS {
                counter.fetch_add(1, Relaxed); // race (1)
            }
        );
        // SAFETY: as above.
        unsafe { *COUNTERS[77].as_ptr() = 1 }; // race (2)
    });
}

/// Blocks that come and go in one strand are nobody's business, whatever is at their addresses later.
// expect: race-free
fn block_of_one_strand() {
    siblings(|| {
        for value in 0..20u64 {
            let (mut values, _) = buffer(value, 8);
            values[3] += 1;
            black_box(values);
        }
    });
}

/// The block is freed by the strand that allocated it, and its sibling knows the address.
// expect: race
fn block_of_one_strand_and_a_reader() {
    static PLACE: AtomicU64 = AtomicU64::new(0);
    finish(|scope| {
        spawn!(scope, {
            let (block, place) = buffer(7u64, 8);
            PLACE.store(place.at() as u64, Relaxed);
            drop(black_box(block)); // race (1)
        });
        // SAFETY: it is not: the block is gone. The allocator has not given it back to the system.
        spawn!(scope, black_box(unsafe { *(PLACE.load(Relaxed) as *const u64).add(3) })); // race (2)
    });
}

/// What the strand did to other memory before it frees a block is told when it ends, and what it did to the block at once.
// expect: race write/write on 8 bytes of heap by 1/2
fn block_freed_beside_a_writer() {
    static OTHER: Shared<u64> = Shared::new(0);
    finish(|scope| {
        let (block, place) = buffer(0u64, 8);
        let (other, there) = buffer(0u64, 8);
        spawn!(scope, store!(at(there, 3), 1)); // race (1)
        spawn!(scope, {
            store!(OTHER, 1);
            store!(at(place, 3), 1);
            drop(block);
            store!(at(there, 3), 2); // race (2)
        });
        std::mem::forget(other);
    });
}

/// One word of every element: loops over these have ranges with gaps.
#[repr(C)]
struct Element {
    field: Shared<u64>,
    other: [Shared<u64>; 6],
}

struct Elements([Element; WORDS]);

impl Elements {
    const fn new() -> Elements {
        Elements([const { Element { field: Shared::new(0), other: [const { Shared::new(0) }; 6] } }; WORDS])
    }
}

/// The sum of all fields.
#[collapse_debuginfo(yes)]
macro_rules! sum {
    ($elements:expr) => {{
        let mut sum = 0_u64;
        for element in &$elements.0 {
            // SAFETY: whoever races with it is found.
            sum = sum.wrapping_add(unsafe { *element.field.at() });
        }
        black_box(sum)
    }};
}

// expect: race read/write on 8 bytes of static by 1/5
fn readers_of_a_field_and_a_writer() {
    static ELEMENTS: Elements = Elements::new();
    finish(|scope| {
        for _ in 0..4 {
            spawn!(scope, sum!(ELEMENTS);); // race (1)
        }
        spawn!(scope, store!(ELEMENTS.0[77].field, 1)); // race (2)
    });
}

// expect: race-free
fn readers_of_a_field_before_a_writer() {
    static ELEMENTS: Elements = Elements::new();
    finish(|scope| {
        spawn!(scope, {
            finish(|scope| {
                for _ in 0..4 {
                    spawn!(scope, sum!(ELEMENTS););
                }
            });
            store!(ELEMENTS.0[77].field, 1);
        });
        spawn!(scope, black_box(1));
    });
}

/// What was known of the elements before one was written is not known any more.
// expect: race read/write on 8 bytes of static by 6/7
fn readers_of_a_field_that_is_written_between() {
    static ELEMENTS: Elements = Elements::new();
    finish(|scope| {
        spawn!(scope, {
            finish(|scope| {
                for _ in 0..4 {
                    spawn!(scope, sum!(ELEMENTS););
                }
            });
            store!(ELEMENTS.0[30].field, 1);
            finish(|scope| {
                spawn!(scope, sum!(ELEMENTS);); // race (1)
                spawn!(scope, store!(ELEMENTS.0[77].field, 1)); // race (2)
            });
        });
        spawn!(scope, black_box(1));
    });
}

// expect: race-free
fn readers_of_a_field_and_a_writer_of_another() {
    static ELEMENTS: Elements = Elements::new();
    finish(|scope| {
        for _ in 0..4 {
            spawn!(scope, sum!(ELEMENTS););
        }
        spawn!(scope, store!(ELEMENTS.0[77].other[0], 1));
    });
}
