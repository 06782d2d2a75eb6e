//! The way from the access set of a strand to the detector: runs of bytes, gathered to spans over lines, without what is private.

use dagsan_core::{AccessKind, Bytes, Location, Run, SiteId, Span};

use crate::layout;
use crate::private::within;

/// What is delivered at a time: as much as stays in the processor's first cache.
const PIECE: usize = 512;

/// Spans on their way to the detector.
pub(crate) struct Outbox<F: FnMut(&[Span])> {
    spans: Vec<Span>,
    /// So many go at a time.
    piece: usize,
    deliver: F,
}

impl<F: FnMut(&[Span])> Outbox<F> {
    /// With the room of `spans`, which is empty. What must not be cut goes `whole`.
    pub(crate) fn new(spans: Vec<Span>, whole: bool, deliver: F) -> Outbox<F> {
        Outbox { spans, piece: if whole { usize::MAX } else { PIECE }, deliver }
    }

    #[inline]
    pub(crate) fn push(&mut self, run: Run) {
        self.push_span(run, 0);
    }

    /// The same in lines that follow, as many as `more`.
    #[inline]
    pub(crate) fn push_span(&mut self, run: Run, more: u32) {
        if run.at.mask == 0 {
            return;
        }
        if let Some(last) = self.spans.last_mut() {
            let first = last.first;
            let next = Location { line: first.at.line + u64::from(last.more) + 1, ..first.at };
            if run == (Run { at: next, ..first }) {
                last.more += more + 1;
                return;
            }
            // The write of a line and its read stay together.
            if first.at.line != run.at.line && self.spans.len() >= self.piece {
                self.flush();
            }
        }
        self.spans.push(Span { first: run, more });
    }

    fn flush(&mut self) {
        (self.deliver)(&self.spans);
        self.spans.clear();
    }

    /// Delivers the rest. Returns the room.
    pub(crate) fn close(mut self) -> Vec<Span> {
        if !self.spans.is_empty() {
            self.flush();
        }
        self.spans
    }
}

/// The same access to all of these bytes: a part of a line, whole lines, a part of a line.
pub(crate) fn spans(bytes: Bytes, kind: AccessKind, site: SiteId, into: &mut Vec<Span>) {
    let range = bytes.start() as usize..bytes.end() as usize;
    let [mut line, last] = [bytes.start(), bytes.end()].map(|address| address >> layout::LINE_SHIFT);
    while line <= last {
        let mask = within(&range, line);
        // All lines between the first and the last are whole, and perhaps the first.
        let more = if mask == u64::MAX { u32::try_from(last - line - 1).unwrap_or(u32::MAX) } else { 0 };
        if mask != 0 {
            into.push(Span { first: run(line, mask, kind, site), more });
        }
        line += u64::from(more) + 1;
    }
}

#[inline]
pub(crate) fn run(line: u64, mask: u64, kind: AccessKind, site: SiteId) -> Run {
    Run { at: Location { line, mask }, kind, site, atomic: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::UNKNOWN;

    #[test]
    fn a_range_is_three_spans_at_most() {
        let of = |start: u64, len: u64| {
            let mut into = Vec::new();
            spans(Bytes::new(start, len).unwrap(), AccessKind::Write, UNKNOWN, &mut into);
            into
        };
        for start in [0, 1, 63, 64, 100, 128] {
            for len in [1, 2, 27, 28, 29, 63, 64, 65, 128, 129, 1000] {
                let spans = of(start, len);
                assert!(spans.len() <= 3, "{spans:?}");
                let lines = spans.iter().flat_map(|span| {
                    let Location { line, mask } = span.first.at;
                    (line..=line + u64::from(span.more)).map(move |line| (line, mask))
                });
                let expected: Vec<(u64, u64)> = Bytes::new(start, len).unwrap().lines().collect();
                assert_eq!(lines.collect::<Vec<_>>(), expected, "{start} {len}");
            }
        }
    }
}
