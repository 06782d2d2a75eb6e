//! One thing under two names.

use std::hint::black_box;

use rayon::prelude::*;

use crate::Seed;
use crate::shared::Raw;

pub const SEEDS: &[Seed] = seeds![
    same_slice_twice, same_slice_twice_fixed;
    duplicate_nodes, duplicate_nodes_fixed;
    windows_as_chunks, windows_as_chunks_fixed;
    freed_by_sibling, freed_by_sibling_fixed;
];

/// `to[i] += from[i]`, with one vector for both.
fn added(to: Raw<u64>, from: Raw<u64>, shift: usize) {
    (0..15usize).into_par_iter().for_each(|i| {
        // SAFETY: "to and from are different".
        unsafe { *to.at(i) += *from.at(i + shift) }; // race
    });
}

fn same_slice_twice() {
    let mut values = vec![1u64; 16];
    let raw = Raw::new(&mut values);
    added(raw, raw, 1);
    black_box(values);
}

fn same_slice_twice_fixed() {
    let (mut values, mut others) = (vec![1u64; 16], vec![2u64; 16]);
    added(Raw::new(&mut values), Raw::new(&mut others), 1);
    black_box(values);
}

/// A list of nodes to be updated, one of them twice.
fn updated(nodes: &[usize]) {
    let mut weights = vec![0.5f32; 10];
    let raw = Raw::new(&mut weights);
    nodes.par_iter().for_each(|&node| {
        // SAFETY: "no node is in the list twice".
        unsafe { *raw.at(node) *= 2.0 }; // race
    });
    black_box(weights);
}

fn duplicate_nodes() {
    updated(&[4, 1, 7, 9, 1]);
}

fn duplicate_nodes_fixed() {
    updated(&[4, 1, 7, 9, 2]);
}

fn smoothed(step: usize) {
    let mut values: Vec<i64> = (0..24).collect();
    let raw = Raw::new(&mut values);
    (0..24 / 3usize).into_par_iter().filter(|i| i * step + 3 <= 24).for_each(|i| {
        // SAFETY: "these are chunks".
        let window = unsafe { raw.slice(i * step, 3) };
        window[1] = (window[0] + window[2]) / 2; // race
        window[0] -= 1; // race
    });
    black_box(values);
}

/// Windows, and not chunks.
fn windows_as_chunks() {
    smoothed(1);
}

fn windows_as_chunks_fixed() {
    smoothed(3);
}

/// One task drops what the other reads.
fn freed_by_sibling() {
    let list = Box::into_raw(Box::new([7u64; 4])) as usize;
    rayon::join(
        // SAFETY: "the box is still there".
        || black_box(unsafe { (*(list as *const [u64; 4]))[2] }), // race
        // SAFETY: "nobody needs it any more".
        || drop(unsafe { Box::from_raw(list as *mut [u64; 4]) }), // race
    );
}

fn freed_by_sibling_fixed() {
    let list = Box::new([7u64; 4]);
    rayon::join(|| black_box(list[2]), || black_box(list[3]));
    drop(list);
}
