//! `--replay`: schedules that a report has named, and others.

use expect_test::expect;

use crate::FREE;
use crate::directory::Directory;
use crate::programs::{ASSERTION, EWAIT, HIDDEN, NEVER_SET, ORDER, PLAIN};

/// Every report that names a schedule says how to see it again. What it says is so.
#[test]
fn the_command_of_a_report_shows_the_same() {
    let files = [
        ("assertion.task", ASSERTION, 65),
        ("ewait.task", EWAIT, 66),
        ("hidden.task", HIDDEN, 66),
        ("never_set.task", NEVER_SET, 65),
        ("order.task", ORDER, 66),
    ];
    let directory = Directory::new("replay_named", &files.map(|(name, text, _)| (name, text)));
    for (name, _, code) in files {
        for engine in ["dag", "closure", "cg"] {
            let text = |arguments: &str| {
                let output = directory.run(&format!("{arguments} --engine {engine}"));
                assert_eq!(output.status.code(), Some(code), "{arguments} {engine}");
                String::from_utf8(output.stdout).unwrap()
            };
            let found = text(&format!("check {name}"));
            let (_, again) = found.split_once("to see it again: dagsan ").expect(&found);
            let again = again.lines().next().unwrap();
            assert!(again.starts_with(&format!("check {name} --replay ")), "{again}");
            let replayed = text(again);
            // The first line of a block: what was found; and the last line of the report: the verdict.
            for line in found.lines().filter(|line| line.starts_with(['r', 'e', 'd']) && line.contains(':')) {
                assert!(replayed.contains(line), "{again}: {line} is not in\n{replayed}");
            }
        }
    }
}

