//! A report as JSON for programs.
//!
//! ```text
//! {"verdict": "race", "engine": "dag", "schedules": 1, "tasks": 3, "strands": 5,
//!  "races": [{"location": "a[3]", "kind": "write-read",
//!             "first":  {"line": 6, "column": 18, "task": 2},
//!             "second": {"line": 8, "column": 19, "task": 0}}],
//!  "message": "1 race on a[3]", "file": "x.task", "output": ""}
//! ```
//!
//! These keys are always there, in this order; keys that only some reports have follow them. Lines and
//! columns count from 1, columns in characters. There is one race per location and pair of places.

use std::collections::HashSet;

use serde::Serialize;

use crate::model::{Blocked, Diagnostic, End, Frame, Native, Report, Side, Stats, Witness};
use crate::source::{Place, Source};
use crate::text;

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
pub fn object(report: &Report) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&json(report))? + "\n")
}

/// Several reports as an array.
pub fn array(reports: &[Report]) -> Result<String, serde_json::Error> {
    let reports: Vec<JsonReport<'_>> = reports.iter().map(json).collect();
    Ok(serde_json::to_string_pretty(&reports)? + "\n")
}

fn json(report: &Report) -> JsonReport<'_> {
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
        races: races(report),
        message,
        file: report.name(),
        output: &report.output,
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

fn races(report: &Report) -> Vec<JsonRace<'_>> {
    let mut seen = HashSet::new();
    let mut races = Vec::new();
    for race in &report.races {
        for location in race.location_names() {
            // Two races may overlap in some of their elements.
            if seen.insert((location.clone(), race.kind(), &race.first.place, &race.second.place)) {
                races.push(JsonRace {
                    location,
                    kind: race.kind(),
                    first: side(report, &race.first),
                    second: side(report, &race.second),
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
mod tests {
    use dagsan_core::AccessKind;
    use serde_json::{Value, json};

    use super::*;
    use crate::fixture::{missing_get, place, race};
    use crate::model::Exploration;

    fn parsed(report: &Report) -> Value {
        serde_json::from_str(&object(report).unwrap()).unwrap()
    }

    #[test]
    fn there_is_one_race_per_location_and_pair_of_places() {
        let mut report = missing_get();
        let (write, read) = (place(&report, "future g", "a[1]"), place(&report, "a[0] +", "a[1]"));
        race(&mut report, &["a[1]", "a[2]"], (2, write.clone()), (0, AccessKind::Read, read.clone()));
        race(&mut report, &["a[1]"], (2, read), (0, AccessKind::Read, write));
        let races = parsed(&report)["races"].clone();
        let locations: Vec<&Value> = races.as_array().unwrap().iter().map(|race| &race["location"]).collect();
        assert_eq!(locations, ["a[1]", "a[2]", "a[1]"]);
    }

    #[test]
    fn sides_in_other_files_name_them() {
        let mut report = missing_get();
        report.sources.push(Source::new("other.rs", "one\ntwo\n"));
        report.races[0].second.place = report.sources[1].place(1, 4..7);
        let race = &parsed(&report)["races"][0];
        assert_eq!(race["first"], json!({ "line": 5, "column": 18, "task": 2 }));
        assert_eq!(race["second"], json!({ "line": 2, "column": 1, "task": 0, "file": "other.rs" }));
    }

    #[test]
    fn explorations_have_keys_of_their_own() {
        let mut report = missing_get();
        let keys = ["schedule", "states", "stopped"];
        let plain = parsed(&report);
        assert!(keys.iter().all(|key| plain.get(key).is_none()));
        assert_eq!(plain["races"][0].get("schedule"), None);

        report.schedules = 7;
        report.schedule = Some("0.1".to_owned());
        report.races[0].schedule = Some("0.2".to_owned());
        report.exploration = Some(Exploration { states: 12, ..Exploration::default() });
        let all = parsed(&report);
        assert_eq!(keys.map(|key| all[key].clone()), [json!("0.1"), json!(12), Value::Null]);
        assert_eq!((&all["schedules"], &all["races"][0]["schedule"]), (&json!(7), &json!("0.2")));

        report.races.clear();
        report.exploration = Some(Exploration { stopped: Some("why".to_owned()), ..Exploration::default() });
        let cut = parsed(&report);
        assert_eq!((&cut["verdict"], &cut["stopped"]), (&json!("not-exhausted"), &json!("why")));
        assert!(cut["message"].as_str().unwrap().ends_with("why"));
    }

    #[test]
    fn witnesses_tell_impossible_from_benign() {
        let witness = |witness: Option<Witness>| {
            let mut report = missing_get();
            report.races[0].witness = witness;
            parsed(&report)["races"][0].get("witness").cloned()
        };
        let difference = ("x".to_owned(), "1".to_owned(), "2".to_owned());
        assert_eq!(witness(None), None);
        assert_eq!(witness(Some(Witness::None)), Some(json!({ "found": false, "differences": [] })));
        assert_eq!(
            witness(Some(Witness::Differences(Vec::new()))),
            Some(json!({ "found": true, "differences": [] }))
        );
        let shown = json!({ "what": "x", "first_before_second": "1", "second_before_first": "2" });
        assert_eq!(
            witness(Some(Witness::Differences(vec![difference]))),
            Some(json!({ "found": true, "differences": [shown] }))
        );
    }
}
