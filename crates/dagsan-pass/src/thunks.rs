//! Functions of the standard library that come compiled are called through thunks, which tell what they read and write.
//!
//! ```text
//!   println!("{}", *q)     fmt::Arguments ─► dagsan.<u64 as Display>::fmt ─► <u64 as Display>::fmt
//!   text.to_lowercase()    the call       ─► dagsan.<str>::to_lowercase   ─► <str>::to_lowercase
//!                                              └► __dagsan_touched(parameter, bytes, 0, its own frame)
//! ```
//!
//! A function's address goes into tables of virtual functions and into what `println!` is given, so it is not enough to change calls: all
//! uses of the declaration become those of the thunk, a function of the module's own. The runtime takes the code that has called the thunk
//! for the code of the access.
//!
//! It is done for a whole module, just before its functions get their marks: ThreadSanitizer has a pass of its own for modules there, whose
//! place is taken too.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_void};
use std::iter::successors;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::contracts::{self, Touch};
use crate::llvm::{Builder, Context, Llvm, Module, OF_FUNCTION, Type, Value, linkage, type_kind};
use crate::{Run, effects, fail, later, original};

/// `llvm::ModuleThreadSanitizerPass::run(llvm::Module&, llvm::AnalysisManager<llvm::Module>&)`.
const ENTRY: &CStr = c"_ZN4llvm25ModuleThreadSanitizerPass3runERNS_6ModuleERNS_15AnalysisManagerIS1_JEEE";

/// What thunks are called, before the symbol of the function. `library` knows functions by how their symbols end.
const PREFIX: &str = "dagsan.";

thread_local! {
    /// The module whose functions this thread is about to mark.
    static READY: Cell<Option<Module>> = const { Cell::new(None) };
}

/// What is called instead of it.
///
/// # Safety
///
/// LLVM calls it, as it would call the original.
#[unsafe(export_name = "_ZN4llvm25ModuleThreadSanitizerPass3runERNS_6ModuleERNS_15AnalysisManagerIS1_JEEE")]
pub unsafe extern "C" fn run(
    result: *mut c_void,
    pass: *mut c_void,
    module: *mut c_void,
    analyses: *mut c_void,
) -> *mut c_void {
    static ORIGINAL: OnceLock<Run> = OnceLock::new();
    // What panics leaves nothing behind that is looked at again: the compiler ends.
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the function of that name, which LLVM declares so.
        let original = *ORIGINAL.get_or_init(|| unsafe { original(ENTRY) });
        let Some(named) = NonNull::new(module) else { fail("LLVM has called the pass without a module") };
        if !later::waits() {
            // SAFETY: a `llvm::Module` of the LLVM in this process.
            make(crate::llvm(), unsafe { Module::from_raw(named) });
        }
        // SAFETY: the arguments are those of LLVM, for the function of that name.
        unsafe { original(result, pass, module, analyses) }
    }));
    done.unwrap_or_else(|_| fail("the pass has panicked: see above; please report it"))
}

/// Fails if the module of a function that is to be marked has no thunks: what it calls would not be seen.
pub fn expect(llvm: &Llvm, function: Value) {
    if READY.get() != Some(llvm.parent_module(function)) {
        fail("LLVM has not called the pass for a module");
    }
}

/// Makes the thunks of a module.
pub fn make(llvm: &Llvm, module: Module) {
    READY.set(Some(module));
    let functions = successors(llvm.first_function(module), |&function| llvm.next_function(function));
    // All at first: thunks are added to the module.
    let declared: Vec<Value> = functions
        .filter(|&function| llvm.first_block(function).is_none() && llvm.first_use(function).is_some())
        .collect();
    for function in declared {
        if let Some(touches) = contracts::known(&llvm.name(function))
            && (touches != [Touch::Unknown] || may_touch(llvm, function))
        {
            Maker::new(llvm, module, function).make(&touches);
        }
    }
}

/// Is a function given an address, besides the place of its result, and does it come back?
fn may_touch(llvm: &Llvm, function: Value) -> bool {
    let sret = llvm.attribute_kind("sret");
    let mut parameters = (0..llvm.parameters(function)).map(|at| (at, llvm.parameter(function, at)));
    let is_place = |at| llvm.attribute_at(function, at + 1, sret).is_some();
    let gets_address = parameters
        .any(|(at, value)| llvm.type_kind(llvm.type_of(value)) == type_kind::POINTER && !is_place(at));
    gets_address && llvm.attribute_at(function, OF_FUNCTION, llvm.attribute_kind("noreturn")).is_none()
}

