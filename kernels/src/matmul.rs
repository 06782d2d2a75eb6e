//! Matrix multiplication by blocks: a task per block of the result (paper 000).

use std::time::Duration;

use dagsan_task::finish;

use crate::matrix::{Matrix, View};
use crate::shared::Shared;
use crate::{check, timed};

const BLOCK: usize = 64;

/// Multiplies matrices of that many rows.
pub fn run(size: usize) -> Result<Duration, String> {
    check(size > 0 && size.is_multiple_of(BLOCK), "the size is not a multiple of 64")?;
    let (a, b) = (Matrix::random(size, 1), Matrix::random(size, 2));
    let mut product = Matrix::zero(size);
    let shared = Shared::new(&mut product.elements, size);
    let (time, ()) = timed(|| {
        finish(|scope| {
            for row in (0..size).step_by(BLOCK) {
                for column in (0..size).step_by(BLOCK) {
                    let (a, b, shared) = (a.view(), b.view(), &shared);
                    scope.spawn(move |_| block(a, b, shared, row, column));
                }
            }
        });
    });
    check(product.is_product(&a, &b), "the product is wrong")?;
    Ok(time)
}

/// The block of the product that starts there.
fn block(a: View, b: View, product: &Shared<f64>, row: usize, column: usize) {
    for inner in (0..a.size).step_by(BLOCK) {
        let (left, right) = (a.part(row, inner, BLOCK), b.part(inner, column, BLOCK));
        for i in 0..BLOCK {
            // SAFETY: these elements are in the block, which is written by this task alone, and read by nobody until all
            // tasks are joined.
            let sum = unsafe { product.row_mut(row + i, column..column + BLOCK) };
            right.add_row_product(left.row(i), sum);
        }
    }
}
