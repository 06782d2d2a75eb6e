//! Which bytes a random program touches.
//!
//! Each program has a few lines of shared memory, in them some variables that it likes to touch, and a
//! byte range for every task that is mostly its own. Few enough bytes that tasks collide, enough
//! that they do not always; and a task that touches only its own bytes, and those it was told about by
//! a join, makes no race.
//!
//! ```text
//!   0x40 × base        shared lines, neighbours or with gaps
//!                      [..vvvv..|.vv.....]      [...vvvvvvvv...]
//!   + 0x10000          own bytes of the tasks, side by side in the same lines
//!                      [0011223344…]
//! ```
//!
//! Some programs touch whole words only, and often whole lines, as those do that work on arrays.

use dagsan_core::{Bytes, LINE_BYTES};
use fastrand::Rng;

use crate::program::Stmt;

const WORD: u64 = 4;

/// How many ranges a task remembers as safe to touch.
const MEMORY: usize = 6;

/// The shared and own bytes of a program, and how it likes to touch them.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The addresses of the shared lines.
    lines: Vec<u64>,
    variables: Vec<Bytes>,
    own_start: u64,
    own_width: u64,
    /// Is it of whole words?
    in_words: bool,
    /// How many of 100 accesses are writes.
    writes: u32,
    /// How many of 100 accesses keep to bytes that ought to be ordered.
    careful: u32,
}

impl Pool {
    pub(crate) fn new(rng: &mut Rng) -> Pool {
        let base = if rng.u32(0..8) == 0 { 0x7f00_0000_0000 } else { LINE_BYTES * rng.u64(0..8) };
        let neighbours = rng.u32(0..3) > 0;
        let mut lines = Vec::new();
        let mut next = base;
        for _ in 0..rng.u32(1..=8) {
            lines.push(next);
            next += LINE_BYTES * if neighbours { 1 } else { rng.u64(1..4) };
        }
        let mut pool = Pool {
            lines,
            variables: Vec::new(),
            own_start: base + 0x10000 + rng.u64(0..LINE_BYTES),
            own_width: [1, 2, 3, 4, 8, 16][rng.usize(0..6)],
            in_words: rng.u32(0..4) == 0,
            writes: [10, 30, 50, 80][rng.usize(0..4)],
            careful: [0, 40, 80, 95, 99][rng.usize(0..5)],
        };
        if pool.in_words {
            pool.own_start &= !(WORD - 1);
            pool.own_width = pool.own_width.next_multiple_of(WORD);
        }
        for _ in 0..rng.u32(1..=8) {
            let variable = pool.any(rng);
            pool.variables.push(variable);
        }
        pool
    }

    /// The bytes that belong to the task of that number.
    pub(crate) fn own(&self, task: usize) -> Bytes {
        bytes(self.own_start + self.own_width * task as u64, self.own_width)
    }

    /// A read or write by a task with those own bytes, which may touch the `known` ones in order.
    pub(crate) fn access(&self, rng: &mut Rng, own: Bytes, known: &[Bytes]) -> Stmt {
        let write = rng.u32(0..100) < self.writes;
        if rng.u32(0..100) >= self.careful {
            let bytes = self.shared(rng);
            return if write { Stmt::write(bytes) } else { Stmt::read(bytes) };
        }
        // Several tasks may know of the same bytes: careful tasks write mostly their own.
        match rng.choice(known) {
            Some(&bytes) if write && rng.u32(0..6) == 0 => Stmt::write(bytes),
            Some(&bytes) if !write && rng.u32(0..6) > 0 => Stmt::read(bytes),
            _ if write => Stmt::write(own),
            _ => Stmt::read(own),
        }
    }

    /// Shared bytes: a variable, some bytes near one, or any.
    pub(crate) fn shared(&self, rng: &mut Rng) -> Bytes {
        let Some(&variable) = rng.choice(&self.variables) else { return self.any(rng) };
        let shared = match rng.u32(0..8) {
            0 => self.any(rng),
            1 => bytes(variable.start() + rng.u64(0..variable.len()), width(rng)),
            2 => bytes(variable.start().saturating_sub(rng.u64(0..4)), variable.len()),
            _ => variable,
        };
        self.widened(shared)
    }

    /// With the rest of its words, if the program is of whole words.
    fn widened(&self, narrow: Bytes) -> Bytes {
        if !self.in_words {
            return narrow;
        }
        let start = narrow.start() & !(WORD - 1);
        bytes(start, narrow.end().next_multiple_of(WORD) - start)
    }

    /// Mostly the variable that goes with a lock of that name.
    pub(crate) fn favourite(&self, name: u32, rng: &mut Rng) -> Bytes {
        match self.variables.get(name as usize) {
            Some(&variable) if rng.u32(0..4) > 0 => variable,
            _ => self.shared(rng),
        }
    }

    fn any(&self, rng: &mut Rng) -> Bytes {
        let line = rng.choice(&self.lines).copied().unwrap_or_default();
        if self.in_words && rng.u32(0..3) == 0 {
            return bytes(line, LINE_BYTES);
        }
        let width = width(rng);
        let offset = rng.u64(0..LINE_BYTES);
        let aligned = rng.u32(0..3) > 0 && width.is_power_of_two();
        self.widened(bytes(line + if aligned { offset & !(width - 1) } else { offset }, width))
    }
}

/// Mostly what a machine word has, sometimes a struct or a slice.
fn width(rng: &mut Rng) -> u64 {
    const ODD: [u64; 6] = [3, 5, 7, 24, 64, 100];
    if rng.u32(0..5) == 0 { ODD[rng.usize(0..6)] } else { 1 << rng.u32(0..5) }
}

fn bytes(start: u64, len: u64) -> Bytes {
    Bytes::new(start, len).expect("the pool is far from the end of the address space")
}

/// Remembers `bytes`, in the place of others if need be. What is told twice is remembered twice, and so is
/// more likely to be touched.
pub(crate) fn remember(known: &mut Vec<Bytes>, bytes: Bytes, rng: &mut Rng) {
    if known.len() < MEMORY {
        known.push(bytes);
    } else {
        known[rng.usize(0..MEMORY)] = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_bytes_are_disjoint_from_others_and_from_the_shared() {
        let mut rng = Rng::with_seed(5);
        for _ in 0..500 {
            let pool = Pool::new(&mut rng);
            for task in 0..300 {
                assert!(pool.own(task).end() <= pool.own(task + 1).start());
            }
            for _ in 0..50 {
                assert!(pool.shared(&mut rng).end() <= pool.own(0).start());
            }
        }
    }

    #[test]
    fn ranges_are_narrow_and_wide_aligned_and_not_in_one_line_and_two() {
        let mut rng = Rng::with_seed(6);
        let (mut narrow, mut wide, mut odd, mut crossing) = (0, 0, 0, 0);
        for _ in 0..200 {
            let pool = Pool::new(&mut rng);
            for _ in 0..50 {
                let bytes = pool.shared(&mut rng);
                narrow += u32::from(bytes.len() == 1);
                wide += u32::from(bytes.len() > 16);
                odd += u32::from(!bytes.start().is_multiple_of(bytes.len()));
                crossing += u32::from(bytes.lines().count() > 1);
            }
        }
        assert!([narrow, wide, odd, crossing].iter().all(|&n| n > 500), "{narrow} {wide} {odd} {crossing}");
    }
}
