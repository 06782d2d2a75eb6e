//! Matrix multiplication after Strassen: seven products of halves, each a task (papers 000 and 004).

use std::time::Duration;

use dagsan_task::procedure;

use crate::matrix::{Matrix, View};
use crate::{check, timed};

/// Matrices up to this size are multiplied by the rule.
const CUTOFF: usize = 64;

/// Multiplies matrices of that many rows.
pub fn run(size: usize) -> Result<Duration, String> {
    check(size >= CUTOFF && size.is_power_of_two(), "the size is not 64, 128, 256, …")?;
    let (a, b) = (Matrix::random(size, 1), Matrix::random(size, 2));
    let (time, result) = timed(|| product(a.view(), b.view()));
    check(result.is_product(&a, &b), "the product is wrong")?;
    Ok(time)
}

fn product(a: View, b: View) -> Matrix {
    let mut result = Matrix::zero(a.size);
    if a.size <= CUTOFF {
        for row in 0..a.size {
            b.add_row_product(a.row(row), result.row_mut(row));
        }
        return result;
    }
    let half = a.size / 2;
    let ([a11, a12, a21, a22], [b11, b12, b21, b22]) = (quarters(a), quarters(b));
    let [m1, m2, m3, m4, m5, m6, m7] = procedure(|p| {
        let products = [
            p.spawn(move || product(sum(a11, a22).view(), sum(b11, b22).view())),
            p.spawn(move || product(sum(a21, a22).view(), b11)),
            p.spawn(move || product(a11, difference(b12, b22).view())),
            p.spawn(move || product(a22, difference(b21, b11).view())),
            p.spawn(move || product(sum(a11, a12).view(), b22)),
            p.spawn(move || product(difference(a21, a11).view(), sum(b11, b12).view())),
            p.spawn(move || product(difference(a12, a22).view(), sum(b21, b22).view())),
        ];
        p.sync();
        products.map(|product| product.join())
    });
    for row in 0..half {
        let [m1, m2, m3, m4, m5, m6, m7] = [&m1, &m2, &m3, &m4, &m5, &m6, &m7].map(|m| m.view().row(row));
        let (left, right) = result.row_mut(row).split_at_mut(half);
        for k in 0..half {
            left[k] = m1[k] + m4[k] - m5[k] + m7[k];
            right[k] = m3[k] + m5[k];
        }
        let (left, right) = result.row_mut(half + row).split_at_mut(half);
        for k in 0..half {
            left[k] = m2[k] + m4[k];
            right[k] = m1[k] - m2[k] + m3[k] + m6[k];
        }
    }
    result
}

fn quarters(matrix: View<'_>) -> [View<'_>; 4] {
    let half = matrix.size / 2;
    [(0, 0), (0, half), (half, 0), (half, half)].map(|(row, column)| matrix.part(row, column, half))
}

fn sum(a: View, b: View) -> Matrix {
    combined(a, b, |x, y| x + y)
}

fn difference(a: View, b: View) -> Matrix {
    combined(a, b, |x, y| x - y)
}

fn combined(a: View, b: View, combine: impl Fn(f64, f64) -> f64) -> Matrix {
    let mut elements = Vec::with_capacity(a.size * a.size);
    for row in 0..a.size {
        elements.extend(a.row(row).iter().zip(b.row(row)).map(|(x, y)| combine(*x, *y)));
    }
    Matrix { size: a.size, elements }
}
