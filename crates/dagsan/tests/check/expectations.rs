//! `--expect`, and exceptions to it.

use std::fs;

use expect_test::expect;

use crate::directory::Directory;
use crate::{BAD, DEADLOCK, FAILING, FREE, MISSING_GET};

#[test]
fn expectations_are_compared() {
    let files = [
        ("race.task", MISSING_GET),
        ("free.task", FREE),
        ("deadlock.task", DEADLOCK),
        ("failing.task", FAILING),
        ("bad.task", BAD),
    ];
    let directory = Directory::new("expected", &files);
    directory.check(
        "check . --expect",
        expect![[r#"
            exit code 0
            --- standard output
            as expected   ./bad.task: error expected int
            as expected   ./deadlock.task: deadlock
            as expected   ./failing.task: error division by zero
            as expected   ./free.task: race-free
            as expected   ./race.task: race a[1]
            5 files: 5 as expected
        "#]],
    );
    for (name, text) in [
        ("race.task", MISSING_GET.replacen("a[1]", "a[1], a[2]", 1)),
        ("free.task", FREE.replace("// expect: race-free\n", "")),
        ("failing.task", FAILING.replacen("by zero", "by one", 1)),
        ("deadlock.task", DEADLOCK.replacen("deadlock", "maybe", 1)),
    ] {
        fs::write(directory.0.join(name), text).unwrap();
    }
    directory.check(
        "check . --expect",
        expect![[r#"
            exit code 1
            --- standard output
            as expected   ./bad.task: error expected int
            unexpected    ./deadlock.task
                expected: `maybe` is none of: race LOCATION, …; race-free; deadlock; error TEXT
                found:    deadlock
            unexpected    ./failing.task
                expected: error division by one
                found:    error division by zero
            unexpected    ./free.task
                expected: a first line `// expect: …`
                found:    race-free
            unexpected    ./race.task
                expected: race a[1], a[2]
                found:    race a[1]
            5 files: 1 as expected, 4 unexpected
        "#]],
    );
    directory.check(
        "check bad.task --expect",
        expect![[r#"
            exit code 0
            --- standard output
            as expected   bad.task: error expected int
        "#]],
    );
    let report = directory.json("check race.task --expect --format json");
    assert_eq!(report["expected"], serde_json::json!({ "text": "race a[1], a[2]", "met": false }));
}

#[test]
fn exceptions_are_for_some_engines() {
    let files =
        [("x.task", MISSING_GET), ("exceptions.txt", "x.task  closure  race-free  # to see it fail\n")];
    let directory = Directory::new("exceptions", &files);
    directory.check(
        "check x.task --expect",
        expect![[r#"
            exit code 0
            --- standard output
            as expected   x.task: race a[1]
        "#]],
    );
    directory.check(
        "check x.task --expect --engine closure",
        expect![[r#"
            exit code 1
            --- standard output
            unexpected    x.task
                expected: race-free
                found:    race a[1]
        "#]],
    );
    fs::write(directory.0.join("exceptions.txt"), "y.task  dag  race-free  # gone\n").unwrap();
    directory.check(
        "check . --expect",
        expect![[r#"
        exit code 2
        --- standard error
        error: ./exceptions.txt speaks of y.task, which does not exist
    "#]],
    );
}
