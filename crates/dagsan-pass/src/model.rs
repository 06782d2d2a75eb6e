//! What the analyses know of a function: marks, and where a strand may end.
//!
//! A mark tells the runtime of an access. It may stand anywhere between the access and the next *border*: what may end the
//! strand (a call that is not known to be harmless, an atomic operation, a fence).

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// A mark for some bytes at a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Pointers with the same number are the same address.
    pub pointer: usize,
    pub bytes: u64,
    pub kind: Kind,
}

/// What a block does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An access, by its mark in [`Function::marks`].
    Mark(usize),
    Border,
}

/// A function: the steps of its blocks.
#[derive(Debug, Default)]
pub struct Function {
    pub marks: Vec<Mark>,
    pub blocks: Vec<Vec<Step>>,
}
