//! A result that is used after the `get`. The twin of `missing_get`.
//!
//! ```sh
//! cargo dagsan run --bin missing_get_fixed # race-free
//! ```

use dagsan_examples::SharedVec;
use dagsan_task::finish;

fn main() {
    let squares = SharedVec::new(0, 10);

    finish(|scope| {
        let filled = scope.future(|_| {
            for i in 0..squares.len() {
                squares.set(i, i * i);
            }
            squares.len()
        });

        // All that the future has written comes before this line's end.
        let filled = *filled.get();
        let last = squares.get(filled - 1);
        println!("the last square: {last}");

        let all: Vec<usize> = (0..filled).map(|i| squares.get(i)).collect();
        println!("all {filled}: {all:?}");
    });
}
