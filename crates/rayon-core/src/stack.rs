//! Where stacks are.
//!
//! A task runs on the stack of whoever runs it, below the frames of those that wait for it. What DagSan must know of a task
//! is where its part begins:
//!
//! ```text
//!   ┌──────────────────────────┐
//!   │ frames of before          │   shared: tasks may have references to them
//!   ├──────────────────────────┤ high, an address in the frame that runs the task
//!   │ frames of the task        │   forgotten when it ends: the next task will use the same addresses
//!   └──────────────────────────┘ where the stack ends
//! ```

/// An address in a frame: all that the function calls from there on is below.
macro_rules! here {
    () => {{
        let local = 0u8;
        &raw const local as usize
    }};
}
pub(crate) use here;

/// Is less than half of this stack in use? No, if that cannot be told.
pub(crate) fn is_roomy() -> bool {
    here!() > limits::middle()
}

/// DagSan knows every stack, those that dagsan-task has made too.
#[cfg(all(dagsan, not(test)))]
mod limits {
    use std::cell::Cell;

    use crate::events::{self, Stack};

    thread_local! {
        /// The one that this thread was on when it last asked. Those of its tasks stay as long as the thread.
        static LATEST: Cell<Stack> = const { Cell::new(Stack { low: 0, high: 0 }) };
    }

    /// The address in the middle.
    pub(crate) fn middle() -> usize {
        let (here, latest) = (here!(), LATEST.get());
        if (latest.low..latest.high).contains(&here) {
            return latest.low.midpoint(latest.high);
        }
        let stack @ Stack { low, high } = events::stack();
        if (low..high).contains(&here) {
            LATEST.set(stack);
        }
        if low == 0 { usize::MAX } else { low.midpoint(high) }
    }
}

#[cfg(all(
    any(not(dagsan), test),
    not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))
))]
mod limits {
    /// Nothing is known.
    pub(crate) fn middle() -> usize {
        usize::MAX
    }
}

#[cfg(all(any(not(dagsan), test), target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
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
        static MIDDLE: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// The address in the middle of this thread's stack.
    #[inline]
    pub(crate) fn middle() -> usize {
        MIDDLE.get().unwrap_or_else(|| {
            let middle = ask().unwrap_or(usize::MAX);
            MIDDLE.set(Some(middle));
            middle
        })
    }

    #[cold]
    fn ask() -> Option<usize> {
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
            (told == 0).then_some(low as usize + size / 2)
        }
    }
}
