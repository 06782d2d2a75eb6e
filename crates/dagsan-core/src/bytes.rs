//! Byte ranges and the 64-byte lines they are cut into.
//!
//! ```text
//!   address      63 ………………………………………… 6 5 …… 0
//!                [        line number       | byte ]
//!
//!   line mask    bit i set  <=>  byte i of the line is meant
//! ```
//!
//! Access sets and the access history work on (line, mask) pairs: byte-precise at every width and
//! alignment, and 64 bytes treated alike cost one step.

use std::fmt;

/// Bytes per line, and bits per line mask.
pub const LINE_BYTES: u64 = 64;
const LINE_SHIFT: u32 = LINE_BYTES.trailing_zeros();

/// A range that runs past the end of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes from {start:#x} run past the end of the address space")]
pub struct OutOfAddressSpace {
    /// Where the range starts.
    pub start: u64,
    /// How many bytes were asked for.
    pub len: u64,
}

/// A range of bytes, possibly empty, inside the address space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes {
    start: u64,
    len: u64,
}

impl Bytes {
    /// The `len` bytes from `start` on.
    #[inline]
    pub fn new(start: u64, len: u64) -> Result<Bytes, OutOfAddressSpace> {
        match start.checked_add(len) {
            Some(_) => Ok(Bytes { start, len }),
            None => Err(OutOfAddressSpace { start, len }),
        }
    }

    /// The first address.
    pub fn start(self) -> u64 {
        self.start
    }

    /// The address after the last.
    pub fn end(self) -> u64 {
        self.start + self.len
    }

    /// How many bytes.
    pub fn len(self) -> u64 {
        self.len
    }

    /// No byte at all?
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The lines the range touches, each with the mask of its bytes in the range.
    #[inline]
    pub fn lines(self) -> Lines {
        Lines { next: self.start, end: self.end() }
    }

    /// The mask of the bytes of line `number` that lie in the range, if there are any.
    #[inline]
    pub(crate) fn within(self, number: u64) -> Option<u64> {
        let line_start = number * LINE_BYTES;
        let start = self.start.max(line_start);
        let end = self.end().min(line_start.saturating_add(LINE_BYTES));
        let part = Bytes { start, len: end.checked_sub(start)? };
        part.lines().next().map(|(_, mask)| mask)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{}", self.start, self.len)
    }
}

/// Iterator over a range's (line number, mask) pairs; see [`Bytes::lines`].
#[derive(Debug, Clone)]
pub struct Lines {
    next: u64,
    end: u64,
}

impl Iterator for Lines {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        if self.next >= self.end {
            return None;
        }
        let line = self.next >> LINE_SHIFT;
        let from = self.next % LINE_BYTES;
        let take = (LINE_BYTES - from).min(self.end - self.next);
        self.next += take;
        Some((line, low_bits(take) << from))
    }
}

/// The mask of the lowest `count` bits, 1 to 64.
#[inline]
fn low_bits(count: u64) -> u64 {
    debug_assert!((1..=64).contains(&count));
    u64::MAX >> (64 - count)
}

/// Some bytes of one line: where a race is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The line number: address / 64.
    pub line: u64,
    /// Bit i stands for byte i of the line.
    pub mask: u64,
}

impl Location {
    /// The contiguous byte ranges of the location, lowest first.
    pub fn ranges(self) -> impl Iterator<Item = Bytes> {
        let mut mask = self.mask;
        std::iter::from_fn(move || {
            if mask == 0 {
                return None;
            }
            let from = u64::from(mask.trailing_zeros());
            let len = u64::from((mask >> from).trailing_ones());
            mask &= !(low_bits(len) << from);
            Some(Bytes { start: (self.line << LINE_SHIFT) + from, len })
        })
    }

    /// The address of every byte of the location, lowest first.
    pub fn addresses(self) -> impl Iterator<Item = u64> {
        self.ranges().flat_map(|range| range.start..range.end())
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(start: u64, len: u64) -> Vec<(u64, u64)> {
        Bytes::new(start, len).unwrap().lines().collect()
    }

    #[test]
    fn a_range_is_cut_at_line_borders() {
        assert_eq!(lines(0, 64), [(0, u64::MAX)]);
        assert_eq!(lines(62, 4), [(0, 0b11 << 62), (1, 0b11)]);
        assert_eq!(lines(70, 1), [(1, 1 << 6)]);
        assert_eq!(lines(60, 72), [(0, 0xf << 60), (1, u64::MAX), (2, 0xf)]);
        assert_eq!(lines(5, 0), []);
    }

    #[test]
    fn the_last_byte_of_the_address_space_is_out_of_reach_but_no_panic() {
        assert!(Bytes::new(u64::MAX, 1).is_err());
        assert_eq!(lines(u64::MAX - 1, 1), [(u64::MAX >> 6, 1 << 62)]);
    }

    #[test]
    fn the_part_of_a_line_in_a_range() {
        let bytes = Bytes::new(60, 72).unwrap();
        let parts = [0, 1, 2, 3].map(|line| bytes.within(line));
        assert_eq!(parts, [Some(0xf << 60), Some(u64::MAX), Some(0xf), None]);
        assert_eq!(Bytes::new(64, 64).unwrap().within(0), None);
        assert_eq!(Bytes::new(0, 64).unwrap().within(1), None);
    }

    #[test]
    fn a_location_gives_its_ranges_back() {
        let location = Location { line: 2, mask: 0b1110_0001 };
        let ranges: Vec<_> = location.ranges().map(|r| (r.start(), r.len())).collect();
        assert_eq!(ranges, [(128, 1), (133, 3)]);
        assert_eq!(location.addresses().collect::<Vec<_>>(), [128, 133, 134, 135]);
        assert_eq!(Location { line: 0, mask: u64::MAX }.addresses().count(), 64);
    }
}
