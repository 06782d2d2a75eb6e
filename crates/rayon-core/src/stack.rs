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

/// The lowest address of this thread's stack; the highest one there is if it cannot be told, so that nothing is taken for
/// a task's own.
pub(crate) fn low() -> usize {
    limits::get().0
}

/// Is less than half of this thread's stack in use?
pub(crate) fn is_roomy() -> bool {
    here!() > limits::get().1
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
mod limits {
    /// Nothing is known.
    pub(crate) fn get() -> (usize, usize) {
        (usize::MAX, usize::MAX)
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod limits {
    use std::cell::Cell;
    use std::ffi::{c_int, c_ulong, c_void};
    use std::mem::MaybeUninit;
    use std::ptr;

    /// glibc's.
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
        static LIMITS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
    }

    /// The lowest address, and that in the middle.
    #[inline]
    pub(crate) fn get() -> (usize, usize) {
        LIMITS.get().unwrap_or_else(|| {
            let limits = ask().unwrap_or((usize::MAX, usize::MAX));
            LIMITS.set(Some(limits));
            limits
        })
    }

    #[cold]
    fn ask() -> Option<(usize, usize)> {
        let mut attributes = MaybeUninit::uninit();
        let (mut low, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the attributes are initialised by the first call, read by the second, destroyed by the third; nobody
        // looks at them if the first fails.
        unsafe {
            if pthread_getattr_np(pthread_self(), attributes.as_mut_ptr()) != 0 {
                return None;
            }
            let told = pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size);
            pthread_attr_destroy(attributes.as_mut_ptr());
            (told == 0).then_some((low as usize, low as usize + size / 2))
        }
    }
}
