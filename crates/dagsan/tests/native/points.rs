//! Every point of `tests/native` finds what stands above its function, in both profiles.
//!
//! `tests/native/src/bin/points/main.rs` says how expectations are written. What a run has found is put into the same
//! words, and compared as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use dagsan_findings::{End, Findings, Kind, Memory, ScheduleDependent, Side};
use dagsan_report::Report;
use dagsan_report::native::{self, Files};
use dagsan_report::symbols::Symbols;

use crate::support::{OPTIMISED_POINTS, POINTS, limited, run, run_point, workspace};

/// A point as its source describes it.
#[derive(Debug)]
struct Point {
    name: String,
    /// `DAGSAN_OPTIONS`, and what is expected then.
    expected: Vec<(String, String)>,
    /// The lines of the first and of the second accesses of its races.
    lines: [BTreeSet<usize>; 2],
    /// If that is expected: the lines by which its result may depend on the schedule.
    depends: Option<BTreeSet<usize>>,
}

impl Point {
    /// The line has the first access of a race, or the second, or both.
    fn mark(&mut self, which: &str, line: usize) {
        for (lines, mark) in self.lines.iter_mut().zip(["(1)", "(2)"]) {
            lines.extend(which.contains(mark).then_some(line));
        }
    }
}

/// All points, from the sources.
fn points() -> Vec<Point> {
    let directory = workspace("tests/native/src/bin/points");
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let sources = paths.filter(|path| path.file_name().unwrap() != "main.rs");
    let sources: Vec<String> = sources.map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut points = Vec::new();
    sources.iter().for_each(|source| read_points(source, &mut points));
    sources.iter().for_each(|source| read_shared_lines(source, &mut points));
    points
}

/// Lines that several points come by say of which they are: `// race (1) of one, another`.
fn read_shared_lines(source: &str, points: &mut [Point]) {
    for (number, line) in (1..).zip(source.lines()) {
        let Some((_, mark)) = line.split_once("// race ") else { continue };
        let Some((which, names)) = mark.split_once(" of ") else { continue };
        for name in names.split(", ") {
            let point = points.iter_mut().find(|point| point.name == name);
            point.unwrap_or_else(|| panic!("no point is called {name}")).mark(which, number);
        }
    }
}

fn read_points(source: &str, points: &mut Vec<Point>) {
    let mut expected = Vec::new();
    let mut depends = None;
    // The function that the lines belong to, if they are a point's.
    let mut inside = false;
    for (number, line) in (1..).zip(source.lines()) {
        if let Some(expectation) = line.strip_prefix("// expect") {
            let (options, expectation) = expectation.split_once(": ").unwrap();
            expected.push((options.trim().to_owned(), expectation.to_owned()));
        } else if let Some(name) = line.strip_prefix("fn ").filter(|_| !expected.is_empty()) {
            let name = name.strip_suffix("() {").unwrap().to_owned();
            let (expected, depends) = (std::mem::take(&mut expected), depends.take());
            points.push(Point { name, expected, lines: Default::default(), depends });
            inside = true;
        } else if line.starts_with("// result: ") {
            depends = Some(BTreeSet::new());
        } else if line == "}" {
            inside = false;
        } else if line.ends_with("// depends") && inside {
            points.last_mut().unwrap().depends.as_mut().unwrap().insert(number);
        } else if let Some((_, which)) = line.split_once("// race ").filter(|_| inside) {
            points.last_mut().unwrap().mark(which, number);
        }
    }
}

