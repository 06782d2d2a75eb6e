//! `dagsan explain` on a real program: a second run with whole call stacks, and one that goes another way.

use std::path::PathBuf;

use dagsan_findings::FINDINGS_FILE;

use crate::support::{Directory, EXAMPLES, POINTS, Ran, dagsan, limited, run};

/// Runs a behaviour that races, with a variable, and keeps its findings.
fn findings(directory: &Directory, name: &str, variable: &str) -> PathBuf {
    let file = directory.file("findings.json");
    let ran = run(limited(&*POINTS).arg(name).env(variable, "1").env(FINDINGS_FILE, &file));
    assert_eq!(ran.code, 66, "{ran:?}");
    file
}

fn explain(file: &PathBuf, options: &str) -> Ran {
    run(dagsan(&["explain", "--color", "never"]).arg(file).env("DAGSAN_OPTIONS", options))
}

#[test]
fn both_call_stacks_are_whole() {
    let directory = Directory::new("stacks");
    let file = findings(&directory, "race_below_three_functions", "UNUSED");
    let ran = explain(&file, "");
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    let frames =
        |function: &str| ran.stdout.matches(&format!("::race_below_three_functions::{function}")).count();
    for function in ["inner", "middle", "outer"] {
        assert_eq!(frames(function), 2, "{function} in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("went another way"), "{}", ran.stdout);
    // Options for the runtime are passed on.
    assert!(explain(&file, "speed=9").stderr.contains("no option `speed`"));
}

#[test]
fn a_document_is_all_that_is_on_standard_output() {
    let directory = Directory::new("document");
    let file = directory.file("findings.json");
    let first = run(limited(EXAMPLES.join("shared_histogram")).env(FINDINGS_FILE, &file));
    assert!(first.code == 66 && !first.stdout.is_empty(), "{first:?}");
    let ran = run(dagsan(&["explain", "--format", "sarif"]).arg(&file));
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["version"], "2.1.0");
    assert!(ran.stderr.contains(&first.stdout), "{}", ran.stderr);
}

#[test]
fn a_second_run_that_goes_another_way_is_told() {
    let directory = Directory::new("another-way");
    let file = findings(&directory, "race_if_asked_for", "RACE");
    let ran = explain(&file, "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = "went another way: 8 of 8 racing bytes do not race there, 0 others do";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
}
