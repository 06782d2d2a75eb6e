//! Small rayon programs without a race: `choices NAME` runs one, `choices --list` names them.
//!
//! The result of those with a line marked `// depends` may depend on the schedule, by what is called there; that of the others is
//! the same in all. `crates/dagsan/tests/rayon` sees to it that this is what is said.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use rayon::prelude::*;

macro_rules! choices {
    ($($name:ident),* $(,)?) => {
        const CHOICES: &[(&str, fn())] = &[$((stringify!($name), $name as fn())),*];
    };
}

choices![
    find_any,
    find_any_of_none,
    find_first,
    find_last,
    find_map_any,
    position_any,
    position_first,
    any,
    any_of_none,
    all,
    try_for_each,
    try_for_each_without_an_error,
    try_reduce,
    collect_results,
    collect_results_without_an_error,
    while_some,
    take_any,
    take,
    skip_any,
    id_of_an_item,
    index_of_an_item,
    count_of_items,
    stop_flag,
    flag_after_the_join,
    last_of_two,
    nested_find_any,
    sum,
    sort,
];

fn items() -> Vec<usize> {
    (0..40).collect()
}

fn find_any() {
    black_box(items().par_iter().find_any(|item| **item % 7 == 3)); // depends
}

fn find_any_of_none() {
    black_box(items().par_iter().find_any(|item| **item > 100));
}

fn find_first() {
    black_box(items().par_iter().find_first(|item| **item % 7 == 3));
}

fn find_last() {
    black_box(items().par_iter().find_last(|item| **item % 7 == 3));
}

fn find_map_any() {
    black_box(items().par_iter().find_map_any(|item| (*item % 7 == 3).then_some(item * 2))); // depends
}

fn position_any() {
    black_box(items().par_iter().position_any(|item| *item % 7 == 3)); // depends
}

fn position_first() {
    black_box(items().par_iter().position_first(|item| *item % 7 == 3));
}

/// Whether there is one is the same, but not who is asked.
fn any() {
    black_box(items().par_iter().any(|item| *item % 7 == 3)); // depends
}

fn any_of_none() {
    black_box(items().par_iter().any(|item| *item > 100));
}

fn all() {
    black_box(items().par_iter().all(|item| *item % 7 != 3)); // depends
}

fn checked(item: usize) -> Result<usize, usize> {
    if item % 7 == 3 { Err(item) } else { Ok(item) }
}

fn try_for_each() {
    _ = black_box(items().into_par_iter().try_for_each(|item| checked(item).map(drop))); // depends
}

fn try_for_each_without_an_error() {
    _ = black_box((0..3usize).into_par_iter().try_for_each(|item| checked(item).map(drop)));
}

fn try_reduce() {
    let sum = |a: usize, b: usize| Ok(a + b);
    _ = black_box(items().into_par_iter().map(checked).try_reduce(|| 0, sum)); // depends
}

fn collect_results() {
    let all: Result<Vec<usize>, usize> = items().into_par_iter().map(checked).collect(); // depends
    _ = black_box(all);
}

fn collect_results_without_an_error() {
    let all: Result<Vec<usize>, usize> = (0..3usize).into_par_iter().map(checked).collect();
    _ = black_box(all);
}

fn while_some() {
    let some = |item: usize| (item % 7 != 3).then_some(item);
    let sum: usize = items().into_par_iter().map(some).while_some().sum(); // depends
    black_box(sum);
}

fn take_any() {
    let sum: usize = items().into_par_iter().take_any(5).sum(); // depends
    black_box(sum);
}

fn take() {
    let sum: usize = items().into_par_iter().take(5).sum();
    black_box(sum);
}

fn skip_any() {
    let sum: usize = items().into_par_iter().skip_any(5).sum(); // depends
    black_box(sum);
}

fn id_of_an_item() {
    let next = AtomicUsize::new(0);
    let ids: Vec<usize> = (0..20).into_par_iter().map(|_| next.fetch_add(1, Relaxed)).collect(); // depends
    black_box(ids);
}

fn index_of_an_item() {
    let ids: Vec<usize> = items().par_iter().enumerate().map(|(index, _)| index).collect();
    black_box(ids);
}

fn count_of_items() {
    let count = AtomicUsize::new(0);
    (0..20).into_par_iter().for_each(|_| {
        count.fetch_add(1, Relaxed);
    });
    black_box(count.into_inner());
}

/// A search that is stopped by hand.
fn stop_flag() {
    let stop = AtomicBool::new(false);
    items().par_iter().for_each(|item| {
        // The first who comes here stops the others.
        let stopped = stop.load(Relaxed); // depends
        if !stopped && *item % 7 == 3 {
            stop.store(true, Relaxed);
        }
    });
}

fn flag_after_the_join() {
    let found = AtomicBool::new(false);
    items().par_iter().filter(|item| **item % 7 == 3).for_each(|_| found.store(true, Relaxed));
    black_box(found.load(Relaxed));
}

fn last_of_two() {
    let last = AtomicUsize::new(0);
    let set = |value| last.store(value, Relaxed); // depends
    rayon::join(|| set(1), || set(2));
    black_box(last.into_inner());
}

/// The outermost call is another one.
fn nested_find_any() {
    let items = items();
    black_box(rayon::join(|| items.par_iter().find_any(|item| **item % 7 == 3), || 1)); // depends
}

fn sum() {
    black_box(items().par_iter().sum::<usize>());
}

fn sort() {
    let mut items: Vec<usize> = (0..5000).map(|item| item * 7919 % 5000).collect();
    items.par_sort_unstable();
    black_box(items);
}

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    if wanted == "--list" {
        CHOICES.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    match CHOICES.iter().find(|(name, _)| *name == wanted) {
        Some((_, run)) => {
            run();
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("there is no choice `{wanted}`: `choices --list` names them");
            ExitCode::from(64)
        }
    }
}
