//! The next step after a race of a native program.

use super::*;

/// The help of the race, with tasks 1 and 2 of these kinds, created in these files.
fn help(kinds: [TaskKind; 2], files: [&str; 2], change: impl FnOnce(&mut Findings)) -> String {
    let mut findings = findings();
    for ((task, kind), file) in findings.tasks[1..].iter_mut().zip(kinds).zip(files) {
        task.kind = kind;
        task.created = Some(findings::Place { file: file.to_owned(), line: 13, column: 15 });
    }
    change(&mut findings);
    let text = text::render(&made(&mut findings, &mut symbols()));
    let text = anstream::adapter::strip_str(&text).to_string();
    text.lines().find_map(|line| line.trim().strip_prefix("= help: ")).unwrap().to_owned()
}

#[test]
fn advice_is_in_the_words_of_rayon() {
    let main = "src/main.rs";
    let in_main =
        |findings: &mut Findings| (findings.races[0].second.task, findings.races[0].second.stack) = (0, 2);
    let of = |kind: TaskKind| help([kind; 2], [main; 2], in_main);
    assert_eq!(
        of(TaskKind::Join),
        "the two closures of the `join` of src/main.rs:13 are parallel: let them touch different memory, call one \
         after the other, or protect both accesses by a lock if their order does not matter"
    );
    assert_eq!(of(TaskKind::Scope), "let the `scope` around the task of src/main.rs:13 end before (2)");
    assert_eq!(
        of(TaskKind::Detached),
        "nothing waits for the job of src/main.rs:13: put it in a `scope` that ends before (2), or wait for it, by a \
         channel say"
    );
    let two = help([TaskKind::Scope; 2], [main; 2], |_| {});
    assert!(two.starts_with("tasks of src/main.rs:13 are parallel to each other: let each touch"), "{two}");
    let two = help([TaskKind::Scope; 2], [main; 2], |findings| {
        findings.tasks[2].created.as_mut().unwrap().line = 14;
    });
    assert!(two.starts_with("the tasks of src/main.rs:13 and of src/main.rs:14 are parallel: "), "{two}");
    let free = help([TaskKind::Join; 2], [main; 2], |findings| {
        in_main(findings);
        findings.races[0].second.kind = Kind::Free;
    });
    assert!(!free.contains("lock"), "no lock helps against a free: {free}");
}

#[test]
fn two_readers_of_a_lock_are_told_that_one_must_write() {
    let locked = |shares_lock, first| {
        help([TaskKind::Scope; 2], ["src/main.rs"; 2], move |findings| {
            let race = &mut findings.races[0];
            race.first.kind = first;
            for side in [&mut race.first, &mut race.second] {
                (side.locked, side.shares_lock) = (true, shares_lock);
            }
        })
    };
    let write = "readers of a lock do not keep each other out: take it for writing at";
    assert_eq!(locked(true, Kind::Write), format!("{write} (1) and (2), or order (2) with (1)"));
    assert_eq!(locked(true, Kind::Read), format!("{write} (2), or order (2) with (1)"));
    assert_eq!(locked(false, Kind::Write), "hold the same lock at (1) and (2), or order (2) with (1)");
}

#[test]
fn what_a_library_creates_is_shown_where_it_is_called() {
    let rayon = "/users/.cargo/registry/src/index/rayon-1.12.0/src/iter/plumbing/mod.rs";
    let call = |findings: &mut Findings| findings.tasks[1].stack = Some(2);
    let help = help([TaskKind::Join; 2], [rayon; 2], call);
    assert!(
        help.starts_with("items of the parallel iterator of src/main.rs:10 are parallel: let each touch"),
        "{help}"
    );
}
