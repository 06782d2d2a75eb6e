//! What the core hears of a run: task events, and the access set of the running strand.

use dagsan_core::TaskId;
use dagsan_core::{
    AccessKind, AccessSet, Bytes, Consumer, Error, Event, LINE_BYTES, Location, SiteId, Stream,
};

use crate::hir::AccessId;

/// Bytes of a cell.
pub(crate) const CELL_BYTES: u64 = 8;
/// A line has a whole number of cells, and no cell is in two.
const CELLS_PER_LINE: u64 = LINE_BYTES / CELL_BYTES;
/// The mask of the first cell of a line.
const CELL_MASK: u64 = (1 << CELL_BYTES) - 1;

/// Collects the accesses of the running strand, and delivers them before the event that ends it.
pub(crate) struct Trace<'a> {
    /// `None` in a plain run, which nobody looks at.
    stream: Option<Stream<&'a mut (dyn Consumer + 'a)>>,
    set: AccessSet,
    /// Must accesses be collected? Not while nothing can be parallel to them.
    recording: bool,
    /// How many were.
    pub(crate) checks: u64,
    /// Has a join made the program quiescent?
    quiesced: bool,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(consumer: Option<&'a mut (dyn Consumer + 'a)>) -> Trace<'a> {
        Trace {
            stream: consumer.map(Stream::new),
            set: AccessSet::new(),
            recording: false,
            checks: 0,
            quiesced: false,
        }
    }

    /// Are accesses collected?
    pub(crate) fn recording(&self) -> bool {
        self.recording
    }

    /// Collects an access to one cell.
    #[inline]
    pub(crate) fn access(&mut self, cell: u32, kind: AccessKind, access: AccessId) {
        // Accesses are numbered by fewer than 29 bits.
        if self.recording
            && let Some(site) = SiteId::new(access.0)
        {
            self.checks += 1;
            let mask = CELL_MASK << (u64::from(cell) % CELLS_PER_LINE * CELL_BYTES);
            let at = Location { line: u64::from(cell) / CELLS_PER_LINE, mask };
            debug_assert!(
                at.addresses().eq(u64::from(cell) * CELL_BYTES..(u64::from(cell) + 1) * CELL_BYTES)
            );
            self.set.record_at(at, kind, site);
        }
    }

    /// Collects an access to `count` cells from `cell` on.
    pub(crate) fn range(&mut self, cell: u64, count: u64, kind: AccessKind, access: AccessId) {
        if self.recording
            && let (Ok(bytes), Some(site)) =
                (Bytes::new(cell * CELL_BYTES, count * CELL_BYTES), SiteId::new(access.0))
        {
            self.checks += 1;
            self.set.record(bytes, kind, site);
        }
    }

    /// Delivers what the strand of `task` did so far: to be called before another task runs.
    pub(crate) fn flush(&mut self, task: u32) -> Result<(), Error> {
        if let (Some(stream), false) = (&mut self.stream, self.set.is_empty()) {
            stream.accesses(TaskId(task), &self.set)?;
            self.set.clear();
        }
        Ok(())
    }

    /// An event of `task`, which ends its strand.
    pub(crate) fn event(&mut self, event: Event) -> Result<(), Error> {
        self.flush(event.task().0)?;
        if let Some(stream) = &mut self.stream {
            stream.event(event)?;
            let before = std::mem::replace(&mut self.recording, !stream.quiescent());
            self.quiesced |= before && !self.recording;
        }
        Ok(())
    }

    /// Has the program become quiescent since this was asked last?
    pub(crate) fn take_quiesced(&mut self) -> bool {
        std::mem::take(&mut self.quiesced)
    }

    /// How many strands touched memory.
    pub(crate) fn strands(&self) -> u32 {
        self.stream.as_ref().map_or(0, Stream::strand_count)
    }
}
