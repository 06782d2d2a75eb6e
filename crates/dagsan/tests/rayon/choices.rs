//! Every program of `tests/rayon/src/bin/choices.rs` is told to depend on the schedule by the lines that say so, and by no
//! others, in both profiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use dagsan_findings::Findings;
use dagsan_report::native::{self, Files};
use dagsan_report::symbols::Symbols;

use crate::seeds::{findings, names};
use crate::support::{DEVELOPMENT, RELEASE, workspace};

const SOURCE: &str = "tests/rayon/src/bin/choices.rs";

/// The marked lines of each program.
fn marked() -> BTreeMap<String, BTreeSet<u32>> {
    let source = fs::read_to_string(workspace(SOURCE)).unwrap();
    let mut marked = BTreeMap::new();
    let mut program = String::new();
    for (number, line) in (1..).zip(source.lines()) {
        if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.strip_suffix("() {")) {
            program = name.to_owned();
            marked.insert(program.clone(), BTreeSet::new());
        } else if line.ends_with("// depends") {
            marked.get_mut(&program).unwrap().insert(number);
        }
    }
    marked
}

/// The lines that are told, and those that are told if a value is used: that is known where DagSan's own pass is loaded.
fn told(found: &Findings) -> [BTreeSet<u32>; 2] {
    assert_eq!(found.races, []);
    let mut symbols = Symbols::open(&found.process.executable).unwrap();
    let report = native::report(found, &mut symbols, &Files::new(&workspace(""), &found.process)).unwrap();
    let mut lines: [BTreeSet<u32>; 2] = Default::default();
    for dependence in report.native.unwrap().schedule {
        let (file, line, _) = dependence.at.clone().unwrap_or_else(|| panic!("no place: {dependence:?}"));
        assert_eq!(file, SOURCE, "{dependence:?}");
        lines[usize::from(dependence.if_used)].insert(line);
    }
    lines
}

fn all_say_what_they_depend_on(directory: &Path) {
    let (program, marked) = (directory.join("choices"), marked());
    let mut wrong = Vec::new();
    for name in names(&program) {
        let [told, perhaps] = told(&findings(&program, &name, "2", ""));
        let marked = &marked[&name];
        let found =
            told.is_subset(marked) && marked.iter().all(|line| told.contains(line) || perhaps.contains(line));
        if !found {
            wrong.push(format!("{name}: marked {marked:?}, told {told:?}, perhaps {perhaps:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} mismatches:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn choices_are_told() {
    all_say_what_they_depend_on(&DEVELOPMENT);
}

#[test]
fn choices_of_optimised_programs_are_told() {
    all_say_what_they_depend_on(&RELEASE);
}

#[test]
fn operations_are_named() {
    let found = findings(&DEVELOPMENT.join("choices"), "find_any", "2", "");
    let mut symbols = Symbols::open(&found.process.executable).unwrap();
    let report = native::report(&found, &mut symbols, &Files::new(&workspace(""), &found.process)).unwrap();
    let text = dagsan_report::text::headline(&report);
    let said = format!(
        "; the result may depend on the schedule: on which item is found first (`find_any` at {SOURCE}:"
    );
    assert!(text.contains(&said), "{text}");
}
