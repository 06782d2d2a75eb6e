//! Bytes that are nobody else's business than the running strand's: frames that are younger than it, thread-local variables,
//! and what these alone lead to (`owned.rs`).

use std::cell::Cell;
use std::ops::{Range, RangeInclusive};

use crate::owned::Owned;
use crate::tasks;

/// See the module's documentation.
pub(crate) struct Private<'a> {
    /// No other lines have any.
    lines: RangeInclusive<u64>,
    frames: Range<usize>,
    variables: Range<usize>,
    owned: &'a Owned,
    touched: Cell<u64>,
}

impl<'a> Private<'a> {
    #[inline]
    pub(crate) fn new(frames: Range<usize>, variables: Range<usize>, owned: &'a Owned) -> Private<'a> {
        let (mut lowest, mut highest) = (frames.start.min(variables.start), frames.end.max(variables.end));
        if !owned.is_empty() {
            let span = owned.span();
            (lowest, highest) = (lowest.min(span.start), highest.max(span.end));
        }
        let lines = lowest as u64 >> 6..=highest as u64 >> 6;
        Private { lines, frames, variables, owned, touched: Cell::new(0) }
    }

    /// The bytes of a line.
    #[inline]
    pub(crate) fn of(&self, line: u64) -> u64 {
        // Most lines have none.
        if self.lines.contains(&line) { self.look_at(line) } else { 0 }
    }

    #[inline]
    fn look_at(&self, line: u64) -> u64 {
        let variables = within(&self.variables, line);
        if variables != 0 {
            self.touched.set(self.touched.get() | tasks::bit_of(line));
        }
        let private = within(&self.frames, line) | variables;
        if self.owned.is_empty() { private } else { private | self.owned.within(line) }
    }

    /// Are all bytes of the line in frames of the strand?
    #[inline]
    pub(crate) fn has_frames_only(&self, line: u64) -> bool {
        let start = (line as usize) << 6;
        start >= self.frames.start && start + 64 <= self.frames.end
    }

    /// How far lines, which end there, have as little of it as this one.
    #[inline]
    pub(crate) fn border(&self, line: u64, end: u64) -> u64 {
        if line < *self.lines.start() {
            end.min(*self.lines.start())
        } else if line > *self.lines.end() {
            end
        } else {
            line + 1
        }
    }

    /// The lines of thread-local variables that were asked about, each by a bit.
    pub(crate) fn touched(&self) -> u64 {
        self.touched.get()
    }
}

/// The bytes of a line that lie in a range.
#[inline]
pub(crate) fn within(range: &Range<usize>, line: u64) -> u64 {
    let start = (line as usize) << 6;
    if start >= range.end || start + 64 <= range.start {
        return 0;
    }
    let mut mask = u64::MAX;
    if start < range.start {
        mask &= u64::MAX << (range.start - start);
    }
    if start + 64 > range.end {
        mask &= u64::MAX >> (start + 64 - range.end);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_line_in_a_range() {
        assert_eq!(within(&(128..256), 1), 0);
        assert_eq!(within(&(128..256), 2), u64::MAX);
        assert_eq!(within(&(130..256), 2), u64::MAX << 2);
        assert_eq!(within(&(130..134), 2), 0b11_1100);
        assert_eq!(within(&(100..129), 2), 1);
        assert_eq!(within(&(0..0), 0), 0);
    }
}
