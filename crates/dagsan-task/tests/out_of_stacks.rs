//! More unfinished tasks than there are stacks. Alone in its process, whose address space it fills.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dagsan_task::{Promise, finish, with_workers};

fn message(outcome: Result<(), Box<dyn std::any::Any + Send>>) -> String {
    outcome.err().and_then(|payload| payload.downcast::<String>().ok()).map_or(String::new(), |text| *text)
}

#[test]
fn one_task_too_many_panics_where_it_is_started() {
    with_workers(1, || {
        let promise = Promise::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            finish(|scope| {
                let _set = SetAtEnd(&promise);
                for _ in 0..100_000 {
                    scope.spawn(|_| _ = promise.get());
                }
            });
        }));
        assert!(message(outcome).contains("30000 tasks are suspended"));

        fn down(depth: u32) {
            if depth > 0 {
                finish(|scope| scope.spawn(move |_| down(depth - 1)));
            }
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| down(100_000)));
        assert!(message(outcome).contains("there are no more stacks"));

        // All stacks have come back.
        finish(|scope| scope.spawn(|_| {}));
    });
}

/// Lets the tasks go when the body panics.
struct SetAtEnd<'a>(&'a Promise<()>);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.set(());
    }
}
