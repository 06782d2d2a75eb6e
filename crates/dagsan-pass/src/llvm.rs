//! LLVM's C interface, as far as it is used: the only place that declares it.
//!
//! The functions are those of the LLVM that runs in this process, the compiler's own, so they are looked up when the first
//! function is compiled. Their signatures have been the same since LLVM 19 at least; a compiler that lacks one is refused by name.

mod slices;

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

/// A function of LLVM's C interface that this compiler does not have.
#[derive(Debug, thiserror::Error)]
#[error("the compiler's LLVM has no {0}")]
pub struct Missing(pub &'static str);

/// Handles. They come from LLVM, and belong to the module that is being compiled.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            #[repr(transparent)]
            pub struct $name(NonNull<c_void>);
        )*
    };
}

handles! {
    /// A value: a function, an instruction, an operand, a constant.
    Value;
    /// A type.
    Type;
    /// A basic block.
    Block;
    /// The use of a value by another.
    Use;
    /// A module.
    Module;
    /// What types and constants live in.
    Context;
    /// Sizes and offsets.
    Layout;
    /// Writes instructions.
    Builder;
    /// Debug locations and the like.
    Metadata;
    /// An attribute of a function, of a parameter or of a call.
    Attribute;
    /// How passes are run.
    PassOptions;
    /// Why something was not done.
    Failure;
}

impl Module {
    /// The module that passes are run over.
    ///
    /// # Safety
    ///
    /// It is a `llvm::Module` of the LLVM in this process.
    pub unsafe fn from_raw(module: NonNull<c_void>) -> Module {
        Module(module)
    }
}

impl Value {
    /// The function that a compiler pass was called for.
    ///
    /// # Safety
    ///
    /// It is a `llvm::Value` of the LLVM in this process.
    pub unsafe fn from_raw(value: NonNull<c_void>) -> Value {
        Value(value)
    }

    /// The same again.
    pub fn into_raw(self) -> *mut c_void {
        self.0.as_ptr()
    }
}

macro_rules! interface {
    ($($method:ident = $symbol:ident($($argument:ident: $T:ty),*) $(-> $R:ty)?;)*) => {
        /// The interface.
        pub struct Llvm {
            $($method: unsafe extern "C" fn($($T),*) $(-> $R)?,)*
        }

        impl Llvm {
            /// Looks all of it up.
            pub fn find() -> Result<Llvm, Missing> {
                Ok(Llvm {
                    $($method: {
                        let address = symbol(concat!(stringify!($symbol), "\0")).ok_or(Missing(stringify!($symbol)))?;
                        // SAFETY: LLVM's header declares the function of that name so.
                        unsafe { std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($T),*) $(-> $R)?>(address) }
                    },)*
                })
            }

            $(
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "as many as LLVM's function has")]
                pub fn $method(&self, $($argument: $T),*) $(-> $R)? {
                    // SAFETY: the function was found in LLVM. Handles come from it, and are used by the thread that compiles
                    // their module, while it does; pointers are those of slices and texts of the caller's.
                    unsafe { (self.$method)($($argument),*) }
                }
            )*
        }
    };
}

