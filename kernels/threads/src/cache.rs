//! A cache that many read and few write: a map behind a reader-writer lock.

use std::collections::HashMap;
use std::sync::RwLock;
use std::thread;
use std::time::Duration;

use crate::{THREADS, checked, random, timed};

const KEYS: u64 = 5_000;

/// What is worth keeping: the length of a Collatz sequence.
fn steps(mut number: u64) -> u64 {
    let mut steps = 0;
    while number > 1 {
        number = if number % 2 == 0 { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

fn look_up(cache: &RwLock<HashMap<u64, u64>>, key: u64) -> u64 {
    if let Some(&known) = cache.read().expect("nobody panics").get(&key) {
        return known;
    }
    let value = steps(key + 1_000_000);
    cache.write().expect("nobody panics").insert(key, value);
    value
}

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let keys: Vec<u64> = (0..size).map(|_| next() % KEYS).collect();
    let (time, sum) = timed(|| {
        let cache = RwLock::default();
        thread::scope(|scope| {
            let parts = keys.chunks(size.div_ceil(THREADS));
            let threads: Vec<_> = parts
                .map(|part| scope.spawn(|| part.iter().map(|&key| look_up(&cache, key)).sum::<u64>()))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("nobody panics")).sum::<u64>()
        })
    });
    checked(time, sum == keys.iter().map(|key| steps(key + 1_000_000)).sum())
}
