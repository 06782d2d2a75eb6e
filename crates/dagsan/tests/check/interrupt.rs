//! Ctrl-C during an exploration that would take years.
//!
//! The line about the first file says that the command runs and listens. The interrupt then comes before or while
//! the second file is explored: the end is the same, so nothing here depends on how fast anything is, unless it
//! does not end at all.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::FREE;
use crate::directory::Directory;
use crate::programs::{MANY, PLAIN};

/// Much longer than it takes, much shorter than the exploration.
const PATIENCE: Duration = Duration::from_secs(60);

/// The exit code, and the lines after the first.
fn interrupted(directory: &Directory, first: &str, options: &str) -> (Option<i32>, String) {
    let arguments = format!("check {first} many.task --max-schedules 1000000000000 {options}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_dagsan"))
        .current_dir(&directory.0)
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains(first), "{line}");
    // Most likely in the midst of it now.
    thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None, "it is not to end by itself");
    // The shell's own `kill`: not every system has the program.
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(sent.success());

    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("not ended {PATIENCE:?} after the interrupt: {arguments}");
            }
        }
    };
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    (status.code(), rest)
}

#[test]
fn an_interrupt_ends_it_with_what_was_found() {
    let files = [("free.task", FREE), ("race.task", PLAIN), ("many.task", MANY)];
    let directory = Directory::new("interrupt", &files);
    for (first, options, code) in
        [("free.task", "", 67), ("free.task", "--engine closure", 67), ("race.task", "", 66)]
    {
        let (seen, rest) = interrupted(&directory, first, options);
        assert_eq!(seen, Some(code), "{first} {options}: {rest}");
        assert!(rest.starts_with("not-exhausted"), "{rest}");
        assert!(rest.contains("it was interrupted\n2 files: "), "{rest}");
    }
}
