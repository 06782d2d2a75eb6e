//! Every format of `dagsan check`: valid by its schema, several at once, and what is said about bad arguments.

use std::fs;

use expect_test::expect;
use serde_json::Value;

use crate::directory::Directory;
use crate::schema::{assert_report, assert_sarif};
use crate::{BAD, DEADLOCK, FAILING, FREE, ISOLATED, MISSING_GET};

/// A repository of its own, so that names start here.
fn repository(name: &str) -> Directory {
    let files = [
        (".git/HEAD", ""),
        ("a/race.task", MISSING_GET),
        ("a/free.task", FREE),
        ("a/deadlock.task", DEADLOCK),
        ("a/failing.task", FAILING),
        ("a/bad.task", BAD),
        ("a/isolated.task", ISOLATED),
    ];
    Directory::new(name, &files)
}

#[test]
fn json_and_sarif_are_valid_for_every_verdict() {
    let directory = repository("valid");
    let all = directory.json("check a gone.task --format json --stats --witness");
    assert_eq!(all.as_array().unwrap().len(), 7);
    assert_report(&all);
    assert_report(&directory.json("check a/race.task --format json"));
    assert_report(&directory.json("check a --format json --expect"));
    let sarif = directory.json("check a gone.task --format sarif");
    assert_sarif(&sarif);
    let runs = sarif["runs"].as_array().unwrap();
    let verdicts: Vec<&str> = runs.iter().map(|run| run["properties"]["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["error", "deadlock", "error", "race-free", "race-free", "race", "error"]);
    let uri = &runs[5]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "a/race.task");
}

#[test]
fn the_corpus_is_valid_in_every_format() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
    let directory = Directory::new("valid-corpus", &[]);
    directory.run(&format!("check {corpus} --format short --report sarif=all.sarif --report json=all.json"));
    let read =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(directory.0.join(name)).unwrap()).unwrap() };
    let (sarif, json) = (read("all.sarif"), read("all.json"));
    assert!(json.as_array().unwrap().len() > 400);
    // One run for so many, with an invocation for each.
    assert_eq!(sarif["runs"].as_array().unwrap().len(), 1);
    let invocations = sarif["runs"][0]["invocations"].as_array().unwrap();
    assert_eq!(invocations.len(), json.as_array().unwrap().len());
    assert_sarif(&sarif);
    assert_report(&json);
}

#[test]
fn fingerprints_are_the_same_from_everywhere_and_after_lines_have_moved() {
    let directory = repository("fingerprints");
    let print = |arguments: &str| directory.json(arguments)["races"][0]["fingerprint"].clone();
    let before = print("check a/race.task --format json");
    fs::write(directory.0.join("a/race.task"), MISSING_GET.replace("proc main", "\n\nproc main")).unwrap();
    assert_eq!(print("check a/race.task --format json"), before);
    let inside = Directory(directory.0.join("a"));
    assert_eq!(inside.json("check race.task --format json")["races"][0]["fingerprint"], before);
    fs::write(directory.0.join("a/race.task"), MISSING_GET.replace("a[2] =", "a[3] =")).unwrap();
    assert_ne!(print("check a/race.task --format json"), before);
}

