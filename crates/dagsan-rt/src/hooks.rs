//! The calls that ThreadSanitizer's pass inserts before plain accesses: `__tsan_read8(address)` and its kin. DagSan's own
//! pass writes the same in line instead, and calls `miss` itself.
//!
//! The fast path asks the running strand's access set whether it knows these bytes: a shift, a load and a comparison
//! with a constant. Only what is new, and only while something can be parallel, goes on to `miss`.
//!
//! There are two forms of each hook. With the feature `inline-hooks` it is Rust, which fat LTO inlines into the program
//! and optimises with it; `always`, because a hook and its caller differ in the attribute that asks for hooks, which
//! keeps LLVM from inlining anything weaker. Without the feature it is a naked function that is called, and leaves by a
//! jump. In both, what `miss` finds on the stack is an address in the code that made the access.
//!
//! Aligned hooks promise natural alignment, except for 16 bytes, which may be aligned to 8 only: the bits of 16 bytes are
//! then two neighbouring entries all the same, even across lines. An access that is misaligned nevertheless (which
//! is undefined behaviour in the program) is taken for the aligned one below it.

// The compiler warns that the attribute does nothing for functions that are exported; it does what LTO needs.
#![expect(unused_attributes)]

/// All plain hooks: name, table, the entries to look at, bytes, whether they are whole entries, where to go if new.
macro_rules! hooks {
    ($hook:ident) => {
        $hook!(__tsan_read1, SEEN, u8, 1, false, read1);
        $hook!(__tsan_read2, SEEN, u8, 2, false, read2);
        $hook!(__tsan_read4, SEEN, u8, 4, false, read4);
        $hook!(__tsan_read8, SEEN, u8, 8, true, read8);
        $hook!(__tsan_read16, SEEN, u16, 16, true, read16);
        $hook!(__tsan_write1, WRITTEN, u8, 1, false, write1);
        $hook!(__tsan_write2, WRITTEN, u8, 2, false, write2);
        $hook!(__tsan_write4, WRITTEN, u8, 4, false, write4);
        $hook!(__tsan_write8, WRITTEN, u8, 8, true, write8);
        $hook!(__tsan_write16, WRITTEN, u16, 16, true, write16);
        $hook!(__tsan_unaligned_read2, SEEN, u16, 2, false, read2);
        $hook!(__tsan_unaligned_read4, SEEN, u16, 4, false, read4);
        $hook!(__tsan_unaligned_read8, SEEN, u16, 8, false, read8);
        $hook!(__tsan_unaligned_read16, SEEN, u32, 16, false, read16);
        $hook!(__tsan_unaligned_write2, WRITTEN, u16, 2, false, write2);
        $hook!(__tsan_unaligned_write4, WRITTEN, u16, 4, false, write4);
        $hook!(__tsan_unaligned_write8, WRITTEN, u16, 8, false, write8);
        $hook!(__tsan_unaligned_write16, WRITTEN, u32, 16, false, write16);
        // Volatile accesses are accesses.
        $hook!(__tsan_volatile_read1, SEEN, u8, 1, false, read1);
        $hook!(__tsan_volatile_read2, SEEN, u8, 2, false, read2);
        $hook!(__tsan_volatile_read4, SEEN, u8, 4, false, read4);
        $hook!(__tsan_volatile_read8, SEEN, u8, 8, true, read8);
        $hook!(__tsan_volatile_read16, SEEN, u16, 16, true, read16);
        $hook!(__tsan_volatile_write1, WRITTEN, u8, 1, false, write1);
        $hook!(__tsan_volatile_write2, WRITTEN, u8, 2, false, write2);
        $hook!(__tsan_volatile_write4, WRITTEN, u8, 4, false, write4);
        $hook!(__tsan_volatile_write8, WRITTEN, u8, 8, true, write8);
        $hook!(__tsan_volatile_write16, WRITTEN, u16, 16, true, write16);
        $hook!(__tsan_unaligned_volatile_read2, SEEN, u16, 2, false, read2);
        $hook!(__tsan_unaligned_volatile_read4, SEEN, u16, 4, false, read4);
        $hook!(__tsan_unaligned_volatile_read8, SEEN, u16, 8, false, read8);
        $hook!(__tsan_unaligned_volatile_read16, SEEN, u32, 16, false, read16);
        $hook!(__tsan_unaligned_volatile_write2, WRITTEN, u16, 2, false, write2);
        $hook!(__tsan_unaligned_volatile_write4, WRITTEN, u16, 4, false, write4);
        $hook!(__tsan_unaligned_volatile_write8, WRITTEN, u16, 8, false, write8);
        $hook!(__tsan_unaligned_volatile_write16, WRITTEN, u32, 16, false, write16);
        // A write covers the read before it.
        $hook!(__tsan_read_write1, WRITTEN, u8, 1, false, write1);
        $hook!(__tsan_read_write2, WRITTEN, u8, 2, false, write2);
        $hook!(__tsan_read_write4, WRITTEN, u8, 4, false, write4);
        $hook!(__tsan_read_write8, WRITTEN, u8, 8, true, write8);
        $hook!(__tsan_read_write16, WRITTEN, u16, 16, true, write16);
        $hook!(__tsan_unaligned_read_write2, WRITTEN, u16, 2, false, write2);
        $hook!(__tsan_unaligned_read_write4, WRITTEN, u16, 4, false, write4);
        $hook!(__tsan_unaligned_read_write8, WRITTEN, u16, 8, false, write8);
        $hook!(__tsan_unaligned_read_write16, WRITTEN, u32, 16, false, write16);
        // Pointers to tables of functions; the second argument of the update, the new value, does not matter.
        $hook!(__tsan_vptr_read, SEEN, u8, 8, true, read8);
        $hook!(__tsan_vptr_update, WRITTEN, u8, 8, true, write8);
    };
}

