//! LU decomposition of a sparse matrix of blocks, as in the BOTS suite (paper 000).
//!
//! ```text
//!         k                    for every k:  lu(diagonal)
//!       ┌───┬─────────┐                      finish { a task per block of row k:    solve by L
//!     k │ d │ row  ►  │                               a task per block of column k: solve by U }
//!       ├───┼─────────┤                      finish { a task per block of the rest: subtract column × row }
//!       │ c │ rest    │
//!       │ ▼ │         │        Blocks of zeros are not stored, until something is subtracted from them.
//!       └───┴─────────┘
//! ```

use std::time::Duration;

use dagsan_task::finish;

use crate::random::{Random, mixed};
use crate::{check, timed};

/// Rows of a block.
const BLOCK: usize = 32;

type Block = Box<[[f64; BLOCK]; BLOCK]>;
/// Rows of blocks; none where all is zero.
type Blocks = Vec<Vec<Option<Block>>>;

/// Decomposes a matrix of that many blocks in a row.
pub fn run(size: usize) -> Result<Duration, String> {
    let mut matrix: Blocks =
        (0..size).map(|row| (0..size).map(|column| original(size, row, column)).collect()).collect();
    let (time, ()) = timed(|| decompose(&mut matrix));
    check(is_right(&matrix), "the product of L and U is not the matrix")?;
    Ok(time)
}

/// A block of the matrix: about a tenth of them are not zero. The diagonal is strong, so that no pivots are needed.
fn original(size: usize, row: usize, column: usize) -> Option<Block> {
    let even = row.is_multiple_of(2) && column.is_multiple_of(2);
    if row.abs_diff(column) > 1 && !(even && row.min(column).is_multiple_of(3)) {
        return None;
    }
    let mut block = zero();
    for (i, elements) in block.iter_mut().enumerate() {
        for (j, element) in elements.iter_mut().enumerate() {
            let (row, column) = (row * BLOCK + i, column * BLOCK + j);
            let small = (mixed((row * 1_000_003 + column) as u64) % 1000) as f64 / 1000.0;
            *element = if row == column { (size * BLOCK) as f64 + small } else { small };
        }
    }
    Some(block)
}

fn zero() -> Block {
    Box::new([[0.0; BLOCK]; BLOCK])
}

fn decompose(matrix: &mut Blocks) {
    for k in 0..matrix.len() {
        let (upper, lower) = matrix.split_at_mut(k + 1);
        let (left, right) = upper[k].split_at_mut(k + 1);
        let Some(diagonal) = &mut left[k] else { unreachable!("no block of the diagonal is zero") };
        lu(diagonal);
        let diagonal = &*diagonal;
        finish(|scope| {
            for block in right.iter_mut().flatten() {
                scope.spawn(|_| solve_lower(diagonal, block));
            }
            for row in lower.iter_mut() {
                if let Some(block) = &mut row[k] {
                    scope.spawn(|_| solve_upper(diagonal, block));
                }
            }
        });
        finish(|scope| {
            for row in lower.iter_mut() {
                let (left, rest) = row.split_at_mut(k + 1);
                let Some(column) = &left[k] else { continue };
                for (row, block) in right.iter().zip(rest) {
                    if let Some(row) = row {
                        scope.spawn(|_| subtract_product(column, row, block.get_or_insert_with(zero)));
                    }
                }
            }
        });
    }
}

/// Decomposes a block of the diagonal.
fn lu(block: &mut Block) {
    for k in 0..BLOCK {
        let (upper, lower) = block.split_at_mut(k + 1);
        let pivot = &upper[k];
        for row in lower {
            row[k] /= pivot[k];
            let factor = row[k];
            subtract(&mut row[k + 1..], factor, &pivot[k + 1..]);
        }
    }
}

/// Solves L X = block, in place; L is below the diagonal.
fn solve_lower(diagonal: &Block, block: &mut Block) {
    for k in 0..BLOCK {
        let (upper, lower) = block.split_at_mut(k + 1);
        for (row, factors) in lower.iter_mut().zip(&diagonal[k + 1..]) {
            subtract(row, factors[k], &upper[k]);
        }
    }
}

/// Solves X U = block, in place; U is on and above the diagonal.
fn solve_upper(diagonal: &Block, block: &mut Block) {
    for row in block.iter_mut() {
        for (k, pivot) in diagonal.iter().enumerate() {
            row[k] /= pivot[k];
            let factor = row[k];
            subtract(&mut row[k + 1..], factor, &pivot[k + 1..]);
        }
    }
}

fn subtract_product(column: &Block, row: &Block, block: &mut Block) {
    for (elements, factors) in block.iter_mut().zip(column.iter()) {
        for (factor, row) in factors.iter().zip(row.iter()) {
            subtract(elements, *factor, row);
        }
    }
}

fn subtract(elements: &mut [f64], factor: f64, others: &[f64]) {
    for (element, other) in elements.iter_mut().zip(others) {
        *element -= factor * other;
    }
}

/// Is L (U x) the same as the matrix times x, for some x?
fn is_right(decomposed: &Blocks) -> bool {
    let size = decomposed.len();
    let mut random = Random(5);
    let x: Vec<f64> = (0..size * BLOCK).map(|_| (random.next() % 100) as f64).collect();
    // Calls `add` with every element that is stored, and the place in the vector that it adds to.
    let times = |x: &[f64], block: &dyn Fn(usize, usize) -> Option<Block>, part: fn(usize, usize) -> bool| {
        let mut product = vec![0.0; x.len()];
        for row in 0..size {
            for column in 0..size {
                let Some(block) = block(row, column) else { continue };
                for (i, elements) in block.iter().enumerate() {
                    for (j, element) in elements.iter().enumerate() {
                        let (row, column) = (row * BLOCK + i, column * BLOCK + j);
                        if part(row, column) {
                            product[row] += element * x[column];
                        }
                    }
                }
            }
        }
        product
    };
    let stored = |row: usize, column: usize| decomposed[row][column].clone();
    let upper = times(&x, &stored, |row, column| row <= column);
    let mut lower = times(&upper, &stored, |row, column| row > column);
    // The diagonal of L is all ones, and not stored.
    lower.iter_mut().zip(&upper).for_each(|(sum, one)| *sum += one);
    let expected = times(&x, &|row, column| original(size, row, column), |_, _| true);
    lower.iter().zip(&expected).all(|(got, expected)| (got - expected).abs() <= 1e-9 * expected.abs())
}