#[test]
fn short_and_github_have_a_line_per_finding() {
    let directory = repository("lines");
    directory.check("check a --format short", expect![[r#"
        exit code 2
        --- standard output
        a/bad.task:3:5: error: there is no variable `y` here
        a/bad.task:4:13: error: expected int, found bool
        a/deadlock.task:4:13: deadlock: task 1 waits for promise `p` for ever
        a/failing.task:4:11: error: division by zero (task 0)
        a/free.task: race-free: 2 tasks, 1 strand, every schedule of this input
        a/isolated.task: race-free: 4 tasks, 3 strands, every schedule of this input: the isolated sections commute, one run is enough
        a/race.task:6:18: race[write-read]: parallel accesses to `a[1]`: (1) task 2 writes; task 0 reads at a/race.task:9:19; help: `get` the future of line 6 before (2)
    "#]]);
    directory.check("check a/race.task a/free.task --format github", expect![[r#"
        exit code 66
        --- standard output
        ::error file=a/race.task,line=6,col=18,title=DagSan%3A race[write-read]::parallel accesses to `a[1]`: (1) task 2 writes%0A(2) task 0 reads at a/race.task:9:19%0Ahelp: `get` the future of line 6 before (2)%0Ain a/race.task
        ::notice file=a/race.task,line=9,col=19,title=DagSan%3A race[write-read]%2C the other access::(2) task 0 reads%0A(1) is at a/race.task:6:18
        dagsan: a/free.task: race-free: 2 tasks, 1 strand, every schedule of this input
    "#]]);
}

#[test]
fn several_files_are_written_at_once() {
    let directory = repository("several");
    let output = directory.run(
        "check a/race.task --report sarif=x.sarif --report json=x.json --report short=x.txt --report text=x.text --color always",
    );
    assert_eq!(output.status.code(), Some(66));
    assert!(String::from_utf8(output.stdout).unwrap().contains("\u{1b}["), "the terminal has its text");
    let read = |name: &str| fs::read_to_string(directory.0.join(name)).unwrap();
    assert_sarif(&serde_json::from_str(&read("x.sarif")).unwrap());
    let json: Value = serde_json::from_str(&read("x.json")).unwrap();
    assert_report(&json);
    assert!(json.is_array(), "a file has an array, however many there are");
    assert_eq!(read("x.txt").lines().count(), 1);
    assert!(read("x.text").starts_with("sum 1\nrace[write-read]: parallel accesses to `a[1]`"));
}

#[test]
fn bad_arguments_say_what_to_do() {
    let directory = repository("bad-reports");
    directory.check(
        "check a/free.task --format xml",
        expect![[r#"
            exit code 2
            --- standard error
            error: invalid value 'xml' for '--format <FORMAT>'
              [possible values: text, short, json, sarif, github, html]

              tip: a similar value exists: 'html'

            For more information, try '--help'.
        "#]],
    );
    directory.check("check a/free.task --report out.sarif", expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'out.sarif' for '--report <FORMAT=FILE>': say in which format: FORMAT=out.sarif, where FORMAT is one of text, short, json, sarif, github, html

        For more information, try '--help'.
    "#]]);
    directory.check(
        "check a/free.task --report sarif=out --report html=./out",
        expect![[r#"
        exit code 2
        --- standard error
        error: ./out is to be written twice: give each report a file of its own
    "#]],
    );
    // A program is none of the files that reports go to.
    directory.check(
        "check a/free.task --report json=a/free.task",
        expect![[r#"
        exit code 2
        --- standard error
        error: a/free.task is read, and would be written over: give each report a file of its own
    "#]],
    );
    directory.check(
        "check a/free.task --report sarif=no/such/out.sarif",
        expect![[r#"
        exit code 2
        --- standard error
        error: cannot write no/such/out.sarif: there is no directory no/such
    "#]],
    );
    // The verdict stands, and so do the others.
    directory.check(
        "check a/free.task --report sarif=/dev/full --report short=out.txt",
        expect![[r#"
        exit code 2
        --- standard output
        1
        race-free: 2 tasks, 1 strand, every schedule of this input
        --- standard error
        error: cannot write /dev/full: No space left on device (os error 28)
    "#]],
    );
    assert!(directory.0.join("out.txt").exists());
}

#[test]
fn baselines_and_suppressions_are_not_written_over() {
    let race =
        [("race.task", MISSING_GET), ("dagsan.toml", ""), ("known.json", "{\"version\":1,\"races\":{}}")];
    let directory = Directory::new("not-over", &race);
    let error = |line: &str| {
        let output = directory.run(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    let over = "is read, and would be written over: give each report a file of its own\n";
    assert!(error("check race.task --baseline known.json --report json=./known.json").ends_with(over));
    assert!(error("check race.task --report json=dagsan.toml").ends_with(over));
    let twice = error("check race.task --baseline new.json --update-baseline --report json=new.json");
    assert!(
        twice.ends_with("/new.json is to be written twice: give each report a file of its own\n"),
        "{twice}"
    );
    let nowhere = error("check race.task --baseline no/new.json --update-baseline");
    assert!(nowhere.contains("no/new.json: there is no directory "), "{nowhere}");
}
