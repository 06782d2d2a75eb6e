//! Where the access set of the running strand lives: four tables at fixed addresses, one entry per piece of memory.
//!
//! ```text
//!   table      entry for address a      size   what it says
//!   SEEN       SEEN    + a/8            1      bit i: byte i of these eight was read or written by the running strand
//!   WRITTEN    WRITTEN + a/8            1      bit i: … was written
//!   SITES      SITES   + (a/64)*8       4+4    if places are to be exact: the code that last read / last wrote something new in this line of 64;
//!                                              besides, room for the end of a strand (`log::take`)
//!   KEPT       KEPT    + a/8            1      bit i: byte i of these eight need not be recorded if it is read (`shared`)
//!
//!                                    one line of memory: 64 bytes
//!   SEEN, WRITTEN, as one u64        [ byte 63 … byte 0 ]     the line's mask, in the sense of dagsan-core
//! ```
//!
//! The tables cover all 47 bits of user addresses, so that an entry is found by a shift and an addition of a constant,
//! and no two addresses share one. They are reserved, not allocated: memory is used for what the program's tasks touch,
//! 2 bytes for every 8, and one more for what is kept, or if places are to be exact. The bases differ in their low 12 bits: entries of the same address would otherwise alias in the
//! store buffer.
//!
//! Everything is zero between strands, but for what is kept. Only the thread that runs the tasks writes here.

pub use crate::tables::{SEEN, WRITTEN};
use crate::tables::{SKEW, TABLE};

pub const SITES: usize = WRITTEN + TABLE + SKEW;
pub const KEPT: usize = SITES + TABLE + SKEW;

/// Bytes of memory per line.
pub const LINE_SHIFT: u32 = 6;

/// Why the tables cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "cannot reserve address space for the access set: {0}; is it limited (`ulimit -v`), or is another sanitizer linked in?"
    )]
    Reserve(std::io::Error),
    #[error("this processor has no XSAVE, which the runtime needs")]
    Processor,
}

/// Reserves the tables. To be called once, before the first access is recorded.
pub fn reserve() -> Result<(), Error> {
    if !std::arch::is_x86_feature_detected!("xsave") {
        return Err(Error::Processor);
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let length = KEPT + TABLE + SKEW - SEEN;
    // SAFETY: FIXED_NOREPLACE touches no existing mapping.
    let at = unsafe {
        libc::mmap(SEEN as *mut libc::c_void, length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if at as usize != SEEN {
        return Err(Error::Reserve(std::io::Error::last_os_error()));
    }
    // A core dump of 64 TiB helps nobody. Failing to say so harms nobody either.
    // SAFETY: the range was mapped above.
    unsafe { libc::madvise(at, length, libc::MADV_DONTDUMP) };
    Ok(())
}

/// The mask of a line in `table`, one of [`SEEN`], [`WRITTEN`] and [`KEPT`].
#[inline]
pub fn mask(table: usize, line: u64) -> *mut u64 {
    (table + (line as usize) * 8) as *mut u64
}

/// The sites of a line: the last new read, the last new write.
#[inline]
pub fn sites(line: u64) -> *mut [u32; 2] {
    (SITES + (line as usize) * 8) as *mut [u32; 2]
}