/// What was found, in the words of an expectation.
fn described(found: &Findings) -> String {
    if found.end != End::Exited {
        return format!("{:?}", found.end);
    }
    let uses = &found.uses;
    let conditions: Vec<&str> = [(uses.locks || uses.lock_order, "locks"), (uses.atomics, "atomics")]
        .iter()
        .filter(|(used, _)| *used)
        .map(|(_, name)| *name)
        .collect();
    let mut up_to =
        if conditions.is_empty() { String::new() } else { format!(", up to {}", conditions.join(" and ")) };
    let of_worker = |what| matches!(what, ScheduleDependent::Worker | ScheduleDependent::ThreadLocal);
    if uses.schedule.iter().any(|dependence| of_worker(dependence.what)) {
        up_to += ", depending on the worker";
    }
    if found.races.is_empty() {
        let verdict = if found.stats.tasks > 1 { "race-free" } else { "not checked" };
        return format!("{verdict}{up_to}");
    }
    // Which bytes race, by all else that is said of a race.
    let mut groups: BTreeMap<[String; 3], BTreeSet<u64>> = BTreeMap::new();
    for race in &found.races {
        let kinds = format!("{}/{}", access(&race.first), access(&race.second));
        let memory = match race.memory {
            Memory::Heap { .. } => "heap",
            Memory::Stack { .. } => "stack",
            Memory::Static { .. } => "static",
            Memory::Other => "other",
        };
        let tasks = format!("{}/{}", race.first.task, race.second.task);
        let bytes = race.bytes.iter().flat_map(|&(start, length)| start..start + length);
        groups.entry([kinds, memory.to_owned(), tasks]).or_default().extend(bytes);
    }
    let group = |([kinds, memory, tasks], bytes): (&[String; 3], &BTreeSet<u64>)| {
        format!("race {kinds} on {} bytes of {memory} by {tasks}", bytes.len())
    };
    let groups: Vec<String> = groups.iter().map(group).collect();
    format!("{}{up_to}", groups.join("; "))
}

/// What an access does, in the words of an expectation.
fn access(side: &Side) -> String {
    let kind = match side.kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Free => "free",
    };
    if side.atomic { format!("atomic {kind}") } else { kind.to_owned() }
}

fn report(found: &Findings) -> Report {
    let mut symbols = Symbols::open(&found.process.executable).unwrap();
    let files = Files::new(&workspace(""), &found.process);
    native::report(found, &mut symbols, &files).unwrap()
}

/// Are the lines by which the result may depend on the schedule those that are marked? Whether the value of a
/// read-modify-write is used is known only where DagSan's own pass is loaded: without it, it may be.
fn check_schedule(marked: &BTreeSet<usize>, found: &Findings) -> Result<(), String> {
    let (mut told, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
    for dependence in report(found).native.unwrap().schedule {
        let (file, line, _) = dependence.at.clone().ok_or(format!("{dependence:?} has no place"))?;
        if !file.starts_with("tests/native/src/bin/points/") {
            return Err(format!("a place in {file}"));
        }
        if dependence.if_used { &mut perhaps } else { &mut told }.insert(line as usize);
    }
    let is_right =
        told.is_subset(marked) && marked.iter().all(|line| told.contains(line) || perhaps.contains(line));
    if is_right {
        Ok(())
    } else {
        Err(format!("expected to depend by lines {marked:?}, found {told:?}, perhaps {perhaps:?}"))
    }
}

/// The lines of the races that the report shows. None where the line is not known, and the report says so: in optimised
/// code the two innermost frames are known, and both may be in a library.
fn reported_lines(found: &Findings) -> [BTreeSet<Option<usize>>; 2] {
    let report = report(found);
    let line = |side: &dagsan_report::Side| {
        if side.detail.stand_in.is_some() {
            return None;
        }
        let name = report.sources[side.place.source].name();
        assert!(name.starts_with("tests/native/src/bin/points/"), "a place in {name}");
        Some(side.place.line)
    };
    let mut lines: [BTreeSet<Option<usize>>; 2] = Default::default();
    for race in &report.races {
        lines[0].insert(line(&race.first));
        lines[1].insert(line(&race.second));
    }
    lines
}

/// What was found, without the numbers of tasks: a first run numbers those only that it has to tell of.
fn without_tasks(described: &str) -> String {
    let words: Vec<&str> = described.split(' ').collect();
    let mut kept = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if *word != "by" && (at == 0 || words[at - 1] != "by") {
            kept.push(word.trim_end_matches(','));
        }
    }
    kept.join(" ")
}

/// Some races are only expected to be there.
fn is_as_expected(described: &str, expected: &str) -> bool {
    described == expected || (expected == "race" && described.starts_with("race "))
}

