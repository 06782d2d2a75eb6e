//! S-bags and P-bags of contracted tasks (paper 004, section 3): which of them are before the running strand, which beside it.
//!
//! A bag is a disjoint set with a flag, true for a P-bag. There is one for each strand that has touched anything, until bags are merged: those
//! that nobody speaks of are forgotten from time to time.

use crate::order::union_find::UnionFind;

/// A bag, by one of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bag(u32);

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Bags {
    sets: UnionFind,
    /// When there are so many members, those that nobody speaks of are forgotten.
    many: u32,
}

const MANY: u32 = 1 << 12;

impl Default for Bags {
    fn default() -> Bags {
        Bags { sets: UnionFind::new(), many: MANY }
    }
}

impl Bags {
    /// A new S-bag.
    #[inline]
    pub(super) fn serial(&mut self) -> Bag {
        let bag = Bag(self.sets.len());
        self.sets.push(false).expect("there are fewer than 2^31");
        bag
    }

    /// The bag's own name: two that are the same have the same.
    #[inline]
    pub(super) fn find(&mut self, bag: Bag) -> Bag {
        Bag(self.sets.find(bag.0))
    }

    #[inline]
    pub(super) fn is_parallel(&mut self, bag: Bag) -> bool {
        self.sets.flag(bag.0)
    }

    #[inline]
    pub(super) fn set_parallel(&mut self, bag: Bag, parallel: bool) {
        self.sets.set_flag(bag.0, parallel);
    }

    /// Puts `other` into `bag`.
    #[inline]
    pub(super) fn union(&mut self, bag: Bag, other: Bag) {
        self.sets.union(bag.0, other.0);
    }

    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.sets.len() >= self.many
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.sets.clear();
    }

    /// Forgets all but those that `speak` names, and tells it their new names.
    #[cold]
    pub(super) fn collect(&mut self, speak: impl FnOnce(&mut dyn FnMut(Bag) -> Bag)) {
        let mut kept = UnionFind::new();
        let mut names = vec![None; self.sets.len() as usize];
        speak(&mut |bag| {
            let root = self.sets.find(bag.0);
            Bag(*names[root as usize].get_or_insert_with(|| {
                let name = kept.len();
                kept.push(self.sets.flag(root)).expect("there are fewer than before");
                name
            }))
        });
        self.many = MANY.max(2 * kept.len());
        self.sets = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_keeps_bags_apart_and_what_they_are() {
        let mut bags = Bags::default();
        let mut all: Vec<Bag> = (0..6).map(|_| bags.serial()).collect();
        bags.union(all[5], all[2]);
        bags.set_parallel(all[2], true);
        all.drain(..2);
        bags.collect(|rename| all.iter_mut().for_each(|bag| *bag = rename(*bag)));
        let [a, b, c, d] = all[..] else { unreachable!() };
        assert_eq!(bags.find(a), bags.find(d));
        assert!(bags.find(b) != bags.find(c) && bags.find(b) != bags.find(a));
        assert!(bags.is_parallel(a) && !bags.is_parallel(b));
        assert_eq!(bags.sets.len(), 3);
    }
}
