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
//! begins to run passes over a module (`module`). A clang whose call does not go through the dynamic linker is not changed; the runtime notices, and the verdict says so.

use std::collections::VecDeque;
use std::ffi::CStr;

use crate::llvm::{Block, Llvm, Module, Value, opcode};

const BEGIN: &CStr = c"__kmpc_for_static_init_4";
const END: &CStr = c"__kmpc_for_static_fini";
const HOOK: &CStr = c"__dagsan_section";
/// What clang sets in the description of a loop over sections.
const SECTIONS: i64 = 0x400;

/// Puts the hook before each choice of a section. A module may come by several times.
pub fn tell(llvm: &Llvm, module: Module) {
    let Some(begin) = llvm.raw_function_named(module, BEGIN.as_ptr()) else { return };
    let calls: Vec<Value> = llvm.users(begin).filter(|&user| llvm.is_call_of(user, begin)).collect();
    let of = llvm.function_of(llvm.void(llvm.context(module)), &[]);
    for call in calls.into_iter().filter(|&call| is_of_sections(llvm, call)) {
        let Some(choice) = choice_behind(llvm, module, call) else { continue };
        let hook = llvm.function(module, HOOK, of);
        let block = llvm.block_of(choice);
        let instructions =
            std::iter::successors(llvm.first_instruction(block), |&at| llvm.next_instruction(at));
        if instructions.into_iter().any(|at| llvm.is_call_of(at, hook)) {
            continue;
        }
        let builder = llvm.builder(llvm.context(module));
        llvm.position_before(builder, choice);
        llvm.set_builder_location(builder, llvm.instruction_location(choice));
        llvm.call(builder, of, hook, &[]);
        llvm.dispose_builder(builder);
    }
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
    function.is_some_and(|function| instructions.any(|at| llvm.is_call_of(at, function)))
}
