//! Sections of OpenMP: the runtime hears of each.
//!
//! clang compiles `sections` to a loop with a choice, and calls the runtime once for all sections of a thread. So which of them an access belongs to
//! would not be known where a thread has several:
//!
//! ```text
//!   __kmpc_for_static_init_4(…)        for (i = lower; i <= upper; i++) {
//!                                        __dagsan_section();             ◄─ put in here
//!                                        switch (i) { case 0: …  case 1: … }
//!                                      }
//!   __kmpc_for_static_fini(…)
//! ```
//!
//! It has to be done before anything is optimised: the loop is unrolled, and the choice made of other things, later. So it is done where clang
//! begins to run passes over a module. A clang whose call does not go through the dynamic linker is not changed; the runtime notices, and the verdict says so.

use std::collections::VecDeque;
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::llvm::{Block, Llvm, Module, Value, opcode};
use crate::{Run, fail, original};

/// `llvm::PassManager<llvm::Module>::run(llvm::Module&, llvm::AnalysisManager<llvm::Module>&)`.
const ENTRY: &CStr = c"_ZN4llvm11PassManagerINS_6ModuleENS_15AnalysisManagerIS1_JEEEJEE3runERS1_RS3_";

const BEGIN: &CStr = c"__kmpc_for_static_init_4";
const END: &CStr = c"__kmpc_for_static_fini";
const HOOK: &CStr = c"__dagsan_section";
/// What clang sets in the description of a loop over sections.
const SECTIONS: i64 = 0x400;

/// What is called instead of it.
///
/// # Safety
///
/// LLVM calls it, as it would call the original.
#[unsafe(export_name = "_ZN4llvm11PassManagerINS_6ModuleENS_15AnalysisManagerIS1_JEEEJEE3runERS1_RS3_")]
pub unsafe extern "C" fn run_module(
    result: *mut c_void,
    passes: *mut c_void,
    module: *mut c_void,
    analyses: *mut c_void,
) -> *mut c_void {
    static ORIGINAL: OnceLock<Run> = OnceLock::new();
    // What panics leaves nothing behind that is looked at again: the compiler ends.
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the function of that name, which has such arguments as the pass's.
        let original = ORIGINAL.get_or_init(|| unsafe { original(ENTRY) });
        if let Some(module) = NonNull::new(module) {
            // SAFETY: a `llvm::Module` of the LLVM in this process.
            tell(crate::llvm(), unsafe { Module::from_raw(module) });
        }
        // SAFETY: the arguments are those of LLVM, for the function of that name.
        unsafe { original(result, passes, module, analyses) }
    }));
    done.unwrap_or_else(|_| fail("the pass has panicked: see above; please report it"))
}

/// Puts the hook before each choice of a section. A module may come by several times.
fn tell(llvm: &Llvm, module: Module) {
    let Some(begin) = llvm.raw_function_named(module, BEGIN.as_ptr()) else { return };
    let calls: Vec<Value> = llvm.users(begin).filter(|&user| is_call_of(llvm, user, begin)).collect();
    let of = llvm.function_of(llvm.void(llvm.context(module)), &[]);
    for call in calls.into_iter().filter(|&call| is_of_sections(llvm, call)) {
        let Some(choice) = choice_behind(llvm, module, call) else { continue };
        let hook = llvm.function(module, HOOK, of);
        let block = llvm.block_of(choice);
        let instructions =
            std::iter::successors(llvm.first_instruction(block), |&at| llvm.next_instruction(at));
        if instructions.into_iter().any(|at| is_call_of(llvm, at, hook)) {
            continue;
        }
        let builder = llvm.builder(llvm.context(module));
        llvm.position_before(builder, choice);
        llvm.set_builder_location(builder, llvm.instruction_location(choice));
        llvm.call(builder, of, hook, &[]);
        llvm.dispose_builder(builder);
    }
}

fn is_call_of(llvm: &Llvm, value: Value, function: Value) -> bool {
    llvm.as_instruction(value).is_some_and(|at| {
        matches!(llvm.opcode(at), opcode::CALL | opcode::INVOKE) && llvm.called(at) == Some(function)
    })
}

/// Does the first argument, which describes the loop, say that it is one over sections?
fn is_of_sections(llvm: &Llvm, call: Value) -> bool {
    let described = llvm.operand(call, 0).and_then(|ident| llvm.as_global_variable(ident));
    let flags = described.and_then(|ident| llvm.operand(llvm.initializer(ident)?, 1));
    flags
        .and_then(|flags| llvm.as_constant_integer(flags))
        .is_some_and(|flags| llvm.integer_value(flags) & SECTIONS != 0)
}

/// The first choice between more than two ways that comes behind the call, before the end of the loop.
fn choice_behind(llvm: &Llvm, module: Module, call: Value) -> Option<Value> {
    let end = llvm.raw_function_named(module, END.as_ptr());
    let first = llvm.block_of(call);
    let (mut next, mut known) = (VecDeque::from([first]), vec![first]);
    while let Some(block) = next.pop_front() {
        if block != first && has_call(llvm, block, end) {
            continue;
        }
        let terminator = llvm.terminator(block)?;
        if llvm.opcode(terminator) == opcode::SWITCH {
            return Some(terminator);
        }
        for number in 0..llvm.successors(terminator) {
            let successor = llvm.successor(terminator, number);
            if !known.contains(&successor) {
                known.push(successor);
                next.push_back(successor);
            }
        }
    }
    None
}

fn has_call(llvm: &Llvm, block: Block, function: Option<Value>) -> bool {
    let mut instructions =
        std::iter::successors(llvm.first_instruction(block), |&at| llvm.next_instruction(at));
    function.is_some_and(|function| instructions.any(|at| is_call_of(llvm, at, function)))
}
