//! Which marks belong to the same line of the source: same file and line, inlined by the same lines.

use std::collections::HashMap;

use crate::llvm::{Llvm, Metadata, Value};

/// The lines of a function, numbered.
#[derive(Debug, Default)]
pub struct Places {
    /// By debug location; without one, all are the same.
    known: HashMap<Option<Metadata>, usize>,
    /// By scope and line, and those of the calls it was inlined by.
    numbers: HashMap<Vec<(Metadata, u32)>, usize>,
}

impl Places {
    /// The number of an instruction's line.
    pub fn number(&mut self, llvm: &Llvm, instruction: Value) -> usize {
        let location = llvm.instruction_location(instruction);
        if let Some(&known) = self.known.get(&location) {
            return known;
        }
        let chain = std::iter::successors(location, |&at| llvm.location_inlined_at(at));
        let chain = chain.map(|at| (llvm.location_scope(at), llvm.location_line(at))).collect();
        let next = self.numbers.len();
        let number = *self.numbers.entry(chain).or_insert(next);
        self.known.insert(location, number);
        number
    }
}
