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

mod chunks;
mod compact;
mod groups;
mod list;
mod ranks;
mod seqlock;

use crate::error::Error;
use list::{ENGLISH, HEBREW, Orders};
pub(crate) use list::{LookedUp, Position};
pub(crate) use ranks::Ranks;

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

    /// Keeps the positions that `roots` names, and tells it where they are now. It must visit the same positions both
    /// times it is called; one from before the last [`clear`](Self::clear) becomes some position.
    pub(crate) fn compact(&mut self, roots: impl FnMut(&mut dyn FnMut(&mut Position))) {
        self.orders.compact(roots);
    }

    /// Where all positions are in the two orders.
    pub(crate) fn ranks(&self) -> Ranks {
        self.orders.ranks()
    }

    /// A task at `at` creates another: where the child starts, and where the task goes on.
    #[inline]
    pub(crate) fn fork(&self, at: Position) -> Result<(Position, Position), Error> {
        let [child, rest] = self.orders.insert_after(at)?;
        Ok((child, rest))
    }

    /// A task at `at` opens a scope: where it will be when the scope is closed.
    #[inline]
    pub(crate) fn open(&self, at: Position) -> Result<Position, Error> {
        let [end] = self.orders.insert_after(at)?;
        Ok(end)
    }

    /// Does `a` come before `b` on every path?
    #[inline]
    pub(crate) fn precedes(&self, a: Position, b: Position) -> bool {
        let (a, b) = (self.orders.places(a), self.orders.places(b));
        self.orders.read(|| self.orders.before::<ENGLISH>(a, b) && self.orders.before::<HEBREW>(a, b))
    }

    /// Looks a position up, to ask [`precedes_looked_up`](Self::precedes_looked_up) about it often.
    #[inline]
    pub(crate) fn look_up(&mut self, at: Position) -> LookedUp {
        self.orders.look_up(at)
    }

    /// Does `a` come before `b` on every path? `b` was looked up since the last fork and the last open.
    #[inline]
    pub(crate) fn precedes_looked_up(&mut self, a: Position, b: &LookedUp) -> bool {
        self.orders.before_looked_up::<ENGLISH>(a, b) && self.orders.before_looked_up::<HEBREW>(a, b)
    }

    /// The same if all came in the serial depth-first order so far, and `a` came before `b`. That order
    /// is the English one, so the Hebrew one decides.
    #[inline]
    pub(crate) fn precedes_depth_first(&mut self, a: Position, b: &LookedUp) -> bool {
        let precedes = self.orders.before_looked_up::<HEBREW>(a, b);
        debug_assert_eq!(precedes, self.precedes_looked_up(a, b));
        precedes
    }

    /// Does everything in a corner precede `b`? The corner holds what is at or before `english` in the
    /// English order and at or before `hebrew` in the Hebrew order.
    #[inline]
    pub(crate) fn corner_precedes(&self, english: Position, hebrew: Position, b: Position) -> bool {
        let [english, hebrew, b] = [english, hebrew, b].map(|position| self.orders.places(position));
        self.orders
            .read(|| self.orders.before::<ENGLISH>(english, b) && self.orders.before::<HEBREW>(hebrew, b))
    }

    /// Is `a` in the corner?
    #[inline]
    pub(crate) fn in_corner(&self, a: Position, english: Position, hebrew: Position) -> bool {
        let [a, english, hebrew] = [a, english, hebrew].map(|position| self.orders.places(position));
        self.orders
            .read(|| !self.orders.before::<ENGLISH>(english, a) && !self.orders.before::<HEBREW>(hebrew, a))
    }

    /// Does `a` come before `b` in the English order?
    #[inline]
    pub(crate) fn english_before(&self, a: Position, b: Position) -> bool {
        self.before::<ENGLISH>(a, b)
    }

    /// The later of the two in the English order.
    #[inline]
    pub(crate) fn later_english(&self, a: Position, b: Position) -> Position {
        if self.before::<ENGLISH>(a, b) { b } else { a }
    }

    /// The later of the two in the Hebrew order.
    #[inline]
    pub(crate) fn later_hebrew(&self, a: Position, b: Position) -> Position {
        if self.before::<HEBREW>(a, b) { b } else { a }
    }

    #[inline]
    fn before<const ORDER: usize>(&self, a: Position, b: Position) -> bool {
        let (a, b) = (self.orders.places(a), self.orders.places(b));
        self.orders.read(|| self.orders.before::<ORDER>(a, b))
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.orders.memory()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    /// A random program of forks and scopes keeps its order when some positions are let go, and goes on from there.
    #[test]
    fn compacting_changes_no_order() {
        let mut sp = SeriesParallel::new();
        let mut seed = 7u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        let mut kept = vec![sp.start()];
        for round in 0..20 {
            for _ in 0..300 {
                let at = random(kept.len());
                if random(3) == 0 {
                    kept.push(sp.open(kept[at]).unwrap());
                } else {
                    let (child, rest) = sp.fork(kept[at]).unwrap();
                    kept.extend([child, rest]);
                }
            }
            kept.retain(|_| random(4) < 3 - round % 3);
            kept.push(sp.start());
            let order = |sp: &SeriesParallel, kept: &[Position]| -> Vec<bool> {
                kept.iter().flat_map(|&a| kept.iter().map(move |&b| sp.precedes(a, b))).collect()
            };
            let before = order(&sp, &kept);
            sp.compact(|visit| kept.iter_mut().for_each(&mut *visit));
            assert_eq!(before, order(&sp, &kept), "round {round}");
        }
    }

    #[test]
    fn a_fork_is_parallel_until_the_scope_ends() {
        let sp = SeriesParallel::new();
        let start = sp.start();
        let end = sp.open(start).unwrap();
        let (child, rest) = sp.fork(start).unwrap();
        let (grandchild, child_rest) = sp.fork(child).unwrap();
        let (second, rest_2) = sp.fork(rest).unwrap();
        for inside in [child, rest, grandchild, child_rest, second, rest_2] {
            assert!(sp.precedes(start, inside) && sp.precedes(inside, end));
            assert!(!sp.precedes(inside, start) && !sp.precedes(end, inside));
        }
        for (a, b) in [(child, rest), (grandchild, rest_2), (child_rest, grandchild), (second, child)] {
            assert!(!sp.precedes(a, b) && !sp.precedes(b, a));
        }
        assert!(sp.precedes(child, grandchild) && sp.precedes(rest, second));
    }

    /// A program and its two orders as plain linked lists.
    struct Model {
        sp: SeriesParallel,
        positions: Vec<Position>,
        next: [Vec<usize>; 2],
    }

    const NONE: usize = usize::MAX;

    impl Model {
        /// Of a program that only has its start.
        fn of(sp: SeriesParallel) -> Model {
            Model { positions: vec![sp.start()], sp, next: [vec![NONE], vec![NONE]] }
        }

        /// Forks at a position; the numbers of the child and of the rest.
        fn fork(&mut self, at: usize) -> (usize, usize) {
            let (child, rest) = self.sp.fork(self.positions[at]).unwrap();
            let new = self.positions.len();
            self.positions.extend([child, rest]);
            self.link(at, [new, new + 1], [new + 1, new]);
            (new, new + 1)
        }

        fn open(&mut self, at: usize) -> usize {
            let end = self.sp.open(self.positions[at]).unwrap();
            let new = self.positions.len();
            self.positions.push(end);
            self.link(at, [new], [new]);
            new
        }

        fn link<const N: usize>(&mut self, at: usize, english: [usize; N], hebrew: [usize; N]) {
            for (next, new) in self.next.iter_mut().zip([english, hebrew]) {
                next.resize(self.positions.len(), NONE);
                let mut last = at;
                for element in new {
                    next[element] = std::mem::replace(&mut next[last], element);
                    last = element;
                }
            }
        }

        /// The rank of each position in an order.
        fn ranks(&self, order: usize) -> Vec<usize> {
            let mut ranks = vec![NONE; self.positions.len()];
            let (mut at, mut rank) = (0, 0);
            while at != NONE {
                (ranks[at], rank) = (rank, rank + 1);
                at = self.next[order][at];
            }
            ranks
        }

        /// Neighbours and random pairs are ordered as in the model.
        fn check(&self) {
            let count = self.positions.len();
            let (english, hebrew) = (self.ranks(ENGLISH), self.ranks(HEBREW));
            let check = |a: usize, b: usize| {
                let (at, bt) = (self.positions[a], self.positions[b]);
                let later = |ranks: &[usize]| if ranks[a] < ranks[b] { bt } else { at };
                assert_eq!(self.sp.later_english(at, bt), later(&english), "{a} {b}");
                assert_eq!(self.sp.later_hebrew(at, bt), later(&hebrew), "{a} {b}");
                assert_eq!(self.sp.english_before(at, bt), english[a] < english[b], "{a} {b}");
                let before = english[a] < english[b] && hebrew[a] < hebrew[b];
                let within = english[a] <= english[b] && hebrew[a] <= hebrew[b];
                assert_eq!(self.sp.precedes(at, bt), before, "{a} {b}");
                assert_eq!(self.sp.corner_precedes(at, at, bt), before, "{a} {b}");
                assert_eq!(self.sp.in_corner(at, bt, bt), within, "{a} {b}");
            };
            let mut random = Random(1);
            for a in 0..count {
                for next in &self.next {
                    if next[a] != NONE {
                        check(a, next[a]);
                        check(next[a], a);
                    }
                }
                check(a, random.below(count));
            }
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % limit
        }
    }

    const MANY: usize = 200_000;

    /// Many forks in a scope; `next` says where, from where the last one was, its child and its rest.
    fn forks(count: usize, mut next: impl FnMut(usize, usize, usize) -> usize) {
        let mut model = Model::of(SeriesParallel::new());
        model.open(0);
        let mut at = 0;
        for _ in 0..count {
            let (child, rest) = model.fork(at);
            at = next(at, child, rest);
        }
        model.check();
    }

    #[test]
    fn many_forks_flat() {
        forks(MANY, |_, _, rest| rest);
    }

    #[test]
    fn many_forks_deep() {
        forks(MANY, |_, child, _| child);
    }

    #[test]
    fn many_forks_in_one_place() {
        forks(MANY, |at, _, _| at);
    }

    /// Forks at the last position of the English order, then at that of the Hebrew order.
    #[test]
    fn many_forks_at_the_end() {
        forks(MANY, |at, _, rest| if at == 0 { 1 } else { rest });
        forks(MANY, |at, child, _| if at == 0 { 1 } else { child });
    }

    #[test]
    fn forks_at_random_places() {
        let mut random = Random(12345);
        forks(MANY, |_, _, rest| random.below(rest + 1));
        // In one place for a while, then in another one.
        let mut random = Random(54321);
        forks(MANY, |at, _, rest| if random.below(50) == 0 { random.below(rest + 1) } else { at });
    }

    #[test]
    fn scopes_at_random_places() {
        let mut random = Random(99);
        let mut model = Model::of(SeriesParallel::new());
        let mut at = 0;
        for _ in 0..MANY {
            at = match random.below(4) {
                0 => random.below(model.positions.len()),
                1 => model.fork(at).0,
                _ => {
                    model.open(at);
                    at
                }
            };
        }
        model.check();
    }

    #[test]
    fn clear_starts_anew() {
        let mut random = Random(7);
        let mut sp = SeriesParallel::new();
        for count in [10_000, 1, 100, 20_000, 3000] {
            let memory = sp.memory();
            sp.clear();
            assert_eq!(sp.memory(), memory);
            let mut model = Model::of(sp);
            for _ in 0..count {
                let at = random.below(model.positions.len());
                model.fork(at);
            }
            model.check();
            sp = model.sp;
        }
    }

    /// One thread inserts along a chain of positions; another one asks about those that are just being
    /// numbered, or moved to another group. (Fails if one of the two is done without the lock.)
    #[test]
    fn queries_run_beside_insertions() {
        let sp = SeriesParallel::new();
        let mut chain: Vec<_> = (0..50_000).map(|_| sp.open(sp.start()).unwrap()).collect();
        chain.reverse();
        let (now, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                for place in (0..chain.len()).step_by(16) {
                    now.store(place, Ordering::Relaxed);
                    // Enough to split a group, or to make many groups.
                    for _ in 0..if place % 256 == 0 { 2000 } else { 40 } {
                        sp.fork(chain[place]).unwrap();
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
            let mut random = Random(5);
            while !done.load(Ordering::Relaxed) {
                let now = now.load(Ordering::Relaxed);
                for distance in [32, 32, 500] {
                    let mut pick = || (now + random.below(distance)).min(chain.len() - 1);
                    let (i, j) = (pick(), pick());
                    assert_eq!(sp.precedes(chain[i], chain[j]), i < j);
                    assert_eq!(sp.later_hebrew(chain[i], chain[j]), chain[i.max(j)]);
                }
            }
        });
    }
}
