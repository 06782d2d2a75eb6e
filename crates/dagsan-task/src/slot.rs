//! Where the result of a spawned task is left, if the task has ended after its parent went on.
//!
//! The parent makes the slot while the child waits, and may give it up before the child fills it: there is no order
//! between what the two do to it. So nothing here is generic or inlined: it is compiled without hooks, and DagSan does not
//! see it. What it does see is that whoever is last frees the slot; that races with nothing, as no access is known.

use std::cell::Cell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::rc::Rc;
use std::slice;

type Bytes = Box<[MaybeUninit<u8>]>;

/// A handle to a slot; parent and child have one each, on the same thread.
pub(crate) struct Slot(ManuallyDrop<Rc<Cell<Option<Bytes>>>>);

impl Slot {
    /// A new slot, for the one and for the other.
    #[inline(never)]
    pub(crate) fn new() -> (Slot, Slot) {
        let slot = Rc::default();
        (Slot(ManuallyDrop::new(Rc::clone(&slot))), Slot(ManuallyDrop::new(slot)))
    }

    /// Moves a value into the slot.
    ///
    /// # Safety
    /// `value` points to `size` bytes, which are not used as a value again.
    #[inline(never)]
    pub(crate) unsafe fn fill(&self, value: *const u8, size: usize) {
        // SAFETY: the caller guarantees it; any byte is a `MaybeUninit`.
        let bytes = unsafe { slice::from_raw_parts(value.cast::<MaybeUninit<u8>>(), size) };
        self.0.set(Some(bytes.into()));
    }

    /// Moves the value out of the slot. Says whether there was one.
    ///
    /// # Safety
    /// `into` points to as many bytes as the value has.
    #[inline(never)]
    pub(crate) unsafe fn take(&self, into: *mut u8) -> bool {
        let Some(bytes) = self.0.take() else { return false };
        // SAFETY: the caller guarantees it, and a box overlaps nothing.
        unsafe { into.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
        true
    }
}

impl Drop for Slot {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
