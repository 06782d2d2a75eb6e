//! A report as JSON for programs.
//!
//! ```text
//! {"verdict": "race", "engine": "dag", "schedules": 1, "tasks": 3, "strands": 5,
//!  "races": [{"location": "a[3]", "kind": "write-read",
//!             "first":  {"line": 6, "column": 18, "task": 2},
//!             "second": {"line": 8, "column": 19, "task": 0}}],
//!  "message": "1 race on a[3]", "file": "x.task", "output": "", "version": 1}
//! ```
//!
//! These keys are always there, in this order; keys that only some reports have follow them. `docs/report.schema.json` describes all of them, and is
//! tested against what is written here. Lines and
//! columns count from 1, columns in characters. There is one race per location and pair of places.

use std::collections::HashSet;

use serde::Serialize;

use crate::fingerprint::fingerprint;
use crate::model::{Acceptance, Blocked, Diagnostic, End, Frame, Native, Race, Report, Side, Stats, Witness};
use crate::project::Project;
use crate::source::{Place, Source};
use crate::text;

/// The version of the schema. It changes when a key goes away or means something else, not when one is added.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct JsonReport<'a> {
    verdict: &'static str,
    engine: &'a str,
    schedules: u64,
    tasks: u64,
    strands: u64,
    races: Vec<JsonRace<'a>>,
    message: String,
    file: &'a str,
    output: &'a str,
    version: u32,
    /// Races that were found, and do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accepted: Vec<JsonRace<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_races: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<Vec<JsonBlocked<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<JsonError<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<JsonExpectation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<JsonStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<JsonNative<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

/// What only reports on native programs have.
#[derive(Serialize)]
struct JsonNative<'a> {
    /// Does the verdict hold only if the sections under locks commute?
    locks: bool,
    /// Does it hold for schedules in which sections of locks that depend on each other come in the order of the run?
    lock_order: bool,
    /// Was a lock given back while tasks under it were not joined? Races with what they did under it may be missed.
    unlocked_early: bool,
    /// Does it hold only for schedules that keep the order of atomic operations?
    atomics: bool,
    /// Forked processes and threads that were not checked.
    forks: u32,
    turns_lost: u32,
    threads: Vec<JsonThreads<'a>>,
    /// Into how many pieces parallel iterators were cut; 0 for single items.
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<u32>,
    /// Where tasks did something whose outcome depends on the schedule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schedule: Vec<JsonDependence<'a>>,
    /// Were accesses of other sizes than 1, 2, 4, 8 and 16 bytes not seen?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    odd_sizes_unseen: bool,
    /// What tasks executed and nobody can see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<JsonUnseen<'a>>,
    /// The tasks that races and waits speak of, and their ancestors.
    tasks: Vec<JsonTask<'a>>,
}

#[derive(Serialize)]
struct JsonDependence<'a> {
    on: &'a str,
    call: &'a str,
    count: u64,
    /// Only if the program looks at the value of the atomic operation?
    if_used: bool,
    /// The atomic operation that may come before or after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<JsonPlace<'a>>,
    #[serde(flatten)]
    at: Option<JsonPlace<'a>>,
}

#[derive(Serialize)]
struct JsonUnseen<'a> {
    what: &'a str,
    count: u64,
    #[serde(flatten)]
    at: Option<JsonPlace<'a>>,
}

#[derive(Serialize)]
struct JsonThreads<'a> {
    count: u32,
    name: Option<&'a str>,
    #[serde(flatten)]
    at: Option<JsonPlace<'a>>,
}

#[derive(Serialize)]
struct JsonTask<'a> {
    task: u32,
    parent: Option<u32>,
    kind: &'a str,
    #[serde(flatten)]
    created: Option<JsonPlace<'a>>,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    file: &'a str,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct JsonRace<'a> {
    location: String,
    kind: &'static str,
    first: JsonSide<'a>,
    second: JsonSide<'a>,
    /// What it is known by when lines have moved.
    fingerprint: String,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<JsonAcceptance<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<JsonWitness<'a>>,
    /// How often the same places raced on the same bytes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<u64>,
    /// Where the block was allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    allocated: Option<JsonPlace<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum JsonAcceptance<'a> {
    Suppressed { entry: &'a str, reason: &'a str },
    Known { baseline: &'a str },
}

#[derive(Serialize)]
struct JsonWitness<'a> {
    /// Could both orders be run?
    found: bool,
    differences: Vec<JsonDifference<'a>>,
}

#[derive(Serialize)]
struct JsonDifference<'a> {
    what: &'a str,
    first_before_second: &'a str,
    second_before_first: &'a str,
}

#[derive(Serialize)]
struct JsonSide<'a> {
    line: usize,
    column: usize,
    task: u32,
    /// Only where it is not the file of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<JsonAccess<'a>>,
}

