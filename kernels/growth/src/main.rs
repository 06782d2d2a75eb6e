//! Patterns that real programs repeat a million times: `kernels NAME COUNT`, or `kernels list`.
//!
//! Each does one thing `COUNT` times. All of it is in one finish, in which a first task waits for a promise to the end: so
//! nothing is ever over, and whatever the check keeps, it keeps because it must, or because it does not know better.
//! Time and memory should grow as the count does, or less.

mod patterns;

use std::process::ExitCode;

use dagsan_task::{Promise, Scope, finish};

/// Something to do many times.
struct Pattern {
    name: &'static str,
    /// The first of four counts, each twice the one before.
    count: usize,
    run: for<'s> fn(&Scope<'s>, usize),
}

const PATTERNS: [Pattern; 24] = [
    Pattern { name: "spawns", count: 250_000, run: patterns::spawns },
    Pattern { name: "futures in a chain", count: 125_000, run: patterns::chain },
    Pattern { name: "futures in a grid", count: 25_000, run: patterns::grid },
    Pattern { name: "futures kept", count: 125_000, run: patterns::kept_futures },
    Pattern { name: "promises", count: 125_000, run: patterns::promises },
    Pattern { name: "promises in turn", count: 125_000, run: patterns::ping_pong },
    Pattern { name: "tasks that wait in a chain", count: 3_000, run: patterns::waiting_chain },
    Pattern { name: "promises handed on", count: 1_000, run: patterns::handed_on },
    Pattern { name: "waiters for a promise", count: 3_000, run: patterns::waiters },
    Pattern { name: "isolated sections", count: 250_000, run: patterns::isolated_sections },
    Pattern { name: "mutex sections", count: 125_000, run: patterns::mutex },
    Pattern { name: "channel", count: 125_000, run: patterns::channel },
    Pattern { name: "arcs", count: 125_000, run: patterns::arcs },
    Pattern { name: "once cells", count: 125_000, run: patterns::once },
    Pattern { name: "atomics", count: 125_000, run: patterns::atomics },
    Pattern { name: "blocks handed over", count: 125_000, run: patterns::hand_over },
    Pattern { name: "racing boxes", count: 25_000, run: patterns::races },
    Pattern { name: "jobs that send", count: 25_000, run: patterns::detached_senders },
    Pattern { name: "sections of many mutexes", count: 50_000, run: patterns::many_mutexes },
    Pattern { name: "mutexes nested in part", count: 4_000, run: patterns::nested_mutexes },
    Pattern { name: "locks held at once", count: 125, run: patterns::held_at_once },
    Pattern { name: "readers under a mutex", count: 25_000, run: patterns::mutex_readers },
    Pattern { name: "readers of a lock", count: 25_000, run: patterns::shared_readers },
    Pattern { name: "look-ups in a cache", count: 12_500, run: patterns::cache },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let known = |name: &str| PATTERNS.iter().find(|pattern| pattern.name == name);
    match arguments.as_slice() {
        [list] if list == "list" => {
            PATTERNS.iter().for_each(|pattern| println!("{}\t{}", pattern.name, pattern.count));
        }
        [name, count] => match (known(name), count.parse()) {
            (Some(pattern), Ok(count)) => repeat(pattern.run, count),
            _ => return usage(),
        },
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: kernels NAME COUNT, or kernels list");
    ExitCode::FAILURE
}

fn repeat(run: for<'s> fn(&Scope<'s>, usize), count: usize) {
    let over = Promise::new();
    finish(|scope| {
        let until = over.clone();
        scope.spawn(move |_| _ = until.get());
        finish(|scope| run(scope, count));
        over.set(());
    });
}
