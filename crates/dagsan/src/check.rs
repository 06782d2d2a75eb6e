//! One program: compile it, run it under the detector, and put what was found into a report.
//!
//! A run that fails is repeated without static eliminations. These move checks to other places of the same
//! strand, so a run that stops in the middle of one would show them before or after their accesses: what is found
//! up to a failure must not depend on them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use dagsan_core::graph::GraphBuilder;
use dagsan_core::order::{self, Engine};
use dagsan_core::{
    AccessSet, Bytes, Consumer, Detector, Error, Event, Location, SiteId, Step, Strand, TaskId,
};
use dagsan_lang::{self as lang, CompileOptions, Elimination, Eliminations, Limits, Program, Run};
use dagsan_report::graph::{Names, Picture};
use dagsan_report::{
    Blocked, Diagnostic, End, Failure, Join, Place, Race, Report, Side, Source, Stats, Task,
};

/// How to check.
#[derive(Debug, Clone)]
pub struct Options {
    pub engine: &'static Engine,
    pub eliminations: Eliminations,
    pub limits: Limits,
    pub stats: bool,
    pub graph: bool,
}

/// What a check gives.
#[derive(Debug)]
pub struct Checked {
    pub report: Report,
    /// The computation graph, if it was asked for and the program ran.
    pub picture: Option<Picture>,
}

/// Checks one program. A fault of ours becomes a report too: it must not keep other files from being checked.
pub fn check(source: &Source, options: &Options) -> Checked {
    guarded(source, options, || {
        let checked = compile_and_run(source, options, options.eliminations);
        match checked.report.end {
            End::Failed(_) if options.eliminations != Eliminations::none() => {
                compile_and_run(source, options, Eliminations::none())
            }
            _ => checked,
        }
    })
}

fn guarded(source: &Source, options: &Options, check: impl FnOnce() -> Checked) -> Checked {
    // What the check has touched is gone after a panic.
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
        let why = message.unwrap_or_else(|| "a panic".to_owned());
        Checked { report: Report::new(source.clone(), options.engine, End::Broken(why)), picture: None }
    })
}

fn compile_and_run(source: &Source, options: &Options, eliminations: Eliminations) -> Checked {
    let start = Instant::now();
    let compile = CompileOptions { eliminations, checks: true, count: options.stats };
    let program = match Program::compile(source.text(), &compile) {
        Ok(program) => program,
        Err(found) => {
            let found = found.into_iter().map(|found| diagnostic(source, found)).collect();
            let report = Report::new(source.clone(), options.engine, End::Rejected(found));
            return Checked { report, picture: None };
        }
    };
    let compile_time = start.elapsed();

    let start = Instant::now();
    let mut observer = Observer::new(options);
    let run = program.run(&options.limits, &mut observer);
    let finished = observer.detector.finish();
    let run_time = start.elapsed();

    let mut report = report(source, options, &run, &observer);
    if let Err(error) = finished {
        report.end = End::Broken(error.to_string());
    }
    if options.stats {
        report.stats = Some(Stats { compile_time, run_time, ..stats(&run, &observer.detector) });
    }
    let picture = observer.graph.map(|graph| {
        let names = RunNames { run: &run, source };
        let races = observer.detector.races().iter();
        let racing: HashSet<_> = races.flat_map(|race| [race.first.strand, race.second.strand]).collect();
        Picture::new(source.name(), graph.graph(), &names, &racing, options.engine.isolation)
    });
    Checked { report, picture }
}

/// The detector, and what else wants to see the run.
struct Observer {
    detector: Detector,
    graph: Option<GraphBuilder>,
    isolated: bool,
    ewait: bool,
}

impl Observer {
    fn new(options: &Options) -> Observer {
        let detector = Detector::new(options.engine, order::Options::default());
        Observer { detector, graph: options.graph.then(GraphBuilder::new), isolated: false, ewait: false }
    }
}

impl Consumer for Observer {
    fn accesses(&mut self, strand: &Strand, set: &AccessSet) -> Result<(), Error> {
        if let Some(graph) = &mut self.graph {
            graph.accesses(strand, set)?;
        }
        self.detector.accesses(strand, set)
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
        self.detector.event(step)
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        if let Some(graph) = &mut self.graph {
            graph.erase(bytes)?;
        }
        self.detector.erase(bytes)
    }
}

