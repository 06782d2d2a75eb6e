//! Reports as SARIF 2.1.0, one run per program or test; of many, one run with an invocation for each, because GitHub takes no more than 20.
//!
//! A race is a result at its first access, with the second as a related location, and where the tasks are created and the block is
//! allocated; both call stacks; and a code flow of two threads: the way of each task from the common ancestor down to the access. Its partial
//! fingerprint survives moved lines. Files are named from the root of the project (`SRCROOT`), which is how GitHub finds them.
//! Deadlocks, run-time errors and errors in the source are results too. The verdict, and what it rests on, is a notification of the
//! run's invocation, so that a run without results is no claim by itself.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::clean::clean;
use crate::fingerprint::{self, fingerprint};
use crate::model::{Acceptance, End, Frame, Race, Report, Side, Verdict};
use crate::project::Project;
use crate::source::Place;
use crate::text::advice::next_step;
use crate::text::headline;
use crate::text::race::{RaceGroup, does, grouped, groups};

/// Where the format is described.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// So many races are results of a run: more than GitHub takes of one upload are of no use.
const SHOWN: usize = 5_000;
/// So many runs are told by themselves: GitHub refuses a file with more.
const RUNS: usize = 20;
/// So many frames of a call stack are told.
const FRAMES: usize = 64;

/// A rule: its name, what it means, and what to do in general.
struct Rule {
    id: &'static str,
    short: &'static str,
    full: &'static str,
    help: &'static str,
}

const RULES: [Rule; 5] = [
    Rule {
        id: "write-write",
        short: "Two parallel tasks write the same memory",
        full: "Two tasks that nothing orders write the same bytes. Which value stays depends on the schedule.",
        help: ORDER,
    },
    Rule {
        id: "read-write",
        short: "A task reads memory that a parallel task writes",
        full: "Of two tasks that nothing orders, one reads bytes that the other writes. In the run that was checked the read came first.",
        help: ORDER,
    },
    Rule {
        id: "write-read",
        short: "A task writes memory that a parallel task reads",
        full: "Of two tasks that nothing orders, one writes bytes that the other reads. In the run that was checked the write came first.",
        help: ORDER,
    },
    Rule {
        id: "deadlock",
        short: "Tasks wait for ever",
        full: "Tasks remain, and none of them can go on.",
        help: "Find who should set or end what they wait for, and why it does not come to that.",
    },
    Rule {
        id: "error",
        short: "The program could not be checked to its end",
        full: "The source is not a program, or the program failed. What comes after is not checked.",
        help: "Correct the program, then check it again.",
    },
];

const ORDER: &str = "Let each task touch memory of its own, make one task wait for the other, or protect both accesses by a lock if their \
                     order does not matter. The message of each result says which of these fits.";

/// One run, on one line.
pub fn run(report: &Report, project: &Project) -> Result<String, serde_json::Error> {
    let fresh = groups(report);
    let mut results: Vec<Value> =
        fresh.iter().take(SHOWN).map(|group| race(report, group, project, None)).collect();
    for accepted in report.accepted.iter().take(SHOWN) {
        for group in grouped([&accepted.race]) {
            results.push(race(report, &group, project, Some(&accepted.by)));
        }
    }
    results.extend(other_results(report, project));
    let successful = !matches!(report.verdict(), Verdict::Error) || matches!(report.end, End::Failed(_));
    let mut notifications = vec![json!({
        "level": if report.verdict() == Verdict::NotExhausted { "warning" } else { "note" },
        "message": { "text": format!("{}: {}", report.name(), headline(report)) },
        "descriptor": { "id": "verdict" },
    })];
    notifications
        .extend(report.notes.iter().map(|note| json!({ "level": "note", "message": { "text": note } })));
    if fresh.len() > SHOWN {
        let more = format!("{} more races are left out", fresh.len() - SHOWN);
        notifications.push(json!({ "level": "warning", "message": { "text": more } }));
    }
    let run = json!({
        "tool": { "driver": {
            "name": "DagSan",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": RULES.iter().map(rule).collect::<Vec<_>>(),
            "notifications": [{ "id": "verdict", "shortDescription": { "text": "What was found, and what it rests on" } }],
        }},
        "automationDetails": { "id": format!("dagsan/{}/", report.name().replace('/', "_")) },
        "originalUriBaseIds": { "SRCROOT": { "uri": format!("file://{}/", uri(&project.root().to_string_lossy())) } },
        "columnKind": "unicodeCodePoints",
        "invocations": [{ "executionSuccessful": successful, "toolExecutionNotifications": notifications }],
        "results": results,
        "properties": {
            "verdict": report.verdict().name(),
            "engine": report.engine,
            "schedules": report.schedules,
            "tasks": report.task_count,
            "strands": report.strand_count,
        },
    });
    serde_json::to_string(&run)
}

