//! S-bags and P-bags of contracted tasks (paper 004, section 3): which of them are before the running strand, which beside it.
//!
//! A bag is a disjoint set with a flag, true for a P-bag, and another one if only the end of a finish will join what is in it. There is one for each strand that has touched anything, until bags are merged: those
//! that nobody speaks of are forgotten from time to time.

use crate::order::union_find::UnionFind;

/// A bag, by one of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bag(u32);

/// What a bag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Serial,
    /// A P-bag, which a sync may join.
    Parallel,
    /// One that only the end of a finish joins.
    Left,
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Bags {
    sets: UnionFind,
    /// Whether only the end of a finish joins it, by the bag's own name.
    left: Vec<bool>,
    /// When there are so many members, those that nobody speaks of are forgotten.
    many: u32,
}

const MANY: u32 = 1 << 12;

impl Default for Bags {
    fn default() -> Bags {
        Bags { sets: UnionFind::new(), left: Vec::new(), many: MANY }
    }
}

impl Bag {
    /// As a table index.
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Bags {
    /// How many members there are: more than any bag's index.
    pub(super) fn len(&self) -> usize {
        self.sets.len() as usize
    }

    /// A new S-bag.
    #[inline]
    pub(super) fn serial(&mut self) -> Bag {
        let bag = Bag(self.sets.len());
        self.sets.push(false).expect("there are fewer than 2^31");
        self.left.push(false);
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

    /// Is it one that only the end of a finish joins?
    #[inline]
    pub(super) fn is_left(&mut self, bag: Bag) -> bool {
        self.left[self.sets.find(bag.0) as usize]
    }

    #[inline]
    pub(super) fn set(&mut self, bag: Bag, kind: Kind) {
        let root = self.sets.find(bag.0);
        self.sets.set_flag(root, kind != Kind::Serial);
        self.left[root as usize] = kind == Kind::Left;
    }

    /// Puts `other` into `bag`, of which it is to be said then what it is.
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
        self.left.clear();
        self.sets.clear();
    }

    /// Forgets all but those that `speak` names, and tells it their new names.
    #[cold]
    pub(super) fn collect(&mut self, speak: impl FnOnce(&mut dyn FnMut(Bag) -> Bag)) {
        let (mut kept, mut left) = (UnionFind::new(), Vec::new());
        let mut names = vec![None; self.sets.len() as usize];
        speak(&mut |bag| {
            let root = self.sets.find(bag.0);
            Bag(*names[root as usize].get_or_insert_with(|| {
                let name = kept.len();
                kept.push(self.sets.flag(root)).expect("there are fewer than before");
                left.push(self.left[root as usize]);
                name
            }))
        });
        self.many = MANY.max(2 * kept.len());
        (self.sets, self.left) = (kept, left);
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
        bags.set(all[2], Kind::Left);
        all.drain(..2);
        bags.collect(|rename| all.iter_mut().for_each(|bag| *bag = rename(*bag)));
        let [a, b, c, d] = all[..] else { unreachable!() };
        assert_eq!(bags.find(a), bags.find(d));
        assert!(bags.find(b) != bags.find(c) && bags.find(b) != bags.find(a));
        assert!(bags.is_parallel(a) && bags.is_left(a) && !bags.is_parallel(b) && !bags.is_left(b));
        assert_eq!(bags.sets.len(), 3);
    }
}
