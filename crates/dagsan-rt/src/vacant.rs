//! Lines that are known to hold nothing: what a deep recursion need not look at again.
//!
//! A task that ends leaves a stack behind whose lines are forgotten, those of its ended children among them, which were
//! forgotten before. One stretch of lines is remembered, the one that was emptied last: stacks grow and shrink at one end.

use std::ops::Range;

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vacant(Range<u64>);

impl Vacant {
    /// There is something in the line.
    #[inline]
    pub(crate) fn fill(&mut self, line: u64) {
        if self.0.contains(&line) {
            let Range { start, end } = self.0;
            self.0 = if line - start >= end - line { start..line } else { line + 1..end };
        }
    }

    /// The lines will be empty. Returns those of them that may not be yet.
    #[inline]
    pub(crate) fn empty(&mut self, lines: Range<u64>) -> [Range<u64>; 2] {
        let known = self.0.clone();
        if known.is_empty() || known.end < lines.start || lines.end < known.start {
            self.0 = lines.clone();
            return [lines, 0..0];
        }
        self.0 = known.start.min(lines.start)..known.end.max(lines.end);
        [
            lines.start..known.start.clamp(lines.start, lines.end),
            known.end.clamp(lines.start, lines.end)..lines.end,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_empty_is_not_looked_at_again() {
        let mut vacant = Vacant::default();
        assert_eq!(vacant.empty(10..20), [10..20, 0..0]);
        assert!(vacant.empty(10..20).iter().all(Range::is_empty));
        vacant.fill(18);
        let [left, right] = vacant.empty(5..25);
        assert_eq!((left, right), (5..10, 18..25));
    }

    #[test]
    fn nothing_that_is_there_is_passed_over() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let (mut vacant, mut there) = (Vacant::default(), BTreeSet::new());
        for _ in 0..100_000 {
            if next(2) == 0 {
                let line = next(40);
                there.insert(line);
                vacant.fill(line);
            } else {
                let start = next(40);
                let lines = start..start + next(10);
                for line in vacant.empty(lines.clone()).into_iter().flatten() {
                    there.remove(&line);
                }
                assert!(there.range(lines).next().is_none());
            }
        }
    }
}
