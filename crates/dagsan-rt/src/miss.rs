//! What a hook, or a mark in line (`dagsan-pass`), calls when its bytes are new to the running strand.
//!
//! Written in assembly so that it can keep all registers but four: the hooks are inlined everywhere, and a call that
//! spoils registers would make the code around every access slower, whether the call is made or not.
//!
//! ```text
//!   hook ── new bytes ──► entry: mask of the bytes, code address
//!                           │ line last touched by the same code, the same way?
//!                           ├─ yes ─► set the bits                                        (the usual case in loops)
//!                           ├─ no ──► `enter`: in the log (`log`), then set the bits      (once per line and site)
//!                           └─ the log is full ─► `slow`: save all registers, `log::record`
//! ```
//!
//! The code address is the return address of the call in the hook, which lies in the code that the hook was inlined
//! into: debug information leads from there to the source line of the access. Its low half identifies it, as a
//! program's image is smaller than 4 GiB. Its two lowest bits are used for other things (`log`): a call is longer than four
//! bytes. The caller of the function is the return address in its frame: instrumented code has frame pointers.
//!
//! A thread that does not run the tasks leaves at once.

use std::arch::naked_asm;

use crate::layout::{SEEN, SITES, WRITTEN};
use crate::log;
use crate::state::OWNER;

const READ: usize = 0;
const WRITE: usize = 1;

/// An entry for accesses of at most 16 bytes.
///
/// The bits of a line are read and written as one word, always: the processor passes on to a load what is still being stored
/// only if the store has all of it. So a loop over memory need not wait for what it did last.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         rbp  the frame of the code
///         [rsp] the code address
/// ```
macro_rules! entry {
    ($name:ident, $bytes:literal, $kind:ident, $part:ident, $enter:ident, $table:ident $(, $also:ident)?) => {
        #[unsafe(export_name = concat!("__dagsan_miss_", stringify!($name)))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rdx, fs:0",
                "cmp rdx, [rip + {owner}]",
                "jne 9f",
                "mov rax, [rsp]",
                "and eax, -4",
                "or eax, 1",
                // Does it cross the border of a line?
                "mov ecx, edi",
                "and ecx, 63",
                "cmp ecx, 64 - {bytes}",
                "ja 3f",
                "mov rcx, rdi",
                "shr rcx, 6",
                // Was the line last touched by the same code, the same way?
                "movabs rdx, {sites}",
                "cmp [rdx + rcx * 8], eax",
                "jne 5f",
                "2:",
                "movabs rdx, {table}",
                "lea rdx, [rdx + rcx * 8]",
                "mov eax, {all}",
                "mov ecx, edi",
                // By the lowest six bits of the address.
                "shl rax, cl",
                "or [rdx], rax",
                $(
                    "shr rdi, 6",
                    concat!("movabs rdx, {", stringify!($also), "}"),
                    "or [rdx + rdi * 8], rax",
                )?
                "9:",
                "ret",
                // Two accesses, of 64 - ecx bytes up to the border and of the others after it.
                "3:",
                "push rdi",
                "push rax",
                "push rcx",
                "neg ecx",
                "add ecx, 64",
                "mov edx, 1",
                "shl edx, cl",
                "dec edx",
                "mov ecx, edx",
                "call {part}",
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
                "jmp {part}",
                "5:",
                "call {enter}",
                "jnc 2b",
                "mov ecx, {all}",
                "mov edx, {kind}",
                "jmp {slow}",
                owner = sym OWNER,
                sites = const SITES + 4 * $kind,
                table = const $table,
                bytes = const $bytes,
                all = const (1u32 << $bytes) - 1,
                kind = const $kind,
                part = sym $part,
                enter = sym $enter,
                slow = sym slow,
                $($also = const SEEN,)?
            )
        }
    };
}

macro_rules! entries {
    ($($read:ident $write:ident $bytes:literal)*) => {
        $(
            entry!($read, $bytes, READ, read_part, enter_read, SEEN);
            entry!($write, $bytes, WRITE, write_part, enter_write, WRITTEN, seen);
        )*
    };
}

