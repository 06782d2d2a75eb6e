//! Explorations that are cut short, and limits that mean nothing.

use expect_test::expect;

use crate::directory::Directory;
use crate::programs::{ALWAYS, ASSERTION, DEPENDENT, EWAIT, HIDDEN, MANY, PLAIN};
use crate::{FREE, ISOLATED};

#[test]
fn the_number_of_schedules_is_limited() {
    let directory = Directory::new("max_schedules", &[("x.task", DEPENDENT), ("many.task", MANY)]);
    directory.check("check x.task --max-schedules 1", expect![[r#"
        exit code 67
        --- standard output
        4
        not-exhausted: 3 tasks, 2 strands, no race in what was seen; 1 schedule run, not all: no more were asked for (--schedules, --max-schedules)
    "#]]);
    directory.check("check x.task --max-schedules 1 --format json", expect![[r#"
        exit code 67
        --- standard output
        {
          "verdict": "not-exhausted",
          "engine": "dag",
          "schedules": 1,
          "tasks": 3,
          "strands": 2,
          "races": [],
          "message": "3 tasks, 2 strands, no race in what was seen; 1 schedule run, not all: no more were asked for (--schedules, --max-schedules)",
          "file": "x.task",
          "output": "4\n",
          "version": 1,
          "states": 2,
          "stopped": "no more were asked for (--schedules, --max-schedules)"
        }
    "#]]);
    directory.check("check many.task --max-schedules 50", expect![[r#"
        exit code 67
        --- standard output
        not-exhausted: 10 tasks, 18 strands, no race in what was seen; 50 schedules run, not all: no more were asked for (--schedules, --max-schedules)
    "#]]);
    directory.check("check many.task --max-schedules 50 --engine closure", expect![[r#"
        exit code 67
        --- standard output
        not-exhausted: 10 tasks, 18 strands, no race in what was seen; 50 schedules run, not all: no more were asked for (--schedules, --max-schedules)
    "#]]);
    for enough in ["--max-schedules 2", "--schedules 2", "--schedules all"] {
        assert_eq!(directory.run(&format!("check x.task {enough}")).status.code(), Some(0), "{enough}");
    }
    for cut in ["--schedules 1", "--schedules 1 --max-schedules 9", "--schedules 9 --max-schedules 1"] {
        let report = directory.json(&format!("check x.task --format json {cut}"));
        assert_eq!((&report["verdict"], &report["schedules"]), (&"not-exhausted".into(), &1.into()), "{cut}");
        assert!(report["stopped"].is_string(), "{cut}");
    }
}

#[test]
fn the_time_is_limited() {
    let directory = Directory::new("max_time", &[("x.task", HIDDEN), ("many.task", MANY)]);
    let output = directory.run("check x.task --max-time 0");
    assert_eq!(output.status.code(), Some(67));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("not-exhausted: "), "{text}");
    assert!(text.ends_with("the time of 0 s was up; raise it with --max-time\n"), "{text}");
    let report = directory.json("check many.task --max-time 1 --max-schedules 1000000000 --format json");
    assert_eq!(report["verdict"], "not-exhausted");
    assert_eq!(report["stopped"], "the time of 1 s was up; raise it with --max-time");
    assert!(report["schedules"].as_u64().unwrap() > 0);
}

#[test]
fn what_was_found_before_a_limit_counts() {
    let directory = Directory::new("found_before", &[("x.task", ALWAYS), ("fails.task", ASSERTION)]);
    directory.check(
        "check x.task --max-schedules 1",
        expect![[r#"
            exit code 66
            --- standard output
            race[write-write]: parallel accesses to `x`
              --> x.task:5:13
               |
             5 |     async { x = 1; }
               |     -----   ^ (1) task 1 writes `x`
               |     |
               |     task 1 (async) is created here
            ...
            10 |     x = n;
               |     ^ (2) task 0 writes `x`
               |
               = help: put the task of line 5 in a `finish` that ends before (2)

            1 race on x; 1 schedule run, not all: no more were asked for (--schedules, --max-schedules)
        "#]],
    );
    directory.check("check x.task --schedules 1 --engine vector-clock --format json", expect![[r#"
        exit code 66
        --- standard output
        {
          "verdict": "race",
          "engine": "vector-clock",
          "schedules": 1,
          "tasks": 4,
          "strands": 4,
          "races": [
            {
              "location": "x",
              "kind": "write-write",
              "first": {
                "line": 5,
                "column": 13,
                "task": 1
              },
              "second": {
                "line": 10,
                "column": 5,
                "task": 0
              },
              "fingerprint": "53c5283591fbe5c73a99c58fbdb240b0"
            }
          ],
          "message": "1 race on x; 1 schedule run, not all: no more were asked for (--schedules, --max-schedules)",
          "file": "x.task",
          "output": "",
          "version": 1,
          "states": 2,
          "stopped": "no more were asked for (--schedules, --max-schedules)"
        }
    "#]]);
    assert_eq!(directory.run("check fails.task --max-schedules 1").status.code(), Some(67));
    assert_eq!(directory.run("check fails.task --max-schedules 2").status.code(), Some(65));
}

#[test]
fn one_schedule_is_no_limit_where_one_is_enough() {
    let files = [("commute.task", ISOLATED), ("free.task", FREE), ("plain.task", PLAIN)];
    let directory = Directory::new("one_enough", &files);
    for (file, code) in [("commute.task", 0), ("free.task", 0), ("plain.task", 66)] {
        for limit in ["--schedules 1", "--schedules one", "--max-schedules 1"] {
            let output = directory.run(&format!("check {file} {limit}"));
            assert_eq!(output.status.code(), Some(code), "{file} {limit}");
        }
    }
    directory.check(
        "check commute.task --schedules one",
        expect![[r#"
        exit code 0
        --- standard output
        race-free: 4 tasks, 3 strands, every schedule of this input in this order of the isolated sections
    "#]],
    );
    // Time and schedules are for explorations: these have none.
    assert_eq!(directory.run("check free.task --max-time 0").status.code(), Some(0));
    assert_eq!(directory.run("check plain.task --max-time 0").status.code(), Some(66));
}

#[test]
fn of_several_files_a_cut_counts_less_than_a_race_and_more_than_nothing() {
    let files = [("ewait.task", EWAIT), ("many.task", MANY), ("free.task", FREE), ("fails.task", ASSERTION)];
    let directory = Directory::new("cut_among_others", &files);
    for (names, code) in [
        ("many.task free.task", 67),
        ("free.task many.task ewait.task", 66),
        ("many.task fails.task", 65),
        ("many.task gone.task", 2),
    ] {
        let output = directory.run(&format!("check {names} --max-schedules 5"));
        assert_eq!(output.status.code(), Some(code), "{names}");
    }
    let output = directory.run("check many.task free.task --max-schedules 5");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("2 files: 1 not exhausted, 1 race-free\n"), "{text}");
}

/// A limit of nothing at all is refused, or nothing is claimed: never "race-free".
#[test]
fn no_schedule_at_all_proves_nothing() {
    let directory = Directory::new("no_schedule", &[("x.task", HIDDEN)]);
    for arguments in ["check x.task --max-schedules 0", "check x.task --max-schedules 0 --engine closure"] {
        let output = directory.run(arguments);
        assert!(matches!(output.status.code(), Some(2 | 67)), "{arguments}: {:?}", output.status);
    }
}

#[test]
fn limits_that_mean_nothing_are_refused() {
    let directory = Directory::new("bad_limits", &[("x.task", FREE)]);
    directory.check(
        "check x.task --schedules some",
        expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'some' for '--schedules <all|one|N>': expected all, one or a number of schedules

        For more information, try '--help'.
    "#]],
    );
    directory.check(
        "check x.task --schedules 0",
        expect![[r#"
        exit code 2
        --- standard error
        error: invalid value '0' for '--schedules <all|one|N>': expected all, one or a number of schedules

        For more information, try '--help'.
    "#]],
    );
    directory.check(
        "check x.task --schedules=-1",
        expect![[r#"
        exit code 2
        --- standard error
        error: invalid value '-1' for '--schedules <all|one|N>': expected all, one or a number of schedules

        For more information, try '--help'.
    "#]],
    );
    directory.check(
        "check x.task --schedules ",
        expect![[r#"
        exit code 2
        --- standard error
        error: invalid value '' for '--schedules <all|one|N>': expected all, one or a number of schedules

        For more information, try '--help'.
    "#]],
    );
    for bad in [
        "--schedules 99999999999999999999",
        "--schedules 1.5",
        "--schedules ONE",
        "--schedules",
        "--max-schedules many",
        "--max-schedules=-1",
        "--max-schedules 1e6",
        "--max-time long",
        "--max-time=-1",
        "--max-time 99999999999999999999",
        "--max-steps few",
    ] {
        let output = directory.run(&format!("check x.task {bad}"));
        assert_eq!(output.status.code(), Some(2), "{bad}");
        assert!(output.stdout.is_empty(), "{bad}");
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: "), "{bad}");
    }
    // The largest number is no special case.
    for most in ["--max-time", "--max-schedules", "--max-steps", "--schedules"] {
        let output = directory.run(&format!("check x.task {most} {}", u64::MAX));
        assert_eq!(output.status.code(), Some(0), "{most}");
    }
}
