//! One line of memory, 64 bytes, touched from several places: which bytes race is known in any case; the place of each only if it is asked for,
//! in a second run or with `sites=exact`.

use dagsan_task::finish;

use crate::Point;
use crate::shared::{Shared, load, siblings, spawn, store};

pub const POINTS: &[Point] = points![
    line_of_three_writes,
    line_of_three_writes_apart,
    line_read_then_written,
    line_read_then_written_apart,
    line_written_then_read,
    line_written_then_read_apart,
    line_of_bytes,
    line_of_bytes_apart,
    line_after_a_loop,
    line_after_a_loop_apart,
    lines_of_one_access,
    lines_of_one_access_apart,
    line_again_in_the_next_strand,
    line_again_in_the_next_strand_joined,
    line_of_every_size,
    line_of_every_size_apart,
];

/// A line, by words and by bytes.
#[repr(C, align(64))]
struct Line {
    words: [Shared<u64>; 8],
    bytes: [Shared<u8>; 64],
}

impl Line {
    const fn new() -> Line {
        Line { words: [const { Shared::new(0) }; 8], bytes: [const { Shared::new(0) }; 64] }
    }
}

// expect: race write/write on 8 bytes of static by 1/2
fn line_of_three_writes() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            store!(LINE.words[0], 1);
            store!(LINE.words[4], 1);
            store!(LINE.words[2], 1); // race (1)
            store!(LINE.words[6], 1);
        });
        spawn!(scope, {
            store!(LINE.words[7], 2);
            store!(LINE.words[5], 2);
            store!(LINE.words[2], 2); // race (2)
        });
    });
}

// expect: race-free
fn line_of_three_writes_apart() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            store!(LINE.words[0], 1);
            store!(LINE.words[4], 1);
            store!(LINE.words[2], 1);
            store!(LINE.words[6], 1);
        });
        spawn!(scope, {
            store!(LINE.words[7], 2);
            store!(LINE.words[5], 2);
            store!(LINE.words[3], 2);
        });
    });
}

// expect: race write/read on 8 bytes of static by 1/2
fn line_read_then_written() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            load!(LINE.words[0]);
            load!(LINE.words[1]);
            store!(LINE.words[3], 1); // race (1)
            load!(LINE.words[3]);
        });
        spawn!(scope, {
            load!(LINE.words[1]);
            load!(LINE.words[3]); // race (2)
            store!(LINE.words[5], 1);
        });
    });
}

// expect: race-free
fn line_read_then_written_apart() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            load!(LINE.words[0]);
            load!(LINE.words[1]);
            store!(LINE.words[3], 1);
        });
        spawn!(scope, {
            load!(LINE.words[1]);
            load!(LINE.words[0]);
            store!(LINE.words[5], 1);
        });
    });
}

// expect: race read/write on 8 bytes of static by 1/2
fn line_written_then_read() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            store!(LINE.words[0], 1);
            load!(LINE.words[6]);
            load!(LINE.words[7]); // race (1)
        });
        spawn!(scope, {
            store!(LINE.words[1], 2);
            store!(LINE.words[7], 2); // race (2)
        });
    });
}

// expect: race-free
fn line_written_then_read_apart() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            store!(LINE.words[0], 1);
            load!(LINE.words[6]);
            load!(LINE.words[7]);
        });
        spawn!(scope, {
            store!(LINE.words[1], 2);
            load!(LINE.words[7]);
        });
    });
}

// expect: race write/write on 1 bytes of static by 1/2
fn line_of_bytes() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            store!(LINE.bytes[62], 1);
            store!(LINE.bytes[1], 1);
            store!(LINE.bytes[63], 1); // race (1)
        });
        spawn!(scope, {
            store!(LINE.bytes[2], 2);
            store!(LINE.bytes[61], 2);
            store!(LINE.bytes[63], 2); // race (2)
        });
    });
}

// expect: race-free
fn line_of_bytes_apart() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            store!(LINE.bytes[62], 1);
            store!(LINE.bytes[1], 1);
            store!(LINE.bytes[63], 1);
        });
        spawn!(scope, {
            store!(LINE.bytes[2], 2);
            store!(LINE.bytes[61], 2);
            load!(LINE.bytes[60]);
        });
    });
}

// expect: race write/write on 8 bytes of static by 1/2
fn line_after_a_loop() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            for byte in &LINE.bytes[8..32] {
                store!(byte, 1);
            }
            store!(LINE.words[7], 1); // race (1)
        });
        spawn!(scope, {
            for byte in &LINE.bytes[40..48] {
                load!(byte);
            }
            store!(LINE.words[7], 1); // race (2)
        });
    });
}

