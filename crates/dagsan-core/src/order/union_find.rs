//! Disjoint sets of tasks, with a flag per set.
//!
//! `u32` parents, path halving, the smaller number is the root: O(log n) amortised, and no ranks to keep. As
//! tasks are older than what they join, paths stay short: a finish with a million tasks is a flat tree.
//! (With the larger number as the root it is a chain, and a question about an old task takes 10 µs.)
//! The flag of a set is the flag of its root, in the root's own entry:
//!
//! ```text
//!   31    30 ……………… 0
//!   [ flag |  parent ]      a root is its own parent
//! ```

use crate::error::Error;

/// Disjoint sets of the numbers `0, 1, 2, …`.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnionFind {
    entries: Vec<u32>,
}

const FLAG: u32 = 1 << 31;

impl UnionFind {
    pub(crate) fn new() -> UnionFind {
        UnionFind::default()
    }

    /// Adds the next number, as a set of its own.
    pub(crate) fn push(&mut self, flag: bool) -> Result<(), Error> {
        let number = self.entries.len() as u32;
        if number & FLAG != 0 {
            return Err(Error::TooMany("tasks for disjoint sets (2^31)"));
        }
        self.entries.push(number | if flag { FLAG } else { 0 });
        Ok(())
    }

    /// The root of the set that `number` is in.
    #[inline]
    pub(crate) fn find(&mut self, mut number: u32) -> u32 {
        loop {
            let parent = self.entries[number as usize] & !FLAG;
            if parent == number {
                return number;
            }
            let grandparent = self.entries[parent as usize] & !FLAG;
            self.entries[number as usize] = grandparent;
            number = grandparent;
        }
    }

    /// The flag of the set that `number` is in.
    #[inline]
    pub(crate) fn flag(&mut self, number: u32) -> bool {
        let root = self.find(number);
        self.entries[root as usize] & FLAG != 0
    }

    /// Sets the flag of the set that `number` is in.
    pub(crate) fn set_flag(&mut self, number: u32, flag: bool) {
        let root = self.find(number);
        self.entries[root as usize] = root | if flag { FLAG } else { 0 };
    }

    /// Joins the set of `other` to that of `number`, whose flag it takes.
    pub(crate) fn union(&mut self, number: u32, other: u32) {
        let (into, from) = (self.find(number), self.find(other));
        if into == from {
            return;
        }
        let flag = self.entries[into as usize] & FLAG;
        let (root, leaf) = (into.min(from), into.max(from));
        self.entries[leaf as usize] = root;
        self.entries[root as usize] = root | flag;
    }

    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_takes_the_flag_of_its_first_side() {
        let mut sets = UnionFind::new();
        for flag in [true, false, false, true] {
            sets.push(flag).unwrap();
        }
        sets.union(1, 3);
        assert!(!sets.flag(3));
        sets.union(0, 3);
        assert!(sets.flag(1));
        assert!(!sets.flag(2));
        sets.set_flag(1, false);
        assert!(!sets.flag(0));
        assert_eq!(sets.find(0), sets.find(3));
        assert_ne!(sets.find(2), sets.find(3));
    }
}
