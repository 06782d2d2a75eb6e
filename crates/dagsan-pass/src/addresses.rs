//! Takes addresses apart into sums (`sum`), as far as LLVM's instructions say how they are computed.

use std::collections::HashMap;

use crate::llvm::{Block, Layout, Llvm, Type, Value, opcode, type_kind};
use crate::model::Leaf;
use crate::sum::Sum;

/// So deep are computations looked into.
const DEPTH: u32 = 24;

/// The addresses of a function, and the values that they are made of.
pub struct Addresses<'a> {
    llvm: &'a Llvm,
    layout: Layout,
    blocks: &'a HashMap<Block, usize>,
    known: HashMap<Value, Sum>,
    pub leaves: Vec<Leaf>,
    /// What the leaves are.
    pub values: Vec<Value>,
}

impl<'a> Addresses<'a> {
    pub fn new(llvm: &'a Llvm, layout: Layout, blocks: &'a HashMap<Block, usize>) -> Addresses<'a> {
        Addresses { llvm, layout, blocks, known: HashMap::new(), leaves: Vec::new(), values: Vec::new() }
    }

    /// A pointer, or a number of 64 bits, as a sum.
    pub fn of(&mut self, value: Value) -> Sum {
        self.at_depth(value, 0)
    }

    fn at_depth(&mut self, value: Value, depth: u32) -> Sum {
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        if let Some(integer) = self.llvm.as_constant_integer(value) {
            return Sum::constant(self.llvm.integer_value(integer));
        }
        let sum = if depth < DEPTH { self.sum(value, depth + 1) } else { None };
        let sum = match sum {
            Some(sum) => sum,
            None => return self.leaf(value),
        };
        self.known.insert(value, sum.clone());
        sum
    }

    /// The sum that a value is, if it is one.
    fn sum(&mut self, value: Value, depth: u32) -> Option<Sum> {
        let llvm = self.llvm;
        let operation = llvm.operation(value)?;
        let operand = |index| llvm.operand(value, index).filter(|&operand| self.is_word(operand));
        let constant =
            |index| Some(llvm.integer_value(llvm.as_constant_integer(llvm.operand(value, index)?)?));
        match operation {
            _ if !self.is_word(value) => None,
            opcode::POINTER_TO_INTEGER | opcode::INTEGER_TO_POINTER => {
                let operand = operand(0)?;
                Some(self.at_depth(operand, depth))
            }
            opcode::GET_ELEMENT_POINTER => self.element(value, depth),
            opcode::ADD | opcode::SUBTRACT => {
                let factor = if operation == opcode::ADD { 1 } else { -1 };
                let (left, right) = (operand(0)?, operand(1)?);
                let right = self.at_depth(right, depth);
                Some(self.at_depth(left, depth).plus(&right, factor))
            }
            opcode::OR if llvm.is_disjoint(value) != 0 => {
                let (left, right) = (operand(0)?, operand(1)?);
                let right = self.at_depth(right, depth);
                Some(self.at_depth(left, depth).plus(&right, 1))
            }
            opcode::MULTIPLY => {
                let (left, right) = (operand(0)?, operand(1)?);
                let right = self.at_depth(right, depth);
                self.at_depth(left, depth).times(&right)
            }
            opcode::SHIFT_LEFT => {
                let (left, by) = (operand(0)?, constant(1)?);
                let by = u32::try_from(by).ok().filter(|&by| by < 64)?;
                Some(self.at_depth(left, depth).scaled(1i64.wrapping_shl(by)))
            }
            _ => None,
        }
    }

    /// The address of an element, of an element, …
    fn element(&mut self, value: Value, depth: u32) -> Option<Sum> {
        let llvm = self.llvm;
        let base = llvm.operand(value, 0).filter(|&base| self.is_word(base))?;
        let mut sum = self.at_depth(base, depth);
        let mut of = llvm.addressed_type(value);
        for position in 1..u32::try_from(llvm.operands(value)).ok()? {
            let index = llvm.operand(value, position)?;
            let constant = llvm.as_constant_integer(index).map(|integer| llvm.integer_value(integer));
            if position > 1 && llvm.type_kind(of) == type_kind::STRUCTURE {
                let field = u32::try_from(constant?).ok()?;
                let offset = llvm.element_offset(self.layout, of, field);
                sum = sum.plus(&Sum::constant(offset as i64), 1);
                of = llvm.structure_element(of, field);
                continue;
            }
            if position > 1 {
                of = self.element_type(of)?;
            }
            let size = i64::try_from(llvm.allocated_size(self.layout, of)).ok()?;
            let index = match constant {
                Some(constant) => Sum::constant(constant),
                // A narrower index is widened first, which a sum does not say.
                None if !self.is_word(index) => return None,
                None => self.at_depth(index, depth),
            };
            sum = sum.plus(&index, size);
        }
        Some(sum)
    }

    fn element_type(&self, of: Type) -> Option<Type> {
        let is_sequence = matches!(self.llvm.type_kind(of), type_kind::ARRAY);
        is_sequence.then(|| self.llvm.element_type(of))
    }

    /// Is it a pointer, or a number that is as wide as one?
    pub fn is_word(&self, value: Value) -> bool {
        let llvm = self.llvm;
        let of = llvm.type_of(value);
        match llvm.type_kind(of) {
            type_kind::POINTER => llvm.pointer_address_space(of) == 0,
            type_kind::INTEGER => llvm.integer_width(of) == 64,
            _ => false,
        }
    }

    /// A value that is not looked into.
    fn leaf(&mut self, value: Value) -> Sum {
        let llvm = self.llvm;
        let number = self.leaves.len();
        let sum = Sum::leaf(number);
        self.known.insert(value, sum.clone());
        let instruction = llvm.as_instruction(value);
        let block = instruction.and_then(|instruction| self.blocks.get(&llvm.block_of(instruction)).copied());
        self.leaves.push(Leaf { block, incoming: Vec::new() });
        self.values.push(value);
        if instruction.is_some_and(|instruction| llvm.opcode(instruction) == opcode::PHI)
            && self.is_word(value)
        {
            for index in 0..llvm.incoming(value) {
                let brought = self.of(llvm.incoming_value(value, index));
                if let Some(&from) = self.blocks.get(&llvm.incoming_block(value, index)) {
                    self.leaves[number].incoming.push((from, brought));
                }
            }
        }
        sum
    }
}
