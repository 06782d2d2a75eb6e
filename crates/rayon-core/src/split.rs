//! How far parallel iterators are split.
//!
//! rayon cuts an iterator into about as many pieces as there are threads, and goes on cutting a piece that another
//! thread has stolen. It learns of that from [`FnContext::migrated`]. If every piece says that it was stolen, the
//! cutting ends at single items, or where `with_min_len` ends it. Any two items are then in different tasks, and the
//! verdict does not depend on how many threads there would have been.
//!
//! Some iterators can be cut for ever (`repeat`), so when half of the stack is in use no more is said.
//!
//! `DAGSAN_OPTIONS=split=N` says it on the outermost levels only, those that make `N` pieces. Below them rayon goes on
//! as it does where nothing is stolen, to twice as many pieces as threads. What happens inside of one piece is then taken
//! for sequential.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::stack;

/// What a closure learns about the thread that runs it.
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// Neither `Send` nor `Sync`.
    marker: PhantomData<*mut ()>,
}

impl FnContext {
    /// Is it another thread than the one that asked? Here every task could be on another thread.
    #[inline]
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// The variable.
const OPTIONS: &str = "DAGSAN_OPTIONS";

thread_local! {
    /// How many calls of `join_context` are under way, if that matters.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The levels on which pieces say that they were stolen.
fn levels() -> u32 {
    static LEVELS: OnceLock<u32> = OnceLock::new();
    *LEVELS.get_or_init(|| parse(&std::env::var(OPTIONS).unwrap_or_default()))
}

/// The runtime checks the text, and says what is wrong with it.
fn parse(text: &str) -> u32 {
    let mut levels = u32::MAX;
    for part in text.split([':', ' ', ',']) {
        if let Some(pieces) = part.strip_prefix("split=").and_then(|value| value.parse::<u32>().ok()) {
            levels = pieces.checked_ilog2().unwrap_or(0);
        }
    }
    levels
}

/// One more level, while it lives.
pub(crate) struct Level(bool);

impl Level {
    /// Enters it.
    #[inline(never)]
    pub(crate) fn enter() -> Level {
        match levels() {
            u32::MAX => Level(stack::is_roomy()),
            levels => {
                let depth = DEPTH.get() + 1;
                DEPTH.set(depth);
                Level(depth < levels && stack::is_roomy())
            }
        }
    }

    /// What its two closures learn.
    #[inline]
    pub(crate) fn context(&self) -> FnContext {
        FnContext { migrated: self.0, marker: PhantomData }
    }
}

impl Drop for Level {
    #[inline(never)]
    fn drop(&mut self) {
        if levels() != u32::MAX {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_found_among_others() {
        assert_eq!(parse(""), u32::MAX);
        assert_eq!(parse("stacks=1:split=64:max_races=3"), 6);
        assert_eq!(parse("split=100"), 6);
        assert_eq!((parse("split=1"), parse("split=0")), (0, 0));
        assert_eq!(parse("split=many"), u32::MAX);
    }
}
