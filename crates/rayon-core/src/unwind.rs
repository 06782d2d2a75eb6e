//! The way to the program's code, and its panics, which are caught in a task and carried to whoever joins it.
//!
//! What tasks are started with is compiled into the program's crates, but some of it has no hooks (`sanitize`): what it
//! does is not the program's. LLVM inlines nothing across that border. But it does move reads that a function begins with
//! into those who call it, if it knows them all ("argument promotion"), and a read that has moved into code without hooks
//! is one that DagSan never sees. So the border is crossed here only, through a pointer that LLVM cannot see through.
//!
//! Functions of the standard library, even `ptr::read`, would be instantiated with hooks, and there is a task per item: what
//! moves closures and results is written with what the language itself has.

use std::any::Any;
use std::mem::{self, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// A closure that is called once, and where its result goes.
pub(crate) struct Job<F, R> {
    pub(crate) body: *const F,
    pub(crate) result: *mut R,
}

/// Calls the closure of a job.
///
/// # Safety
///
/// `job` is a [`Job`] of these types. Its closure is not used again, and `result` can be written.
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) unsafe fn enter<R, F: FnOnce() -> R>(job: *const u8) {
    let job = job as *const Job<F, R>;
    // SAFETY: the caller's promise.
    unsafe { moves::put((*job).result, moves::call(take((*job).body))) };
}

/// Calls `enter` with a job, and catches its panic. Compiled here, without hooks.
///
/// # Safety
///
/// The function is [`enter`], and what it asks for holds.
#[inline(never)]
pub(crate) unsafe fn catch(job: *const u8, enter: unsafe fn(*const u8)) -> Option<Payload> {
    // Nobody looks at what the panic left half done: whoever joins goes on with it.
    // SAFETY: the caller's promise.
    catch_unwind(AssertUnwindSafe(|| unsafe { enter(job) })).err()
}

/// The result of `body`, or its panic.
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn halt<R, F: FnOnce() -> R>(body: F) -> Result<R, Payload> {
    let mut result = MaybeUninit::<R>::uninit();
    let job = Job { body: &raw const body, result: result.as_mut_ptr() };
    // SAFETY: a job of these types, whose closure is forgotten below.
    let panic = unsafe { catch((&raw const job).cast(), enter::<R, F>) };
    mem::forget(body);
    match panic {
        // SAFETY: without a panic, the result is there.
        None => Ok(unsafe { take(result.as_ptr()) }),
        Some(payload) => Err(payload),
    }
}

pub(crate) use self::moves::take;

/// Moves that become no calls, and the call that becomes no jump.
#[cfg(dagsan)]
mod moves {
    /// Moves a value out of memory.
    pub(crate) use std::intrinsics::read_via_copy as take;
    /// Moves a value into memory that holds none.
    pub(super) use std::intrinsics::write_via_move as put;

    #[sanitize(thread = "off")]
    #[inline]
    pub(super) fn call<R, F: FnOnce() -> R>(body: F) -> R {
        let function = F::call_once as extern "rust-call" fn(F, ()) -> R;
        // SAFETY: a function pointer is as large as a number, and comes back as it was.
        let function = unsafe {
            let mut number: usize = std::intrinsics::transmute(function);
            std::arch::asm!("/* {} */", inout(reg) number, options(nomem, nostack, preserves_flags));
            std::intrinsics::transmute::<usize, extern "rust-call" fn(F, ()) -> R>(number)
        };
        function(body, ())
    }
}

/// The same for a stable compiler; there are no hooks.
#[cfg(not(dagsan))]
mod moves {
    pub(crate) use std::ptr::read as take;
    pub(super) use std::ptr::write as put;

    pub(super) fn call<R>(body: impl FnOnce() -> R) -> R {
        body()
    }
}

/// A closure without arguments. It is made by code with hooks, so it has them too.
pub(crate) fn bind<A, R>(body: impl FnOnce(A) -> R, argument: A) -> impl FnOnce() -> R {
    move || body(argument)
}

/// Drops a payload that nobody wants. Dropping it may panic too, which nobody wants to hear of either.
#[cold]
pub(crate) fn discard(payload: Payload) {
    if let Err(again) = halt(|| drop(payload)) {
        mem::forget(again);
    }
}

/// Ends the process if it is dropped: a panic passes by where none may.
pub(crate) struct AbortOnDrop;

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        eprintln!("Rayon: detected unexpected panic; aborting");
        abort();
    }
}