entries! { read1 write1 1 read2 write2 2 read4 write4 4 read8 write8 8 read16 write16 16 }

/// The bytes in one line of an access that crosses its border.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         eax  the code (`log`)
///         rcx  the bytes, bit 0 for that at the address
///         rbp  the frame of the code
/// ```
macro_rules! part {
    ($name:ident, $kind:ident, $enter:ident, $table:ident $(, $also:ident)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rcx",
                "mov rcx, rdi",
                "shr rcx, 6",
                "movabs rdx, {sites}",
                "cmp [rdx + rcx * 8], eax",
                "jne 5f",
                "2:",
                "pop rax",
                "mov ecx, edi",
                "shl rax, cl",
                "shr rdi, 6",
                "movabs rdx, {table}",
                "or [rdx + rdi * 8], rax",
                $(
                    concat!("movabs rdx, {", stringify!($also), "}"),
                    "or [rdx + rdi * 8], rax",
                )?
                "ret",
                "5:",
                "call {enter}",
                "jnc 2b",
                "pop rcx",
                "mov edx, {kind}",
                "jmp {slow}",
                sites = const SITES + 4 * $kind,
                table = const $table,
                kind = const $kind,
                enter = sym $enter,
                slow = sym slow,
                $($also = const SEEN,)?
            )
        }
    };
}

part!(read_part, READ, enter_read, SEEN);
part!(write_part, WRITE, enter_write, WRITTEN, seen);

/// An entry for other accesses of at most 64 bytes: they are in two lines at most.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         rcx  the bytes, bit 0 for that at the address, which is set
///         rbp  the frame of the code
///         [rsp] the code address
/// ```
macro_rules! entry_of_bits {
    ($name:ident, $kind:ident, $part:ident, $enter:ident, $table:ident $(, $also:ident)?) => {
        #[unsafe(export_name = concat!("__dagsan_miss_", stringify!($name)))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rdx, fs:0",
                "cmp rdx, [rip + {owner}]",
                "jne 9f",
                "mov rax, [rsp]",
                "and eax, -4",
                "or eax, 1",
                // Does it cross the border of a line? Then bits are shifted out.
                "push rcx",
                "mov rdx, rcx",
                "mov ecx, edi",
                "shl rdx, cl",
                "push rdx",
                "shr rdx, cl",
                "cmp rdx, [rsp + 8]",
                "jne 3f",
                "mov rcx, rdi",
                "shr rcx, 6",
                // Was the line last touched by the same code, the same way?
                "movabs rdx, {sites}",
                "cmp [rdx + rcx * 8], eax",
                "jne 5f",
                "2:",
                "pop rax",
                "movabs rdx, {table}",
                "or [rdx + rcx * 8], rax",
                $(
                    concat!("movabs rdx, {", stringify!($also), "}"),
                    "or [rdx + rcx * 8], rax",
                )?
                "pop rcx",
                "9:",
                "ret",
                // Two accesses: what is in the line, and what was shifted out.
                "3:",
                "pop rcx",
                "pop rcx",
                "push rdi",
                "push rax",
                "push rcx",
                "call {part}",
                "pop rax",
                "pop rdx",
                "pop rdi",
                "mov ecx, edi",
                "neg ecx",
                "shr rax, cl",
                "mov rcx, rax",
                "mov eax, edx",
                "add rdi, 63",
                "and rdi, -64",
                "jmp {part}",
                "5:",
                "call {enter}",
                "jnc 2b",
                "pop rcx",
                "pop rcx",
                "mov edx, {kind}",
                "jmp {slow}",
                owner = sym OWNER,
                sites = const SITES + 4 * $kind,
                table = const $table,
                kind = const $kind,
                part = sym $part,
                enter = sym $enter,
                slow = sym slow,
                $($also = const SEEN,)?
            )
        }
    };
}

entry_of_bits!(read, READ, read_part, enter_read, SEEN);
entry_of_bits!(write, WRITE, write_part, enter_write, WRITTEN, seen);

