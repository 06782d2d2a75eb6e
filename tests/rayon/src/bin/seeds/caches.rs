//! What is computed once, and kept.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Mutex, OnceLock};

use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    lazy_table, lazy_table_fixed;
    memo, memo_fixed;
    union_find, union_find_fixed;
    counted_uses, counted_uses_fixed;
];

/// Filled by whoever comes first, without a lock.
fn lazy_table() {
    static TABLE: Shared<Option<u64>> = Shared::new(None);
    let value = || {
        // SAFETY: "all compute the same".
        let table = unsafe { TABLE.get() };
        if table.is_none() { // race
            *table = Some(black_box(42)); // race
        }
        table.unwrap_or(0)
    };
    black_box(rayon::join(value, value));
}

fn lazy_table_fixed() {
    static TABLE: OnceLock<u64> = OnceLock::new();
    let value = || *TABLE.get_or_init(|| black_box(42));
    black_box(rayon::join(value, value));
}

/// Results by argument, 0 for none.
fn memo() {
    let mut known = vec![0u64; 32];
    let raw = Raw::new(&mut known);
    fn fib(n: usize, known: Raw<u64>) -> u64 {
        if n < 2 {
            return n as u64;
        }
        // SAFETY: "a word is written at once".
        let entry = unsafe { known.at(n) };
        if *entry == 0 { // race
            let (a, b) = rayon::join(|| fib(n - 1, known), || fib(n - 2, known));
            *entry = a + b; // race
        }
        *entry // race
    }
    black_box(fib(8, raw));
}

fn memo_fixed() {
    fn fib(n: usize, known: &Mutex<HashMap<usize, u64>>) -> u64 {
        if n < 2 {
            return n as u64;
        }
        let entry = known.lock().unwrap().get(&n).copied();
        entry.unwrap_or_else(|| {
            let (a, b) = rayon::join(|| fib(n - 1, known), || fib(n - 2, known));
            known.lock().unwrap().insert(n, a + b);
            a + b
        })
    }
    black_box(fib(8, &Mutex::default()));
}

/// Finds that shorten paths write.
fn union_find() {
    let mut parents: Vec<usize> = (0..16usize).map(|i| i.saturating_sub(1)).collect();
    let raw = Raw::new(&mut parents);
    let roots: Vec<usize> = (0..16usize)
        .into_par_iter()
        .map(|mut node| loop {
            // SAFETY: "a find changes nothing that matters".
            let parent = unsafe { *raw.at(node) }; // race
            if parent == node {
                return node;
            }
            // SAFETY: as above.
            unsafe { *raw.at(node) = *raw.at(parent) }; // race
            node = parent;
        })
        .collect();
    black_box(roots);
}

fn union_find_fixed() {
    let parents: Vec<usize> = (0..16usize).map(|i| i.saturating_sub(1)).collect();
    let find = |mut node: usize| {
        while parents[node] != node {
            node = parents[node];
        }
        node
    };
    let roots: Vec<usize> = (0..16usize).into_par_iter().map(find).collect();
    black_box(roots);
}

/// A count of uses in what is otherwise read only.
struct Document {
    text: &'static str,
    uses: Shared<u32>,
}

impl Document {
    fn words(&self) -> usize {
        // SAFETY: "nobody looks at it".
        unsafe { *self.uses.get() += 1 }; // race
        self.text.split(' ').count()
    }
}

fn counted_uses() {
    let document = Document { text: "to be or not to be", uses: Shared::new(0) };
    let words: usize = (0..4).into_par_iter().map(|_| document.words()).sum();
    black_box(words);
}

fn counted_uses_fixed() {
    let documents: Vec<Document> =
        (0..4).map(|_| Document { text: "to be or not to be", uses: Shared::new(0) }).collect();
    let words: usize = documents.par_iter().map(Document::words).sum();
    black_box(words);
}
