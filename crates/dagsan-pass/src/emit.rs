//! Writes hooks into a function.
//!
//! A hook is a call before the access, at its place in the source, so that the runtime finds the access by the call's return
//! address. The plain ones are in line (`inline`): the call is made for bytes that are new to the strand.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};

use crate::counts::{Counted, Counts};
use crate::inline::{Bytes, question};
use crate::library::Given;
use crate::llvm::{Block, Builder, Context, Llvm, Module, Type, Value, opcode, ordering, type_kind};
use crate::model::{Kind, Mark};
use crate::read::{Access, Atomic, Elements, LaneMask, LibraryCall, Place};
use crate::tables;

/// What is called for new bytes, by the logarithm of the size: reads, writes.
const MISSES: [[&CStr; 5]; 2] = [
    [
        c"__dagsan_miss_read1",
        c"__dagsan_miss_read2",
        c"__dagsan_miss_read4",
        c"__dagsan_miss_read8",
        c"__dagsan_miss_read16",
    ],
    [
        c"__dagsan_miss_write1",
        c"__dagsan_miss_write2",
        c"__dagsan_miss_write4",
        c"__dagsan_miss_write8",
        c"__dagsan_miss_write16",
    ],
];
/// They take the address in rdi, and spoil it and three other registers.
const MISS_KEEPS: &str = "={di},s,0,~{rax},~{rcx},~{rdx},~{dirflag},~{fpsr},~{flags},~{memory}";
const RANGE: [&CStr; 2] = [c"__tsan_read_range", c"__tsan_write_range"];
const STRIDED: [&CStr; 2] = [c"__dagsan_read_strided", c"__dagsan_write_strided"];
const MASKED: [&CStr; 2] = [c"__dagsan_read_masked", c"__dagsan_write_masked"];

/// What is called for other bytes that are new, by their bits.
const MISSES_OF_BITS: [&CStr; 2] = [c"__dagsan_miss_read", c"__dagsan_miss_write"];
/// What is asked behind loops.
const NEW: [&CStr; 2] = [c"__dagsan_range_read", c"__dagsan_range_write"];
/// They take the bits, or the number of bytes, in rcx.
const MISS_OF_BITS_KEEPS: &str = "={di},={cx},s,0,1,~{rax},~{rdx},~{dirflag},~{fpsr},~{flags},~{memory}";

/// LLVM's address spaces for what is relative to gs, where the worker's tables are, and to fs.
const WORKER_SEGMENT: u32 = 256;
const THREAD_SEGMENT: u32 = 257;

/// Larger accesses are cut into parts of this size: their bits fit in a word, wherever they are.
const PART: u64 = 32;
/// Beyond this size they are ranges.
pub const LARGE: u64 = 128;

/// What ThreadSanitizer's pass makes of a fence for signal handlers.
const SIGNAL_FENCE: &str = "__tsan_atomic_signal_fence";

/// Writes into one function.
pub struct Emitter {
    pub(crate) llvm: &'static Llvm,
    pub(crate) function: Value,
    pub(crate) module: Module,
    pub(crate) context: Context,
    pub(crate) builder: Builder,
    nosanitize: u32,
    branch_weights: u32,
    void: Type,
    pub(crate) pointer: Type,
    pub(crate) word: Type,
    /// Phis that were made anew.
    pub(crate) renewed: RefCell<HashMap<Value, Value>>,
    /// Values on the edge that is being written.
    pub(crate) frozen: RefCell<HashMap<Value, Value>>,
    /// What was written so far, if somebody asks.
    pub(crate) counts: Option<Counts>,
}

impl Emitter {
    pub fn new(llvm: &'static Llvm, function: Value, counts: Option<Counts>) -> Emitter {
        let module = llvm.parent_module(function);
        let context = llvm.context(module);
        Emitter {
            llvm,
            function,
            module,
            context,
            builder: llvm.builder(context),
            nosanitize: llvm.metadata_kind(context, "nosanitize"),
            branch_weights: llvm.metadata_kind(context, "prof"),
            void: llvm.void(context),
            pointer: llvm.pointer(context, 0),
            word: llvm.integer(context, 64),
            renewed: RefCell::new(HashMap::new()),
            frozen: RefCell::new(HashMap::new()),
            counts,
        }
    }

