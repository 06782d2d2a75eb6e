//! A matrix that tasks write to at the same time, each to a part of its own.
//!
//! Parts of a matrix are not slices, so that the compiler cannot see that they do not overlap. Whoever writes such a
//! program takes it upon himself; whether he is right is what DagSan is asked.

use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

/// A matrix, row by row, whose elements are not guarded by the compiler.
pub struct Shared<'a, T> {
    first: *mut T,
    width: usize,
    height: usize,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: the matrix is lent to this type alone, and its methods leave it to their callers that no two tasks are in each
// other's way.
unsafe impl<T: Send + Sync> Sync for Shared<'_, T> {}
// SAFETY: as a mutable reference to the elements, which it stands for.
unsafe impl<T: Send> Send for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// Shares a matrix with rows of that width.
    pub fn new(elements: &'a mut [T], width: usize) -> Shared<'a, T> {
        let height = elements.len() / width;
        Shared { first: elements.as_mut_ptr(), width, height, owner: PhantomData }
    }

    /// Part of a row, to read.
    ///
    /// # Safety
    /// Nobody writes to these elements while the slice is used.
    pub unsafe fn row(&self, row: usize, columns: Range<usize>) -> &[T] {
        // SAFETY: `at` has checked that the elements are in the matrix; that nobody writes them is the caller's promise.
        unsafe { slice::from_raw_parts(self.at(row, &columns), columns.len()) }
    }

    /// Part of a row, to write.
    ///
    /// # Safety
    /// Nobody else touches these elements while the slice is used.
    #[expect(clippy::mut_from_ref, reason = "that is what the type is for, see the promise of the caller")]
    pub unsafe fn row_mut(&self, row: usize, columns: Range<usize>) -> &mut [T] {
        // SAFETY: `at` has checked that the elements are in the matrix; that they are the caller's alone is his promise.
        unsafe { slice::from_raw_parts_mut(self.at(row, &columns), columns.len()) }
    }

    fn at(&self, row: usize, columns: &Range<usize>) -> *mut T {
        assert!(row < self.height && columns.start <= columns.end && columns.end <= self.width);
        // SAFETY: the element is in the matrix, or just behind a row of it, as has been checked.
        unsafe { self.first.add(row * self.width + columns.start) }
    }
}
