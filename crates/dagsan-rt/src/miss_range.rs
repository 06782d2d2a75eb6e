//! What a range behind a loop asks (`dagsan-pass`, `exits`), unless it is so short that a mark in line does: is any of it new to
//! the strand? If so, it calls the hook for ranges.
//!
//! Written in assembly for the same reason as `miss`: the loop around it keeps its registers. Most ranges are known to the strand
//! already, and then nothing is done but comparing words.

use std::arch::naked_asm;

use crate::layout::{SEEN, WRITTEN};
use crate::state::OWNER;

/// For ranges of any length but 0.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rdx rdi, flags
///         rcx  how many bytes                   out      rcx  0 if all are known, or if nobody wants to know
///
///         line …  ┌────────┬────────┬ … ┬────────┐
///         first   │   rrrrr│rrrrrrrr│ … │rr      │   last line
///                 └────────┴────────┴ … ┴────────┘
/// ```
macro_rules! range {
    ($symbol:literal, $name:ident, $table:ident) => {
        #[unsafe(export_name = $symbol)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rdx, fs:0",
                "cmp rdx, [rip + {owner}]",
                "jne 9f",
                "push rsi",
                "push r8",
                "push r9",
                "lea rsi, [rdi + rcx - 1]",
                "mov rax, rdi",
                "shr rax, 6",
                "mov r8, rsi",
                "shr r8, 6",
                "movabs r9, {table}",
                // Of the first line, what is not known, from the address on.
                "mov rdx, [r9 + rax * 8]",
                "not rdx",
                "mov ecx, edi",
                "shr rdx, cl",
                "shl rdx, cl",
                "cmp rax, r8",
                "je 4f",
                "test rdx, rdx",
                "jnz 5f",
                "3:",
                "inc rax",
                "mov rdx, [r9 + rax * 8]",
                "not rdx",
                "cmp rax, r8",
                "je 4f",
                "test rdx, rdx",
                "jz 3b",
                "jmp 5f",
                // Of the last line, up to the last byte.
                "4:",
                "mov ecx, esi",
                "not ecx",
                "shl rdx, cl",
                "5:",
                "mov rcx, rdx",
                "pop r9",
                "pop r8",
                "pop rsi",
                "ret",
                "9:",
                "xor ecx, ecx",
                "ret",
                owner = sym OWNER,
                table = const $table,
            )
        }
    };
}

range!("__dagsan_range_read", read, SEEN);
range!("__dagsan_range_write", write, WRITTEN);
