//! Shared reads: the bytes that the running strand may read without telling anybody (`dagsan_core::shared`).
//!
//! ```text
//!   KEPT      a bit per byte: an ended reader stands for whoever reads it
//!   SEEN      all ones for a line that is kept as a whole: marks in line find nothing to do
//!
//!   read ─► SEEN has the bits? ─ yes ─► on
//!              └ no ─► miss ─► KEPT has them? ─ yes ─► on
//!                                  └ no ─► into the log; at the end of the strand, to the detector, and if nobody writes there, kept
//! ```
//!
//! What is kept has to be noted, and forgotten again, line by line. A strand that has read thousands of places far from each other may
//! well have been the only one that wanted them: elements of a column, of a hash table. Such reads are kept when they are made
//! for the second time: some of them are looked up in the history before it hears of them. Keeping fewer is never wrong.
//!
//! Of a line that is kept in part SEEN has no bits but those of the running strand: marks in line take a line with bits for one that is
//! in the log.

use std::ops::Range;

use dagsan_core::shared::{Forget, ROOM, SharedReads};
use dagsan_core::{AccessKind, Location, Span};

use crate::kept_ranges;
use crate::layout::{self, KEPT, SEEN, WRITTEN};
use crate::private::within;
use crate::state::{Worker, worker};
use crate::sync::standing;
use crate::vacant::Vacant;
use crate::watched::Watched;

/// A piece of memory with more lines than these is not looked through for bytes that are kept.
const MANY: u64 = 1 << 14;

/// See the module's documentation. Tasks are named by their places among those that live.
pub type Shared = SharedReads<u32, Tables>;

/// The main task runs, and nothing is kept; nor will be, if it is not `on`.
pub fn new(on: bool, worker: &'static Worker) -> Shared {
    Shared::new(0, Tables { vacant: Vacant::default(), worker }, if on { ROOM } else { 0 })
}

/// The tables. Whoever has it runs the tasks and is in the session.
#[derive(Debug)]
pub struct Tables {
    /// Lines of which nothing is kept.
    vacant: Vacant,
    /// In whose tables something is kept.
    worker: &'static Worker,
}

impl Forget for Tables {
    fn forget(&mut self, lines: Range<u64>) {
        for line in lines {
            forget_of(self.worker, line, u64::MAX);
            standing::forget(line);
        }
    }
}

/// The session begins anew on another worker: nothing is kept any more, also of scopes that were open when what it was before went on elsewhere. What is kept from
/// here on is in the tables of that one.
pub(crate) fn move_to(shared: &mut Shared, on: bool, worker: &'static Worker) {
    shared.forget_all();
    *shared = new(on, worker);
    standing::forget_all();
    kept_ranges::forget_all();
}

/// Bytes of a line are kept no longer.
#[inline]
pub(crate) fn forget(line: u64, mask: u64) {
    forget_of(worker(), line, mask);
}

#[inline]
fn forget_of(worker: &Worker, line: u64, mask: u64) {
    // SAFETY: only the thread that runs the tasks writes the tables, which cover all addresses of the program; it is in the session. If the tables are
    // another worker's, the session was there before, and the thread of that waits.
    unsafe {
        let [seen, written, kept] = [SEEN, WRITTEN, KEPT].map(|table| layout::mask_of(worker, table, line));
        if *kept == u64::MAX {
            // If the running strand has read more of it, others stand for that.
            *seen = *written;
        }
        if *kept & mask != 0 {
            *kept &= !mask;
            kept_ranges::forget(line);
        }
    }
}

/// What of a line is kept.
#[inline]
pub(crate) fn kept(line: u64) -> u64 {
    // SAFETY: as in `forget`.
    unsafe { *layout::mask(KEPT, line) }
}

/// Does somebody stand for who accesses these bytes so?
#[inline]
pub(crate) fn is_kept(line: u64, mask: u64, kind: AccessKind) -> bool {
    kind == AccessKind::Read && !kept(line) & mask == 0
}