#[test]
fn a_replay_is_about_one_schedule() {
    let directory = Directory::new("replay", &[("x.task", HIDDEN), ("dead.task", NEVER_SET)]);
    directory.check(
        "check x.task --replay 1.0",
        expect![[r#"
        exit code 66
        --- standard output
        race[write-write]: parallel accesses to `x`
          --> x.task:11:24
           |
         8 |         async {
           |         ----- task 2 (async) is created here
        ...
        11 |             if first { x = 1; }
           |                        ^ (2) task 2 writes `x`
        12 |         }
        13 |         x = 2;
           |         ^ (1) task 0 writes `x`
           |
           = note: in schedule 1.0; to see it again: dagsan check x.task --replay 1.0
           = help: put the task of line 8 in a `finish` that ends before (1)

        1 race on x
    "#]],
    );
    directory.check(
        "check x.task --replay 0.0",
        expect![[r#"
        exit code 0
        --- standard output
        race-free: 3 tasks, 3 strands, every schedule of this input in this order of the isolated sections
    "#]],
    );
    directory.check(
        "check x.task --replay -",
        expect![[r#"
        exit code 0
        --- standard output
        race-free: 3 tasks, 3 strands, every schedule of this input in this order of the isolated sections
    "#]],
    );
    directory.check(
        "check dead.task --replay 1.0",
        expect![[r#"
        exit code 65
        --- standard output
        deadlock: no task can go on
         --> dead.task:9:5
          |
        9 |     get p;
          |     ^^^^^ task 0 waits for promise `p`
          |
          = help: find who should `set` or end what they wait for, and why it does not come to that

        note: in schedule 1.0; to see it again: dagsan check dead.task --replay 1.0
        deadlock: 1 of 3 tasks waits for ever, in this order of the isolated sections
    "#]],
    );
    let report = directory.json("check x.task --replay 1.0 --format json");
    assert_eq!((&report["schedule"], &report["schedules"]), (&"1.0".into(), &1.into()));
    assert_eq!(report["races"][0]["schedule"], "1.0");
    assert_eq!(report.get("states"), None);
}

/// After the last choice of the text, the first one is taken.
#[test]
fn the_rest_of_a_schedule_may_be_left_out() {
    let directory = Directory::new("replay_prefix", &[("x.task", HIDDEN)]);
    assert_eq!(directory.run("check x.task --replay 1").status.code(), Some(66));
    assert_eq!(directory.run("check x.task --replay 0").status.code(), Some(0));
}

#[test]
fn a_choice_that_the_program_does_not_have() {
    let directory = Directory::new("replay_impossible", &[("x.task", HIDDEN), ("ewait.task", EWAIT)]);
    directory.check(
        "check x.task --replay 9",
        expect![[r#"
            exit code 2
            --- standard output
            error: could not check x.task: schedule 9 is not one of this program: number 1 of it is 9, and the choices there are 0 to 1
        "#]],
    );
    directory.check(
        "check ewait.task --replay 2 --format json",
        expect![[r#"
            exit code 2
            --- standard output
            {
              "verdict": "error",
              "engine": "dag",
              "schedules": 0,
              "tasks": 0,
              "strands": 0,
              "races": [],
              "message": "schedule 2 is not one of this program: number 1 of it is 2, and the choices there are 0 to 1",
              "file": "ewait.task",
              "output": "",
              "version": 1
            }
        "#]],
    );
    assert_eq!(directory.run("check x.task --replay 9 --engine closure").status.code(), Some(2));
    assert_eq!(directory.run("check x.task --replay 9 --engine drdp").status.code(), Some(2));
}

/// What was found on the way to a choice that does not exist is no verdict.
#[test]
fn an_impossible_choice_after_a_race_is_still_an_error() {
    let directory = Directory::new("replay_race_impossible", &[("x.task", HIDDEN)]);
    for engine in ["dag", "closure"] {
        let output = directory.run(&format!("check x.task --replay 1.7 --engine {engine}"));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(2), "{engine}: {text}");
        assert!(!text.contains("race["), "{engine}: {text}");
    }
}

#[test]
fn a_text_that_is_no_schedule() {
    let directory = Directory::new("replay_bad", &[("x.task", HIDDEN)]);
    directory.check("check x.task --replay first", expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'first' for '--replay <SCHEDULE>': `first` is not a schedule: expected numbers with points between, as in 0.2.1

        For more information, try '--help'.
    "#]]);
    directory.check(
        "check x.task --replay 1 --schedules one",
        expect![[r#"
        exit code 2
        --- standard error
        error: the argument '--replay <SCHEDULE>' cannot be used with '--schedules <all|one|N>'

        Usage: dagsan check --replay <SCHEDULE> <FILE|DIR>...

        For more information, try '--help'.
    "#]],
    );
    for bad in ["", "1.", ".1", "1..2", "1,2", "0x1", "1.-2", "99999999999", "--replay"] {
        let output = directory.run(&format!("check x.task --replay {bad}"));
        assert_eq!(output.status.code(), Some(2), "{bad}");
        assert!(output.stdout.is_empty(), "{bad}");
    }
}

#[test]
fn a_program_without_choices_has_one_schedule() {
    let directory = Directory::new("replay_no_choices", &[("x.task", PLAIN), ("y.task", FREE)]);
    for name in ["x.task", "y.task"] {
        let text = |arguments: &str| String::from_utf8(directory.run(arguments).stdout).unwrap();
        let note = "note: the program has no isolated sections and no ewait: there is nothing to replay\n";
        let replayed = text(&format!("check {name} --replay -"));
        assert!(replayed.contains(note), "{replayed}");
        assert_eq!(replayed.replace(note, ""), text(&format!("check {name}")));
    }
    assert_eq!(directory.run("check x.task --replay - --engine esp-bags").status.code(), Some(66));
}

#[test]
fn an_engine_that_needs_the_serial_order_says_so() {
    let directory = Directory::new("replay_serial", &[("x.task", HIDDEN)]);
    directory.check(
        "check x.task --replay 1 --engine esp-bags",
        expect![[r#"
        exit code 2
        --- standard output
        error: could not check x.task: `esp-bags` judges the serial schedule only; replay with --engine dag
    "#]],
    );
}
