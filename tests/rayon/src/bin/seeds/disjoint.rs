//! "These never overlap": disjointness that was assumed.

use std::hint::black_box;

use rayon::prelude::*;

use crate::Seed;
use crate::shared::Raw;

pub const SEEDS: &[Seed] = seeds![
    scatter, scatter_fixed;
    halo_rows, halo_rows_fixed;
    columns, columns_fixed;
    transpose, transpose_fixed;
    stencil, stencil_fixed;
    bit_set, bit_set_fixed;
    packed_fields, packed_fields_fixed;
];

/// Writes `values[i]` to `place(i)`.
fn scattered(place: impl Fn(usize) -> usize + Sync) {
    let mut out = vec![0u32; 64];
    let raw = Raw::new(&mut out);
    (0..64usize).into_par_iter().for_each(|i| {
        // SAFETY: the places are taken to be a permutation.
        unsafe { *raw.at(place(i)) = i as u32 }; // race
    });
    black_box(out);
}

/// The places are no permutation: two are the same.
fn scatter() {
    scattered(|i| if i == 40 { 3 } else { i });
}

fn scatter_fixed() {
    scattered(|i| (i * 5) % 64);
}

const WIDTH: usize = 16;

/// Each row writes into the next, too.
fn halo_rows() {
    let mut grid = vec![0.0f64; WIDTH * 9];
    let raw = Raw::new(&mut grid);
    (0..8usize).into_par_iter().for_each(|row| {
        // SAFETY: "a row belongs to one task".
        let own = unsafe { raw.slice(row * WIDTH, WIDTH + 1) };
        for (column, cell) in own.iter_mut().enumerate() {
            *cell += column as f64; // race
        }
    });
    black_box(grid);
}

fn halo_rows_fixed() {
    let mut grid = vec![0.0f64; WIDTH * 9];
    grid.par_chunks_mut(WIDTH).take(8).for_each(|own| {
        for (column, cell) in own.iter_mut().enumerate() {
            *cell += column as f64;
        }
    });
    black_box(grid);
}

/// A task per column, with the stride of another matrix.
fn columns() {
    columns_with_stride(WIDTH - 1);
}

fn columns_fixed() {
    columns_with_stride(WIDTH);
}

fn columns_with_stride(stride: usize) {
    let mut matrix = vec![0u64; WIDTH * WIDTH];
    let raw = Raw::new(&mut matrix);
    (0..WIDTH).into_par_iter().for_each(|column| {
        for row in 0..WIDTH {
            // SAFETY: "columns are disjoint".
            unsafe { *raw.at(row * stride + column) += 1 }; // race
        }
    });
    black_box(matrix);
}

/// Swaps each pair, by both of its elements.
fn transpose() {
    transpose_from(|_| 0);
}

fn transpose_fixed() {
    transpose_from(|row| row + 1);
}

fn transpose_from(first: impl Fn(usize) -> usize + Sync) {
    let mut matrix: Vec<usize> = (0..WIDTH * WIDTH).collect();
    let raw = Raw::new(&mut matrix);
    (0..WIDTH).into_par_iter().for_each(|row| {
        for column in first(row)..WIDTH {
            // SAFETY: "each element is moved once".
            unsafe {
                let moved = *raw.at(row * WIDTH + column); // race
                *raw.at(row * WIDTH + column) = *raw.at(column * WIDTH + row); // race
                *raw.at(column * WIDTH + row) = moved; // race
            }
        }
    });
    black_box(matrix);
}

/// In place: the neighbours are new or old, as it comes.
fn stencil() {
    let mut cells: Vec<f32> = (0..100u8).map(f32::from).collect();
    let raw = Raw::new(&mut cells);
    (1..99usize).into_par_iter().for_each(|i| {
        // SAFETY: "each task writes one cell".
        unsafe { *raw.at(i) = (*raw.at(i - 1) + *raw.at(i + 1)) / 2.0 }; // race
    });
    black_box(cells);
}

fn stencil_fixed() {
    let cells: Vec<f32> = (0..100u8).map(f32::from).collect();
    let mut next = cells.clone();
    next[1..99].par_iter_mut().zip(cells.par_windows(3)).for_each(|(new, old)| *new = (old[0] + old[2]) / 2.0);
    black_box(next);
}

/// Different bits, the same words.
fn bit_set() {
    let mut words = vec![0u64; 2];
    let raw = Raw::new(&mut words);
    (0..128usize).into_par_iter().filter(|i| i % 3 == 0).for_each(|i| {
        // SAFETY: "each task sets a bit of its own".
        unsafe { *raw.at(i / 64) |= 1 << (i % 64) }; // race
    });
    black_box(words);
}

fn bit_set_fixed() {
    let mut words = vec![0u64; 2];
    words.par_iter_mut().enumerate().for_each(|(word, bits)| {
        for i in (word * 64..word * 64 + 64).filter(|i| i % 3 == 0) {
            *bits |= 1 << (i % 64);
        }
    });
    black_box(words);
}

/// Two fields in one word, written by masking.
fn packed_fields() {
    let mut packed = vec![0u32; 32];
    let raw = Raw::new(&mut packed);
    rayon::join(
        // SAFETY: "the low half is mine".
        || (0..32).for_each(|i| unsafe { *raw.at(i) = (*raw.at(i) & 0xffff_0000) | i as u32 }), // race
        // SAFETY: "the high half is mine".
        || (0..32).for_each(|i| unsafe { *raw.at(i) = (*raw.at(i) & 0xffff) | (i as u32) << 16 }), // race
    );
    black_box(packed);
}

fn packed_fields_fixed() {
    let mut packed = vec![[0u16; 2]; 32];
    let raw = Raw::new(&mut packed);
    rayon::join(
        // SAFETY: the fields are different ones.
        || (0..32).for_each(|i| unsafe { raw.at(i)[0] = i as u16 }),
        // SAFETY: as above.
        || (0..32).for_each(|i| unsafe { raw.at(i)[1] = i as u16 }),
    );
    black_box(packed);
}
