//! How many workers the tasks of a scope have.

use std::cell::Cell;
use std::sync::OnceLock;
use std::{env, thread};

/// The variable that says how many workers there are.
const VARIABLE: &str = "DAGSAN_WORKERS";

/// More than machines have processors.
const MOST: usize = 4096;

/// The variable makes no sense.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{VARIABLE} is `{0}`, and should be a number of workers from 1 to {MOST}")]
pub(crate) struct Error(String);

thread_local! {
    /// What [`with_workers`] asks for on this thread.
    static ASKED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `body`, in which outermost scopes of this thread have so many workers: the thread itself, and helpers.
///
/// Without it there are as many as the processor runs threads, or as the variable `DAGSAN_WORKERS` says. One worker is
/// the serial executor. Programs that are checked by DagSan have one, whatever is asked for. Inside of a task, or
/// of a scope that is open, it changes nothing.
///
/// ```
/// use dagsan_task::{finish, with_workers};
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// let sum = AtomicU32::new(0);
/// with_workers(2, || {
///     finish(|scope| (0..10).for_each(|i| scope.spawn({
///         let sum = &sum;
///         move |_| _ = sum.fetch_add(i, Relaxed)
///     })))
/// });
/// assert_eq!(sum.into_inner(), 45);
/// ```
pub fn with_workers<R>(workers: usize, body: impl FnOnce() -> R) -> R {
    struct Restore(Option<usize>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASKED.set(self.0);
        }
    }
    let _restore = Restore(ASKED.replace(Some(workers.clamp(1, MOST))));
    body()
}

fn parse(text: &str) -> Option<usize> {
    text.parse().ok().filter(|count| (1..=MOST).contains(count))
}

fn configured() -> Result<usize, Error> {
    static COUNT: OnceLock<Result<usize, Error>> = OnceLock::new();
    let count = COUNT.get_or_init(|| match env::var_os(VARIABLE) {
        None => Ok(thread::available_parallelism().map_or(1, usize::from)),
        Some(text) => {
            let text = text.to_string_lossy();
            parse(&text).ok_or_else(|| Error(text.into_owned()))
        }
    });
    count.clone()
}

/// How many workers a scope has that is opened on this thread. Where tasks are told of, there is one.
pub(crate) fn wanted() -> Result<usize, Error> {
    if cfg!(any(dagsan, test)) { Ok(1) } else { ASKED.get().map_or_else(configured, Ok) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(parse("1"), Some(1));
        assert_eq!(parse("4096"), Some(4096));
        assert_eq!(["0", "4097", "two", "", "-1", "99999999999999999999"].map(parse), [None; 6]);
    }
}