    /// The next instructions stand before this one, and at its place in the source. Calls that may be inlined must have some
    /// place if the function has one.
    pub(crate) fn before(&self, instruction: Value) {
        let llvm = self.llvm;
        llvm.position_before(self.builder, instruction);
        self.locate(instruction);
    }

    /// The next instructions have the place of this one.
    pub(crate) fn locate(&self, instruction: Value) {
        let llvm = self.llvm;
        let unknown = || {
            let scope = llvm.subprogram(self.function)?;
            Some(llvm.debug_location(self.context, 0, 0, scope, None))
        };
        let location = llvm.instruction_location(instruction).or_else(unknown);
        llvm.set_builder_location(self.builder, location);
    }

    fn call(&self, name: &CStr, result: Type, arguments: &[Value]) -> Value {
        let types: Vec<Type> = arguments.iter().map(|&argument| self.llvm.type_of(argument)).collect();
        let of = self.llvm.function_of(result, &types);
        let function = self.llvm.function(self.module, name, of);
        self.llvm.call(self.builder, of, function, arguments)
    }

    pub(crate) fn word(&self, value: u64) -> Value {
        self.llvm.constant(self.word, value)
    }

    pub(crate) fn offset(&self, pointer: Value, by: Value) -> Value {
        self.llvm.offset(self.builder, self.llvm.integer(self.context, 8), pointer, by)
    }

    /// The original need not look at this load, store or copy.
    pub fn settle(&self, instruction: Value) {
        let empty = self.llvm.node(self.context, std::ptr::null(), 0);
        let node = self.llvm.metadata_as_value(self.context, empty);
        self.llvm.set_metadata(instruction, self.nosanitize, node);
    }

    /// The hooks of an access.
    pub fn access(&self, access: &Access) {
        self.before(access.instruction);
        self.count(Counted::Other);
        let kind = access.kind;
        match access.place {
            Place::Length { pointer, bytes } => {
                let bytes = self.llvm.extend(self.builder, self.current(bytes), self.word);
                self.range(kind, self.current(pointer), bytes);
            }
            Place::Elements { at, mask, bytes, lanes } => self.elements(kind, at, mask, bytes, lanes),
        }
    }

    /// A mark before an instruction, for bytes so far behind a pointer.
    pub fn mark(&self, before: Value, pointer: Value, offset: i64, mark: &Mark) {
        let &Mark { kind, bytes, alignment, .. } = mark;
        let pointer = self.current(pointer);
        let at = |part: u64| match offset.wrapping_add(part as i64) {
            0 => pointer,
            offset => self.offset(pointer, self.word(offset as u64)),
        };
        if let Some(question) = question(bytes, alignment) {
            self.before(before);
            self.count(Counted::InLine);
            return self.in_line(before, kind, Bytes { pointer: at(0), bytes, alignment }, question);
        }
        if bytes > LARGE {
            self.before(before);
            self.count(Counted::Range);
            return self.range(kind, at(0), self.word(bytes));
        }
        for start in (0..bytes).step_by(PART as usize) {
            let part = PART.min(bytes - start);
            let alignment = alignment.min(PART);
            if let Some(question) = question(part, alignment) {
                self.before(before);
                self.count(Counted::InLine);
                self.in_line(before, kind, Bytes { pointer: at(start), bytes: part, alignment }, question);
            }
        }
    }

    /// A range of bytes.
    pub(crate) fn range(&self, kind: Kind, pointer: Value, bytes: Value) {
        self.call(RANGE[kind as usize], self.void, &[pointer, bytes]);
    }

    /// So many pieces of `width` bytes, each so far from the one before.
    pub(crate) fn strided(&self, kind: Kind, pointer: Value, stride: Value, count: Value, width: Value) {
        self.call(STRIDED[kind as usize], self.void, &[pointer, stride, count, width]);
    }

