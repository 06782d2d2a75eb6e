//! One program: what it is, what must come of it, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use dagsan_core::Construct;
use dagsan_core::order::{self, Engine};
use dagsan_findings::{End, Findings};
use dagsan_fuzz::rust::{Layout, Observed, Region, Said, expected, observed, say, say_joins, say_threads};
use dagsan_fuzz::{Class, Outcome, Program, Size, Stmt, generate};

use super::change;

/// How a program is run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub engine: &'static Engine,
    /// Does the runtime heed releases and acquires? The handles of futures are counted by atomics, which might show the
    /// order that events ought to. Without them the events are on trial, and so are engines that know no atomics.
    pub atomics: bool,
    /// Is the place of each access kept, or one for each line? The bytes that race are the same.
    pub exact: bool,
}

/// A program and the oracle's verdict.
pub struct Case {
    pub name: String,
    /// Of a random program.
    pub seed: Option<u64>,
    pub said: Said,
    pub layout: Layout,
    /// How it is to be run.
    pub runs: Vec<Run>,
    /// The verdict. If the tasks are threads, there is one when it has run.
    pub verdict: OnceLock<Verdict>,
}

/// What the oracle says of a program.
pub struct Verdict {
    outcome: Outcome,
    /// The bytes that race, as the program names them; locks read as mutual exclusion alone, and with sections that depend on
    /// each other in the order of the run.
    racy: [BTreeSet<u64>; 2],
}

/// What the tasks of programs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    /// Those of dagsan-task and rayon.
    Both,
    Threads,
    /// Halves of rayon's joins.
    Joins,
}

impl Tasks {
    fn say(self) -> fn(&Program, bool, u64) -> Said {
        match self {
            Tasks::Both => say,
            Tasks::Threads => say_threads,
            Tasks::Joins => say_joins,
        }
    }
}

impl Case {
    /// The random program of a seed, to be run in one way.
    pub fn random(
        seed: u64,
        class: Option<Class>,
        engine: Option<&'static Engine>,
        tasks: Tasks,
    ) -> Result<Case> {
        let class = class.unwrap_or(Class::ALL[(seed % Class::ALL.len() as u64) as usize]);
        let mut rng = fastrand::Rng::with_seed(seed);
        // Larger ones take their time in the compiler, and in the oracle. `cargo xtask fuzz` has them.
        let size = Size { tasks: Size::pick(&mut rng).tasks.min(40) };
        let mut program = generate(class, &mut rng, size);
        if tasks != Tasks::Threads && rng.u32(0..6) == 0 {
            change::confuse_promises(&mut program, &mut rng);
        }
        if rng.bool() {
            change::make_own(&mut program, &mut rng);
        }
        // Threads have no syncs, after which a handle would be there.
        let structured = tasks != Tasks::Threads && !class.constructs().contains(&Construct::GeneralFuture);
        // Three in four have rayon in them.
        let nest = if rng.u32(0..4) == 0 { rng.u64(0..2) } else { rng.u64(2..1 << 63) };
        let mut case =
            Case::new(format!("seed {seed}"), Some(seed), tasks.say()(&program, structured, nest))?;
        case.runs.retain(|run| engine.is_none_or(|engine| engine.name == run.engine.name));
        // One engine for each, and exact places besides.
        let exact: Vec<Run> = case.runs.extract_if(.., |run| run.exact).collect();
        case.runs = rng.choice(&case.runs).into_iter().copied().chain(exact).collect();
        Ok(case)
    }

