//! What is counted of accesses and marks, by its place in the runtime's array: this file is also part of `dagsan-pass`.

/// How many there are of them.
pub const COUNTED: usize = 7;

/// Accesses by what became of their marks, and then what is executed instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// An access that has its mark.
    InPlace,
    /// An access whose mark others make superfluous.
    Covered,
    /// An access that has a mark with its neighbours.
    Merged,
    /// An access that is in a range behind its loop.
    Sunk,
    /// An access whose bytes are known at run time only. It has its mark.
    Other,
    /// A mark in line.
    InLine,
    /// A range.
    Range,
}
