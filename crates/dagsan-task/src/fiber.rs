//! Stacks to run tasks on, and the switch between them.
//!
//! A fiber is made once and runs one task after the other: at the end of a task it goes to sleep inside its loop, and
//! the next task is handed to it there. So a task costs two switches and no set-up. The switches are those of
//! corosensei: asymmetric, so whoever wakes a fiber is gone back to when it sleeps.
//!
//! ```text
//!   low                                                                             high
//!   ┌───────┬──────────────────────────────────────────────────────────────┬─────────┐
//!   │ guard │ free                              ◄── task ◄── the loop below │ colour  │
//!   └───────┴──────────────────────────────────────────────────────────────┴─────────┘
//!     a task that needs more than its stack is stopped by the guard page (SIGSEGV)
//! ```
//!
//! *Colour*: all stacks start at the same offset in a page, so that the frames of nested tasks would fight for the
//! same few sets of the first-level cache. Each stack leaves out another number of bytes at its top.

use std::cell::{Cell, UnsafeCell};
use std::convert::Infallible;
use std::env;
use std::io;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::{Coroutine, Yielder};

/// The variable that sets the size of the stacks, in bytes.
const SIZE_VARIABLE: &str = "DAGSAN_TASK_STACK";

/// Address space is cheap, and only what a task has touched takes memory.
const DEFAULT_SIZE: usize = 1 << 20;

/// A panic and its message need about this much.
const MIN_SIZE: usize = 16 << 10;

/// As much as a machine may have.
const MAX_SIZE: usize = 1 << 40;

/// Linux allows a process 65530 mappings, and a stack with its guard page takes two. The rest is for the program:
/// without a few it could not even report that it has run out.
const MAX_STACKS: usize = 30_000;

/// How many stacks this process has.
static STACKS: AtomicUsize = AtomicUsize::new(0);

/// Why there is no stack for another task.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "{MAX_STACKS} tasks are suspended or wait for tasks that they have started: there are no more stacks"
    )]
    TooMany,
    #[error(
        "no stack of {size} bytes for a task, beside {used} others (the size can be set by {SIZE_VARIABLE}): {cause}"
    )]
    NoMemory { size: usize, used: usize, cause: io::Error },
    #[error("{SIZE_VARIABLE} is `{0}`, and should be a number of bytes, at least {MIN_SIZE}")]
    Size(String),
}

fn parse_size(text: &str) -> Option<usize> {
    text.parse().ok().filter(|size| (MIN_SIZE..=MAX_SIZE).contains(size))
}

fn stack_size() -> Result<usize, Error> {
    static SIZE: OnceLock<Result<usize, String>> = OnceLock::new();
    let size = SIZE.get_or_init(|| match env::var_os(SIZE_VARIABLE) {
        None => Ok(DEFAULT_SIZE),
        Some(text) => {
            let text = text.to_string_lossy();
            parse_size(&text).ok_or_else(|| text.into_owned())
        }
    });
    size.clone().map_err(Error::Size)
}

/// A stack that starts a little below its highest address.
struct ColouredStack {
    whole: DefaultStack,
    base: StackPointer,
}

impl ColouredStack {
    /// As many as fit into a page, which is what decides about the sets of the cache.
    const COLOURS: usize = 16;
    const STEP: usize = 4096 / Self::COLOURS;

    fn new() -> Result<ColouredStack, Error> {
        let size = stack_size()?;
        // Relaxed: a count, and nothing hangs on it.
        let used = STACKS.fetch_add(1, Ordering::Relaxed);
        let made = if used < MAX_STACKS {
            DefaultStack::new(size).map_err(|cause| Error::NoMemory { size, used, cause })
        } else {
            Err(Error::TooMany)
        };
        let whole = made.inspect_err(|_| {
            STACKS.fetch_sub(1, Ordering::Relaxed);
        })?;
        let base = whole.base().get() - (used % Self::COLOURS) * Self::STEP;
        // The stack is larger than that, so its base is not null.
        let base = StackPointer::new(base).unwrap_or_else(|| whole.base());
        Ok(ColouredStack { whole, base })
    }
}

impl Drop for ColouredStack {
    fn drop(&mut self) {
        STACKS.fetch_sub(1, Ordering::Relaxed);
    }
}

// SAFETY: limit and guard page are those of corosensei's own stack. The base is lower by less than 4096 bytes, a
// multiple of every stack alignment, and MIN_SIZE leaves more than the 4096 bytes that are asked for.
unsafe impl Stack for ColouredStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.whole.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.whole.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.whole.update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

