//! A pipeline in which one stage looks too far ahead. The twin of `promise_pipeline`.
//!
//! ```sh
//! cargo dagsan run --bin promise_pipeline_racy # 1 race on a heap block of 64 bytes
//! ```
//!
//! ```text
//!   record ──► levels[k] ──► smooth ──► smoothed[k] ──► sum
//!         recorded[k].set()       done[k].set()
//! ```
//!
//! `smooth` waits for `recorded[k]`, and reads `levels[k]` and `levels[k + 1]`. Of the second it knows nothing: the stage
//! before it may be writing it. There is one such race per step but the last.

use dagsan_examples::SharedVec;
use dagsan_task::{Promise, finish};

const STEPS: usize = 8;

fn main() {
    let (levels, smoothed) = (SharedVec::new(0, STEPS), SharedVec::new(0, STEPS));
    let recorded: Vec<Promise<()>> = (0..STEPS).map(|k| Promise::named(format!("recorded {k}"))).collect();
    let done: Vec<Promise<()>> = (0..STEPS).map(|k| Promise::named(format!("done {k}"))).collect();

    let total = finish(|scope| {
        scope.spawn(|_| {
            for (k, ready) in recorded.iter().enumerate() {
                levels.set(k, (k * 37) % 10);
                ready.set(());
            }
        });
        scope.spawn(|_| {
            for (k, ready) in recorded.iter().enumerate() {
                let next = (k + 1).min(STEPS - 1);
                ready.get();
                smoothed.set(k, (levels.get(k) + levels.get(next)) / 2);
                done[k].set(());
            }
        });
        let total = scope.future(|_| {
            let value = |k: usize| {
                done[k].get();
                smoothed.get(k)
            };
            (0..STEPS).map(value).sum::<usize>()
        });
        *total.get()
    });
    println!("the sum of the smoothed levels is {total}");
}
