//! What the analyses know of a function: its blocks, its marks, and where a strand may end.
//!
//! A mark tells the runtime of an access. It may stand anywhere between the access and the next *border*: what may end the
//! strand (a call that is not known to be harmless, an atomic operation, a fence, a return). All that the eliminations do
//! follows from that: what counts is which bytes a strand has touched, and not when, or how often.

use crate::sum::Sum;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Read,
    Write,
}

/// A mark for some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub kind: Kind,
    /// Where the bytes begin.
    pub at: Sum,
    pub bytes: u64,
    /// The address of the first byte is a multiple of this.
    pub alignment: u64,
    /// Marks with the same number are of the same line in the source.
    pub place: usize,
}

/// What a block does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An access, by its mark in [`Function::marks`].
    Mark(usize),
    Border,
}

/// A basic block.
#[derive(Debug, Clone, Default)]
pub struct Block {
    pub steps: Vec<Step>,
    pub successors: Vec<usize>,
    /// What is equal if the block goes on to that successor.
    pub equal: Option<Equal>,
    /// For a branch to two successors: who computes the condition. The first successor is for the condition that holds.
    pub condition: Option<Condition>,
    /// Can the edges to its successors be changed? Not those of calls that may unwind, and of computed jumps.
    pub branches: bool,
}

/// What decides a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Something that is there from the start.
    Given,
    /// A value that this block computes.
    ComputedIn(usize),
}

/// A branch that asks whether two numbers are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equal {
    /// The successor for equal ones.
    pub to: usize,
    pub left: Sum,
    pub right: Sum,
}

/// A value that addresses are made of.
#[derive(Debug, Clone, Default)]
pub struct Leaf {
    /// The block that computes it. None for what is there from the start: constants and arguments.
    pub block: Option<usize>,
    /// For a phi: the value that each predecessor brings.
    pub incoming: Vec<(usize, Sum)>,
}

/// A function. The first block is its entry.
#[derive(Debug, Default)]
pub struct Function {
    pub blocks: Vec<Block>,
    pub marks: Vec<Mark>,
    pub leaves: Vec<Leaf>,
}

impl Block {
    pub fn has_border(&self) -> bool {
        self.steps.contains(&Step::Border)
    }

    /// The marks, in order.
    pub fn marks(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.steps.iter().filter_map(|step| match step {
            &Step::Mark(mark) => Some(mark),
            Step::Border => None,
        })
    }
}
