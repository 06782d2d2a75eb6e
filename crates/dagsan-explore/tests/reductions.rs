//! A reduced exploration finds what plain enumeration finds: on the corpus, and on random programs.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dagsan_core::order;
use dagsan_explore::{Exploration, Limits, Reduction, Stopped, explore};
use dagsan_fuzz::source::{self, SourceClass};
use dagsan_lang::{CompileOptions, End, Program};

/// How many random programs are tried.
const SEEDS: u64 = 3_000;

/// The racy locations of all schedules, and how else they end.
fn explored(program: &Program, reduction: Reduction, threads: usize) -> (BTreeSet<String>, Exploration) {
    let stop = AtomicBool::new(false);
    let limits = Limits { threads: NonZero::new(threads).unwrap(), ..limits(&stop) };
    let mut found = BTreeSet::new();
    let exploration = explore(program, order::default_engine(), reduction, &limits, &mut |seen| {
        for race in seen.detector.races() {
            found.extend(seen.run.location_names(race.location));
        }
        match &seen.run.end {
            End::Deadlock(_) => _ = found.insert("deadlock".to_owned()),
            End::Failed(failure) => _ = found.insert(format!("error {}", failure.message)),
            _ => {}
        }
    });
    (found, exploration.unwrap())
}

/// Compares a reduced exploration with enumeration. `None` if there is nothing to explore, or too much.
fn compare(
    name: &str,
    source: &str,
    same: impl Fn(&BTreeSet<String>, &BTreeSet<String>) -> bool,
) -> Option<(u64, u64)> {
    let program = Program::compile(source, &CompileOptions::default()).ok().filter(Program::has_choices)?;
    let (expected, all) = explored(&program, Reduction::None, 1);
    if all.stopped == Some(Stopped::Schedules) {
        return None;
    }
    let mut schedules = 0;
    for threads in [1, 2] {
        let (found, some) = explored(&program, Reduction::PartialOrder, threads);
        assert!(
            same(&found, &expected),
            "{name}, {threads} threads: {found:?}, expected {expected:?}\n{source}"
        );
        assert!(some.schedules <= all.schedules, "{name}: {some:?} {all:?}");
        schedules = some.schedules;
    }
    Some((all.schedules, schedules))
}

/// Sections that depend on each other, one in each of so many tasks.
fn dependent_sections(tasks: u32) -> Program {
    let source =
        format!("shared x = 0; proc main() {{ forall i in 0..{tasks} {{ isolated {{ x = x * 3 + i; }} }} }}");
    Program::compile(&source, &CompileOptions::default()).unwrap()
}

fn limits(stop: &AtomicBool) -> Limits<'_> {
    Limits {
        run: dagsan_lang::Limits { steps: 100_000, words: 1 << 20 },
        schedules: 3_000,
        time: Duration::MAX,
        memory: usize::MAX,
        stop,
        threads: NonZero::new(1).unwrap(),
    }
}

#[test]
fn an_exploration_that_is_cut_short_says_so() {
    let stop = AtomicBool::new(false);
    let program = dependent_sections(9);
    let explored = |limits: &Limits<'_>| {
        let engine = order::default_engine();
        explore(&program, engine, Reduction::PartialOrder, limits, &mut |_| {}).unwrap()
    };
    let few = explored(&Limits { schedules: 7, ..limits(&stop) });
    assert_eq!((few.schedules, few.stopped), (7, Some(Stopped::Schedules)));
    let small = explored(&Limits { memory: 20_000, ..limits(&stop) });
    assert_eq!(small.stopped, Some(Stopped::Memory));
    assert!(small.schedules > 0 && small.states < 1_000, "{small:?}");
    assert_eq!(explored(&Limits { time: Duration::ZERO, ..limits(&stop) }).stopped, Some(Stopped::Time));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(explored(&limits(&stop)).stopped, Some(Stopped::Asked));
}

/// Six orders lead to at most six states, and from each of them six orders go on: not 36 schedules.
#[test]
fn states_are_merged_at_quiescent_points() {
    let phase = "forall i in 0..3 { isolated { if x < i { x = i; } } }";
    let source = format!("shared x = 0; proc main() {{ {phase} x = 0; {phase} x = 0; {phase} }}");
    let program = Program::compile(&source, &CompileOptions::default()).unwrap();
    let (_, explored) = explored(&program, Reduction::PartialOrder, 1);
    assert_eq!(explored.stopped, None);
    assert!(explored.schedules + explored.merged <= 18 && explored.merged > 0, "{explored:?}");
}

#[test]
fn dependent_sections_take_all_orders() {
    let (_, explored) = explored(&dependent_sections(5), Reduction::PartialOrder, 2);
    assert_eq!((explored.schedules, explored.independent, explored.stopped), (120, false, None));
}

#[test]
fn on_the_corpus() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut compared = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "task") {
            let source = std::fs::read_to_string(&path).unwrap();
            compared += u32::from(compare(&path.to_string_lossy(), &source, BTreeSet::eq).is_some());
        }
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn on_random_sections() {
    let (mut compared, mut all, mut some) = (0, 0, 0);
    for seed in 0..SEEDS {
        let source = source::generate(seed, SourceClass::Sections);
        if let Some((schedules, reduced)) = compare(&format!("seed {seed}"), &source, BTreeSet::eq) {
            compared += 1;
            all += schedules;
            some += reduced;
        }
    }
    println!("{compared} programs, {all} schedules, {some} of them enough");
    assert!(compared > SEEDS / 2 && some < all);
}

/// Here values that come from races decide what is done, so that the racy locations depend on the order of plain
/// code too: the verdicts must be the same.
#[test]
fn on_random_programs() {
    for seed in 0..500 {
        for class in [SourceClass::Isolated, SourceClass::Regions, SourceClass::All] {
            let source = source::generate(seed, class);
            compare(&format!("seed {seed}"), &source, |found, expected| {
                found.is_empty() == expected.is_empty()
            });
        }
    }
}
