//! What people see, as snapshots.

use std::time::Duration;

use dagsan_core::AccessKind;
use dagsan_core::order::{Isolation, Visits};
use expect_test::{Expect, expect};

use crate::fixture::{MISSING_GET, missing_get, place, race, report, task};
use crate::model::{Blocked, Diagnostic, End, Exploration, Failure, Join, Report, Stats, Verdict, Witness};
use crate::source::Source;

fn check(report: &Report, expected: Expect) {
    let text = crate::text::render(report);
    let text = anstream::adapter::strip_str(&text).to_string();
    // Trailing white space in a snapshot would be trailing white space in this file.
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

fn check_headline(report: &Report, expected: &str) {
    assert_eq!(crate::text::headline(report), expected);
}

#[test]
fn a_race_shows_both_accesses_and_where_the_tasks_come_from() {
    check(
        &missing_get(),
        expect![[r#"
        race[write-read]: parallel accesses to `a[1]`
         --> x.task:5:18
          |
        5 |     future g = { a[1] = 2; return 2; };
          |     --------     ^^^^ (1) task 2 writes `a[1]`
          |     |
          |     task 2 (future) is created here
        6 |     let u = get f;
        7 |     a[2] = a[0] + a[1];
          |                   ^^^^ (2) task 0 reads `a[1]`
          |
          = help: `get` the future of line 5 before (2)

        1 race on a[1]
    "#]],
    );
}

#[test]
fn tasks_of_one_place_are_told_apart_and_cells_are_listed_once() {
    let mut report =
        report("shared a[9];\nproc main() {\n    forall i in 0..9 {\n        a[i / 9] = i;\n    }\n}\n");
    let created = place(&report, "forall", "forall");
    task(&mut report, 1, Some(0), "forall", Join::Finish, Some(created.clone()));
    task(&mut report, 2, Some(0), "forall", Join::Finish, Some(created));
    let write = place(&report, "a[i", "a[i / 9]");
    let names: Vec<String> = (0..9).map(|cell| format!("a[{cell}]")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    race(&mut report, &names[..8], (1, write.clone()), (2, AccessKind::Write, write.clone()));
    race(&mut report, &names[7..], (1, write.clone()), (2, AccessKind::Write, write));
    report.races[1].duplicates = 2;
    check(
        &report,
        expect![[r#"
            race[write-write]: parallel accesses to `a[0]`, `a[1]`, `a[2]`, `a[3]`, `a[4]`, `a[5]`, `a[6]`, `a[7]` and 1 more
             --> x.task:4:9
              |
            3 |     forall i in 0..9 {
              |     ------ tasks 1 and 2 (forall) are created here
            4 |         a[i / 9] = i;
              |         ^^^^^^^^ (1) task 1 writes `a[0]`; (2) task 2 writes `a[0]`
              |
              = note: 3 more races between these two places
              = help: let each of these tasks touch memory of its own, make one wait for the other, or put both accesses in `isolated` sections if their order does not matter

            1 race on a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7] and 1 more
        "#]],
    );
}

#[test]
fn nested_tasks_show_the_way_up_and_arrays_where_they_were_made() {
    let source = "proc down(n, b) {\n    if n == 0 { b[0] = 1; }\n    else { async down(n - 1, b); }\n}\n\
                  proc main() {\n    let b = new [2];\n    async down(5, b);\n    spawn { b[0] = 2; }\n}\n";
    let mut report = report(source);
    let [main, inner, other] =
        ["async down(5", "async down(n", "spawn"].map(|text| place(&report, text, &text[..5]));
    task(&mut report, 1, Some(0), "async `down`", Join::Finish, Some(main));
    for number in 2..7 {
        task(&mut report, number, Some(number - 1), "async `down`", Join::Finish, Some(inner.clone()));
    }
    task(&mut report, 7, Some(0), "spawn", Join::Sync, Some(other));
    let (first, second) = (place(&report, "b[0] = 1", "b[0]"), place(&report, "b[0] = 2", "b[0]"));
    race(&mut report, &["b[0]"], (6, first), (7, AccessKind::Write, second));
    report.races[0].allocated = Some(place(&report, "new", "new [2]"));
    check(
        &report,
        expect![[r#"
        race[write-write]: parallel accesses to `b[0]`
         --> x.task:2:17
          |
        2 |     if n == 0 { b[0] = 1; }
          |                 ^^^^ (1) task 6 writes `b[0]`
        3 |     else { async down(n - 1, b); }
          |            ----- tasks 6 and 5 (async `down`) are created here
        ...
        6 |     let b = new [2];
          |             ------- `b` is made here
        7 |     async down(5, b);
          |     ----- task 1 (async `down`) is created here
        8 |     spawn { b[0] = 2; }
          |     -----   ^^^^ (2) task 7 writes `b[0]`
          |     |
          |     task 7 (spawn) is created here
          |
          = note: task 6 comes from task 1 through task 4 (line 3), task 3 (line 3), task 2 (line 3)
          = help: put the task of line 7 in a `finish` that ends before the task of line 8 is created; or let a promise order them: `set` it after (1), `get` it before (2)

        1 race on b[0]
    "#]],
    );
}

#[test]
fn advice_names_the_construct_that_would_order_the_accesses() {
    let advice = |join: Join, first: u32, second: u32, isolated: bool| {
        let mut report = missing_get();
        for number in [1, 2] {
            report.tasks.get_mut(&number).unwrap().join = join;
        }
        let race = &mut report.races[0];
        (race.first.task, race.second.task, race.first.isolated) = (first, second, isolated);
        super::advice::next_step(&report, &report.races[0])
    };
    let promise = "; or let a promise order them: `set` it after (1), `get` it before (2)";
    for (join, first, second, isolated, expected) in [
        (Join::Get, 2, 0, false, "`get` the future of line 5 before (2)".to_owned()),
        (Join::Sync, 2, 0, false, "put a `sync` after line 5 and before (2)".to_owned()),
        (Join::Await, 0, 2, false, "`await` the region of the task of line 5 before (1)".to_owned()),
        (
            Join::Finish,
            1,
            2,
            false,
            format!(
                "put the task of line 4 in a `finish` that ends before the task of line 5 is created{promise}"
            ),
        ),
        (Join::Finish, 1, 2, true, "put (2) in an `isolated` section too, or order it with (1)".to_owned()),
    ] {
        assert_eq!(advice(join, first, second, isolated), expected);
    }
}

#[test]
fn more_races_than_one_wants_to_read() {
    let mut report = report(&"x = 1;\n".repeat(30));
    for line in 0..30 {
        let at = report.sources[0].place(0, line * 7..line * 7 + 1);
        race(&mut report, &["x"], (0, at.clone()), (0, AccessKind::Write, at));
    }
    let text = crate::text::render(&report);
    assert!(text.contains("note: 10 more of this kind; `--format json` lists all"));
    check_headline(&report, "30 races on x");
}

#[test]
fn verdicts_say_no_more_than_was_found_out() {
    let mut report = report("");
    (report.task_count, report.strand_count) = (14, 23);
    check_headline(&report, "race-free: 14 tasks, 23 strands, every schedule of this input");
    report.has_isolated = true;
    check_headline(
        &report,
        "race-free: 14 tasks, 23 strands, every schedule of this input in this order of the isolated sections",
    );
    report.isolation = Isolation::MutualExclusion;
    check_headline(
        &report,
        "race-free: 14 tasks, 23 strands, every schedule of this input if isolated sections commute",
    );
    report.has_ewait = true;
    (report.has_isolated, report.task_count) = (false, 1);
    check_headline(
        &report,
        "race-free: 1 task, 23 strands, every schedule of this input for this choice at ewait",
    );

    let mut racy = missing_get();
    check_headline(&racy, "1 race on a[1]");
    racy.has_isolated = true;
    check_headline(&racy, "1 race on a[1]");
    racy.isolation = Isolation::MutualExclusion;
    racy.dropped_races = 7;
    check_headline(&racy, "1 race on a[1], and 7 beyond those that are kept, if isolated sections commute");
    let mut racy = missing_get();
    racy.end = End::Deadlock(Vec::new());
    check_headline(&racy, "1 race on a[1]; then a deadlock: 0 of 3 tasks wait for ever");
}

#[test]
fn verdicts_of_explorations_say_what_they_rest_on() {
    let mut report = report("");
    (report.task_count, report.strand_count, report.has_isolated) = (3, 4, true);
    let explored = |schedules, commute, stopped: Option<&str>| {
        let mut report = report.clone();
        report.schedules = schedules;
        let stopped = stopped.map(str::to_owned);
        report.exploration = Some(Exploration { commute, stopped, ..Exploration::default() });
        report
    };
    check_headline(
        &explored(1, true, None),
        "race-free: 3 tasks, 4 strands, every schedule of this input: the isolated sections commute, one run is enough",
    );
    check_headline(
        &explored(12, false, None),
        "race-free: 3 tasks, 4 strands, every schedule of this input; 12 of them stand for all",
    );

    let mut cut = explored(12, false, Some("it was interrupted"));
    assert_eq!(cut.verdict(), Verdict::NotExhausted);
    check_headline(
        &cut,
        "not-exhausted: 3 tasks, 4 strands, no race in what was seen; \
         12 schedules run, not all: it was interrupted",
    );
    cut.races = missing_get().races;
    assert_eq!(cut.verdict(), Verdict::Race);
    check_headline(&cut, "1 race on a[1]; 12 schedules run, not all: it was interrupted");
    // A bad end is one, however much was left out.
    cut.races.clear();
    cut.end = End::Deadlock(Vec::new());
    assert_eq!(cut.verdict(), Verdict::Deadlock);
}

#[test]
fn a_schedule_is_named_with_the_command_that_runs_it_again() {
    let mut report = missing_get();
    report.races[0].schedule = Some("0.2.1".to_owned());
    let again = "in schedule 0.2.1; to see it again: dagsan check x.task --replay 0.2.1";
    let text = |report: &Report| anstream::adapter::strip_str(&crate::text::render(report)).to_string();
    assert!(text(&report).contains(&format!("  = note: {again}\n")), "{}", text(&report));

    report.races.clear();
    report.schedule = Some("0.2.1".to_owned());
    assert!(!text(&report).contains("--replay"), "it ended well: there is nothing to see again");
    report.end = End::Deadlock(Vec::new());
    assert!(text(&report).contains(&format!("note: {again}\ndeadlock: ")), "{}", text(&report));
}

#[test]
fn a_witness_shows_both_orders() {
    let note = |witness: Witness| {
        let mut report = missing_get();
        report.races[0].witness = Some(witness);
        let text = crate::text::render(&report);
        let text = anstream::adapter::strip_str(&text).to_string();
        let notes = text.lines().filter_map(|line| line.trim().strip_prefix("= note: "));
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    let difference = |what: &str, one: &str, other: &str| (what.to_owned(), one.to_owned(), other.to_owned());
    assert_eq!(
        note(Witness::Differences(vec![
            difference("x", "1", "2"),
            difference("end", "it ends", "it deadlocks")
        ])),
        [
            "both orders were run: (1) before (2): x = 1, end = it ends; (2) before (1): x = 2, end = it deadlocks"
        ]
    );
    let [benign] = &note(Witness::Differences(Vec::new()))[..] else { panic!("one note") };
    assert!(benign.ends_with("for this input the race is benign"), "{benign}");
    let [none] = &note(Witness::None)[..] else { panic!("one note") };
    assert!(none.starts_with("no witness: "), "{none}");

    let many = (0..10).map(|cell| difference(&format!("a[{cell}]"), "0", "1")).collect();
    let [many] = &note(Witness::Differences(many))[..] else { panic!("one note") };
    assert!(many.contains("a[7] = 0; (2) before (1): a[0] = 1") && many.ends_with("; 2 more differences"));
    assert!(!many.contains("a[8]"), "{many}");
}

#[test]
fn a_failed_run() {
    let mut failed = report(MISSING_GET);
    let place = place(&failed, "let u", "get f");
    failed.end = End::Failed(Failure { task: 0, place, message: "division by zero".to_owned() });
    check(
        &failed,
        expect![[r#"
        error: division by zero
         --> x.task:6:13
          |
        6 |     let u = get f;
          |             ^^^^^ task 0

        error: division by zero (task 0, line 6); no race before it
    "#]],
    );
    failed.races = missing_get().races;
    check_headline(&failed, "1 race on a[1]; then error: division by zero (task 0, line 6)");
}

#[test]
fn a_deadlock_shows_who_waits_for_what_after_the_output() {
    let mut report =
        report("proc main() {\n    promise p;\n    forall i in 0..9 { get p; }\n    get p;\n}\n");
    report.output = "before".to_owned();
    let (inner, outer) = (place(&report, "get p; }", "get p"), place(&report, "    get p;\n", "get p"));
    let waits = |task, place| Blocked { task, place, waits_for: "promise `p`".to_owned() };
    let mut blocked = vec![waits(0, outer)];
    blocked.extend((1..10).map(|task| waits(task, inner.clone())));
    report.end = End::Deadlock(blocked);
    report.task_count = 10;
    check(
        &report,
        expect![[r#"
        before
        deadlock: no task can go on
         --> x.task:3:24
          |
        3 |     forall i in 0..9 { get p; }
          |                        ^^^^^ tasks 1, 2, 3, 4, 5, 6 and 7 wait for promise `p`
        4 |     get p;
          |     ^^^^^ task 0 waits for promise `p`
          |
          = note: and 2 tasks more
          = help: find who should `set` or end what they wait for, and why it does not come to that

        deadlock: 10 of 10 tasks wait for ever
    "#]],
    );
}

#[test]
fn all_diagnostics_are_shown() {
    let mut report = report("let é = 1;\nlet é = \ttrue + 1;\n");
    let (first, again) = (place(&report, "é", "é"), place(&report, "\nlet é", "é"));
    let type_error = place(&report, "true", "true");
    report.end = End::Rejected(vec![
        Diagnostic {
            place: again,
            message: "`é` is defined twice".to_owned(),
            label: "again here".to_owned(),
            others: vec![(first, "first here".to_owned())],
            help: Some("rename one of them".to_owned()),
        },
        Diagnostic {
            place: type_error,
            message: "expected int, found bool".to_owned(),
            label: String::new(),
            others: Vec::new(),
            help: None,
        },
        Diagnostic {
            place: report.sources[0].place(0, 99..99),
            message: "the file ends too early".to_owned(),
            label: "here".to_owned(),
            others: Vec::new(),
            help: None,
        },
    ]);
    check(
        &report,
        expect![[r#"
        error: `é` is defined twice
         --> x.task:2:5
          |
        1 | let é = 1;
          |     - first here
        2 | let é =     true + 1;
          |     ^ again here
          |
          = help: rename one of them

        error: expected int, found bool
         --> x.task:2:10
          |
        2 | let é =     true + 1;
          |             ^^^^

        error: the file ends too early
         --> x.task:2:20
          |
        2 | let é =     true + 1;
          |                      ^ here

        error: could not check x.task: 3 errors
    "#]],
    );
}

#[test]
fn what_could_not_be_checked() {
    let mut none = report("");
    none.sources = vec![Source::new("gone.task", "")];
    none.end = End::Unreadable("there is no such file".to_owned());
    check(
        &none,
        expect![[r#"
        error: could not check gone.task: there is no such file
    "#]],
    );
    none.end = End::Refused("engine `esp-bags` does not support promises; these do: dag".to_owned());
    check(
        &none,
        expect![[r#"
        error: could not check gone.task: engine `esp-bags` does not support promises; these do: dag
    "#]],
    );
    none.end = End::Broken("task 4 does not exist".to_owned());
    check(
        &none,
        expect![[r#"
        error: could not check gone.task: a fault of dagsan itself: task 4 does not exist; please report it, with the file
    "#]],
    );
}

#[test]
fn stats_and_notes_come_before_the_verdict() {
    let mut report = report("");
    report.stats = Some(Stats {
        accesses: 1234,
        checks: 234,
        eliminated: vec![("sequential", 1000), ("read-only", 0)],
        strands: 12,
        quiescent_strands: 2,
        comparisons: 99,
        queries: 55,
        visits: Some(Visits { searches: 2, min: 1, max: 2, total: 3 }),
        order_memory: 2048,
        access_memory: 100,
        compile_time: Duration::from_micros(1500),
        run_time: Duration::from_millis(20),
    });
    report.notes.push("the graph was written to x.svg".to_owned());
    check(
        &report,
        expect![[r#"
        accesses to shared memory                       1234
          checked                                        234
          eliminated: sequential                        1000
          eliminated: read-only                            0
        strands checked                                   12
        strands while nothing was parallel                 2
        comparisons of accesses                           99
        questions about order                             55
          that had to search                               2
          visited per search, mean                       1.5
        memory for the order                         2.0 KiB
        memory for the accesses                      0.1 KiB
        time to compile                             1.500 ms
        time to run and check                      20.000 ms

        note: the graph was written to x.svg
        race-free: 1 task, 1 strand, every schedule of this input
    "#]],
    );
}

#[test]
fn places_without_a_text_and_empty_places_do_no_harm() {
    let mut report = missing_get();
    report.sources.push(Source::absent("std.rs"));
    let outside = report.sources[1].place(1, 5..9);
    report.races[0].first.place = outside;
    let end = report.sources[0].text().len();
    report.races[0].second.place = report.sources[0].place(0, end..end);
    check(
        &report,
        expect![[r#"
            race[write-read]: parallel accesses to `a[1]`
             --> x.task:8:3
              |
            5 |     future g = { a[1] = 2; return 2; };
              |     -------- task 2 (future) is created here
            ...
            8 | }
              |  ^ (2) task 0 reads `a[1]`
              |
              = note: at std.rs:1: (1) task 2 writes `a[1]`
              = help: `get` the future of line 5 before (2)

            1 race on a[1]
        "#]],
    );
}
