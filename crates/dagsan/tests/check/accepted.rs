//! Suppressions and baselines: what does not count, what is said about it, and what is wrong with a file of them.

use std::fs;

use expect_test::expect;

use crate::directory::Directory;
use crate::schema::{assert_report, assert_sarif};
use crate::{FREE, MISSING_GET};

const SUPPRESSED: &str = "[[suppress]]\nreason = \"only shown\"\nvariable = \"a\"\n";

fn repository(name: &str, suppressions: &str) -> Directory {
    let files = [
        (".git/HEAD", ""),
        ("race.task", MISSING_GET),
        ("free.task", FREE),
        ("sub/race.task", MISSING_GET),
        ("dagsan.toml", suppressions),
    ];
    Directory::new(name, &files)
}

#[test]
fn a_suppressed_race_is_named_and_does_not_count() {
    let directory = repository("suppressed", SUPPRESSED);
    directory.check("check race.task", expect![[r#"
        exit code 0
        --- standard output
        sum 1
        accepted: 1 race on a[1] is suppressed by dagsan.toml:1 (only shown); no other race: 3 tasks, 3 strands, every schedule of this input
    "#]]);
    directory.check("check race.task free.task", expect![[r#"
        exit code 0
        --- standard output
        accepted      race.task: 1 race on a[1] is suppressed by dagsan.toml:1 (only shown); no other race: 3 tasks, 3 strands, every schedule of this input
        race-free     free.task: 2 tasks, 1 strand, every schedule of this input
        2 files: 1 with accepted races only, 1 race-free
    "#]]);
    let json = directory.json("check race.task --format json");
    assert_report(&json);
    assert_eq!((&json["verdict"], json["races"].as_array().unwrap().len()), (&"accepted".into(), 0));
    assert_eq!(json["accepted"][0]["accepted"]["suppressed"]["reason"], "only shown");
    assert_sarif(&directory.json("check race.task --format sarif"));
    // The file is found from below, and names there start at the root too.
    let inside = Directory(directory.0.join("sub"));
    assert_eq!(inside.run("check race.task").status.code(), Some(0));
}

#[test]
fn an_entry_that_matches_nothing_is_reported() {
    let other = SUPPRESSED.replace("\"a\"", "\"b*\"");
    let directory = repository("unmatched", &format!("# Ours.\n{other}\n{SUPPRESSED}"));
    directory.check("check race.task --format short", expect![[r#"
        exit code 0
        --- standard output
        race.task:6:18: race[write-read], suppressed: parallel accesses to `a[1]`: (1) task 2 writes, suppressed by dagsan.toml:6 (only shown); task 0 reads at race.task:9:19
        --- standard error
        warning: dagsan.toml:2 matched no race in this run: remove it if it is not needed any more
    "#]]);
}

#[test]
fn an_entry_of_another_file_matches_nothing_here() {
    let entry = "[[suppress]]\nreason = \"r\"\nvariable = \"a\"\nfile = \"sub/*.task\"\n";
    let directory = repository("by-file", entry);
    assert_eq!(directory.run("check race.task").status.code(), Some(66));
    assert_eq!(directory.run("check sub/race.task").status.code(), Some(0));
    fs::write(directory.0.join("dagsan.toml"), entry.replace("sub/*", "*")).unwrap();
    assert_eq!(directory.run("check race.task").status.code(), Some(0));
    assert_eq!(directory.run("check sub/race.task").status.code(), Some(66), "a star stays in its directory");
}

#[test]
fn names_and_lines_with_brackets_match_as_they_are() {
    let program = "proc main() {\n    let a = new [2];\n    finish { async { a[1] = 1; } a[1] = 2; }\n}\n";
    let entry = "[[suppress]]\nreason = \"r\"\n";
    let directory = Directory::new("brackets", &[(".git/HEAD", ""), ("[slug].task", program)]);
    for key in ["file = \"[slug].task\"", "allocation = \"let a = new [2];\"", "variable = \"a[1]\""] {
        fs::write(directory.0.join("dagsan.toml"), format!("{entry}{key}\n")).unwrap();
        assert_eq!(directory.run("check [slug].task").status.code(), Some(0), "{key}");
    }
    fs::write(directory.0.join("dagsan.toml"), format!("{entry}file = \"[slug].tas\"\n")).unwrap();
    assert_eq!(directory.run("check [slug].task").status.code(), Some(66));
}

#[test]
fn what_is_wrong_with_a_file_fails() {
    let directory = repository("expired", &format!("{SUPPRESSED}expires = 2001-02-03\n"));
    directory.check("check free.task", expect![[r#"
        exit code 2
        --- standard error
        error: dagsan.toml:1: this suppression expired on 2001-02-03: correct the race, or give it another date
    "#]]);
    fs::write(directory.0.join("dagsan.toml"), "[[suppress]]\nfunction = \"f\"\n").unwrap();
    directory.check(
        "check free.task",
        expect![[r#"
        exit code 2
        --- standard error
        error: dagsan.toml:1: missing field `reason`
    "#]],
    );
    fs::write(directory.0.join("dagsan.toml"), "[[suppress]\n").unwrap();
    directory.check(
        "check free.task",
        expect![[r#"
        exit code 2
        --- standard error
        error: dagsan.toml:1: unclosed array table, expected `]`
    "#]],
    );
    fs::write(directory.0.join("dagsan.toml"), "").unwrap();
    directory.check(
        "check free.task --suppressions gone.toml",
        expect![[r#"
        exit code 2
        --- standard error
        error: cannot read the suppressions gone.toml: No such file or directory (os error 2)
    "#]],
    );
}

#[test]
fn only_new_races_count_beside_a_baseline() {
    let directory = repository("baseline", "");
    directory.check(
        "check race.task --baseline known.json",
        expect![[r#"
        exit code 2
        --- standard error
        error: there is no baseline known.json: --update-baseline writes one, of the races of the run
    "#]],
    );
    directory.check("check race.task --baseline known.json --update-baseline", expect![[r#"
        exit code 0
        --- standard output
        sum 1
        accepted: 1 race on a[1] is in known.json; no other race: 3 tasks, 3 strands, every schedule of this input
    "#]]);
    expect![[r#"
        {
          "version": 1,
          "races": {
            "f564e63e0632f42164d3fdc6d991bdd9": "write-read | race.task: future g = { a[1] = 2; return 2; }; | race.task: a[2] = a[0] + a[1];"
          }
        }
    "#]].assert_eq(&fs::read_to_string(directory.0.join("known.json")).unwrap());
    // Moved lines are known, other races are new.
    let moved = MISSING_GET.replace("proc main", "\n\nproc main");
    fs::write(directory.0.join("race.task"), &moved).unwrap();
    assert_eq!(directory.run("check race.task --baseline known.json").status.code(), Some(0));
    let more = moved.replace("print \"sum\", u;", "print \"sum\", u; print a[1];");
    fs::write(directory.0.join("race.task"), more).unwrap();
    directory.check("check race.task --baseline known.json --format short", expect![[r#"
        exit code 66
        --- standard output
        race.task:8:18: race[write-read]: parallel accesses to `a[1]`: (1) task 2 writes; task 0 reads at race.task:10:27; help: `get` the future of line 8 before (2)
        --- standard error
        warning: 1 race of known.json did not come up in this run; --update-baseline forgets what is gone
    "#]]);
    directory.check(
        "check free.task --baseline known.json",
        expect![[r#"
        exit code 0
        --- standard output
        1
        race-free: 2 tasks, 1 strand, every schedule of this input
        --- standard error
        warning: 1 race of known.json did not come up in this run; --update-baseline forgets what is gone
    "#]],
    );
    fs::write(directory.0.join("known.json"), "{\"version\": 9, \"races\": {}}").unwrap();
    directory.check("check free.task --baseline known.json", expect![[r#"
        exit code 2
        --- standard error
        error: known.json is no baseline: it has version 9, and this is version 1: --update-baseline writes it again
    "#]]);
    directory.check(
        "check free.task --update-baseline",
        expect![[r#"
        exit code 2
        --- standard error
        error: the following required arguments were not provided:
          --baseline <FILE>

        Usage: dagsan check --baseline <FILE> --update-baseline <FILE|DIR>...

        For more information, try '--help'.
    "#]],
    );
}
