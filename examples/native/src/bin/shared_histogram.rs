//! A race on one element: two tasks count into one histogram.
//!
//! ```sh
//! cargo dagsan run --bin shared_histogram # 1 race on a heap block of 16 bytes
//! ```
//!
//! The samples are sorted, so the two halves fall into different buckets, one would think:
//!
//! ```text
//!   samples   0 3 7 │ 12 14 15 ┊ 18 19 │ 21 25 │ 33 38
//!   bucket      0   │     1    ┊       │   2   │   3
//!             ◄── first task ─►┊◄─── second task ────►
//! ```
//!
//! Bucket 1 has samples on both sides. The program prints the right counts every time it is run on one thread, and a
//! wrong one now and then on several. `shared_histogram_fixed` cuts between two buckets.

use dagsan_examples::SharedVec;
use dagsan_task::finish;

/// Samples per bucket.
const WIDTH: usize = 10;

fn count(samples: &[usize], histogram: &SharedVec<u32>) {
    for sample in samples {
        let bucket = sample / WIDTH;
        histogram.set(bucket, histogram.get(bucket) + 1);
    }
}

fn main() {
    let samples = [0, 3, 7, 12, 14, 15, 18, 19, 21, 25, 33, 38];
    let histogram = SharedVec::new(0, 4);

    let (low, high) = samples.split_at(samples.len() / 2);
    finish(|scope| {
        scope.spawn(|_| count(low, &histogram));
        scope.spawn(|_| count(high, &histogram));
    });

    for bucket in 0..histogram.len() {
        println!("{:>2}..{:<2} {}", bucket * WIDTH, (bucket + 1) * WIDTH, histogram.get(bucket));
    }
}
