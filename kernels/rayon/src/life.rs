//! Conway's game of life on a torus, by rows.

use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

fn row(old: &[u8], size: usize, number: usize, new: &mut [u8]) {
    let line = |number: usize| &old[number % size * size..][..size];
    let (above, own, below) = (line(number + size - 1), line(number), line(number + 1));
    for (column, cell) in new.iter_mut().enumerate() {
        let (left, right) = ((column + size - 1) % size, (column + 1) % size);
        let around = above[left] + above[column] + above[right] + own[left] + own[right];
        let around = around + below[left] + below[column] + below[right];
        *cell = u8::from(around == 3 || (around == 2 && own[column] == 1));
    }
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let mut old: Vec<u8> = (0..size * size).map(|_| (next() % 3 == 0).into()).collect();
    let mut new = old.clone();
    let (time, ()) = timed(|| {
        for _ in 0..10 {
            std::mem::swap(&mut old, &mut new);
            new.par_chunks_mut(size).enumerate().for_each(|(number, cells)| row(&old, size, number, cells));
        }
    });
    let mut expected = vec![0; size];
    row(&old, size, 5, &mut expected);
    checked(time, new[5 * size..][..size] == expected)
}