    /// Tells the runtime of bytes that are new.
    pub(crate) fn missed(&self, kind: Kind, pointer: Value, bytes: u64) {
        if !bytes.is_power_of_two() || bytes > 16 {
            return self.missed_bits(kind, pointer, self.word(u64::MAX >> (64 - bytes)));
        }
        let llvm = self.llvm;
        let miss = MISSES[kind as usize][bytes.trailing_zeros() as usize];
        let miss = llvm.function(self.module, miss, llvm.function_of(self.void, &[]));
        let of = llvm.function_of(self.pointer, &[self.pointer, self.pointer]);
        let assembly = llvm.inline_assembly(of, "call ${1:P}", MISS_KEEPS);
        llvm.call(self.builder, of, assembly, &[miss, pointer]);
    }

    /// The same for the bytes whose bits are set, from the pointer on, which is one of them.
    pub(crate) fn missed_bits(&self, kind: Kind, pointer: Value, bits: Value) {
        self.assembly_call(MISSES_OF_BITS[kind as usize], pointer, bits);
    }

    /// Is any byte of a range new? A number that is not 0 then.
    pub(crate) fn is_new(&self, kind: Kind, pointer: Value, bytes: Value) -> Value {
        let result = self.assembly_call(NEW[kind as usize], pointer, bytes);
        self.llvm.part(self.builder, result, 1)
    }

    /// Calls what takes a pointer in rdi and a number in rcx, and keeps all registers but four. The second part of the result is
    /// what is in rcx then.
    fn assembly_call(&self, name: &CStr, pointer: Value, number: Value) -> Value {
        let llvm = self.llvm;
        let function = llvm.function(self.module, name, llvm.function_of(self.void, &[]));
        let result = llvm.structure(self.context, &[self.pointer, self.word]);
        let of = llvm.function_of(result, &[self.pointer, self.pointer, self.word]);
        let assembly = llvm.inline_assembly(of, "call ${2:P}", MISS_OF_BITS_KEEPS);
        llvm.call(self.builder, of, assembly, &[function, pointer, number])
    }

    /// Removes phis that were made anew. No value of the model is used after this.
    pub fn forget(&self) {
        for (old, _) in self.renewed.borrow_mut().drain() {
            self.llvm.erase(old);
        }
    }

    /// What a value is by now: phis may have been made anew.
    pub(crate) fn current(&self, value: Value) -> Value {
        let mut value = value;
        while let Some(&newer) = self.renewed.borrow().get(&value) {
            value = newer;
        }
        value
    }

    /// What is so far from the base of the worker's tables.
    pub(crate) fn of_worker(&self, offset: Value) -> Value {
        let pointer = self.llvm.pointer(self.context, WORKER_SEGMENT);
        self.llvm.to_pointer(self.builder, offset, pointer)
    }

    /// The worker's word: can anything be parallel?
    pub(crate) fn active(&self) -> Value {
        self.of_worker(self.word(tables::ACTIVE as u64))
    }

    /// Is this thread's mark to set bits of lines that are in the log?
    pub(crate) fn sets_bits(&self) -> Value {
        let llvm = self.llvm;
        // The x86-64 ABI keeps the thread pointer at fs:0, which to LLVM is an address space.
        let segment = llvm.pointer(self.context, THREAD_SEGMENT);
        let thread = self.hidden_load(self.word, llvm.null(segment));
        let setter = self.hidden_load(self.word, self.of_worker(self.word(tables::SETTER as u64)));
        llvm.equal(self.builder, thread, setter)
    }

    /// A load that gets no mark.
    pub(crate) fn hidden_load(&self, of: Type, pointer: Value) -> Value {
        let load = self.llvm.load(self.builder, of, pointer);
        self.settle(load);
        load
    }

