//! Two tasks that wait for each other for ever.
//!
//! ```sh
//! cargo dagsan run --bin deadlock # deadlock: 2 of 3 tasks wait for ever
//! ```
//!
//! Each asks what the other one offers before it says what it offers itself. Both wait, and nobody else can set the
//! promises. The task library notices, DagSan shows who waits where and for what, and the gets end with a panic.

use dagsan_task::{Promise, finish};

fn main() {
    let (buyer, seller) = (Promise::named("the buyer's offer"), Promise::named("the seller's offer"));

    finish(|scope| {
        scope.spawn(|_| {
            let other: u32 = *seller.get();
            buyer.set(other - 10);
        });
        scope.spawn(|_| {
            let other = *buyer.get();
            seller.set(other + 10);
        });
    });
    println!("{} and {}", buyer.get(), seller.get());
}