/// A fiber is woken with a pointer to itself.
type Switch<T> = Coroutine<NonNull<Fiber<T>>, (), Infallible, ColouredStack>;
type Sleep<T> = Yielder<NonNull<Fiber<T>>, ()>;

/// A fiber, with what its user knows of the task on it. Belongs to one thread, and never leaves it.
pub(crate) struct Fiber<T> {
    /// The lowest and the highest address of its stack.
    pub(crate) stack: (usize, usize),
    /// What the executor knows of it.
    pub(crate) task: T,
    /// How to sleep. None before the fiber has run.
    yielder: Cell<Option<NonNull<Sleep<T>>>>,
    switch: UnsafeCell<Switch<T>>,
}

impl<T: 'static> Fiber<T> {
    /// A fiber that calls `run` each time it is woken after a call of `run` has returned. `run` may not unwind.
    pub(crate) fn new(task: T, run: fn(&Fiber<T>)) -> Result<NonNull<Fiber<T>>, Error> {
        let stack = ColouredStack::new()?;
        let bounds = (stack.limit().get(), stack.whole.base().get());
        let switch = Coroutine::with_stack(stack, move |yielder, this: NonNull<Fiber<T>>| {
            // SAFETY: `wake` passes the fiber that it was called on, whose caller guarantees that it lives.
            let fiber = unsafe { this.as_ref() };
            fiber.yielder.set(Some(NonNull::from(yielder)));
            loop {
                run(fiber);
                fiber.sleep();
            }
        });
        let fiber = Fiber { stack: bounds, task, yielder: Cell::new(None), switch: UnsafeCell::new(switch) };
        Ok(NonNull::from(Box::leak(Box::new(fiber))))
    }

    /// Runs the fiber until it sleeps.
    ///
    /// # Safety
    /// The fiber was made on this thread, was not freed, and sleeps or has never run.
    #[inline]
    pub(crate) unsafe fn wake(this: NonNull<Fiber<T>>) {
        // SAFETY: the fiber lives (the caller). Nobody else uses `switch` while it runs: it is touched here and in
        // `free` only, and both ask for a fiber that sleeps.
        unsafe { (*UnsafeCell::raw_get(&raw const (*this.as_ptr()).switch)).resume(this) };
    }

    /// Goes back to whoever has woken this fiber, until it is woken again. To be called on the fiber itself.
    #[inline]
    pub(crate) fn sleep(&self) {
        let Some(yielder) = self.yielder.get() else { unreachable!("sleeps, and has never run") };
        // SAFETY: the yielder lies at the root of the fiber's stack, and lives as long as its loop, for ever.
        unsafe { yielder.as_ref() }.suspend(());
    }

    /// Gives the stack back.
    ///
    /// # Safety
    /// The fiber sleeps in its loop, between two calls of `run`, and nobody will use it again.
    pub(crate) unsafe fn free(this: NonNull<Fiber<T>>) {
        // SAFETY: it came from `Box::leak`, and the caller was the last to use it.
        let mut fiber = unsafe { Box::from_raw(this.as_ptr()) };
        // SAFETY: the only frames on the stack are those of the loop in `new`, and of `sleep` and `suspend` below it,
        // which own nothing.
        unsafe { fiber.switch.get_mut().force_reset() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("65536"), Some(65536));
        assert_eq!(parse_size("16383"), None);
        assert_eq!(parse_size("99999999999999999999"), None);
        assert_eq!(parse_size("1099511627777"), None);
        assert_eq!(parse_size("1M"), None);
        assert_eq!(parse_size(""), None);
    }

    #[test]
    fn a_fiber_is_used_again_and_again() {
        let fiber = Fiber::new(Cell::new(0), |fiber: &Fiber<Cell<u32>>| {
            fiber.task.set(fiber.task.get() + 1);
            fiber.sleep();
            fiber.task.set(fiber.task.get() + 10);
        })
        .unwrap();
        // SAFETY: made above, on this thread, freed below; it sleeps whenever `wake` has returned.
        unsafe {
            for expected in [1, 11, 12, 22] {
                Fiber::wake(fiber);
                assert_eq!(fiber.as_ref().task.get(), expected);
            }
            Fiber::free(fiber);
        }
    }

    #[test]
    fn colours_keep_the_alignment() {
        let (one, two) = (ColouredStack::new().unwrap(), ColouredStack::new().unwrap());
        for stack in [&one, &two] {
            assert!(stack.whole.base().get() - stack.base().get() < 4096);
            assert_eq!(stack.base().get() % corosensei::stack::STACK_ALIGNMENT, 0);
        }
    }
}
