//! A result that is used before anybody has waited for it.
//!
//! ```sh
//! cargo dagsan run --bin missing_get # 1 race on a heap block of 80 bytes
//! ```
//!
//! A future squares numbers into a buffer, and says how many. The main task waits for it with `get`, and prints all that
//! is in the buffer; but it has looked at the last square before.
//!
//! On one thread a future runs when it is created, so that the program never shows what is wrong. DagSan does not ask
//! what happened first but what had to: nothing orders the write of the last square before the read.

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

        let last = squares.get(squares.len() - 1);
        println!("the last square: {last}");

        let filled = *filled.get();
        let all: Vec<usize> = (0..filled).map(|i| squares.get(i)).collect();
        println!("all {filled}: {all:?}");
    });
}
