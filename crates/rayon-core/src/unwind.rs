//! The way to the program's code, and its panics, which are caught in a task and carried to whoever joins it.
//!
//! What tasks are started with is compiled into the program's crates, but some of it has no hooks (`sanitize`): what it
//! does is not the program's. LLVM inlines nothing across that border. But it does move reads that a function begins with
//! into those who call it, if it knows them all ("argument promotion"), and a read that has moved into code without hooks
//! is one that DagSan never sees. So the border is crossed here only, through a pointer that LLVM cannot see through.

use std::any::Any;
use std::hint::black_box;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// The result of `body`, or its panic.
#[cfg_attr(dagsan, sanitize(thread = "off"))]
pub(crate) fn halt<R, F: FnOnce() -> R>(body: F) -> Result<R, Payload> {
    let enter: fn(AssertUnwindSafe<F>) -> Result<R, Payload> = catch_unwind;
    // Nobody looks at what the panic left half done: whoever joins goes on with it.
    black_box(enter)(AssertUnwindSafe(body))
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
