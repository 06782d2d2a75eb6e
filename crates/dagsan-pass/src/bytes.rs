//! Which bytes a value has in memory, and which of them the program asked for.

use crate::llvm::{Layout, Llvm, Type, Value, opcode, type_kind};

/// The bytes of a type, by offset and length, without the holes in it; neighbours are one piece.
pub fn of_type(llvm: &Llvm, layout: Layout, of: Type) -> Vec<(u64, u64)> {
    let mut pieces = Vec::new();
    add_type(llvm, layout, of, 0, &mut pieces);
    pieces
}

fn add_type(llvm: &Llvm, layout: Layout, of: Type, offset: u64, pieces: &mut Vec<(u64, u64)>) {
    match llvm.type_kind(of) {
        type_kind::STRUCTURE => {
            for index in 0..llvm.structure_length(of) {
                let start = offset + llvm.element_offset(layout, of, index);
                add_type(llvm, layout, llvm.structure_element(of, index), start, pieces);
            }
        }
        type_kind::ARRAY => {
            let element = llvm.element_type(of);
            let size = llvm.allocated_size(layout, element);
            for index in 0..llvm.array_length(of) {
                add_type(llvm, layout, element, offset + index * size, pieces);
            }
        }
        _ => add(pieces, offset, llvm.store_size(layout, of)),
    }
}

/// Adds a piece.
fn add(pieces: &mut Vec<(u64, u64)>, offset: u64, bytes: u64) {
    match pieces.last_mut() {
        _ if bytes == 0 => {}
        Some((start, length)) if *start + *length == offset => *length += bytes,
        _ => pieces.push((offset, bytes)),
    }
}

/// The bytes that a load reads for the program. The vectoriser loads whole vectors where the program reads every second element,
/// and then picks those: the others are nobody's access.
pub fn of_load(llvm: &Llvm, layout: Layout, load: Value) -> Vec<(u64, u64)> {
    let of = llvm.type_of(load);
    let Some(lanes) = picked(llvm, load, of) else { return of_type(llvm, layout, of) };
    let bytes = llvm.size_in_bits(layout, llvm.element_type(of)) / 8;
    let mut pieces = Vec::new();
    for (lane, _) in lanes.iter().enumerate().filter(|&(_, &is_used)| is_used) {
        add(&mut pieces, lane as u64 * bytes, bytes);
    }
    pieces
}

/// The elements of a loaded vector that are used, if all of its users pick some.
fn picked(llvm: &Llvm, load: Value, of: Type) -> Option<Vec<bool>> {
    if llvm.type_kind(of) != type_kind::VECTOR {
        return None;
    }
    let element = llvm.element_type(of);
    if llvm.type_kind(element) == type_kind::INTEGER && !llvm.integer_width(element).is_multiple_of(8) {
        return None;
    }
    let length = llvm.vector_length(of) as usize;
    let mut lanes = vec![false; length];
    for user in llvm.users(load) {
        match llvm.operation(user)? {
            opcode::SHUFFLE_VECTOR => {
                let sides = [0, 1].map(|side| llvm.operand(user, side) == Some(load));
                for index in 0..llvm.mask_length(user) {
                    // Less than 0: any element will do.
                    let Ok(lane) = usize::try_from(llvm.mask_lane(user, index)) else { continue };
                    if lane < 2 * length && sides[lane / length] {
                        lanes[lane % length] = true;
                    }
                }
            }
            opcode::EXTRACT_ELEMENT => {
                let index = llvm.as_constant_integer(llvm.operand(user, 1)?)?;
                *lanes.get_mut(usize::try_from(llvm.integer_value(index)).ok()?)? = true;
            }
            _ => return None,
        }
    }
    // A load that nobody uses is the program's own.
    lanes.contains(&true).then_some(lanes)
}
