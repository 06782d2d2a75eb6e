//! Programs that are cut off: exit, abort, full stacks, forks and missing memory, while other things are going on. What
//! they leave is complete, or there is a clear word; they never hang. They are in
//! `tests/native/src/bin/points/ends.rs`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use dagsan_findings::{End, FINDINGS_FILE, Findings};

use crate::support::{
    Directory, OPTIMISED_POINTS, POINTS, Ran, limited, run, run_point, target_directory, workspace,
};

/// Runs one as the runner does; it must leave findings.
fn ends(name: &str, options: &str) -> (Ran, Findings) {
    let (ran, found) = run_point(&POINTS, name, options);
    let found = found.unwrap_or_else(|| panic!("{name} left no findings: {ran:?}"));
    (ran, found)
}

/// Whenever the other thread comes: not just once.
#[test]
fn a_program_that_ends_beside_its_tasks_has_all_that_was_found() {
    for program in [&*POINTS, &*OPTIMISED_POINTS] {
        for (name, code, end) in [
            ("exit_beside_tasks", 66, End::Exited),
            ("exit_of_the_main_thread_beside_tasks", 66, End::Exited),
            ("abort_beside_tasks", 134, End::Aborted),
            ("aborts_of_two_threads", 134, End::Aborted),
        ] {
            for _ in 0..10 {
                let (ran, found) = run_point(program, name, "");
                let found = found.unwrap_or_else(|| panic!("{name} left no findings: {ran:?}"));
                assert_eq!((ran.code, &found.end, found.races.len()), (code, &end, 1), "{name} {ran:?}");
            }
        }
    }
}

#[test]
fn a_full_stack_is_told_and_what_was_found_is_reported() {
    for name in ["overflow", "overflow_in_a_thread"] {
        let (ran, found) = ends(name, "");
        assert_eq!((ran.code, found.end, found.races.len()), (134, End::Aborted, 1), "{name}");
        assert!(ran.stderr.contains("has overflowed its stack"), "{}", ran.stderr);
    }
    // The stacks of tasks are not those that the standard library knows: a fault like any other.
    let (ran, found) = run_point(&POINTS, "overflow_in_a_task", "");
    assert_eq!((ran.code, found), (139, None));
}

#[test]
fn a_forked_process_is_not_checked_at_all() {
    let (ran, found) = ends("fork_and_go_on", "");
    assert_eq!(
        (ran.code, found.end, found.races.len(), found.uses.forks),
        (66, End::Exited, 1, 1),
        "{ran:?}"
    );
    // This is said once, by the parent.
    let directory = Directory::new("fork_behind_our_back");
    let ran = run(limited(&*POINTS).arg("fork_behind_our_back").current_dir(&directory.0));
    assert_eq!((ran.code, ran.stderr.matches("1 race found").count()), (66, 1), "{}", ran.stderr);
}

#[test]
fn a_thread_that_ends_with_tasks_does_not_keep_the_session() {
    let (ran, found) = ends("thread_ends_with_tasks", "");
    assert!(matches!(&found.end, End::CutShort(why) if why.contains("in the middle")), "{:?}", found.end);
    assert_eq!((ran.code, found.races.len()), (0, 0));
    let (ran, found) = ends("thread_ends_after_detached_tasks", "");
    assert_eq!((ran.code, found.end, found.races.len()), (0, End::Exited, 0));
    let (ran, found) = ends("thread_leaves_by_pthread_exit", "");
    assert_eq!((ran.code, found.end, found.races.len()), (66, End::Exited, 1));
}

#[test]
fn words_that_are_gone_are_not_looked_at() {
    for (name, options) in [
        ("word_that_another_thread_unmaps", ""),
        ("word_on_the_stack_of_an_ended_thread", ""),
        ("word_in_a_freed_block", "heap=0"),
        ("word_in_a_freed_block", ""),
    ] {
        let (ran, found) = ends(name, options);
        assert_eq!((ran.code, found.end, found.races.len()), (66, End::Exited, 1), "{name} {ran:?}");
    }
    let (ran, found) = ends("word_that_code_without_hooks_changes", "");
    assert_eq!((ran.code, found.end, found.races.len()), (0, End::Exited, 0), "{ran:?}");
}

