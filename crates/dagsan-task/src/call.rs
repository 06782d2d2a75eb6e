//! The way from code without hooks to the user's code.
//!
//! What tasks are started with is compiled into the user's crates, but has no hooks (`sanitize`): what it does is not the
//! program's. LLVM inlines nothing across that border. But it does move reads that a function begins with into those
//! who call it, if it knows them all ("argument promotion"), and a read that has moved into code without hooks is one that
//! DagSan never sees. So the user's code is called through a pointer that LLVM cannot see through.

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

/// The same function, in a way that LLVM does not know. Unlike `black_box` it touches no memory.
#[cfg(dagsan)]
#[inline]
#[sanitize(thread = "off")]
fn opaque<F: Copy>(function: F) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: the sizes are the same, and a function pointer is a number that is kept as it is.
    unsafe {
        let mut number: usize = std::mem::transmute_copy(&function);
        std::arch::asm!("/* {} */", inout(reg) number, options(nomem, nostack, preserves_flags));
        std::mem::transmute_copy(&number)
    }
}
