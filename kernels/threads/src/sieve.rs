//! Eratosthenes' sieve by segments: who is done takes the next one, by an atomic counter.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::{THREADS, checked, timed};

const SEGMENT: usize = 1 << 17;

/// The primes below `limit`, without threads.
fn small(limit: usize) -> Vec<usize> {
    let mut composite = vec![false; limit.max(2)];
    let mut primes = Vec::new();
    for number in 2..limit {
        if !composite[number] {
            primes.push(number);
            (number * number..limit).step_by(number).for_each(|multiple| composite[multiple] = true);
        }
    }
    primes
}

/// How many primes there are in `from..to`, if `primes` has all up to the root of `to`.
fn count(from: usize, to: usize, primes: &[usize], composite: &mut Vec<bool>) -> usize {
    composite.clear();
    composite.resize(to - from, false);
    for &prime in primes.iter().take_while(|prime| *prime * *prime < to) {
        let first = (prime * prime).max(from.next_multiple_of(prime));
        (first..to).step_by(prime).for_each(|multiple| composite[multiple - from] = true);
    }
    composite.iter().filter(|composite| !**composite).count()
}

pub fn run(size: usize) -> Result<Duration, String> {
    let (time, found) = timed(|| {
        let primes = small(size.isqrt() + 1);
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let count_segments = || {
                let (mut found, mut composite) = (0, Vec::new());
                loop {
                    // Relaxed: what a thread gets is a number, and nothing is passed with it.
                    let from = next.fetch_add(SEGMENT, Relaxed);
                    if from >= size {
                        return found;
                    }
                    found += count(from.max(2), (from + SEGMENT).min(size), &primes, &mut composite);
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count_segments)).collect();
            threads.into_iter().map(|thread| thread.join().expect("nobody panics")).sum::<usize>()
        })
    });
    checked(time, found == small(size).len())
}
