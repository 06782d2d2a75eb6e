//! Programs that end in odd ways, or do what a runtime could stumble over: what comes of them, and that they are not
//! disturbed. They are in `tests/native/src/bin/points/behaviours.rs`.

use std::fs;

use dagsan_findings::{End, Findings};

use crate::support::{Directory, POINTS, Ran, cargo_dagsan, dagsan, limited, run, run_point, workspace};

/// Runs one as the runner does; it must leave findings.
fn behave(name: &str, options: &str) -> (Ran, Findings) {
    let (ran, found) = run_point(&POINTS, name, options);
    let found = found.unwrap_or_else(|| panic!("{name} left no findings: {ran:?}"));
    (ran, found)
}

/// Runs one under `cargo dagsan run`: as users do.
fn run_with_cargo(name: &str) -> Ran {
    run_with_cargo_and(name, "")
}

/// The same with `DAGSAN_OPTIONS`.
fn run_with_cargo_and(name: &str, options: &str) -> Ran {
    let _built = &*POINTS;
    let arguments = ["run", "--quiet", "--bin", "points", "--", name];
    run(cargo_dagsan(&workspace("tests/native"), &arguments).env("DAGSAN_OPTIONS", options))
}

#[test]
fn an_exit_in_a_task_keeps_its_code_unless_there_was_a_race() {
    let (ran, found) = behave("exit_in_a_task", "");
    assert_eq!((ran.code, found.end, found.races.len()), (3, End::Exited, 0));
    assert_eq!(found.code, Some(3));
    let (ran, found) = behave("exit_in_a_task_after_a_race", "");
    assert_eq!((ran.code, found.end, found.races.len()), (66, End::Exited, 1));
    assert_eq!(found.code, Some(3));
    let (ran, _) = behave("exit_in_a_task_after_a_race", "exitcode=9");
    assert_eq!(ran.code, 9);
    assert_eq!(run_with_cargo("exit_in_a_task").code, 3);
}

#[test]
fn a_panic_in_a_task_unwinds_as_usual_and_what_was_found_is_reported() {
    let (ran, found) = behave("panic_in_a_task", "");
    assert_eq!((ran.code, found.end, found.races.len()), (101, End::Exited, 0));
    assert!(
        ran.stderr.contains("panicked at src/bin/points/behaviours.rs") && ran.stderr.contains("on purpose")
    );
    let (ran, found) = behave("panic_in_a_task_after_a_race", "");
    assert_eq!((ran.code, found.end, found.races.len()), (66, End::Exited, 1));
    assert!(ran.stderr.contains("on purpose"));
}

#[test]
fn an_abort_is_one_and_what_was_found_is_reported() {
    let (ran, found) = behave("abort_in_a_task", "");
    assert_eq!((ran.code, found.end, found.races.len()), (134, End::Aborted, 0));
    let (ran, found) = behave("abort_in_a_task_after_a_race", "");
    assert_eq!((ran.code, found.end, found.races.len()), (134, End::Aborted, 1));
    let ran = run_with_cargo("abort_in_a_task");
    assert_eq!(ran.code, 134);
    assert!(ran.stderr.contains("the program aborted; no race before it"), "{}", ran.stderr);
    let ran = run_with_cargo("abort_in_a_task_after_a_race");
    assert_eq!(ran.code, 66);
    assert!(ran.stderr.contains("; then the program aborted"), "{}", ran.stderr);
}

#[test]
fn of_a_program_that_is_killed_nothing_is_claimed() {
    let ran = run_with_cargo("segfault_in_a_task");
    assert_eq!(ran.code, 139);
    assert!(ran.stderr.contains("was ended by signal 11 (SIGSEGV) and left no findings"), "{}", ran.stderr);
}

#[test]
fn threads_of_the_program_are_checked() {
    let (ran, found) = behave("threads_hammering", "");
    assert_eq!((ran.code, found.end, found.races.len(), found.threads.len()), (0, End::Exited, 0, 0));
    assert_eq!(found.stats.tasks, 153);
}

