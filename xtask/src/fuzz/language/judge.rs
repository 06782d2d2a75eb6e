//! What must hold of every program of the task language, whatever it does.
//!
//! 1. On one run, every engine agrees with the oracle, or refuses what it does not claim to support.
//! 2. Static eliminations change nothing: with all, with each alone and with each left out, the program comes to
//!    the same end, the same output and the same racy cells as with none. A run that fails may have checked in
//!    advance what it never came to do, so there only the failure is compared; the command checks such
//!    programs again without eliminations.
//! 3. A reduced exploration finds what enumeration finds, in no more schedules. For [`SourceClass::Sections`]: the same
//!    locations, deadlocks and failures. In the other classes values that come from races may decide what is done, so
//!    that the racy locations depend on the order of plain code too; whether anything is wrong must be the same.
//!    Programs with more than [`ORDERS`] orders are not compared.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dagsan_core::order::{self, Engine};
use dagsan_core::{Detector, Error};
use dagsan_explore::{Exploration, Reduction, explore};
use dagsan_fuzz::Court;
use dagsan_fuzz::source::SourceClass;
use dagsan_lang::{CompileOptions, Elimination, Eliminations, End, Limits, Program};

/// Of one run: enough for nearly every program; one that wants more is stopped soon.
const RUN: Limits = Limits { steps: 3_000_000, words: 1 << 20 };
/// Of one run of many.
const RUN_OF_MANY: Limits = Limits { steps: 100_000, words: 1 << 20 };
/// How many schedules an enumeration may take.
const ORDERS: u64 = 3_000;

/// What is said of a program.
#[derive(Debug)]
pub struct Judgement {
    /// How its run ended.
    pub end: End,
    /// How many tasks it had.
    pub tasks: u64,
    /// Does anything race?
    pub racy: bool,
    /// By engine: the names of what races, or why it refused the program.
    pub engines: Vec<(&'static Engine, Result<BTreeSet<String>, Error>)>,
    /// If the orders of its sections were compared: how many there are, and how many are enough.
    pub schedules: Option<(u64, u64)>,
}

/// Two that should agree do not.
#[derive(Debug)]
pub struct Disagreement {
    /// Who disagrees with what is taken to be right.
    pub who: String,
    /// What they say.
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.who, self.what)
    }
}

/// Judges a program; `None` if it does not compile.
pub fn judge(source: &str, class: SourceClass) -> Option<Result<Judgement, Disagreement>> {
    let program = compile(source, Eliminations::all())?;
    Some(engines(&program).and_then(|mut judgement| {
        eliminations(source)?;
        if program.has_choices() {
            judgement.schedules = schedules(&program, class)?;
        }
        Ok(judgement)
    }))
}

fn compile(source: &str, eliminations: Eliminations) -> Option<Program> {
    Program::compile(source, &CompileOptions { eliminations, checks: true, count: false }).ok()
}

// ---- engines -----------------------------------------------------------------------------------------

fn engines(program: &Program) -> Result<Judgement, Disagreement> {
    let engines: Vec<&'static Engine> = order::ENGINES.iter().chain([&order::EXPLORER]).collect();
    let mut court = Court::new(&engines);
    let run = program.run(&RUN, &mut court);
    if let End::Refused(error) = &run.end {
        // The court takes everything that is well-formed.
        return Err(Disagreement { who: "the interpreter".to_owned(), what: error.to_string() });
    }
    let (racy_bytes, verdicts) = court.judge().map_err(|disagreement| Disagreement {
        who: disagreement.engine.to_owned(),
        what: disagreement.to_string(),
    })?;
    let engines = verdicts.into_iter().map(|verdict| {
        let names = |race: &dagsan_core::Race| run.location_names(race.location);
        (verdict.engine, verdict.races.map(|races| races.iter().flat_map(names).collect()))
    });
    Ok(Judgement {
        engines: engines.collect(),
        racy: !racy_bytes.is_empty(),
        tasks: run.tasks.len() as u64,
        end: run.end,
        schedules: None,
    })
}

// ---- eliminations ------------------------------------------------------------------------------------

/// None first; then all, each alone, and each left out.
fn sets() -> impl Iterator<Item = (String, Eliminations)> {
    let with = |chosen: &dyn Fn(Elimination) -> bool| {
        let chosen = Elimination::ALL.into_iter().filter(|&elimination| chosen(elimination));
        chosen.fold(Eliminations::none(), Eliminations::with)
    };
    let ends =
        [("no eliminations".to_owned(), with(&|_| false)), ("all eliminations".to_owned(), with(&|_| true))];
    let alone = Elimination::ALL.map(|one| (format!("only {}", one.name()), with(&|other| other == one)));
    let left_out =
        Elimination::ALL.map(|one| (format!("all but {}", one.name()), with(&|other| other != one)));
    ends.into_iter().chain(alone).chain(left_out)
}

