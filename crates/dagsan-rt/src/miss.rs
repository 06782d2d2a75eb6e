//! What a hook, or a mark in line (`dagsan-pass`), calls when its bytes are new to the running strand.
//!
//! Written in assembly so that it can keep all registers but four: the hooks are inlined everywhere, and a call that
//! spoils registers would make the code around every access slower, whether the call is made or not.
//!
//! ```text
//!   hook ── new bytes ──► the bytes of one line
//!                           │ is the line in the log of the strand?
//!                           ├─ yes ─► set the bits                                        (marks in line do that themselves)
//!                           ├─ no, but kept ─► nothing                                    (`shared`)
//!                           ├─ no ──► `enter`: in the log (`log`), then set the bits      (once per line)
//!                           └─ the log is full, or codes are wanted ─► `slow`: save all registers, `log::record`
//! ```
//!
//! A line is in the log if any of its bits is set: of either kind for a read, as a write's entry stands for reads of other bytes
//! of the line too, and of a write for a write.
//!
//! The code address is the return address of the call in the hook, which lies in the code that the hook was inlined
//! into: debug information leads from there to the source line of the access. Its low half identifies it, as a
//! program's image is smaller than 4 GiB. Its two lowest bits are used for other things (`log`): a call is longer than four
//! bytes. The caller of the function is the return address in its frame: instrumented code has frame pointers.
//!
//! A thread that does not run the tasks leaves at once.

use std::arch::naked_asm;

use crate::layout::{KEPT, SEEN, SITES, WRITTEN};
use crate::log::{self, Log};
use crate::state::{LOGS, OWNER};
use crate::tables::SETTER;

const READ: usize = 0;
const WRITE: usize = 1;

/// An entry for accesses of so many bytes.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         rbp  the frame of the code
///         [rsp] the code address
/// ```
macro_rules! entries {
    ($($name:ident $bytes:literal $bits:ident;)*) => {
        $(
            #[unsafe(export_name = concat!("__dagsan_miss_", stringify!($name)))]
            #[unsafe(naked)]
            pub(crate) unsafe extern "C" fn $name() {
                naked_asm!("mov ecx, {all}", "jmp {bits}", all = const (1u32 << $bytes) - 1, bits = sym $bits)
            }
        )*
    };
}

entries! {
    read1 1 read; read2 2 read; read4 4 read; read8 8 read; read16 16 read;
    write1 1 write; write2 2 write; write4 4 write; write8 8 write; write16 16 write;
}

/// An entry for accesses of at most 64 bytes: they are in two lines at most.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         rcx  the bytes, bit 0 for that at the address, which is set
///         rbp  the frame of the code
///         [rsp] the code address
/// ```
macro_rules! entry_of_bits {
    ($name:ident, $part:ident) => {
        #[unsafe(export_name = concat!("__dagsan_miss_", stringify!($name)))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                // Does it cross the border of a line?
                "bsr rdx, rcx",
                "mov eax, edi",
                "and eax, 63",
                "add edx, eax",
                "mov rax, [rsp]",
                "and eax, -4",
                "or eax, 1",
                "cmp edx, 63",
                "jbe {part}",
                // Two accesses: what is in the line, and what is shifted out.
                "push rdi",
                "push rax",
                "push rcx",
                "call {part}",
                "pop rdx",
                "pop rax",
                "pop rdi",
                "mov ecx, edi",
                "neg ecx",
                "shr rdx, cl",
                "mov rcx, rdx",
                "add rdi, 63",
                "and rdi, -64",
                "jmp {part}",
                part = sym $part,
            )
        }
    };
}

entry_of_bits!(read, read_part);
entry_of_bits!(write, write_part);

