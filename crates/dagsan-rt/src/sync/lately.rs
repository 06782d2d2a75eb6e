//! The relaxed operations that the running strand has made lately: the same again, on the same word, says nothing new.
//!
//! A relaxed operation orders nothing. All that is to be known of it is that the strand has accessed the word that way, and how it lets
//! the order show (`uses.rs`); so it is a mark like others, asked before the session is entered. An entry is made by an
//! operation that has gone the long way, on a word that nobody holds, has released or watches. Whatever could change that,
//! and the end of the strand, forgets all entries at once, by a new epoch.
//!
//! ```text
//!   entries, by some bits of the address   [ address │ epoch │ width, what was done ]     one per word: its latest operation
//! ```

use std::cell::Cell;

use dagsan_core::AccessKind;

use super::Done;
use crate::caches::caches;
use crate::uses::Use;

const ENTRIES: usize = 1024;

#[derive(Clone, Copy)]
struct Entry {
    address: usize,
    epoch: u32,
    /// How wide the word is: at the same address there may be others.
    bytes: u8,
    kind: AccessKind,
    uses: Use,
    /// What a store has stored: another value is news.
    stored: Option<u64>,
}

/// See the module's documentation.
pub struct Lately {
    entries: [Cell<Entry>; ENTRIES],
    epoch: Cell<u32>,
}

// SAFETY: only the thread that runs for its worker looks at it (`is_owner`), and whoever ends the program does not.
unsafe impl Sync for Lately {}

const NONE: Entry =
    Entry { address: 0, epoch: 0, bytes: 0, kind: AccessKind::Read, uses: Use::None, stored: None };

impl Lately {
    pub(crate) const fn new() -> Lately {
        Lately { entries: [const { Cell::new(NONE) }; ENTRIES], epoch: Cell::new(1) }
    }
}

/// That of this thread's worker.
#[inline(always)]
fn lately() -> &'static Lately {
    &caches().lately
}

/// Has the running strand done that lately? To be asked by the thread that owns the session.
#[inline]
pub(super) fn knows(address: usize, bytes: usize, done: Done, uses: Use) -> bool {
    let lately = lately();
    let entry = lately.entries[slot(address)].get();
    let is_word = entry.address == address && usize::from(entry.bytes) == bytes;
    is_word
        && entry.epoch == lately.epoch.get()
        && entry.kind == done.access().0
        && entry.uses == uses
        && entry.stored == stored(done)
}

fn stored(done: Done) -> Option<u64> {
    if let Done::Store { new } = done { Some(new) } else { None }
}

/// The running strand has done that, and to do it again says nothing.
#[inline]
pub(super) fn remember(address: usize, bytes: usize, done: Done, uses: Use) {
    // At most 16.
    let bytes = bytes as u8;
    let lately = lately();
    let (epoch, kind, stored) = (lately.epoch.get(), done.access().0, stored(done));
    lately.entries[slot(address)].set(Entry { address, epoch, bytes, kind, uses, stored });
}

/// The next operation on any word may say something.
#[inline]
pub(super) fn forget() {
    let lately = lately();
    let next = lately.epoch.get().wrapping_add(1);
    lately.epoch.set(next);
    if next == 0 {
        forget_entries(lately);
    }
}

/// After four billion epochs, old entries would be new ones.
#[cold]
fn forget_entries(lately: &Lately) {
    for entry in &lately.entries {
        entry.set(Entry { epoch: 0, ..entry.get() });
    }
    lately.epoch.set(1);
}

#[inline]
fn slot(address: usize) -> usize {
    (address >> 2 ^ address >> 12) % ENTRIES
}