    /// A program that is kept in a file, as it was said or as it was generated, to be run in all ways. `nest` says which
    /// constructs are written with rayon.
    pub fn kept(
        path: &Path,
        is_said: bool,
        nest: u64,
        engine: Option<&'static Engine>,
        tasks: Tasks,
    ) -> Result<Case> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let program = Program::parse(&text).with_context(|| path.display().to_string())?;
        let mut case = Case::new(path.display().to_string(), None, tasks.say()(&program, is_said, nest))?;
        case.runs.retain(|run| engine.is_none_or(|engine| engine.name == run.engine.name));
        Ok(case)
    }

    /// A case, to be run with all engines that support it.
    pub fn new(name: String, seed: Option<u64>, said: Said) -> Result<Case> {
        let layout = Layout::new(&said.program);
        if said.threads {
            return Ok(Case { name, seed, runs: of_threads(), said, layout, verdict: OnceLock::new() });
        }
        let expected = |ordered| {
            expected(&said, ordered).with_context(|| format!("{name}: the core refuses the program"))
        };
        let ((outcome, exclusive), (_, ordered)) = (expected(false)?, expected(true)?);
        let racy = [exclusive, ordered];
        let uses = said.constructs();
        // Whoever knows locks, or atomics, knows atomic accesses.
        let atomic = said.program.walk().any(|stmt| matches!(stmt, Stmt::Atomic { .. }));
        let depth_first = said.is_depth_first();
        let supports = |engine: &&Engine| {
            let knows_accesses = engine.supports(Construct::Lock) || engine.supports(Construct::Atomic);
            uses.iter().all(|&construct| engine.supports(construct))
                && (knows_accesses || !atomic)
                && (depth_first || !engine.depth_first)
        };
        // The handles of futures, and the report of a deadlock, are counted by atomics. Tasks share the report without any
        // other order, so that the atomics must be heeded there.
        let counted = outcome.deadlock || uses.contains(&Construct::StructuredFuture);
        let ways = |engine: &'static Engine| {
            let with = engine.supports(Construct::Atomic) || !counted;
            let without = counted && !outcome.deadlock && !uses.contains(&Construct::Atomic);
            let run = |atomics, exact| Run { engine, atomics, exact };
            // What is recorded does not depend on the engine: one of them is enough for the other way.
            let exact = with && engine.name == order::default_engine().name;
            let ways = [(with, run(true, false)), (without, run(false, false)), (exact, run(true, true))];
            ways.into_iter().filter_map(|(possible, run)| possible.then_some(run))
        };
        let runs = order::ENGINES.iter().filter(supports).flat_map(ways).collect();
        let verdict = OnceLock::from(Verdict { outcome, racy });
        Ok(Case { name, seed, said, layout, runs, verdict })
    }

    /// How a run differs from what the oracle says.
    pub fn compare(&self, run: Run, seen: &Seen) -> Option<Failure> {
        let what = match seen {
            Seen::Failed(how) => Some(What::Ending(how.clone())),
            Seen::Ended(seen) if self.said.threads => match observed(&self.said, &seen.order) {
                Ok(Observed { outcome, must, may }) => {
                    let what = self.difference(seen, &outcome, &must, &may);
                    self.verdict.get_or_init(|| Verdict { outcome, racy: [must.clone(), must] });
                    what
                }
                Err(error) => Some(What::Ending(format!("it tells of a run that is none: {error}"))),
            },
            Seen::Ended(seen) => {
                let racy = self.racy(run.engine);
                self.difference(seen, &self.outcome(), racy, racy)
            }
        };
        let order = match seen {
            Seen::Ended(Ended { order, .. }) => order.clone(),
            Seen::Failed(_) => Vec::new(),
        };
        what.map(|what| Failure { run, what, order })
    }

    /// How it ends.
    pub fn outcome(&self) -> Outcome {
        self.verdict.get().map(|verdict| verdict.outcome).unwrap_or_default()
    }

    /// The bytes that race, as the engine reads locks.
    pub fn racy(&self, engine: &Engine) -> &BTreeSet<u64> {
        static NONE: BTreeSet<u64> = BTreeSet::new();
        let reading = usize::from(engine.supports(Construct::Atomic));
        self.verdict.get().map_or(&NONE, |verdict| &verdict.racy[reading])
    }

    /// Bytes that `must` be found to race, and those that `may`.
    fn difference(
        &self,
        seen: &Ended,
        outcome: &Outcome,
        must: &BTreeSet<u64>,
        may: &BTreeSet<u64>,
    ) -> Option<What> {
        let Ended { arena, pages, panic, findings, .. } = seen;
        let deadlock = match &findings.end {
            End::Exited => false,
            End::Deadlock(_) => true,
            other => return Some(What::Ending(format!("{other:?}"))),
        };
        match (deadlock, outcome.deadlock, panic) {
            (false, false, None) | (true, true, Some(_)) => {}
            (true, true, None) if self.said.threads => {}
            (_, _, Some(panic)) => return Some(What::Ending(format!("a panic: {panic}"))),
            _ => return Some(What::Ending(format!("{:?}", findings.end))),
        }
        // The wait of a spawned task that is in vain fails its procedure, which may go on to its end first.
        let (tasks, expected) = (findings.stats.tasks, u64::from(outcome.tasks));
        if tasks < expected || tasks > expected && !deadlock {
            return Some(What::Ending(format!("{tasks} tasks, not {expected}")));
        }
        if findings.dropped_races > 0 {
            return Some(What::Ending(format!("{} races were dropped", findings.dropped_races)));
        }
        let native = |byte: &u64| match self.layout.place(*byte) {
            (Region::Arena, at) => arena + at,
            (Region::Pages, at) => pages + at,
        };
        let ranges = findings.races.iter().flat_map(|race| &race.bytes);
        let found: BTreeSet<u64> = ranges.flat_map(|&(start, len)| start..start + len).collect();
        if let Some(missed) = must.iter().find(|byte| !found.contains(&native(byte))) {
            return Some(What::Missed(*missed));
        }
        let may: BTreeSet<u64> = may.iter().map(native).collect();
        let ranges = self.said.program.walk().filter_map(Stmt::bytes);
        let bytes: BTreeMap<u64, u64> =
            ranges.flat_map(|bytes| bytes.start()..bytes.end()).map(|byte| (native(&byte), byte)).collect();
        let wrong = found
            .difference(&may)
            .map(|at| bytes.get(at).map_or(What::Stray(*at), |&byte| What::NoRace(byte)));
        // What a program does after its deadlock, the oracle has not seen.
        wrong.into_iter().find(|what| !deadlock || matches!(what, What::Stray(_)))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<String> =
            self.racy(order::default_engine()).iter().map(|byte| format!("{byte:#x}")).collect();
        let ending = if self.outcome().deadlock { "deadlock" } else { "ends" };
        write!(f, "// {ending}; racy bytes: {}", bytes.join(" "))
    }
}

