//! Small programs for the native runtime, each with one point: `points NAME` runs one, `points --list` names them.
//!
//! What is expected of a point stands above its function, and the tests in `crates/dagsan/tests/native` read it there:
//!
//! ```text
//! // expect: race-free                    no race, for all schedules
//! // expect: race-free, up to locks       and what the verdict depends on: locks, atomics
//! // expect: not checked                  there were no tasks
//! // expect: race write/atomic read on 8 bytes of heap by 1/2
//! //                │     │               │          │    └ the tasks
//! //                │     │               │          └ heap, stack, static, other
//! //                │     │               └ how many bytes race in all
//! //                └─────┴ what the two do: read, write, free; atomic
//! // expect: race                         some race
//! // expect heap=0: race                  the same with DAGSAN_OPTIONS
//! ```
//!
//! Where it matters, `// result: depends` or `// result: the same` follows: may the result depend on the schedule, without
//! a race? Then the lines by which it does have `// depends`.
//!
//! The first accesses of its races are on the lines with `// race (1)`, the second ones on those with `// race (2)`. Lines outside of its function say whose they are:
//! `// race (1) of one_point, another`.

use std::process::ExitCode;

/// A list of points, from the functions' names.
macro_rules! points {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), $name as fn())),*]
    };
}

mod accesses;
mod allocator;
mod atomics;
mod behaviours;
mod ends;
mod far;
mod fences;
mod handover;
mod heap;
mod library;
mod library_files;
mod library_values;
mod lines;
mod lock_words;
mod locks;
mod loops;
mod modules;
mod once;
mod order;
mod places;
mod ranges;
mod readers;
mod schedules;
mod shared;
mod sizes;
mod stacks;
mod thread_atomics;
mod thread_channels;
mod thread_fences;
mod thread_inits;
mod thread_locals;
mod thread_locks;
mod thread_polls;
mod thread_reuse;
mod thread_shared;
mod thread_spins;
mod thread_turns;
mod threads;
mod under_locks;
mod vectors;

/// A name, and what it runs.
type Point = (&'static str, fn());

/// Those with their expectations above them.
const POINTS: [&[Point]; 35] = [
    accesses::POINTS,
    allocator::POINTS,
    atomics::POINTS,
    fences::POINTS,
    handover::POINTS,
    heap::POINTS,
    library::POINTS,
    library_files::POINTS,
    library_values::POINTS,
    lines::POINTS,
    lock_words::POINTS,
    locks::POINTS,
    loops::POINTS,
    modules::POINTS,
    once::POINTS,
    order::POINTS,
    places::POINTS,
    ranges::POINTS,
    readers::POINTS,
    schedules::POINTS,
    sizes::POINTS,
    stacks::POINTS,
    thread_atomics::POINTS,
    thread_channels::POINTS,
    thread_fences::POINTS,
    thread_inits::POINTS,
    thread_locals::POINTS,
    thread_locks::POINTS,
    thread_polls::POINTS,
    thread_reuse::POINTS,
    thread_spins::POINTS,
    thread_turns::POINTS,
    threads::POINTS,
    under_locks::POINTS,
    vectors::POINTS,
];

/// Compiles only if the runtime has no crate that compares numbers with things of its own: the type would be ambiguous.
const _: fn(&[i32]) -> bool = |list| *list == [];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    if wanted == "--list" {
        POINTS.into_iter().flatten().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let behaviours = behaviours::BEHAVIOURS.iter().chain(ends::BEHAVIOURS);
    match POINTS.into_iter().flatten().chain(behaviours).find(|(name, _)| *name == wanted) {
        Some((_, run)) => {
            run();
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("there is no point `{wanted}`: `points --list` names them");
            ExitCode::from(64)
        }
    }
}
