//! Addresses as sums: a constant, and multiples of values that are not looked into.
//!
//! All arithmetic is modulo 2^64, as that of addresses is. So sums can be taken apart and put together without a thought of
//! overflow, as long as no narrower number is widened in between.

/// `constant + Σ factor · leaf`, each leaf once, in order, with a factor that is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Linear {
    pub terms: Vec<(usize, i64)>,
    pub constant: i64,
}

impl Linear {
    pub fn constant(constant: i64) -> Linear {
        Linear { terms: Vec::new(), constant }
    }

    pub fn leaf(leaf: usize) -> Linear {
        Linear { terms: vec![(leaf, 1)], constant: 0 }
    }

    /// `self + factor · other`.
    pub fn plus(&self, other: &Linear, factor: i64) -> Linear {
        let mut terms = self.terms.clone();
        for &(leaf, more) in &other.terms {
            let more = more.wrapping_mul(factor);
            match terms.binary_search_by_key(&leaf, |&(leaf, _)| leaf) {
                Ok(at) => terms[at].1 = terms[at].1.wrapping_add(more),
                Err(at) => terms.insert(at, (leaf, more)),
            }
        }
        terms.retain(|&(_, factor)| factor != 0);
        Linear { terms, constant: self.constant.wrapping_add(other.constant.wrapping_mul(factor)) }
    }

    pub fn times(&self, factor: i64) -> Linear {
        Linear::default().plus(self, factor)
    }

    /// How often a leaf is in it.
    pub fn factor(&self, leaf: usize) -> i64 {
        self.terms.iter().find(|&&(other, _)| other == leaf).map_or(0, |&(_, factor)| factor)
    }

    /// The same with a sum in the place of a leaf.
    pub fn with(&self, leaf: usize, value: &Linear) -> Linear {
        let factor = self.factor(leaf);
        self.plus(&Linear::leaf(leaf), factor.wrapping_neg()).plus(value, factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_each_leaf_once_and_none_that_is_gone() {
        let x = Linear::leaf(3).times(8).plus(&Linear::leaf(1), 1).plus(&Linear::constant(5), 1);
        assert_eq!(x, Linear { terms: vec![(1, 1), (3, 8)], constant: 5 });
        assert_eq!(x.plus(&x, -1), Linear::default());
        assert_eq!(x.plus(&Linear::leaf(1), -1).terms, [(3, 8)]);
        assert_eq!(x.factor(3), 8);
        assert_eq!(x.factor(2), 0);
    }

    #[test]
    fn a_leaf_is_replaced_by_what_it_stands_for() {
        let x = Linear::leaf(1).plus(&Linear::leaf(2), 4);
        let of = Linear::leaf(1).plus(&Linear::constant(3), 1);
        assert_eq!(x.with(2, &of), Linear { terms: vec![(1, 5)], constant: 12 });
        assert_eq!(x.with(7, &of), x);
    }

    #[test]
    fn arithmetic_wraps_as_that_of_addresses() {
        let large = Linear::constant(i64::MAX);
        assert_eq!(large.plus(&Linear::constant(1), 1).constant, i64::MIN);
        assert_eq!(Linear::leaf(0).times(1 << 62).times(4), Linear::default());
    }
}