/// The bytes of an access in one line: of its address. What is beyond the line does not count.
///
/// The bits of a line are read and written as one word, always: the processor passes on to a load what is still being stored
/// only if the store has all of it. So a loop over memory need not wait for what it did last.
///
/// ```text
///   in    rdi  the address                      spoiled  rax rcx rdx rdi, flags
///         eax  the code (`log`)
///         rcx  the bytes, bit 0 for that at the address
///         rbp  the frame of the code
/// ```
macro_rules! part {
    ($name:ident, $kind:ident, $enter:ident, $table:ident $(, also $also:ident)? $(, unless $kept:ident)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rdx, rcx",
                "mov ecx, edi",
                // By the lowest six bits of the address.
                "shl rdx, cl",
                "shr rdi, 6",
                "mov rcx, fs:0",
                "cmp rcx, gs:[{setter}]",
                "jne 7f",
                "movabs rcx, {table}",
                "cmp qword ptr gs:[rcx + rdi * 8], 0",
                "je 5f",
                "2:",
                "or gs:[rcx + rdi * 8], rdx",
                $(
                    concat!("movabs rcx, {", stringify!($also), "}"),
                    "or gs:[rcx + rdi * 8], rdx",
                )?
                "9:",
                "ret",
                // It is not in the log. Somebody else may stand for who reads it.
                "5:",
                $(
                    concat!("movabs rcx, {", stringify!($kept), "}"),
                    "mov rcx, gs:[rcx + rdi * 8]",
                    "not rcx",
                    "test rcx, rdx",
                    "jz 9b",
                    "movabs rcx, {table}",
                )?
                "call {enter}",
                "jnc 2b",
                "6:",
                "mov ecx, {kind}",
                "jmp {slow}",
                // Codes are wanted, or this is another thread. If the line was last touched by the same code, nothing is new but bits.
                "7:",
                "cmp rcx, gs:[{owner}]",
                "jne 9b",
                "movabs rcx, {sites}",
                "mov ecx, gs:[rcx + rdi * 8]",
                "and ecx, {but_later}",
                "cmp ecx, eax",
                "jne 6b",
                "movabs rcx, {table}",
                "jmp 2b",
                setter = const SETTER,
                owner = const OWNER,
                sites = const SITES + 4 * $kind,
                but_later = const !log::LATER as i32,
                table = const $table,
                kind = const $kind,
                enter = sym $enter,
                slow = sym slow,
                $($also = const SEEN,)?
                $($kept = const KEPT,)?
            )
        }
    };
}

part!(read_part, READ, enter_read, SEEN, unless kept);
part!(write_part, WRITE, enter_write, WRITTEN, also seen);

/// A line that is new to the strand: an entry in the log, unless one that the same code made lately can be made to
/// stand for this line too. See `log`.
///
/// ```text
///   in    rdi  the line                         spoiled  flags
///         eax  the code                         out      carry flag: the log is full
///         rbp  the frame of the code
///
///   log   [ next | end | latest entries, by code ]       entry  [ end, more | code | caller ]
///           0      8     16                                  0    6      8      12
/// ```
macro_rules! enter {
    ($name:ident, $kind:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rsi",
                "push r8",
                "push r9",
                "push r10",
                "push r11",
                // The code and its caller.
                "mov r9d, [rbp + 8]",
                "shl r9, 32",
                "or r9, rax",
                "mov r10d, eax",
                "shr r10d, 4",
                "and r10d, {latest} - 1",
                "mov r8, gs:[-8]",
                "add r8, {log}",
                "mov rsi, [r8 + 16 + r10 * 8]",
                "cmp rsi, [r8]",
                "jae 3f",
                "cmp [rsi + 8], r9",
                "jne 3f",
                "cmp word ptr [rsi + 6], -1",
                "je 3f",
                "mov r11, [rsi]",
                "shl r11, 16",
                "shr r11, 16",
                "cmp r11, rdi",
                "jne 3f",
                // The line after those of the entry.
                "movabs r11, {one_more}",
                "add [rsi], r11",
                "jmp 6f",
                // A new entry.
                "3:",
                "mov rsi, [r8]",
                "cmp rsi, [r8 + 8]",
                "jae 7f",
                "mov [r8 + 16 + r10 * 8], rsi",
                "add qword ptr [r8], 16",
                "lea r11, [rdi + 1]",
                "mov [rsi], r11",
                "mov [rsi + 8], r9",
                "6:",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rsi",
                "clc",
                "ret",
                "7:",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rsi",
                "stc",
                "ret",
                log = const LOGS + ($kind * size_of::<Log>()) as isize,
                one_more = const log::ONE_MORE,
                latest = const log::LATEST,
            )
        }
    };
}

enter!(enter_read, READ);
enter!(enter_write, WRITE);

/// The log is full, or keeps more than this file can find out: on in Rust, with every register saved.
///
/// ```text
///   in    rdi  the line                         spoiled  rax rcx rdx rdi, flags
///         rdx  its bytes
///         ecx  0 read, 1 write
///         eax  the code (`log`)
///         rbp  the frame of the code
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
        "mov rsi, rdx",
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
        "mov edx, ecx",
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
        "mov rsi, rdx",
        "mov edx, ecx",
        "mov ecx, eax",
        "mov r8, rbp",
        "call {record}",
        "mov rsp, rbx",
        "pop rbx",
        "ret",
        record = sym log::record_miss,
    )
}
