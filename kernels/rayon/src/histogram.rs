//! A histogram that all tasks share: an atomic operation per item.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

const BINS: usize = 4096;

fn bin(item: u32) -> usize {
    (item >> 16) as usize % BINS
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let items: Vec<u32> = (0..size).map(|_| next() as u32).collect();
    let (time, bins) = timed(|| {
        let bins: Vec<AtomicU64> = (0..BINS).map(|_| AtomicU64::new(0)).collect();
        items.par_chunks(4096).for_each(|items| {
            for &item in items {
                // Relaxed: the end of the loop orders it before what follows.
                bins[bin(item)].fetch_add(1, Relaxed);
            }
        });
        bins
    });
    let mut expected = vec![0; BINS];
    items.iter().for_each(|&item| expected[bin(item)] += 1);
    checked(time, bins.into_iter().map(AtomicU64::into_inner).eq(expected))
}
