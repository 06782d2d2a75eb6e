//! The few words that the fast path and the assembly share with the rest of the runtime.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// A word that the thread of the tasks writes, and that every thread may read at any time. The assembly reads it as a
/// byte.
///
/// Relaxed throughout: a thread that does not run the tasks is content with the value of this or of an earlier moment,
/// and nothing that it reads afterwards depends on it.
#[repr(transparent)]
pub struct Flag(AtomicBool);

impl Flag {
    pub const fn new() -> Flag {
        Flag(AtomicBool::new(false))
    }

    #[inline(always)]
    pub fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    pub fn set(&self, value: bool) {
        self.0.store(value, Relaxed);
    }
}

/// The thread that has something, by its thread pointer; 0 if nobody has it. The assembly reads it as a word.
#[repr(transparent)]
pub struct Thread(AtomicUsize);

impl Thread {
    pub const fn nobody() -> Thread {
        Thread(AtomicUsize::new(0))
    }

    /// Who has it. Relaxed: a thread asks whether it is itself, and it alone changes the answer to that.
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// This thread has it from here on, unless somebody does, who is then named.
    #[inline(always)]
    pub fn take(&self) -> Result<(), usize> {
        // Acquire: what the thread before did with what it had is seen.
        self.0.compare_exchange(0, this_thread(), Acquire, Relaxed).map(drop)
    }

    /// That thread has it from here on. It, or nobody, had it so far.
    pub fn set(&self, thread: usize) {
        // Release: as for `leave`.
        self.0.store(thread, Release);
    }

    /// Nobody has it any more.
    #[inline(always)]
    pub fn leave(&self) {
        // Release: the next one sees what this one did.
        self.0.store(0, Release);
    }
}

/// Can anything be parallel to what runs now? If not, accesses are not recorded. The code of `dagsan-pass` reads it, as a byte.
#[unsafe(export_name = "__dagsan_active")]
pub static ACTIVE: Flag = Flag::new();

/// The thread whose marks may set bits of lines that are in the log of its strand: the one that runs the tasks, while something can be
/// parallel. Nobody's if the code of each access is wanted ([`EXACT`]). The code of `dagsan-pass` reads it, as a word.
#[unsafe(export_name = "__dagsan_setter")]
pub static SETTER: Thread = Thread::nobody();

/// Is the code of each access wanted, and not only that of the first to each line?
pub static EXACT: Flag = Flag::new();

/// The thread that runs the tasks.
pub static OWNER: Thread = Thread::nobody();

/// Says whether anything can be parallel from here on to what the thread of the tasks does.
#[inline(always)]
pub fn set_active(active: bool) {
    ACTIVE.set(active);
    SETTER.0.store(if active && !EXACT.get() { OWNER.get() } else { 0 }, Relaxed);
}

/// This thread, by its thread pointer.
#[inline(always)]
pub fn this_thread() -> usize {
    let pointer: usize;
    // SAFETY: the x86-64 ABI keeps the thread pointer at fs:0.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags, pure));
    };
    pointer
}

/// Is this the thread that runs the tasks?
#[inline(always)]
pub fn is_owner() -> bool {
    OWNER.get() == this_thread()
}
