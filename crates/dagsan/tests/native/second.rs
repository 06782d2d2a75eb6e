//! The second run of programs with races: exact places, what the program prints and reads, and one that goes another way.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Directory, POINTS, Ran, cargo_dagsan, run, workspace};

/// `cargo dagsan run` of a point.
fn command(name: &str, options: &str) -> Command {
    let _built = &*POINTS;
    let package = workspace("tests/native");
    let mut command = cargo_dagsan(&package, &["run", "--quiet", "--bin", "points", "--", name]);
    command.env("DAGSAN_OPTIONS", options);
    command
}

/// The lines of the source that a report shows: `38 |  …`.
fn shows(ran: &Ran, code: &str) -> bool {
    ran.stderr.lines().any(|line| line.contains('|') && line.contains(code))
}

#[test]
fn the_places_of_a_line_are_those_of_its_bytes() {
    let ran = run(&mut command("line_of_three_writes", ""));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    assert!(
        shows(&ran, "store!(LINE.words[2], 1)") && shows(&ran, "store!(LINE.words[2], 2)"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("nearby") && !ran.stderr.contains("another way"), "{}", ran.stderr);
    // One run knows the first place of the line, and says so.
    let ran = run(&mut command("line_of_three_writes", "sites=line"));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    assert!(ran.stderr.contains("here or nearby") && ran.stderr.contains("dagsan explain"), "{}", ran.stderr);
    assert!(!shows(&ran, "store!(LINE.words[2], 1)"), "{}", ran.stderr);
    let ran = run(&mut command("line_of_three_writes", "sites=exact"));
    assert!(shows(&ran, "store!(LINE.words[2], 1)") && !ran.stderr.contains("nearby"), "{}", ran.stderr);
}

#[test]
fn both_reports_are_shown_if_the_second_run_goes_another_way() {
    let directory = Directory::new("second-counter");
    let counter = directory.file("counter");
    let ran = run(command("race_the_first_time", "").env("COUNTER", &counter));
    assert_eq!((ran.code, ran.stdout.as_str()), (66, "it runs\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("8 of 8 racing bytes do not race there, 0 others do"), "{}", ran.stderr);
    assert!(ran.stderr.contains("race[write-write]"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the second run went another way, and found no race:"), "{}", ran.stderr);
    // In one run there is nothing to compare.
    fs::remove_file(&counter).unwrap();
    let ran = run(command("race_the_first_time", "sites=exact").env("COUNTER", &counter));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    assert!(!ran.stderr.contains("another way") && !ran.stderr.contains("nearby"), "{}", ran.stderr);
    // Without a race there is no second run.
    let ran = run(command("race_the_first_time", "").env("COUNTER", &counter));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "it runs\n"), "{}", ran.stderr);
}

#[test]
fn the_second_run_reads_the_same_input() {
    let directory = Directory::new("second-input");
    let file = directory.file("input");
    fs::write(&file, "skipped\nfirst\nrace\nlast\n").unwrap();
    // From a file, where whoever had it before has stopped, and from a pipe.
    let mut from_file = File::open(&file).unwrap();
    std::io::Seek::seek(&mut from_file, std::io::SeekFrom::Start(8)).unwrap();
    let (from_pipe, mut to) = std::io::pipe().unwrap();
    to.write_all(b"first\nrace\nlast\n").unwrap();
    drop(to);
    for input in [Stdio::from(from_file), Stdio::from(from_pipe)] {
        let ran = run(command("race_of_the_input", "").stdin(input));
        assert_eq!((ran.code, ran.stdout.as_str()), (66, "3 lines\n"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("another way") && !ran.stderr.contains("nearby"), "{}", ran.stderr);
    }
    let ran = run(command("race_of_the_input", "").stdin(Stdio::null()));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "0 lines\n"), "{}", ran.stderr);
}

/// A pipe that nobody closes, and that the program does not read, keeps nobody waiting.
#[test]
fn an_input_without_an_end_does_no_harm() {
    let (from, to) = std::io::pipe().unwrap();
    let ran = run(command("line_of_bytes", "").stdin(Stdio::from(from)));
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    assert!(shows(&ran, "store!(LINE.bytes[63], 1)"), "{}", ran.stderr);
    drop(to);
}