    /// A branch that is nearly always taken.
    pub(crate) fn usually(&self, on: Value, yes: Block, no: Block) {
        let llvm = self.llvm;
        let branch = llvm.branch(self.builder, on, yes, no);
        let name = "branch_weights";
        let weight = |weight| llvm.value_as_metadata(llvm.constant(llvm.integer(self.context, 32), weight));
        let node = [
            llvm.raw_metadata_text(self.context, name.as_ptr().cast(), name.len()),
            weight(1 << 20),
            weight(1),
        ];
        let node = llvm.node(self.context, node.as_ptr(), node.len());
        llvm.set_metadata(branch, self.branch_weights, llvm.metadata_as_value(self.context, node));
    }

    /// Elements of a vector that a mask picks.
    fn elements(&self, kind: Kind, at: Elements, mask: LaneMask, bytes: u64, lanes: u32) {
        let llvm = self.llvm;
        let bits = match mask {
            LaneMask::Bits(bits) => self.current(bits),
            LaneMask::Signs(vector) => self.signs(self.current(vector)),
            LaneMask::Number(number) => self.bits(self.current(number)),
        };
        match at {
            Elements::Vector(pointer) => {
                let pointer = self.current(pointer);
                let bits = self.as_word(bits);
                self.call(MASKED[kind as usize], self.void, &[pointer, bits, self.word(bytes)]);
            }
            Elements::Packed(pointer) => {
                let pointer = self.current(pointer);
                let count = self.call(c"llvm.ctpop.i64", self.word, &[self.as_word(bits)]);
                let length = llvm.multiply(self.builder, count, self.word(bytes));
                self.call(RANGE[kind as usize], self.void, &[pointer, length]);
            }
            Elements::Pointers(pointers) => {
                let pointers = self.current(pointers);
                for lane in 0..lanes {
                    let pointer = llvm.lane(self.builder, pointers, self.word(lane.into()));
                    self.lane(kind, pointer, bits, lane, bytes);
                }
            }
            Elements::Indices { base, index, scale } => {
                let [base, index, scale] = [base, index, scale].map(|value| self.current(value));
                let scale = llvm.extend(self.builder, scale, self.word);
                for lane in 0..lanes {
                    let index = llvm.lane(self.builder, index, self.word(lane.into()));
                    let index = llvm.extend_signed(self.builder, index, self.word);
                    let pointer = self.offset(base, llvm.multiply(self.builder, index, scale));
                    self.lane(kind, pointer, bits, lane, bytes);
                }
            }
        }
    }

    /// One element, if its bit is set: a range that is empty otherwise.
    fn lane(&self, kind: Kind, pointer: Value, bits: Value, lane: u32, bytes: u64) {
        let llvm = self.llvm;
        let bit = llvm.lane(self.builder, bits, self.word(lane.into()));
        let length = llvm.select(self.builder, bit, self.word(bytes), self.word(0));
        self.call(RANGE[kind as usize], self.void, &[pointer, length]);
    }

    /// The sign bits of a vector's elements, which may be numbers of any type.
    fn signs(&self, vector: Value) -> Value {
        let llvm = self.llvm;
        let of = llvm.type_of(vector);
        let bits = llvm.size_in_bits(llvm.layout(self.module), llvm.element_type(of)) as u32;
        let integers = llvm.vector(llvm.integer(self.context, bits), llvm.vector_length(of));
        let vector = llvm.bit_cast(self.builder, vector, integers);
        llvm.is_negative(self.builder, vector)
    }

    /// A number as a vector of its bits.
    fn bits(&self, number: Value) -> Value {
        let llvm = self.llvm;
        let length = llvm.integer_width(llvm.type_of(number));
        llvm.bit_cast(self.builder, number, llvm.vector(llvm.integer(self.context, 1), length))
    }

    /// A vector of at most 64 bits as a number.
    fn as_word(&self, bits: Value) -> Value {
        let llvm = self.llvm;
        let length = llvm.vector_length(llvm.type_of(bits));
        let number = llvm.bit_cast(self.builder, bits, llvm.integer(self.context, length));
        if length == 64 { number } else { llvm.extend(self.builder, number, self.word) }
    }

