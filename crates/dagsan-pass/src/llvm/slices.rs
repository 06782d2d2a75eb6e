//! The same interface with Rust's slices and texts.

use std::ffi::{CStr, c_char};

use super::{
    Attribute, Block, Builder, Context, Llvm, Module, OF_FUNCTION, Type, Value, comparison, opcode, ordering,
};

const NO_NAME: *const c_char = c"".as_ptr();

impl Llvm {
    pub fn name(&self, value: Value) -> String {
        let mut length = 0;
        let text = self.raw_name(value, &raw mut length);
        copied(text, length)
    }

    pub fn module_name(&self, module: Module) -> String {
        let mut length = 0;
        let text = self.raw_module_name(module, &raw mut length);
        copied(text, length)
    }

    pub fn is_call_of(&self, value: Value, function: Value) -> bool {
        self.as_instruction(value).is_some_and(|at| {
            matches!(self.opcode(at), opcode::CALL | opcode::INVOKE) && self.called(at) == Some(function)
        })
    }

    pub fn assembly(&self, assembly: Value) -> String {
        let mut length = 0;
        let text = self.raw_assembly(assembly, &raw mut length);
        copied(text, length)
    }

    /// The opcode of an instruction, or of the constant that one would compute.
    pub fn operation(&self, value: Value) -> Option<u32> {
        match self.as_instruction(value) {
            Some(instruction) => Some(self.opcode(instruction)),
            None => self.as_constant_expression(value).map(|constant| self.constant_opcode(constant)),
        }
    }

    /// Who uses a value.
    pub fn users(&self, value: Value) -> impl Iterator<Item = Value> {
        std::iter::successors(self.first_use(value), |&at| self.next_use(at)).map(|at| self.user(at))
    }

    /// The number of an attribute; 0 if this LLVM does not have it.
    pub fn attribute_kind(&self, name: &str) -> u32 {
        self.raw_attribute_kind(name.as_ptr().cast(), name.len())
    }

    /// Has a function an attribute of that name, which LLVM does not know?
    pub fn has_text_attribute(&self, function: Value, name: &str) -> bool {
        self.raw_text_attribute(function, OF_FUNCTION, name.as_ptr().cast(), name.len() as u32).is_some()
    }

    pub fn new_text_attribute(&self, context: Context, name: &str) -> Attribute {
        self.raw_new_text_attribute(context, name.as_ptr().cast(), name.len() as u32, NO_NAME, 0)
    }

    /// The attributes of a function, of what it returns (0) or of a parameter (from 1 on).
    pub fn attributes_at(&self, function: Value, index: u32) -> Vec<Attribute> {
        let count = self.attributes(function, index) as usize;
        let mut found = Vec::with_capacity(count);
        self.raw_attributes_at(function, index, found.as_mut_ptr());
        // SAFETY: LLVM has written as many as it has said.
        unsafe { found.set_len(count) };
        found
    }

    /// Runs passes that LLVM knows by these names over a module.
    pub fn run_passes(&self, module: Module, passes: &CStr) -> Result<(), String> {
        let options = self.pass_options();
        let failure = self.raw_run_passes(module, passes.as_ptr(), std::ptr::null_mut(), options);
        self.dispose_pass_options(options);
        let Some(failure) = failure else { return Ok(()) };
        // SAFETY: LLVM gives a text that ends with 0.
        let why = unsafe { CStr::from_ptr(self.failure_message(failure)) };
        Err(why.to_string_lossy().into_owned())
    }

    pub fn metadata_kind(&self, context: Context, name: &str) -> u32 {
        self.raw_metadata_kind(context, name.as_ptr().cast(), name.len() as u32)
    }

    pub fn constant(&self, integer: Type, value: u64) -> Value {
        self.raw_constant(integer, value, 0)
    }

    /// A function by its name, declared if it is not there.
    pub fn function(&self, module: Module, name: &CStr, of: Type) -> Value {
        self.raw_function_named(module, name.as_ptr())
            .unwrap_or_else(|| self.raw_add_function(module, name.as_ptr(), of))
    }

    /// A function that is there.
    pub fn function_named(&self, module: Module, name: &CStr) -> Option<Value> {
        self.raw_function_named(module, name.as_ptr())
    }

    /// A static that is there.
    pub fn global_named(&self, module: Module, name: &CStr) -> Option<Value> {
        self.raw_global_named(module, name.as_ptr())
    }

    pub fn structure(&self, context: Context, elements: &[Type]) -> Type {
        self.raw_structure(context, elements.as_ptr(), elements.len() as u32, 0)
    }

    pub fn function_of(&self, result: Type, parameters: &[Type]) -> Type {
        self.function_type(result, parameters.as_ptr(), parameters.len() as u32, 0)
    }

    pub fn call(&self, builder: Builder, of: Type, function: Value, arguments: &[Value]) -> Value {
        self.raw_call(builder, of, function, arguments.as_ptr(), arguments.len() as u32, NO_NAME)
    }

    /// A fence for signal handlers.
    pub fn signal_fence(&self, builder: Builder) -> Value {
        self.raw_fence(builder, ordering::ACQUIRE, 1, NO_NAME)
    }

    pub fn text(&self, builder: Builder, text: &CStr) -> Value {
        self.raw_text(builder, text.as_ptr(), c"dagsan".as_ptr())
    }

