//! `dagsan check` from end to end: every exit code, every format, bad input, and the messages.
//!
//! Exit code 70 cannot be had from outside without a fault; `check.rs` and `exit.rs` test it inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use expect_test::{Expect, expect};
use serde_json::Value;

const MISSING_GET: &str = "\
// expect: race a[1]
shared a[4];

proc main() {
    future f = { a[0] = 1; return 1; };
    future g = { a[1] = 2; return 2; };
    let u = get f;
    print \"sum\", u;
    a[2] = a[0] + a[1];
    get g;
}
";
const FREE: &str = "// expect: race-free\nshared x;\nproc main() { finish { async { x = 1; } } print x; }\n";
const DEADLOCK: &str = "// expect: deadlock\nproc main() {\n    promise p;\n    async { get p; }\n}\n";
const FAILING: &str = "// expect: error division by zero\nshared x;\nproc main() {\n    print 1 / x;\n}\n";
const BAD: &str = "// expect: error expected int\nproc main() {\n    y = 1;\n    let z = true + 1;\n}\n";
const ISOLATED: &str =
    "// expect: race-free\nshared n;\nproc main() { forall i in 0..3 { isolated { n = n + i; } } }\n";

/// A directory of its own for each test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str, files: &[(&str, &str)]) -> Directory {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        // Left by a run that failed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Directory(path)
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dagsan"));
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        command.current_dir(&self.0).args(arguments.split(' ')).output().unwrap()
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_slice(&self.run(arguments).stdout).unwrap()
    }

    /// Runs the command, and compares exit code, standard output and standard error.
    fn check(&self, arguments: &str, expected: Expect) {
        let output = self.run(arguments);
        let mut text = format!("exit code {}\n", output.status.code().unwrap());
        for (name, bytes) in [("output", output.stdout), ("error", output.stderr)] {
            if !bytes.is_empty() {
                text += &format!("--- standard {name}\n{}", String::from_utf8(bytes).unwrap());
            }
        }
        // Trailing white space in a snapshot would be trailing white space in this file.
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        expected.assert_eq(&(lines.join("\n") + "\n"));
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

#[test]
fn a_race_is_66() {
    let directory = Directory::new("race", &[("x.task", MISSING_GET)]);
    directory.check(
        "check x.task",
        expect![[r#"
            exit code 66
            --- standard output
            sum 1
            race[write-read]: parallel accesses to `a[1]`
             --> x.task:6:18
              |
            6 |     future g = { a[1] = 2; return 2; };
              |     --------     ^^^^ (1) task 2 writes `a[1]`
              |     |
              |     task 2 (future) is created here
            ...
            9 |     a[2] = a[0] + a[1];
              |                   ^^^^ (2) task 0 reads `a[1]`
              |
              = help: `get` the future of line 6 before (2)

            1 race on a[1]
        "#]],
    );
}

#[test]
fn race_free_is_0() {
    let directory = Directory::new("free", &[("x.task", FREE), ("isolated.task", ISOLATED)]);
    directory.check(
        "check x.task",
        expect![[r#"
        exit code 0
        --- standard output
        1
        race-free: 2 tasks, 1 strand, every schedule of this input
    "#]],
    );
    directory.check(
        "check isolated.task",
        expect![[r#"
        exit code 0
        --- standard output
        race-free: 4 tasks, 3 strands, every schedule of this input in this order of the isolated sections
    "#]],
    );
    directory.check(
        "check isolated.task --engine esp-bags",
        expect![[r#"
        exit code 0
        --- standard output
        race-free: 4 tasks, 3 strands, every schedule of this input if isolated sections commute
    "#]],
    );
}

#[test]
fn a_deadlock_and_a_runtime_error_are_65() {
    let directory = Directory::new("failed", &[("deadlock.task", DEADLOCK), ("failing.task", FAILING)]);
    directory.check(
        "check deadlock.task",
        expect![[r#"
            exit code 65
            --- standard output
            deadlock: no task can go on
             --> deadlock.task:4:13
              |
            4 |     async { get p; }
              |             ^^^^^ task 1 waits for promise `p`
              |
              = help: find who should `set` or end what they wait for, and why it does not come to that

            deadlock: 1 of 2 tasks waits for ever
        "#]],
    );
    directory.check(
        "check failing.task",
        expect![[r#"
        exit code 65
        --- standard output
        error: division by zero
         --> failing.task:4:11
          |
        4 |     print 1 / x;
          |           ^^^^^ task 0

        error: division by zero (task 0, line 4); no race before it
    "#]],
    );
    directory.check(
        "check failing.task --max-steps 1",
        expect![[r#"
        exit code 65
        --- standard output
        error: the program did not end within 1 steps
         --> failing.task:4:11
          |
        4 |     print 1 / x;
          |           ^ task 0

        error: the program did not end within 1 steps (task 0, line 4); no race before it
    "#]],
    );
}

#[test]
fn a_race_before_an_error_counts_with_and_without_eliminations() {
    let source =
        "shared x;\nshared y;\nproc main() {\n    async { x = 1; }\n    x = 2;\n    print 1 / y;\n}\n";
    let directory = Directory::new("race_then_error", &[("x.task", source)]);
    for arguments in ["check x.task", "check x.task --no-elim all"] {
        let output = directory.run(arguments);
        assert_eq!(output.status.code(), Some(66));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.ends_with("1 race on x; then error: division by zero (task 0, line 6)\n"), "{text}");
    }
}

#[test]
fn a_bad_program_is_2_and_all_errors_are_shown() {
    let directory = Directory::new("bad", &[("x.task", BAD)]);
    directory.check(
        "check x.task",
        expect![[r#"
        exit code 2
        --- standard output
        error: there is no variable `y` here
         --> x.task:3:5
          |
        3 |     y = 1;
          |     ^

        error: expected int, found bool
         --> x.task:4:13
          |
        4 |     let z = true + 1;
          |             ^^^^ this is bool

        error: could not check x.task: 2 errors
    "#]],
    );
    let report = directory.json("check x.task --format json");
    assert_eq!(report["verdict"], "error");
    assert_eq!(report["errors"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_read_is_2() {
    let directory = Directory::new("unreadable", &[("empty/readme.md", ""), ("x.task", FREE)]);
    fs::write(directory.0.join("latin1.task"), b"// caf\xe9\n").unwrap();
    directory.check(
        "check gone.task",
        expect![[r#"
            exit code 2
            --- standard error
            error: could not check gone.task: there is no such file; look at its name and at the directory
        "#]],
    );
    directory.check(
        "check latin1.task",
        expect![[r#"
        exit code 2
        --- standard error
        error: could not check latin1.task: it is not text in UTF-8 (see byte 6); is it a task program?
    "#]],
    );
    directory.check(
        "check empty",
        expect![[r#"
        exit code 2
        --- standard error
        error: no *.task file in empty: name a file, or a directory that has some
    "#]],
    );
    directory.check(
        "check gone.task x.task",
        expect![[r#"
            exit code 2
            --- standard output
            error       gone.task: there is no such file; look at its name and at the directory
            race-free   x.task: 2 tasks, 1 strand, every schedule of this input
            2 files: 1 error, 1 race-free
        "#]],
    );
}

#[test]
fn bad_arguments_are_2() {
    let directory = Directory::new("arguments", &[("x.task", FREE), ("y.task", FREE)]);
    directory.check(
        "check",
        expect![[r#"
        exit code 2
        --- standard error
        error: the following required arguments were not provided:
          <FILE|DIR>...

        Usage: dagsan check <FILE|DIR>...

        For more information, try '--help'.
    "#]],
    );
    directory.check("check x.task --engine dog", expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'dog' for '--engine <NAME>'
          [possible values: dag, esp-bags, multibags, drdp, sf-order, vector-clock, closure, cg, cg-otf, zipper]

          tip: a similar value exists: 'dag'

        For more information, try '--help'.
    "#]]);
    directory.check(
        "check x.task --no-elim none",
        expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'none' for '--no-elim <NAME>'
          [possible values: sequential, read-only, local, subsumed, loop-invariant, affine, all]

        For more information, try '--help'.
    "#]],
    );
    directory.check("check x.task --graph x.png", expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'x.png' for '--graph <FILE>': the name must end in .dot, .json or .svg, which says how to write the graph

        For more information, try '--help'.
    "#]]);
    directory.check(
        "check x.task y.task --graph x.svg",
        expect![[r#"
        exit code 2
        --- standard error
        error: --graph draws one program, and there are 2: name a single file
    "#]],
    );
    directory.check(
        "check x.task --graph gone/x.svg",
        expect![[r#"
        exit code 2
        --- standard output
        1
        race-free: 2 tasks, 1 strand, every schedule of this input
        --- standard error
        error: cannot write gone/x.svg: No such file or directory (os error 2)
    "#]],
    );
}

#[test]
fn an_engine_that_cannot_judge_names_those_that_can() {
    let directory =
        Directory::new("refused", &[("x.task", DEADLOCK.replace("async", "set p; async").as_str())]);
    directory.check("check x.task --engine esp-bags", expect![[r#"
        exit code 2
        --- standard output
        error: could not check x.task: engine `esp-bags` does not support promises; these do: dag, drdp, vector-clock, closure, cg, cg-otf
    "#]]);
    directory.check("check x.task --engine esp-bags --expect", expect![[r#"
        exit code 0
        --- standard output
        skipped     x.task: engine `esp-bags` does not support promises; these do: dag, drdp, vector-clock, closure, cg, cg-otf
    "#]]);
}

#[test]
fn several_files_get_a_line_each_and_the_worst_code() {
    let files = [
        ("free.task", FREE),
        ("race.task", MISSING_GET),
        ("sub/deadlock.task", DEADLOCK),
        ("sub/notes.txt", "no program"),
    ];
    let directory = Directory::new("several", &files);
    directory.check(
        "check .",
        expect![[r#"
            exit code 66
            --- standard output
            race-free   ./free.task: 2 tasks, 1 strand, every schedule of this input
            race        ./race.task: 1 race on a[1]
            deadlock    ./sub/deadlock.task: 1 of 2 tasks waits for ever
            3 files: 1 race-free, 1 race, 1 deadlock
        "#]],
    );
    directory.check(
        "check free.task sub",
        expect![[r#"
            exit code 65
            --- standard output
            race-free   free.task: 2 tasks, 1 strand, every schedule of this input
            deadlock    sub/deadlock.task: 1 of 2 tasks waits for ever
            2 files: 1 race-free, 1 deadlock
        "#]],
    );
    fs::write(directory.0.join("sub/bad.task"), BAD).unwrap();
    directory.check(
        "check . --engine dag",
        expect![[r#"
            exit code 2
            --- standard output
            race-free   ./free.task: 2 tasks, 1 strand, every schedule of this input
            race        ./race.task: 1 race on a[1]
            error       ./sub/bad.task: line 3: there is no variable `y` here, and 1 more error
            deadlock    ./sub/deadlock.task: 1 of 2 tasks waits for ever
            4 files: 1 race-free, 1 race, 1 error, 1 deadlock
        "#]],
    );
}

#[test]
fn expectations_are_compared() {
    let files = [
        ("race.task", MISSING_GET),
        ("free.task", FREE),
        ("deadlock.task", DEADLOCK),
        ("failing.task", FAILING),
        ("bad.task", BAD),
    ];
    let directory = Directory::new("expected", &files);
    directory.check(
        "check . --expect",
        expect![[r#"
            exit code 0
            --- standard output
            as expected ./bad.task: error expected int
            as expected ./deadlock.task: deadlock
            as expected ./failing.task: error division by zero
            as expected ./free.task: race-free
            as expected ./race.task: race a[1]
            5 files: 5 as expected
        "#]],
    );
    for (name, text) in [
        ("race.task", MISSING_GET.replacen("a[1]", "a[1], a[2]", 1)),
        ("free.task", FREE.replace("// expect: race-free\n", "")),
        ("failing.task", FAILING.replacen("by zero", "by one", 1)),
        ("deadlock.task", DEADLOCK.replacen("deadlock", "maybe", 1)),
    ] {
        fs::write(directory.0.join(name), text).unwrap();
    }
    directory.check(
        "check . --expect",
        expect![[r#"
            exit code 1
            --- standard output
            as expected ./bad.task: error expected int
            unexpected  ./deadlock.task
                expected: `maybe` is none of: race LOCATION, …; race-free; deadlock; error TEXT
                found:    deadlock
            unexpected  ./failing.task
                expected: error division by one
                found:    error division by zero
            unexpected  ./free.task
                expected: a first line `// expect: …`
                found:    race-free
            unexpected  ./race.task
                expected: race a[1], a[2]
                found:    race a[1]
            5 files: 1 as expected, 4 unexpected
        "#]],
    );
    directory.check(
        "check bad.task --expect",
        expect![[r#"
            exit code 0
            --- standard output
            as expected bad.task: error expected int
        "#]],
    );
    let report = directory.json("check race.task --expect --format json");
    assert_eq!(report["expected"], serde_json::json!({ "text": "race a[1], a[2]", "met": false }));
}

#[test]
fn exceptions_are_for_some_engines() {
    let files =
        [("x.task", MISSING_GET), ("exceptions.txt", "x.task  closure  race-free  # to see it fail\n")];
    let directory = Directory::new("exceptions", &files);
    directory.check(
        "check x.task --expect",
        expect![[r#"
        exit code 0
        --- standard output
        as expected x.task: race a[1]
    "#]],
    );
    directory.check(
        "check x.task --expect --engine closure",
        expect![[r#"
        exit code 1
        --- standard output
        unexpected  x.task
            expected: race-free
            found:    race a[1]
    "#]],
    );
    fs::write(directory.0.join("exceptions.txt"), "y.task  dag  race-free  # gone\n").unwrap();
    directory.check(
        "check . --expect",
        expect![[r#"
        exit code 2
        --- standard error
        error: ./exceptions.txt speaks of y.task, which does not exist
    "#]],
    );
}

#[test]
fn json_has_its_keys_in_order() {
    let directory = Directory::new("json", &[("x.task", MISSING_GET), ("one/y.task", DEADLOCK)]);
    directory.check(
        "check x.task --format json",
        expect![[r#"
            exit code 66
            --- standard output
            {
              "verdict": "race",
              "engine": "dag",
              "schedules": 1,
              "tasks": 3,
              "strands": 3,
              "races": [
                {
                  "location": "a[1]",
                  "kind": "write-read",
                  "first": {
                    "line": 6,
                    "column": 18,
                    "task": 2
                  },
                  "second": {
                    "line": 9,
                    "column": 19,
                    "task": 0
                  }
                }
              ],
              "message": "1 race on a[1]",
              "file": "x.task",
              "output": "sum 1\n"
            }
        "#]],
    );
    directory.check(
        "check one --format json",
        expect![[r#"
            exit code 65
            --- standard output
            [
              {
                "verdict": "deadlock",
                "engine": "dag",
                "schedules": 1,
                "tasks": 2,
                "strands": 0,
                "races": [],
                "message": "1 of 2 tasks waits for ever",
                "file": "one/y.task",
                "output": "",
                "blocked": [
                  {
                    "task": 1,
                    "line": 4,
                    "column": 13,
                    "waits_for": "promise `p`"
                  }
                ]
              }
            ]
        "#]],
    );
    let reports = directory.json("check x.task one/y.task gone.task --format json --stats");
    let verdicts: Vec<&str> =
        reports.as_array().unwrap().iter().map(|report| report["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["race", "deadlock", "error"]);
    assert!(reports[0]["stats"]["accesses"].as_u64().unwrap() > 0);
    assert!(reports[2].get("stats").is_none());
}

#[test]
fn stats_count_what_was_eliminated() {
    let source = "shared x;\nproc main() { for i in 0..100 { x = x + 1; } finish { async { skip; } } }\n";
    let directory = Directory::new("stats", &[("x.task", source)]);
    let stats = |arguments: &str| directory.json(arguments)["stats"].clone();
    let all = stats("check x.task --stats --format json");
    let none = stats("check x.task --stats --format json --no-elim all");
    let sum = |stats: &Value| -> u64 {
        stats["eliminated"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    };
    assert_eq!((all["accesses"].as_u64(), none["accesses"].as_u64()), (Some(200), Some(200)));
    assert!(sum(&all) > 0);
    assert_eq!(sum(&none), 0);
    let text = String::from_utf8(directory.run("check x.task --stats").stdout).unwrap();
    for name in
        ["accesses to shared memory", "eliminated: sequential", "questions about order", "time to compile"]
    {
        assert!(text.contains(name), "{name} is not in {text}");
    }
}

#[test]
fn graphs_are_written_in_three_forms() {
    let directory = Directory::new("graph", &[("x.task", MISSING_GET)]);
    for name in ["g.dot", "g.json", "g.svg"] {
        let output = directory.run(&format!("check x.task --graph {name}"));
        assert_eq!(output.status.code(), Some(66));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(&format!("note: the computation graph is in {name}\n")), "{text}");
    }
    let read = |name: &str| fs::read_to_string(directory.0.join(name)).unwrap();
    assert!(read("g.dot").contains("writes a[1]") && read("g.svg").contains("writes a[1]"));
    let graph: Value = serde_json::from_str(&read("g.json")).unwrap();
    let racing = graph["nodes"].as_array().unwrap().iter().filter(|node| node["racing"] == true).count();
    assert_eq!(racing, 2);
}

#[test]
fn a_picture_is_offered_where_tasks_are_nested() {
    let source = "shared x;\nproc main() { finish { async { async { x = 1; } } x = 2; } }\n";
    let directory = Directory::new("nested", &[("nested.task", source), ("flat.task", MISSING_GET)]);
    let offered = |arguments: &str| {
        String::from_utf8(directory.run(arguments).stdout).unwrap().contains("`--graph FILE.svg` draws")
    };
    assert!(offered("check nested.task"));
    assert!(!offered("check nested.task --graph g.dot"));
    assert!(!offered("check flat.task"));
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let directory = Directory::new("colour", &[("x.task", FREE)]);
    let coloured = |arguments: &str| directory.run(arguments).stdout.contains(&0x1b);
    assert!(!coloured("check x.task"));
    assert!(coloured("check x.task --color always"));
    assert!(!coloured("check x.task --color never"));
    let with_environment = |names: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dagsan"));
        command.current_dir(&directory.0).env_remove("NO_COLOR").envs(names.iter().map(|name| (name, "1")));
        command.args(["check", "x.task"]).output().unwrap().stdout.contains(&0x1b)
    };
    assert!(with_environment(&["CLICOLOR_FORCE"]));
    assert!(!with_environment(&["CLICOLOR_FORCE", "NO_COLOR"]));
}

#[test]
fn the_help_lists_engines_and_exit_codes() {
    let directory = Directory::new("help", &[]);
    let output = directory.run("check --help");
    let text = String::from_utf8(output.stdout).unwrap();
    for engine in dagsan_core::order::ENGINES {
        assert!(text.contains(engine.name) && text.contains(engine.summary), "{}", engine.name);
    }
    assert!(text.contains("Exit codes:\n   0  race-free"));
}
