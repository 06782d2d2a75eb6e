//! All schedules of a program with isolated sections or ewait, and one report about them.
//!
//! With `dag` the exploration is reduced; other engines that read sections as ordered judge every order,
//! one by one, as Algorithm 2 does. Engines that read them as mutual exclusion need the serial order: one run is
//! what they can judge, and it is enough if the sections commute, which a reduced exploration
//! finds out.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dagsan_core::order::{self, Isolation};
use dagsan_explore::{Limits, Reduction, Schedule, Seen, Stopped};
use dagsan_lang::Program;
use dagsan_report::{End, Exploration, Place, Race, Report, Source};
use indicatif::{ProgressBar, ProgressStyle};

use crate::check::Options;
use crate::describe::{self, Points, Tasks};

/// Set by Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Is an exploration under way, which can be ended with what it has found?
static EXPLORING: AtomicBool = AtomicBool::new(false);

/// How much memory states may take if the system does not say how much there is.
const DEFAULT_MEMORY: usize = 1 << 31;
/// Progress is shown from then on.
const SHOW_PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// From now on Ctrl-C ends an exploration, which then says what it has found; a second one ends the program.
pub fn listen_for_interrupts() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        // Relaxed: the flags are all there is to see.
        let again = INTERRUPTED.swap(true, Ordering::Relaxed);
        if again || !EXPLORING.load(Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("interrupted: the runs under way are finished; Ctrl-C again ends at once");
    })
}

/// Has somebody pressed Ctrl-C?
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// What was found.
pub struct Found {
    pub report: Report,
    /// The accesses of each race of the report.
    pub points: Vec<Points>,
    /// Did some run end in an error of the program?
    pub failed: bool,
}

impl Found {
    fn only(report: Report) -> Found {
        Found { report, points: Vec::new(), failed: false }
    }
}

/// Explores a program that has choices; `None` if the engine cannot judge more than one run.
pub fn explore(source: &Source, program: &Program, options: &Options, most: u64) -> Option<Found> {
    match options.engine.isolation {
        Isolation::Ordered => Some(run(source, program, options, most)),
        Isolation::MutualExclusion => None,
    }
}

/// Runs the schedule that a report has named.
pub fn replay(source: &Source, program: &Program, options: &Options, schedule: &Schedule) -> Option<Found> {
    let name = options.engine.name;
    if options.engine.isolation == Isolation::MutualExclusion {
        let why = format!("`{name}` judges the serial schedule only; replay with --engine dag");
        return Some(Found::only(Report::new(source.clone(), options.engine, End::Refused(why))));
    }
    let start = Instant::now();
    let mut gathered = Gathered::new(source, options);
    let (engine, reduction) = (options.engine, reduction(options));
    let run = dagsan_explore::replay(program, engine, reduction, &options.limits, schedule, &mut |seen| {
        gathered.add(&seen);
    });
    let refused = match run {
        Ok(replay) => replay.problem().map(End::Refused),
        Err(error) => Some(describe::refused(&error)),
    };
    if let Some(end) = refused {
        return Some(Found::only(Report::new(source.clone(), engine, end)));
    }
    let mut report = gathered.report;
    report.tasks = gathered.tasks.mentioned;
    report.schedules = 1;
    report.schedule = Some(schedule.to_string());
    (report.has_isolated, report.has_ewait) = (program.has_isolated(), program.has_ewait());
    if let Some(stats) = &mut report.stats {
        stats.run_time = start.elapsed();
    }
    Some(Found { report, points: gathered.points, failed: gathered.failed })
}

/// The reduction has edges of its own, which are made for `dag`.
fn reduction(options: &Options) -> Reduction {
    match std::ptr::eq(options.engine, order::default_engine()) {
        true => Reduction::PartialOrder,
        false => Reduction::None,
    }
}

/// Half of the memory that the system can give without taking it from others.
fn memory() -> usize {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return DEFAULT_MEMORY };
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = available.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok());
    kibibytes.map_or(DEFAULT_MEMORY, |kibibytes| kibibytes.saturating_mul(1024) / 2)
}

fn limits(options: &Options, schedules: u64) -> Limits<'static> {
    Limits {
        run: options.limits.clone(),
        schedules,
        time: options.max_time,
        memory: memory(),
        stop: &INTERRUPTED,
        threads: thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
    }
}

