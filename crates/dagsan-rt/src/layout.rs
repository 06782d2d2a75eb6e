//! Where the access set of the running strand lives: five tables for each worker, with one entry per piece of memory.
//!
//! ```text
//!   table      entry for address a        size   what it says
//!   SEEN       base + SEEN    + a/8        1      bit i: byte i of these eight was read or written by the running strand
//!   WRITTEN    base + WRITTEN + a/8        1      bit i: … was written
//!   SITES      base + SITES   + (a/64)*8   4+4    if places are to be exact: the code that last read / last wrote something new in this line of 64;
//!                                                 besides, room for the end of a strand (`log::take`)
//!   KEPT       base + KEPT    + a/8        1      bit i: byte i of these eight need not be recorded if it is read (`shared`)
//!   TOLD       base + TOLD    + a/8        1      bit i: … was written, and that was recorded (`recorder`); all zero for the root
//!
//!                                      one line of memory: 64 bytes
//!   SEEN, WRITTEN, as one u64          [ byte 63 … byte 0 ]     the line's mask, in the sense of dagsan-core
//! ```
//!
//! An entry is found by a shift and the segment register that holds the base, and no two addresses share one. Tables for all 47 bits of user addresses
//! would leave no room for those of a second worker, so only *windows* of them are mapped: for the addresses at which the program is,
//! and at which the system puts new mappings. A mapping elsewhere, which the program asks for by its address, gets a window when it is made ([`cover`]).
//! The bases of workers differ by less than the distance of two windows, so that they lie between each other:
//!
//! ```text
//!   worker 0   ·█··········██·····(SEEN)·····█··········██·····(WRITTEN)·· …       █  a window
//!   worker 1   ··█···········██···············█···········██·············· …
//! ```
//!
//! Windows are reserved, not allocated: memory is used for what the program's tasks touch, 2 bytes for every 8, and one more for what is
//! kept, or if places are to be exact. Tables of one worker differ in their low 12 bits: entries of the same address would otherwise alias in the
//! store buffer.
//!
//! Everything is zero between strands, but for what is kept. Only the thread that runs for the worker writes here.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::state::{MOST_WORKERS, Worker, worker};
use crate::system::call;
pub use crate::tables::{SEEN, WRITTEN};
use crate::tables::{SKEW, TABLE};

pub const SITES: usize = WRITTEN + TABLE + SKEW;
pub const KEPT: usize = SITES + TABLE + SKEW;
pub const TOLD: usize = KEPT + TABLE + SKEW;

/// Bytes of memory per line.
pub const LINE_SHIFT: u32 = 6;

/// No address of a program is larger.
const ADDRESSES: usize = 1 << 47;

/// Windows begin and end at multiples of this many addresses.
const GRAIN: usize = 1 << 36;

/// So far beyond what is mapped at the start of the program mappings may come without being asked for by address.
const BEYOND: usize = 1 << 40;

/// Programs that are linked for fixed addresses are below this one.
const LOW: usize = 16 * GRAIN;

/// The first base, and the distance of others: the tables of programs as they are lie below their code then, and between each other.
const FIRST: usize = LOW + GRAIN;
const STEP: usize = 1 << 38;

/// The page below the base, in which a worker has its words.
pub const HEAD: usize = 4096;

/// Why tables cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "cannot reserve address space for the access set: {0}; is it limited (`ulimit -v`), or is another sanitizer linked in?"
    )]
    Reserve(std::io::Error),
    #[error("this processor has no XSAVE, which the runtime needs")]
    Processor,
    #[error("the program has mappings in too many places")]
    TooMany,
}

/// Addresses, and what is in the tables for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    start: usize,
    end: usize,
}

impl Window {
    /// A window around some addresses, which do not begin it.
    fn around(start: usize, end: usize) -> Window {
        let start = start.saturating_sub(GRAIN) / GRAIN * GRAIN;
        Window { start, end: end.next_multiple_of(GRAIN).min(ADDRESSES) }
    }

    fn meets(&self, part: &Range<usize>) -> bool {
        part.start < self.end && self.start < part.end
    }

    /// The parts of the tables at a base that it takes, in whole pages: those of neighbours do not overlap. What is missing is for the first
    /// addresses of a window only.
    fn parts(&self, base: usize) -> [Range<usize>; 5] {
        [SEEN, WRITTEN, SITES, KEPT, TOLD].map(|table| {
            let [start, end] =
                [self.start, self.end].map(|at| (base + table + at / 8).next_multiple_of(HEAD));
            start..end
        })
    }