/// What came of a process.
pub enum Seen {
    /// It has come to its end.
    Ended(Ended),
    /// It crashed, or hangs, or told nothing.
    Failed(String),
}

/// What a process has told.
pub struct Ended {
    /// Where its memory is.
    pub arena: u64,
    pub pages: u64,
    pub panic: Option<String>,
    /// If its tasks are threads: the statements that it made, in their order.
    pub order: Vec<usize>,
    pub findings: Box<Findings>,
}

/// How a program of threads is run: with the engines that take what threads do, atomics and tasks that nobody joins among it.
fn of_threads() -> Vec<Run> {
    let needs = [Construct::Detached, Construct::Atomic, Construct::Lock, Construct::GeneralFuture];
    let takes = |engine: &&Engine| needs.iter().all(|&construct| engine.supports(construct));
    let run = |engine: &'static Engine| {
        let exact = (engine.name == order::default_engine().name).then_some(true);
        [false].into_iter().chain(exact).map(move |exact| Run { engine, atomics: true, exact })
    };
    order::ENGINES.iter().filter(takes).flat_map(run).collect()
}

/// A program natively, with an engine, and the oracle disagree.
#[derive(Debug)]
pub struct Failure {
    pub run: Run,
    pub what: What,
    /// If tasks are threads: the statements as they were made.
    pub order: Vec<usize>,
}

/// About what they disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A race on this byte was not found.
    Missed(u64),
    /// This byte does not race.
    NoRace(u64),
    /// A race at an address that is none of the program's.
    Stray(u64),
    /// The run ended in another way.
    Ending(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let atomics = if self.run.atomics { "" } else { " (atomics=0)" };
        let sites = if self.run.exact { " (sites=exact)" } else { "" };
        write!(f, "`{}`{atomics}{sites} natively ", self.run.engine.name)?;
        match &self.what {
            What::Missed(byte) => write!(f, "misses the race on byte {byte:#x}"),
            What::NoRace(byte) => write!(f, "reports a race on byte {byte:#x}, which has none"),
            What::Stray(address) => {
                write!(f, "reports a race at {address:#x}, which is not the program's memory")
            }
            What::Ending(how) => write!(f, "ends otherwise: {how}"),
        }?;
        if self.order.is_empty() {
            Ok(())
        } else {
            write!(f, "; the statements are made in this order: {:?}", self.order)
        }
    }
}