/// The running strand has ended: takes its bits of a line out of the tables. Returns what it has read, without what is kept, or written; and
/// what it has written, which is kept no longer.
#[inline]
pub(crate) fn end(line: u64) -> (u64, u64) {
    // SAFETY: as in `forget`.
    unsafe {
        let [seen, written, kept] = [SEEN, WRITTEN, KEPT].map(|table| layout::mask(table, line));
        let (own, bits, stays) = (*seen, *written, *kept & !*written);
        *seen = if stays == u64::MAX { u64::MAX } else { 0 };
        // What is not written need not have pages of their own in these tables.
        if bits != 0 {
            *written = 0;
            if *kept != stays {
                *kept = stays;
                kept_ranges::forget(line);
            }
        }
        standing::forget(line);
        (own & !stays, bits)
    }
}

/// The same for a line that nobody needs to hear of; not if something of it is kept, or stands for others.
#[inline]
pub(crate) fn drop_unkept(line: u64) -> bool {
    if standing::is_any() || kept(line) != 0 {
        return false;
    }
    // SAFETY: as in `forget`.
    unsafe {
        *layout::mask(SEEN, line) = 0;
        if *layout::mask(WRITTEN, line) != 0 {
            *layout::mask(WRITTEN, line) = 0;
        }
    }
    true
}

/// So many spans of a line each are far from each other, if they come at a time.
const SCATTERED: usize = 128;

/// So many of these are looked up.
const SAMPLES: usize = 16;

/// Are these reads, of which the detector has not heard yet, worth to be kept?
pub(crate) fn are_worth_it(spans: &[Span], detector: &Watched) -> bool {
    let lines = || spans.iter().map(|span| span.more as usize + 1).sum::<usize>();
    if spans.len() < SCATTERED || lines() > 2 * spans.len() {
        return true;
    }
    let is_read = |span: &&Span| span.first.kind == AccessKind::Read;
    let samples = || spans.iter().step_by(spans.len() / SAMPLES).filter(is_read);
    let read_before = |span: &&Span| detector.unwritten(span.first.at) != 0;
    2 * samples().filter(read_before).count() >= samples().count()
}

/// The detector has taken these accesses of the running strand. What it has read and nobody has written is kept, if it `keeps` any.
pub(crate) fn delivered(shared: &mut Shared, spans: &[Span], keeps: bool, detector: &Watched) {
    let keeps = keeps && shared.is_on();
    for &Span { first, more } in spans {
        match (first.kind, first.atomic) {
            (AccessKind::Read, false) if keeps => {
                for line in first.at.line..=first.at.line + u64::from(more) {
                    keep(shared, line, detector.unwritten(Location { line, ..first.at }));
                }
            }
            // What is written by other means goes by the tables.
            (AccessKind::Write, true) if !shared.is_empty() => forget(first.at.line, first.at.mask),
            _ => {}
        }
        if !first.atomic && standing::is_any() {
            (first.at.line..=first.at.line + u64::from(more)).for_each(standing::forget);
        }
    }
}

/// The running strand has read these bytes of a line, which nobody has written.
#[inline]
pub(crate) fn keep(shared: &mut Shared, line: u64, mask: u64) {
    if mask == 0 {
        return;
    }
    // SAFETY: as in `forget`.
    unsafe {
        let kept = layout::mask(KEPT, line);
        *kept |= mask;
        if *kept == u64::MAX {
            *layout::mask(SEEN, line) = u64::MAX;
        }
    }
    shared.bits.vacant.fill(line);
    shared.keep(line..line + 1);
}

/// What is at these addresses is written, or will be other memory.
pub(crate) fn forget_range(shared: &mut Shared, range: &Range<usize>) {
    if shared.is_empty() || range.is_empty() {
        return;
    }
    let lines = range.start as u64 >> 6..(range.end as u64).div_ceil(64);
    if lines.end - lines.start > MANY {
        return shared.forget_all();
    }
    if standing::is_any() {
        lines.clone().for_each(standing::forget);
    }
    // Of the first and the last line something may stay.
    let [lower, upper] = shared.bits.vacant.empty(lines.start + 1..(lines.end - 1).max(lines.start + 1));
    for part in [lines.start..lines.start + 1, lower, upper, lines.end - 1..lines.end] {
        for line in part {
            if kept(line) != 0 {
                forget(line, within(range, line));
            }
        }
    }
}
