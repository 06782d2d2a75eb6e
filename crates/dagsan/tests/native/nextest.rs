//! `cargo dagsan nextest run`, with a program in the place of cargo-nextest that does what its documentation says: it builds with `cargo test --no-run`, and
//! starts each test binary behind cargo's runner, to list its tests, and then once for each.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Directory, POINTS, cargo_dagsan, run, workspace};

/// Its own command is the first two arguments. The runner is the program that is rustc's wrapper.
const NEXTEST: &str = r#"#!/bin/sh
test "$1 $2" = "nextest run" || exit 97
shift 2
for executable in $(cargo test --no-run --message-format=json --quiet "$@" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'); do
    for name in $("$RUSTC_WRAPPER" --dagsan-runner "$executable" --list --format terse | sed -n 's/: test$//p'); do
        "$RUSTC_WRAPPER" --dagsan-runner "$executable" --exact "$name" --nocapture || failed=yes
    done
done
test -z "$failed" || exit 100
"#;

#[test]
fn each_test_has_its_verdict() {
    let _built = &*POINTS;
    let directory = Directory::new("nextest");
    let program = directory.file("cargo-nextest");
    fs::write(&program, NEXTEST).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let report = format!("json={}", directory.file("x.json").display());
    let path = format!("{}:{}", directory.0.display(), std::env::var("PATH").unwrap());
    let arguments = ["--report", &report, "nextest", "run", "--lib"];
    let ran = run(cargo_dagsan(&workspace("tests/native"), &arguments).env("PATH", &path));
    assert_eq!(ran.code, 66, "{}{}", ran.stdout, ran.stderr);
    for line in [
        "test tests::clean ... ok (race-free: 5 tasks, ",
        "test tests::racy ... RACE (1 race on a local of task 0)",
    ] {
        assert!(ran.stdout.contains(line), "no `{line}` in\n{}{}", ran.stdout, ran.stderr);
    }
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.file("x.json")).unwrap()).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 6, "one report per test, and none for the lists");

    let ran = run(cargo_dagsan(&workspace("tests/native"), &["nextest", "list"]).env("PATH", &path));
    assert!(ran.code == 2 && ran.stderr.contains("say `cargo dagsan nextest run`"), "{ran:?}");
}
