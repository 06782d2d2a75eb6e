//! Where the tables of the access set are, of which the code in the program knows two: this file is also part of `dagsan-pass`.
//!
//! ```text
//!   SEEN       SEEN    + a/8            1      bit i: byte i of these eight was read or written by the running strand
//!   WRITTEN    WRITTEN + a/8            1      bit i: … was written
//! ```

/// How much of the address space each table takes: 2^47 / 8.
pub const TABLE: usize = 1 << 44;
/// Room behind each table for the different low bits.
pub const SKEW: usize = (1 << 20) + 0x840;

/// The first address that is reserved; nothing on x86-64 Linux lives here unless asked to.
pub const SEEN: usize = 0x1000_0000_0000;
pub const WRITTEN: usize = SEEN + TABLE + SKEW;
