//! The best local alignment of two sequences, after Smith and Waterman, with futures (paper 001).
//!
//! The table is filled block by block, each by a future, which gets those to the left, above, and diagonally above it.

use std::time::Duration;

use dagsan_task::{Future, finish};

use crate::random::Random;
use crate::shared::Shared;
use crate::{check, timed};

const BLOCK: usize = 128;

/// Aligns sequences of that length.
pub fn run(size: usize) -> Result<Duration, String> {
    check(size > 0 && size.is_multiple_of(BLOCK), "the size is not a multiple of 128")?;
    let [a, b] = [1, 2].map(|seed| {
        let mut random = Random(seed);
        (0..size).map(|_| b"ACGT"[random.next() as usize % 4]).collect::<Vec<u8>>()
    });
    // The first row and column stand for empty sequences.
    let width = size + 1;
    let mut scores = vec![0i32; width * width];
    let shared = Shared::new(&mut scores, width);
    let (time, best) = timed(|| align(&a, &b, &shared));
    let mut random = Random(3);
    for _ in 0..1_000_000 {
        let (row, column) = (random.next() as usize % size, random.next() as usize % size);
        let at = (row + 1) * width + column + 1;
        let expected = score(a[row] == b[column], scores[at - width - 1], scores[at - width], scores[at - 1]);
        check(scores[at] == expected, format!("the score at {row}, {column} is wrong"))?;
    }
    check(scores.iter().max() == Some(&best), "this is not the best score")?;
    Ok(time)
}

/// The score of two prefixes, from those that are shorter by the last letter of both, the first, and the second.
fn score(same: bool, both: i32, first: i32, second: i32) -> i32 {
    let pair = both + if same { 2 } else { -1 };
    pair.max(first - 1).max(second - 1).max(0)
}

/// Fills the table, and returns the best score.
fn align(a: &[u8], b: &[u8], scores: &Shared<i32>) -> i32 {
    let count = a.len() / BLOCK;
    finish(|scope| {
        let mut blocks: Vec<Future<i32>> = Vec::with_capacity(count * count);
        for row in 0..count {
            for column in 0..count {
                let block = |up: usize, left: usize| {
                    let (row, column) = (row.checked_sub(up)?, column.checked_sub(left)?);
                    Some(blocks[row * count + column].clone())
                };
                let before = [block(0, 1), block(1, 0), block(1, 1)];
                blocks.push(scope.future(move |_| {
                    before.iter().flatten().for_each(|block| _ = block.get());
                    fill(a, b, scores, row * BLOCK, column * BLOCK)
                }));
            }
        }
        blocks.iter().map(|block| *block.get()).max().unwrap_or(0)
    })
}

/// Fills the block for the letters from there on, and returns its best score.
fn fill(a: &[u8], b: &[u8], scores: &Shared<i32>, row: usize, column: usize) -> i32 {
    let mut best = 0;
    for (i, &letter) in (row + 1..).zip(&a[row..row + BLOCK]) {
        // SAFETY: the scores of row `i` from `column + 1` on are in this block, which this task alone writes, and others
        // read when they have got it. Those that are read are in this block, or in blocks that this task has got, or in
        // the first row and column, which nobody writes.
        let (above, before, here) = unsafe {
            (
                scores.row(i - 1, column..column + BLOCK + 1),
                scores.row(i, column..column + 1),
                scores.row_mut(i, column + 1..column + 1 + BLOCK),
            )
        };
        let mut left = before[0];
        for ((cell, other), above) in here.iter_mut().zip(&b[column..]).zip(above.windows(2)) {
            left = score(letter == *other, above[0], above[1], left);
            *cell = left;
            best = best.max(left);
        }
    }
    best
}
