//! JSON, statistics, graphs, colours and help.

use std::fs;
use std::process::Command;

use expect_test::expect;
use serde_json::Value;

use crate::directory::Directory;
use crate::{DEADLOCK, FREE, MISSING_GET};

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
                  },
                  "fingerprint": "03a767971a9efb6d69e639c04418eb9d"
                }
              ],
              "message": "1 race on a[1]",
              "file": "x.task",
              "output": "sum 1\n",
              "version": 1
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
                "version": 1,
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
