//! `--witness`: both orders of the accesses of a race.

use expect_test::expect;
use serde_json::json;

use crate::directory::Directory;
use crate::programs::{DEPENDENT, EWAIT, HIDDEN, PLAIN};

const BENIGN: &str = "shared x;\nproc main() { finish { async { x = 1; } x = 1; } }\n";
/// The second write of `x` is made only if the first one was, and the flag after it.
const CONDITIONAL: &str = "\
shared x;
shared flag;
proc main() {
    finish {
        async { x = 1; flag = 1; }
        async { if flag == 1 { x = 2; } }
    }
}
";
/// Memory, output and end depend on who is first.
const FATAL: &str = "\
shared x;
proc main() {
    finish {
        async { x = 1; }
        x = 2;
    }
    print x;
    print 8 / (x - 2);
}
";

#[test]
fn what_differs_is_shown() {
    let directory = Directory::new("differs", &[("x.task", PLAIN), ("fatal.task", FATAL)]);
    directory.check("check x.task --witness", expect![[r#"
        exit code 66
        --- standard output
        2
        race[write-write]: parallel accesses to `x`
         --> x.task:5:17
          |
        5 |         async { x = 1; }
          |         -----   ^ (1) task 1 writes `x`
          |         |
          |         task 1 (async) is created here
        6 |         x = 2;
          |         ^ (2) task 0 writes `x`
          |
          = note: both orders were run: (1) before (2): x = 2, output = "2"; (2) before (1): x = 1, output = "1"
          = help: put the task of line 5 in a `finish` that ends before (2)

        1 race on x
    "#]]);
    let report = directory.json("check x.task --witness --format json");
    let witness = &report["races"][0]["witness"];
    assert_eq!(witness["found"], true);
    assert_eq!(
        witness["differences"][0],
        json!({ "what": "x", "first_before_second": "2", "second_before_first": "1" })
    );
    assert_eq!(witness["differences"][1]["what"], "output");
    let text = String::from_utf8(directory.run("check fatal.task --witness").stdout).unwrap();
    assert!(text.contains("(1) before (2): x = 2, "), "{text}");
    assert!(text.contains("end = it fails: division by zero; (2) before (1): x = 1, "), "{text}");
}

#[test]
fn a_race_may_be_benign() {
    let directory = Directory::new("benign", &[("x.task", BENIGN)]);
    directory.check("check x.task --witness", expect![[r#"
        exit code 66
        --- standard output
        race[write-write]: parallel accesses to `x`
         --> x.task:2:32
          |
        2 | proc main() { finish { async { x = 1; } x = 1; } }
          |                        -----   ^        ^ (2) task 0 writes `x`
          |                        |       |
          |                        |       (1) task 1 writes `x`
          |                        task 1 (async) is created here
          |
          = note: both orders were run, and nothing differs, neither shared memory nor output: for this input the race is benign
          = help: put the task of line 2 in a `finish` that ends before (2)

        1 race on x
    "#]]);
    let report = directory.json("check x.task --witness --format json");
    assert_eq!(report["races"][0]["witness"], json!({ "found": true, "differences": [] }));
    assert_eq!(report["verdict"], "race");
}

#[test]
fn an_order_may_be_impossible() {
    let directory = Directory::new("no_witness", &[("x.task", CONDITIONAL)]);
    directory.check("check x.task --witness", expect![[r#"
        exit code 66
        --- standard output
        race[write-read]: parallel accesses to `flag`
         --> x.task:5:24
          |
        5 |         async { x = 1; flag = 1; }
          |         -----          ^^^^ (1) task 1 writes `flag`
          |         |
          |         task 1 (async) is created here
        6 |         async { if flag == 1 { x = 2; } }
          |         -----      ^^^^ (2) task 2 reads `flag`
          |         |
          |         task 2 (async) is created here
          |
          = note: both orders were run: (1) before (2): x = 2; (2) before (1): x = 1
          = help: put the task of line 5 in a `finish` that ends before the task of line 6 is created; or let a promise order them: `set` it after (1), `get` it before (2)

        race[write-write]: parallel accesses to `x`
         --> x.task:5:17
          |
        5 |         async { x = 1; flag = 1; }
          |         -----   ^ (1) task 1 writes `x`
          |         |
          |         task 1 (async) is created here
        6 |         async { if flag == 1 { x = 2; } }
          |         -----                  ^ (2) task 2 writes `x`
          |         |
          |         task 2 (async) is created here
          |
          = note: no witness: (2) could not be run before (1); it may depend on another race
          = help: put the task of line 5 in a `finish` that ends before the task of line 6 is created; or let a promise order them: `set` it after (1), `get` it before (2)

        2 races on flag, x
    "#]]);
    let report = directory.json("check x.task --witness --format json");
    let races = report["races"].as_array().unwrap();
    let of = |location: &str| {
        let race = races.iter().find(|race| race["location"] == location).unwrap();
        race["witness"].clone()
    };
    assert_eq!(of("x"), json!({ "found": false, "differences": [] }));
    assert_eq!(of("flag")["found"], true);
}

#[test]
fn a_witness_runs_in_the_schedule_that_shows_the_race() {
    let files = [("x.task", HIDDEN), ("ewait.task", EWAIT), ("free.task", DEPENDENT)];
    let directory = Directory::new("explored_witness", &files);
    directory.check(
        "check x.task --witness",
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
           = note: both orders were run: (1) before (2): x = 1; (2) before (1): x = 2
           = note: in schedule 1.0; to see it again: dagsan check x.task --replay 1.0
           = help: put the task of line 8 in a `finish` that ends before (1)

        1 race on x
    "#]],
    );
    for engine in ["dag", "closure", "vector-clock"] {
        let report = directory.json(&format!("check ewait.task --witness --format json --engine {engine}"));
        let race = &report["races"][0];
        assert_eq!((&race["schedule"], &race["witness"]["found"]), (&json!("1"), &json!(true)), "{engine}");
        assert_eq!(race["witness"]["differences"][0]["what"], "output", "{engine}");
    }
    let replayed = directory.json("check x.task --witness --replay 1.0 --format json");
    assert_eq!(replayed["races"][0]["witness"]["differences"][0]["what"], "x");
    // Without a race there is nothing to show.
    assert_eq!(directory.run("check free.task --witness").stdout, directory.run("check free.task").stdout);
}

/// What the order of the sections decides is not the doing of the race.
#[test]
fn a_witness_does_not_blame_the_race_for_the_order_of_sections() {
    let source = "\
shared n = 1;
shared x;
proc main() {
    finish {
        async { x = 1; isolated { n = n + 1; } }
        async { x = 1; isolated { n = n * 2; } }
        async { isolated { n = n * 3 + 1; } }
    }
}
";
    let directory = Directory::new("blame", &[("x.task", source)]);
    let report = directory.json("check x.task --witness --format json");
    assert_eq!(report["races"][0]["witness"], json!({ "found": true, "differences": [] }));
}
