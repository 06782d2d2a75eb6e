//! The way from code without hooks to the user's code.
//!
//! What tasks are started with is compiled into the user's crates, but has no hooks (`sanitize`): what it does is not the
//! program's. LLVM inlines nothing across that border. But it does move reads that a function begins with into those
//! who call it, if it knows them all ("argument promotion"), and a read that has moved into code without hooks is one that
//! DagSan never sees. So the user's code is called through a pointer that LLVM cannot see through.

#[cfg(dagsan)]
use std::hint::black_box;

/// Calls `body`.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn call<R, F: FnOnce() -> R>(body: F) -> R {
    #[cfg(dagsan)]
    return black_box(F::call_once as extern "rust-call" fn(F, ()) -> R)(body, ());
    #[cfg(not(dagsan))]
    body()
}

/// Calls `body` with an argument.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn call_with<A, R, F: FnOnce(A) -> R>(body: F, argument: A) -> R {
    #[cfg(dagsan)]
    return black_box(F::call_once as extern "rust-call" fn(F, (A,)) -> R)(body, (argument,));
    #[cfg(not(dagsan))]
    body(argument)
}