/// The document of these runs.
pub fn document(runs: &[String]) -> String {
    let write = |runs: &[String]| {
        format!("{{\"$schema\":\"{SCHEMA}\",\"version\":\"2.1.0\",\"runs\":[\n{}\n]}}\n", runs.join(",\n"))
    };
    let parsed = runs.iter().map(|run| serde_json::from_str(run)).collect::<Result<Vec<Value>, _>>();
    // What is no JSON was not made here, and stays as it is.
    let Ok(mut parsed) = parsed else { return write(runs) };
    match parsed.len() > RUNS {
        true => parsed = vec![combined(parsed)],
        false => tell_apart(&mut parsed),
    }
    write(&parsed.iter().map(Value::to_string).collect::<Vec<_>>())
}

/// Tests of two programs may have one name, and GitHub refuses a file in which two runs have: the second one gets a number.
fn tell_apart(runs: &mut [Value]) {
    let mut seen = HashSet::new();
    for run in runs {
        let id = run["automationDetails"]["id"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
        let numbered = (2..).map(|number| format!("{id} ({number})"));
        let free = std::iter::once(id.clone()).chain(numbered).find(|id| seen.insert(id.clone()));
        run["automationDetails"]["id"] = format!("{}/", free.unwrap_or(id)).into();
    }
}

/// One run of many: each was an invocation, to which its results lead.
fn combined(runs: Vec<Value>) -> Value {
    let (mut whole, mut invocations, mut results) = (Value::Null, Vec::new(), Vec::new());
    for mut run in runs {
        let id = run["automationDetails"]["id"].take();
        let properties = run["properties"].take();
        for mut result in taken(&mut run["results"]) {
            result["provenance"] = json!({ "invocationIndex": invocations.len() });
            results.push(result);
        }
        for mut invocation in taken(&mut run["invocations"]) {
            invocation["properties"] = json!({ "id": id, "run": properties });
            invocations.push(invocation);
        }
        if whole.is_null() {
            whole = run;
        }
    }
    // What counts comes first, if not all of it can be told.
    results.sort_by_key(|result| result["level"] != "error");
    let left_out = results.len().saturating_sub(SHOWN);
    results.truncate(SHOWN);
    if left_out > 0
        && let Some(Value::Array(notifications)) =
            invocations.first_mut().map(|first| &mut first["toolExecutionNotifications"])
    {
        let more = format!("{left_out} more results are left out");
        notifications.push(json!({ "level": "warning", "message": { "text": more } }));
    }
    whole["automationDetails"] = json!({ "id": "dagsan/" });
    whole["properties"] = json!({ "programs": invocations.len() });
    whole["invocations"] = invocations.into();
    whole["results"] = results.into();
    whole
}

fn taken(list: &mut Value) -> Vec<Value> {
    match list.take() {
        Value::Array(values) => values,
        _ => Vec::new(),
    }
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.short },
        "fullDescription": { "text": rule.full },
        "help": { "text": rule.help },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": ["concurrency", "correctness"] },
    })
}

fn rule_index(id: &str) -> usize {
    RULES.iter().position(|rule| rule.id == id).unwrap_or(RULES.len() - 1)
}

fn race(report: &Report, group: &RaceGroup<'_>, project: &Project, by: Option<&Acceptance>) -> Value {
    let race = group.races[0];
    let (first, second) = (&race.first, &race.second);
    let help = next_step(report, race);
    let text = format!(
        "parallel accesses to {}: (1) {}; [(2) {}](1). {help}",
        bracketed(&group.touched()),
        does(first),
        does(second)
    );
    let mut related =
        vec![with_id(1, place(report, &second.place, project), &format!("(2) {}", does(second)))];
    let mut mention = |at: &Place, text: &str| {
        let id = related.len() + 1;
        related.push(with_id(id, place(report, at, project), text));
    };
    for task in distinct_tasks(report, race) {
        if let Some(info) = report.tasks.get(&task)
            && let Some(created) = &info.created
        {
            mention(created, &format!("task {task} ({}) is created here", info.what));
        }
    }
    if let Some(allocated) = &race.allocated {
        mention(allocated, "what both touch is made here");
    }
    let stacks: Vec<Value> = [(1, first), (2, second)]
        .into_iter()
        .filter(|(_, side)| !side.detail.stack.is_empty())
        .map(|(number, side)| stack(number, side, project))
        .collect();
    let mut result = json!({
        "ruleId": race.kind(),
        "ruleIndex": rule_index(race.kind()),
        "level": if by.is_some() { "note" } else { "error" },
        "message": { "text": text },
        "locations": [place(report, &first.place, project)],
        "relatedLocations": related,
        "codeFlows": [{
            "message": { "text": "the ways of the two tasks, which nothing orders" },
            "threadFlows": [flow(report, 1, first, second, project), flow(report, 2, second, first, project)],
        }],
        "partialFingerprints": { format!("dagsanRace/v{}", fingerprint::VERSION): fingerprint(report, race, project) },
        "occurrenceCount": group.races.iter().map(|race| race.duplicates.saturating_add(1)).fold(0, u64::saturating_add),
        "properties": { "locations": group.names(), "help": help },
    });
    if !stacks.is_empty() {
        result["stacks"] = stacks.into();
    }
    match by {
        // A race in a baseline is one that was there before.
        Some(Acceptance::Known { .. }) => result["baselineState"] = "unchanged".into(),
        Some(Acceptance::Suppressed { entry, reason }) => {
            result["suppressions"] = json!([{ "kind": "external", "status": "accepted", "justification": format!("{reason} ({entry})") }]);
        }
        None => {}
    }
    result
}