/// The library that has allocations fail, compiled without hooks.
static FAILING: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = target_directory().join("libfailing.so");
    let ran = run(Command::new("rustc")
        .args(["--edition=2024", "--crate-type=cdylib", "-Cpanic=abort", "-O", "-o"])
        .arg(&library)
        .arg(workspace("tests/native/preload/failing.rs")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    library
});

/// Runs a point with the allocator of `tests/native/preload`.
fn run_failing(directory: &Directory, name: &str, fail: &str) -> (Ran, Option<Findings>) {
    let file = directory.file("findings.json");
    // From the run before.
    let _ = std::fs::remove_file(&file);
    // For the program alone, not for what limits its time.
    let mut command = limited("env");
    command.arg(format!("LD_PRELOAD={}", FAILING.display())).arg(&*POINTS).arg(name);
    let ran = run(command.current_dir(&directory.0).env(FINDINGS_FILE, &file).env("FAIL", fail));
    let found = file.exists().then(|| Findings::read(&file).unwrap());
    (ran, found)
}

/// What may come of a run in which an allocation failed.
fn is_clear(ran: &Ran, found: Option<&Findings>) -> bool {
    let Some(found) = found else {
        // Before `main`, the C library or the standard library ends the process in its own way.
        return !ran.stdout.contains("begun");
    };
    match &found.end {
        // The program did without.
        End::Exited => ran.code == 66 && found.races.len() == 1,
        End::Aborted => ran.code == 134,
        End::CutShort(_) => {
            let code = if found.races.is_empty() { 1 } else { 66 };
            ran.code == code && ran.stderr.contains("dagsan: out of memory\n")
        }
        _ => false,
    }
}

/// Each allocation of a small program in turn, by itself or with all that follow; or the allocator aborts there.
fn every_allocation_fails(mode: &str) {
    let directory = Directory::new(&format!("failing-{mode}"));
    let (mut reports, mut races) = (0, 0);
    for number in 1.. {
        let (ran, found) = run_failing(&directory, "some_of_everything", &format!("{mode}:{number}"));
        assert!(
            is_clear(&ran, found.as_ref()),
            "{mode}:{number}: {ran:?} {:?}",
            found.map(|found| found.end)
        );
        if !ran.stderr.contains("failing: ") {
            break;
        }
        reports += usize::from(found.is_some());
        races += found.map_or(0, |found| found.races.len());
    }
    // Many allocations come after the race.
    assert!(reports > 100 && races > 100, "{reports} reports, {races} races");
}

#[test]
fn whichever_allocation_fails_there_is_a_report_or_a_word() {
    every_allocation_fails("once");
}

#[test]
fn from_whichever_allocation_on_there_is_no_memory_there_is_a_report_or_a_word() {
    every_allocation_fails("from");
}

#[test]
fn wherever_the_allocator_aborts_there_is_a_report() {
    every_allocation_fails("abort");
}

/// The thread of the tasks may be inside of the runtime, and wait there for the allocator that was aborted.
#[test]
fn an_abort_in_the_allocator_beside_tasks_is_reported_or_there_is_a_word() {
    let directory = Directory::new("stuck");
    for number in [1000, 1500, 2000, 2500] {
        let fail = format!("stuck:{number}");
        let (ran, found) = run_failing(&directory, "allocations_beside_tasks", &fail);
        match found {
            Some(found) => assert_eq!((ran.code, found.end, found.races.len()), (134, End::Aborted, 1)),
            // Given up by the report itself, or by the watch over it.
            None => {
                assert!([134, 1].contains(&ran.code), "{ran:?}");
                assert!(ran.stderr.contains("what was found is not reported"), "{}", ran.stderr);
            }
        }
    }
}

/// Its own allocator, which the runtime allocates with: there is no other way than to give up.
#[test]
fn a_report_that_does_not_come_to_its_end_is_given_up() {
    let (ran, found) = run_point(&POINTS.with_file_name("aborting"), "", "");
    assert_eq!((ran.code, found), (1, None));
    assert!(ran.stderr.contains("dagsan: the report does not come to its end"), "{}", ran.stderr);
}

/// A device in the place of a file: the findings go there, and it stays what it is.
#[test]
fn findings_that_go_to_a_device_leave_it_one() {
    let directory = Directory::new("device");
    let link = directory.file("null");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    let options = format!("findings={}", link.display());
    let mut command = limited(&*POINTS);
    command.arg("overflow").current_dir(&directory.0).env("DAGSAN_OPTIONS", options);
    assert_eq!(run(&mut command).code, 134);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 1);
}
