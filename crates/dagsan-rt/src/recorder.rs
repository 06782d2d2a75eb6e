//! What a part of the program tells that runs ahead (`part`): kept, to be told when the session comes to it (`replay`).
//!
//! ```text
//!   items   [ event │ accesses of a task │ other memory │ … ]     in the order in which the part has told them
//!   spans   [ …      ↑ so many of these  … ]
//! ```
//!
//! Tasks have numbers of the part's own: its main task is whoever runs the part.
//!
//! The history is not asked while the part runs, since it belongs to the session. All that a part must know (`shared`) is what it has written
//! itself: whatever others do has the same order to all of the part. That is in a table, [`TOLD`], as long as the part runs. The table is the worker's, and the
//! next part that it runs has it, which may be before this one is told: who ends leaves it empty.

use std::ops::Range;

use dagsan_core::{AccessKind, Allocator, Bytes, Event, SiteId, Span, TaskId};

use crate::layout::{self, TOLD};
use crate::state::Worker;

/// Something that was told.
#[derive(Debug, Clone, Copy)]
pub enum Item {
    Event(Event),
    /// Accesses of the running strand of a task, so many of the spans.
    Accesses {
        task: TaskId,
        spans: usize,
    },
    /// What is there will be other memory.
    Erase(Bytes),
    /// The block is the worker's (`owned`).
    Owned {
        start: usize,
        end: usize,
    },
    /// What is done at the site is an allocator's doing.
    Allocators(SiteId, Allocator),
    /// The block is freed: words in it are no more.
    Freed {
        start: usize,
        size: usize,
    },
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Recorder {
    items: Vec<Item>,
    spans: Vec<Span>,
    /// Whose table says what was written, as long as the part runs.
    worker: Option<&'static Worker>,
}

/// A part that has recorded so many bytes waits until it is told.
const MOST: usize = 32 << 20;

impl Recorder {
    /// Nothing was told, for a part that this worker runs.
    pub fn new(worker: &'static Worker) -> Recorder {
        Recorder { items: Vec::new(), spans: Vec::new(), worker: Some(worker) }
    }

    #[inline]
    pub fn push(&mut self, item: Item) {
        self.items.push(item);
        self.look_at_size();
    }

    pub fn accesses(&mut self, task: TaskId, spans: &[Span]) {
        self.items.push(Item::Accesses { task, spans: spans.len() });
        self.spans.extend_from_slice(spans);
        let Some(worker) = self.worker else { return };
        for span in spans.iter().filter(|span| span.first.kind == AccessKind::Write) {
            for_lines(span, |line, mask| {
                // SAFETY: the tables cover all addresses of the program; only the thread that runs the part uses those of its worker.
                unsafe { *layout::mask_of(worker, TOLD, line) |= mask };
            });
        }
        self.look_at_size();
    }

    /// The block, which is about to be freed, was the worker's since it came into being.
    pub fn was_owned(&mut self, block: Range<usize>) {
        let came = |item: &Item| matches!(item, Item::Erase(bytes) if bytes.start() == block.start as u64);
        let at = self.items.iter().rposition(came).map_or(0, |before| before + 1);
        self.items.insert(at, Item::Owned { start: block.start, end: block.end });
    }

    /// If there is a lot, the part is told before there is more.
    #[inline]
    fn look_at_size(&self) {
        if self.items.len() * size_of::<Item>() + self.spans.len() * size_of::<Span>() >= MOST
            && let Some(worker) = self.worker
        {
            worker.want_order();
        }
    }

    /// The bytes of a line that the part was told to have written.
    #[inline]
    pub fn written(&self, line: u64) -> u64 {
        // SAFETY: as above.
        self.worker.map_or(0, |worker| unsafe { *layout::mask_of(worker, TOLD, line) })
    }

    /// Nothing is recorded any more: the part ends, and its worker is others' from here on; or it is told.
    pub fn leave_worker(&mut self) {
        let Some(worker) = self.worker.take() else { return };
        for span in self.spans.iter().filter(|span| span.first.kind == AccessKind::Write) {
            for_lines(span, |line, _| {
                // SAFETY: this thread runs the part, or the one that does waits for it.
                unsafe { *layout::mask_of(worker, TOLD, line) = 0 };
            });
        }
    }

    /// All that was told, with the spans of accesses.
    pub fn take(&mut self) -> Told {
        self.leave_worker();
        Told { items: std::mem::take(&mut self.items), spans: std::mem::take(&mut self.spans) }
    }
}

/// What a part has told.
#[derive(Debug)]
pub struct Told {
    items: Vec<Item>,
    spans: Vec<Span>,
}

impl Told {
    /// Each item, with its spans.
    pub fn iter(&self) -> impl Iterator<Item = (&Item, &[Span])> {
        let mut rest = &self.spans[..];
        self.items.iter().map(move |item| {
            let count = if let Item::Accesses { spans, .. } = item { *spans } else { 0 };
            let (spans, others) = rest.split_at(count);
            rest = others;
            (item, spans)
        })
    }
}

/// The lines of a span, and which of their bytes.
#[inline]
pub fn for_lines(&Span { first, more }: &Span, mut action: impl FnMut(u64, u64)) {
    (first.at.line..=first.at.line + u64::from(more)).for_each(|line| action(line, first.at.mask));
}

#[cfg(test)]
mod tests {
    use dagsan_core::{Location, Run};

    use super::*;

    /// A worker that nobody else has.
    fn some_worker() -> &'static Worker {
        let base = layout::reserve().unwrap();
        // SAFETY: the page below the base was reserved just now.
        unsafe { Worker::at(base) }
    }

    fn write(line: u64, mask: u64) -> [Span; 1] {
        let at = Location { line, mask };
        let site = SiteId::new(1).unwrap();
        [Run { at, kind: AccessKind::Write, site, atomic: false }.into()]
    }

    #[test]
    fn what_a_worker_runs_next_knows_what_it_has_written_when_the_part_before_is_told() {
        let worker = some_worker();
        let here = 0u8;
        let line = (&raw const here).addr() as u64 >> 6;
        let mut ended = Recorder::new(worker);
        ended.accesses(TaskId::MAIN, &write(line, 0b01));
        ended.leave_worker();
        let mut next = Recorder::new(worker);
        assert_eq!(next.written(line), 0);
        next.accesses(TaskId::MAIN, &write(line, 0b10));
        assert_eq!(ended.take().iter().count(), 1);
        assert_eq!(next.written(line), 0b10);
        next.take();
        assert_eq!(next.written(line), 0);
    }
}
