//! Addresses as sums: a constant, and multiples of values that are not looked into, or of products of two of them.
//!
//! All arithmetic is modulo 2^64, as that of addresses is. So sums can be taken apart and put together without a thought of
//! overflow, as long as no narrower number is widened in between.

/// A value, or the product of two, the smaller number first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Product(pub usize, pub Option<usize>);

impl Product {
    pub fn leaves(self) -> impl Iterator<Item = usize> {
        [self.0].into_iter().chain(self.1)
    }
}

/// `constant + Σ factor · product`, each product once, in order, with a factor that is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Sum {
    pub terms: Vec<(Product, i64)>,
    pub constant: i64,
}

impl Sum {
    pub fn constant(constant: i64) -> Sum {
        Sum { terms: Vec::new(), constant }
    }

    pub fn leaf(leaf: usize) -> Sum {
        Sum { terms: vec![(Product(leaf, None), 1)], constant: 0 }
    }

    /// Its value, if it is a constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// All values in it.
    pub fn leaves(&self) -> impl Iterator<Item = usize> {
        self.terms.iter().flat_map(|(product, _)| product.leaves())
    }

    /// `self + factor · other`.
    pub fn plus(&self, other: &Sum, factor: i64) -> Sum {
        let mut terms = self.terms.clone();
        for &(product, more) in &other.terms {
            let more = more.wrapping_mul(factor);
            match terms.binary_search_by_key(&product, |&(product, _)| product) {
                Ok(at) => terms[at].1 = terms[at].1.wrapping_add(more),
                Err(at) => terms.insert(at, (product, more)),
            }
        }
        terms.retain(|&(_, factor)| factor != 0);
        Sum { terms, constant: self.constant.wrapping_add(other.constant.wrapping_mul(factor)) }
    }

    /// `self · factor`.
    pub fn scaled(&self, factor: i64) -> Sum {
        Sum::default().plus(self, factor)
    }

    /// `self · other`; none if that has products of three.
    pub fn times(&self, other: &Sum) -> Option<Sum> {
        let mut total = self.scaled(other.constant);
        for &(right, factor) in &other.terms {
            total = total.plus(&Sum { terms: vec![(right, factor)], constant: 0 }, self.constant);
            for &(left, by) in &self.terms {
                let (Product(a, None), Product(b, None)) = (left, right) else { return None };
                let both = Sum { terms: vec![(Product(a.min(b), Some(a.max(b))), 1)], constant: 0 };
                total = total.plus(&both, factor.wrapping_mul(by));
            }
        }
        Some(total)
    }

    /// What a leaf is multiplied with; none if that is the leaf itself.
    pub fn factor(&self, leaf: usize) -> Option<Sum> {
        let mut total = Sum::default();
        for &(product, factor) in &self.terms {
            let other = match product {
                Product(a, Some(b)) if a == leaf && b == leaf => return None,
                Product(a, Some(b)) if a == leaf => Sum::leaf(b),
                Product(a, Some(b)) if b == leaf => Sum::leaf(a),
                Product(a, None) if a == leaf => Sum::constant(1),
                _ => continue,
            };
            total = total.plus(&other, factor);
        }
        Some(total)
    }

    /// The same with a sum in the place of a leaf; none if that has products of three.
    pub fn with(&self, leaf: usize, value: &Sum) -> Option<Sum> {
        let factor = self.factor(leaf)?;
        Some(self.plus(&factor.times(&Sum::leaf(leaf))?, -1).plus(&factor.times(value)?, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_each_leaf_once_and_none_that_is_gone() {
        let x = Sum::leaf(3).scaled(8).plus(&Sum::leaf(1), 1).plus(&Sum::constant(5), 1);
        assert_eq!(x, Sum { terms: vec![(Product(1, None), 1), (Product(3, None), 8)], constant: 5 });
        assert_eq!(x.plus(&x, -1), Sum::default());
        assert_eq!(x.plus(&Sum::leaf(1), -1).leaves().collect::<Vec<_>>(), [3]);
        assert_eq!(x.factor(3), Some(Sum::constant(8)));
        assert_eq!(x.factor(2), Some(Sum::constant(0)));
    }

    #[test]
    fn products_of_two_are_sums_and_those_of_three_are_not() {
        // (a + 2) · (3 b + 1) = 3ab + a + 6b + 2
        let left = Sum::leaf(0).plus(&Sum::constant(2), 1);
        let right = Sum::leaf(1).scaled(3).plus(&Sum::constant(1), 1);
        let both = left.times(&right).unwrap();
        let terms = vec![(Product(0, None), 1), (Product(0, Some(1)), 3), (Product(1, None), 6)];
        assert_eq!(both, Sum { terms, constant: 2 });
        assert_eq!(right.times(&left), Some(both.clone()));
        assert_eq!(both.times(&Sum::leaf(2)), None);
        assert_eq!(both.factor(0), Some(right.clone()));
        assert_eq!(Sum::leaf(0).times(&Sum::leaf(0)).unwrap().factor(0), None);
    }

    #[test]
    fn a_leaf_is_replaced_by_what_it_stands_for() {
        let x = Sum::leaf(1).plus(&Sum::leaf(2), 4);
        let of = Sum::leaf(1).plus(&Sum::constant(3), 1);
        assert_eq!(x.with(2, &of), Some(Sum { terms: vec![(Product(1, None), 5)], constant: 12 }));
        assert_eq!(x.with(7, &of), Some(x.clone()));
        // In 1 · 2, 2 is replaced by 1 + 3.
        let product = Sum::leaf(1).times(&Sum::leaf(2)).unwrap().with(2, &of).unwrap();
        assert_eq!(product.terms, [(Product(1, None), 3), (Product(1, Some(1)), 1)]);
    }

    #[test]
    fn arithmetic_wraps_as_that_of_addresses() {
        let large = Sum::constant(i64::MAX);
        assert_eq!(large.plus(&Sum::constant(1), 1).constant, i64::MIN);
        assert_eq!(Sum::leaf(0).scaled(1 << 62).scaled(4), Sum::default());
    }
}