/// An access of a native program.
#[derive(Serialize)]
struct JsonAccess<'a> {
    free: bool,
    atomic: bool,
    locked: bool,
    /// Is it the place of an access to bytes nearby?
    nearby: bool,
    /// The innermost frame first.
    stack: Vec<JsonFrame<'a>>,
    /// Does the stack go up to the start of the task?
    complete: bool,
}

#[derive(Serialize)]
struct JsonFrame<'a> {
    function: &'a str,
    inlined: bool,
    library: bool,
    #[serde(flatten)]
    at: Option<JsonPlace<'a>>,
}

#[derive(Serialize)]
struct JsonBlocked<'a> {
    task: u32,
    line: usize,
    column: usize,
    waits_for: &'a str,
    /// Only where it is not the file of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonError<'a> {
    line: usize,
    column: usize,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<u32>,
}

#[derive(Serialize)]
struct JsonExpectation<'a> {
    text: &'a str,
    met: Option<bool>,
}

#[derive(Serialize)]
struct JsonStats {
    accesses: u64,
    checks: u64,
    eliminated: serde_json::Map<String, serde_json::Value>,
    strands: u64,
    quiescent_strands: u64,
    comparisons: u64,
    queries: u64,
    /// Queries that had to search, and what they visited; only of engines that search.
    #[serde(skip_serializing_if = "Option::is_none")]
    searches: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    visited: Option<u64>,
    order_bytes: usize,
    access_bytes: usize,
    compile_ms: f64,
    run_ms: f64,
}

/// One report as an object, on several lines, with a newline at its end.
pub fn object(report: &Report, project: &Project) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&json(report, project))? + "\n")
}

/// Several objects as an array.
pub fn array(objects: &[String]) -> String {
    if objects.is_empty() {
        return "[]\n".to_owned();
    }
    // Texts in JSON have no newlines of their own.
    let objects: Vec<String> =
        objects.iter().map(|object| format!("  {}", object.trim_end().replace('\n', "\n  "))).collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

fn json<'a>(report: &'a Report, project: &Project) -> JsonReport<'a> {
    let (message, errors) = match &report.end {
        End::Rejected(diagnostics) => {
            (all_messages(diagnostics), Some(diagnostics.iter().map(error).collect()))
        }
        End::Failed(failure) => {
            let Place { line, column, .. } = failure.place;
            let error = JsonError { line, column, message: &failure.message, task: Some(failure.task) };
            (text::verdict(report), Some(vec![error]))
        }
        _ => (text::verdict(report), None),
    };
    let blocked = match &report.end {
        End::Deadlock(blocked) => Some(blocked.iter().map(|task| waiting(report, task)).collect()),
        _ => None,
    };
    JsonReport {
        verdict: report.verdict().name(),
        engine: report.engine,
        schedules: report.schedules,
        tasks: report.task_count,
        strands: report.strand_count,
        races: races(report, report.races.iter().map(|race| (race, None)), project),
        message,
        file: report.name(),
        output: &report.output,
        version: VERSION,
        accepted: races(
            report,
            report.accepted.iter().map(|accepted| (&accepted.race, Some(&accepted.by))),
            project,
        ),
        schedule: report.schedule.as_deref(),
        states: report
            .exploration
            .as_ref()
            .map(|exploration| exploration.states)
            .filter(|&states| states > 0),
        stopped: report.exploration.as_ref().and_then(|exploration| exploration.stopped.as_deref()),
        dropped_races: Some(report.dropped_races).filter(|&dropped| dropped > 0),
        blocked,
        errors,
        expected: report
            .expectation
            .as_ref()
            .map(|expected| JsonExpectation { text: &expected.text, met: expected.met }),
        stats: report.stats.as_ref().map(stats),
        native: report.native.as_ref().map(|facts| native(report, facts)),
        notes: if report.native.is_some() { &report.notes } else { &[] },
    }
}

fn native<'a>(report: &'a Report, native: &'a Native) -> JsonNative<'a> {
    let threads = native.threads.iter().map(|threads| JsonThreads {
        count: threads.count,
        name: threads.name.as_deref(),
        at: threads.at.as_ref().map(position),
    });
    let tasks = report.tasks.iter().map(|(&task, info)| JsonTask {
        task,
        parent: info.parent,
        kind: &info.what,
        created: info.created.as_ref().and_then(|created| place(report, created)),
    });
    let schedule = native.schedule.iter().map(|dependence| JsonDependence {
        on: dependence.on,
        call: &dependence.call,
        count: dependence.count,
        if_used: dependence.if_used,
        other: dependence.other.as_ref().map(position),
        at: dependence.at.as_ref().map(position),
    });
    let unseen = native.unseen.iter().map(|unseen| JsonUnseen {
        what: &unseen.what,
        count: unseen.count,
        at: unseen.at.as_ref().map(position),
    });
    JsonNative {
        locks: native.locks,
        lock_order: native.lock_order,
        unlocked_early: native.unlocked_early,
        atomics: native.atomics,
        forks: native.forks,
        turns_lost: native.turns_lost,
        threads: threads.collect(),
        split: native.split,
        schedule: schedule.collect(),
        odd_sizes_unseen: native.odd_sizes_unseen,
        unseen: unseen.collect(),
        tasks: tasks.collect(),
    }
}

