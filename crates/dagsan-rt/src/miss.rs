//! What a hook calls when its bytes are new to the running strand.
//!
//! Written in assembly so that it can keep all registers but three: the hooks are inlined everywhere, and a call that
//! spoils registers would make the code around every access slower, whether the call is made or not.
//!
//! ```text
//!   hook ── new bytes ──► entry: mask of the bytes, code address
//!                           │ line last touched by the same code, the same way?
//!                           ├─ yes ─► set the bits                                        (the usual case in loops)
//!                           ├─ no ──► an entry in the log (`log`), then set the bits      (once per line and site)
//!                           └─ the log is full ─► `slow`: save all registers, `log::record`
//! ```
//!
//! The code address is the return address of the call in the hook, which lies in the code that the hook was inlined
//! into: debug information leads from there to the source line of the access. Its low half identifies it, as a
//! program's image is smaller than 4 GiB; bit 0 is set, so that it is not 0 (two calls are never one byte apart). The
//! caller of the function is the return address in its frame: instrumented code has frame pointers.
//!
//! A thread that does not run the tasks leaves at once.

use std::arch::naked_asm;

use crate::layout::{SEEN, SITES, WRITTEN};
use crate::log;
use crate::state::OWNER;

/// An entry for accesses of at most 16 bytes.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         [rsp] the code address
/// ```
macro_rules! entry {
    ($name:ident, $bytes:literal, $body:ident) => {
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rax, [rsp]",
                "or eax, 1",
                // Does it cross the border of a line?
                "mov ecx, edi",
                "and ecx, 63",
                "cmp ecx, 64 - {bytes}",
                "ja 2f",
                "and ecx, 7",
                "mov edx, {all}",
                "shl edx, cl",
                "mov ecx, edx",
                "jmp {body}",
                // Then it is two accesses, of 64 - ecx bytes up to the border and of the others after it.
                "2:",
                "push rdi",
                "push rax",
                "push rcx",
                "neg ecx",
                "add ecx, 64",
                "mov edx, 1",
                "shl edx, cl",
                "dec edx",
                "mov ecx, edi",
                "and ecx, 7",
                "shl edx, cl",
                "mov ecx, edx",
                "call {body}",
                "pop rcx",
                "pop rax",
                "pop rdi",
                "add rdi, 63",
                "and rdi, -64",
                "add ecx, {bytes} - 64",
                "mov edx, 1",
                "shl edx, cl",
                "dec edx",
                "mov ecx, edx",
                "jmp {body}",
                bytes = const $bytes,
                all = const (1u32 << $bytes) - 1,
                body = sym $body,
            )
        }
    };
}

entry!(read1, 1, read);
entry!(read2, 2, read);
entry!(read4, 4, read);
entry!(read8, 8, read);
entry!(read16, 16, read);
entry!(write1, 1, write);
entry!(write2, 2, write);
entry!(write4, 4, write);
entry!(write8, 8, write);
entry!(write16, 16, write);

/// New bytes of one line.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         eax  the code address, low half, odd
///         ecx  the bytes, bit 0 for the first of the eight that the address is in
///         rbp  the frame of the code
/// ```
macro_rules! body {
    ($name:ident, $kind:expr, $table:ident, $log:ident $(, $also:ident)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rdx, fs:0",
                "cmp rdx, [rip + {owner}]",
                "jne 9f",
                "push rsi",
                "mov rsi, rdi",
                "shr rsi, 6",
                "movabs rdx, {sites}",
                "lea rdx, [rdx + rsi * 8]",
                "cmp [rdx], eax",
                "jne 5f",
                "2:",
                "shr rdi, 3",
                "movabs rdx, {table}",
                "or dword ptr [rdx + rdi], ecx",
                $(
                    concat!("movabs rdx, {", stringify!($also), "}"),
                    "or dword ptr [rdx + rdi], ecx",
                )?
                "pop rsi",
                "9:",
                "ret",
                // Other code than before: an entry in the log.
                "5:",
                "push r8",
                "mov r8, [rip + {log}]",
                "cmp r8, [rip + {log} + 8]",
                "jae 7f",
                "mov [r8], rsi",
                // Not the line's first entry? (`log::Entry`)
                "cmp dword ptr [rdx], 0",
                "setne byte ptr [r8 + 7]",
                "mov [r8 + 16], eax",
                "mov [rdx], eax",
                "mov eax, [rbp + 8]",
                "mov [r8 + 20], eax",
                "movabs rax, {table}",
                "mov rax, [rax + rsi * 8]",
                "mov [r8 + 8], rax",
                "add r8, 24",
                "mov [rip + {log}], r8",
                "pop r8",
                "jmp 2b",
                "7:",
                "pop r8",
                "pop rsi",
                "mov edx, {kind}",
                "jmp {slow}",
                owner = sym OWNER,
                sites = const SITES + 4 * $kind,
                table = const $table,
                log = sym log::$log,
                kind = const $kind,
                slow = sym slow,
                $($also = const SEEN,)?
            )
        }
    };
}

body!(read, 0, SEEN, READS);
body!(write, 1, WRITTEN, WRITES, seen);

/// The log is full, or keeps more than this file can find out: on in Rust, with every register saved.
///
/// ```text
///   in    rdi, eax, ecx, rbp  as in `body`     spoiled  rax rcx rdx rdi, flags
///         edx  0 read, 1 write
///
///   stack, from high to low:  return address | rsi r8 r9 r10 r11 rbx | … 64-aligned: XSAVE area
/// ```
#[unsafe(naked)]
unsafe extern "C" fn slow() {
    naked_asm!(
        "push rsi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbx",
        "mov rbx, rsp",
        // The XSAVE area: 512 bytes, a header of 64 that must be zero, and at most 2112 for AVX and AVX-512.
        "sub rsp, 2688",
        "and rsp, -64",
        "mov r8d, eax",
        "mov r9d, edx",
        "xor eax, eax",
        "mov [rsp + 512], rax",
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        // x87, SSE, AVX and the three parts of AVX-512.
        "mov eax, 0xe7",
        "xor edx, edx",
        "xsave64 [rsp]",
        "mov esi, ecx",
        "mov edx, r9d",
        "mov ecx, r8d",
        "mov r8, rbp",
        "call {record}",
        "mov eax, 0xe7",
        "xor edx, edx",
        "xrstor64 [rsp]",
        "mov rsp, rbx",
        "pop rbx",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rsi",
        "ret",
        record = sym log::record_miss,
    )
}
