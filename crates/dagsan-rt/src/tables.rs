//! Where the tables of a worker's access set are, of which the code in the program knows two: this file is also part of `dagsan-pass`.
//!
//! ```text
//!             below the base              from the base on
//!   gs ─────► ACTIVE  SETTER  …    base │ SEEN + a/8   …   WRITTEN + a/8   …
//! ```
//!
//! The segment register gs has the base of the worker that the thread runs for: a mark needs no other register, and several workers can run at once.

/// How much of the address space each table takes: 2^47 / 8.
pub const TABLE: usize = 1 << 44;
/// Room behind each table for the different low bits.
pub const SKEW: usize = (1 << 20) + 0x840;

/// Bit i of the byte for an address: byte i of these eight was read or written by the running strand.
pub const SEEN: usize = 0;
/// The same of bytes that were written.
pub const WRITTEN: usize = SEEN + TABLE + SKEW;

/// A word below the base: the thread whose marks may set bits, by its thread pointer.
pub const SETTER: isize = -16;
/// A byte below the base: can anything be parallel to what the worker does?
pub const ACTIVE: isize = -24;
