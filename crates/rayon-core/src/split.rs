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

use crate::events;
use crate::local::Deeper;
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
        tell();
        self.migrated
    }
}

/// The variable.
const OPTIONS: &str = "DAGSAN_OPTIONS";

thread_local! {
    /// Has DagSan been told of the option?
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

/// The pieces that were asked for, or none.
fn pieces() -> Option<u32> {
    static PIECES: OnceLock<Option<u32>> = OnceLock::new();
    *PIECES.get_or_init(|| parse(&std::env::var(OPTIONS).unwrap_or_default()))
}

/// The runtime checks the text, and says what is wrong with it.
fn parse(text: &str) -> Option<u32> {
    let mut parts =
        text.split([':', ' ', ',']).filter_map(|part| part.strip_prefix("split=")?.parse::<u32>().ok());
    parts.next_back().map(|pieces| pieces.max(1))
}

/// DagSan hears how iterators are split, from inside of the first.
#[inline(never)]
fn tell() {
    if !TOLD.replace(true) {
        events::split(pieces().unwrap_or(0));
    }
}

/// One more level, while it lives.
pub(crate) struct Level {
    migrated: bool,
    _deeper: Option<Deeper>,
}

impl Level {
    /// Enters it.
    #[inline(never)]
    pub(crate) fn enter() -> Level {
        match pieces() {
            None => Level { migrated: stack::is_roomy(), _deeper: None },
            Some(pieces) => {
                let deeper = Deeper::enter();
                let migrated = deeper.depth() < pieces.ilog2() && stack::is_roomy();
                Level { migrated, _deeper: Some(deeper) }
            }
        }
    }

    /// What its two closures learn.
    #[inline]
    pub(crate) fn context(&self) -> FnContext {
        FnContext { migrated: self.migrated, marker: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_found_among_others() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("stacks=1:split=64:max_races=3"), Some(64));
        assert_eq!((parse("split=1"), parse("split=0")), (Some(1), Some(1)));
        assert_eq!(parse("split=many"), None);
    }
}
