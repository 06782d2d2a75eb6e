//! Memory that tasks share without asking, and helpers to start tasks.
//!
//! Tasks of dagsan-task run on one thread, and threads take turns when they are checked. So what the points do with this memory is never a
//! data race of the language, whatever DagSan has to say about other schedules.

use std::cell::UnsafeCell;
use std::hint::black_box;

use dagsan_task::finish;

/// A value that everybody may change.
#[derive(Default)]
pub struct Shared<T: ?Sized>(UnsafeCell<T>);

// SAFETY: the tasks of a point run on one thread; threads that share it take turns when they are checked, which is all that is done with
// them.
unsafe impl<T: ?Sized> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized> Send for Shared<T> {}

impl<T> Shared<T> {
    pub const fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }
}

impl<T: ?Sized> Shared<T> {
    /// Where the value is.
    #[inline(always)]
    pub const fn at(&self) -> *mut T {
        self.0.get()
    }
}

/// A pointer that may go to other tasks.
pub struct Pointer<T>(pub *mut T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Pointer<T> {
        *self
    }
}

impl<T> Copy for Pointer<T> {}

// SAFETY: as for `Shared`.
unsafe impl<T> Send for Pointer<T> {}
// SAFETY: as for `Shared`.
unsafe impl<T> Sync for Pointer<T> {}

impl<T> Pointer<T> {
    /// Closures capture the whole, not the field.
    #[inline(always)]
    pub fn at(self) -> *mut T {
        self.0
    }
}

/// A buffer, and where it is.
pub fn buffer<T: Clone>(value: T, len: usize) -> (Vec<T>, Pointer<T>) {
    let mut buffer = black_box(vec![value; len]);
    let pointer = Pointer(buffer.as_mut_ptr());
    (buffer, pointer)
}

/// The element of a buffer at an index.
pub fn at<T>(buffer: Pointer<T>, index: usize) -> Pointer<T> {
    // SAFETY: points keep to their buffers.
    Pointer(unsafe { buffer.at().add(index) })
}

/// Reads what is `at()` a place, with one access; it counts as made where the macro is used.
#[collapse_debuginfo(yes)]
macro_rules! load {
    ($place:expr) => {
        std::hint::black_box(
            // SAFETY: the memory is alive, and no other thread uses it.
            unsafe { *$place.at() },
        )
    };
}

/// Writes what is `at()` a place.
#[collapse_debuginfo(yes)]
macro_rules! store {
    ($place:expr, $value:expr) => {{
        let value = $value;
        // SAFETY: the memory is alive, and no other thread uses it.
        unsafe { *$place.at() = value };
    }};
}

/// Starts a task in a scope; what the last expression gives is dropped.
#[collapse_debuginfo(yes)]
macro_rules! spawn {
    ($scope:expr, $($body:tt)*) => {
        $scope.spawn(move |_| {
            _ = { $($body)* };
            // After a call at the very end, optimised code would not come back here, and call stacks not show it.
            std::hint::black_box(());
        })
    };
}

pub(crate) use {load, spawn, store};

/// Three parallel tasks that do the same, one after the other in this run.
pub fn siblings(body: impl Fn() + Send + Sync) {
    let body = &body;
    finish(|scope| {
        for _ in 0..3 {
            scope.spawn(move |_| body());
        }
    });
}
