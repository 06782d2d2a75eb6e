//! Where the stack of this thread is.
//!
//! All tasks of a thread run on its one stack, each below the frames of those that wait for it. What DagSan must know of
//! a task is where its part begins, and where the stack ends at the latest:
//!
//! ```text
//!   ┌──────────────────────────┐
//!   │ frames of before          │   shared: tasks may have references to them
//!   ├──────────────────────────┤ high, an address in the frame that runs the task
//!   │ frames of the task        │   forgotten when it ends: the next task will use the same addresses
//!   └──────────────────────────┘ low, where the stack of the thread ends
//! ```

/// An address in a frame: all that the function calls from there on is below.
macro_rules! here {
    () => {{
        let local = 0u8;
        &raw const local as usize
    }};
}
pub(crate) use here;

/// The lowest address of this thread's stack; the highest one there is if it cannot be told, so that nothing is taken
/// for a task's own.
#[cfg(not(dagsan))]
pub(crate) fn low() -> usize {
    usize::MAX
}

#[cfg(dagsan)]
pub(crate) use self::limits::low;

#[cfg(dagsan)]
mod limits {
    use std::cell::Cell;
    use std::ffi::{c_int, c_ulong, c_void};
    use std::mem::MaybeUninit;

    /// glibc's, on x86-64.
    #[repr(C)]
    struct Attributes([c_ulong; 7]);

    unsafe extern "C" {
        safe fn pthread_self() -> c_ulong;
        fn pthread_getattr_np(thread: c_ulong, attributes: *mut Attributes) -> c_int;
        fn pthread_attr_getstack(
            attributes: *const Attributes,
            low: *mut *mut c_void,
            size: *mut usize,
        ) -> c_int;
        fn pthread_attr_destroy(attributes: *mut Attributes) -> c_int;
    }

    thread_local! {
        static LOW: Cell<usize> = const { Cell::new(0) };
    }

    /// See above.
    pub(crate) fn low() -> usize {
        match LOW.get() {
            0 => {
                let low = ask();
                LOW.set(low);
                low
            }
            low => low,
        }
    }

    #[cold]
    fn ask() -> usize {
        let mut attributes = MaybeUninit::uninit();
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: the attributes are initialised by the first call, read by the second, destroyed by the third; nobody
        // looks at them if the first fails.
        unsafe {
            if pthread_getattr_np(pthread_self(), attributes.as_mut_ptr()) != 0 {
                return usize::MAX;
            }
            if pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) != 0 {
                low = std::ptr::without_provenance_mut(usize::MAX);
            }
            pthread_attr_destroy(attributes.as_mut_ptr());
        }
        low as usize
    }
}
