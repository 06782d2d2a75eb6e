//! Failures in some schedules, and static eliminations: what is found up to a failure must not depend on them.
//!
//! A check that covers a whole loop is made before the loop; if the loop fails in its middle, it has spoken of
//! cells that were never touched.

use dagsan_lang::Elimination;

use crate::directory::Directory;

/// In one order of the sections the loop starts, and fails at i = 5. The cell that another task writes is `CELL`.
const LOOP: &str = "\
shared n = 1;
shared a[8];
proc main() {
    promise p;
    async { a[CELL] = 1; }
    finish {
        async { isolated { n = n + 1; } }
        async { isolated { n = n * 2; } }
    }
    if n == WHEN { for i in 0..8 { a[i] = 8 / (5 - i); } }
    else { OTHERWISE }
}
";

fn verdicts(test: &str, cell: u32, when: u32, otherwise: &str) -> Vec<(String, i32, String)> {
    let source = LOOP
        .replace("CELL", &cell.to_string())
        .replace("WHEN", &when.to_string())
        .replace("OTHERWISE", otherwise);
    let directory = Directory::new(test, &[("x.task", &source)]);
    let mut choices = vec![String::new(), " --no-elim all".to_owned()];
    choices.extend(Elimination::ALL.map(|name| format!(" --no-elim {}", name.name())));
    let mut verdicts = Vec::new();
    for engine in ["dag", "closure"] {
        for choice in &choices {
            let arguments = format!("check x.task --engine {engine}{choice}");
            let output = directory.run(&arguments);
            let text = String::from_utf8(output.stdout).unwrap();
            let last = text.lines().last().unwrap_or_default().to_owned();
            verdicts.push((arguments, output.status.code().unwrap(), last));
        }
    }
    verdicts
}

/// The orders give n = 4 (the default one) and n = 3.
#[test]
fn a_failure_in_any_schedule_has_no_race_after_it() {
    for when in [3, 4] {
        for (arguments, code, last) in verdicts(&format!("fails_before_{when}"), 6, when, "skip;") {
            assert_eq!(
                (code, last.as_str()),
                (65, "error: division by zero (task 0, line 10); no race before it"),
                "{arguments}, n == {when}"
            );
        }
    }
}

#[test]
fn a_failure_in_any_schedule_keeps_the_races_before_it() {
    for when in [3, 4] {
        for (arguments, code, last) in verdicts(&format!("fails_after_{when}"), 2, when, "skip;") {
            assert_eq!(code, 66, "{arguments}, n == {when}");
            assert!(last.starts_with("1 race on a[2]"), "{arguments}, n == {when}: {last}");
            assert!(last.contains("division by zero"), "{arguments}, n == {when}: {last}");
        }
    }
}

/// One order fails, the other one deadlocks: whichever comes first.
#[test]
fn a_deadlock_in_another_schedule_does_not_hide_the_failure() {
    for when in [3, 4] {
        for (arguments, code, last) in verdicts(&format!("fails_and_blocks_{when}"), 6, when, "get p;") {
            assert_eq!(code, 65, "{arguments}, n == {when}: {last}");
        }
    }
}

#[test]
fn a_replay_that_fails_is_repeated_as_well() {
    let source = LOOP.replace("CELL", "6").replace("WHEN", "3").replace("OTHERWISE", "skip;");
    let directory = Directory::new("replay_fails", &[("x.task", &source)]);
    for choice in ["", " --no-elim all"] {
        let output = directory.run(&format!("check x.task --replay 1.0{choice}"));
        assert_eq!(output.status.code(), Some(65), "{choice}");
        let output = directory.run(&format!("check x.task --replay 0.0{choice}"));
        assert_eq!(output.status.code(), Some(0), "{choice}");
    }
}