/// Square brackets would make a link of a message.
fn bracketed(text: &str) -> String {
    text.replace('[', "\\[").replace(']', "\\]")
}

/// The tasks from the common ancestor down to each access, without the ancestor.
fn distinct_tasks(report: &Report, race: &Race) -> Vec<u32> {
    let (one, two) = (race.first.task, race.second.task);
    let mut tasks = report.ancestry(one, two);
    tasks.extend(report.ancestry(two, one));
    tasks.truncate(FRAMES);
    tasks
}

/// The way of a task, from the common ancestor to the access.
fn flow(report: &Report, number: u8, side: &Side, other: &Side, project: &Project) -> Value {
    let mut chain = report.ancestry(side.task, other.task);
    chain.reverse();
    let skipped = chain.len().saturating_sub(FRAMES);
    let mut steps: Vec<Value> = Vec::new();
    for (depth, task) in chain.iter().enumerate().skip(skipped) {
        if let Some(info) = report.tasks.get(task)
            && let Some(created) = &info.created
        {
            let text = format!("task {task} ({}) is created", info.what);
            steps.push(step(place(report, created, project), &text, depth));
        }
    }
    let text = format!("({number}) {}", does(side));
    steps.push(step(place(report, &side.place, project), &text, chain.len()));
    json!({ "id": format!("task {}", side.task), "locations": steps })
}

fn step(mut location: Value, text: &str, depth: usize) -> Value {
    location["message"] = json!({ "text": text });
    json!({ "location": location, "nestingLevel": depth, "importance": "essential" })
}

fn with_id(id: usize, mut location: Value, text: &str) -> Value {
    location["id"] = id.into();
    location["message"] = json!({ "text": text });
    location
}

fn stack(number: u8, side: &Side, project: &Project) -> Value {
    let frames: Vec<Value> =
        side.detail.stack.iter().take(FRAMES).map(|frame| self::frame(frame, project)).collect();
    let complete = if side.detail.complete { "" } else { "; callers further out are not known" };
    json!({ "message": { "text": format!("call stack of ({number}){complete}") }, "frames": frames })
}

fn frame(frame: &Frame, project: &Project) -> Value {
    let mut location = json!({
        "logicalLocations": [{ "fullyQualifiedName": frame.function, "kind": "function" }],
    });
    if let Some((file, line, column)) = &frame.at {
        location["physicalLocation"] = json!({
            "artifactLocation": artifact(&project.name(file)),
            "region": region(*line as usize, *column as usize, None),
        });
    }
    json!({ "location": location })
}

/// A location: physical if the place is known, else the program by its name.
fn place(report: &Report, place: &Place, project: &Project) -> Value {
    let Some(source) = report.sources.get(place.source).filter(|_| place.line > 0) else {
        return json!({ "logicalLocations": [{ "fullyQualifiedName": report.name() }] });
    };
    let text = source.text().get(place.span.clone()).unwrap_or_default();
    let text = text.lines().next().unwrap_or_default();
    let end = place.column + text.chars().count();
    let region = region(place.line, place.column, Some(end).filter(|&end| end > place.column));
    let artifact = artifact(&project.name(source.name()));
    let mut physical = json!({ "artifactLocation": artifact, "region": region });
    if let Some(line) = place.line.checked_sub(1).and_then(|line| source.text().lines().nth(line)) {
        physical["contextRegion"] = json!({ "startLine": place.line, "snippet": { "text": clean(line) } });
    }
    json!({ "physicalLocation": physical })
}

