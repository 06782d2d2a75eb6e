//! Which atomic operations make what comes after them depend on the schedule, though they do not race.
//!
//! Two parallel operations on a word come in some order. If one of them looks at the value and the other changes it, or if
//! both store other values, the order shows. Two `fetch_add`s whose results nobody looks at commute, and it does not. Whether
//! the result is looked at is known to the compiler only: DagSan's own pass says so before the operation. Without it, it
//! may be.

use std::cell::Cell;

use crate::state::is_active;
use crate::sync::{Change, Done};
use crate::turns;

/// How an atomic operation lets the order of operations show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Use {
    /// Not at all.
    #[default]
    None,
    /// It stores another value than was there.
    Sets,
    /// The program may look at the value that it saw.
    PerhapsValue,
    /// The program looks at the value that it saw.
    Value,
}

impl Use {
    /// That of an operation on a word which had the value `before`, if that is known.
    pub fn of(done: Done, before: Option<u64>) -> Use {
        let uses = Use::announced(done);
        Use::is_heard();
        match done {
            Done::Store { new } if before == Some(new) => Use::None,
            _ => uses,
        }
    }

    /// The announcement of the operation has been heard.
    #[inline]
    pub fn is_heard() {
        IS_USED.set(false);
    }

    /// That of an operation on a word whose value before is not known.
    #[inline]
    pub fn announced(done: Done) -> Use {
        let announced = IS_USED.get();
        match done {
            Done::Load { .. } | Done::Failed { .. } => Use::Value,
            Done::Store { .. } => Use::Sets,
            // Whether it was done is a value too.
            Done::Update { change: Change::CompareExchange, .. } => Use::Value,
            // In code that is not optimised, functions of the standard library lie in between, and use it to return it.
            Done::Update { .. } if announced && cfg!(feature = "inline-hooks") => Use::Value,
            Done::Update { .. } if announced => Use::PerhapsValue,
            Done::Update { .. } if cfg!(feature = "pass") => Use::None,
            Done::Update { .. } => Use::PerhapsValue,
        }
    }
}

thread_local! {
    /// Will the value of the next read-modify-write of this thread be used?
    static IS_USED: Cell<bool> = const { Cell::new(false) };
}

/// The value of the atomic read-modify-write that comes next is used. Where nobody would hear of that operation, nobody
/// need hear of this.
#[unsafe(no_mangle)]
pub extern "C" fn __dagsan_uses_value() {
    if is_active() && turns::is_mine() {
        IS_USED.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_the_same_value_does_not_show() {
        assert_eq!(Use::of(Done::Load { value: 1 }, None), Use::Value);
        assert_eq!(Use::of(Done::Store { new: 1 }, Some(1)), Use::None);
        assert_eq!(Use::of(Done::Store { new: 1 }, Some(0)), Use::Sets);
        assert_eq!(Use::of(Done::Store { new: 1 }, None), Use::Sets);
    }
}
