//! Every way to touch memory, by two tasks that nothing orders; and what is not touched twice.

use std::hint::black_box;
use std::ptr;

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Pointer, Shared, load, spawn, store};

pub const POINTS: &[Point] = points![
    access_write_write,
    access_write_read,
    access_read_write,
    access_one_byte_of_a_word,
    access_bytes_of_one_word,
    access_two_lines,
    access_places_of_one_line,
    access_unaligned,
    access_volatile,
    access_u8,
    access_u16,
    access_u128,
    access_wide_struct,
    access_static,
    access_read_shared,
    access_in_drop,
    access_in_a_closure,
    access_in_a_generic_function,
    access_in_inlined_code,
    access_in_an_iterator,
    access_read_modify_write,
    access_conditional,
    access_many_places,
];

// expect: race write/write on 8 bytes of heap by 1/2
fn access_write_write() {
    let word = black_box(Box::new(Shared::new(0u64)));
    finish(|scope| {
        let word = &*word;
        spawn!(scope, store!(word, 1)); // race (1)
        spawn!(scope, store!(word, 2)); // race (2)
    });
}

// expect: race write/read on 8 bytes of heap by 1/2
fn access_write_read() {
    let word = black_box(Box::new(Shared::new(0u64)));
    finish(|scope| {
        let word = &*word;
        spawn!(scope, store!(word, 1)); // race (1)
        spawn!(scope, load!(word)); // race (2)
    });
}

// expect: race read/write on 8 bytes of heap by 1/2
fn access_read_write() {
    let word = black_box(Box::new(Shared::new(0u64)));
    finish(|scope| {
        let word = &*word;
        spawn!(scope, load!(word)); // race (1)
        spawn!(scope, store!(word, 1)); // race (2)
    });
}

// expect: race write/write on 1 bytes of stack by 1/2
fn access_one_byte_of_a_word() {
    let word = Shared::new(0u64);
    let byte = Pointer(word.at().cast::<u8>().wrapping_add(5));
    finish(|scope| {
        let word = &word;
        spawn!(scope, store!(word, 1)); // race (1)
        spawn!(scope, store!(byte, 2)); // race (2)
    });
}

// expect: race-free
fn access_bytes_of_one_word() {
    let word = Shared::new(0u64);
    let first = word.at().cast::<u8>();
    finish(|scope| {
        for i in 0..8 {
            let byte = Pointer(first.wrapping_add(i));
            spawn!(scope, store!(byte, load!(byte) + 1));
        }
    });
    assert_eq!(load!(word), 0x0101_0101_0101_0101);
}

/// To the detector, what a strand writes to a line is one access; the report knows the places apart.
// expect: race write/read on 8 bytes of heap by 1/2
fn access_places_of_one_line() {
    let words = black_box(Box::new([const { Shared::new(0u64) }; 4]));
    finish(|scope| {
        let words = &*words;
        scope.spawn(move |_| {
            store!(words[0], 1);
            store!(words[1], 2); // race (1)
            store!(words[2], 3);
        });
        spawn!(scope, load!(words[1])); // race (2)
    });
}

#[repr(align(64))]
struct Lines {
    bytes: [u8; 128],
}

/// Eight bytes, three of them in the next line.
// expect: race write/write on 4 bytes of stack by 1/2
fn access_two_lines() {
    let lines = Shared::new(Lines { bytes: [0; 128] });
    // SAFETY: the field of a living value.
    let first = unsafe { &raw mut (*lines.at()).bytes }.cast::<u8>();
    let (crossing, within) = (Pointer(first.wrapping_add(61)), Pointer(first.wrapping_add(63)));
    finish(|scope| {
        // SAFETY: both stay within the lines.
        spawn!(scope, unsafe { crossing.at().cast::<u64>().write_unaligned(black_box(1)) }); // race (1)
        // SAFETY: as above.
        spawn!(scope, unsafe { within.at().cast::<u32>().write_unaligned(black_box(2)) }); // race (2)
    });
    black_box(&lines);
}

// expect: race write/read on 3 bytes of stack by 1/2
fn access_unaligned() {
    let lines = Shared::new(Lines { bytes: [0; 128] });
    // SAFETY: the field of a living value.
    let first = unsafe { &raw mut (*lines.at()).bytes }.cast::<u8>();
    let (low, high) = (Pointer(first.wrapping_add(1)), Pointer(first.wrapping_add(6)));
    finish(|scope| {
        // SAFETY: both stay within the lines.
        spawn!(scope, unsafe { low.at().cast::<u64>().write_unaligned(black_box(1)) }); // race (1)
        // SAFETY: as above.
        spawn!(scope, black_box(unsafe { high.at().cast::<u64>().read_unaligned() })); // race (2)
    });
    black_box(&lines);
}

// expect: race write/read on 4 bytes of stack by 1/2
fn access_volatile() {
    let word = Shared::new(0u32);
    finish(|scope| {
        let word = &word;
        // SAFETY: the word is alive.
        spawn!(scope, unsafe { word.at().write_volatile(1) }); // race (1)
        // SAFETY: as above.
        spawn!(scope, black_box(unsafe { word.at().read_volatile() })); // race (2)
    });
}