#[cfg(feature = "inline-hooks")]
mod inlined {
    use std::arch::asm;

    use crate::layout::{SEEN, WRITTEN};
    use crate::miss;
    use crate::tables::ACTIVE;

    /// Four entries of the tables of this thread's worker.
    ///
    /// # Safety
    ///
    /// It is where a table has entries for addresses of the program.
    #[inline(always)]
    unsafe fn entries(at: usize) -> u32 {
        let entries: u32;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("mov {0:e}, gs:[{1}]", out(reg) entries, in(reg) at, options(pure, readonly, nostack, preserves_flags));
        };
        entries
    }

    /// Can anything be parallel? Not by the thread-local variable, which would cost a register more.
    #[inline(always)]
    fn is_active() -> bool {
        let active: u8;
        // SAFETY: the page below the tables is there as long as these are.
        unsafe {
            asm!("mov {0}, gs:[{1}]", out(reg_byte) active, const ACTIVE, options(readonly, nostack, preserves_flags));
        };
        active != 0
    }

    /// An access of `$bytes`: these bits of the entries from that of its address on, read as a `$T`.
    macro_rules! hook {
        ($name:ident, $table:ident, $T:ty, $bytes:literal, $aligned:literal, $miss:ident) => {
            #[doc = "See the module's documentation."]
            #[unsafe(no_mangle)]
            #[inline(always)]
            pub extern "C" fn $name(address: usize) {
                const ALL: $T = ((1u64 << $bytes) - 1) as $T;
                // SAFETY: the tables cover every address (`layout`), and are there from the start of the program
                // (`start`). Other threads may write here at the same time; what they lead this one to believe
                // does not matter, as only the thread that writes is checked.
                let known = unsafe { entries($table + (address >> 3)) };
                let known = (if $aligned { known } else { known >> (address & 7) }) as $T;
                if known & ALL != ALL && is_active() {
                    // SAFETY: `miss` keeps all registers but those named here, and the stack is aligned for a call
                    // since the block does not say `nostack`.
                    unsafe {
                        asm!("call {miss}", miss = sym miss::$miss, inout("rdi") address => _,
                            out("rax") _, out("rcx") _, out("rdx") _);
                    }
                }
            }
        };
    }

    hooks!(hook);
}

#[cfg(not(feature = "inline-hooks"))]
mod called {
    use crate::layout::{SEEN, WRITTEN};
    use crate::miss;
    use crate::tables::ACTIVE;

    /// An access of `$bytes`: these bits of the four entries from that of its address on.
    macro_rules! hook {
        ($name:ident, $table:ident, $T:ty, $bytes:literal, $aligned:literal, $miss:ident) => {
            #[doc = "See the module's documentation."]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub extern "C" fn $name(address: usize) {
                std::arch::naked_asm!(
                    "mov rax, rdi",
                    "shr rax, 3",
                    "movabs rcx, {table}",
                    "mov eax, gs:[rax + rcx]",
                    "mov ecx, edi",
                    "and ecx, 7",
                    "shr eax, cl",
                    "not eax",
                    "test eax, {all}",
                    "jz 2f",
                    "cmp byte ptr gs:[{active}], 0",
                    "jne {miss}",
                    "2:",
                    "ret",
                    table = const $table,
                    all = const ((1u64 << $bytes) - 1) as u32,
                    active = const ACTIVE,
                    miss = sym miss::$miss,
                )
            }
        };
    }

    hooks!(hook);
}

/// Nothing to do: the runtime starts before the program's own constructors (`session`).
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {}

/// Call stacks are found through frame pointers; `cargo dagsan` asks the compiler to leave this call out.
#[unsafe(no_mangle)]
#[inline(always)]
pub extern "C" fn __tsan_func_entry(_caller: usize) {}

/// See [`__tsan_func_entry`].
#[unsafe(no_mangle)]
#[inline(always)]
pub extern "C" fn __tsan_func_exit() {}