#[test]
fn threads_that_are_not_to_be_checked_are_counted() {
    let (ran, found) = behave("threads_hammering", "threads=0");
    assert_eq!((ran.code, found.end, found.races.len()), (0, End::Exited, 0));
    assert_eq!(found.threads.iter().map(|threads| threads.count).sum::<u32>(), 2);
    let ran = run_with_cargo_and("threads_hammering", "threads=0");
    let told = "; not checked: 2 threads started at src/bin/points/behaviours.rs:";
    assert!(ran.code == 0 && ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn tasks_of_another_thread_are_checked_too_unless_threads_are_not() {
    let (ran, found) = behave("threads_with_tasks", "");
    assert_eq!((ran.code, found.end, found.races.len(), found.stats.tasks), (66, End::Exited, 1, 5));
    assert_eq!(found.threads.len(), 0);
    let (ran, found) = behave("threads_with_tasks", "threads=0");
    assert_eq!((ran.code, found.end, found.races.len(), found.stats.tasks), (0, End::Exited, 0, 2));
    assert_eq!(found.threads.len(), 1);
}

#[test]
fn the_thread_that_starts_the_first_task_is_the_one_that_is_checked() {
    let (ran, found) = behave("thread_runs_all_tasks", "");
    assert_eq!((ran.code, found.end, found.races.len()), (66, End::Exited, 1));
}

#[test]
fn processes_that_are_started_are_left_alone() {
    let (ran, found) = behave("fork_and_exec", "");
    assert_eq!((ran.code, found.end, found.races.len()), (0, End::Exited, 0), "{}", ran.stderr);
}

#[test]
fn a_forked_process_does_not_report_in_the_name_of_its_parent() {
    let (ran, found) = behave("fork_and_exit", "");
    assert_eq!(
        (ran.code, found.end, found.races.len(), found.uses.forks),
        (66, End::Exited, 1, 1),
        "{}",
        ran.stderr
    );
    let ran = run_with_cargo("fork_and_exit");
    assert!(ran.stderr.contains("; not checked: 1 forked process"), "{}", ran.stderr);
}

#[test]
fn a_limit_of_memory_ends_the_check_and_not_the_program() {
    let (ran, found) = behave("much_memory_after_a_race", "max_memory=1");
    let End::CutShort(why) = &found.end else { panic!("{:?}", found.end) };
    assert!(why.contains("max_memory=1"), "{why}");
    assert_eq!((ran.code, found.races.len()), (66, 1));
    let (_, found) = behave("much_memory_after_a_race", "");
    assert_eq!(found.end, End::Exited);
}

#[test]
fn a_program_that_gets_no_more_memory_has_its_findings() {
    let (ran, found) = behave("no_memory_after_a_race", "");
    assert!(matches!(&found.end, End::CutShort(why) if why.contains("smaller input")), "{:?}", found.end);
    assert_eq!((ran.code, found.races.len()), (66, 1), "{}", ran.stderr);
    // Who is the first to need some, the runtime or the program, which then aborts, is a matter of luck.
    let (ran, found) = behave("no_byte_after_a_race", "");
    let ends = [(66, true), (134, false)];
    assert!(ends.contains(&(ran.code, matches!(found.end, End::CutShort(_)))), "{ran:?} {:?}", found.end);
    assert_eq!(found.races.len(), 1);
}

#[test]
fn a_deadlock_names_tasks_and_promises() {
    let (_, found) = behave("deadlock_of_promises", "");
    let End::Deadlock(blocked) = &found.end else { panic!("{:?}", found.end) };
    let waits: Vec<(u32, &str)> =
        blocked.iter().map(|blocked| (blocked.task, blocked.waits_for.as_str())).collect();
    assert!(waits.contains(&(1, "promise `left`")) && waits.contains(&(2, "promise `right`")), "{waits:?}");
    let ran = run_with_cargo("deadlock_of_promises");
    assert_eq!(ran.code, 65);
    assert!(ran.stderr.contains("wait for ever") && ran.stderr.contains("promise `left`"), "{}", ran.stderr);
    assert_eq!(run_with_cargo("deadlock_after_a_race").code, 66);
}

/// The program knows what to do about it. Who waited for ever is told all the same.
#[test]
fn a_deadlock_that_the_program_handles_is_one() {
    let (ran, found) = behave("deadlock_that_is_handled", "");
    assert!(matches!(&found.end, End::Deadlock(blocked) if blocked[0].waits_for == "promise `never`"));
    assert_eq!(ran.code, 0);
}

#[test]
fn a_global_allocator_of_the_program_has_hooks_and_does_no_harm() {
    // The runtime allocates with it from its start on: to read its options, for example.
    for options in ["", "heap=1"] {
        let (ran, found) = run_point(&POINTS.with_file_name("allocator"), "", options);
        let found = found.unwrap_or_else(|| panic!("{ran:?}"));
        assert_eq!((ran.code, found.end, found.races.len(), found.stats.tasks), (0, End::Exited, 0, 101));
    }
}

#[test]
fn many_tasks_are_no_burden() {
    let (ran, found) = behave("many_tasks", "");
    assert_eq!((ran.code, found.end, found.races.len()), (0, End::Exited, 0));
    assert!(found.stats.tasks > 10_000);
}

#[test]
fn options_that_make_no_sense_are_refused_with_the_way_to_help() {
    for (options, part) in
        [("heap", "not of the form key=value"), ("speed=9", "no option `speed`"), ("engine=magic", "magic")]
    {
        let (ran, found) = run_point(&POINTS, "order_finish", options);
        assert_eq!((ran.code, found), (2, None));
        assert!(
            ran.stderr.starts_with("dagsan: DAGSAN_OPTIONS: ") && ran.stderr.contains(part),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("DAGSAN_OPTIONS=help=1 lists the options"));
    }
    let (ran, _) = run_point(&POINTS, "order_finish", "help=1");
    assert!(ran.code == 0 && ran.stderr.contains("\n  max_memory=MIB "), "{}", ran.stderr);
}

#[test]
fn an_engine_that_cannot_take_a_program_says_who_can() {
    let (_, found) = behave("order_promise", "engine=esp-bags");
    assert!(
        matches!(&found.end, End::Refused(why) if why.contains("esp-bags") && why.contains("dag")),
        "{:?}",
        found.end
    );
}

#[test]
fn without_a_runner_findings_are_in_the_current_directory() {
    let directory = Directory::new("bare");
    let start = |name: &str| run(limited(&*POINTS).arg(name).current_dir(&directory.0));
    let files = || fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();

    assert_eq!((start("order_finish").code, files().len()), (0, 0), "nothing to tell");
    let ran = start("access_static");
    assert_eq!(ran.code, 66);
    let [file] = &files()[..] else { panic!("{:?}", files()) };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("dagsan.") && name.ends_with(".json"), "{name}");
    let said = format!("1 race found; `dagsan report {name}` tells more");
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    let shown = run(dagsan(&["report", name]).current_dir(&directory.0));
    assert!(shown.code == 66 && shown.stdout.contains("race[write-write]"), "{}", shown.stdout);
}

#[test]
fn findings_can_be_written_to_a_file_that_is_named() {
    let directory = Directory::new("named");
    let ran = run(limited(&*POINTS)
        .arg("access_static")
        .current_dir(&directory.0)
        .env("DAGSAN_OPTIONS", "findings=here.json"));
    assert_eq!(ran.code, 66);
    assert_eq!(Findings::read(&directory.file("here.json")).unwrap().races.len(), 1);
    let ran = run(limited(&*POINTS)
        .arg("order_finish")
        .current_dir(&directory.0)
        .env("DAGSAN_OPTIONS", "findings=none.json"));
    let said = "dagsan: no race found; `dagsan report none.json` tells more";
    assert!(ran.code == 0 && ran.stderr.contains(said), "{}", ran.stderr);
    // Where it cannot be written, that is said, and the code is what it is.
    let ran = run(limited(&*POINTS)
        .arg("access_static")
        .env("DAGSAN_OPTIONS", "findings=/no/such/directory/x.json"));
    assert!(ran.code == 66 && ran.stderr.contains("cannot write what was found"), "{}", ran.stderr);
}
