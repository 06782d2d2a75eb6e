//! A sparse matrix times a vector, again and again: each row gathers from all over the vector.

use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

/// Entries of a row.
const ENTRIES: usize = 16;
const STEPS: usize = 4;

/// A matrix by rows: which columns have entries, and which.
struct Matrix {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Matrix {
    fn row(&self, row: usize, vector: &[f64]) -> f64 {
        let entries = self.starts[row]..self.starts[row + 1];
        let columns = &self.columns[entries.clone()];
        columns
            .iter()
            .zip(&self.values[entries])
            .map(|(&column, value)| value * vector[column as usize])
            .sum()
    }
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let matrix = Matrix {
        starts: (0..=size).map(|row| row * ENTRIES).collect(),
        columns: (0..size * ENTRIES).map(|_| (next() % size as u64) as u32).collect(),
        values: (0..size * ENTRIES).map(|entry| 1.0 / (1 + entry % 31) as f64).collect(),
    };
    let (time, vector) = timed(|| {
        let mut vector = vec![1.0; size];
        for _ in 0..STEPS {
            vector = (0..size).into_par_iter().map(|row| matrix.row(row, &vector)).collect();
        }
        vector
    });
    let mut expected = vec![1.0; size];
    for _ in 0..STEPS {
        expected = (0..size).map(|row| matrix.row(row, &expected)).collect();
    }
    checked(time, vector == expected)
}
