//! A pipeline of three stages that tell each other by promises how far they are. No race.
//!
//! ```sh
//! cargo dagsan run --bin promise_pipeline # race-free
//! ```
//!
//! ```text
//!   record ──► levels[k] ──► smooth ──► smoothed[k] ──► sum
//!         recorded[k].set()       done[k].set()
//! ```
//!
//! The stages run in parallel, each some steps behind the one before it. A stage touches an element only after the
//! promise that says it is ready: `smoothed[k]` needs `levels[k]` and `levels[k + 1]`, so it gets two promises.

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
            for k in 0..STEPS {
                let next = (k + 1).min(STEPS - 1);
                recorded[k].get();
                recorded[next].get();
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
