//! Choices between two loads.
//!
//! Of `c ? *a : *b` LLVM makes two loads and a choice between the values, where both addresses are known to be good. The program reads one of
//! them, and the other may be what another task writes. So that is undone before anything is marked:
//!
//! ```text
//!   x = load a; y = load b; v = select c, x, y        ─►        p = select c, a, b; v = load p
//! ```
//!
//! Only if nobody else uses the loads, they are in the same block, and nothing between them and the choice may write. A program that reads both, and then
//! chooses, is not told apart from one that chooses first.

use crate::llvm::{Block, Context, Llvm, Value, opcode, ordering};

/// Undoes them in a function.
pub fn undo(llvm: &Llvm, function: Value) {
    let context = llvm.context(llvm.parent_module(function));
    let mut block = llvm.first_block(function);
    while let Some(this) = block {
        in_block(llvm, context, this);
        block = llvm.next_block(this);
    }
}

fn in_block(llvm: &Llvm, context: Context, block: Block) {
    // The loads of this block that nothing has come after that may write.
    let mut loads: Vec<Value> = Vec::new();
    let mut next = llvm.first_instruction(block);
    while let Some(at) = next {
        next = llvm.next_instruction(at);
        match llvm.opcode(at) {
            opcode::LOAD if llvm.ordering(at) == ordering::NOT_ATOMIC && llvm.is_volatile(at) == 0 => {
                loads.push(at);
            }
            opcode::SELECT => {
                if let Some((condition, one, other)) = choice(llvm, context, at, &loads) {
                    loads.retain(|&load| load != one && load != other);
                    rewrite(llvm, context, at, condition, [one, other]);
                }
            }
            opcode::LOAD | opcode::STORE | opcode::FENCE => loads.clear(),
            opcode::COMPARE_EXCHANGE | opcode::READ_MODIFY_WRITE => loads.clear(),
            opcode::CALL | opcode::INVOKE | opcode::CALL_BRANCH => loads.clear(),
            _ => {}
        }
    }
}

/// The condition of a choice, and the two loads that it is between.
fn choice(llvm: &Llvm, context: Context, select: Value, loads: &[Value]) -> Option<(Value, Value, Value)> {
    let (condition, one, other) =
        (llvm.operand(select, 0)?, llvm.operand(select, 1)?, llvm.operand(select, 2)?);
    // What is chosen may be no instruction, and has no operands then.
    let is_own = |load: Value| loads.contains(&load) && llvm.users(load).count() == 1;
    if !is_own(one) || !is_own(other) {
        return None;
    }
    let alike = llvm.type_of(llvm.operand(one, 0)?) == llvm.type_of(llvm.operand(other, 0)?);
    // A choice by lanes reads of both.
    let is_one = llvm.type_of(condition) == llvm.integer(context, 1);
    (one != other && alike && is_one).then_some((condition, one, other))
}

/// Puts a load of the address that is chosen in the place of the choice.
fn rewrite(llvm: &Llvm, context: Context, select: Value, condition: Value, loads: [Value; 2]) {
    let [Some(one), Some(other)] = loads.map(|load| llvm.operand(load, 0)) else { return };
    let builder = llvm.builder(context);
    llvm.position_before(builder, select);
    llvm.set_builder_location(builder, llvm.instruction_location(select));
    let pointer = llvm.select(builder, condition, one, other);
    let load = llvm.load(builder, llvm.type_of(select), pointer);
    llvm.set_alignment(load, loads.map(|load| llvm.alignment(load)).into_iter().min().unwrap_or(1));
    llvm.dispose_builder(builder);
    llvm.replace_all_uses(select, load);
    for gone in [select, loads[0], loads[1]] {
        llvm.erase(gone);
    }
}
