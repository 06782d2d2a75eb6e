//! Which memory nobody else can touch, or write: local variables whose address stays in the function, and constants.

use std::collections::HashMap;

use crate::llvm::{Llvm, Value, opcode};
use crate::pointers::{self, Fate, Source};

/// What is known of the pointers of a function.
pub struct Sharing<'a> {
    llvm: &'a Llvm,
    /// Are local variables to be left out?
    local: bool,
    byval: u32,
    nocapture: u32,
    captures: u32,
    /// Local variables: may others know their addresses?
    escaping: HashMap<Value, bool>,
}

impl<'a> Sharing<'a> {
    pub fn new(llvm: &'a Llvm, local: bool) -> Sharing<'a> {
        Sharing {
            llvm,
            local,
            byval: llvm.attribute_kind("byval"),
            nocapture: llvm.attribute_kind("nocapture"),
            captures: llvm.attribute_kind("captures"),
            escaping: HashMap::new(),
        }
    }

    /// Is it in a constant? As ThreadSanitizer's pass has it, by the pointer or the array it is in.
    pub fn is_constant(&self, pointer: Value) -> bool {
        let llvm = self.llvm;
        let base = match self.llvm.operation(pointer) {
            Some(opcode::GET_ELEMENT_POINTER) => llvm.operand(pointer, 0).unwrap_or(pointer),
            _ => pointer,
        };
        llvm.as_global_variable(base).is_some_and(|global| llvm.is_constant_global(global) != 0)
    }

    /// Can nobody else have the address? Or is it one that means something else than memory of the program?
    pub fn is_unshared(&mut self, pointer: Value) -> bool {
        let llvm = self.llvm;
        if llvm.pointer_address_space(llvm.type_of(pointer)) != 0 {
            return true;
        }
        if !self.local {
            return false;
        }
        let local = pointers::local(pointer, |value| self.source(value));
        let Some(local) = local else { return false };
        if let Some(&escapes) = self.escaping.get(&local) {
            return !escapes;
        }
        let escapes = pointers::escapes(local, |value| self.fates(value));
        self.escaping.insert(local, escapes);
        !escapes
    }

    fn source(&self, value: Value) -> Source<Value> {
        let all = |range: std::ops::Range<u32>| {
            Source::Others(range.filter_map(|index| self.llvm.operand(value, index)).collect())
        };
        match self.llvm.operation(value) {
            Some(opcode::ALLOCA) => Source::Local,
            Some(opcode::GET_ELEMENT_POINTER | opcode::BIT_CAST | opcode::ADDRESS_SPACE_CAST) => all(0..1),
            Some(opcode::SELECT) => all(1..3),
            Some(opcode::PHI) => all(0..self.llvm.operands(value).try_into().unwrap_or(0)),
            _ => Source::Unknown,
        }
    }

    fn fates(&self, value: Value) -> Vec<Fate<Value>> {
        let mut fates = Vec::new();
        let mut next = self.llvm.first_use(value);
        while let Some(at) = next {
            fates.push(self.fate(value, self.llvm.user(at)));
            next = self.llvm.next_use(at);
        }
        fates
    }

    /// What a user does with a pointer.
    fn fate(&self, value: Value, user: Value) -> Fate<Value> {
        let llvm = self.llvm;
        let is_operand = |index| llvm.operand(user, index) == Some(value);
        match self.llvm.operation(user) {
            Some(opcode::LOAD | opcode::COMPARE) => Fate::Used,
            Some(opcode::STORE) if !is_operand(0) => Fate::Used,
            Some(opcode::READ_MODIFY_WRITE) if !is_operand(1) => Fate::Used,
            Some(opcode::COMPARE_EXCHANGE) if !is_operand(1) && !is_operand(2) => Fate::Used,
            Some(
                opcode::GET_ELEMENT_POINTER
                | opcode::BIT_CAST
                | opcode::ADDRESS_SPACE_CAST
                | opcode::SELECT
                | opcode::PHI,
            ) => Fate::Becomes(user),
            Some(opcode::CALL | opcode::INVOKE) => {
                let given = (0..llvm.arguments(user)).filter(|&index| is_operand(index));
                if given.into_iter().all(|index| self.is_only_used(user, index)) {
                    Fate::Used
                } else {
                    Fate::Kept
                }
            }
            _ => Fate::Kept,
        }
    }

    /// Does the call promise not to keep this argument?
    fn is_only_used(&self, call: Value, index: u32) -> bool {
        let llvm = self.llvm;
        let function = llvm.called(call).and_then(|called| llvm.as_function(called));
        let attribute = |kind: u32| {
            if kind == 0 {
                return None;
            }
            let declared = function.and_then(|function| llvm.attribute_at(function, index + 1, kind));
            llvm.call_attribute(call, index + 1, kind).or(declared)
        };
        // `captures(none)`, which is `nocapture` in older versions.
        attribute(self.byval).is_some()
            || attribute(self.nocapture).is_some()
            || attribute(self.captures).is_some_and(|attribute| llvm.attribute_value(attribute) == 0)
    }
}
