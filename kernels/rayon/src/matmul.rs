//! The product of two matrices, by rows.

use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

fn row(a: &[f64], b: &[f64], size: usize, out: &mut [f64]) {
    out.fill(0.0);
    for (factor, line) in a.iter().zip(b.chunks(size)) {
        out.iter_mut().zip(line).for_each(|(out, number)| *out += factor * number);
    }
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let mut matrix = || -> Vec<f64> { (0..size * size).map(|_| (next() % 100) as f64).collect() };
    let (a, b) = (matrix(), matrix());
    let mut c = vec![0.0; size * size];
    let rows = |c: &mut [f64]| {
        c.par_chunks_mut(size).zip(a.par_chunks(size)).for_each(|(out, a)| row(a, &b, size, out));
    };
    let (time, ()) = timed(|| rows(&mut c));
    let mut expected = vec![0.0; size];
    row(&a[3 * size..4 * size], &b, size, &mut expected);
    checked(time, c[3 * size..4 * size] == expected)
}
