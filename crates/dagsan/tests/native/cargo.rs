//! `cargo dagsan run` and `build`: the report and the exit code, and that the user's settings are respected.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use crate::support::{EXAMPLES, Ran, cargo_dagsan, dagsan, package, run, target_directory, workspace};

fn run_example(options: &[&str], name: &str) -> Ran {
    let _built = &*EXAMPLES;
    let arguments = [options, &["run", "--quiet", "--bin", name]].concat();
    run(&mut cargo_dagsan(&workspace("examples/native"), &arguments))
}

/// The text, with words for what differs from run to run and from machine to machine.
fn normalised(text: &str) -> String {
    let findings = target_directory().join("dagsan/findings").display().to_string();
    let mut words = Vec::new();
    for word in text.split_inclusive([' ', '\n']) {
        let end = word.trim_end();
        words.push(if end.starts_with(&findings) { word.replace(end, "FINDINGS") } else { word.to_owned() });
    }
    words.concat().replace(&workspace("").display().to_string(), "DAGSAN/")
}

#[test]
fn a_race_is_shown_in_the_source() {
    let ran = run_example(&[], "missing_get");
    assert_eq!(ran.code, 66);
    assert!(
        ran.stdout.starts_with("the last square: 81\n"),
        "the program prints what it prints: {}",
        ran.stdout
    );
    expect![[r#"
        race[write-read]: parallel accesses to 8 bytes at offset 72 of a heap block of 80 bytes
          --> src/lib.rs:38:18
           |
        22 |         SharedVec { elements: (0..length).map(|_| UnsafeCell::new(value)).collect() }
           |                                                                           ------- the block is allocated here
        ...
        38 |         unsafe { *self.elements[index].get() }
           |                  ^^^^^^^^^^^^^^^^^^^^^^^^^ (2) task 0 reads 8 bytes
        ...
        44 |         unsafe { *self.elements[index].get() = value }
           |                  ^^^^^^^^^^^^^^^^^^^^^^^^^ (1) task 1 writes 8 bytes
           |
          ::: src/bin/missing_get.rs:20:28
           |
        20 |         let filled = scope.future(|_| {
           |                            ------ task 1 (future) is created here
           |
           = note: call stack of (1):
                     in <dagsan_examples::SharedVec<usize>>::set, src/lib.rs:44:18
                     called from missing_get::main::{closure#0}::{closure#0}, src/bin/missing_get.rs:22:25
           = note: call stack of (2):
                     in <dagsan_examples::SharedVec<usize>>::get, src/lib.rs:38:18
                     called from missing_get::main::{closure#0}, src/bin/missing_get.rs:27:28
                     … through libraries
                     called from missing_get::main, src/bin/missing_get.rs:19:5
           = help: `get` the future of src/bin/missing_get.rs:20 before (2)

        note: to see this again: dagsan report FINDINGS
        1 race on a heap block of 80 bytes
    "#]].assert_eq(&normalised(&ran.stderr));
}

#[test]
fn a_program_without_races_keeps_its_exit_code() {
    let ran = run_example(&[], "missing_get_fixed");
    assert_eq!(ran.code, 0);
    expect![[r#"
        race-free: 2 tasks, 2 strands, every schedule of this input
    "#]]
    .assert_eq(&normalised(&ran.stderr));
}

#[test]
fn the_options_of_the_runtime_are_listed_instead_of_a_run() {
    let _built = &*EXAMPLES;
    let arguments = ["run", "--quiet", "--bin", "missing_get"];
    let mut command = cargo_dagsan(&workspace("examples/native"), &arguments);
    let ran = run(command.env("DAGSAN_OPTIONS", "help=1"));
    assert_eq!(ran.code, 0);
    assert!(
        ran.stderr.starts_with("DAGSAN_OPTIONS is a list") && !ran.stderr.contains("warning"),
        "{}",
        ran.stderr
    );
}

/// The keys of an object, sorted.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn json_has_the_shape_that_the_task_language_has() {
    let native = run_example(&["--format", "json"], "promise_pipeline_racy");
    // What the program prints is there too, before the report.
    let (_, json) = native.stdout.split_once("\n{").unwrap();
    let native: Value = serde_json::from_str(&format!("{{{json}")).unwrap();
    let program = workspace("corpus/future_missing_get.task");
    let language = run(dagsan(&["check", "--format", "json"]).arg(program));
    let language: Value = serde_json::from_str(&language.stdout).unwrap();
    assert_eq!((&native["verdict"], &language["verdict"]), (&"race".into(), &"race".into()));
    let more = |native: &Value, language: &Value| {
        let (native, language) = (keys(native), keys(language));
        assert!(language.iter().all(|key| native.contains(key)), "{language:?} and {native:?}");
    };
    more(&native, &language);
    more(&native["races"][0], &language["races"][0]);
    more(&native["races"][0]["first"], &language["races"][0]["first"]);
}

#[test]
fn reports_go_to_a_file_if_one_is_named() {
    let package = package("output", "");
    let file = package.file("report.txt");
    let ran = run_example(&["--output", file.to_str().unwrap()], "missing_get");
    assert_eq!((ran.code, ran.stderr.as_str()), (66, ""));
    assert!(fs::read_to_string(file).unwrap().starts_with("race["));
}

#[test]
fn the_package_is_left_as_it_was() {
    let files = ["examples/native/Cargo.toml", "examples/native/Cargo.lock"].map(workspace);
    let read = || files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    let target = workspace("examples/native/target");
    let before = (read(), target.exists());
    run_example(&[], "missing_get_fixed");
    assert_eq!(before, (read(), target.exists()));
}

/// Prints what it was compiled with and what it sees.
const PROBE: &str = r#"
fn main() {
    println!("flag {}, dagsan {}", cfg!(mine), cfg!(dagsan));
    println!("build script: flag {}, dagsan {}", env!("SCRIPT_MINE"), env!("SCRIPT_DAGSAN"));
    println!("wrapper {:?}, runner {:?}", std::env::var("RUSTC_WRAPPER").ok(), std::env::var("RUNNER").ok());
    println!("session {:?}", std::env::var("DAGSAN_SESSION").ok());
}
"#;

const BUILD_SCRIPT: &str = r#"
fn main() {
    println!("cargo::rustc-env=SCRIPT_MINE={}", cfg!(mine));
    println!("cargo::rustc-env=SCRIPT_DAGSAN={}", cfg!(dagsan));
}
"#;

fn write_script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn flags_wrapper_and_runner_of_the_user_are_respected() {
    let _runtime = &*EXAMPLES;
    let package = package("settings", PROBE);
    fs::write(package.file("build.rs"), BUILD_SCRIPT).unwrap();
    let (wrapper, log) = (package.file("wrapper.sh"), package.file("log"));
    write_script(&wrapper, &format!("#!/bin/sh\necho \"$@\" >> {}\nexec \"$@\"\n", log.display()));
    let ran = run(cargo_dagsan(&package.0, &["run", "--quiet"])
        .env("RUSTFLAGS", "--cfg mine")
        .env("RUSTC_WRAPPER", &wrapper)
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "env RUNNER=mine"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let expected = format!(
        "flag true, dagsan true\nbuild script: flag false, dagsan false\nwrapper Some({:?}), runner Some(\"mine\")\n\
         session None\n",
        wrapper.display().to_string()
    );
    assert_eq!(ran.stdout, expected);
    let calls = fs::read_to_string(log).unwrap();
    let program = calls.lines().find(|call| call.contains("--crate-name x ")).unwrap();
    assert!(program.contains("--cfg mine") && program.contains("-Zsanitizer=thread"), "{program}");
    let script = calls.lines().find(|call| call.contains("--crate-name build_script_build ")).unwrap();
    assert!(!script.contains("-Zsanitizer=thread"), "{script}");
}

#[test]
fn a_program_that_does_not_compile_fails_as_with_cargo() {
    let _runtime = &*EXAMPLES;
    let package = package("broken", "fn main() { 1 + }\n");
    let ran = run(&mut cargo_dagsan(&package.0, &["build"]));
    assert_eq!(ran.code, 101);
    assert!(ran.stderr.contains("error: expected expression"), "{}", ran.stderr);
}
