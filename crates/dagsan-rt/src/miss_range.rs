//! What a range behind a loop asks (`dagsan-pass`, `exits`), unless it is so short that a mark in line does: is any of its lines new to
//! the strand? If so, it calls the hook for ranges. The bits of other lines are set here.
//!
//! Written in assembly for the same reason as `miss`: the loop around it keeps its registers. Most ranges are known to the strand
//! already, and then nothing is done but comparing words.

use std::arch::naked_asm;

use crate::layout::{SEEN, WRITTEN};
use crate::state::OWNER;
use crate::tables::SETTER;

/// For ranges of any length but 0.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rdx rdi, flags
///         rcx  how many bytes                   out      rcx  0 if all are known by now, or if nobody wants to know
///
///         line …  ┌────────┬────────┬ … ┬────────┐
///         first   │   rrrrr│rrrrrrrr│ … │rr      │   last line
///                 └────────┴────────┴ … ┴────────┘
/// ```
macro_rules! range {
    ($symbol:literal, $name:ident, $table:ident $(, $also:ident)?) => {
        #[unsafe(export_name = $symbol)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rdx, fs:0",
                "cmp rdx, gs:[{setter}]",
                "jne 8f",
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
                "mov rdx, gs:[r9 + rax * 8]",
                "not rdx",
                "mov ecx, edi",
                "shr rdx, cl",
                "shl rdx, cl",
                "cmp rax, r8",
                "je 4f",
                "test rdx, rdx",
                "jnz 6f",
                "3:",
                "inc rax",
                "mov rdx, gs:[r9 + rax * 8]",
                "not rdx",
                "cmp rax, r8",
                "je 4f",
                "test rdx, rdx",
                "jz 3b",
                "jmp 6f",
                // Of the last line, up to the last byte.
                "4:",
                "mov ecx, esi",
                "not ecx",
                "shl rdx, cl",
                "shr rdx, cl",
                "test rdx, rdx",
                "jnz 6f",
                "xor ecx, ecx",
                "5:",
                "pop r9",
                "pop r8",
                "pop rsi",
                "ret",
                // Something is not known. If the line is in the log, that is made good.
                "6:",
                "mov rcx, gs:[r9 + rax * 8]",
                "test rcx, rcx",
                "jz 7f",
                "or rcx, rdx",
                "mov gs:[r9 + rax * 8], rcx",
                $(
                    concat!("movabs rcx, {", stringify!($also), "}"),
                    "or gs:[rcx + rax * 8], rdx",
                )?
                "xor ecx, ecx",
                "cmp rax, r8",
                "jne 3b",
                "jmp 5b",
                "7:",
                "inc ecx",
                "jmp 5b",
                // Another thread, or each code is wanted: the hook asks again.
                "8:",
                "cmp rdx, gs:[{owner}]",
                "je 9f",
                "xor ecx, ecx",
                "9:",
                "ret",
                setter = const SETTER,
                owner = const OWNER,
                table = const $table,
                $($also = const SEEN,)?
            )
        }
    };
}

range!("__dagsan_range_read", read, SEEN);
range!("__dagsan_range_write", write, WRITTEN, seen);