    /// What is left of it before and behind another one.
    fn without(&self, other: &Window) -> [Window; 2] {
        [
            Window { start: self.start, end: self.end.min(other.start).max(self.start) },
            Window { start: self.start.max(other.end).min(self.end), end: self.end },
        ]
    }

    fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// So many windows there are at most: three, and those for mappings at addresses of the program's choice.
const MOST_WINDOWS: usize = 64;

/// The windows, and the bases of the workers that have tables. Nothing is allocated here: the program's allocator may have hooks, which need tables.
struct Reserved {
    windows: List<Window, MOST_WINDOWS>,
    bases: List<usize, MOST_WORKERS>,
}

/// A short list in place.
struct List<T, const MOST: usize> {
    entries: [T; MOST],
    length: usize,
}

impl<T: Copy, const MOST: usize> List<T, MOST> {
    fn all(&self) -> &[T] {
        &self.entries[..self.length]
    }

    fn push(&mut self, entry: T) -> Result<(), Error> {
        let at = self.entries.get_mut(self.length).ok_or(Error::TooMany)?;
        *at = entry;
        self.length += 1;
        Ok(())
    }
}

static RESERVED: Mutex<Reserved> = Mutex::new(Reserved {
    windows: List { entries: [Window { start: 0, end: 0 }; MOST_WINDOWS], length: 0 },
    bases: List { entries: [0; MOST_WORKERS], length: 0 },
});

/// Reserves the tables of one more worker. The base, below which there is a page for the worker's words.
pub fn reserve() -> Result<usize, Error> {
    if !std::arch::is_x86_feature_detected!("xsave") {
        return Err(Error::Processor);
    }
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    if reserved.windows.length == 0 {
        first_windows(&mut reserved.windows)?;
    }
    let mut failure = taken();
    // Where the tables of others, or the program, are in the way, the next base is tried.
    for base in (FIRST..ADDRESSES / 4).step_by(STEP) {
        match reserve_at(base, reserved.windows.all()) {
            Ok(()) => return reserved.bases.push(base).map(|()| base),
            Err(error) => failure = error,
        }
    }
    Err(Error::Reserve(failure))
}

/// Where the program is, and where the system puts what it maps.
fn first_windows(windows: &mut List<Window, MOST_WINDOWS>) -> Result<(), Error> {
    static IMAGE: u8 = 0;
    let stack = 0u8;
    // SAFETY: a mapping of its own.
    let mapped = unsafe { map(0, HEAD, 0) }.map_err(Error::Reserve)?;
    unmap(&(mapped..mapped + HEAD));
    let (image, above) = ((&raw const IMAGE).addr(), mapped.min((&raw const stack).addr()));
    windows.push(Window::around(0, LOW))?;
    for window in
        [Window::around(image, image + BEYOND), Window::around(above.saturating_sub(BEYOND), ADDRESSES)]
    {
        while let Some(part) = uncovered(window, windows.all()) {
            windows.push(part)?;
        }
    }
    Ok(())
}

/// The first part of a window that no other covers.
fn uncovered(window: Window, windows: &[Window]) -> Option<Window> {
    if window.is_empty() {
        return None;
    }
    let Some(known) = windows.iter().find(|known| known.meets(&(window.start..window.end))) else {
        return Some(window);
    };
    window.without(known).into_iter().find_map(|rest| uncovered(rest, windows))
}

/// All of the windows, and the page below, or nothing.
fn reserve_at(base: usize, windows: &[Window]) -> std::io::Result<()> {
    let parts =
        || windows.iter().flat_map(|window| window.parts(base)).chain(std::iter::once(base - HEAD..base));
    for (number, part) in parts().enumerate() {
        let is_programs = windows.iter().any(|window| window.meets(&part));
        let mapped = if is_programs { Err(taken()) } else { map_at(&part) };
        if let Err(error) = mapped {
            parts().take(number).for_each(|part| unmap(&part));
            return Err(error);
        }
    }
    Ok(())
}

fn taken() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::EEXIST)
}

