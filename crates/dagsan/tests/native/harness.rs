//! `cargo dagsan test` on the tests of `tests/native`, of which there is one of each kind.

use crate::support::{POINTS, Ran, cargo_dagsan, limited, package, run, target_directory, workspace};

fn cargo_dagsan_test(options: &[&str], filter: &[&str]) -> Ran {
    let _built = &*POINTS;
    let arguments = [options, &["test", "--lib"], filter].concat();
    run(&mut cargo_dagsan(&workspace("tests/native"), &arguments))
}

#[test]
fn each_test_has_its_verdict() {
    let ran = cargo_dagsan_test(&[], &[]);
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    for line in [
        "running 6 tests",
        "test tests::clean ... ok (race-free: 5 tasks, ",
        "test tests::clean_without_tasks ... ok (no tasks)",
        "test tests::racy ... RACE (1 race on a local of task 0)",
        "test tests::panics_as_it_should ... ok (race-free: 2 tasks, ",
        "test tests::fails ... FAILED (race-free",
        "test tests::waits_for_ever ... DEADLOCK (1 of 2 tasks waits for ever)",
        "test result: FAILED. 3 passed; 1 failed; 1 racy; 1 deadlocked; 0 ignored; race-free with tasks: 2 of 3 passed",
    ] {
        assert!(ran.stdout.lines().any(|shown| shown.starts_with(line)), "no `{line}` in\n{}", ran.stdout);
    }
    let part = |heading: &str| {
        let (_, part) = ran.stdout.split_once(&format!("---- tests::{heading} ----\n")).unwrap();
        part.split("\n---- ").next().unwrap()
    };
    assert!(part("racy dagsan").contains("race[write-write]"), "{}", ran.stdout);
    assert!(part("fails output").starts_with("before it fails\n"), "{}", ran.stdout);
    assert!(part("waits_for_ever dagsan").contains("promise `never`"), "{}", ran.stdout);
}

#[test]
fn the_exit_code_is_that_of_the_tests_that_were_chosen() {
    let ran = cargo_dagsan_test(&[], &["clean"]);
    assert!(ran.code == 0 && ran.stdout.contains("test result: ok. 2 passed;"), "{ran:?}");
    assert_eq!(cargo_dagsan_test(&[], &["--", "--exact", "tests::racy"]).code, 66);
    assert_eq!(cargo_dagsan_test(&[], &["fails"]).code, 101);
}

#[test]
fn ignored_tests_are_named_and_run_if_they_are_asked_for() {
    let _runtime = &*POINTS;
    let source = format!(
        "#[test] fn runs() {{}}\n#[test] #[{}] fn broken() {{ panic!() }}\nfn main() {{}}\n",
        "ignore"
    );
    let package = package("ignored", &source);
    let ran = run(&mut cargo_dagsan(&package.0, &["test"]));
    assert!(ran.code == 0 && ran.stdout.contains("test broken ... ignored\n"), "{ran:?}");
    assert!(
        ran.stdout.contains("test result: ok. 1 passed; 0 failed; 0 racy; 0 deadlocked; 1 ignored;"),
        "{ran:?}"
    );
    let ran = run(&mut cargo_dagsan(&package.0, &["test", "--", "--include-ignored"]));
    assert!(ran.code == 101 && ran.stdout.contains("test broken ... FAILED (no tasks)\n"), "{ran:?}");
}

#[test]
fn json_goes_to_standard_output_and_the_rest_elsewhere() {
    let ran = cargo_dagsan_test(&["--format", "json"], &["clean"]);
    let reports = serde_json::Deserializer::from_str(&ran.stdout).into_iter::<serde_json::Value>();
    let verdicts: Vec<(String, String)> = reports
        .map(|report| report.unwrap_or_else(|error| panic!("{error} in\n{}", ran.stdout)))
        .map(|report| (report["file"].to_string(), report["verdict"].to_string()))
        .collect();
    let expected = [("clean", "race-free"), ("clean_without_tasks", "not-checked")];
    let expected = expected
        .map(|(test, verdict)| (format!("\"dagsan_native_tests::tests::{test}\""), format!("\"{verdict}\"")));
    assert_eq!(verdicts, expected);
    assert!(ran.stderr.contains("test tests::clean ... ok"), "{}", ran.stderr);
}

#[test]
fn other_test_binaries_run_after_a_race_if_they_are_asked_for() {
    let _runtime = &*POINTS;
    let package = package("no-fail-fast", "fn main() {}\n#[test] fn fails() { panic!() }\n");
    // Test binaries of one name would take each other's place in the target directory.
    let manifest = "[package]\nname = \"no-fail-fast\"\nedition = \"2024\"\n\n[workspace]\n";
    std::fs::write(package.file("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir_all(package.file("tests")).unwrap();
    std::fs::write(package.file("tests/other.rs"), "#[test] fn one() {}\n#[test] fn two() {}\n").unwrap();
    let ran = run(&mut cargo_dagsan(&package.0, &["test", "--jobs", "1"]));
    assert!(ran.code == 101 && !ran.stdout.contains("test two"), "{ran:?}");
    let ran = run(&mut cargo_dagsan(&package.0, &["test", "--no-fail-fast", "-j", "1"]));
    assert!(ran.code == 101 && ran.stdout.contains("test two ... ok (no tasks)"), "{ran:?}");
}

/// `script` gives it a terminal.
#[test]
fn terminals_show_how_many_tests_are_done() {
    let ran = cargo_dagsan_test(&[], &["clean"]);
    assert!(!ran.stderr.contains("of 2 tests") && !ran.stdout.contains("of 2 tests"), "{ran:?}");
    let line = format!("{} dagsan test --lib clean", env!("CARGO_BIN_EXE_cargo-dagsan"));
    let mut command = limited("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(workspace("tests/native"));
    command.env("CARGO_TARGET_DIR", target_directory()).env("TERM", "xterm").env_remove("NO_COLOR");
    let ran = run(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains(" of 2 tests, ") && ran.stdout.contains("test result: "), "{}", ran.stdout);
}
