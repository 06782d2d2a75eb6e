//! Series-parallel order by two lists: SP-order (Bender et al. 2004), as paper 001 uses it (WSP-Order).
//!
//! Every position of the program is in two total orders. In the *English* order a child comes before
//! the rest of its parent, in the *Hebrew* order after it; both orders have a scope's end behind all
//! that is in the scope. One position precedes another in the series-parallel graph exactly if it
//! comes first in both:
//!
//! ```text
//!   fork at c:    English   c · child · rest           open a scope at c:   c · end   in both orders;
//!                 Hebrew    c · rest · child           what is put after c stays before the end
//! ```
//!
//! A query compares two pairs of numbers, whatever the order in which positions were made: programs that
//! switch between tasks need nothing more. Positions are never moved, only renumbered, so all of this can
//! be shared: queries run under a sequence lock beside one thread that inserts (see [`seqlock`]).

mod list;
mod seqlock;

pub(crate) use list::Position;
use list::{ENGLISH, HEBREW, Orders, Place};

/// The series-parallel order of a program's positions.
#[derive(Debug)]
pub(crate) struct SeriesParallel {
    orders: Orders,
}

impl SeriesParallel {
    /// One position: the start of the program.
    pub(crate) fn new() -> SeriesParallel {
        SeriesParallel { orders: Orders::new() }
    }

    /// Where the program starts.
    pub(crate) fn start(&self) -> Position {
        Position::START
    }

    /// Only the start of the program, again.
    pub(crate) fn clear(&mut self) {
        self.orders.clear();
    }

    /// A task at `at` creates another: where the child starts, and where the task goes on.
    pub(crate) fn fork(&self, at: Position) -> (Position, Position) {
        self.orders.insert(|list| {
            let (child, rest) = (list.push(), list.push());
            // Nothing comes right after `at` any more: the task is at `rest` now.
            list.link_after::<ENGLISH>(at, child, Place::Next);
            list.link_after::<ENGLISH>(child, rest, Place::AfterTask);
            list.link_after::<HEBREW>(at, rest, Place::Next);
            list.link_after::<HEBREW>(rest, child, Place::BeforeTask);
            (child, rest)
        })
    }

    /// A task at `at` opens a scope: where it will be when the scope is closed.
    pub(crate) fn open(&self, at: Position) -> Position {
        self.orders.insert(|list| {
            let end = list.push();
            list.link_after::<ENGLISH>(at, end, Place::AfterScope);
            list.link_after::<HEBREW>(at, end, Place::AfterScope);
            end
        })
    }

    /// Does `a` come before `b` on every path?
    #[inline]
    pub(crate) fn precedes(&self, a: Position, b: Position) -> bool {
        self.corner_precedes(a, a, b)
    }

    /// Does everything in a corner precede `b`? The corner holds what is at or before `english` in the
    /// English order and at or before `hebrew` in the Hebrew order.
    #[inline]
    pub(crate) fn corner_precedes(&self, english: Position, hebrew: Position, b: Position) -> bool {
        self.orders.read(|| {
            let b = self.orders.labels(b);
            self.orders.labels(english)[ENGLISH] < b[ENGLISH]
                && self.orders.labels(hebrew)[HEBREW] < b[HEBREW]
        })
    }

    /// Is `a` in the corner?
    #[inline]
    pub(crate) fn in_corner(&self, a: Position, english: Position, hebrew: Position) -> bool {
        self.orders.read(|| {
            let a = self.orders.labels(a);
            a[ENGLISH] <= self.orders.labels(english)[ENGLISH]
                && a[HEBREW] <= self.orders.labels(hebrew)[HEBREW]
        })
    }

    /// Does `a` come before `b` in the English order?
    pub(crate) fn english_before(&self, a: Position, b: Position) -> bool {
        self.later_english(a, b) != a
    }

    /// The later of the two in the English order.
    pub(crate) fn later_english(&self, a: Position, b: Position) -> Position {
        self.later::<ENGLISH>(a, b)
    }

    /// The later of the two in the Hebrew order.
    pub(crate) fn later_hebrew(&self, a: Position, b: Position) -> Position {
        self.later::<HEBREW>(a, b)
    }

    fn later<const ORDER: usize>(&self, a: Position, b: Position) -> Position {
        self.orders.read(|| if self.orders.labels(a)[ORDER] < self.orders.labels(b)[ORDER] { b } else { a })
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.orders.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_parallel_until_the_scope_ends() {
        let sp = SeriesParallel::new();
        let start = sp.start();
        let end = sp.open(start);
        let (child, rest) = sp.fork(start);
        let (grandchild, child_rest) = sp.fork(child);
        let (second, rest_2) = sp.fork(rest);
        for inside in [child, rest, grandchild, child_rest, second, rest_2] {
            assert!(sp.precedes(start, inside) && sp.precedes(inside, end));
            assert!(!sp.precedes(inside, start) && !sp.precedes(end, inside));
        }
        for (a, b) in [(child, rest), (grandchild, rest_2), (child_rest, grandchild), (second, child)] {
            assert!(!sp.precedes(a, b) && !sp.precedes(b, a));
        }
        assert!(sp.precedes(child, grandchild) && sp.precedes(rest, second));
    }

    /// Against a plain vector, with enough insertions in one place to relabel many times.
    #[test]
    fn relabelling_keeps_the_orders() {
        let mut random = 12345u32;
        for (bias, count) in [(0, 3000), (1, 3000), (7, 3000)] {
            let sp = SeriesParallel::new();
            let mut english = vec![sp.start()];
            let mut hebrew = english.clone();
            let mut place = 0;
            for _ in 0..count {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if bias > 0 && random.is_multiple_of(bias) {
                    place = (random >> 8) as usize % english.len();
                }
                let at = english[place];
                let (child, rest) = sp.fork(at);
                let e = english.iter().position(|&p| p == at).unwrap();
                english.splice(e + 1..e + 1, [child, rest]);
                let h = hebrew.iter().position(|&p| p == at).unwrap();
                hebrew.splice(h + 1..h + 1, [rest, child]);
            }
            for pair in english.windows(2) {
                assert_eq!(sp.later_english(pair[0], pair[1]), pair[1]);
            }
            for pair in hebrew.windows(2) {
                assert_eq!(sp.later_hebrew(pair[0], pair[1]), pair[1]);
            }
        }
    }
}
