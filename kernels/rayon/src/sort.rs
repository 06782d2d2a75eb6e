//! rayon's own merge sort.

use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let mut numbers: Vec<u64> = (0..size).map(|_| next()).collect();
    let (time, ()) = timed(|| numbers.par_sort());
    checked(time, numbers.is_sorted())
}
