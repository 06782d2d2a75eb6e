//! A map in stripes, each with its lock: threads count how often each key comes.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::{THREADS, checked, random, timed};

const STRIPES: usize = 64;
const KEYS: u64 = 50_000;
/// Keys that are counted together before the map is asked: as one would, to lock less often.
const BATCH: usize = 64;

pub fn run(size: usize) -> Result<Duration, String> {
    let mut next = random();
    let keys: Vec<u64> = (0..size).map(|_| next() % KEYS).collect();
    let (time, stripes) = timed(|| {
        let stripes: Vec<Mutex<HashMap<u64, u64>>> = (0..STRIPES).map(|_| Mutex::default()).collect();
        thread::scope(|scope| {
            for part in keys.chunks(size.div_ceil(THREADS)) {
                let stripes = &stripes;
                scope.spawn(move || {
                    let mut waiting: Vec<Vec<u64>> = vec![Vec::new(); STRIPES];
                    for &key in part {
                        let stripe = key as usize % STRIPES;
                        waiting[stripe].push(key);
                        if waiting[stripe].len() == BATCH {
                            count(&stripes[stripe], &mut waiting[stripe]);
                        }
                    }
                    stripes.iter().zip(&mut waiting).for_each(|(stripe, waiting)| count(stripe, waiting));
                });
            }
        });
        stripes
    });
    let mut expected: HashMap<u64, u64> = HashMap::new();
    keys.iter().for_each(|key| *expected.entry(*key).or_default() += 1);
    let counted = stripes.into_iter().flat_map(|stripe| stripe.into_inner().expect("nobody panics"));
    checked(time, counted.collect::<HashMap<_, _>>() == expected)
}

fn count(stripe: &Mutex<HashMap<u64, u64>>, keys: &mut Vec<u64>) {
    let mut counts = stripe.lock().expect("nobody panics");
    keys.drain(..).for_each(|key| *counts.entry(key).or_default() += 1);
}
