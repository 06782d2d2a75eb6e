//! Shared collections: the access is inside of a library, and its place is the line that calls it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hint::black_box;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::Seed;
use crate::shared::{Raw, Shared};

pub const SEEDS: &[Seed] = seeds![
    pushed_by_both, pushed_by_both_fixed;
    inserted_by_items, inserted_by_items_fixed;
    inserted_in_a_tree, inserted_in_a_tree_fixed;
    extended_by_jobs, extended_by_jobs_fixed;
    sorted_with_an_overlap, sorted_with_an_overlap_fixed;
    copied_with_an_overlap, copied_with_an_overlap_fixed;
    queued_by_items, queued_by_items_fixed;
    dropped_while_used, dropped_while_used_fixed;
    text_of_all, text_of_all_fixed;
    filled_by_halves, filled_by_halves_fixed;
];

/// "The capacity is there."
fn pushed_by_both() {
    let list = Shared::new(Vec::with_capacity(8));
    // SAFETY: "each pushes its own".
    rayon::join(
        || unsafe { list.get().push(1u64) }, // race
        || unsafe { list.get().push(2u64) }, // race
    );
}

fn pushed_by_both_fixed() {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    rayon::join(|| one.push(1u64), || two.push(2u64));
    one.append(&mut two);
    black_box(one);
}

fn inserted_by_items() {
    let map = Shared::new(HashMap::with_capacity(64));
    (0..20u64).into_par_iter().for_each(|item| {
        // SAFETY: "it does not grow".
        unsafe { map.get().insert(item, item) }; // race
    });
}

fn inserted_by_items_fixed() {
    let map: HashMap<u64, u64> = (0..20u64).into_par_iter().map(|item| (item, item)).collect();
    black_box(map);
}

fn inserted_in_a_tree() {
    let map = Shared::new(BTreeMap::from([(1u64, 1u64)]));
    rayon::scope(|scope| {
        for item in 0..3 {
            let map = &map;
            // SAFETY: "other keys".
            scope.spawn(move |_| _ = unsafe { map.get().insert(item, item) }); // race
        }
    });
}

fn inserted_in_a_tree_fixed() {
    let map = Mutex::new(BTreeMap::from([(1u64, 1u64)]));
    rayon::scope(|scope| {
        for item in 0..3 {
            let map = &map;
            scope.spawn(move |_| _ = map.lock().unwrap().insert(item, item));
        }
    });
}

fn extended_by_jobs() {
    let list = Shared::new(Vec::with_capacity(64));
    rayon::scope(|scope| {
        for item in 0..3u64 {
            let list = &list;
            // SAFETY: "there is room for all".
            scope.spawn(move |_| unsafe { list.get().extend([item; 4]) }); // race
        }
    });
}

fn extended_by_jobs_fixed() {
    let mut lists = vec![Vec::new(); 3];
    rayon::scope(|scope| {
        for (item, list) in (0..).zip(&mut lists) {
            scope.spawn(move |_| list.extend([item as u64; 4]));
        }
    });
    black_box(lists);
}

fn sorted_with_an_overlap() {
    let mut cells: Vec<u64> = (0..20).rev().collect();
    let raw = Raw::new(&mut cells);
    // SAFETY: "two halves".
    rayon::join(
        || unsafe { raw.slice(0, 11).sort_unstable() }, // race
        || unsafe { raw.slice(10, 10).sort_unstable() }, // race
    );
}

fn sorted_with_an_overlap_fixed() {
    let mut cells: Vec<u64> = (0..20).rev().collect();
    let (one, two) = cells.split_at_mut(10);
    rayon::join(|| one.sort_unstable(), || two.sort_unstable());
}

fn copied_with_an_overlap() {
    let mut cells = vec![0u64; 64];
    let raw = Raw::new(&mut cells);
    (0..3).into_par_iter().for_each(|part| {
        // SAFETY: "parts".
        unsafe { raw.slice(0, 64) }.copy_within(part * 10..part * 10 + 10, part * 10 + 10); // race
    });
}

fn copied_with_an_overlap_fixed() {
    let mut cells = vec![0u64; 60];
    cells.par_chunks_mut(20).for_each(|part| part.copy_within(0..10, 10));
}

fn queued_by_items() {
    let queue = Shared::new(VecDeque::with_capacity(64));
    // SAFETY: "one after the other".
    (0..10u64).into_par_iter().for_each(|item| unsafe { queue.get().push_back(item) }); // race
}

fn queued_by_items_fixed() {
    let queue = Mutex::new(VecDeque::with_capacity(64));
    (0..10u64).into_par_iter().for_each(|item| queue.lock().unwrap().push_back(item));
}

/// The last call of a closure.
fn dropped_while_used() {
    let block = Shared::new(Some(Box::new(5u64)));
    // SAFETY: "it is used first".
    rayon::join(
        || _ = black_box(unsafe { block.get().as_ref().map(|block| **block) }), // race
        || drop(unsafe { block.get().take() }), // race
    );
}

fn dropped_while_used_fixed() {
    let block = Box::new(5u64);
    rayon::join(|| _ = black_box(*block), || _ = black_box(*block));
    drop(block);
}

fn text_of_all() {
    let text = Shared::new(String::with_capacity(64));
    // SAFETY: "short texts".
    ["a", "b", "c"].par_iter().for_each(|part| unsafe { text.get().push_str(part) }); // race
}

fn text_of_all_fixed() {
    let text: String = ["a", "b", "c"].par_iter().copied().collect();
    black_box(text);
}

fn filled_by_halves() {
    let mut cells = vec![0u8; 100];
    let raw = Raw::new(&mut cells);
    // SAFETY: "halves".
    rayon::join(
        || unsafe { raw.slice(0, 51) }.fill(1), // race
        || unsafe { raw.slice(50, 50) }.fill(2), // race
    );
}

fn filled_by_halves_fixed() {
    let mut cells = vec![0u8; 100];
    let (one, two) = cells.split_at_mut(50);
    rayon::join(|| one.fill(1), || two.fill(2));
}
