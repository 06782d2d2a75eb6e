//! Reads a function: what it accesses, and what the analyses need to know of it.

use std::collections::HashMap;
use std::iter::successors;

use crate::addresses::Addresses;
use crate::assembly;
use crate::bytes;
use crate::effects;
use crate::emit::LARGE;
use crate::intrinsics::{Form, Intrinsic, Mask, Memory, Size, intrinsic};
use crate::library::{self, Given, Library};
use crate::llvm::{
    Attribute, Block, Llvm, OF_FUNCTION, Type, Value, comparison, opcode, ordering, type_kind,
};
use crate::model::{self, Condition, Equal, Kind, Step};
use crate::places::Places;
use crate::sharing::Sharing;
use crate::sum::Sum;

/// What an access of the model is: its marks have the same numbers.
#[derive(Debug, Clone, Copy)]
pub struct Simple {
    /// What accesses.
    pub instruction: Value,
    /// The marked bytes begin so many bytes behind this.
    pub pointer: Value,
    pub offset: u64,
}

/// An access that the model does not have: how many bytes it touches, or which, is known at run time only.
#[derive(Debug)]
pub struct Access {
    /// What accesses.
    pub instruction: Value,
    pub kind: Kind,
    pub place: Place,
}

/// The bytes of such an access.
#[derive(Debug)]
pub enum Place {
    /// As many bytes as a value says.
    Length { pointer: Value, bytes: Value },
    /// Elements of a vector.
    Elements { at: Elements, mask: LaneMask, bytes: u64, lanes: u32 },
}

/// Where the elements of a vector are.
#[derive(Debug, Clone, Copy)]
pub enum Elements {
    Vector(Value),
    Packed(Value),
    /// A vector of pointers.
    Pointers(Value),
    Indices {
        base: Value,
        index: Value,
        scale: Value,
    },
}

/// Which of them.
#[derive(Debug, Clone, Copy)]
pub enum LaneMask {
    Bits(Value),
    Signs(Value),
    Number(Value),
}

/// An atomic read-modify-write or compare-exchange, and what is to be done about it.
#[derive(Debug)]
pub struct Atomic {
    pub instruction: Value,
    /// Does the program look at the old value?
    pub is_used: bool,
    /// Does ThreadSanitizer's pass leave it out?
    pub is_left_out: bool,
}

/// A call of a function of the standard library that is compiled without hooks.
#[derive(Debug)]
pub struct LibraryCall {
    pub function: Library,
    /// It is told of before this instruction.
    pub before: Value,
    /// What the hook is given.
    pub given: Option<Value>,
}

/// What there is to do in a function.
#[derive(Debug, Default)]
pub struct Found {
    pub model: model::Function,
    /// The marks of the model.
    pub simple: Vec<Simple>,
    /// The blocks of the model.
    pub blocks: Vec<Block>,
    /// The leaves of the model.
    pub values: Vec<Value>,
    pub accesses: Vec<Access>,
    /// All plain loads and stores, and copies that the original need not look at; those of what nobody shares are among no others.
    pub plain: Vec<Value>,
    pub atomics: Vec<Atomic>,
    /// Calls that compare memory: pointer, pointer, length.
    pub comparisons: Vec<Value>,
    /// Calls of functions of the standard library that order something, in code without hooks: where to tell of them.
    pub library_calls: Vec<LibraryCall>,
    /// What cannot be seen, by what it is.
    pub unseen: Vec<(Value, String)>,
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.simple.is_empty()
            && self.accesses.is_empty()
            && self.plain.is_empty()
            && self.atomics.is_empty()
            && self.comparisons.is_empty()
            && self.library_calls.is_empty()
            && self.unseen.is_empty()
    }
}

/// The operand of a copy, or of a fill, that says how many bytes.
const LENGTH: u32 = 2;

/// Operations that ThreadSanitizer's pass has calls for: exchange, addition, subtraction, and, nand, or, exclusive or.
const KNOWN_OPERATIONS: u32 = 6;

