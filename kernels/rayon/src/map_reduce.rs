//! The frequencies of letters in a text, by chunks.

use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

type Counts = [u64; 256];

fn add(mut left: Counts, right: Counts) -> Counts {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    left
}

fn count(text: &[u8]) -> Counts {
    let mut counts = [0; 256];
    text.iter().for_each(|&letter| counts[usize::from(letter)] += 1);
    counts
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let text: Vec<u8> = (0..size).map(|_| b'a' + (next() % 26) as u8).collect();
    let (time, counts) = timed(|| text.par_chunks(16 << 10).map(count).reduce(|| [0; 256], add));
    checked(time, counts == count(&text))
}
