//! The few words that the fast path and the assembly share with the rest of the runtime.

use std::cell::UnsafeCell;

/// A word that the thread of the tasks writes, and that every thread may read at any time.
///
/// Not an atomic: hooks must be able to keep it in a register over a loop without task events.
#[repr(transparent)]
pub struct Shared<T>(UnsafeCell<T>);

// SAFETY: written by one thread only, the one that runs the tasks; others read a whole word, of this or of an
// earlier moment, and are content with either.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub const fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }

    #[inline(always)]
    pub fn get(&self) -> T {
        // SAFETY: see the `Sync` implementation.
        unsafe { *self.0.get() }
    }

    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: see the `Sync` implementation.
        unsafe { *self.0.get() = value }
    }
}

/// Can anything be parallel to what runs now? If not, accesses are not recorded.
pub static ACTIVE: Shared<bool> = Shared::new(false);

/// The thread that runs the tasks, by its thread pointer; 0 if there is none.
pub static OWNER: Shared<usize> = Shared::new(0);

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
