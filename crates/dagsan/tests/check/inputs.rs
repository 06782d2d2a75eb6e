//! What is no program, and where nothing can be written.

use std::fs;

use expect_test::expect;

use crate::directory::Directory;
use crate::programs::{HIDDEN, PLAIN};

#[test]
fn files_that_are_no_programs() {
    let files = [
        ("empty.task", ""),
        ("no_main.task", "shared x;\n"),
        ("comment.task", "// expect: race-free\n"),
        ("prose.task", "hello world\n"),
        ("unclosed.task", "proc main() { skip;"),
        ("unclosed_before.task", "proc f() { skip;\nproc main() { skip; }\n"),
        ("other.c", "#include <stdio.h>\nint main() { return 0; }\n"),
    ];
    let directory = Directory::new("no_programs", &files);
    directory.check(
        "check empty.task",
        expect![[r#"
        exit code 2
        --- standard output
        error: there is no procedure `main`
         --> empty.task:1:1
          |
        1 |
          | ^
          |
          = help: write `proc main() { … }`: the program starts there

        error: could not check empty.task: 1 error
    "#]],
    );
    directory.check(
        "check no_main.task",
        expect![[r#"
        exit code 2
        --- standard output
        error: there is no procedure `main`
         --> no_main.task:1:1
          |
        1 | shared x;
          | ^
          |
          = help: write `proc main() { … }`: the program starts there

        error: could not check no_main.task: 1 error
    "#]],
    );
    directory.check(
        "check prose.task",
        expect![[r#"
        exit code 2
        --- standard output
        error: expected `proc`, `shared`, `promise`, `region` or `let`, found a name
         --> prose.task:1:1
          |
        1 | hello world
          | ^^^^^ not the start of a top-level item
          |
          = help: statements belong into a procedure: `proc main() { … }`

        error: could not check prose.task: 1 error
    "#]],
    );
    directory.check(
        "check unclosed.task",
        expect![[r#"
        exit code 2
        --- standard output
        error: expected `}`, found the end of the file
         --> unclosed.task:1:20
          |
        1 | proc main() { skip;
          |                    ^ expected `}`

        error: could not check unclosed.task: 1 error
    "#]],
    );
    directory.check(
        "check unclosed_before.task",
        expect![[r#"
        exit code 2
        --- standard output
        error: expected `}`, found `proc`
         --> unclosed_before.task:1:17
          |
        1 | proc f() { skip;
          |                 ^ expected `}`

        error: could not check unclosed_before.task: 1 error
    "#]],
    );
    directory.check(
        "check other.c",
        expect![[r#"
        exit code 2
        --- standard output
        error: `#` means nothing here
         --> other.c:1:1
          |
        1 | #include <stdio.h>
          | ^

        error: expected `proc`, `shared`, `promise`, `region` or `let`, found a name
         --> other.c:1:2
          |
        1 | #include <stdio.h>
          |  ^^^^^^^ not the start of a top-level item
          |
          = help: statements belong into a procedure: `proc main() { … }`

        error: `.` means nothing here
         --> other.c:1:16
          |
        1 | #include <stdio.h>
          |                ^

        error: could not check other.c: 3 errors
    "#]],
    );
    directory.check(
        "check empty.task --format json",
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
              "message": "line 1, column 1: there is no procedure `main`",
              "file": "empty.task",
              "output": "",
              "version": 1,
              "errors": [
                {
                  "line": 1,
                  "column": 1,
                  "message": "there is no procedure `main`"
                }
              ]
            }
        "#]],
    );
    directory.check(
        "check comment.task --expect",
        expect![[r#"
            exit code 1
            --- standard output
            unexpected    comment.task
                expected: race-free
                found:    error there is no procedure `main`
        "#]],
    );
    directory.check("check .", expect![[r#"
        exit code 2
        --- standard output
        error         ./comment.task: line 1: there is no procedure `main`
        error         ./empty.task: line 1: there is no procedure `main`
        error         ./no_main.task: line 1: there is no procedure `main`
        error         ./prose.task: line 1: expected `proc`, `shared`, `promise`, `region` or `let`, found a name
        error         ./unclosed.task: line 1: expected `}`, found the end of the file
        error         ./unclosed_before.task: line 1: expected `}`, found `proc`
        6 files: 6 with errors
    "#]]);
}

#[test]
fn files_of_bytes() {
    let directory = Directory::new("bytes", &[]);
    for (name, bytes) in [
        ("latin1.task", &b"proc main() { print \"caf\xe9\"; }"[..]),
        ("utf16.task", b"\xff\xfep\0r\0o\0c\0"),
        ("cut.task", b"proc main() {} // \xe2\x82"),
        ("zeros.task", &[0; 64]),
    ] {
        fs::write(directory.0.join(name), bytes).unwrap();
        for format in ["", " --format json", " --expect"] {
            let output = directory.run(&format!("check {name}{format}"));
            // With zeros for text it can be read, and is not what is expected.
            let code = if name == "zeros.task" && format == " --expect" { 1 } else { 2 };
            assert_eq!(output.status.code(), Some(code), "{name}{format}");
            assert_ne!(output.stdout.len() + output.stderr.len(), 0, "{name}{format}");
        }
    }
    directory.check(
        "check latin1.task utf16.task cut.task",
        expect![[r#"
            exit code 2
            --- standard output
            error         latin1.task: it is not text in UTF-8 (see byte 24); is it a task program?
            error         utf16.task: it is not text in UTF-8 (see byte 0); is it a task program?
            error         cut.task: it is not text in UTF-8 (see byte 18); is it a task program?
            3 files: 3 with errors
        "#]],
    );
    let report = directory.json("check latin1.task --format json");
    assert_eq!(report["verdict"], "error");
    assert_eq!(report["schedules"], 0);
}

#[test]
fn lines_may_end_as_on_other_systems() {
    let directory = Directory::new("line_ends", &[("x.task", &PLAIN.replace('\n', "\r\n"))]);
    let report = directory.json("check x.task --format json");
    assert_eq!(report["races"][0]["first"]["line"], 5);
    assert_eq!(directory.run("check x.task --expect").status.code(), Some(0));
}

#[test]
fn paths_without_programs() {
    let directory = Directory::new("paths", &[("dir.task/readme.md", ""), ("x.task", PLAIN)]);
    directory.check(
        "check dir.task",
        expect![[r#"
        exit code 2
        --- standard error
        error: no *.task file in dir.task: name a file, or a directory that has some
    "#]],
    );
    directory.check(
        "check x.task dir.task",
        expect![[r#"
        exit code 2
        --- standard error
        error: no *.task file in dir.task: name a file, or a directory that has some
    "#]],
    );
    directory.check(
        "check gone",
        expect![[r#"
        exit code 2
        --- standard error
        error: could not check gone: there is no such file; look at its name and at the directory
    "#]],
    );
    directory.check(
        "check gone.task --format json",
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
              "message": "there is no such file; look at its name and at the directory",
              "file": "gone.task",
              "output": "",
              "version": 1
            }
        "#]],
    );
    directory.check("check gone.task --expect", expect![[r#"
        exit code 2
        --- standard output
        unexpected    gone.task
            expected: a first line `// expect: …`
            found:    error: could not check gone.task: there is no such file; look at its name and at the directory
    "#]]);
    directory.check(
        "check ",
        expect![[r#"
        exit code 2
        --- standard error
        error: a value is required for '<FILE|DIR>...' but none was supplied

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn names_that_are_almost_right() {
    let directory = Directory::new("almost", &[("x.task", PLAIN)]);
    directory.check(
        "chek x.task",
        expect![[r#"
        exit code 2
        --- standard error
        error: unrecognized subcommand 'chek'

          tip: a similar subcommand exists: 'check'

        Usage: dagsan <COMMAND>

        For more information, try '--help'.
    "#]],
    );
    directory.check("check x.task --engine espbags", expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'espbags' for '--engine <NAME>'
          [possible values: dag, esp-bags, multibags, drdp, sf-order, vector-clock, closure, cg, cg-otf, zipper]

          tip: a similar value exists: 'esp-bags'

        For more information, try '--help'.
    "#]]);
    directory.check(
        "check x.task --no-elim afine",
        expect![[r#"
        exit code 2
        --- standard error
        error: invalid value 'afine' for '--no-elim <NAME>'
          [possible values: sequential, read-only, local, subsumed, loop-invariant, affine, all]

          tip: a similar value exists: 'affine'

        For more information, try '--help'.
    "#]],
    );
    directory.check(
        "check x.task --witnes",
        expect![[r#"
        exit code 2
        --- standard error
        error: unexpected argument '--witnes' found

          tip: a similar argument exists: '--witness'

        Usage: dagsan check --witness <FILE|DIR>...

        For more information, try '--help'.
    "#]],
    );
    directory.check(
        "check x.task --expect --graph g.svg",
        expect![[r#"
        exit code 2
        --- standard error
        error: the argument '--expect' cannot be used with '--graph <FILE>'

        Usage: dagsan check --expect <FILE|DIR>...

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn a_graph_that_cannot_be_written_is_refused_or_leaves_the_verdict() {
    let directory = Directory::new("unwritable", &[("x.task", HIDDEN), ("dir.svg/keep", "")]);
    std::os::unix::fs::symlink("/dev/full", directory.0.join("full.svg")).unwrap();
    for (path, runs) in
        [("gone/g.svg", false), ("dir.svg", false), ("x.task/g.dot", false), ("full.svg", true)]
    {
        let output = directory.run(&format!("check x.task --graph {path}"));
        assert_eq!(output.status.code(), Some(2), "{path}");
        let (text, error) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((text.ends_with("1 race on x\n"), text.is_empty()), (runs, !runs), "{path}: {text}");
        assert!(!text.contains("graph is in"), "{path}: {text}");
        assert!(error.starts_with(&format!("error: cannot write {path}: ")), "{path}: {error}");
    }
    assert_eq!(fs::read_to_string(directory.0.join("x.task")).unwrap(), HIDDEN);
}