// expect: race write/read on 1 bytes of stack by 1/2
fn access_u8() {
    let word = Shared::new(0u8);
    finish(|scope| {
        let word = &word;
        spawn!(scope, store!(word, 1)); // race (1)
        spawn!(scope, load!(word)); // race (2)
    });
}

// expect: race write/read on 2 bytes of stack by 1/2
fn access_u16() {
    let word = Shared::new(0u16);
    finish(|scope| {
        let word = &word;
        spawn!(scope, store!(word, 1)); // race (1)
        spawn!(scope, load!(word)); // race (2)
    });
}

// expect: race write/read on 16 bytes of stack by 1/2
fn access_u128() {
    let word = Shared::new(0u128);
    finish(|scope| {
        let word = &word;
        spawn!(scope, store!(word, 1)); // race (1)
        spawn!(scope, load!(word)); // race (2)
    });
}

#[derive(Clone, Copy)]
struct Wide {
    bytes: [u8; 75],
}

// expect: race write/read on 75 bytes of stack by 1/2
fn access_wide_struct() {
    let (one, two) = (Shared::new(Wide { bytes: [0; 75] }), Wide { bytes: black_box([2; 75]) });
    finish(|scope| {
        let (one, two) = (&one, &two);
        spawn!(scope, store!(one, *two)); // race (1)
        spawn!(scope, load!(one).bytes[black_box(74)]); // race (2)
    });
}

// expect: race write/write on 8 bytes of static by 1/2
fn access_static() {
    static mut WORD: u64 = 0;
    finish(|scope| {
        // SAFETY: there is one thread.
        spawn!(scope, unsafe { WORD = black_box(1) };); // race (1)
        // SAFETY: as above.
        spawn!(scope, unsafe { WORD = black_box(2) };); // race (2)
    });
    black_box(&raw const WORD);
}

// expect: race-free
fn access_read_shared() {
    let table: Vec<u64> = black_box((0..1000).collect());
    finish(|scope| {
        for _ in 0..4 {
            let table = &table;
            spawn!(scope, assert_eq!(table.iter().sum::<u64>(), 499_500));
        }
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn access_in_drop() {
    struct Counts<'a>(&'a Shared<u64>);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            store!(self.0, black_box(1)); // race (1) (2)
        }
    }
    let count = Shared::new(0);
    finish(|scope| {
        let [one, two] = [(); 2].map(|()| Counts(&count));
        spawn!(scope, one);
        spawn!(scope, two);
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn access_in_a_closure() {
    let count = Shared::new(0u64);
    let add = |n| {
        store!(count, black_box(n)); // race (1) (2)
    };
    finish(|scope| {
        let add = &add;
        spawn!(scope, add(1));
        spawn!(scope, add(2));
    });
}

// expect: race write/read on 2 bytes of stack by 1/2
fn access_in_a_generic_function() {
    fn put<T: From<u8>>(place: &Shared<T>) {
        store!(place, T::from(black_box(1))); // race (1)
    }
    fn take<T: Copy>(place: &Shared<T>) -> T {
        load!(place) // race (2)
    }
    let word = Shared::new(0u16);
    finish(|scope| {
        let word = &word;
        spawn!(scope, put(word));
        spawn!(scope, take(word));
    });
}

// expect: race write/read on 4 bytes of stack by 1/2
fn access_in_inlined_code() {
    #[inline(always)]
    fn put(place: &Shared<u32>) {
        store!(place, black_box(1)); // race (1)
    }
    #[inline(always)]
    fn take(place: &Shared<u32>) -> u32 {
        load!(place) // race (2)
    }
    let word = Shared::new(0);
    finish(|scope| {
        let word = &word;
        spawn!(scope, put(word));
        spawn!(scope, take(word));
    });
}

/// The access is in the standard library; the place is where the library was called.
// expect: race write/read on 8 bytes of heap by 1/2
fn access_in_an_iterator() {
    let words = black_box(Box::new([1u64; 8]));
    let third = Pointer(ptr::from_ref(&words[3]).cast_mut());
    finish(|scope| {
        spawn!(scope, store!(third, 5)); // race (1)
        let words = &words;
        spawn!(scope, black_box(words.iter().max())); // race (2)
    });
}

// expect: race write/write on 8 bytes of stack by 1/2
fn access_read_modify_write() {
    let count = Shared::new(0u64);
    finish(|scope| {
        let count = &count;
        // SAFETY: the word is alive.
        spawn!(scope, unsafe { *count.at() += black_box(1) }); // race (1)
        spawn!(scope, store!(count, 2)); // race (2)
    });
}

/// What is not executed is not an access.
// expect: race-free
fn access_conditional() {
    let count = Shared::new(0u64);
    finish(|scope| {
        let count = &count;
        spawn!(
            scope,
            if black_box(false) {
                store!(count, 1)
            }
        );
        spawn!(scope, store!(count, 2));
    });
}

/// One race on each of many words.
// expect: race write/write on 800 bytes of heap by 1/2
fn access_many_places() {
    let words: Vec<Shared<u64>> = (0..100).map(Shared::new).collect();
    finish(|scope| {
        let words = &words;
        spawn!(
            scope,
            for word in words {
                store!(word, black_box(1)); // race (1)
            }
        );
        spawn!(
            scope,
            for word in words {
                store!(word, black_box(2)); // race (2)
            }
        );
    });
}