fn region(line: usize, column: usize, end: Option<usize>) -> Value {
    let mut region = json!({ "startLine": line });
    if column > 0 {
        region["startColumn"] = column.into();
        if let Some(end) = end {
            region["endColumn"] = end.into();
        }
    }
    region
}

fn artifact(name: &str) -> Value {
    match name.strip_prefix('/') {
        Some(_) => json!({ "uri": format!("file://{}", uri(name)) }),
        None => json!({ "uri": uri(name), "uriBaseId": "SRCROOT" }),
    }
}

/// A path as it is written in a URI.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte.into());
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Deadlocks and errors.
fn other_results(report: &Report, project: &Project) -> Vec<Value> {
    let result = |rule: &str, at: &Place, text: String| {
        json!({
            "ruleId": rule,
            "ruleIndex": rule_index(rule),
            "level": "error",
            "message": { "text": bracketed(&text) },
            "locations": [place(report, at, project)],
        })
    };
    match &report.end {
        End::Failed(failure) => {
            vec![result("error", &failure.place, format!("{} (task {})", failure.message, failure.task))]
        }
        End::Deadlock(blocked) => {
            let text = |task: u32, what: &str| format!("task {task} waits for {what} for ever");
            let each = blocked.iter().take(SHOWN);
            each.map(|task| result("deadlock", &task.place, text(task.task, &task.waits_for))).collect()
        }
        End::Rejected(found) => {
            found.iter().map(|found| result("error", &found.place, found.message.clone())).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::fixture::{hostile, missing_get};
    use crate::model::Accepted;

    fn parsed(report: &Report) -> Value {
        let text = document(&[run(report, &Project::new("/p/sub", "/p")).unwrap()]);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_race_has_both_accesses_and_the_ways_of_their_tasks() {
        let shown = serde_json::to_string_pretty(&parsed(&missing_get())).unwrap() + "\n";
        expect_file!["snapshots/missing_get.sarif"].assert_eq(&shown);
    }

    #[test]
    fn accepted_races_are_results_that_say_so() {
        let mut report = missing_get();
        let race = report.races.remove(0);
        let reason = Acceptance::Suppressed { entry: "dagsan.toml:1".to_owned(), reason: "why".to_owned() };
        report.accepted.push(Accepted { race: race.clone(), by: reason });
        report.accepted.push(Accepted { race, by: Acceptance::Known { baseline: "known.json".to_owned() } });
        let results = parsed(&report)["runs"][0]["results"].clone();
        assert_eq!(results[0]["suppressions"][0]["justification"], "why (dagsan.toml:1)");
        assert_eq!(results[1]["baselineState"], "unchanged");
        assert_eq!(results[0]["level"], "note");
    }

    #[test]
    fn many_runs_are_invocations_of_one_and_names_are_told_apart() {
        let run = run(&missing_get(), &Project::new("/p", "/p")).unwrap();
        let runs =
            |count: usize| -> Value { serde_json::from_str(&document(&vec![run.clone(); count])).unwrap() };
        let some = runs(RUNS);
        let ids: HashSet<&str> = some["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|run| run["automationDetails"]["id"].as_str())
            .collect();
        assert_eq!(ids.len(), RUNS);
        assert!(ids.contains("dagsan/x.task/") && ids.contains("dagsan/x.task (20)/"), "{ids:?}");

        let many = runs(RUNS + 1);
        assert_eq!(many["runs"].as_array().unwrap().len(), 1);
        let one = &many["runs"][0];
        assert_eq!(one["invocations"].as_array().unwrap().len(), RUNS + 1);
        assert_eq!(one["results"][RUNS]["provenance"]["invocationIndex"], RUNS);
        assert_eq!(one["invocations"][RUNS]["properties"]["run"]["verdict"], "race");
    }

    #[test]
    fn deadlocks_and_errors_are_results() {
        let mut report = missing_get();
        report.races.clear();
        let place = report.tasks[&1].created.clone().unwrap();
        let waits_for = "promise `p`".to_owned();
        report.end = End::Deadlock(vec![crate::model::Blocked { task: 1, place, waits_for }]);
        let run = &parsed(&report)["runs"][0];
        assert_eq!(run["results"][0]["ruleId"], "deadlock");
        assert_eq!(run["properties"]["verdict"], "deadlock");
        report.end = End::Broken("why".to_owned());
        assert_eq!(parsed(&report)["runs"][0]["invocations"][0]["executionSuccessful"], false);
    }

    #[test]
    fn names_stay_in_their_fields() {
        let report = hostile();
        let text = run(&report, &Project::new("/p", "/p")).unwrap();
        assert!(!text.chars().any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)), "{text}");
        assert!(text.contains("hostile%20%5C%22%27%3C"), "{text}");
    }
}
