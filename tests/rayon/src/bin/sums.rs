//! A program without races, on which ThreadSanitizer reports some: those of rayon's own deques. See docs/rayon.md.

use rayon::prelude::*;

fn main() {
    let numbers: Vec<u64> = (0..10_000).collect();
    let (low, high) = numbers.split_at(5_000);
    let mut totals = Vec::new();
    for _ in 0..50 {
        let squares: u64 = numbers.par_iter().map(|n| n * n).sum();
        let (low, high) = rayon::join(|| low.iter().sum::<u64>(), || high.iter().sum::<u64>());
        totals.push(squares + low + high);
    }
    rayon::scope(|scope| totals.iter_mut().for_each(|total| scope.spawn(move |_| *total += 1)));
    println!("{}", totals[0]);
}