/// Reads a function. With `local`, what is in variables that nobody else knows of is left out.
pub fn read(llvm: &Llvm, function: Value, local: bool) -> Found {
    let has = |name: &str| {
        let kind = llvm.attribute_kind(name);
        kind != 0 && llvm.attribute_at(function, OF_FUNCTION, kind).is_some()
    };
    if has("naked") || has("disable_sanitizer_instrumentation") || llvm.name(function) == "tsan.module_ctor" {
        return Found::default();
    }
    let module = llvm.parent_module(function);
    let context = llvm.context(module);
    let layout = llvm.layout(module);
    let blocks: Vec<Block> =
        successors(llvm.first_block(function), |&block| llvm.next_block(block)).collect();
    let numbers: HashMap<Block, usize> =
        blocks.iter().enumerate().map(|(number, &block)| (block, number)).collect();
    let mut reader = Reader {
        llvm,
        layout,
        plain: has("sanitize_thread"),
        nosanitize: llvm.metadata_kind(context, "nosanitize"),
        invariant: llvm.metadata_kind(context, "invariant.load"),
        memory: llvm.attribute_kind("memory"),
        nounwind: llvm.attribute_kind("nounwind"),
        byval: llvm.attribute_kind("byval"),
        align: llvm.attribute_kind("align"),
        addresses: Addresses::new(llvm, layout, &numbers),
        places: Places::default(),
        sharing: Sharing::new(llvm, local),
        found: Found::default(),
    };
    for &block in &blocks {
        reader.found.model.blocks.push(model::Block::default());
        let mut instruction = llvm.first_instruction(block);
        while let Some(at) = instruction {
            reader.instruction(at);
            instruction = llvm.next_instruction(at);
        }
        reader.end(block, &numbers);
    }
    let Reader { addresses, mut found, .. } = reader;
    (found.model.leaves, found.values) = (addresses.leaves, addresses.values);
    found.blocks = blocks;
    found
}

struct Reader<'a> {
    llvm: &'a Llvm,
    layout: crate::llvm::Layout,
    /// Are plain accesses to be seen? Atomic ones are in any case.
    plain: bool,
    nosanitize: u32,
    invariant: u32,
    memory: u32,
    nounwind: u32,
    byval: u32,
    align: u32,
    addresses: Addresses<'a>,
    places: Places,
    sharing: Sharing<'a>,
    found: Found,
}

