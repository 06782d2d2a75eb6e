//! One program: compile it, run it under the detector, and put what was found into a report.
//!
//! A program with isolated sections or ewait is run in all schedules that make a difference
//! ([`crate::schedules`]), any other one once.
//!
//! A run that fails is repeated without static eliminations. These move checks to other places of the same
//! strand, so a run that stops in the middle of one would show them before or after their accesses: what is found
//! up to a failure must not depend on them.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use dagsan_core::graph::{Around, GraphBuilder};
use dagsan_core::order::{self, Engine, Isolation};
use dagsan_core::{Bytes, Consumer, Detector, Error, Event, Run, Step, Strand};
use dagsan_explore::{Replay, Schedule};
use dagsan_lang::{CompileOptions, Eliminations, Limits, Program};
use dagsan_report::graph::Picture;
use dagsan_report::{End, Exploration, Report, Source, Stats};

use crate::describe::{self, Points, RunNames, Tasks};
use crate::schedules::{self, Found};

/// So many pairs of places get a witness.
const MAX_WITNESSES: usize = 20;

/// So many strands that are parallel are kept, for what is around races.
const AROUND: usize = 1 << 20;

/// Which schedules to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedules {
    /// The serial depth-first one.
    One,
    /// All that make a difference, but not more than so many.
    All(u64),
    /// This one.
    Replay(Schedule),
}

/// How to check.
#[derive(Debug, Clone)]
pub struct Options {
    pub engine: &'static Engine,
    pub eliminations: Eliminations,
    pub limits: Limits,
    pub schedules: Schedules,
    pub max_time: Duration,
    pub stats: bool,
    pub graph: bool,
    /// Is what is around races to be known?
    pub around: bool,
    pub witness: bool,
}

/// What a check gives.
#[derive(Debug)]
pub struct Checked {
    pub report: Report,
    /// The computation graph, if it was asked for and the program ran.
    pub picture: Option<Picture>,
    /// The accesses of each race of the report.
    points: Vec<Points>,
    /// Did some run end in an error of the program?
    failed: bool,
}

impl Checked {
    /// Nothing but a report.
    pub fn only(report: Report) -> Checked {
        Checked { report, picture: None, points: Vec::new(), failed: false }
    }
}

/// Checks one program. A fault of ours becomes a report too: it must not keep other files from being checked.
pub fn check(source: &Source, options: &Options) -> Checked {
    guarded(source, options, || {
        let checked = compile_and_run(source, options, options.eliminations);
        if checked.failed && options.eliminations != Eliminations::none() {
            return compile_and_run(source, options, Eliminations::none());
        }
        checked
    })
}

fn guarded(source: &Source, options: &Options, check: impl FnOnce() -> Checked) -> Checked {
    // What the check has touched is gone after a panic.
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        let why = message.unwrap_or_else(|| "a panic".to_owned());
        Checked::only(Report::new(source.clone(), options.engine, End::Broken(why)))
    })
}

fn compile_and_run(source: &Source, options: &Options, eliminations: Eliminations) -> Checked {
    let start = Instant::now();
    let compile = CompileOptions { eliminations, checks: true, count: options.stats };
    let program = match Program::compile(source.text(), &compile) {
        Ok(program) => program,
        Err(found) => {
            let found = found.into_iter().map(|found| describe::diagnostic(source, found)).collect();
            return Checked::only(Report::new(source.clone(), options.engine, End::Rejected(found)));
        }
    };
    let compile_time = start.elapsed();
    let found = match &options.schedules {
        _ if !program.has_choices() => None,
        Schedules::All(most) => schedules::explore(source, &program, options, *most),
        Schedules::Replay(schedule) => schedules::replay(source, &program, options, schedule),
        Schedules::One => None,
    };
    let mut checked = match found {
        None => run_once(source, &program, options, None),
        Some(Found { mut report, points, failed }) => {
            let picture = picture(source, &program, options, &mut report);
            Checked { report, picture, points, failed }
        }
    };
    if let (Schedules::Replay(_), false) = (&options.schedules, program.has_choices()) {
        let note = "the program has no isolated sections and no ewait: there is nothing to replay";
        checked.report.notes.push(note.to_owned());
    }
    if let Some(stats) = &mut checked.report.stats {
        stats.compile_time = compile_time;
    }
    if options.witness {
        find_witnesses(source, options, &mut checked);
    }
    checked
}

/// Runs the accesses of races in both orders, once for each two places.
fn find_witnesses(source: &Source, options: &Options, checked: &mut Checked) {
    let compile = CompileOptions { eliminations: Eliminations::none(), checks: false, count: true };
    let Ok(program) = Program::compile(source.text(), &compile) else { return };
    let mut places = HashSet::new();
    for (race, (first, second)) in checked.report.races.iter_mut().zip(&checked.points) {
        if places.len() < MAX_WITNESSES && places.insert((first.site, second.site)) {
            let schedule = race.schedule.as_ref().and_then(|text| text.parse().ok()).unwrap_or_default();
            let witness = dagsan_explore::witness(&program, &options.limits, &schedule, (first, second));
            race.witness = Some(describe::witness(witness));
        }
    }
}

