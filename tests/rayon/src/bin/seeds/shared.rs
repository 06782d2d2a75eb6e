//! What people write to get around the borrow checker.

use std::cell::UnsafeCell;

/// A pointer that may be sent to other threads, "because I know what I am doing".
#[derive(Debug)]
pub struct Raw<T>(*mut T);

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Raw<T> {
        *self
    }
}

impl<T> Copy for Raw<T> {}

// SAFETY: claimed, not shown: whether the uses are disjoint is what these programs are about.
unsafe impl<T> Send for Raw<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Raw<T> {}

impl<T> Raw<T> {
    /// To the first element.
    pub fn new(elements: &mut [T]) -> Raw<T> {
        Raw(elements.as_mut_ptr())
    }

    /// The element of this number.
    ///
    /// # Safety
    /// There is one, and nobody else uses it.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn at(&self, index: usize) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.add(index) }
    }

    /// Some elements.
    ///
    /// # Safety
    /// As [`Raw::at`].
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, start: usize, length: usize) -> &mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), length) }
    }
}

/// A cell that threads share without a lock.
#[derive(Debug, Default)]
pub struct Shared<T>(UnsafeCell<T>);

// SAFETY: as for `Raw`.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub const fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }

    /// What is in it.
    ///
    /// # Safety
    /// Nobody else uses it.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn get(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }
}
