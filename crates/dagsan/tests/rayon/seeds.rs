//! Every seed of `tests/rayon` has its race, where its source says, and every twin has none; however many threads rayon
//! is told to use, and in both profiles. Where the races of an optimised program are is not looked at: LLVM moves reads
//! into functions that call, and they are shown there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dagsan_findings::{End, FINDINGS_FILE, Findings, ScheduleDependent, TaskKind};
use dagsan_report::Place;
use dagsan_report::native::{self, Files};
use dagsan_report::symbols::Symbols;

use crate::support::{DEVELOPMENT, Directory, RELEASE, limited, run, workspace};

/// Where the sources are, in the workspace.
const SOURCES: &str = "tests/rayon/src/bin/seeds/";

static SEEDS: LazyLock<PathBuf> = LazyLock::new(|| DEVELOPMENT.join("seeds"));
static OPTIMISED: LazyLock<PathBuf> = LazyLock::new(|| RELEASE.join("seeds"));

pub fn names(program: &Path) -> Vec<String> {
    let (_, output) = run(limited(program).arg("--list"));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The findings of one run.
pub fn findings(program: &Path, name: &str, threads: &str, options: &str) -> Findings {
    let directory = Directory::new(&format!("{name}-{threads}"));
    let file = directory.0.join("findings.json");
    let mut command = limited(program);
    command.arg(name).env(FINDINGS_FILE, &file);
    let (code, output) = run(command.env("RAYON_NUM_THREADS", threads).env("DAGSAN_OPTIONS", options));
    let found = Findings::read(&file).unwrap_or_else(|error| panic!("{name}: {error}\n{output:?}"));
    assert_eq!(found.end, End::Exited, "{name}");
    assert_eq!(code, if found.races.is_empty() { 0 } else { 66 }, "{name}: {output:?}");
    found
}

/// The places with a mark, as `file.rs:line`.
fn marked() -> BTreeSet<String> {
    let mut marked = BTreeSet::new();
    for entry in fs::read_dir(workspace(SOURCES)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let source = fs::read_to_string(&path).unwrap();
        let lines = (1..).zip(source.lines()).filter(|(_, line)| line.ends_with("// race"));
        marked.extend(lines.map(|(number, _)| format!("{name}:{number}")));
    }
    marked
}

/// The places of the races, in the same form; those in libraries by the whole path.
fn places(found: &Findings) -> BTreeSet<String> {
    let mut symbols = Symbols::open(&found.process.executable).unwrap();
    let report = native::report(found, &mut symbols, &Files::new(&workspace(""), &found.process)).unwrap();
    let shown = |place: &Place| {
        let file = report.sources[place.source].name();
        format!("{}:{}", file.strip_prefix(SOURCES).unwrap_or(file), place.line)
    };
    report.races.iter().flat_map(|race| [shown(&race.first.place), shown(&race.second.place)]).collect()
}

/// What is wrong with one.
fn mismatch(program: &Path, name: &str, threads: &str, marked: Option<&BTreeSet<String>>) -> Option<String> {
    let found = findings(program, name, threads, "stacks=1");
    let wrong = |what: String| Some(format!("{name} with {threads} threads: {what}"));
    // The run that keeps no places says the same.
    if findings(program, name, threads, "").races.is_empty() != found.races.is_empty() {
        return wrong("another verdict without exact places".to_owned());
    }
    match (name.ends_with("_fixed"), found.races.is_empty()) {
        (true, true) => None,
        (true, false) => wrong(format!("races at {:?}", places(&found))),
        (false, true) => wrong("no race".to_owned()),
        (false, false) => {
            let elsewhere: Vec<String> = places(&found).difference(marked?).cloned().collect();
            if elsewhere.is_empty() { None } else { wrong(format!("races at {elsewhere:?}")) }
        }
    }
}

fn all_are_as_expected(program: &Path, threads: &str, marked: Option<&BTreeSet<String>>) {
    let wrong: Vec<String> =
        names(program).iter().filter_map(|name| mismatch(program, name, threads, marked)).collect();
    assert!(wrong.is_empty(), "{} mismatches:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn seeds_are_found_with_one_thread() {
    all_are_as_expected(&SEEDS, "1", Some(&marked()));
}

#[test]
fn seeds_are_found_with_two_threads() {
    all_are_as_expected(&SEEDS, "2", Some(&marked()));
}

#[test]
fn seeds_are_found_with_eight_threads() {
    all_are_as_expected(&SEEDS, "8", Some(&marked()));
}

/// What runs beside what is another thing in each run, and the verdict the same.
fn verdicts_do_not_depend_on_workers(program: &Path) {
    let mut wrong = Vec::new();
    for (workers, delays) in [(2, 0), (2, 1), (4, 2), (8, 3)] {
        for name in names(program) {
            let options = format!("workers={workers}:delays={delays}");
            if findings(program, &name, "2", &options).races.is_empty() != name.ends_with("_fixed") {
                wrong.push(format!("{name} with {options}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong verdicts:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn verdicts_do_not_depend_on_workers_in_development() {
    verdicts_do_not_depend_on_workers(&SEEDS);
}

#[test]
fn verdicts_do_not_depend_on_workers_in_optimised_programs() {
    verdicts_do_not_depend_on_workers(&OPTIMISED);
}

#[test]
fn optimised_seeds_are_found() {
    all_are_as_expected(&OPTIMISED, "2", None);
}

/// However few frames are known, what is shown is the user's, and what is said is in the words of rayon.
fn only_the_users_code_is_shown(program: &Path, lines_are_known: bool) {
    for name in names(program) {
        let found = findings(program, &name, "2", "");
        let mut symbols = Symbols::open(&found.process.executable).unwrap();
        let files = Files::new(&workspace(""), &found.process);
        let report = native::report(&found, &mut symbols, &files).unwrap();
        for side in report.races.iter().flat_map(|race| [&race.first, &race.second]) {
            let file = report.sources[side.place.source].name();
            // Where a task was created may be named from the root of the package, which the program does not tell.
            assert!(file.contains("src/bin/seeds/"), "{name}: a place in {file}");
            assert!(side.detail.stand_in.is_none() || !lines_are_known, "{name}: {side:?}");
        }
        let created = report.tasks.values().filter_map(|task| task.created.as_ref());
        for place in created {
            let file = report.sources[place.source].name();
            assert!(file.contains("src/bin/seeds/"), "{name}: a task of {file}");
        }
        let of_rayon =
            |kind| matches!(kind, TaskKind::Main | TaskKind::Join | TaskKind::Scope | TaskKind::Detached);
        if found.tasks.iter().all(|task| of_rayon(task.kind)) {
            let text = dagsan_report::text::render(&report);
            assert!(!text.contains("`sync`") && !text.contains("`finish`"), "{name}: {text}");
        }
    }
}

#[test]
fn only_the_users_code_is_shown_in_development() {
    only_the_users_code_is_shown(&SEEDS, true);
}

#[test]
fn only_the_users_code_is_shown_of_optimised_programs() {
    only_the_users_code_is_shown(&OPTIMISED, false);
}

#[test]
fn memory_of_workers_is_pointed_out() {
    use ScheduleDependent::{ThreadLocal, Worker};
    let expected = [
        ("slot_of_the_caller_fixed", Worker),
        ("slot_of_the_first_fixed", Worker),
        ("buffer_that_is_lent_fixed", ThreadLocal),
        ("buffer_in_a_static_fixed", ThreadLocal),
    ];
    for program in [&SEEDS, &OPTIMISED] {
        for (name, what) in expected {
            let uses = findings(program, name, "2", "").uses;
            assert!(
                !uses.schedule.is_empty() && uses.schedule.iter().all(|use_| use_.what == what),
                "{uses:?}"
            );
            assert!(!uses.locks && !uses.atomics, "{name}: {uses:?}");
        }
    }
    let none = findings(&SEEDS, "shared_scratch_fixed", "2", "").uses.schedule;
    assert_eq!(none, []);
}

#[test]
fn there_are_enough_of_them_and_each_has_a_twin() {
    let names: BTreeSet<String> = names(&SEEDS).into_iter().collect();
    let racy: Vec<&String> = names.iter().filter(|name| !name.ends_with("_fixed")).collect();
    assert!(racy.len() >= 25);
    assert!(racy.iter().all(|name| names.contains(&format!("{name}_fixed"))));
    assert_eq!(names.len(), 2 * racy.len());
}