/// What a run comes to, as far as eliminations must not change it.
fn outcome(source: &str, set: Eliminations) -> String {
    let Some(program) = compile(source, set) else {
        return "does not compile".to_owned();
    };
    let mut detector = Detector::new(order::default_engine(), Default::default());
    let run = program.run(&RUN, &mut detector);
    if let End::Failed(failure) = &run.end {
        return format!("`{}` at {:?}", failure.message, failure.span);
    }
    if let Err(error) = detector.finish() {
        return format!("refused: {error}");
    }
    let races = detector.races().iter();
    // By cells, the smallest thing a program can access.
    let cells: BTreeSet<u64> =
        races.flat_map(|race| race.location.addresses()).map(|address| address & !7).collect();
    format!("{:?}, output {:?}, racy cells {cells:x?}", run.end, run.output)
}

fn eliminations(source: &str) -> Result<(), Disagreement> {
    let mut sets = sets().map(|(name, set)| (name, outcome(source, set)));
    let Some((_, expected)) = sets.next() else { return Ok(()) };
    match sets.find(|(_, found)| *found != expected) {
        None => Ok(()),
        Some((who, found)) => {
            Err(Disagreement { who, what: format!("{found}\nwithout eliminations: {expected}") })
        }
    }
}

// ---- schedules ---------------------------------------------------------------------------------------

/// The racy locations of all schedules, and how else they end.
fn explored(
    program: &Program,
    reduction: Reduction,
    threads: NonZero<usize>,
) -> Result<(BTreeSet<String>, Exploration), Disagreement> {
    let stop = AtomicBool::new(false);
    let limits = dagsan_explore::Limits {
        run: RUN_OF_MANY,
        schedules: ORDERS,
        time: Duration::MAX,
        memory: usize::MAX,
        stop: &stop,
        threads,
    };
    let mut found = BTreeSet::new();
    let exploration = explore(program, order::default_engine(), reduction, &limits, &mut |seen| {
        for race in seen.detector.races() {
            found.extend(seen.run.location_names(race.location));
        }
        match &seen.run.end {
            End::Deadlock(_) => _ = found.insert("deadlock".to_owned()),
            End::Failed(failure) => _ = found.insert(format!("error {}", failure.message)),
            End::Finished | End::Refused(_) | End::Stopped => {}
        }
    });
    match exploration {
        Ok(exploration) => Ok((found, exploration)),
        Err(error) => Err(Disagreement { who: "the explorer".to_owned(), what: error.to_string() }),
    }
}

fn schedules(program: &Program, class: SourceClass) -> Result<Option<(u64, u64)>, Disagreement> {
    let (expected, all) = explored(program, Reduction::None, NonZero::<usize>::MIN)?;
    if all.stopped.is_some() {
        return Ok(None);
    }
    let mut enough = 0;
    for threads in [NonZero::<usize>::MIN, NonZero::<usize>::MIN.saturating_add(1)] {
        let (found, some) = explored(program, Reduction::PartialOrder, threads)?;
        let disagree = |what| Err(Disagreement { who: "the reduced exploration".to_owned(), what });
        if some.stopped.is_some() || some.schedules > all.schedules {
            return disagree(format!("{some:?} on {threads} thread(s), where enumeration has {all:?}"));
        }
        let same = if class == SourceClass::Sections {
            found == expected
        } else {
            found.is_empty() == expected.is_empty()
        };
        if !same {
            return disagree(format!(
                "{found:?} on {threads} thread(s), where enumeration finds {expected:?}"
            ));
        }
        enough = some.schedules;
    }
    Ok(Some((all.schedules, enough)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirteen_sets_are_compared_with_none() {
        let sets: Vec<Eliminations> = sets().map(|(_, set)| set).collect();
        assert_eq!((sets.len(), sets[0], sets[1]), (14, Eliminations::none(), Eliminations::all()));
        assert!(sets.iter().enumerate().all(|(place, set)| !sets[..place].contains(set)));
    }

    #[test]
    fn a_program_is_judged_in_all_its_orders() {
        let source = "shared x = 0; proc main() { forall i in 0..3 { isolated { x = x * 3 + i; } } }";
        let judgement = judge(source, SourceClass::Sections).unwrap().unwrap();
        assert_eq!((judgement.end, judgement.racy, judgement.tasks), (End::Finished, false, 4));
        assert_eq!(judgement.schedules, Some((6, 6)));
        assert!(judge("proc main() { x = 1; }", SourceClass::Sections).is_none());
    }

    #[test]
    fn outcomes_show_what_eliminations_may_not_change() {
        let racy = "shared x; proc main() { finish { async { x = 1; } x = 2; } print 7; }";
        let free = "shared x; proc main() { finish { async { x = 1; } } print 7; }";
        let outcome = |source| outcome(source, Eliminations::all());
        assert_ne!(outcome(racy), outcome(free));
        assert_ne!(outcome(free), outcome(&free.replace('7', "8")));
    }
}
