//! What the examples share: a vector that all tasks may write to.
//!
//! Programs with tasks often have a type like this one: safe to look at, with `unsafe` inside, and a rule about
//! its use that no compiler checks. Where an example breaks the rule, DagSan shows it.

use std::cell::UnsafeCell;

/// A vector whose elements are read and written through a shared reference.
///
/// The rule: while a task writes an element, no other task may touch that element.
pub struct SharedVec<T> {
    elements: Vec<UnsafeCell<T>>,
}

// SAFETY: tasks share the vector, and the rule above keeps them off each other's elements. Nobody enforces the
// rule: this is a claim about every caller.
unsafe impl<T: Send> Sync for SharedVec<T> {}

impl<T: Copy> SharedVec<T> {
    /// A vector with `length` times the same value.
    pub fn new(value: T, length: usize) -> SharedVec<T> {
        SharedVec { elements: (0..length).map(|_| UnsafeCell::new(value)).collect() }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Reads an element.
    pub fn get(&self, index: usize) -> T {
        // SAFETY: nobody writes the element now, by the rule of the type.
        unsafe { *self.elements[index].get() }
    }

    /// Writes an element.
    pub fn set(&self, index: usize, value: T) {
        // SAFETY: nobody else touches the element now, by the rule of the type.
        unsafe { *self.elements[index].get() = value }
    }
}
