//! Tests for `cargo dagsan test`: one of each kind that can fail in its way.

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;

    use dagsan_task::{Promise, finish};

    struct Shared(UnsafeCell<u64>);

    // SAFETY: tasks of one thread share it.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn add(&self, n: u64) {
            // SAFETY: the tasks of a test run on one thread.
            unsafe { *self.0.get() += n };
        }
    }

    #[test]
    fn clean() {
        let mut parts = [0; 4];
        finish(|scope| {
            for part in &mut parts {
                scope.spawn(|_| *part += 1);
            }
        });
        assert_eq!(parts, [1; 4]);
    }

    #[test]
    fn clean_without_tasks() {
        assert_eq!(2 + 2, 4);
    }

    /// Passes, as far as libtest can tell.
    #[test]
    fn racy() {
        let count = Shared(UnsafeCell::new(0));
        finish(|scope| {
            scope.spawn(|_| count.add(1));
            scope.spawn(|_| count.add(1));
        });
        assert_eq!(count.0.into_inner(), 2);
    }

    #[test]
    #[should_panic(expected = "on purpose")]
    fn panics_as_it_should() {
        finish(|scope| scope.spawn(|_| panic!("on purpose")));
    }

    #[test]
    fn fails() {
        println!("before it fails");
        let sum = finish(|scope| *scope.future(|_| 2 + 2).get());
        assert_eq!(sum, 5);
    }

    #[test]
    fn waits_for_ever() {
        let never = Promise::<()>::named("never");
        finish(|scope| scope.spawn(|_| _ = never.get()));
    }
}