fn map_at(part: &Range<usize>) -> std::io::Result<()> {
    // SAFETY: FIXED_NOREPLACE touches no existing mapping.
    let at = unsafe { map(part.start, part.len(), libc::MAP_FIXED_NOREPLACE) }?;
    // Old systems take the address for a hint.
    if at != part.start {
        unmap(&(at..at + part.len()));
        return Err(taken());
    }
    Ok(())
}

/// # Safety
///
/// With the flags, it touches no existing mapping.
unsafe fn map(at: usize, length: usize, flags: i32) -> std::io::Result<usize> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // Not by the C library's function, which is the runtime's own (`mappings`).
    // SAFETY: the caller's promise.
    let at = unsafe { call(libc::SYS_mmap, [at, length, access as usize, flags as usize, usize::MAX, 0]) };
    if (-4095..0).contains(&at) {
        return Err(std::io::Error::from_raw_os_error(-at as i32));
    }
    // A core dump of terabytes helps nobody. Failing to say so harms nobody either.
    // SAFETY: the range was mapped above.
    unsafe { libc::madvise(at as *mut libc::c_void, length, libc::MADV_DONTDUMP) };
    Ok(at as usize)
}

fn unmap(part: &Range<usize>) {
    // SAFETY: what this file has mapped, and nobody uses yet.
    unsafe { call(libc::SYS_munmap, [part.start, part.len(), 0, 0, 0, 0]) };
}

/// The program has mapped something at these addresses: the tables must have windows for it.
pub fn cover(addresses: Range<usize>) -> Result<(), Error> {
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    // Before there are tables, nothing is to be covered, and what no program can use is not.
    if reserved.bases.length == 0 || addresses.is_empty() || addresses.end > ADDRESSES {
        return Ok(());
    }
    let wanted = Window::around(addresses.start, addresses.end);
    while let Some(window) = uncovered(wanted, reserved.windows.all()) {
        for &base in reserved.bases.all() {
            window.parts(base).iter().try_for_each(map_at).map_err(Error::Reserve)?;
        }
        reserved.windows.push(window)?;
    }
    Ok(())
}

/// The mask of a line in a table of this thread's worker; not of [`SITES`].
#[inline]
pub fn mask(table: usize, line: u64) -> *mut u64 {
    mask_of(worker(), table, line)
}

/// The same of any worker.
#[inline]
pub fn mask_of(worker: &Worker, table: usize, line: u64) -> *mut u64 {
    (worker.base() + table + (line as usize) * 8) as *mut u64
}

/// The sites of a line: the last new read, the last new write.
#[inline]
pub fn sites(line: u64) -> *mut [u32; 2] {
    (worker().base() + SITES + (line as usize) * 8) as *mut [u32; 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start: usize, end: usize) -> Window {
        Window { start, end }
    }

    #[test]
    fn windows_of_several_workers_lie_between_each_other() {
        let windows =
            [window(0, LOW), window(0x5500_0000_0000, 0x5620_0000_0000), window(0x7e00_0000_0000, ADDRESSES)];
        let parts_of = |number: usize| -> Vec<Range<usize>> {
            windows.iter().flat_map(|window| window.parts(FIRST + number * STEP)).collect()
        };
        let all: Vec<Vec<Range<usize>>> = (0..8).map(|number| parts_of(2 * number)).collect();
        for (number, one) in all.iter().enumerate() {
            for other in all.iter().skip(number + 1).flatten() {
                assert!(
                    !one.iter().any(|part| window(part.start, part.end).meets(other)),
                    "{one:x?} {other:x?}"
                );
            }
            let met = one.iter().find(|part| windows.iter().any(|window| window.meets(part)));
            assert_eq!(met, None);
        }
    }

    #[test]
    fn what_is_covered_is_not_mapped_again() {
        let known = [window(10, 20), window(30, 40)];
        let rest = |start, end| {
            let mut windows = known.to_vec();
            while let Some(part) = uncovered(window(start, end), &windows) {
                windows.push(part);
            }
            windows[2..].iter().map(|window| (window.start, window.end)).collect::<Vec<_>>()
        };
        assert_eq!(rest(12, 18), []);
        assert_eq!(rest(15, 35), [(20, 30)]);
        assert_eq!(rest(22, 28), [(22, 28)]);
        assert_eq!(rest(0, 50), [(0, 10), (20, 30), (40, 50)]);
    }
}
