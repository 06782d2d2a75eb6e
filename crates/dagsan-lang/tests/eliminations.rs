//! Static eliminations change the number of checks, and nothing else.
//!
//! Every set of eliminations must come to the same end with the same output and the same racy cells as none, on
//! the corpus and on random programs; and each must remove the checks that it is there to remove.

mod support;

use dagsan_core::order;
use dagsan_fuzz::source::{SourceClass, generate};
use dagsan_lang::{Elimination, Eliminations, End};
use support::{Checked, all_sets, check, check_once, corpus, describe, none_of};

/// Random programs of each class that are run with all 64 sets.
const ALL_SETS: u64 = 50;
/// Random programs that are run with all eliminations, and with each alone; most of them of the class that is about
/// eliminations.
fn few_sets_programs(class: SourceClass) -> u64 {
    if class == SourceClass::Loops { 2_000 } else { 400 }
}

fn few_sets() -> Vec<Eliminations> {
    let alone = Elimination::ALL.map(|elimination| Eliminations::none().with(elimination));
    [Eliminations::all()].into_iter().chain(alone).collect()
}

/// What the eliminations change, if anything.
fn difference(source: &str, sets: impl IntoIterator<Item = Eliminations>) -> Option<String> {
    let engine = order::default_engine();
    // What does not compile does so with any eliminations.
    let plain = check(source, engine, Eliminations::none()).ok()?;
    let seen = |checked: &Checked| (checked.end.clone(), checked.output.clone(), checked.cells.clone());
    sets.into_iter().find_map(|set| {
        let found = check(source, engine, set).ok();
        let same = found.as_ref().map(seen) == Some(seen(&plain));
        let verdict = || found.map_or("no verdict".to_owned(), |found| found.verdict());
        (!same).then(|| format!("without: {}\nwith {}: {}", plain.verdict(), describe(set), verdict()))
    })
}

#[test]
fn corpus_with_every_set() {
    let differences = corpus().into_iter().filter_map(|case| {
        difference(&case.source, all_sets()).map(|difference| format!("{}: {difference}", case.name))
    });
    none_of(&differences.collect::<Vec<_>>());
}

#[test]
fn random_programs() {
    for class in SourceClass::ALL {
        for seed in 0..few_sets_programs(class) {
            let source = generate(seed, class);
            let sets = if seed < ALL_SETS { all_sets().collect() } else { few_sets() };
            if let Some(difference) = difference(&source, sets) {
                panic!("seed {seed} of class {class}: {difference}\n{source}");
            }
        }
    }
}

#[test]
fn random_programs_are_worth_the_while() {
    let engine = order::default_engine();
    // Sections are about their order: they have no loops, and often end in a deadlock.
    for class in SourceClass::ALL.into_iter().filter(|&class| class != SourceClass::Sections) {
        let count = 200;
        let (mut finished, mut racy, mut eliminated) = (0, 0, [0; 6]);
        for seed in 0..count {
            let source = generate(seed, class);
            let checked = check_once(&source, engine, Eliminations::all());
            let checked = checked
                .unwrap_or_else(|errors| panic!("seed {seed} of class {class}: {}\n{source}", errors[0]));
            finished += u64::from(checked.end == End::Finished);
            racy += u64::from(!checked.cells.is_empty());
            for (total, here) in eliminated.iter_mut().zip(checked.counts.eliminated) {
                *total += here;
            }
        }
        assert!(finished * 10 > count * 9, "only {finished} of {count} programs of class {class} finish");
        assert!(
            (count / 3..count * 2 / 3).contains(&racy),
            "{racy} of {count} programs of class {class} are racy"
        );
        assert!(eliminated.iter().all(|&count| count > 0), "class {class}: eliminated {eliminated:?}");
    }
}

// ---- each elimination removes what it should ---------------------------------------------------------

/// How many checks are left with these eliminations.
fn checks(source: &str, eliminations: Eliminations) -> u64 {
    let checked = check_once(source, order::default_engine(), eliminations).expect("the program compiles");
    assert_eq!(checked.end, End::Finished);
    checked.counts.checks
}

/// The checks without eliminations, and with one.
fn without_and_with(source: &str, elimination: Elimination) -> (u64, u64) {
    (checks(source, Eliminations::none()), checks(source, Eliminations::none().with(elimination)))
}

#[test]
fn sequential_accesses() {
    // The interpreter collects nothing while it is quiescent: what the elimination removes is counted instead.
    let source = "shared x; proc main() { x = 1; finish { async { skip; } } x = x + 1; }";
    let set = Eliminations::none().with(Elimination::Sequential);
    let checked = check_once(source, order::default_engine(), set).expect("the program compiles");
    assert_eq!(checked.counts.accesses, 3);
    assert_eq!(checked.counts.eliminated.iter().sum::<u64>(), 3);
}

#[test]
fn reads_of_what_nobody_writes() {
    let source = "shared x; proc main() { x = 1; finish { async { print x; } print x; } }";
    assert_eq!(without_and_with(source, Elimination::ReadOnly), (2, 0));
}

#[test]
fn arrays_of_one_task() {
    let source = "proc main() { finish { async { let q = new [2]; q[0] = 1; print q[0]; } } }";
    assert_eq!(without_and_with(source, Elimination::Local), (2, 0));
}

#[test]
fn what_a_loop_repeats() {
    let source = "shared x; proc main() { finish { async { for i in 0..9 { x = i; } } } }";
    assert_eq!(without_and_with(source, Elimination::LoopInvariant), (9, 1));
}

#[test]
fn what_another_check_covers() {
    let source = "shared x; proc main() { finish { async { x = x + 1; print x; } } }";
    assert_eq!(without_and_with(source, Elimination::Subsumed), (3, 1));
}

#[test]
fn affine_indices() {
    let source = "shared a[9]; proc main() { finish { async { for i in 0..9 { a[i] = i; } } } }";
    assert_eq!(without_and_with(source, Elimination::Affine), (9, 1));
}

/// A program of the corpus.
fn of_corpus(name: &str) -> String {
    let case = corpus().into_iter().find(|case| case.name == name);
    case.unwrap_or_else(|| panic!("{name} is not in the corpus")).source
}

/// ESP-bags, figure 8: five accesses in the loop body, of which the write of p and that of B remain.
#[test]
fn figure_8_of_paper_004() {
    let source = of_corpus("paper004_fig8_eliminations.task");
    let (without, with) = (checks(&source, Eliminations::none()), checks(&source, Eliminations::all()));
    assert!(with * 3 < without, "{with} of {without} checks are left");
}

/// DRDP, figure 10: matrices are checked as wholes.
#[test]
fn figure_10_of_paper_000() {
    for name in ["paper000_fig10_matmul.task", "paper000_fig10_matmul_inner.task"] {
        let source = of_corpus(name);
        let (without, with) = (checks(&source, Eliminations::none()), checks(&source, Eliminations::all()));
        assert!(with * 4 < without, "{name}: {with} of {without} checks are left");
    }
}
