//! The way from code without hooks to the user's code.
//!
//! What tasks are started with is compiled into the user's crates, but has no hooks (`sanitize`): what it does is not the
//! program's. LLVM inlines nothing across that border. But it does move reads that a function begins with into those
//! who call it, if it knows them all ("argument promotion"), and a read that has moved into code without hooks is one that
//! DagSan never sees. So the user's code is called through a pointer that LLVM cannot see through.

use std::hint::black_box;

/// Calls `body`.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn call<R, F: FnOnce() -> R>(body: F) -> R {
    #[cfg_attr(dagsan, sanitize(thread = "on"))]
    fn hooked<R, F: FnOnce() -> R>(body: F) -> R {
        body()
    }
    if cfg!(dagsan) { black_box(hooked as fn(F) -> R)(body) } else { body() }
}

/// Calls `body` with an argument.
#[inline]
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn call_with<A, R, F: FnOnce(A) -> R>(body: F, argument: A) -> R {
    #[cfg_attr(dagsan, sanitize(thread = "on"))]
    fn hooked<A, R, F: FnOnce(A) -> R>(body: F, argument: A) -> R {
        body(argument)
    }
    if cfg!(dagsan) { black_box(hooked as fn(F, A) -> R)(body, argument) } else { body(argument) }
}
