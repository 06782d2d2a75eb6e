//! What a range behind a loop calls (`dagsan-pass`, `exits`), unless it is so short that a mark in line does.
//!
//! Written in assembly for the same reason as `miss`: the loop around it keeps its registers. Most ranges are known to the strand
//! already, and then nothing is done but comparing words.

use std::arch::naked_asm;

use crate::layout::{SEEN, WRITTEN};
use crate::miss::with_all_saved;
use crate::ranges;
use crate::state::OWNER;

/// An entry for ranges of any length but 0.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         rcx  how many bytes
///         rbp  the frame of the code
///         [rsp] the code address
///
///         line …  ┌────────┬────────┬ … ┬────────┐
///         first   │   rrrrr│rrrrrrrr│ … │rr      │   last line
///                 └────────┴────────┴ … ┴────────┘
/// ```
macro_rules! range {
    ($symbol:literal, $name:ident, $kind:literal, $table:ident) => {
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
                "push rcx",
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
                // A shift by 0 leaves the flags alone.
                "test rdx, rdx",
                "jnz 5f",
                "pop rcx",
                "pop r9",
                "pop r8",
                "pop rsi",
                "9:",
                "ret",
                "5:",
                "pop rcx",
                "pop r9",
                "pop r8",
                "pop rsi",
                "mov rax, [rsp]",
                "and eax, -4",
                "or eax, 1",
                "mov edx, {kind}",
                "jmp {slow}",
                owner = sym OWNER,
                table = const $table,
                kind = const $kind,
                slow = sym slow,
            )
        }
    };
}

range!("__dagsan_range_read", read, 0, SEEN);
range!("__dagsan_range_write", write, 1, WRITTEN);

with_all_saved!(slow, ranges::record_miss);
