//! Two tasks count into one histogram, each into buckets of its own. The twin of `shared_histogram`.
//!
//! ```sh
//! cargo dagsan run --bin shared_histogram_fixed # race-free
//! ```

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

    // All samples of the middle one's bucket are on its side of the cut.
    let first_bucket = samples[samples.len() / 2] / WIDTH;
    let cut = samples.partition_point(|sample| sample / WIDTH < first_bucket);
    let (low, high) = samples.split_at(cut);
    finish(|scope| {
        scope.spawn(|_| count(low, &histogram));
        scope.spawn(|_| count(high, &histogram));
    });

    for bucket in 0..histogram.len() {
        println!("{:>2}..{:<2} {}", bucket * WIDTH, (bucket + 1) * WIDTH, histogram.get(bucket));
    }
}
