//! Relaxed operations that say nothing about order: accesses of their own kind, for which nobody needs to know the running task.
//!
//! That is so where no task holds a lock, no fence has released anything, no word is watched, and nobody has released the word. Then the
//! operation takes no lock and gives none back, and neither acquires nor releases. So tasks that make such operations only are contracted as others are
//! (`tiny`).
//!
//! Of the word nothing is remembered by a read-modify-write, since it will be changed unseen (`lately`): only who looks at it, and what is stored in it,
//! may mean something later.

use dagsan_core::contract::SmallSet;
use dagsan_core::{AccessKind, Bytes, Location, Run};

use super::{Access, Done, Made, Sync, lately, standing};
use crate::session::Session;
use crate::shared::{self, Shared};
use crate::sites::Sites;
use crate::uses::Use;

/// So many atomic accesses of a strand are few.
const FEW: usize = 64;

impl Sync {
    /// Can no relaxed operation mean anything but an access, if nobody has released its word?
    pub fn means_nothing(&self) -> bool {
        self.is_idle() && self.fences.is_empty() && self.futexes.given.is_empty()
    }

    /// Has the running strand made so few atomic accesses that it is worth no strand of its own?
    #[inline]
    pub fn is_small(&self) -> bool {
        self.accesses.len() <= FEW
    }

    /// Adds the atomic accesses of the running strand to a set, without the bytes that `drop` picks of a line. What they write is kept no longer.
    pub fn add_to(
        &self,
        set: &mut SmallSet,
        sites: &mut Sites,
        shared: &mut Shared,
        drop: impl Fn(u64) -> u64,
    ) {
        for &Made { access: Access { address, bytes, kind, uses }, origin, .. } in &self.accesses {
            let Ok(bytes) = Bytes::new(address as u64, bytes as u64) else { continue };
            let site = sites.number_of_atomic(origin, uses);
            for (line, mask) in bytes.lines() {
                let mask = mask & !drop(line);
                if mask != 0 {
                    set.add_run(&Run { at: Location { line, mask }, kind, site, atomic: true });
                }
                if kind == AccessKind::Write && !shared.is_empty() {
                    shared::forget(line, mask);
                }
            }
        }
    }
}

impl Session {
    /// The running task has performed a relaxed operation. Is it an access and nothing else? If not, nothing has been done.
    pub(super) fn relaxed(&mut self, address: usize, bytes: usize, done: Done, frame: usize) -> bool {
        let word = self.sync.words.get_mut(address);
        let (is_known, before) = (word.is_some(), word.as_ref().and_then(|word| word.last));
        if word.is_some_and(|word| !word.is_quiet()) || !self.sync.means_nothing() {
            return false;
        }
        let uses = Use::of(done, before);
        let (kind, value) = done.access();
        let access = Access { address, bytes, kind, uses };
        let stands = standing::is_open_to(done);
        if self.sync.known.insert(access) {
            let origin = self.origin_of_call(frame);
            self.sync.accesses.push(Made { access, origin, stands });
        }
        if is_known || !stands {
            let word = self.sync.words.entry(address, bytes, value);
            word.last = (!matches!(done, Done::Update { .. })).then_some(value);
            word.seen_by = (kind == AccessKind::Read).then(|| self.tasks.name());
        }
        lately::remember(address, bytes, done, uses);
        true
    }
}
