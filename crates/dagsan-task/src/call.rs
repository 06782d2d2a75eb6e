//! The way from code without hooks to the user's code.
//!
//! What tasks are started with is compiled into the user's crates, but has no hooks (`sanitize`): what it does is not the
//! program's. LLVM inlines nothing across that border. But it does move reads that a function begins with into those
//! who call it, if it knows them all ("argument promotion"), and a read that has moved into code without hooks is one that
//! DagSan never sees. So the user's code is called through a pointer that LLVM cannot see through.
//!
//! Functions of the standard library, even `ptr::read`, would be instantiated with hooks: what catches panics is compiled
//! here, and moves are written with what the language itself has.

use std::mem::{self, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::join::Payload;

/// Calls `body`.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn call<R, F: FnOnce() -> R>(body: F) -> R {
    #[cfg(dagsan)]
    return opaque(F::call_once as extern "rust-call" fn(F, ()) -> R)(body, ());
    #[cfg(not(dagsan))]
    body()
}

/// Calls `body` with an argument.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn call_with<A, R, F: FnOnce(A) -> R>(body: F, argument: A) -> R {
    #[cfg(dagsan)]
    return opaque(F::call_once as extern "rust-call" fn(F, (A,)) -> R)(body, (argument,));
    #[cfg(not(dagsan))]
    body(argument)
}

/// A closure that is called once, its argument, and where its result goes.
struct Job<A, R, F> {
    body: *const F,
    argument: A,
    result: *mut R,
}

/// Calls `body` with an argument, which it may keep no longer, and catches its panic.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn catch_with<A: Copy, R, F: FnOnce(A) -> R>(body: F, argument: A) -> Result<R, Payload> {
    let mut result = MaybeUninit::<R>::uninit();
    let job = Job { body: &raw const body, argument, result: result.as_mut_ptr() };
    // SAFETY: a job of these types, whose closure is forgotten below.
    let panic = unsafe { catch((&raw const job).cast(), enter::<A, R, F>) };
    mem::forget(body);
    match panic {
        // SAFETY: without a panic, the result is there.
        None => Ok(unsafe { take(result.as_ptr()) }),
        Some(payload) => Err(payload),
    }
}

/// Calls the closure of a job.
///
/// # Safety
///
/// `job` is a [`Job`] of these types. Its closure is not used again, and `result` can be written.
#[cfg_attr(dagsan, sanitize(thread = "off"))]
unsafe fn enter<A: Copy, R, F: FnOnce(A) -> R>(job: *const u8) {
    let job = job as *const Job<A, R, F>;
    // SAFETY: the caller's promise.
    unsafe { put((*job).result, call_with(take((*job).body), (*job).argument)) };
}

/// Calls `enter` with a job, and catches its panic. Compiled here, without hooks.
///
/// # Safety
///
/// The function is [`enter`], and what it asks for holds.
#[inline(never)]
unsafe fn catch(job: *const u8, enter: unsafe fn(*const u8)) -> Option<Payload> {
    // Nobody looks at what the panic left half done: whoever joins goes on with it.
    // SAFETY: the caller's promise.
    catch_unwind(AssertUnwindSafe(|| unsafe { enter(job) })).err()
}

#[cfg(dagsan)]
use std::intrinsics::{read_via_copy as take, write_via_move as put};
#[cfg(not(dagsan))]
use std::ptr::{read as take, write as put};

/// The same function, in a way that LLVM does not know. Unlike `black_box` it touches no memory.
#[cfg(dagsan)]
#[inline]
#[sanitize(thread = "off")]
fn opaque<F: Copy>(function: F) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: the sizes are the same, and a function pointer is a number that is kept as it is.
    unsafe {
        let mut number: usize = mem::transmute_copy(&function);
        std::arch::asm!("/* {} */", inout(reg) number, options(nomem, nostack, preserves_flags));
        mem::transmute_copy(&number)
    }
}