/// Other code than before touches a line: an entry in the log, unless one that the same code made lately can be made to
/// stand for this line too. See `log`.
///
/// ```text
///   in    rcx  the line                         spoiled  flags; eax, unless the carry flag is set
///         eax  the code                         out      carry flag: the log is full
///         rdx  the table of sites, of this kind
///         rbp  the frame of the code
///
///   log   [ next | end | latest entries, by code and mask ]       entry  [ end, more | before | code | caller ]
///           0      8     16                                           0    6      8        16     20
/// ```
macro_rules! enter {
    ($name:ident, $table:ident, $log:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rsi",
                "push r8",
                "push r9",
                "push r10",
                "push r11",
                "mov esi, [rdx + rcx * 8]",
                "xor r9d, r9d",
                "test esi, esi",
                "jz 2f",
                // The line is known. Perhaps the last to touch it was this code, though not the only one.
                "or eax, 2",
                "cmp esi, eax",
                "je 6f",
                "movabs r9, {table}",
                "mov r9, [r9 + rcx * 8]",
                "2:",
                "mov r11d, [rbp + 8]",
                "movabs r10, 0x9e3779b97f4a7c15",
                "imul r10, r9",
                "shr r10, 58",
                "mov esi, eax",
                "shr esi, 4",
                "add r10d, esi",
                "and r10d, {latest} - 1",
                "lea r8, [rip + {log}]",
                "mov rsi, [r8 + 16 + r10 * 8]",
                "cmp rsi, [r8]",
                "jae 3f",
                "cmp [rsi + 16], eax",
                "jne 3f",
                "cmp [rsi + 20], r11d",
                "jne 3f",
                "cmp [rsi + 8], r9",
                "jne 3f",
                "cmp word ptr [rsi + 6], -1",
                "je 3f",
                "mov r9, [rsi]",
                "shl r9, 16",
                "shr r9, 16",
                "cmp r9, rcx",
                "je 4f",
                "mov r9, [rsi + 8]",
                // A new entry.
                "3:",
                "mov rsi, [r8]",
                "cmp rsi, [r8 + 8]",
                "jae 7f",
                "mov [r8 + 16 + r10 * 8], rsi",
                "add qword ptr [r8], 24",
                "lea r10, [rcx + 1]",
                "mov [rsi], r10",
                "mov [rsi + 8], r9",
                "mov [rsi + 16], eax",
                "mov [rsi + 20], r11d",
                "mov [rdx + rcx * 8], eax",
                "jmp 6f",
                // The line after those of the entry.
                "4:",
                "movabs r10, {one_more}",
                "add [rsi], r10",
                "mov [rdx + rcx * 8], eax",
                "6:",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rsi",
                "clc",
                "ret",
                "7:",
                "and eax, -3",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rsi",
                "stc",
                "ret",
                table = const $table,
                log = sym log::$log,
                one_more = const log::ONE_MORE,
                latest = const log::LATEST,
            )
        }
    };
}

enter!(enter_read, SEEN, READS);
enter!(enter_write, WRITTEN, WRITES);

/// The log is full, or keeps more than this file can find out: on in Rust, with every register saved.
///
/// ```text
///   in    rdi, eax, rcx, rbp  as in `part`     spoiled  rax rcx rdx rdi, flags
///         edx  0 read, 1 write
///
///   stack, from high to low:  return address | rsi r8 r9 r10 r11 rbx | … 64-aligned: XSAVE area
/// ```
#[cfg(any(feature = "inline-hooks", feature = "pass"))]
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
        "mov rsi, rcx",
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

/// The same where hooks are called: to the program they are functions like others, which may spoil what functions spoil.
#[cfg(not(any(feature = "inline-hooks", feature = "pass")))]
#[unsafe(naked)]
unsafe extern "C" fn slow() {
    naked_asm!(
        "push rbx",
        "mov rbx, rsp",
        "and rsp, -16",
        "mov rsi, rcx",
        "mov ecx, eax",
        "mov r8, rbp",
        "call {record}",
        "mov rsp, rbx",
        "pop rbx",
        "ret",
        record = sym log::record_miss,
    )
}