/// Are the races on the marked lines, and those that were expected? A second run tells, which keeps exact places with whole call stacks, and
/// so does one with the innermost frames alone, unless these are in a library: in optimised code there are two.
fn check_lines(program: &Path, point: &Point, expected: &str) -> Result<(), String> {
    let marked = point.lines.each_ref().map(|lines| lines.iter().copied().map(Some).collect::<BTreeSet<_>>());
    for options in ["stacks=1", "sites=exact"] {
        let (_, found) = run_point(program, &point.name, options);
        let found = found.ok_or(format!("left no findings with {options}"))?;
        let again = described(&found);
        // What differs in callers alone is told apart by whole stacks, and may name other tasks of the same race.
        if options == "sites=exact" && !is_as_expected(&again, expected) {
            return Err(format!("expected {expected}, found {again} with {options}"));
        }
        let lines = reported_lines(&found);
        let unknown = lines.iter().flatten().any(Option::is_none);
        let may_be_unknown = options == "sites=exact" && program != *POINTS;
        if lines != marked && !(unknown && may_be_unknown) {
            return Err(format!("expected lines {marked:?}, found {lines:?} with {options}"));
        }
    }
    Ok(())
}

/// What is not as a point expects.
fn mismatches(program: &Path, point: &Point) -> Vec<String> {
    let mut mismatches = Vec::new();
    for (options, expected) in &point.expected {
        let mut wrong = |what: String| mismatches.push(format!("{} {options}: {what}", point.name));
        let (ran, found) = run_point(program, &point.name, options);
        let Some(found) = found else {
            wrong(format!("left no findings: {ran:?}"));
            continue;
        };
        let described = described(&found);
        if !is_as_expected(&without_tasks(&described), &without_tasks(expected)) {
            wrong(format!("expected {expected}, found {described}"));
            continue;
        }
        let code = if found.races.is_empty() { 0 } else { 66 };
        if ran.code != code {
            wrong(format!("ended with {}: {}", ran.code, ran.stderr));
        }
        if options.is_empty()
            && let Some(marked) = &point.depends
            && let Err(what) = check_schedule(marked, &found)
        {
            wrong(what);
        }
        if options.is_empty()
            && !found.races.is_empty()
            && let Err(what) = check_lines(program, point, expected)
        {
            wrong(what);
        }
    }
    mismatches
}

fn all_points_are_as_expected(program: &Path) {
    let mismatches: Vec<String> = points().iter().flat_map(|point| mismatches(program, point)).collect();
    assert!(mismatches.is_empty(), "{} mismatches:\n{}", mismatches.len(), mismatches.join("\n"));
}

#[test]
fn points_find_what_they_expect() {
    all_points_are_as_expected(&POINTS);
}

#[test]
fn optimised_points_find_what_they_expect() {
    all_points_are_as_expected(&OPTIMISED_POINTS);
}

#[test]
fn every_point_has_an_expectation() {
    let listed = run(limited(&*POINTS).arg("--list")).stdout;
    let listed: BTreeSet<&str> = listed.lines().collect();
    let points = points();
    let described: BTreeSet<&str> = points.iter().map(|point| point.name.as_str()).collect();
    assert_eq!(listed, described);
    assert!(points.iter().all(|point| point.expected.iter().any(|(options, _)| options.is_empty())));
    let marked = |point: &Point| point.lines.iter().all(|lines| !lines.is_empty());
    let exact = |point: &Point| point.expected.iter().any(|(_, expected)| expected.starts_with("race "));
    let unmarked: Vec<&Point> = points.iter().filter(|point| exact(point) && !marked(point)).collect();
    assert!(unmarked.is_empty(), "{unmarked:?}");
}

/// Each switch is there because some program would be accused without it. `locks` is switched off together with
/// `atomics`, which would otherwise take the order in which a lock was taken for one of the program.
#[test]
fn every_switch_keeps_something_from_being_reported() {
    let points = points();
    for switches in ["heap=0", "task_stacks=0", "thread_locals=0", "once=0", "atomics=0", "locks=0:atomics=0"]
    {
        let shown_by = |point: &&Point| {
            let expects = |options: &str, verdict: &str| {
                point
                    .expected
                    .iter()
                    .any(|(given, expected)| given == options && expected.starts_with(verdict))
            };
            expects("", "race-free") && expects(switches, "race")
        };
        assert!(points.iter().any(|point| shown_by(&point)), "{switches}");
    }
}
