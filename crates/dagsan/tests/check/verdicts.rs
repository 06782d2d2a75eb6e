//! What is said about programs and arguments, and the exit codes.

use std::fs;

use expect_test::expect;

use crate::directory::Directory;
use crate::{BAD, DEADLOCK, FAILING, FREE, ISOLATED, MISSING_GET};

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
            race-free: 4 tasks, 3 strands, every schedule of this input: the isolated sections commute, one run is enough
        "#]],
    );
    directory.check(
        "check isolated.task --engine esp-bags",
        expect![[r#"
            exit code 0
            --- standard output
            race-free: 4 tasks, 3 strands, every schedule of this input: the isolated sections commute, one run is enough
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
            error         gone.task: there is no such file; look at its name and at the directory
            race-free     x.task: 2 tasks, 1 strand, every schedule of this input
            2 files: 1 with errors, 1 race-free
        "#]],
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_program() {
    let directory = Directory::new("mark", &[("x.task", &format!("\u{feff}{FREE}"))]);
    assert_eq!(directory.run("check x.task --expect").status.code(), Some(0));
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
            --- standard error
            error: cannot write gone/x.svg: there is no directory gone
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
        skipped       x.task: engine `esp-bags` does not support promises; these do: dag, drdp, vector-clock, closure, cg, cg-otf
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
            race-free     ./free.task: 2 tasks, 1 strand, every schedule of this input
            race          ./race.task: 1 race on a[1]
            deadlock      ./sub/deadlock.task: 1 of 2 tasks waits for ever
            3 files: 1 race-free, 1 with races, 1 with deadlocks
        "#]],
    );
    directory.check(
        "check free.task sub",
        expect![[r#"
            exit code 65
            --- standard output
            race-free     free.task: 2 tasks, 1 strand, every schedule of this input
            deadlock      sub/deadlock.task: 1 of 2 tasks waits for ever
            2 files: 1 race-free, 1 with deadlocks
        "#]],
    );
    fs::write(directory.0.join("sub/bad.task"), BAD).unwrap();
    directory.check(
        "check . --engine dag",
        expect![[r#"
            exit code 2
            --- standard output
            race-free     ./free.task: 2 tasks, 1 strand, every schedule of this input
            race          ./race.task: 1 race on a[1]
            error         ./sub/bad.task: line 3: there is no variable `y` here, and 1 more error
            deadlock      ./sub/deadlock.task: 1 of 2 tasks waits for ever
            4 files: 1 race-free, 1 with races, 1 with errors, 1 with deadlocks
        "#]],
    );
}
