//! Our own pass inside the compiler: that it is used, that it is missed where it is not, and what it cannot see.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::{env, fs};

use dagsan_findings::{FINDINGS_FILE, Findings, Marks};

use crate::support::{Directory, POINTS, cargo_dagsan, limited, package, run, run_point, target_directory};

/// A linker that wants nothing preloaded.
const LINKER: &str = "#!/bin/sh\ntest -z \"$LD_PRELOAD\" && PATH=\"$OTHERS\" exec cc \"$@\"\n";

/// Puts the linker in front of all others. It is found by `PATH`, which cargo does not ask whether anything is to be
/// built again: by its setting for linkers, all that other tests run would be, while they run it.
fn with_linker(command: &mut Command, directory: &Directory) {
    let path = directory.file("cc");
    fs::write(&path, LINKER).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let others = env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{others}", directory.0.display())).env("OTHERS", others);
}

#[test]
fn the_doctor_shows_a_race_of_three_bytes() {
    let package = package("doctor", "fn main() {}\n");
    let mut command = cargo_dagsan(&package.0, &["doctor"]);
    with_linker(&mut command, &package);
    let ran = run(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("dagsan's own pass; accesses of all sizes are seen"), "{}", ran.stderr);
    assert!(ran.stderr.contains("parallel accesses to 3 bytes"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("not seen"), "{}", ran.stderr);
    for line in [
        "Toolchain rustc 1.",
        "Linker cc",
        "Memory there is room",
        "Directory ",
        "Clang clang-19: ",
        "Twin one task waits",
    ] {
        assert!(ran.stderr.contains(line), "no `{line}` in\n{}", ran.stderr);
    }
    assert!(ran.stderr.ends_with("its twin is free of races: DagSan works here\n"), "{}", ran.stderr);
}

#[test]
fn the_doctor_needs_no_package_and_says_what_to_do_about_clang() {
    let directory = Directory::new("doctor-elsewhere");
    let ran = run(cargo_dagsan(&directory.0, &["doctor"]).env("DAGSAN_CC", "no-such-clang"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said = "Clang no-such-clang is not there: install it (apt-get install clang-19), or name another clang by DAGSAN_CC; only";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("its twin is free of races: DagSan works here\n"), "{}", ran.stderr);
}

#[test]
fn without_the_pass_the_verdict_says_what_is_not_seen() {
    let package = package("without-pass", "fn main() {}\n");
    let mut command = cargo_dagsan(&package.0, &["doctor"]);
    // Everything there is compiled without it.
    command.env("CARGO_TARGET_DIR", target_directory().with_file_name("native-without-pass"));
    let ran = run(command.env("DAGSAN_PASS", "off"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("ThreadSanitizer's pass; "), "{}", ran.stderr);
    let verdict =
        "every schedule of this input; accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen\n";
    assert!(ran.stderr.contains(verdict), "{}", ran.stderr);
}

#[test]
fn assembly_that_is_given_an_address_is_told() {
    let (_, found) = run_point(&POINTS, "assembly_in_tasks", "");
    let found = found.unwrap();
    let unseen: Vec<(&str, u64)> =
        found.uses.unseen.iter().map(|unseen| (unseen.what.as_str(), unseen.count)).collect();
    assert_eq!(unseen, [("inline assembly", 3), ("inline assembly", 3)], "a pointer, and a number");
    assert!(!found.uses.odd_sizes_unseen);
}

#[test]
fn functions_of_the_library_that_nobody_knows_are_told() {
    let (_, found) = run_point(&POINTS, "library_unknown", "");
    let found = found.unwrap();
    let unseen: Vec<(&str, u64)> =
        found.uses.unseen.iter().map(|unseen| (unseen.what.as_str(), unseen.count)).collect();
    assert_eq!(unseen, [("`Command::status` of the standard library", 1)]);
}

/// A task adds to 1000 numbers; the same code runs before, when nothing can be parallel.
const COUNTED: &str = r#"use std::hint::black_box;
use std::panic::Location;

#[allow(improper_ctypes)]
unsafe extern "C" {
    safe fn __dagsan_finish_begin();
    safe fn __dagsan_finish_end();
    safe fn __dagsan_spawn(kind: u32, place: &'static Location<'static>, low: usize, high: usize) -> u64;
    safe fn __dagsan_task_end();
    safe fn __dagsan_resume(task: u64);
    safe fn __dagsan_current() -> u64;
}

#[inline(never)]
fn add_to_all(numbers: &mut [u64]) {
    numbers.iter_mut().for_each(|number| *number += 1);
}

fn main() {
    let numbers = black_box(vec![0; 1000]).leak();
    // The task runs below this.
    let below = 0;
    let here = black_box(&raw const below) as usize;
    add_to_all(numbers);
    __dagsan_finish_begin();
    let parent = __dagsan_current();
    __dagsan_spawn(0, Location::caller(), 0, here);
    add_to_all(numbers);
    __dagsan_task_end();
    __dagsan_resume(parent);
    __dagsan_finish_end();
}
"#;

/// Builds and runs it with `DAGSAN_COUNTS` and `DAGSAN_ELIM`: the line of its function, and what it has counted.
fn counted(eliminations: &str) -> (Vec<u64>, Marks) {
    let package = package(&format!("counted-{eliminations}"), COUNTED);
    let (file, found) = (package.file("counts"), package.file("found.json"));
    let directory = target_directory().with_file_name("native-counted");
    // Without vectors.
    let mut command =
        cargo_dagsan(&package.0, &["build", "--release", "--config", "profile.release.opt-level=1"]);
    command.env("CARGO_TARGET_DIR", &directory);
    let built = run(command.env("DAGSAN_COUNTS", &file).env("DAGSAN_ELIM", eliminations));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let mut command = limited(directory.join("dagsan/x86_64-unknown-linux-gnu/release/x"));
    let ran = run(command.env(FINDINGS_FILE, &found));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = fs::read_to_string(file).unwrap();
    let line = told.lines().find(|line| line.contains("10add_to_all")).unwrap();
    let numbers = line.split(' ').map_while(|word| word.parse().ok()).collect();
    (numbers, Findings::read(&found).unwrap().stats.marks.unwrap())
}

#[test]
fn accesses_and_marks_are_counted_in_the_code_and_in_tasks() {
    // In place, covered, merged, sunk, other; marks in line, ranges.
    let (code, executed) = counted("none");
    assert_eq!(code, [2, 0, 0, 0, 0, 2, 0]);
    assert_eq!((executed.in_place, executed.in_line, executed.ranges), (2000, 2000, 0));
    let (code, executed) = counted("all");
    assert_eq!(code, [0, 1, 0, 1, 0, 0, 1]);
    assert_eq!((executed.covered, executed.sunk), (1000, 1000));
    assert_eq!((executed.in_line, executed.ranges), (0, 1));
}