/// The graph of an explored program, if it was asked for: of the schedule that shows its first race, or of the
/// first one.
fn picture(source: &Source, program: &Program, options: &Options, report: &mut Report) -> Option<Picture> {
    if !options.graph || matches!(report.end, End::Refused(_) | End::Broken(_)) {
        return None;
    }
    let racy = report.races.first().and_then(|race| race.schedule.clone());
    let text = racy.or_else(|| report.schedule.clone()).unwrap_or_else(|| "-".to_owned());
    let schedule = text.parse().unwrap_or_default();
    report.notes.push(format!("the graph is that of schedule {text}"));
    run_once(source, program, options, Some(&schedule)).picture
}

/// Runs the program serially, or in a given schedule.
fn run_once(source: &Source, program: &Program, options: &Options, schedule: Option<&Schedule>) -> Checked {
    let start = Instant::now();
    let mut observer = Observer::new(options);
    let run = match schedule {
        Some(schedule) => {
            let mut replay = Replay::new(schedule.clone());
            program.run_scheduled(&options.limits, &mut observer, &mut replay)
        }
        None => program.run(&options.limits, &mut observer),
    };
    let finished = observer.detector.finish();
    let run_time = start.elapsed();

    let exclusive = options.engine.isolation == Isolation::MutualExclusion;
    let mut tasks = Tasks::new(&run);
    let mut report = Report::new(source.clone(), options.engine, describe::end(source, &run, &mut tasks));
    let mut points = Vec::new();
    report.schedules = 1;
    report.task_count = run.tasks.len() as u64;
    report.strand_count = run.strands.into();
    (report.has_isolated, report.has_ewait) = (observer.isolated, observer.ewait);
    report.has_shared_region = run.shared_region;
    report.output.clone_from(&run.output);
    if observer.isolated && exclusive && options.schedules != Schedules::One {
        match dagsan_explore::sections_commute(program, &options.limits) {
            Ok(commute) => {
                let stopped = (!commute).then(|| one_order_only(options.engine));
                report.exploration = Some(Exploration { commute, stopped, ..Exploration::default() });
            }
            Err(error) => report.end = describe::refused(&error),
        }
    }
    // A run that was broken off is no basis for a verdict, not even for a bad one.
    if !matches!(report.end, End::Refused(_) | End::Broken(_)) {
        (report.races, points) =
            describe::races(source, &run, &observer.detector, &mut tasks).into_iter().unzip();
        if let Some(mut around) = observer.around {
            around.look(observer.detector.races());
            let found = observer.detector.races().iter();
            for (race, found) in report.races.iter_mut().zip(found) {
                race.around = describe::around(source, &run, &around, found, &mut tasks);
            }
        }
        report.dropped_races = observer.detector.dropped_races();
    }
    report.tasks = tasks.mentioned;
    if let Err(error) = finished {
        report.end = End::Broken(error.to_string());
    }
    if options.stats {
        report.stats = Some(Stats { run_time, ..describe::stats(&run, &observer.detector) });
    }
    let picture = observer.graph.map(|graph| {
        let names = RunNames { run: &run, source };
        let races = observer.detector.races().iter();
        let racing: HashSet<_> = races.flat_map(|race| [race.first.strand, race.second.strand]).collect();
        Picture::new(source.name(), graph.graph(), &names, &racing, options.engine.isolation)
    });
    let failed = matches!(run.end, dagsan_lang::End::Failed(_));
    Checked { report, picture, points, failed }
}

/// Why a run of an engine that reads sections as mutual exclusion may not speak for all schedules.
fn one_order_only(engine: &Engine) -> String {
    let name = engine.name;
    format!("the isolated sections may not commute, and `{name}` judges one order; --engine dag runs others")
}

/// The detector, and what else wants to see the run.
struct Observer {
    detector: Detector,
    graph: Option<GraphBuilder>,
    around: Option<Around>,
    isolated: bool,
    ewait: bool,
}

impl Observer {
    fn new(options: &Options) -> Observer {
        let detector = Detector::new(options.engine, order::Options::default());
        let graph = options.graph.then(GraphBuilder::new);
        let around = options.around.then(|| Around::new(AROUND));
        Observer { detector, graph, around, isolated: false, ewait: false }
    }
}

impl Consumer for Observer {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        if let Some(graph) = &mut self.graph {
            graph.accesses(strand, runs)?;
        }
        self.detector.accesses(strand, runs)?;
        if let Some(around) = &mut self.around {
            around.strand(strand);
        }
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        match step.event {
            Event::IsolatedBegin { .. } => self.isolated = true,
            Event::Ewait { .. } => self.ewait = true,
            _ => {}
        }
        if let Some(graph) = &mut self.graph {
            graph.event(step)?;
        }
        self.detector.event(step)?;
        if let Some(around) = &mut self.around {
            around.step(step, self.detector.races());
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        if let Some(graph) = &mut self.graph {
            graph.erase(bytes)?;
        }
        self.detector.erase(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_our_fault_and_becomes_a_report() {
        let source = Source::new("x.task", "");
        let options = Options {
            engine: order::default_engine(),
            eliminations: Eliminations::all(),
            limits: Limits::default(),
            schedules: Schedules::One,
            max_time: Duration::MAX,
            stats: false,
            graph: false,
            around: false,
            witness: false,
        };
        let checked = guarded(&source, &options, || panic!("on purpose, in a test: {}", 7));
        assert!(matches!(checked.report.end, End::Broken(why) if why == "on purpose, in a test: 7"));
    }
}
