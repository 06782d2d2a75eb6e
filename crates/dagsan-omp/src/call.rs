//! Functions with a variable number of arguments, in both directions: `__kmpc_fork_call` is called with what a region captures, and calls the outlined
//! function with it. All of these arguments are as large as a pointer.

use std::arch::global_asm;
use std::ffi::c_void;

/// The outlined function of a region. The first two arguments are the thread's numbers.
pub type Micro = unsafe extern "C" fn();

// __kmpc_fork_call(ident, count, function, …): three of the arguments are in registers, the others on the stack of the caller. The frame is as that of any
// other function, so that call stacks go through it.
global_asm!(
    ".macro variadic name, to",
    ".globl \\name",
    ".type \\name, @function",
    "\\name:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "sub rsp, 32",
    "mov [rsp], rcx",
    "mov [rsp + 8], r8",
    "mov [rsp + 16], r9",
    "mov rcx, rsp",
    "lea r8, [rbp + 16]",
    "mov r9, rbp",
    "call \\to",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size \\name, . - \\name",
    ".endm",
    "variadic __kmpc_fork_call, {fork}",
    "variadic __kmpc_fork_teams, {teams}",
    fork = sym crate::fork::fork,
    teams = sym crate::fork::teams,
);

// dagsan_omp_call(function, count, arguments, &thread, &bound): calls it with the two pointers and `count` arguments.
global_asm!(
    ".type dagsan_omp_call, @function",
    "dagsan_omp_call:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rbx",
    "push r12",
    ".cfi_offset rbx, -24",
    ".cfi_offset r12, -32",
    "mov r10, rdi",
    "mov rbx, rsi",
    "mov r12, rdx",
    "mov rdi, rcx",
    "mov rsi, r8",
    // Those beyond the fourth are on the stack, which stays aligned to 16.
    "mov rax, rbx",
    "sub rax, 4",
    "jle 2f",
    "test rax, 1",
    "je 1f",
    "sub rsp, 8",
    "1:",
    "push qword ptr [r12 + 8 * rbx - 8]",
    "dec rbx",
    "cmp rbx, 4",
    "jg 1b",
    "2:",
    "cmp rbx, 4",
    "jl 3f",
    "mov r9, [r12 + 24]",
    "3:",
    "cmp rbx, 3",
    "jl 3f",
    "mov r8, [r12 + 16]",
    "3:",
    "cmp rbx, 2",
    "jl 3f",
    "mov rcx, [r12 + 8]",
    "3:",
    "cmp rbx, 1",
    "jl 3f",
    "mov rdx, [r12]",
    "3:",
    "xor eax, eax",
    "call r10",
    "lea rsp, [rbp - 16]",
    "pop r12",
    "pop rbx",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size dagsan_omp_call, . - dagsan_omp_call",
);

unsafe extern "C-unwind" {
    fn dagsan_omp_call(
        micro: Micro,
        count: usize,
        arguments: *const *mut c_void,
        thread: *const i32,
        bound: *const i32,
    );
}

/// Calls the outlined function of a region.
///
/// # Safety
///
/// It takes these arguments.
pub unsafe fn call(micro: Micro, arguments: &[*mut c_void], number: usize) {
    let (thread, bound) = (number as i32, 0);
    // SAFETY: the caller's promise.
    unsafe {
        dagsan_omp_call(micro, arguments.len(), arguments.as_ptr(), &raw const thread, &raw const bound);
    };
}