    pub fn bit_cast(&self, builder: Builder, value: Value, to: Type) -> Value {
        self.raw_bit_cast(builder, value, to, NO_NAME)
    }

    pub fn extend(&self, builder: Builder, value: Value, to: Type) -> Value {
        self.raw_extend(builder, value, to, NO_NAME)
    }

    pub fn extend_signed(&self, builder: Builder, value: Value, to: Type) -> Value {
        self.raw_extend_signed(builder, value, to, NO_NAME)
    }

    /// Is it negative? For vectors: which elements are?
    pub fn is_negative(&self, builder: Builder, value: Value) -> Value {
        let zero = self.null(self.type_of(value));
        self.raw_compare(builder, comparison::SIGNED_LESS, value, zero, NO_NAME)
    }

    pub fn equal(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_compare(builder, comparison::EQUAL, left, right, NO_NAME)
    }

    pub fn to_integer(&self, builder: Builder, pointer: Value, integer: Type) -> Value {
        self.raw_to_integer(builder, pointer, integer, NO_NAME)
    }

    pub fn to_pointer(&self, builder: Builder, integer: Value, pointer: Type) -> Value {
        self.raw_to_pointer(builder, integer, pointer, NO_NAME)
    }

    pub fn shift_right(&self, builder: Builder, value: Value, by: Value) -> Value {
        self.raw_shift_right(builder, value, by, NO_NAME)
    }

    pub fn shift_left(&self, builder: Builder, value: Value, by: Value) -> Value {
        self.raw_shift_left(builder, value, by, NO_NAME)
    }

    pub fn subtract(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_subtract(builder, left, right, NO_NAME)
    }

    /// A quotient of signed numbers without a rest.
    pub fn divide(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_divide(builder, left, right, NO_NAME)
    }

    pub fn freeze(&self, builder: Builder, value: Value) -> Value {
        self.raw_freeze(builder, value, NO_NAME)
    }

    pub fn not(&self, builder: Builder, value: Value) -> Value {
        self.raw_not(builder, value, NO_NAME)
    }

    pub fn is_at_most(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_compare(builder, comparison::UNSIGNED_AT_MOST, left, right, NO_NAME)
    }

    pub fn and(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_and(builder, left, right, NO_NAME)
    }

    pub fn or(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_or(builder, left, right, NO_NAME)
    }

    pub fn add(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_add(builder, left, right, NO_NAME)
    }

    /// A load that promises no alignment.
    pub fn load(&self, builder: Builder, of: Type, pointer: Value) -> Value {
        let load = self.raw_load(builder, of, pointer, NO_NAME);
        self.set_alignment(load, 1);
        load
    }

    /// A static by its name, declared if it is not there.
    pub fn global(&self, module: Module, name: &CStr, of: Type) -> Value {
        self.raw_global_named(module, name.as_ptr())
            .unwrap_or_else(|| self.raw_add_global(module, of, name.as_ptr()))
    }

    /// A new block at the end of a function.
    pub fn append_block(&self, context: Context, function: Value) -> Block {
        self.raw_append_block(context, function, NO_NAME)
    }

    /// A new block before another.
    pub fn insert_block(&self, context: Context, before: Block) -> Block {
        self.raw_insert_block(context, before, NO_NAME)
    }

    /// A phi at the builder's position.
    pub fn phi(&self, builder: Builder, of: Type, incoming: &[(Value, Block)]) -> Value {
        let phi = self.raw_phi(builder, of, NO_NAME);
        let (values, blocks): (Vec<Value>, Vec<Block>) = incoming.iter().copied().unzip();
        self.raw_add_incoming(phi, values.as_ptr(), blocks.as_ptr(), incoming.len() as u32);
        phi
    }

    /// Assembly that has effects and keeps to the stack's alignment.
    pub fn inline_assembly(&self, of: Type, text: &str, constraints: &str) -> Value {
        let (text, constraints) = (text.as_bytes(), constraints.as_bytes());
        self.raw_inline_assembly(
            of,
            text.as_ptr().cast(),
            text.len(),
            constraints.as_ptr().cast(),
            constraints.len(),
            1,
            1,
            0,
            0,
        )
    }

    pub fn select(&self, builder: Builder, on: Value, yes: Value, no: Value) -> Value {
        self.raw_select(builder, on, yes, no, NO_NAME)
    }

    pub fn multiply(&self, builder: Builder, left: Value, right: Value) -> Value {
        self.raw_multiply(builder, left, right, NO_NAME)
    }

    /// A part of a structure.
    pub fn part(&self, builder: Builder, value: Value, index: u32) -> Value {
        self.raw_part(builder, value, index, NO_NAME)
    }

    pub fn lane(&self, builder: Builder, vector: Value, index: Value) -> Value {
        self.raw_lane(builder, vector, index, NO_NAME)
    }

    /// A pointer to so many bytes behind another.
    pub fn offset(&self, builder: Builder, byte: Type, pointer: Value, by: Value) -> Value {
        self.raw_offset(builder, byte, pointer, &raw const by, 1, NO_NAME)
    }
}

/// A text of LLVM's.
fn copied(text: *const c_char, length: usize) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: LLVM gives the text of a value with its length, and the value lives.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}