    /// Memory is about to be compared.
    pub fn comparison(&self, call: Value) {
        let [Some(a), Some(b), Some(length)] = [0, 1, 2].map(|index| self.llvm.operand(call, index)) else {
            return;
        };
        self.before(call);
        self.call(c"__dagsan_compare", self.void, &[a, b, length]);
    }

    /// The standard library orders something here, in code without hooks.
    pub fn library_call(&self, call: &LibraryCall) {
        let (hook, given) = call.function.hook();
        let is_pointer = |&value: &Value| self.llvm.type_kind(self.llvm.type_of(value)) == type_kind::POINTER;
        if given != Given::Nothing && !call.given.as_ref().is_some_and(is_pointer) {
            return;
        }
        self.before(call.before);
        self.call(hook, self.void, call.given.as_slice());
    }

    /// What is to be done about an atomic read-modify-write.
    pub fn atomic(&self, atomic: &Atomic) {
        let (llvm, at) = (self.llvm, atomic.instruction);
        self.before(at);
        if atomic.is_used {
            self.call(c"__dagsan_uses_value", self.void, &[]);
        }
        let (Some(pointer), Some(value)) = (llvm.operand(at, 0), llvm.operand(at, 1)) else { return };
        if !atomic.is_left_out {
            return;
        }
        let bits = llvm.size_in_bits(llvm.layout(self.module), llvm.type_of(value));
        let order = match llvm.ordering(at) {
            ordering::ACQUIRE => 2,
            ordering::RELEASE => 3,
            ordering::ACQUIRE_RELEASE => 4,
            ordering::SEQUENTIALLY_CONSISTENT => 5,
            _ => 0,
        };
        let order = llvm.constant(llvm.integer(self.context, 32), order);
        let extremum = match llvm.rmw_operation(at) {
            7 => Some("max"),
            8 => Some("min"),
            9 => Some("umax"),
            10 => Some("umin"),
            _ => None,
        };
        match extremum {
            Some(name) => {
                let old = self.call(
                    &text(&format!("__dagsan_atomic{bits}_fetch_{name}")),
                    llvm.type_of(value),
                    &[pointer, value, order],
                );
                llvm.replace_all_uses(at, old);
                llvm.erase(at);
            }
            // Arithmetic on floating-point numbers: the runtime hears of an operation there that changes nothing.
            None => {
                let integer = llvm.integer(self.context, bits as u32);
                let hook = text(&format!("__tsan_atomic{bits}_fetch_or"));
                self.call(&hook, integer, &[pointer, llvm.constant(integer, 0), order]);
                self.settle(at);
            }
        }
    }

    /// Something that cannot be seen is executed here.
    pub fn unseen(&self, instruction: Value, what: &str) {
        self.before(instruction);
        let what = self.llvm.text(self.builder, &text(what));
        self.call(c"__dagsan_unseen", self.void, &[what]);
    }

    /// Sees to it that the original says that it has changed the function, so that LLVM forgets what it knew of it: a fence that the
    /// original makes a call. [`Emitter::finish`] removes it.
    pub fn announce(&self) {
        let entry = self.llvm.first_block(self.function);
        if let Some(terminator) = entry.and_then(|entry| self.llvm.terminator(entry)) {
            self.before(terminator);
            self.llvm.signal_fence(self.builder);
        }
    }

    /// After the original.
    pub fn finish(self) {
        let llvm = self.llvm;
        let mut next = llvm.first_block(self.function).and_then(|entry| llvm.first_instruction(entry));
        let mut last = None;
        while let Some(instruction) = next {
            let is_fence = match llvm.opcode(instruction) {
                opcode::FENCE => true,
                opcode::CALL => {
                    llvm.called(instruction).is_some_and(|called| llvm.name(called) == SIGNAL_FENCE)
                }
                _ => false,
            };
            if is_fence {
                last = Some(instruction);
            }
            next = llvm.next_instruction(instruction);
        }
        if let Some(fence) = last {
            llvm.erase(fence);
        }
    }
}

impl Drop for Emitter {
    fn drop(&mut self) {
        self.llvm.dispose_builder(self.builder);
    }
}

/// A text for LLVM. Names of intrinsics and hooks have no zeros.
fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