fn position((file, line, column): &(String, u32, u32)) -> JsonPlace<'_> {
    JsonPlace { file, line: *line as usize, column: *column as usize }
}

fn place<'a>(report: &'a Report, place: &Place) -> Option<JsonPlace<'a>> {
    let file = report.sources.get(place.source)?.name();
    Some(JsonPlace { file, line: place.line, column: place.column })
}

fn races<'a>(
    report: &'a Report,
    all: impl Iterator<Item = (&'a Race, Option<&'a Acceptance>)>,
    project: &Project,
) -> Vec<JsonRace<'a>> {
    let mut seen = HashSet::new();
    let mut races = Vec::new();
    for (race, by) in all {
        for location in race.location_names() {
            // Two races may overlap in some of their elements.
            if seen.insert((location.clone(), race.kind(), &race.first.place, &race.second.place)) {
                races.push(JsonRace {
                    location,
                    kind: race.kind(),
                    first: side(report, &race.first),
                    second: side(report, &race.second),
                    fingerprint: fingerprint(report, race, project),
                    accepted: by.map(|by| match by {
                        Acceptance::Suppressed { entry, reason } => {
                            JsonAcceptance::Suppressed { entry, reason }
                        }
                        Acceptance::Known { baseline } => JsonAcceptance::Known { baseline },
                    }),
                    schedule: race.schedule.as_deref(),
                    witness: race.witness.as_ref().map(witness),
                    duplicates: report.native.as_ref().map(|_| race.duplicates),
                    allocated: race
                        .allocated
                        .as_ref()
                        .filter(|_| report.native.is_some())
                        .and_then(|at| place(report, at)),
                });
            }
        }
    }
    races
}

fn witness(witness: &Witness) -> JsonWitness<'_> {
    let differences = match witness {
        Witness::None => &[][..],
        Witness::Differences(differences) => differences,
    };
    JsonWitness {
        found: matches!(witness, Witness::Differences(_)),
        differences: differences
            .iter()
            .map(|(what, one, other)| JsonDifference {
                what,
                first_before_second: one,
                second_before_first: other,
            })
            .collect(),
    }
}

fn side<'a>(report: &'a Report, side: &'a Side) -> JsonSide<'a> {
    let Place { line, column, .. } = side.place;
    let access = report.native.as_ref().map(|_| JsonAccess {
        free: side.detail.free,
        atomic: side.detail.atomic,
        locked: side.detail.locked,
        nearby: side.detail.nearby,
        stack: side.detail.stack.iter().map(frame).collect(),
        complete: side.detail.complete,
    });
    JsonSide { line, column, task: side.task, file: other_file(report, &side.place), access }
}

fn other_file<'a>(report: &'a Report, place: &Place) -> Option<&'a str> {
    report.sources.get(place.source).filter(|_| place.source > 0).map(Source::name)
}

fn frame(frame: &Frame) -> JsonFrame<'_> {
    let Frame { function, at, inlined, library } = frame;
    JsonFrame { function, inlined: *inlined, library: *library, at: at.as_ref().map(position) }
}

fn waiting<'a>(report: &'a Report, task: &'a Blocked) -> JsonBlocked<'a> {
    let Place { line, column, .. } = task.place;
    let file = other_file(report, &task.place);
    JsonBlocked { task: task.task, line, column, waits_for: &task.waits_for, file }
}

fn error(diagnostic: &Diagnostic) -> JsonError<'_> {
    let Place { line, column, .. } = diagnostic.place;
    JsonError { line, column, message: &diagnostic.message, task: None }
}

fn all_messages(diagnostics: &[Diagnostic]) -> String {
    let messages: Vec<String> = diagnostics
        .iter()
        .map(|found| format!("line {}, column {}: {}", found.place.line, found.place.column, found.message))
        .collect();
    messages.join("; ")
}

fn stats(stats: &Stats) -> JsonStats {
    JsonStats {
        accesses: stats.accesses,
        checks: stats.checks,
        eliminated: stats.eliminated.iter().map(|&(name, number)| (name.to_owned(), number.into())).collect(),
        strands: stats.strands,
        quiescent_strands: stats.quiescent_strands,
        comparisons: stats.comparisons,
        queries: stats.queries,
        searches: stats.visits.map(|visits| visits.searches),
        visited: stats.visits.map(|visits| visits.total),
        order_bytes: stats.order_memory,
        access_bytes: stats.access_memory,
        compile_ms: stats.compile_time.as_secs_f64() * 1e3,
        run_ms: stats.run_time.as_secs_f64() * 1e3,
    }
}

#[cfg(test)]
mod tests;
