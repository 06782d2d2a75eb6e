//! Square matrices, and windows on them to read.

use crate::random::Random;

/// A square matrix, row by row.
pub struct Matrix {
    pub size: usize,
    pub elements: Vec<f64>,
}

impl Matrix {
    pub fn zero(size: usize) -> Matrix {
        Matrix { size, elements: vec![0.0; size * size] }
    }

    /// Small whole numbers: products and sums of them are exact, in whatever order they are computed.
    pub fn random(size: usize, seed: u64) -> Matrix {
        let mut random = Random(seed);
        Matrix { size, elements: (0..size * size).map(|_| (random.next() % 8) as f64).collect() }
    }

    pub fn view(&self) -> View<'_> {
        View { elements: &self.elements, stride: self.size, size: self.size }
    }

    /// The parts of a row, to write.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.elements[row * self.size..(row + 1) * self.size]
    }

    /// Is this the product of `a` and `b`? Looks at some of the elements.
    pub fn is_product(&self, a: &Matrix, b: &Matrix) -> bool {
        let mut random = Random(3);
        (0..200).all(|_| {
            let (row, column) = (random.next() as usize % self.size, random.next() as usize % self.size);
            let columns = b.elements[column..].iter().step_by(self.size);
            let product: f64 = a.view().row(row).iter().zip(columns).map(|(x, y)| x * y).sum();
            self.view().row(row)[column] == product
        })
    }
}

/// A square window on a matrix.
#[derive(Clone, Copy)]
pub struct View<'a> {
    elements: &'a [f64],
    stride: usize,
    pub size: usize,
}

impl<'a> View<'a> {
    pub fn row(self, row: usize) -> &'a [f64] {
        &self.elements[row * self.stride..][..self.size]
    }

    /// The window of that size with its first element there.
    pub fn part(self, row: usize, column: usize, size: usize) -> View<'a> {
        View { elements: &self.elements[row * self.stride + column..], stride: self.stride, size }
    }

    /// Adds to `sum`, a row of a product, what `factors`, a row of the left matrix, and this one contribute.
    pub fn add_row_product(self, factors: &[f64], sum: &mut [f64]) {
        for (k, factor) in factors.iter().enumerate() {
            for (sum, element) in sum.iter_mut().zip(self.row(k)) {
                *sum += factor * element;
            }
        }
    }
}
