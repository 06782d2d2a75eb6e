//! `dagsan report` and `dagsan explain` from end to end, on findings made by hand: formats, exit codes, bad files.

use std::fs;
use std::path::{Path, PathBuf};

use dagsan_findings::{
    End, Findings, Kind, Memory, Process, Race, Side, Stack, Stats, Task, TaskKind, Uses, VERSION,
};

use crate::support::{self, Directory, Ran, run};

fn write(directory: &Directory, findings: &Findings) -> PathBuf {
    let file = directory.file("findings.json");
    findings.write(&file).unwrap();
    file
}

fn findings(executable: &str, races: usize) -> Findings {
    let side = |task| Side {
        kind: Kind::Write,
        atomic: false,
        locked: false,
        shares_lock: false,
        task,
        stack: 0,
        nearby: false,
    };
    let race = |number: usize| Race {
        bytes: vec![(64 + 8 * number as u64, 8)],
        memory: Memory::Heap { start: 64, size: 80, stack: None },
        first: side(0),
        second: side(1),
        duplicates: 0,
        graph: None,
    };
    let task = |number, parent, kind| Task { number, parent, kind, created: None, stack: None };
    Findings {
        version: VERSION,
        process: Process {
            executable: executable.into(),
            arguments: vec!["-c".to_owned(), "exit 3".to_owned()],
            directory: std::env::temp_dir(),
            id: 1,
        },
        engine: "dag".to_owned(),
        end: End::Exited,
        code: None,
        races: (0..races).map(race).collect(),
        dropped_races: 0,
        tasks: vec![task(0, None, TaskKind::Main), task(1, Some(0), TaskKind::Future)],
        stacks: vec![Stack::default()],
        uses: Uses::default(),
        threads: Vec::new(),
        graphs: Vec::new(),
        stats: Stats { tasks: 2, strands: 3, ..Stats::default() },
    }
}

fn dagsan(action: &str, file: &Path, more: &[&str]) -> Ran {
    run(support::dagsan(&[action]).arg(file).args(more))
}

#[test]
fn findings_are_shown_again_with_their_verdict() {
    let directory = Directory::new("report");
    // The executable is gone: what is known without it is shown.
    let output = dagsan("report", &write(&directory, &findings("/gone", 2)), &[]);
    assert_eq!(output.code, 66);
    let shown = output.stdout;
    assert!(shown.starts_with(
        "race[write-write]: parallel accesses to 8 bytes at offset 0 of a heap block of 80 bytes"
    ));
    assert!(shown.contains("there are no names of functions: /gone: "), "{shown}");
    assert!(shown.ends_with("1 race on a heap block of 80 bytes\n"), "{shown}");

    let output = dagsan("report", &write(&directory, &findings("/gone", 0)), &["--format", "json"]);
    assert_eq!(output.code, 0);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&json["verdict"], &json["file"]), (&"race-free".into(), &"gone".into()));
}

#[test]
fn every_end_has_its_exit_code() {
    let directory = Directory::new("ends");
    for (end, code) in [
        (End::Deadlock(Vec::new()), 65),
        (End::CutShort("why".to_owned()), 67),
        (End::Refused("why".to_owned()), 2),
        (End::Broken("why".to_owned()), 70),
    ] {
        let mut findings = findings("/gone", 0);
        findings.end = end.clone();
        let output = dagsan("report", &write(&directory, &findings), &[]);
        assert_eq!(output.code, code, "{end:?}");
        findings.races = self::findings("/gone", 1).races;
        let output = dagsan("report", &write(&directory, &findings), &[]);
        assert_eq!(output.code, 66, "{end:?} after a race");
    }
}

#[test]
fn files_that_are_no_findings_are_errors_that_say_so() {
    let directory = Directory::new("bad");
    let error = |file: &Path| {
        let output = dagsan("report", file, &[]);
        assert_eq!(output.code, 2);
        output.stderr
    };
    assert!(error(&directory.0.join("none.json")).starts_with("error: "));
    let file = directory.0.join("odd.json");
    fs::write(&file, "{}").unwrap();
    assert!(error(&file).contains("does not hold findings"));
    fs::write(&file, r#"{"version": 999}"#).unwrap();
    assert!(error(&file).contains("written by another version of dagsan"));
    let mut damaged = findings("/gone", 1);
    damaged.stacks.clear();
    assert!(error(&write(&directory, &damaged)).contains("the findings are damaged"));
}

#[test]
fn a_program_that_leaves_nothing_the_second_time_cannot_be_explained() {
    let directory = Directory::new("explain");
    let output = dagsan("explain", &write(&directory, &findings("/bin/sh", 1)), &[]);
    assert_eq!(output.code, 2);
    let error = output.stderr;
    assert!(error.contains("the second run left no findings (exit status: 3)"), "{error}");
    let output = dagsan("explain", &write(&directory, &findings("/gone", 1)), &[]);
    assert!(output.stderr.contains("cannot run /gone again"));
}

#[test]
fn a_second_run_is_compared_with_the_first() {
    let directory = Directory::new("again");
    let again = directory.0.join("again.json");
    let mut first = findings("/bin/sh", 1);
    first.write(&again).unwrap();
    // It does what the runtime does: writes where it is told to, with the stacks that it was asked for.
    let script = format!("[ \"$DAGSAN_OPTIONS\" = stacks=1 ] && cp {} \"$DAGSAN_FINDINGS\"", again.display());
    first.process.arguments = vec!["-c".to_owned(), script];
    let file = write(&directory, &first);
    let output = dagsan("explain", &file, &[]);
    assert_eq!(output.code, 66, "{}", output.stderr);
    assert!(!output.stdout.contains("went another way"));
    findings("/bin/sh", 0).write(&again).unwrap();
    let output = dagsan("explain", &file, &[]);
    assert!(output.stdout.contains("racing bytes do not race there, 0 others do"));
    let left: Vec<_> = fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}
