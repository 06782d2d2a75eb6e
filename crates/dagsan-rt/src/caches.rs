//! What a worker has asked lately, and been told that it need not tell: small tables beside those of `layout`.
//!
//! Each belongs to the thread that runs for the worker, which asks them without being in the session.

use std::mem::MaybeUninit;

use crate::kept_ranges::Ranges;
use crate::state::worker;
use crate::sync::{Lately, Standing};

/// See the module's documentation.
pub struct Caches {
    pub(crate) lately: Lately,
    pub(crate) standing: Standing,
    pub(crate) ranges: Ranges,
}

static ROOT: Caches = Caches::new();

impl Caches {
    const fn new() -> Caches {
        Caches { lately: Lately::new(), standing: Standing::new(), ranges: Ranges::new() }
    }

    /// Those of the root.
    pub fn root() -> &'static Caches {
        &ROOT
    }

    /// Those of another worker, for good.
    pub fn more() -> &'static Caches {
        let mut caches = Box::new(MaybeUninit::<Caches>::uninit());
        let at = caches.as_mut_ptr();
        // SAFETY: all fields are written, in a box that is never freed.
        unsafe {
            (&raw mut (*at).lately).write(Lately::new());
            Standing::begin(&raw mut (*at).standing);
            (&raw mut (*at).ranges).write(Ranges::new());
            Box::leak(caches).assume_init_ref()
        }
    }
}

/// Those of this thread's worker.
#[inline(always)]
pub fn caches() -> &'static Caches {
    worker().caches()
}
