//! Two tasks that wait for each other, one of which speaks first. The twin of `deadlock`.
//!
//! ```sh
//! cargo dagsan run --bin deadlock_fixed # race-free
//! ```

use dagsan_task::{Promise, finish};

fn main() {
    let (buyer, seller) = (Promise::named("the buyer's offer"), Promise::named("the seller's offer"));

    finish(|scope| {
        scope.spawn(|_| {
            let other: u32 = *seller.get();
            buyer.set(other - 10);
        });
        scope.spawn(|_| {
            seller.set(100);
            assert!(*buyer.get() < 100);
        });
    });
    println!("{} and {}", buyer.get(), seller.get());
}
