//! The memory of a function that is interpreted, and which bytes of it are touched.

use super::ast::{ARENA, SENTINEL, Ty};
use super::interpret::{Refused, Stop};

/// Which bytes a strand has touched: a bit each, as in the runtime's tables.
#[derive(Clone, PartialEq, Eq)]
pub struct Touched {
    /// Read or written.
    pub seen: [u8; ARENA / 8],
    /// Written.
    pub written: [u8; ARENA / 8],
}

impl Touched {
    /// Nothing.
    pub const NONE: Touched = Touched { seen: [0; ARENA / 8], written: [0; ARENA / 8] };

    /// What the tables say at the beginning of a strand.
    fn begin() -> Touched {
        let mut touched = Touched::NONE;
        touched.add(SENTINEL, 1, true);
        touched
    }

    fn add(&mut self, at: usize, length: usize, write: bool) {
        for byte in at..at + length {
            self.seen[byte / 8] |= 1 << (byte % 8);
            if write {
                self.written[byte / 8] |= 1 << (byte % 8);
            }
        }
    }

    /// Is the byte seen, and is it written?
    pub fn of(&self, byte: usize) -> (bool, bool) {
        let bit = |table: &[u8]| table[byte / 8] & 1 << (byte % 8) != 0;
        (bit(&self.seen), bit(&self.written))
    }

    /// Is it of a strand that has not begun anew by an atomic operation?
    fn is_whole(&self) -> bool {
        self.of(SENTINEL).0
    }
}

/// What a strand has touched when it shows it.
#[derive(Clone)]
pub struct Shown {
    /// Since the last task event.
    whole: Touched,
    /// Since each of the atomic operations after it: what is to be found if that was the last to end the strand.
    since: Vec<Touched>,
}

impl Shown {
    /// The one that must be equal to what was found. Which atomic operations end a strand is the runtime's to know; if none of them
    /// fits, it is the last one.
    pub fn expected(&self, found: &Touched) -> &Touched {
        if found.is_whole() {
            return &self.whole;
        }
        let fits = self.since.iter().find(|since| *since == found);
        fits.or(self.since.last()).unwrap_or(&self.whole)
    }
}

/// An address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer {
    /// 0 is what is looked at, others are local variables.
    pub space: usize,
    pub at: usize,
}

/// All memory that a function has.
pub struct Memory {
    /// Where the first of the spaces is.
    pub base: u64,
    pub spaces: Vec<Vec<u8>>,
    shown: Vec<Shown>,
    now: Shown,
}

impl Memory {
    pub fn new(base: u64, arena: Vec<u8>, locals: &[usize]) -> Memory {
        let spaces = std::iter::once(arena).chain(locals.iter().map(|&size| vec![0; size])).collect();
        let now = Shown { whole: Touched::begin(), since: Vec::new() };
        Memory { base, spaces, shown: Vec::new(), now }
    }

    pub fn show(&mut self) {
        self.shown.push(self.now.clone());
    }

    /// A task event.
    pub fn event(&mut self) {
        self.now = Shown { whole: Touched::begin(), since: Vec::new() };
    }

    /// What may be one.
    pub fn atomic(&mut self) {
        self.now.since.push(Touched::NONE);
    }

    /// What was shown, and what is in the memory.
    pub fn into_shown(mut self) -> (Vec<Shown>, Vec<u8>) {
        (self.shown, self.spaces.swap_remove(0))
    }

    /// A pointer so many bytes further.
    pub fn offset(&self, pointer: Pointer, bytes: i128) -> Result<Pointer, Stop> {
        let at = pointer.at as i128 + bytes;
        if at < 0 || at > self.spaces[pointer.space].len() as i128 {
            return Err(Refused::Outside.into());
        }
        Ok(Pointer { at: at as usize, ..pointer })
    }

    fn touch(&mut self, at: Pointer, length: usize, write: bool) -> Result<(), Stop> {
        // The sentinel is nobody's.
        let end = self.spaces[at.space].len() - usize::from(at.space == 0);
        if at.at + length > end {
            return Err(Refused::Outside.into());
        }
        if at.space == 0 {
            self.now.whole.add(at.at, length, write);
            self.now.since.iter_mut().for_each(|since| since.add(at.at, length, write));
        }
        Ok(())
    }

    pub fn read(&mut self, at: Pointer, length: usize) -> Result<Vec<u8>, Stop> {
        self.touch(at, length, false)?;
        Ok(self.spaces[at.space][at.at..at.at + length].to_vec())
    }

    pub fn write(&mut self, at: Pointer, bytes: &[u8]) -> Result<(), Stop> {
        self.touch(at, bytes.len(), true)?;
        self.spaces[at.space][at.at..at.at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// What is there, without reading it.
    pub fn peek(&self, at: Pointer, length: usize) -> Result<&[u8], Stop> {
        self.spaces[at.space].get(at.at..at.at + length).ok_or(Refused::Outside.into())
    }

    /// Must be aligned for the type.
    pub fn align(&self, at: Pointer, ty: Ty) -> Result<(), Stop> {
        if at.at.is_multiple_of(ty.align()) { Ok(()) } else { Err(Refused::Misaligned.into()) }
    }
}

/// Must have no byte in common.
pub fn apart(a: Pointer, b: Pointer, length: usize) -> Result<(), Stop> {
    let overlap = a.space == b.space && a.at < b.at + length && b.at < a.at + length;
    if overlap { Err(Refused::Overlap.into()) } else { Ok(()) }
}

/// Must not be the same place, if there is anything: the compiler may leave out a copy of bytes to where they are.
pub fn elsewhere(a: Pointer, b: Pointer, length: usize) -> Result<(), Stop> {
    if a == b && length > 0 { Err(Refused::Overlap.into()) } else { Ok(()) }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the bytes of a value are in the hash: words of eight, turned and put together. `support.rs` has the same in Rust.
pub fn fold(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|word| {
        let mut whole = [0; 8];
        whole[..word.len()].copy_from_slice(word);
        u64::from_le_bytes(whole)
    });
    words.zip(0u32..).fold(0, |all, (word, number)| all ^ word.rotate_left(29 * number % 64))
}

/// A value of so many bytes that is made of a number.
pub fn make(number: u64, size: usize) -> Vec<u8> {
    let words = (0..).map(|index: u64| number.wrapping_add(index.wrapping_mul(STEP)));
    words.flat_map(u64::to_le_bytes).take(size).collect()
}

/// The hash, after a value. Were it not turned before, one that was made of the hash would cancel it.
pub fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(11) ^ value).wrapping_mul(STEP).rotate_left(23)
}

/// A number that is to be written.
pub fn spread(number: usize) -> u64 {
    (number as u64).wrapping_mul(STEP)
}
