//! Programs of which more than one schedule is run: verdicts, engines, formats.

use std::fs;

use dagsan_core::order::ENGINES;
use expect_test::expect;
use serde_json::{Value, json};

use crate::ISOLATED;
use crate::directory::Directory;
use crate::programs::{ALWAYS, ASSERTION, DEPENDENT, EWAIT, HIDDEN, NEVER_SET, ORDER, PLAIN};

fn last_line(directory: &Directory, arguments: &str) -> (Option<i32>, String) {
    let output = directory.run(arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn a_race_that_needs_another_order_of_the_sections() {
    let directory = Directory::new("hidden", &[("x.task", HIDDEN), ("order.task", ORDER)]);
    directory.check(
        "check x.task",
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
        "check order.task",
        expect![[r#"
        exit code 66
        --- standard output
        race[write-write]: parallel accesses to `x`
         --> order.task:6:13
          |
        6 |     async { x = 1; isolated { lock = lock * 2; } }
          |     -----   ^ (1) task 1 writes `x`
          |     |
          |     task 1 (async) is created here
        7 |     isolated { lock = lock + 1; }
        8 |     x = 2;
          |     ^ (2) task 0 writes `x`
          |
          = note: in schedule 1.0; to see it again: dagsan check order.task --replay 1.0
          = help: put the task of line 6 in a `finish` that ends before (2)

        1 race on x
    "#]],
    );
    let (code, line) = last_line(&directory, "check x.task --schedules one");
    assert_eq!(code, Some(0));
    assert!(line.ends_with("every schedule of this input in this order of the isolated sections"), "{line}");
}

#[test]
fn a_race_that_needs_another_choice_of_ewait() {
    let directory = Directory::new("ewait", &[("x.task", EWAIT)]);
    directory.check(
        "check x.task",
        expect![[r#"
        exit code 66
        --- standard output
        1
        race[write-read]: parallel accesses to `x`
          --> x.task:5:15
           |
         5 | proc slow() { x = 1; return 1; }
           |               ^ (1) task 1 writes `x`
        ...
        10 |     post r <- slow();
           |     ---------------- task 1 (post `slow`) is created here
        ...
        13 |     print x;
           |           ^ (2) task 0 reads `x`
           |
           = note: in schedule 1; to see it again: dagsan check x.task --replay 1
           = help: `await` the region of the task of line 10 before (2)

        1 race on x
    "#]],
    );
    directory.check(
        "check x.task --schedules one",
        expect![[r#"
        exit code 0
        --- standard output
        1
        race-free: 3 tasks, 3 strands, every schedule of this input for this choice at ewait
    "#]],
    );
}

#[test]
fn every_engine_judges_as_it_can() {
    let files = [("hidden.task", HIDDEN), ("dependent.task", DEPENDENT), ("commute.task", ISOLATED)];
    let directory = Directory::new("engine_kinds", &files);
    let mut seen = String::new();
    for engine in ENGINES {
        for (file, _) in files {
            let (code, line) = last_line(&directory, &format!("check {file} --engine {}", engine.name));
            seen += &format!("{:<12} {} {line}\n", engine.name, code.unwrap());
        }
    }
    expect![[r#"
        dag          66 1 race on x
        dag          0 race-free: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all
        dag          0 race-free: 4 tasks, 3 strands, every schedule of this input: the isolated sections commute, one run is enough
        esp-bags     67 not-exhausted: 3 tasks, 3 strands, no race in what was seen; 1 schedule run, not all: the isolated sections may not commute, and `esp-bags` judges one order; --engine dag runs others
        esp-bags     67 not-exhausted: 3 tasks, 2 strands, no race in what was seen; 1 schedule run, not all: the isolated sections may not commute, and `esp-bags` judges one order; --engine dag runs others
        esp-bags     0 race-free: 4 tasks, 3 strands, every schedule of this input: the isolated sections commute, one run is enough
        multibags    67 not-exhausted: 3 tasks, 3 strands, no race in what was seen; 1 schedule run, not all: the isolated sections may not commute, and `multibags` judges one order; --engine dag runs others
        multibags    67 not-exhausted: 3 tasks, 2 strands, no race in what was seen; 1 schedule run, not all: the isolated sections may not commute, and `multibags` judges one order; --engine dag runs others
        multibags    0 race-free: 4 tasks, 3 strands, every schedule of this input: the isolated sections commute, one run is enough
        drdp         67 not-exhausted: 3 tasks, 3 strands, no race in what was seen; 1 schedule run, not all: the isolated sections may not commute, and `drdp` judges one order; --engine dag runs others
        drdp         67 not-exhausted: 3 tasks, 2 strands, no race in what was seen; 1 schedule run, not all: the isolated sections may not commute, and `drdp` judges one order; --engine dag runs others
        drdp         0 race-free: 4 tasks, 3 strands, every schedule of this input: the isolated sections commute, one run is enough
        sf-order     2 error: could not check hidden.task: engine `sf-order` does not support async/finish; these do: dag, esp-bags, multibags, drdp, vector-clock, closure, cg, cg-otf, zipper
        sf-order     2 error: could not check dependent.task: engine `sf-order` does not support async/finish; these do: dag, esp-bags, multibags, drdp, vector-clock, closure, cg, cg-otf, zipper
        sf-order     2 error: could not check commute.task: engine `sf-order` does not support async/finish; these do: dag, esp-bags, multibags, drdp, vector-clock, closure, cg, cg-otf, zipper
        vector-clock 66 1 race on x
        vector-clock 0 race-free: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all
        vector-clock 0 race-free: 4 tasks, 3 strands, every schedule of this input; 6 of them stand for all
        closure      66 1 race on x
        closure      0 race-free: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all
        closure      0 race-free: 4 tasks, 3 strands, every schedule of this input; 6 of them stand for all
        cg           66 1 race on x
        cg           0 race-free: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all
        cg           0 race-free: 4 tasks, 3 strands, every schedule of this input; 6 of them stand for all
        cg-otf       66 1 race on x
        cg-otf       0 race-free: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all
        cg-otf       0 race-free: 4 tasks, 3 strands, every schedule of this input; 6 of them stand for all
        zipper       66 1 race on x
        zipper       0 race-free: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all
        zipper       0 race-free: 4 tasks, 3 strands, every schedule of this input; 6 of them stand for all
    "#]].assert_eq(&seen);
}

#[test]
fn an_assertion_that_fails_in_some_schedule_only() {
    let directory = Directory::new("assertion", &[("x.task", ASSERTION)]);
    directory.check(
        "check x.task",
        expect![[r#"
        exit code 65
        --- standard output
        error: assertion failed
         --> x.task:8:12
          |
        8 |     assert n == 4;
          |            ^^^^^^ task 0

        note: in schedule 1.0; to see it again: dagsan check x.task --replay 1.0
        error: assertion failed (task 0, line 8); no race before it
    "#]],
    );
    assert_eq!(directory.run("check x.task --schedules one").status.code(), Some(0));
    let report = directory.json("check x.task --format json");
    assert_eq!((&report["verdict"], &report["schedule"]), (&json!("error"), &json!("1.0")));
    assert_eq!(report["errors"][0]["message"], "assertion failed");
    assert_eq!(report["schedules"], 2);
}

#[test]
fn a_deadlock_in_some_schedule_only() {
    let directory = Directory::new("never_set", &[("x.task", NEVER_SET)]);
    directory.check(
        "check x.task",
        expect![[r#"
        exit code 65
        --- standard output
        deadlock: no task can go on
         --> x.task:9:5
          |
        9 |     get p;
          |     ^^^^^ task 0 waits for promise `p`
          |
          = help: find who should `set` or end what they wait for, and why it does not come to that

        note: in schedule 1.0; to see it again: dagsan check x.task --replay 1.0
        deadlock: 1 of 3 tasks waits for ever
    "#]],
    );
    directory.check(
        "check x.task --format json",
        expect![[r#"
            exit code 65
            --- standard output
            {
              "verdict": "deadlock",
              "engine": "dag",
              "schedules": 2,
              "tasks": 3,
              "strands": 2,
              "races": [],
              "message": "1 of 3 tasks waits for ever",
              "file": "x.task",
              "output": "",
              "version": 1,
              "schedule": "1.0",
              "states": 3,
              "blocked": [
                {
                  "task": 0,
                  "line": 9,
                  "column": 5,
                  "waits_for": "promise `p`"
                }
              ]
            }
        "#]],
    );
    assert_eq!(directory.run("check x.task --schedules one").status.code(), Some(0));
}

#[test]
fn json_says_which_schedule_shows_a_race_and_how_many_states_there_were() {
    let directory = Directory::new("explored_json", &[("x.task", HIDDEN), ("y.task", DEPENDENT)]);
    directory.check(
        "check x.task --format json",
        expect![[r#"
            exit code 66
            --- standard output
            {
              "verdict": "race",
              "engine": "dag",
              "schedules": 2,
              "tasks": 3,
              "strands": 3,
              "races": [
                {
                  "location": "x",
                  "kind": "write-write",
                  "first": {
                    "line": 13,
                    "column": 9,
                    "task": 0
                  },
                  "second": {
                    "line": 11,
                    "column": 24,
                    "task": 2
                  },
                  "fingerprint": "f36768054d5c6991656d74bc56555263",
                  "schedule": "1.0"
                }
              ],
              "message": "1 race on x",
              "file": "x.task",
              "output": "",
              "version": 1,
              "states": 3
            }
        "#]],
    );
    directory.check(
        "check y.task --format json",
        expect![[r#"
            exit code 0
            --- standard output
            {
              "verdict": "race-free",
              "engine": "dag",
              "schedules": 2,
              "tasks": 3,
              "strands": 2,
              "races": [],
              "message": "3 tasks, 2 strands, every schedule of this input; 2 of them stand for all",
              "file": "y.task",
              "output": "4\n",
              "version": 1,
              "states": 3
            }
        "#]],
    );
}

#[test]
fn a_program_without_choices_has_no_keys_of_an_exploration() {
    let directory = Directory::new("no_choices", &[("x.task", PLAIN)]);
    let report = directory.json("check x.task --format json");
    for key in ["schedule", "states", "stopped"] {
        assert_eq!(report.get(key), None, "{key}");
    }
    let race = report["races"][0].as_object().unwrap();
    assert!(!race.contains_key("schedule") && !race.contains_key("witness"));
}

#[test]
fn several_files_are_explored_one_by_one() {
    let files = [
        ("always.task", ALWAYS),
        ("assertion.task", ASSERTION),
        ("dependent.task", DEPENDENT),
        ("ewait.task", EWAIT),
        ("hidden.task", HIDDEN),
        ("never_set.task", NEVER_SET),
        ("plain.task", PLAIN),
    ];
    let directory = Directory::new("several_explored", &files);
    directory.check("check .", expect![[r#"
        exit code 66
        --- standard output
        race          ./always.task: 1 race on x
        error         ./assertion.task: assertion failed (task 0, line 8); no race before it
        race-free     ./dependent.task: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all
        race          ./ewait.task: 1 race on x
        race          ./hidden.task: 1 race on x
        deadlock      ./never_set.task: 1 of 3 tasks waits for ever
        race          ./plain.task: 1 race on x
        7 files: 4 with races, 1 with errors, 1 race-free, 1 with deadlocks
    "#]]);
    directory.check(
        "check . --expect",
        expect![[r#"
            exit code 0
            --- standard output
            as expected   ./always.task: race x
            as expected   ./assertion.task: error assertion failed
            as expected   ./dependent.task: race-free
            as expected   ./ewait.task: race x
            as expected   ./hidden.task: race x
            as expected   ./never_set.task: deadlock
            as expected   ./plain.task: race x
            7 files: 7 as expected
        "#]],
    );
    directory.check(
        "check . --expect --engine closure",
        expect![[r#"
            exit code 0
            --- standard output
            as expected   ./always.task: race x
            as expected   ./assertion.task: error assertion failed
            as expected   ./dependent.task: race-free
            as expected   ./ewait.task: race x
            as expected   ./hidden.task: race x
            as expected   ./never_set.task: deadlock
            as expected   ./plain.task: race x
            7 files: 7 as expected
        "#]],
    );
    directory.check("check . --expect --engine esp-bags", expect![[r#"
        exit code 1
        --- standard output
        as expected   ./always.task: race x
        unexpected    ./assertion.task
            expected: error assertion failed
            found:    not-exhausted
        as expected   ./dependent.task: race-free
        skipped       ./ewait.task: engine `esp-bags` does not support regions; these do: dag, vector-clock, closure, cg, cg-otf
        unexpected    ./hidden.task
            expected: race x
            found:    not-exhausted
        skipped       ./never_set.task: engine `esp-bags` does not support promises; these do: dag, drdp, vector-clock, closure, cg, cg-otf
        as expected   ./plain.task: race x
        7 files: 3 as expected, 2 unexpected, 2 skipped
    "#]]);
    let reports = directory.json("check . --format json");
    let verdicts: Vec<&str> =
        reports.as_array().unwrap().iter().map(|report| report["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["race", "error", "race-free", "race", "race", "deadlock", "race"]);
}

#[test]
fn expectations_are_about_all_schedules() {
    let wrong = HIDDEN.replacen("race x", "race-free", 1);
    let directory = Directory::new("explored_expect", &[("x.task", &wrong), ("y.task", DEPENDENT)]);
    directory.check(
        "check x.task --expect",
        expect![[r#"
            exit code 1
            --- standard output
            unexpected    x.task
                expected: race-free
                found:    race x
        "#]],
    );
    assert_eq!(directory.run("check x.task --expect --schedules one").status.code(), Some(0));
    directory.check(
        "check y.task --expect --max-schedules 1",
        expect![[r#"
            exit code 1
            --- standard output
            unexpected    y.task
                expected: race-free
                found:    not-exhausted
        "#]],
    );
}

/// The run that shows the race ends where its state is that of the default run. It is a schedule all the same.
#[test]
fn a_race_in_a_run_that_was_merged_has_its_schedule() {
    let program = "\
shared t = 0;
shared x = 0;
proc main() {
    finish {
        async { var v = 0; isolated { v = t; } if v == 1 { x = 2; } }
        async { isolated { t = 1; } }
        async { x = 2; }
    }
    forall i in 0..1 { isolated { t = 5; } }
}
";
    let directory = Directory::new("explored_merged", &[("x.task", program)]);
    let report = directory.json("check x.task --format json");
    assert_eq!((&report["verdict"], &report["schedules"]), (&json!("race"), &json!(2)));
    let schedule = report["races"][0]["schedule"].as_str().expect("the race names its schedule");
    let replayed = directory.json(&format!("check x.task --format json --replay {schedule}"));
    assert_eq!(replayed["races"][0]["location"], "x");
}

#[test]
fn a_graph_is_of_one_schedule() {
    let directory = Directory::new("explored_graph", &[("x.task", HIDDEN)]);
    let racing = |arguments: &str| {
        let output = directory.run(arguments);
        assert_eq!(output.status.code(), Some(66), "{arguments}");
        let text = fs::read_to_string(directory.0.join("g.json")).unwrap();
        fs::remove_file(directory.0.join("g.json")).unwrap();
        let graph: Value = serde_json::from_str(&text).unwrap();
        let nodes = graph["nodes"].as_array().unwrap();
        nodes.iter().filter(|node| node["racing"] == true).count()
    };
    assert_eq!(racing("check x.task --graph g.json --replay 1.0"), 2);
    assert_eq!(racing("check x.task --graph g.json --replay 1.0 --engine closure"), 2);
    // Unless another one is asked for, the schedule that shows the first race is drawn.
    assert_eq!(racing("check x.task --graph g.json"), 2);
    let impossible = directory.run("check x.task --graph g.json --replay 9");
    assert_eq!((impossible.status.code(), directory.0.join("g.json").exists()), (Some(2), false));
}

#[test]
fn stats_of_an_exploration() {
    let directory = Directory::new("explored_stats", &[("x.task", DEPENDENT)]);
    let report = directory.json("check x.task --stats --format json");
    assert_eq!((&report["schedules"], &report["states"]), (&json!(2), &json!(3)));
    assert_eq!(report["stats"]["accesses"], 6);
    assert!(report["stats"]["run_ms"].as_f64().unwrap() > 0.0);
    let text = String::from_utf8(directory.run("check x.task --stats").stdout).unwrap();
    let last = "race-free: 3 tasks, 2 strands, every schedule of this input; 2 of them stand for all\n";
    assert!(text.contains("accesses to shared memory                          6\n"), "{text}");
    assert!(text.ends_with(last), "{text}");
}
