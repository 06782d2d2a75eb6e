//! Dense identifiers.
//!
//! Tasks, strands, promises and regions are numbered 0, 1, 2, … in the order in which the stream first
//! hears of them, so that every table keyed by one is a `Vec`. Sites are numbers that a front end
//! hands out for source positions; the core only carries them from an access to a race.

use std::fmt;

use crate::error::Error;

macro_rules! dense_id {
    ($(#[$doc:meta])* $name:ident, $label:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The identifier as a table index.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($label, "{}"), self.0)
            }
        }
    };
}

dense_id!(
    /// A task: what async, spawn, future or post creates. [`TaskId::MAIN`] exists from the start.
    TaskId,
    "task "
);
dense_id!(
    /// A strand that touched memory: a maximal run of one task without a task event. Strands are
    /// numbered as their accesses are delivered, so a strand's number is also a topological number:
    /// if `a` precedes `b` then `a < b`.
    StrandId,
    "strand "
);
dense_id!(
    /// A promise.
    PromiseId,
    "promise "
);
dense_id!(
    /// A region: a set of posted tasks that `await` and `ewait` join.
    RegionId,
    "region "
);
dense_id!(
    /// A lock, as numbered by the front end. The upper half of the numbers is not for locks of programs.
    LockId,
    "lock "
);
dense_id!(
    /// A synchronisation object: something atomic that tasks release and acquire. Numbered by the front end.
    SyncId,
    "sync object "
);
dense_id!(
    /// A scope that joins tasks: a finish or a sync block (see [`crate::structure`]). The numbers
    /// of closed scopes are used again.
    ScopeId,
    "scope "
);

impl TaskId {
    /// The task that runs the program from the start, inside the implicit outermost finish.
    pub const MAIN: TaskId = TaskId(0);
}

/// A source position, as numbered by the front end. At most [`SiteId::MAX`], which leaves the
/// history three bits for the kind of access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(u32);

impl SiteId {
    #[cfg(test)]
    pub(crate) const FIRST: SiteId = SiteId(0);

    /// The largest site number.
    pub const MAX: u32 = (1 << 29) - 1;

    /// The site numbered `number`, or `None` above [`SiteId::MAX`].
    #[inline]
    pub const fn new(number: u32) -> Option<SiteId> {
        if number <= SiteId::MAX { Some(SiteId(number)) } else { None }
    }

    /// The number the front end gave.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "site {}", self.0)
    }
}

/// Checks that what is new has the next number.
pub(crate) fn check_dense(what: &'static str, expected: usize, got: u32) -> Result<(), Error> {
    match u32::try_from(expected) {
        // The last number stays free for tables that need a "none".
        Err(_) | Ok(u32::MAX) => Err(Error::TooMany(what)),
        Ok(expected) if expected != got => Err(Error::NotDense { what, expected, got }),
        Ok(_) => Ok(()),
    }
}
