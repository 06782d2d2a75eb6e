//! Relaxed read-modify-writes for which an earlier one stands: counters and marks that many tasks change.
//!
//! The argument of shared reads (`dagsan_core::shared`) holds for atomic accesses, too. Let `r` have updated a word that nobody accesses but
//! atomically, and let `s` do the same later. Whatever conflicts with `s` conflicts with `r`, and if it comes later and is parallel to `s`, it is
//! parallel to `r`, as long as `r` stands for `s`. So `s` has nothing to tell. The lines are kept and forgotten with those of shared reads.
//!
//! That two such operations meet (`uses.rs`) must have been told before; so an entry is of one place in the code, which has met
//! itself. In code that is not optimised that place is in the standard library, and who called it is not asked: there is no entry.
//!
//! Loads have none: who looks at a word and takes it then takes a lock for reading (`locks.rs`). Nor have stores: what they do depends on the
//! value before. A compare-exchange that fails is an operation of its own, that reads.
//!
//! ```text
//!   entries, by some bits of the line   [ line │ bytes │ epoch │ code │ width, use ]     two per line: who reads, who writes
//! ```

use std::cell::Cell;

use dagsan_core::{AccessKind, Location};

use super::{Access, Done};
use crate::caches::caches;
use crate::uses::Use;

const ENTRIES: usize = 1 << 15;

#[derive(Clone, Copy)]
struct Entry {
    line: u64,
    mask: u64,
    epoch: u32,
    /// The place in the code (`log::code`).
    code: u32,
    bytes: u8,
    uses: Use,
}

const NONE: Entry = Entry { line: 0, mask: 0, epoch: 0, code: 0, bytes: 0, uses: Use::None };

/// See the module's documentation.
pub struct Standing {
    entries: [[Cell<Entry>; 2]; ENTRIES],
    epoch: Cell<u32>,
    /// Has the epoch any entries?
    any: Cell<bool>,
}

// SAFETY: only the thread that runs for its worker looks at it (`is_owner`), and whoever ends the program does not.
unsafe impl Sync for Standing {}

impl Standing {
    pub(crate) const fn new() -> Standing {
        Standing {
            entries: [const { [const { Cell::new(NONE) }; 2] }; ENTRIES],
            epoch: Cell::new(1),
            any: Cell::new(false),
        }
    }

    /// Makes one where it is to be: it is too large for a stack.
    ///
    /// # Safety
    ///
    /// There is room for it.
    pub(crate) unsafe fn begin(at: *mut Standing) {
        // SAFETY: the caller's promise; the entries are in the room.
        unsafe {
            let entries = (&raw mut (*at).entries).cast::<Cell<Entry>>();
            (0..2 * ENTRIES).for_each(|number| entries.add(number).write(Cell::new(NONE)));
            (&raw mut (*at).epoch).write(Cell::new(1));
            (&raw mut (*at).any).write(Cell::new(false));
        }
    }
}

/// That of this thread's worker.
#[inline(always)]
fn standing() -> &'static Standing {
    &caches().standing
}

/// Can an operation have an entry, if it is relaxed?
pub(super) fn is_open_to(done: Done) -> bool {
    matches!(done, Done::Update { .. } | Done::Failed { .. })
}

#[inline]
fn entry(line: u64, kind: AccessKind) -> &'static Cell<Entry> {
    let slot = (line ^ line >> 15) as usize % ENTRIES;
    &standing().entries[slot][usize::from(kind == AccessKind::Write)]
}

/// The bytes of an aligned word.
#[inline]
pub(super) fn location(address: usize, bytes: usize) -> Location {
    let address = address as u64;
    Location { line: address >> 6, mask: (u64::MAX >> (64 - bytes)) << (address & 63) }
}

/// Does somebody stand for the operation, at this place in the code? To be asked by the thread that owns the session.
#[inline]
pub(super) fn knows(address: usize, bytes: usize, done: Done, uses: Use, code: u32) -> bool {
    if !is_any() {
        return false;
    }
    let at = location(address, bytes);
    let entry = entry(at.line, done.access().0).get();
    entry.line == at.line
        && entry.mask & at.mask == at.mask
        && entry.epoch == standing().epoch.get()
        && (entry.code, usize::from(entry.bytes), entry.uses) == (code, bytes, uses)
}

/// The running strand has made the access, at this place in the code, and nobody has accessed the word but atomically.
pub(super) fn remember(access: &Access, code: u32) {
    let Access { address, bytes, kind, uses } = *access;
    let at = location(address, bytes);
    let (cell, epoch, bytes) = (entry(at.line, kind), standing().epoch.get(), bytes as u8);
    let known = cell.get();
    let same =
        (known.line, known.epoch, known.code, known.bytes, known.uses) == (at.line, epoch, code, bytes, uses);
    let mask = if same { known.mask | at.mask } else { at.mask };
    cell.set(Entry { line: at.line, mask, epoch, code, bytes, uses });
    standing().any.set(true);
}

/// Are there any entries?
#[inline]
pub fn is_any() -> bool {
    standing().any.get()
}

/// The line was accessed otherwise, or must be told of again.
#[inline]
pub fn forget(line: u64) {
    if is_any() {
        for kind in [AccessKind::Read, AccessKind::Write] {
            let cell = entry(line, kind);
            if cell.get().line == line {
                cell.set(NONE);
            }
        }
    }
}

/// The next operation on any word may say something.
#[inline]
pub fn forget_all() {
    let standing = standing();
    if standing.any.replace(false) {
        let next = standing.epoch.get().wrapping_add(1);
        standing.epoch.set(next.max(1));
        if next == 0 {
            // After four billion epochs, old entries would be new ones.
            standing.entries.iter().flatten().for_each(|entry| entry.set(NONE));
        }
    }
}
