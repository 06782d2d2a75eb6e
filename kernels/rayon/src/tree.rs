//! A search tree of boxes, built, changed and summed by `join`: many small blocks of the heap.

use std::time::Duration;

use crate::{checked, timed};

/// Smaller trees are one task's.
const SMALL: u64 = 256;

struct Node {
    key: u64,
    value: u64,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

fn both<A: Send, B: Send>(size: u64, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if size < SMALL { (a(), b()) } else { rayon::join(a, b) }
}

/// A tree of the keys from `low` to `high`.
fn build(low: u64, high: u64) -> Option<Box<Node>> {
    if low == high {
        return None;
    }
    let key = low.midpoint(high);
    let (left, right) = both(high - low, || build(low, key), || build(key + 1, high));
    Some(Box::new(Node { key, value: key, left, right }))
}

/// A new tree, with the squares of the values, in the place of the old one.
fn squares(tree: Option<Box<Node>>, size: u64) -> Option<Box<Node>> {
    let Node { key, value, left, right } = *tree?;
    let (left, right) = both(size, || squares(left, size / 2), || squares(right, size / 2));
    Some(Box::new(Node { key, value: value.wrapping_mul(value), left, right }))
}

fn sum(tree: Option<&Node>, size: u64) -> u64 {
    let Some(Node { key, value, left, right }) = tree else { return 0 };
    let (left, right) = both(size, || sum(left.as_deref(), size / 2), || sum(right.as_deref(), size / 2));
    left.wrapping_add(right).wrapping_add(value ^ key)
}

pub fn run(size: usize) -> Result<Duration, String> {
    let size = size as u64;
    let (time, sum) = timed(|| {
        let tree = squares(build(0, size), size);
        sum(tree.as_deref(), size)
    });
    let expected = (0..size).map(|key| key.wrapping_mul(key) ^ key).fold(0, u64::wrapping_add);
    checked(time, sum == expected)
}
