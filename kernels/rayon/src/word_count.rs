//! How often each word is in a text: a hash map per piece of the text, with words of its own, and the maps put together.

use std::collections::HashMap;
use std::time::Duration;

use rayon::prelude::*;

use crate::{checked, random, timed};

/// Different words.
const WORDS: u64 = 5_000;
/// Lines of a piece.
const LINES: usize = 200;

type Counts = HashMap<String, u64>;

fn count(lines: &[&str]) -> Counts {
    let mut counts = Counts::new();
    for word in lines.iter().flat_map(|line| line.split_whitespace()) {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    counts
}

fn add(left: Counts, right: Counts) -> Counts {
    let (mut large, small) = if left.len() < right.len() { (right, left) } else { (left, right) };
    for (word, count) in small {
        *large.entry(word).or_default() += count;
    }
    large
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let mut text = String::new();
    for at in 0..size {
        // Common words are common.
        let word = (next() % WORDS) * (next() % WORDS) / WORDS;
        text += &format!("Word{word:x}{}", if at % 10 == 9 { '\n' } else { ' ' });
    }
    let lines: Vec<&str> = text.lines().collect();
    let (time, counts) = timed(|| lines.par_chunks(LINES).map(count).reduce(Counts::new, add));
    checked(time, counts == count(&lines))
}
