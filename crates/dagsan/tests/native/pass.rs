//! Our own pass inside the compiler: that it is used, that it is missed where it is not, and what it cannot see.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{
    Directory, OPTIMISED_POINTS, POINTS, cargo_dagsan, package, run, run_point, target_directory,
};

/// A linker that wants nothing preloaded.
const LINKER: &str = "#!/bin/sh\ntest -z \"$LD_PRELOAD\" && exec cc \"$@\"\n";

fn linker(directory: &Directory) -> std::path::PathBuf {
    let path = directory.file("linker");
    fs::write(&path, LINKER).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_doctor_shows_a_race_of_three_bytes() {
    // Builds in the same directory, with another linker: not before others have.
    let _built = (&*POINTS, &*OPTIMISED_POINTS);
    let package = package("doctor", "fn main() {}\n");
    let mut command = cargo_dagsan(&package.0, &["doctor"]);
    command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker(&package));
    let ran = run(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("dagsan's own pass; accesses of all sizes are seen"), "{}", ran.stderr);
    assert!(ran.stderr.contains("parallel accesses to 3 bytes"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("not seen"), "{}", ran.stderr);
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
fn assembly_that_is_given_a_pointer_is_told() {
    let (_, found) = run_point(&POINTS, "assembly_in_tasks", "");
    let found = found.unwrap();
    let unseen: Vec<(&str, u64)> =
        found.uses.unseen.iter().map(|unseen| (unseen.what.as_str(), unseen.count)).collect();
    assert_eq!(unseen, [("inline assembly", 3)]);
    assert!(!found.uses.odd_sizes_unseen);
}
