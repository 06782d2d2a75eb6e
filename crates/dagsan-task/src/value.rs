//! The value of a promise or of a future, beside its latch: written once, before the latch opens, and read after it.
//!
//! Not a `OnceLock`: its atomic operations would be compiled into the user's crate, where DagSan sees them, and takes them
//! for an order of their own beside that of the promise.

use std::cell::UnsafeCell;

/// See the module's documentation.
pub(crate) struct Value<T>(UnsafeCell<Option<T>>);

// SAFETY: one thread writes, before the latch opens, and others read, after they have seen it open, which is ordered by
// the latch. The value goes from thread to thread (`Send`), and is shared by several (`Sync`).
unsafe impl<T: Send + Sync> Sync for Value<T> {}

impl<T> Value<T> {
    pub(crate) fn none() -> Value<T> {
        Value(UnsafeCell::new(None))
    }

    /// Sets the value.
    ///
    /// # Safety
    /// The caller is the only one ever to do so, and opens the latch afterwards.
    pub(crate) unsafe fn set(&self, value: T) {
        // SAFETY: nobody else writes, and nobody reads before the latch opens.
        unsafe { *self.0.get() = Some(value) };
    }

    /// The value, if there is one.
    ///
    /// # Safety
    /// The caller has seen the latch open.
    pub(crate) unsafe fn get(&self) -> Option<&T> {
        // SAFETY: it was written before the latch opened, and never will be again.
        unsafe { (*self.0.get()).as_ref() }
    }
}
