//! The edit distance of two texts: a table by tiles, a task for each, those of a diagonal in one scope.
//!
//! Of the table only what is between tiles is kept: the last row above each column of tiles, and the last column left of each row
//! of tiles.

use std::time::Duration;

use crate::{checked, random, timed};

/// Rows and columns of a tile.
const TILE: usize = 128;

/// One row of the table after the other. `above` has the value left of its first one too, and becomes the last row; `left` becomes the
/// last column.
fn tile(down: &[u8], across: &[u8], above: &mut [u32], left: &mut [u32]) {
    for (letter, left) in down.iter().zip(left) {
        let (mut diagonal, mut last) = (above[0], *left);
        above[0] = last;
        for (other, above) in across.iter().zip(&mut above[1..]) {
            last = (diagonal + u32::from(letter != other)).min(last.min(*above) + 1);
            diagonal = std::mem::replace(above, last);
        }
        *left = last;
    }
}

/// The first row of a table, or column, in pieces; each with the value before it, if so.
fn border(tiles: usize, before: bool) -> Vec<Vec<u32>> {
    let piece = |number: usize| {
        let start = (number * TILE) as u32;
        (start + u32::from(!before)..=start + TILE as u32).collect()
    };
    (0..tiles).map(piece).collect()
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let mut text = || -> Vec<u8> { (0..size).map(|_| b"acgt"[(next() % 4) as usize]).collect() };
    let (down, across) = (text(), text());
    let tiles = size / TILE;
    let (time, distance) = timed(|| {
        let (mut above, mut left) = (border(tiles, true), border(tiles, false));
        for diagonal in 0..2 * tiles - 1 {
            let first = diagonal.saturating_sub(tiles - 1);
            let last = diagonal.min(tiles - 1);
            // The tile in row r is in column `diagonal - r`.
            let left = left[first..=last].iter_mut();
            let above = above[diagonal - last..=diagonal - first].iter_mut().rev();
            rayon::scope(|scope| {
                for (row, (left, above)) in (first..=last).zip(left.zip(above)) {
                    let down = &down[row * TILE..][..TILE];
                    let across = &across[(diagonal - row) * TILE..][..TILE];
                    scope.spawn(move |_| tile(down, across, above, left));
                }
            });
        }
        above[tiles - 1][TILE]
    });
    let mut above: Vec<u32> = (0..=size as u32).collect();
    let mut left: Vec<u32> = (1..=size as u32).collect();
    tile(&down, &across, &mut above, &mut left);
    checked(time, distance == above[size])
}
