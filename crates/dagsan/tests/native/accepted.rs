//! Suppressions and baselines of native programs: told by many processes, judged once.

use std::fs;

use crate::support::{Directory, EXAMPLES, POINTS, Ran, cargo_dagsan, run, workspace};

fn tests_with(options: &[&str], filter: &[&str]) -> Ran {
    let _built = &*POINTS;
    let arguments = [options, &["test", "--lib"], filter].concat();
    run(&mut cargo_dagsan(&workspace("tests/native"), &arguments))
}

#[test]
fn a_suppressed_test_passes_and_says_so() {
    let directory = Directory::new("suppressed");
    let file = directory.file("ours.toml");
    let entries = "[[suppress]]\nreason = \"one thread\"\nfunction = \"*Shared>::add\"\nfile = \"tests/native/src/*.rs\"\n\n\
                   [[suppress]]\nreason = \"gone\"\nfunction = \"gone\"\n";
    fs::write(&file, entries).unwrap();
    let ran = tests_with(&["--suppressions", file.to_str().unwrap()], &["racy"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let said = "test tests::racy ... ok (accepted: 1 race on a local of task 0 is suppressed by ";
    assert!(
        ran.stdout.contains(said) && ran.stdout.contains("(one thread); no other race: "),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("ours.toml:6 matched no race in this run"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("ours.toml:1 matched"), "{}", ran.stderr);

    fs::write(&file, format!("{entries}expires = 2001-02-03\n")).unwrap();
    let ran = tests_with(&["--suppressions", file.to_str().unwrap()], &["racy"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("this suppression expired on 2001-02-03") && ran.stdout.is_empty(),
        "{ran:?}"
    );
}

#[test]
fn a_known_race_does_not_count_and_a_failed_test_does() {
    let directory = Directory::new("known");
    let file = directory.file("known.json");
    let baseline = ["--baseline", file.to_str().unwrap()];
    let ran = tests_with(&baseline, &["racy"]);
    assert!(ran.code == 2 && ran.stderr.contains("--update-baseline writes one"), "{ran:?}");
    assert_eq!(tests_with(&[&baseline[..], &["--update-baseline"]].concat(), &["racy"]).code, 0);
    let ran = tests_with(&baseline, &["racy"]);
    assert!(ran.code == 0 && ran.stdout.contains("accepted: 1 race on a local of task 0 is in "), "{ran:?}");
    // Of all tests, one fails by itself.
    let ran = tests_with(&baseline, &[]);
    assert!(ran.code != 0 && ran.code != 66, "{ran:?}");
    assert!(ran.stdout.contains("4 passed; 1 failed; 0 racy; 1 deadlocked;"), "{}", ran.stdout);
}

#[test]
fn a_program_with_accepted_races_ends_well() {
    let _built = &*EXAMPLES;
    let directory = Directory::new("accepted-run");
    let file = directory.file("ours.toml");
    fs::write(&file, "[[suppress]]\nreason = \"shown\"\nallocation = \"*UnsafeCell::new(value)*\"\n")
        .unwrap();
    let arguments = ["--suppressions", file.to_str().unwrap(), "run", "--bin", "shared_histogram"];
    let ran = run(&mut cargo_dagsan(&workspace("examples/native"), &arguments));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("\naccepted: 1 race on a heap block of 16 bytes is suppressed by "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_program_with_accepted_races_keeps_its_exit_code() {
    let _built = &*POINTS;
    let directory = Directory::new("accepted-code");
    let file = directory.file("ours.toml");
    fs::write(&file, "[[suppress]]\nreason = \"shown\"\nfile = \"tests/native/src/**\"\n").unwrap();
    let arguments = ["--suppressions", file.to_str().unwrap(), "run", "--quiet", "--bin", "points", "--"];
    let arguments = [&arguments[..], &["exit_in_a_task_after_a_race"]].concat();
    let ran = run(&mut cargo_dagsan(&workspace("tests/native"), &arguments));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("accepted: 1 race on "), "{}", ran.stderr);
}
