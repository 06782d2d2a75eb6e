//! Memory that becomes other memory, and what allocators do to it: frees, new blocks, stacks of tasks that have ended.
//!
//! A free is a write to all of a block, told at once, since its addresses may come back; what the running strand has done to the block is told
//! with it, and the rest of the strand is not. If the strand has allocated the block itself the write can wait (`fresh`).

use dagsan_core::{AccessKind, Allocator, Bytes, SiteId};

use crate::log;
use crate::outbox;
use crate::private::Private;
use crate::ranges;
use crate::recorder::Item;
use crate::session::Session;
use crate::shared;
use crate::sites::Origin;
use crate::state::EXACT;

/// A block of more bytes is large.
const LARGE: u64 = 1 << 16;

/// So many bytes that go back to the system are looked at together.
const PIECE: usize = 16 << 20;

impl Session {
    /// The running task frees a block, from the frame at `frame`: a write to all of it. When its addresses are used
    /// again they are other memory; if the block goes back to the system, nobody will tell when.
    pub fn free(&mut self, start: usize, size: usize, to_system: bool, frame: usize) {
        if self.stopped.is_some() || size == 0 || !self.options.hygiene.heap {
            return;
        }
        let Ok(bytes) = Bytes::new(start as u64, size as u64) else { return };
        if let Some(recorder) = self.stream.consumer_mut().recorder() {
            recorder.push(Item::Freed { start, size });
        }
        if !to_system && size as u64 <= LARGE && !EXACT.get() && self.fresh.take(start) {
            if !self.owned.forget(start) && !ranges::settled(start, size, AccessKind::Write) {
                let origin = self.origin_of_call(frame);
                log::record_bytes(self, bytes, AccessKind::Write, origin);
            }
            return self.forget_words(start..start.saturating_add(size));
        }
        self.deliver_bytes(bytes, frame);
        if self.owned.forget(start) {
            return self.forget_words(start..start.saturating_add(size));
        }
        let stack = self.stack_of_call(frame);
        let site = self.sites.number(Origin::free(stack), false);
        self.stream.consumer_mut().is_allocators(site, Allocator::Frees);
        if to_system {
            // Piece by piece: of a large mapping most may never have been touched, and nothing remains to be remembered.
            for at in (0..size).step_by(PIECE) {
                let (start, size) = (start + at, PIECE.min(size - at));
                if let Ok(bytes) = Bytes::new(start as u64, size as u64) {
                    self.write(bytes, site);
                }
                self.erase(start, size);
            }
        } else {
            self.write(bytes, site);
        }
        // If the free itself has raced, the block was asked about just now. Its addresses may come back in blocks that begin elsewhere.
        self.owned.forget(start);
        self.forget_words(start..start.saturating_add(size));
    }

    /// Hands what the running strand has done so far to these bytes to the detector, which will be other memory soon. The function that was
    /// called and has this frame stands for all places.
    fn deliver_bytes(&mut self, bytes: Bytes, frame: usize) {
        // To look at every line of a large block would take longer.
        if EXACT.get() || self.sync.has_accesses() || bytes.len() > LARGE {
            return self.deliver();
        }
        shared::forget_range(&mut self.shared, &(bytes.start() as usize..bytes.end() as usize));
        let private = Private::new(self.tasks.private(), self.worker_variables(), &self.owned);
        let mut spans = std::mem::take(&mut self.spans);
        spans.clear();
        log::take_bytes(bytes, &private, &mut spans);
        if !spans.is_empty() {
            let origin = self.origin_of_call(frame);
            let site = self.sites.number(origin, false);
            spans.iter_mut().for_each(|span| span.first.site = site);
            let task = self.who_accesses(bytes.start() as usize);
            let result = self.stream.spans(task, &spans);
            self.delivered(result);
        }
        spans.clear();
        self.spans = spans;
    }

    /// A block comes into being, or the running task has nothing to do with its end: what was done to its addresses was done to
    /// other memory.
    pub fn allocated(&mut self, start: usize, size: usize) {
        self.owned.forget(start);
        if self.active && self.options.hygiene.heap {
            match self.tasks.has_own_heap() {
                true => self.nest.allocated(start, size),
                false => self.nest.freed(start),
            }
            self.erase(start, size);
            if self.fresh.allocated(start)
                && let Ok(bytes) = Bytes::new(start as u64, size as u64)
            {
                log::forget_bytes(bytes);
            }
        }
    }

    /// The allocator, or the system, has written a new block for the running task: zeroes, or what another block held.
    /// `frames` is the call stack of who asked for it.
    pub fn filled(&mut self, start: usize, size: usize, frames: &[usize]) {
        if !self.active || size == 0 || !self.options.hygiene.heap {
            return;
        }
        let Ok(bytes) = Bytes::new(start as u64, size as u64) else { return };
        let site = self.sites.stack_number(frames);
        let site = self.sites.number(Origin::filled(site), false);
        self.stream.consumer_mut().is_allocators(site, Allocator::Fills);
        self.write(bytes, site);
    }

    /// The running task writes bytes that are in none of the tables.
    fn write(&mut self, bytes: Bytes, site: SiteId) {
        self.spans.clear();
        outbox::spans(bytes, AccessKind::Write, site, &mut self.spans);
        let task = self.who_accesses(bytes.start() as usize);
        shared::forget_range(&mut self.shared, &(bytes.start() as usize..bytes.end() as usize));
        let result = self.stream.spans(task, &self.spans);
        self.delivered(result);
        self.spans.clear();
    }

    pub fn erase(&mut self, start: usize, size: usize) {
        let Ok(bytes) = Bytes::new(start as u64, size as u64) else { return };
        shared::forget_range(&mut self.shared, &(start..start + size));
        self.tell_of(bytes);
        if let Err(error) = self.stream.erase(bytes) {
            self.stop(&error);
        }
    }
}
