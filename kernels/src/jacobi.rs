//! Jacobi iteration on a square, with promises (the `poisson` of paper 000).
//!
//! The square is cut into blocks, each with a task that makes all sweeps over it. A sweep reads one grid and writes the
//! other. When a block is done with a sweep, it sets a promise, and its neighbours get it before their next one:
//!
//! ```text
//!   sweep s of block b     gets done[s - 1] of b's neighbours, sets done[s] of b
//! ```
//!
//! That also keeps a block from being overwritten while neighbours still read it: they have made sweep s - 1 then.

use std::time::Duration;

use dagsan_task::{Promise, finish};

use crate::random::mixed;
use crate::shared::Shared;
use crate::{check, timed};

const BLOCK: usize = 128;
const SWEEPS: usize = 30;

/// Iterates over a square of that many points in a row, and a border.
pub fn run(size: usize) -> Result<Duration, String> {
    check(size > 0 && size.is_multiple_of(BLOCK), "the size is not a multiple of 128")?;
    let width = size + 2;
    let mut grids = [0, 1].map(|_| {
        let points = (0..width).flat_map(|row| (0..width).map(move |column| initial(row, column)));
        points.collect::<Vec<f64>>()
    });
    let (time, ()) = timed(|| iterate(&mut grids, size));
    let result = &grids[SWEEPS % 2];
    for (row, column) in [(1, 1), (BLOCK, BLOCK), (size, BLOCK.min(size - 1)), (size / 2 + 1, size / 2)] {
        let expected = expected(size, row, column);
        let got = result[row * width + column];
        check(got == expected, format!("the point {row}, {column} is {got}, not {expected}"))?;
    }
    Ok(time)
}

/// The point before the first sweep.
fn initial(row: usize, column: usize) -> f64 {
    (mixed((row * 1_000_003 + column) as u64) % 1000) as f64
}

fn next(up: f64, down: f64, left: f64, right: f64) -> f64 {
    ((up + down) + (left + right)) * 0.25
}

fn iterate(grids: &mut [Vec<f64>; 2], size: usize) {
    let count = size / BLOCK;
    let grids = grids.each_mut().map(|grid| Shared::new(grid, size + 2));
    let done: Vec<Vec<Promise<()>>> =
        (0..SWEEPS).map(|_| (0..count * count).map(|_| Promise::new()).collect()).collect();
    finish(|scope| {
        for block in 0..count * count {
            let (grids, done) = (&grids, &done);
            scope.spawn(move |_| {
                let (row, column) = (block / count, block % count);
                for sweep in 0..SWEEPS {
                    if let Some(before) = sweep.checked_sub(1) {
                        for neighbour in neighbours(row, column, count) {
                            done[before][neighbour].get();
                        }
                    }
                    let (from, to) = (&grids[sweep % 2], &grids[(sweep + 1) % 2]);
                    update(from, to, 1 + row * BLOCK, 1 + column * BLOCK);
                    done[sweep][block].set(());
                }
            });
        }
    });
}

/// The blocks that share a side with a block.
fn neighbours(row: usize, column: usize, count: usize) -> impl Iterator<Item = usize> {
    let up = (row > 0).then(|| (row - 1) * count + column);
    let down = (row + 1 < count).then(|| (row + 1) * count + column);
    let left = (column > 0).then(|| row * count + column - 1);
    let right = (column + 1 < count).then(|| row * count + column + 1);
    [up, down, left, right].into_iter().flatten()
}

/// One sweep over the block that starts there.
fn update(from: &Shared<f64>, to: &Shared<f64>, row: usize, column: usize) {
    let columns = column..column + BLOCK;
    for row in row..row + BLOCK {
        // SAFETY: the neighbours write to `from` in their next sweep, which they begin when they have got the promise
        // that this block sets after this one. The points of `to` are in this block, which is written by this task
        // alone, and was last read by neighbours in the sweep whose promises it has got.
        let (up, here, down, updated) = unsafe {
            (
                from.row(row - 1, columns.clone()),
                from.row(row, column - 1..column + BLOCK + 1),
                from.row(row + 1, columns.clone()),
                to.row_mut(row, columns.clone()),
            )
        };
        for (k, point) in updated.iter_mut().enumerate() {
            *point = next(up[k], down[k], here[k], here[k + 2]);
        }
    }
}

/// What a point is after all sweeps, from those points alone that it depends on.
fn expected(size: usize, row: usize, column: usize) -> f64 {
    // One point more on each side than there are sweeps. Those at the edge of the patch are wrong from the first sweep
    // on, unless they are the border; each sweep makes one more row wrong, and the last leaves the middle.
    let range = |middle: usize| (middle.saturating_sub(SWEEPS + 1), (middle + SWEEPS + 1).min(size + 1));
    let ((top, bottom), (start, end)) = (range(row), range(column));
    let (width, height) = (end - start + 1, bottom - top + 1);
    let mut patch: Vec<f64> =
        (0..width * height).map(|at| initial(top + at / width, start + at % width)).collect();
    for _ in 0..SWEEPS {
        let before = patch.clone();
        for i in 1..height - 1 {
            for j in 1..width - 1 {
                let at = i * width + j;
                patch[at] = next(before[at - width], before[at + width], before[at - 1], before[at + 1]);
            }
        }
    }
    patch[(row - top) * width + column - start]
}