/// Writes a thunk.
struct Maker<'a> {
    llvm: &'a Llvm,
    module: Module,
    context: Context,
    builder: Builder,
    word: Type,
    pointer: Type,
    function: Value,
    thunk: Value,
    /// Is the first parameter the place of the result?
    sret: u32,
}

impl<'a> Maker<'a> {
    /// The thunk takes the place of the function, with nothing in it yet.
    fn new(llvm: &'a Llvm, module: Module, function: Value) -> Maker<'a> {
        let context = llvm.context(module);
        let of = llvm.function_type_of(function);
        let name = CString::new(format!("{PREFIX}{}", llvm.name(function))).unwrap_or_default();
        let thunk = llvm.raw_add_function(module, name.as_ptr(), of);
        llvm.replace_all_uses(function, thunk);
        llvm.set_linkage(thunk, linkage::INTERNAL);
        llvm.set_convention(thunk, llvm.convention(function));
        let count = llvm.parameters(function);
        for index in (0..=count).chain([OF_FUNCTION]) {
            for attribute in llvm.attributes_at(function, index) {
                llvm.add_attribute(thunk, index, attribute);
            }
        }
        // A caller keeps its frame, which is looked at, and others can unwind through this one.
        for (name, value) in [("noinline", 0), ("disable_sanitizer_instrumentation", 0), ("uwtable", 2)] {
            let attribute = llvm.new_attribute(context, llvm.attribute_kind(name), value);
            llvm.add_attribute(thunk, OF_FUNCTION, attribute);
        }
        effects::forget(llvm, thunk);
        let sret = llvm.attribute_kind("sret");
        let has_place = count > 0 && llvm.attribute_at(function, 1, sret).is_some();
        Maker {
            llvm,
            module,
            context,
            builder: llvm.builder(context),
            word: llvm.integer(context, 64),
            pointer: llvm.pointer(context, 0),
            function,
            thunk,
            sret: u32::from(has_place),
        }
    }

    fn make(&self, touches: &[Touch]) {
        let llvm = self.llvm;
        llvm.position_at_end(self.builder, llvm.append_block(self.context, self.thunk));
        // What has other parameters than it should is not the function that is known by this name.
        let touches = if touches.iter().all(|&touch| self.fits(touch)) { touches } else { &[Touch::Unknown] };
        let frame = self.frame();
        let lengths: Vec<Option<Value>> = touches.iter().map(|&touch| self.before(touch, frame)).collect();
        let result = self.call_function();
        for (&touch, length) in touches.iter().zip(lengths) {
            self.after(touch, length, result, frame);
        }
        if llvm.type_kind(llvm.type_of(result)) == type_kind::VOID {
            llvm.give_back_nothing(self.builder);
        } else {
            llvm.give_back(self.builder, result);
        }
    }

    /// Has the function the parameters, and the result?
    fn fits(&self, touch: Touch) -> bool {
        match touch {
            Touch::ReadSlice(at, _) => self.slice(at).is_some(),
            Touch::Fill(at) => {
                let result = self.llvm.result_type(self.llvm.function_type_of(self.function));
                let is_pair = || self.llvm.structure_length(result) == 2;
                let kind = self.llvm.type_kind(result);
                let is_result = kind == type_kind::POINTER || kind == type_kind::STRUCTURE && is_pair();
                is_result && self.slice(at).is_some()
            }
            Touch::ReadTo(at) | Touch::ReadFrom(at) => {
                let result = self.llvm.result_type(self.llvm.function_type_of(self.function));
                let is_pair = self.llvm.type_kind(result) == type_kind::STRUCTURE;
                is_pair && self.llvm.structure_length(result) == 2 && self.slice(at).is_some()
            }
            Touch::Counted(at) => {
                let result = self.llvm.result_type(self.llvm.function_type_of(self.function));
                self.llvm.type_kind(result) == type_kind::INTEGER && self.parameter(at).is_some()
            }
            Touch::Read(at, _)
            | Touch::ReadBehind(at, _)
            | Touch::Write(at, _)
            | Touch::ReadFat(at)
            | Touch::ReadText(at)
            | Touch::Grow(at)
            | Touch::Rewrite(at) => self.parameter(at).is_some(),
            Touch::Tail(at, slice) => {
                let result =
                    self.llvm.type_kind(self.llvm.result_type(self.llvm.function_type_of(self.function)));
                let says_whether = result == type_kind::VOID || result == type_kind::INTEGER;
                says_whether && self.parameter(at).is_some() && self.slice(slice).is_some()
            }
            Touch::Unknown => true,
        }
    }

    /// The verdict is to say that nobody knows what is read and written here.
    fn unseen(&self) {
        let llvm = self.llvm;
        let what = CString::new(contracts::told(&llvm.name(self.function))).unwrap_or_default();
        let what = llvm.text(self.builder, &what);
        self.call(c"__dagsan_unseen", llvm.void(self.context), &[what]);
    }

    /// Tells what the function reads. The result is what [`Maker::after`] wants to know of the time before the call.
    fn before(&self, touch: Touch, frame: Value) -> Option<Value> {
        let llvm = self.llvm;
        match touch {
            Touch::Read(at, bytes) => self.touched(self.parameter(at)?, self.number(bytes), 0, frame),
            Touch::ReadSlice(at, bytes) => {
                let (start, length) = self.slice(at)?;
                let length = llvm.multiply(self.builder, length, self.number(bytes));
                self.touched(start, length, 0, frame);
            }
            Touch::ReadBehind(at, bytes) => {
                let reference = self.parameter(at)?;
                let behind = llvm.load(self.builder, self.pointer, reference);
                self.touched(reference, self.number(8), 0, frame);
                self.touched(behind, self.number(bytes), 0, frame);
            }
            Touch::ReadFat(at) => {
                let fat = self.parameter(at)?;
                let second = llvm.offset(self.builder, llvm.integer(self.context, 8), fat, self.number(8));
                let (start, length) =
                    (llvm.load(self.builder, self.pointer, fat), llvm.load(self.builder, self.word, second));
                self.touched(fat, self.number(16), 0, frame);
                self.touched(start, length, 0, frame);
            }
            Touch::ReadText(at) => {
                self.call(c"__dagsan_text_read", llvm.void(self.context), &[self.parameter(at)?, frame]);
            }
            Touch::Grow(at) => {
                return Some(self.call(c"__dagsan_text_length", self.word, &[self.parameter(at)?]));
            }
            Touch::Rewrite(_) => return Some(self.number(0)),
            Touch::Unknown => self.unseen(),
            Touch::Fill(_)
            | Touch::Write(..)
            | Touch::Tail(..)
            | Touch::ReadTo(_)
            | Touch::ReadFrom(_)
            | Touch::Counted(_) => {}
        }
        None
    }

    /// Tells what it has written.
    fn after(&self, touch: Touch, length: Option<Value>, result: Value, frame: Value) -> Option<()> {
        let llvm = self.llvm;
        match touch {
            Touch::Fill(at) => {
                let (start, room) = self.slice(at)?;
                let bytes = self.filled(result, room)?;
                self.touched(start, bytes, 1, frame);
            }
            Touch::Grow(at) | Touch::Rewrite(at) => {
                let void = llvm.void(self.context);
                self.call(c"__dagsan_text_changed", void, &[self.parameter(at)?, length?, frame]);
            }
            Touch::Tail(at, slice) => {
                let (_, bytes) = self.slice(slice)?;
                let bytes = match llvm.type_kind(llvm.type_of(result)) {
                    type_kind::INTEGER => llvm.select(self.builder, result, bytes, self.number(0)),
                    _ => bytes,
                };
                let void = llvm.void(self.context);
                self.call(c"__dagsan_text_written", void, &[self.parameter(at)?, bytes, frame]);
            }
            Touch::Write(at, bytes) => self.touched(self.parameter(at)?, self.number(bytes), 1, frame),
            Touch::Counted(at) => {
                let bytes = llvm.add(self.builder, result, self.number(1));
                self.touched(self.parameter(at)?, bytes, 0, frame);
            }
            // `Option<usize>` is a tag, which is 0 if there is none, and a number.
            Touch::ReadTo(at) | Touch::ReadFrom(at) => {
                let (start, length) = self.slice(at)?;
                let (tag, place) = (llvm.part(self.builder, result, 0), llvm.part(self.builder, result, 1));
                let is_none = llvm.equal(self.builder, tag, llvm.null(llvm.type_of(tag)));
                if matches!(touch, Touch::ReadTo(_)) {
                    let until = llvm.add(self.builder, place, self.number(1));
                    let bytes = llvm.select(self.builder, is_none, length, until);
                    self.touched(start, bytes, 0, frame);
                } else {
                    let from = llvm.select(self.builder, is_none, self.number(0), place);
                    let first = llvm.offset(self.builder, llvm.integer(self.context, 8), start, from);
                    self.touched(first, llvm.subtract(self.builder, length, from), 0, frame);
                }
            }
            Touch::Read(..)
            | Touch::ReadBehind(..)
            | Touch::ReadSlice(..)
            | Touch::ReadFat(_)
            | Touch::ReadText(_)
            | Touch::Unknown => {}
        }
        Some(())
    }

    /// How many bytes are written by what the result says: `Result<usize, io::Error>` is a tag, which is 0, and a number, and
    /// `Result<(), io::Error>` a pointer, which is null.
    fn filled(&self, result: Value, room: Value) -> Option<Value> {
        let (llvm, of) = (self.llvm, self.llvm.type_of(result));
        let (tag, bytes) = match llvm.type_kind(of) {
            type_kind::POINTER => (result, room),
            type_kind::STRUCTURE if llvm.structure_length(of) == 2 => {
                (llvm.part(self.builder, result, 0), llvm.part(self.builder, result, 1))
            }
            _ => return None,
        };
        let bytes = match llvm.type_kind(llvm.type_of(bytes)) {
            type_kind::POINTER => llvm.to_integer(self.builder, bytes, self.word),
            _ => bytes,
        };
        let is_done = llvm.equal(self.builder, tag, llvm.null(llvm.type_of(tag)));
        Some(llvm.select(self.builder, is_done, bytes, self.number(0)))
    }

    /// The call of the function itself, with the attributes of its declaration: they say how values are passed.
    fn call_function(&self) -> Value {
        let llvm = self.llvm;
        let count = llvm.parameters(self.function);
        let parameters: Vec<Value> = (0..count).map(|index| llvm.parameter(self.thunk, index)).collect();
        let of = llvm.function_type_of(self.function);
        let call = llvm.call(self.builder, of, self.function, &parameters);
        llvm.set_call_convention(call, llvm.convention(self.function));
        for index in 0..=count {
            for attribute in llvm.attributes_at(self.function, index) {
                llvm.add_call_attribute(call, index, attribute);
            }
        }
        call
    }

    /// A parameter that is an address.
    fn parameter(&self, at: u32) -> Option<Value> {
        self.parameter_of(at, type_kind::POINTER)
    }

    /// The address and the length of a slice.
    fn slice(&self, at: u32) -> Option<(Value, Value)> {
        Some((self.parameter(at)?, self.parameter_of(at + 1, type_kind::INTEGER)?))
    }

    /// None if it is of another kind.
    fn parameter_of(&self, at: u32, kind: u32) -> Option<Value> {
        let at = at + self.sret;
        let value = (at < self.llvm.parameters(self.thunk)).then(|| self.llvm.parameter(self.thunk, at))?;
        (self.llvm.type_kind(self.llvm.type_of(value)) == kind).then_some(value)
    }

    fn number(&self, value: u64) -> Value {
        self.llvm.constant(self.word, value)
    }

    /// The thunk's own frame.
    fn frame(&self) -> Value {
        let level = self.llvm.constant(self.llvm.integer(self.context, 32), 0);
        self.call(c"llvm.frameaddress.p0", self.pointer, &[level])
    }

    fn touched(&self, start: Value, bytes: Value, written: u64, frame: Value) {
        let written = self.llvm.constant(self.llvm.integer(self.context, 32), written);
        let void = self.llvm.void(self.context);
        self.call(c"__dagsan_touched", void, &[start, bytes, written, frame]);
    }

    fn call(&self, name: &CStr, result: Type, arguments: &[Value]) -> Value {
        let types: Vec<Type> = arguments.iter().map(|&argument| self.llvm.type_of(argument)).collect();
        let of = self.llvm.function_of(result, &types);
        let function = self.llvm.function(self.module, name, of);
        self.llvm.call(self.builder, of, function, arguments)
    }
}

impl Drop for Maker<'_> {
    fn drop(&mut self) {
        self.llvm.dispose_builder(self.builder);
    }
}