fn symbol(name: &'static str) -> Option<NonNull<c_void>> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    // SAFETY: a lookup by a text that ends with 0.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// Is there an LLVM in this process?
pub fn is_here() -> bool {
    symbol("LLVMGetFirstBasicBlock\0").is_some()
}

interface! {
    // Walking.
    parent_module = LLVMGetGlobalParent(global: Value) -> Module;
    context = LLVMGetModuleContext(module: Module) -> Context;
    layout = LLVMGetModuleDataLayout(module: Module) -> Layout;
    raw_module_name = LLVMGetModuleIdentifier(module: Module, length: *mut usize) -> *const c_char;
    first_function = LLVMGetFirstFunction(module: Module) -> Option<Value>;
    next_function = LLVMGetNextFunction(function: Value) -> Option<Value>;
    linkage = LLVMGetLinkage(global: Value) -> u32;
    first_block = LLVMGetFirstBasicBlock(function: Value) -> Option<Block>;
    next_block = LLVMGetNextBasicBlock(block: Block) -> Option<Block>;
    first_instruction = LLVMGetFirstInstruction(block: Block) -> Option<Value>;
    next_instruction = LLVMGetNextInstruction(instruction: Value) -> Option<Value>;
    block_of = LLVMGetInstructionParent(instruction: Value) -> Block;
    terminator = LLVMGetBasicBlockTerminator(block: Block) -> Option<Value>;
    successors = LLVMGetNumSuccessors(terminator: Value) -> u32;
    successor = LLVMGetSuccessor(terminator: Value, index: u32) -> Block;
    set_successor = LLVMSetSuccessor(terminator: Value, index: u32, to: Block);
    incoming = LLVMCountIncoming(phi: Value) -> u32;
    incoming_value = LLVMGetIncomingValue(phi: Value, index: u32) -> Value;
    incoming_block = LLVMGetIncomingBlock(phi: Value, index: u32) -> Block;
    opcode = LLVMGetInstructionOpcode(instruction: Value) -> u32;
    operand = LLVMGetOperand(user: Value, index: u32) -> Option<Value>;
    operands = LLVMGetNumOperands(user: Value) -> i32;
    first_use = LLVMGetFirstUse(value: Value) -> Option<Use>;
    next_use = LLVMGetNextUse(at: Use) -> Option<Use>;
    user = LLVMGetUser(at: Use) -> Value;
    raw_name = LLVMGetValueName2(value: Value, length: *mut usize) -> *const c_char;
    // What values are.
    type_of = LLVMTypeOf(value: Value) -> Type;
    as_instruction = LLVMIsAInstruction(value: Value) -> Option<Value>;
    as_function = LLVMIsAFunction(value: Value) -> Option<Value>;
    as_global_variable = LLVMIsAGlobalVariable(value: Value) -> Option<Value>;
    initializer = LLVMGetInitializer(global: Value) -> Option<Value>;
    as_inline_assembly = LLVMIsAInlineAsm(value: Value) -> Option<Value>;
    as_constant_integer = LLVMIsAConstantInt(value: Value) -> Option<Value>;
    integer_value = LLVMConstIntGetSExtValue(integer: Value) -> i64;
    addressed_type = LLVMGetGEPSourceElementType(pointer: Value) -> Type;
    mask_length = LLVMGetNumMaskElements(shuffle: Value) -> u32;
    mask_lane = LLVMGetMaskValue(shuffle: Value, index: u32) -> i32;
    is_disjoint = LLVMGetIsDisjoint(or: Value) -> i32;
    as_constant_expression = LLVMIsAConstantExpr(value: Value) -> Option<Value>;
    constant_opcode = LLVMGetConstOpcode(constant: Value) -> u32;
    is_constant_global = LLVMIsGlobalConstant(global: Value) -> i32;
    alignment = LLVMGetAlignment(value: Value) -> u32;
    ordering = LLVMGetOrdering(access: Value) -> u32;
    is_volatile = LLVMGetVolatile(access: Value) -> i32;
    comparison = LLVMGetICmpPredicate(compare: Value) -> u32;
    rmw_operation = LLVMGetAtomicRMWBinOp(rmw: Value) -> u32;
    called = LLVMGetCalledValue(call: Value) -> Option<Value>;
    normal_destination = LLVMGetNormalDest(invoke: Value) -> Block;
    arguments = LLVMGetNumArgOperands(call: Value) -> u32;
    raw_assembly = LLVMGetInlineAsmAsmString(assembly: Value, length: *mut usize) -> *const c_char;
    // Attributes and metadata.
    raw_attribute_kind = LLVMGetEnumAttributeKindForName(name: *const c_char, length: usize) -> u32;
    attribute_at = LLVMGetEnumAttributeAtIndex(function: Value, index: u32, kind: u32) -> Option<Attribute>;
    call_attribute = LLVMGetCallSiteEnumAttribute(call: Value, index: u32, kind: u32) -> Option<Attribute>;
    raw_text_attribute = LLVMGetStringAttributeAtIndex(function: Value, index: u32, name: *const c_char, length: u32) -> Option<Attribute>;
    attributes = LLVMGetAttributeCountAtIndex(function: Value, index: u32) -> u32;
    raw_attributes_at = LLVMGetAttributesAtIndex(function: Value, index: u32, into: *mut Attribute);
    add_call_attribute = LLVMAddCallSiteAttribute(call: Value, index: u32, attribute: Attribute);
    new_attribute = LLVMCreateEnumAttribute(context: Context, kind: u32, value: u64) -> Attribute;
    raw_new_text_attribute = LLVMCreateStringAttribute(
        context: Context, name: *const c_char, name_length: u32, value: *const c_char, value_length: u32
    ) -> Attribute;
    add_attribute = LLVMAddAttributeAtIndex(function: Value, index: u32, attribute: Attribute);
    remove_attribute = LLVMRemoveEnumAttributeAtIndex(function: Value, index: u32, kind: u32);
    remove_call_attribute = LLVMRemoveCallSiteEnumAttribute(call: Value, index: u32, kind: u32);
    attribute_value = LLVMGetEnumAttributeValue(attribute: Attribute) -> u64;
    attribute_type = LLVMGetTypeAttributeValue(attribute: Attribute) -> Type;
    raw_metadata_kind = LLVMGetMDKindIDInContext(context: Context, name: *const c_char, length: u32) -> u32;
    metadata = LLVMGetMetadata(instruction: Value, kind: u32) -> Option<Value>;
    set_metadata = LLVMSetMetadata(instruction: Value, kind: u32, node: Value);
    node = LLVMMDNodeInContext2(context: Context, elements: *const Metadata, count: usize) -> Metadata;
    metadata_as_value = LLVMMetadataAsValue(context: Context, metadata: Metadata) -> Value;
    subprogram = LLVMGetSubprogram(function: Value) -> Option<Metadata>;
    instruction_location = LLVMInstructionGetDebugLoc(instruction: Value) -> Option<Metadata>;
    raw_metadata_text = LLVMMDStringInContext2(context: Context, text: *const c_char, length: usize) -> Metadata;
    value_as_metadata = LLVMValueAsMetadata(value: Value) -> Metadata;
    location_line = LLVMDILocationGetLine(location: Metadata) -> u32;
    location_scope = LLVMDILocationGetScope(location: Metadata) -> Metadata;
    location_inlined_at = LLVMDILocationGetInlinedAt(location: Metadata) -> Option<Metadata>;
    debug_location = LLVMDIBuilderCreateDebugLocation(
        context: Context, line: u32, column: u32, scope: Metadata, inlined_at: Option<Metadata>
    ) -> Metadata;
    set_builder_location = LLVMSetCurrentDebugLocation2(builder: Builder, location: Option<Metadata>);
    // Types.
    type_kind = LLVMGetTypeKind(of: Type) -> u32;
    integer_width = LLVMGetIntTypeWidth(integer: Type) -> u32;
    element_type = LLVMGetElementType(sequence: Type) -> Type;
    vector_length = LLVMGetVectorSize(vector: Type) -> u32;
    array_length = LLVMGetArrayLength2(array: Type) -> u64;
    structure_length = LLVMCountStructElementTypes(structure: Type) -> u32;
    structure_element = LLVMStructGetTypeAtIndex(structure: Type, index: u32) -> Type;
    element_offset = LLVMOffsetOfElement(layout: Layout, structure: Type, index: u32) -> u64;
    store_size = LLVMStoreSizeOfType(layout: Layout, of: Type) -> u64;
    allocated_size = LLVMABISizeOfType(layout: Layout, of: Type) -> u64;
    size_in_bits = LLVMSizeOfTypeInBits(layout: Layout, of: Type) -> u64;
    pointer_address_space = LLVMGetPointerAddressSpace(pointer: Type) -> u32;
    integer = LLVMIntTypeInContext(context: Context, bits: u32) -> Type;
    void = LLVMVoidTypeInContext(context: Context) -> Type;
    raw_structure = LLVMStructTypeInContext(context: Context, elements: *const Type, count: u32, packed: i32) -> Type;
    pointer = LLVMPointerTypeInContext(context: Context, address_space: u32) -> Type;
    array = LLVMArrayType2(element: Type, length: u64) -> Type;
    vector = LLVMVectorType(element: Type, length: u32) -> Type;
    function_type = LLVMFunctionType(result: Type, parameters: *const Type, count: u32, variadic: i32) -> Type;
    // Constants and functions.
    raw_constant = LLVMConstInt(integer: Type, value: u64, signed: i32) -> Value;
    null = LLVMConstNull(of: Type) -> Value;
    raw_function_named = LLVMGetNamedFunction(module: Module, name: *const c_char) -> Option<Value>;
    raw_add_function = LLVMAddFunction(module: Module, name: *const c_char, of: Type) -> Value;
    function_type_of = LLVMGlobalGetValueType(function: Value) -> Type;
    result_type = LLVMGetReturnType(of: Type) -> Type;
    parameters = LLVMCountParams(function: Value) -> u32;
    parameter = LLVMGetParam(function: Value, index: u32) -> Value;
    convention = LLVMGetFunctionCallConv(function: Value) -> u32;
    set_convention = LLVMSetFunctionCallConv(function: Value, convention: u32);
    set_call_convention = LLVMSetInstructionCallConv(call: Value, convention: u32);
    set_linkage = LLVMSetLinkage(global: Value, linkage: u32);
    set_visibility = LLVMSetVisibility(global: Value, visibility: u32);
    raw_global_named = LLVMGetNamedGlobal(module: Module, name: *const c_char) -> Option<Value>;
    raw_add_global = LLVMAddGlobal(module: Module, of: Type, name: *const c_char) -> Value;
    raw_inline_assembly = LLVMGetInlineAsm(
        of: Type, text: *const c_char, text_length: usize, constraints: *const c_char, constraints_length: usize,
        has_side_effects: i32, aligns_stack: i32, dialect: u32, can_throw: i32
    ) -> Value;
    // Blocks.
    raw_insert_block = LLVMInsertBasicBlockInContext(context: Context, before: Block, name: *const c_char) -> Block;
    raw_append_block = LLVMAppendBasicBlockInContext(context: Context, function: Value, name: *const c_char) -> Block;
    block_as_value = LLVMBasicBlockAsValue(block: Block) -> Value;
    remove = LLVMInstructionRemoveFromParent(instruction: Value);
    insert = LLVMInsertIntoBuilder(builder: Builder, instruction: Value);
    raw_phi = LLVMBuildPhi(builder: Builder, of: Type, name: *const c_char) -> Value;
    raw_add_incoming = LLVMAddIncoming(phi: Value, values: *const Value, blocks: *const Block, count: u32);
    jump = LLVMBuildBr(builder: Builder, to: Block) -> Value;
    give_back = LLVMBuildRet(builder: Builder, value: Value) -> Value;
    give_back_nothing = LLVMBuildRetVoid(builder: Builder) -> Value;
    branch = LLVMBuildCondBr(builder: Builder, on: Value, yes: Block, no: Block) -> Value;
    // Writing.
    builder = LLVMCreateBuilderInContext(context: Context) -> Builder;
    dispose_builder = LLVMDisposeBuilder(builder: Builder);
    position_at_end = LLVMPositionBuilderAtEnd(builder: Builder, block: Block);
    position_before = LLVMPositionBuilderBefore(builder: Builder, instruction: Value);
    raw_call = LLVMBuildCall2(
        builder: Builder, of: Type, function: Value, arguments: *const Value, count: u32, name: *const c_char
    ) -> Value;
    raw_fence = LLVMBuildFence(builder: Builder, ordering: u32, single_thread: i32, name: *const c_char) -> Value;
    raw_text = LLVMBuildGlobalStringPtr(builder: Builder, text: *const c_char, name: *const c_char) -> Value;
    raw_bit_cast = LLVMBuildBitCast(builder: Builder, value: Value, to: Type, name: *const c_char) -> Value;
    raw_extend = LLVMBuildZExt(builder: Builder, value: Value, to: Type, name: *const c_char) -> Value;
    raw_extend_signed = LLVMBuildSExt(builder: Builder, value: Value, to: Type, name: *const c_char) -> Value;
    raw_compare = LLVMBuildICmp(builder: Builder, how: u32, left: Value, right: Value, name: *const c_char) -> Value;
    raw_load = LLVMBuildLoad2(builder: Builder, of: Type, pointer: Value, name: *const c_char) -> Value;
    store = LLVMBuildStore(builder: Builder, value: Value, pointer: Value) -> Value;
    set_alignment = LLVMSetAlignment(access: Value, bytes: u32);
    raw_to_integer = LLVMBuildPtrToInt(builder: Builder, value: Value, to: Type, name: *const c_char) -> Value;
    raw_to_pointer = LLVMBuildIntToPtr(builder: Builder, value: Value, to: Type, name: *const c_char) -> Value;
    raw_shift_right = LLVMBuildLShr(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_shift_left = LLVMBuildShl(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_subtract = LLVMBuildSub(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_divide = LLVMBuildExactSDiv(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_freeze = LLVMBuildFreeze(builder: Builder, value: Value, name: *const c_char) -> Value;
    raw_not = LLVMBuildNot(builder: Builder, value: Value, name: *const c_char) -> Value;
    raw_and = LLVMBuildAnd(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_or = LLVMBuildOr(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_add = LLVMBuildAdd(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_select = LLVMBuildSelect(builder: Builder, on: Value, yes: Value, no: Value, name: *const c_char) -> Value;
    raw_multiply = LLVMBuildMul(builder: Builder, left: Value, right: Value, name: *const c_char) -> Value;
    raw_part = LLVMBuildExtractValue(builder: Builder, value: Value, index: u32, name: *const c_char) -> Value;
    raw_lane = LLVMBuildExtractElement(builder: Builder, vector: Value, index: Value, name: *const c_char) -> Value;
    raw_offset = LLVMBuildGEP2(
        builder: Builder, element: Type, pointer: Value, indices: *const Value, count: u32, name: *const c_char
    ) -> Value;
    replace_all_uses = LLVMReplaceAllUsesWith(old: Value, new: Value);
    erase = LLVMInstructionEraseFromParent(instruction: Value);
    // Passes.
    raw_run_passes = LLVMRunPasses(module: Module, passes: *const c_char, machine: *mut c_void, options: PassOptions) -> Option<Failure>;
    pass_options = LLVMCreatePassBuilderOptions() -> PassOptions;
    dispose_pass_options = LLVMDisposePassBuilderOptions(options: PassOptions);
    failure_message = LLVMGetErrorMessage(failure: Failure) -> *const c_char;
}

/// Opcodes, `LLVMOpcode`.
pub mod opcode {
    pub const BRANCH: u32 = 2;
    pub const SWITCH: u32 = 3;
    pub const INVOKE: u32 = 5;
    pub const ADD: u32 = 8;
    pub const SUBTRACT: u32 = 10;
    pub const MULTIPLY: u32 = 12;
    pub const SHIFT_LEFT: u32 = 20;
    pub const OR: u32 = 24;
    pub const ALLOCA: u32 = 26;
    pub const LOAD: u32 = 27;
    pub const STORE: u32 = 28;
    pub const GET_ELEMENT_POINTER: u32 = 29;
    pub const POINTER_TO_INTEGER: u32 = 39;
    pub const INTEGER_TO_POINTER: u32 = 40;
    pub const BIT_CAST: u32 = 41;
    pub const COMPARE: u32 = 42;
    pub const PHI: u32 = 44;
    pub const CALL: u32 = 45;
    pub const SELECT: u32 = 46;
    pub const EXTRACT_ELEMENT: u32 = 50;
    pub const SHUFFLE_VECTOR: u32 = 52;
    pub const FENCE: u32 = 55;
    pub const COMPARE_EXCHANGE: u32 = 56;
    pub const READ_MODIFY_WRITE: u32 = 57;
    pub const ADDRESS_SPACE_CAST: u32 = 60;
    pub const CALL_BRANCH: u32 = 67;
}

/// Kinds of types, `LLVMTypeKind`.
pub mod type_kind {
    pub const VOID: u32 = 0;
    pub const INTEGER: u32 = 8;
    pub const STRUCTURE: u32 = 10;
    pub const ARRAY: u32 = 11;
    pub const POINTER: u32 = 12;
    pub const VECTOR: u32 = 13;
}

/// How a function is linked, `LLVMLinkage`.
pub mod linkage {
    pub const EXTERNAL: u32 = 0;
    pub const AVAILABLE_EXTERNALLY: u32 = 1;
    pub const INTERNAL: u32 = 8;
}

/// Who sees what is not internal, `LLVMVisibility`.
pub mod visibility {
    pub const HIDDEN: u32 = 1;
}

/// Orderings of atomic operations, `LLVMAtomicOrdering`.
pub mod ordering {
    pub const NOT_ATOMIC: u32 = 0;
    pub const ACQUIRE: u32 = 4;
    pub const RELEASE: u32 = 5;
    pub const ACQUIRE_RELEASE: u32 = 6;
    pub const SEQUENTIALLY_CONSISTENT: u32 = 7;
}

/// What a comparison asks, `LLVMIntPredicate`.
pub mod comparison {
    pub const EQUAL: u32 = 32;
    pub const NOT_EQUAL: u32 = 33;
    pub const UNSIGNED_AT_MOST: u32 = 37;
    pub const SIGNED_LESS: u32 = 40;
}

/// Attributes of the function itself, `LLVMAttributeFunctionIndex`.
pub const OF_FUNCTION: u32 = u32::MAX;