// expect: race-free
fn line_after_a_loop_apart() {
    static LINE: Line = Line::new();
    finish(|scope| {
        spawn!(scope, {
            for byte in &LINE.bytes[8..32] {
                store!(byte, 1);
            }
            store!(LINE.words[7], 1);
        });
        spawn!(scope, {
            for byte in &LINE.bytes[32..64] {
                store!(byte, 2);
            }
            load!(LINE.words[6]);
        });
    });
}

/// Words of two lines, which one access may touch.
#[repr(C, align(64))]
struct Two(Shared<[u8; 128]>);

impl Two {
    /// A pair of words that lies across the border.
    fn across(&self) -> crate::shared::Pointer<[u64; 2]> {
        crate::shared::Pointer(self.0.at().cast::<u64>().wrapping_add(7).cast())
    }

    fn byte(&self, index: usize) -> crate::shared::Pointer<u8> {
        crate::shared::Pointer(self.0.at().cast::<u8>().wrapping_add(index))
    }
}

// expect: race write/write on 1 bytes of static by 1/2
fn lines_of_one_access() {
    static TWO: Two = Two(Shared::new([0; 128]));
    finish(|scope| {
        spawn!(scope, {
            store!(TWO.byte(0), 1);
            store!(TWO.byte(127), 1);
            store!(TWO.across(), [1, 1]); // race (1)
        });
        spawn!(scope, {
            store!(TWO.byte(80), 2);
            store!(TWO.byte(71), 2); // race (2)
        });
    });
}

// expect: race-free
fn lines_of_one_access_apart() {
    static TWO: Two = Two(Shared::new([0; 128]));
    finish(|scope| {
        spawn!(scope, {
            store!(TWO.byte(0), 1);
            store!(TWO.byte(127), 1);
            store!(TWO.across(), [1, 1]);
        });
        spawn!(scope, {
            store!(TWO.byte(55), 2);
            store!(TWO.byte(72), 2);
        });
    });
}

// expect: race write/write on 8 bytes of static by 1/0
fn line_again_in_the_next_strand() {
    static LINE: Line = Line::new();
    finish(|scope| {
        store!(LINE.words[0], 1);
        store!(LINE.words[1], 1);
        spawn!(scope, {
            load!(LINE.words[0]);
            store!(LINE.words[1], 2); // race (1)
        });
        store!(LINE.words[2], 3);
        store!(LINE.words[1], 3); // race (2)
    });
}

// expect: race-free
fn line_again_in_the_next_strand_joined() {
    static LINE: Line = Line::new();
    finish(|scope| {
        store!(LINE.words[0], 1);
        store!(LINE.words[1], 1);
        finish(|inner| {
            spawn!(inner, {
                load!(LINE.words[0]);
                store!(LINE.words[1], 2);
            });
        });
        spawn!(scope, load!(LINE.words[7]));
        store!(LINE.words[2], 3);
        store!(LINE.words[1], 3);
    });
}

/// Reads of 1, 2, 4, 8 and 16 bytes, and of 3.
fn every_size(two: &'static Two) {
    load!(two.byte(0));
    load!(crate::shared::Pointer(two.byte(2).at().cast::<u16>()));
    load!(crate::shared::Pointer(two.byte(4).at().cast::<u32>()));
    load!(crate::shared::Pointer(two.byte(8).at().cast::<u64>()));
    load!(crate::shared::Pointer(two.byte(16).at().cast::<u128>()));
    load!(crate::shared::Pointer(two.byte(33).at().cast::<[u8; 3]>()));
}

// expect: race
fn line_of_every_size() {
    static TWO: Two = Two(Shared::new([0; 128]));
    finish(|scope| {
        spawn!(scope, {
            load!(TWO.byte(0));
            load!(crate::shared::Pointer(TWO.byte(4).at().cast::<u32>()));
            load!(crate::shared::Pointer(TWO.byte(16).at().cast::<u128>())); // race (1)
            load!(crate::shared::Pointer(TWO.byte(33).at().cast::<[u8; 3]>())); // race (1)
        });
        spawn!(scope, {
            store!(TWO.byte(1), 1);
            store!(TWO.byte(31), 1); // race (2)
            store!(TWO.byte(35), 1); // race (2)
            store!(TWO.byte(36), 1);
        });
    });
}

// expect: race-free
fn line_of_every_size_apart() {
    static TWO: Two = Two(Shared::new([0; 128]));
    siblings(|| every_size(&TWO));
    finish(|scope| {
        spawn!(scope, every_size(&TWO));
        spawn!(scope, {
            store!(TWO.byte(1), 1);
            store!(TWO.byte(32), 1);
            store!(TWO.byte(36), 1);
        });
    });
}