fn report(source: &Source, options: &Options, run: &Run<'_>, observer: &Observer) -> Report {
    let end = match &run.end {
        lang::End::Finished => End::Finished,
        lang::End::Failed(failure) => End::Failed(Failure {
            task: failure.task.0,
            place: place(source, failure.span),
            message: failure.message.clone(),
        }),
        lang::End::Deadlock(blocked) => {
            End::Deadlock(blocked.iter().map(|task| waiting(source, task)).collect())
        }
        lang::End::Refused(error @ (Error::Unsupported { .. } | Error::NotDepthFirst { .. })) => {
            End::Refused(error.to_string())
        }
        lang::End::Refused(error) => End::Broken(error.to_string()),
        lang::End::Stopped => End::Broken("the run was stopped, though nobody asked for it".to_owned()),
    };
    let mut report = Report::new(source.clone(), options.engine, end);
    report.schedules = 1;
    report.task_count = run.tasks.len() as u64;
    report.strand_count = run.strands.into();
    report.has_isolated = observer.isolated;
    report.has_ewait = observer.ewait;
    report.output.clone_from(&run.output);
    // A run that was broken off is no basis for a verdict, not even for a bad one.
    if !matches!(report.end, End::Refused(_) | End::Broken(_)) {
        report.races = races(source, run, observer.detector.races());
        report.dropped_races = observer.detector.dropped_races();
    }
    report.tasks = tasks(source, run, &report);
    report
}

fn races(source: &Source, run: &Run<'_>, races: &[dagsan_core::Race]) -> Vec<Race> {
    let mut places: HashMap<SiteId, Place> = HashMap::new();
    let mut side = |access: &dagsan_core::Access| Side {
        place: places.entry(access.site).or_insert_with(|| place(source, run.site_span(access.site))).clone(),
        kind: access.kind,
        task: access.task.0,
        isolated: access.isolated,
    };
    let race = |race: &dagsan_core::Race| Race {
        locations: run.location_names(race.location),
        first: side(&race.first),
        second: side(&race.second),
        allocated: run.allocated_at(race.location).map(|span| place(source, span)),
        duplicates: race.duplicates,
    };
    races.iter().map(race).collect()
}

/// The tasks that the report speaks of, with their ancestors.
fn tasks(source: &Source, run: &Run<'_>, report: &Report) -> BTreeMap<u32, Task> {
    let mut wanted: Vec<u32> =
        report.races.iter().flat_map(|race| [race.first.task, race.second.task]).collect();
    match &report.end {
        End::Failed(failure) => wanted.push(failure.task),
        End::Deadlock(blocked) => wanted.extend(blocked.iter().map(|task| task.task)),
        _ => {}
    }
    let mut tasks = BTreeMap::new();
    while let Some(number) = wanted.pop() {
        if tasks.contains_key(&number) {
            continue;
        }
        if let Some(info) = run.tasks.get(number as usize) {
            let main = TaskId(number) == TaskId::MAIN;
            let parent = (!main).then_some(info.parent.0);
            let created = (!main).then(|| place(source, info.created));
            let join = match info.kind {
                "spawn" => Join::Sync,
                "future" => Join::Get,
                "post" => Join::Await,
                _ => Join::Finish,
            };
            tasks.insert(number, Task { parent, what: describe(info), created, join });
            wanted.extend(parent);
        }
    }
    tasks
}

fn describe(task: &lang::TaskInfo) -> String {
    match &task.procedure {
        Some(procedure) if task.kind != "main" => format!("{} `{procedure}`", task.kind),
        _ => task.kind.to_owned(),
    }
}

fn stats(run: &Run<'_>, detector: &Detector) -> Stats {
    let done = detector.stats();
    let (order_memory, access_memory) = detector.memory();
    Stats {
        accesses: run.counts.accesses,
        checks: run.counts.checks,
        eliminated: Elimination::ALL.map(Elimination::name).into_iter().zip(run.counts.eliminated).collect(),
        strands: done.strands,
        quiescent_strands: done.quiescent_strands,
        comparisons: done.checks,
        queries: done.queries,
        visits: detector.visits(),
        order_memory,
        access_memory,
        ..Stats::default()
    }
}

fn place(source: &Source, span: lang::Span) -> Place {
    source.place(0, span.start as usize..span.end as usize)
}

fn waiting(source: &Source, blocked: &lang::Blocked) -> Blocked {
    let place = place(source, blocked.span);
    Blocked { task: blocked.task.0, place, waits_for: blocked.waits_for.clone() }
}

fn diagnostic(source: &Source, found: lang::Diagnostic) -> Diagnostic {
    Diagnostic {
        place: place(source, found.span),
        message: found.message,
        label: found.label,
        others: found.others.into_iter().map(|(span, label)| (place(source, span), label)).collect(),
        help: found.help,
    }
}

/// The names for a picture.
struct RunNames<'a> {
    run: &'a Run<'a>,
    source: &'a Source,
}

impl Names for RunNames<'_> {
    fn task(&self, task: TaskId) -> String {
        self.run.tasks.get(task.index()).map_or_else(String::new, describe)
    }

    fn locations(&self, location: Location) -> Vec<String> {
        self.run.location_names(location)
    }

    fn line(&self, site: SiteId) -> Option<usize> {
        Some(place(self.source, self.run.site_span(site)).line)
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
            stats: false,
            graph: false,
        };
        let checked = guarded(&source, &options, || panic!("on purpose, in a test: {}", 7));
        assert!(matches!(checked.report.end, End::Broken(why) if why == "on purpose, in a test: 7"));
    }
}
