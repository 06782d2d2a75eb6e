//! Code that clang compiles with DagSan's pass: races in C are found as those in Rust are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use dagsan_findings::{FINDINGS_FILE, Findings};

use crate::support::{Directory, cargo_dagsan, limited, run, target_directory, workspace};

const CLANG: &str = "clang-19";

/// Pairs of functions in `tests/c`, and how many bytes they share.
const PAIRS: [(&str, usize); 7] = [
    ("structure", 3),
    ("bits", BITS),
    ("vector", 32),
    ("loop", 160),
    ("copy", 40),
    ("choice", 4),
    ("other choice", 0),
];
/// The type has 24 bits, and is stored in 32.
const BITS: usize = 4;

/// Compiles the functions in C, and the program that calls them.
fn built(level: &str) -> PathBuf {
    let target = target_directory();
    let package = workspace("tests/c");
    let cargo = |arguments: &[&str], object: &Path| {
        let ran = run(cargo_dagsan(&package, arguments).env("DAGSAN_TEST_OBJECT", object));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    let object = target.join("accesses.o");
    cargo(&["setup"], &object);
    let pass = target.join("dagsan/runtime/pass/x86_64-unknown-linux-gnu/release/libdagsan_pass.so");
    let mut clang = Command::new(CLANG);
    clang.args([level, "-g", "-std=c2x", "-fsanitize=thread", "-fno-omit-frame-pointer", "-c", "-o"]);
    clang.arg(&object).arg(package.join("src/accesses.c")).env("LD_PRELOAD", pass);
    let output = clang.output().unwrap_or_else(|error| panic!("{CLANG} is needed: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cargo(&["build", "--quiet"], &object);
    target.join("dagsan/x86_64-unknown-linux-gnu/debug/dagsan-c-tests")
}

/// The bytes that race, and the exit code.
fn racy(program: &Path, name: &str, memory: &str) -> (usize, i32) {
    let directory = Directory::new(&format!("clang-{name}-{memory}"));
    let file = directory.file("findings.json");
    let ran = run(limited(program).args([name, memory]).env(FINDINGS_FILE, &file));
    let found = Findings::read(&file).unwrap_or_else(|error| panic!("{name}: {error}: {}", ran.stderr));
    let bytes = found.races.iter().flat_map(|race| &race.bytes);
    let bytes: BTreeSet<u64> = bytes.flat_map(|&(start, length)| start..start + length).collect();
    (bytes.len(), ran.code)
}

#[test]
fn races_in_c_are_found_whether_it_is_optimised_or_not() {
    // One after the other: it is the same program with another object.
    for level in ["-O0", "-O2"] {
        let program = built(level);
        for (name, bytes) in PAIRS {
            let code = if bytes == 0 { 0 } else { 66 };
            assert_eq!(racy(&program, name, "shared"), (bytes, code), "{name} {level}");
            assert_eq!(racy(&program, name, "apart"), (0, 0), "{name} {level}");
        }
    }
}