impl Reader<'_> {
    fn instruction(&mut self, at: Value) {
        let llvm = self.llvm;
        if llvm.metadata(at, self.nosanitize).is_some() {
            return;
        }
        match llvm.opcode(at) {
            opcode::LOAD if llvm.ordering(at) == ordering::NOT_ATOMIC => self.load(at),
            opcode::STORE if llvm.ordering(at) == ordering::NOT_ATOMIC => self.store(at),
            operation @ (opcode::READ_MODIFY_WRITE | opcode::COMPARE_EXCHANGE) => {
                self.border();
                let is_used = llvm.first_use(at).is_some();
                let is_left_out =
                    operation == opcode::READ_MODIFY_WRITE && llvm.rmw_operation(at) > KNOWN_OPERATIONS;
                if is_used || is_left_out {
                    self.found.atomics.push(Atomic { instruction: at, is_used, is_left_out });
                }
            }
            opcode::LOAD | opcode::STORE | opcode::FENCE => self.border(),
            opcode::CALL | opcode::INVOKE | opcode::CALL_BRANCH => self.call(at),
            _ => {}
        }
    }

    /// The first instruction after a call that returns.
    fn after(&self, call: Value) -> Option<Value> {
        let llvm = self.llvm;
        if llvm.opcode(call) != opcode::INVOKE {
            return llvm.next_instruction(call);
        }
        let mut first = llvm.first_instruction(llvm.normal_destination(call));
        while let Some(at) = first
            && llvm.opcode(at) == opcode::PHI
        {
            first = llvm.next_instruction(at);
        }
        first
    }

    /// Is the result of a call there wherever control goes behind it?
    fn is_known_after(&self, call: Value) -> bool {
        let llvm = self.llvm;
        let comes_from = |block| llvm.first_use(llvm.block_as_value(block));
        llvm.opcode(call) != opcode::INVOKE
            || comes_from(llvm.normal_destination(call)).is_some_and(|only| llvm.next_use(only).is_none())
    }

    fn border(&mut self) {
        if let Some(block) = self.found.model.blocks.last_mut() {
            block.steps.push(Step::Border);
        }
    }

    fn load(&mut self, at: Value) {
        let Some(pointer) = self.llvm.operand(at, 0).filter(|_| self.plain) else { return };
        let is_constant =
            self.llvm.metadata(at, self.invariant).is_some() || self.sharing.is_constant(pointer);
        self.found.plain.push(at);
        if !is_constant && !self.sharing.is_unshared(pointer) {
            let alignment = self.llvm.alignment(at).into();
            for (offset, bytes) in bytes::of_load(self.llvm, self.layout, at) {
                self.mark(at, Kind::Read, pointer, offset, bytes, alignment);
            }
        }
    }

    fn store(&mut self, at: Value) {
        let (Some(value), Some(pointer)) = (self.llvm.operand(at, 0), self.llvm.operand(at, 1)) else {
            return;
        };
        if !self.plain {
            return;
        }
        self.found.plain.push(at);
        if !self.sharing.is_unshared(pointer) {
            let alignment = self.llvm.alignment(at).into();
            self.marks(at, Kind::Write, pointer, self.llvm.type_of(value), alignment);
        }
    }

    /// Marks for a value of a type at a pointer that is so aligned.
    fn marks(&mut self, instruction: Value, kind: Kind, pointer: Value, of: Type, alignment: u64) {
        for (offset, bytes) in bytes::of_type(self.llvm, self.layout, of) {
            self.mark(instruction, kind, pointer, offset, bytes, alignment);
        }
    }

    fn mark(
        &mut self,
        instruction: Value,
        kind: Kind,
        pointer: Value,
        offset: u64,
        bytes: u64,
        alignment: u64,
    ) {
        let at = self.addresses.of(pointer).plus(&Sum::constant(offset as i64), 1);
        let alignment = if offset == 0 { alignment } else { alignment.min(1 << offset.trailing_zeros()) };
        let place = self.places.number(self.llvm, instruction);
        let found = &mut self.found;
        if let Some(block) = found.model.blocks.last_mut() {
            block.steps.push(Step::Mark(found.model.marks.len()));
        }
        found.model.marks.push(model::Mark { kind, at, bytes, alignment, place });
        found.simple.push(Simple { instruction, pointer, offset });
    }

    /// Where a block goes.
    fn end(&mut self, block: Block, numbers: &HashMap<Block, usize>) {
        let llvm = self.llvm;
        let (Some(end), Some(model)) = (llvm.terminator(block), self.found.model.blocks.last_mut()) else {
            return;
        };
        let successors = (0..llvm.successors(end)).map(|index| llvm.successor(end, index));
        model.successors = successors.filter_map(|to| numbers.get(&to).copied()).collect();
        model.branches = matches!(llvm.opcode(end), opcode::BRANCH | opcode::SWITCH);
        if llvm.opcode(end) == opcode::BRANCH
            && let [yes, no] = model.successors[..]
        {
            let block = |condition| numbers.get(&llvm.block_of(llvm.as_instruction(condition)?)).copied();
            model.condition = llvm
                .operand(end, 0)
                .map(|condition| block(condition).map_or(Condition::Given, Condition::ComputedIn));
            let equal = self.equality(end, yes, no);
            if let Some(model) = self.found.model.blocks.last_mut() {
                model.equal = equal;
            }
        }
    }

    /// What a branch to two successors asks, if it is whether two addresses or numbers are equal.
    fn equality(&mut self, branch: Value, yes: usize, no: usize) -> Option<Equal> {
        let llvm = self.llvm;
        let condition =
            llvm.operand(branch, 0).filter(|&asked| llvm.operation(asked) == Some(opcode::COMPARE))?;
        let to = match llvm.comparison(condition) {
            comparison::EQUAL => yes,
            comparison::NOT_EQUAL => no,
            _ => return None,
        };
        let (left, right) = (llvm.operand(condition, 0)?, llvm.operand(condition, 1)?);
        let is_word = self.addresses.is_word(left) && self.addresses.is_word(right);
        is_word.then(|| Equal { to, left: self.addresses.of(left), right: self.addresses.of(right) })
    }

    fn call(&mut self, at: Value) {
        let llvm = self.llvm;
        let Some(called) = llvm.called(at) else { return self.border() };
        if llvm.as_inline_assembly(called).is_some() {
            return self.assembly(at, &llvm.assembly(called));
        }
        let name = match llvm.as_function(called) {
            Some(function) => llvm.name(function),
            None => String::new(),
        };
        if !name.starts_with("llvm.") {
            self.by_value(at);
            if matches!(&*name, "memcmp" | "bcmp") {
                if self.plain {
                    self.found.comparisons.push(at);
                }
                return;
            }
            for &function in library::known(&name) {
                let before = if function.is_told_before() { Some(at) } else { self.after(at) };
                let given = match function.hook().1 {
                    Given::Nothing => None,
                    Given::Argument => llvm.operand(at, 0),
                    Given::Result => Some(at).filter(|&call| self.is_known_after(call)),
                };
                let call = before.map(|before| LibraryCall { function, before, given });
                self.found.library_calls.extend(call);
            }
            if !self.is_harmless(at) {
                self.border();
            }
            return;
        }
        match intrinsic(&name) {
            Intrinsic::Harmless => {}
            Intrinsic::Copies(sides) => self.copy(at, sides),
            Intrinsic::Accesses(_) if !self.plain => {}
            Intrinsic::Accesses(accesses) => {
                for memory in accesses {
                    if self.intrinsic(at, memory).is_none() {
                        self.found.unseen.push((at, name.clone()));
                    }
                }
            }
            Intrinsic::Unknown if !self.has_pointer(at) || !self.has_effects(at) => {}
            Intrinsic::Unknown => {
                self.border();
                if self.plain {
                    self.found.unseen.push((at, name));
                }
            }
        }
    }

    fn assembly(&mut self, at: Value, text: &str) {
        let llvm = self.llvm;
        let is_pointer = |value: &Value| llvm.type_kind(llvm.type_of(*value)) == type_kind::POINTER;
        let pointer = llvm.operand(at, 0).filter(|_| llvm.arguments(at) > 0).filter(is_pointer);
        match (assembly::access(text), pointer) {
            _ if !self.plain || text.trim().is_empty() => {}
            (Some(access), Some(pointer)) => self.mark(at, access.kind, pointer, 0, access.bytes, 1),
            _ if self.has_word(at) && self.has_effects(at) => {
                self.found.unseen.push((at, "inline assembly".to_owned()));
            }
            _ => {}
        }
        self.border();
    }

    /// Finds the access of an intrinsic. None if its operands are not as expected.
    fn intrinsic(&mut self, at: Value, memory: &Memory) -> Option<()> {
        let llvm = self.llvm;
        let operand = |index: u32| llvm.operand(at, index).filter(|_| index < llvm.arguments(at));
        let pointer = operand(memory.pointer)?;
        let value = match memory.size {
            Size::Operand(index) => llvm.type_of(operand(index)?),
            _ => llvm.type_of(at),
        };
        let place = match (memory.size, memory.mask) {
            (Size::Bytes(bytes), _) => {
                self.mark(at, memory.kind, pointer, 0, bytes, 1);
                return Some(());
            }
            (Size::Length(index), _) => Place::Length { pointer, bytes: operand(index)? },
            (Size::Result | Size::Operand(_), None) => {
                self.marks(at, memory.kind, pointer, value, 1);
                return Some(());
            }
            (Size::Result | Size::Operand(_), Some(mask)) => {
                if llvm.type_kind(value) != type_kind::VECTOR {
                    return None;
                }
                let bits = llvm.size_in_bits(self.layout, llvm.element_type(value));
                let mut lanes = llvm.vector_length(value);
                let mask = match mask {
                    Mask::Signs(index) => LaneMask::Signs(operand(index)?),
                    Mask::Number(index) => LaneMask::Number(operand(index)?),
                    Mask::Bits => LaneMask::Bits(
                        (0..llvm.arguments(at)).filter_map(operand).find(|&v| self.is_bits(v))?,
                    ),
                };
                let at = match memory.form {
                    Form::Vector => Elements::Vector(pointer),
                    Form::Packed => Elements::Packed(pointer),
                    Form::Pointers => Elements::Pointers(pointer),
                    Form::Indices { index, scale } => {
                        let index = operand(index)?;
                        // Of the longer one, the upper part is not used.
                        lanes = lanes.min(llvm.vector_length(llvm.type_of(index)));
                        Elements::Indices { base: pointer, index, scale: operand(scale)? }
                    }
                };
                if !bits.is_multiple_of(8) || lanes > 64 {
                    return None;
                }
                Place::Elements { at, mask, bytes: bits / 8, lanes }
            }
        };
        self.found.accesses.push(Access { instruction: at, kind: memory.kind, place });
        Some(())
    }

    /// A copy or a fill, which stays one instruction if its marks are ours. Otherwise the original makes a call of the runtime of it, which records both
    /// sides and copies: one call where ranges would be two.
    fn copy(&mut self, at: Value, sides: &[(Kind, u32)]) {
        let llvm = self.llvm;
        let Some(length) = llvm.operand(at, LENGTH).filter(|_| self.plain) else { return };
        let bytes = llvm.as_constant_integer(length).map(|length| llvm.integer_value(length) as u64);
        let mut shared = Vec::new();
        for &(kind, index) in sides {
            let Some(pointer) = llvm.operand(at, index) else { return };
            let is_constant = kind == Kind::Read && self.sharing.is_constant(pointer);
            if !is_constant && !self.sharing.is_unshared(pointer) {
                shared.push((kind, index, pointer));
            }
        }
        if shared.len() == sides.len() && bytes.is_none_or(|bytes| bytes > LARGE) {
            return;
        }
        for (kind, index, pointer) in shared {
            match bytes {
                Some(0) => {}
                Some(bytes) => {
                    let alignment = llvm.call_attribute(at, index + 1, self.align);
                    let alignment = alignment.map_or(1, |alignment| llvm.attribute_value(alignment).max(1));
                    self.mark(at, kind, pointer, 0, bytes, alignment);
                }
                None => {
                    let place = Place::Length { pointer, bytes: length };
                    self.found.accesses.push(Access { instruction: at, kind, place });
                }
            }
        }
        self.found.plain.push(at);
    }

    fn is_bits(&self, value: Value) -> bool {
        let llvm = self.llvm;
        let of = llvm.type_of(value);
        llvm.type_kind(of) == type_kind::VECTOR
            && llvm.type_kind(llvm.element_type(of)) == type_kind::INTEGER
            && llvm.integer_width(llvm.element_type(of)) == 1
    }

    /// The call copies what it passes by value.
    fn by_value(&mut self, at: Value) {
        if !self.plain || self.byval == 0 {
            return;
        }
        for index in 0..self.llvm.arguments(at) {
            let attribute = self.llvm.call_attribute(at, index + 1, self.byval);
            if let (Some(attribute), Some(pointer)) = (attribute, self.llvm.operand(at, index))
                && !self.sharing.is_unshared(pointer)
                && !self.sharing.is_constant(pointer)
            {
                self.marks(at, Kind::Read, pointer, self.llvm.attribute_type(attribute), 1);
            }
        }
    }

    fn operands(&self, call: Value) -> impl Iterator<Item = Value> {
        (0..self.llvm.arguments(call)).filter_map(move |index| self.llvm.operand(call, index))
    }

    /// Is it given what may be an address, if only as a number?
    fn has_word(&self, call: Value) -> bool {
        self.operands(call).any(|operand| self.addresses.is_word(operand))
    }

    fn has_pointer(&self, call: Value) -> bool {
        let is_pointer = |of: Type| match self.llvm.type_kind(of) {
            type_kind::POINTER => true,
            type_kind::VECTOR => self.llvm.type_kind(self.llvm.element_type(of)) == type_kind::POINTER,
            _ => false,
        };
        self.operands(call).map(|operand| self.llvm.type_of(operand)).any(is_pointer)
    }

    /// Does the call access memory, as far as its attributes say?
    fn has_effects(&self, call: Value) -> bool {
        let attribute = self.attribute(call, self.memory);
        attribute.is_none_or(|attribute| self.llvm.attribute_value(attribute) != 0)
    }

    /// Can the strand not end in a call? Whoever starts or ends tasks writes to memory, and who unwinds leaves.
    fn is_harmless(&self, call: Value) -> bool {
        let llvm = self.llvm;
        let here = llvm.call_attribute(call, OF_FUNCTION, self.memory);
        let function = llvm.called(call).and_then(|called| llvm.as_function(called));
        let reads = here.is_some_and(|here| effects::only_reads(llvm, here))
            || function.is_some_and(|function| effects::is_reader(llvm, function));
        reads && self.attribute(call, self.nounwind).is_some()
    }

    /// An attribute of a call, or of the function that is called.
    fn attribute(&self, call: Value, kind: u32) -> Option<Attribute> {
        let llvm = self.llvm;
        let function = llvm.called(call).and_then(|called| llvm.as_function(called));
        let declared = function.and_then(|function| llvm.attribute_at(function, OF_FUNCTION, kind));
        llvm.call_attribute(call, OF_FUNCTION, kind).or(declared)
    }
}
