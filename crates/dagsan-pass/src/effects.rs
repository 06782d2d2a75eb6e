//! What LLVM believes of functions, and what is true of them with marks.
//!
//! LLVM finds out that a function only reads memory. A mark sets bits in the runtime's tables, so with marks in it, or in what it calls, the
//! function writes. Left as it is, LLVM might keep a word of a table in a register over the call, and write it back without the bits that
//! the call has set: accesses would be lost. So the attribute is taken away where marks are put in; that the program's own accesses are reads,
//! which makes the call no border, is kept under a name of ours.

use crate::llvm::{Attribute, Llvm, OF_FUNCTION, Value};

/// Says that a function does not write memory but for marks.
const READS: &str = "dagsan-reads";

/// Takes the attribute away from a function, and from calls of it.
pub fn forget(llvm: &Llvm, function: Value) {
    let kind = llvm.attribute_kind("memory");
    let known = (kind != 0).then(|| llvm.attribute_at(function, OF_FUNCTION, kind)).flatten();
    // What accesses nothing has no marks, and calls nothing that has.
    if known.is_none_or(|known| llvm.attribute_value(known) == 0) {
        return;
    }
    if is_reader(llvm, function) {
        let context = llvm.context(llvm.parent_module(function));
        llvm.add_attribute(function, OF_FUNCTION, llvm.new_text_attribute(context, READS));
    }
    llvm.remove_attribute(function, OF_FUNCTION, kind);
    let users: Vec<Value> = llvm.users(function).collect();
    for call in users.into_iter().filter(|&user| llvm.is_call_of(user, function)) {
        llvm.remove_call_attribute(call, OF_FUNCTION, kind);
    }
}

/// Does a function write no memory, but for marks?
pub fn is_reader(llvm: &Llvm, function: Value) -> bool {
    let attribute = llvm.attribute_at(function, OF_FUNCTION, llvm.attribute_kind("memory"));
    attribute.is_some_and(|known| only_reads(llvm, known)) || llvm.has_text_attribute(function, READS)
}

/// Does the attribute say so?
pub fn only_reads(llvm: &Llvm, memory: Attribute) -> bool {
    // Two bits for each kind of memory; the upper one says that it may be written.
    llvm.attribute_value(memory) & 0xaaaa_aaaa == 0
}