fn run(source: &Source, program: &Program, options: &Options, most: u64) -> Found {
    let start = Instant::now();
    let (limits, reduction) = (limits(options, most), reduction(options));
    let mut gathered = Gathered::new(source, options);
    let progress = Progress::new(source.name());
    // Relaxed, here and below: the flag is all there is to see.
    EXPLORING.store(true, Ordering::Relaxed);
    let explored = dagsan_explore::explore(program, options.engine, reduction, &limits, &mut |seen| {
        progress.show(&seen);
        gathered.add(&seen);
    });
    EXPLORING.store(false, Ordering::Relaxed);
    progress.clear();
    let mut report = gathered.report;
    report.tasks = gathered.tasks.mentioned;
    match explored {
        Err(error) => report.end = describe::refused(&error),
        Ok(explored) => {
            // Those that were merged were run, too, and have shown what they have shown.
            report.schedules = explored.schedules + explored.merged;
            if report.schedules == 1 {
                report.schedule = None;
                report.races.iter_mut().for_each(|race| race.schedule = None);
            }
            report.exploration = Some(Exploration {
                states: explored.states,
                redundant: explored.redundant,
                merged: explored.merged,
                commute: explored.independent,
                stopped: explored.stopped.map(|stopped| describe_stop(stopped, options)),
            });
        }
    }
    if let Some(stats) = &mut report.stats {
        stats.run_time = start.elapsed();
        if report.schedules > 1 {
            report
                .notes
                .push("the figures are those of the first schedule, the time is that of all".to_owned());
        }
    }
    Found { report, points: gathered.points, failed: gathered.failed }
}

fn describe_stop(stopped: Stopped, options: &Options) -> String {
    match stopped {
        Stopped::Schedules => "no more were asked for (--schedules, --max-schedules)".to_owned(),
        Stopped::Time => {
            let seconds = options.max_time.as_secs_f64();
            format!("the time of {seconds} s was up; raise it with --max-time")
        }
        Stopped::Memory => "there is no memory for more states; try fewer tasks or sections".to_owned(),
        Stopped::Asked => "it was interrupted".to_owned(),
    }
}

/// What makes races of two schedules the same: locations, places, kinds.
type Key = (Vec<String>, Place, Place, &'static str);

/// What the schedules have shown so far. The default schedule comes first.
struct Gathered<'a> {
    source: &'a Source,
    options: &'a Options,
    report: Report,
    tasks: Tasks,
    points: Vec<Points>,
    known: HashSet<Key>,
    first: bool,
    failed: bool,
}

impl<'a> Gathered<'a> {
    fn new(source: &'a Source, options: &'a Options) -> Gathered<'a> {
        let report = Report::new(source.clone(), options.engine, End::Finished);
        Gathered {
            source,
            options,
            report,
            tasks: Tasks::default(),
            points: Vec::new(),
            known: HashSet::new(),
            first: true,
            failed: false,
        }
    }

    fn add(&mut self, seen: &Seen<'_, '_>) {
        let run = seen.run;
        let first = std::mem::take(&mut self.first);
        if first {
            self.tasks = Tasks::new(run);
            self.report.task_count = run.tasks.len() as u64;
            self.report.strand_count = run.strands.into();
            self.report.output.clone_from(&run.output);
            if self.options.stats {
                self.report.stats = Some(describe::stats(run, seen.detector));
            }
        }
        self.failed |= matches!(run.end, dagsan_lang::End::Failed(_));
        let schedule = Some(seen.schedule.to_string());
        let merged = matches!(run.end, dagsan_lang::End::Stopped);
        if matches!(self.report.end, End::Finished) && !merged {
            self.report.end = describe::end(self.source, run, &mut self.tasks);
            if !matches!(self.report.end, End::Finished) {
                self.report.schedule.clone_from(&schedule);
            }
        }
        self.report.has_shared_region |= run.shared_region;
        self.report.dropped_races += seen.detector.dropped_races();
        for (mut race, points) in describe::races(self.source, run, seen.detector, &mut self.tasks) {
            let Race { locations, first, second, .. } = &race;
            let key = (locations.clone(), first.place.clone(), second.place.clone(), race.kind());
            if self.known.insert(key) {
                race.schedule.clone_from(&schedule);
                self.report.races.push(race);
                self.points.push(points);
            }
        }
    }
}

/// A line on the terminal about an exploration that takes long.
struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    fn new(name: &str) -> Progress {
        let bar =
            if std::io::stderr().is_terminal() { ProgressBar::no_length() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{prefix}: {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        Progress { bar, start: Instant::now() }
    }

    fn show(&self, seen: &Seen<'_, '_>) {
        let time = self.start.elapsed();
        if time > SHOW_PROGRESS_AFTER {
            let so_far = seen.so_far;
            let rate = so_far.schedules as f64 / time.as_secs_f64();
            self.bar.set_message(format!(
                "{} schedules, {} states, {rate:.0} schedules/s; Ctrl-C ends it with what was found",
                so_far.schedules, so_far.states
            ));
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
