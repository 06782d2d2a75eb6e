//! Findings made by hand, and what people see of them.
//!
//! The executable does not exist: frames have no names, so that the places of accesses come from what the tests put
//! into the table of known addresses.

mod advice;
mod hostile;

use std::fs;

use dagsan_findings::ScheduleDependent;
use expect_test::{Expect, expect};

use super::*;
use crate::model::ScheduleDependence;
use crate::text;

/// A program that lies in a directory of its own.
const PROGRAM: &str = "\
use dagsan_task::finish;

static mut TOTAL: u64 = 0;

fn fill(cell: &mut u64) {
    *cell = 1;
}

fn main() {
    let mut cells = vec![0; 512];
    finish(|scope| {
        let shared = Shared(&mut cells);
        scope.spawn(move |_| fill(shared.cell(3)));
        scope.spawn(move |_| fill(shared.cell(3)));
    });
}
";

fn findings() -> Findings {
    let task = |number: u32, kind, line: u32| findings::Task {
        number,
        parent: (number > 0).then_some(0),
        kind,
        created: (line > 0).then(|| findings::Place { file: "src/main.rs".into(), line, column: 15 }),
        stack: None,
    };
    let stack = |frames: &[u64], complete| findings::Stack { frames: frames.to_vec(), complete };
    Findings {
        version: findings::VERSION,
        process: findings::Process {
            executable: "/nowhere/target/program".into(),
            arguments: Vec::new(),
            directory: "/nowhere".into(),
            id: 1,
        },
        engine: "dag".to_owned(),
        end: findings::End::Exited,
        code: None,
        races: vec![race(0x1018, 1, 2)],
        dropped_races: 0,
        tasks: vec![task(0, TaskKind::Main, 0), task(1, TaskKind::Async, 13), task(2, TaskKind::Async, 14)],
        stacks: vec![stack(&[10, 20], false), stack(&[10, 30], true), stack(&[40], false)],
        uses: findings::Uses::default(),
        threads: Vec::new(),
        graphs: Vec::new(),
        stats: findings::Stats { tasks: 3, strands: 4, ..findings::Stats::default() },
    }
}

fn race(at: u64, first: u32, second: u32) -> findings::Race {
    let side = |task: u32| findings::Side {
        kind: Kind::Write,
        atomic: false,
        locked: false,
        shares_lock: false,
        task,
        stack: task as usize - 1,
        nearby: false,
    };
    findings::Race {
        bytes: vec![(at, 8)],
        memory: Memory::Heap { start: 0x1000, size: 4096, stack: Some(2) },
        first: side(first),
        second: side(second),
        duplicates: 0,
        graph: None,
    }
}

/// The program's code: what each address is.
fn symbols() -> Symbols {
    let symbol = |function: &str, file: &str, line, column, inlined| Symbol {
        function: function.to_owned(),
        file: Some(file.to_owned()),
        line,
        column,
        inlined,
    };
    let hook = symbol("__tsan_write8", "/checkout/crates/dagsan-rt/src/hooks.rs", 1, 1, true);
    let write = symbol("core::ptr::write", "/rustc/abc/library/core/src/ptr/mod.rs", 9, 1, true);
    let slice = symbol("core::slice::get", "/rustc/abc/library/core/src/slice/mod.rs", 5, 1, true);
    let fill = symbol("program::fill", "src/main.rs", 6, 5, false);
    let spawned =
        symbol("dagsan_task::scope::spawn", "/checkout/crates/dagsan-task/src/scope.rs", 1, 1, false);
    let mut symbols = Symbols::none();
    symbols.know(10, vec![hook, write, slice, fill]);
    symbols.know(20, vec![symbol("program::main::{closure#0}", "src/main.rs", 13, 30, false)]);
    symbols.know(30, vec![symbol("program::main::{closure#1}", "src/main.rs", 14, 30, false), spawned]);
    symbols.know(40, vec![symbol("program::main", "src/main.rs", 10, 21, false)]);
    symbols
}

/// The report, with the program in a directory that exists while it is made.
fn made(findings: &mut Findings, symbols: &mut Symbols) -> Report {
    let unique = format!("dagsan-native-{}-{:?}", std::process::id(), std::thread::current().id());
    let directory = std::env::temp_dir().join(unique);
    fs::create_dir_all(directory.join("src")).unwrap();
    fs::write(directory.join("src/main.rs"), PROGRAM).unwrap();
    findings.process.directory = directory.join("src");
    let files = Files::new(&directory, &findings.process);
    let report = report(findings, symbols, &files);
    fs::remove_dir_all(&directory).unwrap();
    report.unwrap()
}

fn check(change: impl FnOnce(&mut Findings), expected: Expect) {
    let mut findings = findings();
    change(&mut findings);
    let text = text::render(&made(&mut findings, &mut symbols()));
    let text = anstream::adapter::strip_str(&text).to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

fn headline(change: impl FnOnce(&mut Findings)) -> String {
    let mut findings = findings();
    findings.races.clear();
    change(&mut findings);
    text::headline(&made(&mut findings, &mut symbols()))
}

#[test]
fn a_race_is_shown_in_the_users_code() {
    check(
        |_| {},
        expect![[r#"
            race[write-write]: parallel accesses to 8 bytes at offset 24 of a heap block of 4096 bytes
              --> src/main.rs:6:5
               |
             6 |     *cell = 1;
               |     ^^^^^ (1) task 1 writes 8 bytes; (2) task 2 writes 8 bytes
            ...
            10 |     let mut cells = vec![0; 512];
               |                     ------------ the block is allocated here
            ...
            13 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ----- task 1 (async) is created here
            14 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ----- task 2 (async) is created here
               |
               = note: call stack of (1):
                         in core::ptr::write, /rustc/abc/library/core/src/ptr/mod.rs:9:1
                         … 1 more of libraries
                         inlined into program::fill, src/main.rs:6:5
                         called from program::main::{closure#0}, src/main.rs:13:30
                         … callers are not known
               = note: call stack of (2):
                         in core::ptr::write, /rustc/abc/library/core/src/ptr/mod.rs:9:1
                         … 1 more of libraries
                         inlined into program::fill, src/main.rs:6:5
                         called from program::main::{closure#1}, src/main.rs:14:30
               = help: put the task of src/main.rs:13 in a `finish` that ends before the task of src/main.rs:14 is created; or let a promise order them: `set` it after (1), `get` it before (2)

            1 race on a heap block of 4096 bytes
        "#]],
    );
}

#[test]
fn the_same_places_on_many_addresses_are_one_block() {
    check(
        |findings| {
            findings.races = (0..100).map(|cell| race(0x1000 + 8 * cell, 1, 2)).collect();
            findings.races[3].duplicates = 5;
        },
        expect![[r#"
            race[write-write]: parallel accesses to 8 bytes at offset 0 of a heap block of 4096 bytes, and to 99 other places
              --> src/main.rs:6:5
               |
             6 |     *cell = 1;
               |     ^^^^^ (1) task 1 writes 8 bytes; (2) task 2 writes 8 bytes
            ...
            10 |     let mut cells = vec![0; 512];
               |                     ------------ the block is allocated here
            ...
            13 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ----- task 1 (async) is created here
            14 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ----- task 2 (async) is created here
               |
               = note: call stack of (1):
                         in core::ptr::write, /rustc/abc/library/core/src/ptr/mod.rs:9:1
                         … 1 more of libraries
                         inlined into program::fill, src/main.rs:6:5
                         called from program::main::{closure#0}, src/main.rs:13:30
                         … callers are not known
               = note: call stack of (2):
                         in core::ptr::write, /rustc/abc/library/core/src/ptr/mod.rs:9:1
                         … 1 more of libraries
                         inlined into program::fill, src/main.rs:6:5
                         called from program::main::{closure#1}, src/main.rs:14:30
               = note: 5 more races between these two places
               = help: put the task of src/main.rs:13 in a `finish` that ends before the task of src/main.rs:14 is created; or let a promise order them: `set` it after (1), `get` it before (2)

            1 race on a heap block of 4096 bytes
        "#]],
    );
}

#[test]
fn a_free_and_an_access_under_a_lock_are_called_what_they_are() {
    check(
        |findings| {
            let race = &mut findings.races[0];
            race.first.kind = Kind::Free;
            race.second.locked = true;
            race.bytes = vec![(0x1000, 4096)];
            race.memory = Memory::Heap { start: 0x1000, size: 4096, stack: None };
        },
        expect![[r#"
            race[write-write]: parallel accesses to a heap block of 4096 bytes
              --> src/main.rs:6:5
               |
             6 |     *cell = 1;
               |     ^^^^^ (1) task 1 frees the block; (2) task 2 writes all of it, under a lock
            ...
            13 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ----- task 1 (async) is created here
            14 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ----- task 2 (async) is created here
               |
               = note: call stack of (1):
                         in core::ptr::write, /rustc/abc/library/core/src/ptr/mod.rs:9:1
                         … 1 more of libraries
                         inlined into program::fill, src/main.rs:6:5
                         called from program::main::{closure#0}, src/main.rs:13:30
                         … callers are not known
               = note: call stack of (2):
                         in core::ptr::write, /rustc/abc/library/core/src/ptr/mod.rs:9:1
                         … 1 more of libraries
                         inlined into program::fill, src/main.rs:6:5
                         called from program::main::{closure#1}, src/main.rs:14:30
               = help: put the task of src/main.rs:13 in a `finish` that ends before the task of src/main.rs:14 is created; or let a promise order them: `set` it after (1), `get` it before (2)

            1 race on a heap block of 4096 bytes
        "#]],
    );
}

#[test]
fn code_without_debug_information_is_still_reported() {
    check(
        |findings| {
            findings.stacks = vec![findings::Stack { frames: vec![77], complete: false }; 3];
            findings.races[0].memory = Memory::Stack { task: Some(1) };
        },
        expect![[r#"
            race[write-write]: parallel accesses to 8 bytes of a local of task 1
              --> src/main.rs:13:15
               |
            13 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ^^^^^ (1) task 1 writes 8 bytes; its line is not known, but its task comes from here; task 1 (async) is created here
            14 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ^^^^^ (2) task 2 writes 8 bytes; its line is not known, but its task comes from here; task 2 (async) is created here
               |
               = help: put the task of src/main.rs:13 in a `finish` that ends before the task of src/main.rs:14 is created; or let a promise order them: `set` it after (1), `get` it before (2)

            1 race on a local of task 1
        "#]],
    );
}

#[test]
fn a_deadlock_shows_who_waits_where() {
    check(
        |findings| {
            findings.races.clear();
            let place = Some(findings::Place { file: "src/main.rs".into(), line: 13, column: 15 });
            findings.end = findings::End::Deadlock(vec![findings::Blocked {
                task: 1,
                place,
                waits_for: "promise `left`".to_owned(),
            }]);
        },
        expect![[r#"
            deadlock: no task can go on
              --> src/main.rs:13:15
               |
            13 |         scope.spawn(move |_| fill(shared.cell(3)));
               |               ^^^^^ task 1 waits for promise `left`
               |
               = help: find who should `set` or end what they wait for, and why it does not come to that

            deadlock: 1 of 3 tasks waits for ever
        "#]],
    );
}

#[test]
fn a_place_that_was_forgotten_is_not_claimed() {
    let mut findings = findings();
    findings.races[0].first.nearby = true;
    let text = text::render(&made(&mut findings, &mut symbols()));
    assert_eq!(text.matches("here or nearby").count(), 1, "{text}");
}

fn dependence(
    what: ScheduleDependent,
    place: Option<findings::Place>,
    stack: Option<usize>,
) -> findings::ScheduleDependence {
    findings::ScheduleDependence { what, place, stack, other: None, call: None, count: 1 }
}

#[test]
fn a_verdict_claims_no_more_than_was_proved() {
    assert_eq!(headline(|_| {}), "race-free: 3 tasks, 4 strands, every schedule of this input");
    let free = "race-free: 3 tasks, 4 strands, every schedule of this input";
    let uses = |locks, atomics, forks| {
        let found = headline(|findings| {
            findings.uses = findings::Uses { locks, atomics, forks, ..findings::Uses::default() }
        });
        found.strip_prefix(free).unwrap().to_owned()
    };
    assert_eq!(uses(true, false, 0), " if the sections under locks commute");
    assert_eq!(
        uses(true, true, 0),
        " that keeps the order of atomic operations and if the sections under locks commute"
    );
    assert_eq!(uses(false, false, 2), "; not checked: 2 forked processes");
    let text = headline(|findings| {
        findings.end = findings::End::Deadlock(Vec::new());
        findings.uses.atomics = true;
    });
    let condition = "in every schedule of this input that keeps the order of atomic operations";
    assert_eq!(text, format!("deadlock: 0 of 3 tasks wait for ever, {condition}"));
    let threads = findings::Threads { stack: 2, name: Some("io".into()), count: 1 };
    let text = headline(|findings| findings.threads = vec![threads]);
    assert_eq!(text, format!("{free}; not checked: 1 thread (io) started at src/main.rs:10"));
    let text = headline(|findings| findings.uses.odd_sizes_unseen = true);
    assert_eq!(text, format!("{free}; accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen"));
    let text = headline(|findings| {
        findings.uses.unseen = vec![findings::Unseen { what: "inline assembly".into(), stack: 2, count: 1 }];
    });
    assert_eq!(text, format!("{free}; not seen: what is accessed by inline assembly at src/main.rs:10"));
    let text = headline(|findings| findings.uses.split = Some(0));
    assert_eq!(text, format!("{free} with parallel iterators cut into single items"));
    let text = headline(|findings| {
        findings.uses.split = Some(8);
        let place = findings::Place { file: "src/main.rs".into(), line: 7, column: 3 };
        let what = ScheduleDependent::Worker;
        let asked = dependence(what, Some(place), None);
        let what = ScheduleDependent::ThreadLocal;
        let met = dependence(what, None, Some(2));
        findings.uses.schedule = vec![asked, met];
    });
    let worker = "on the worker that runs the task (rayon::current_thread_index at src/main.rs:7), \
                  on the worker that runs the task (a thread-local variable at src/main.rs:10)";
    assert_eq!(
        text,
        format!(
            "{free} with parallel iterators cut into about 8 pieces; the result may depend on the schedule: {worker}"
        )
    );
    let text = headline(|findings| findings.stats.tasks = 1);
    assert_eq!(
        text,
        "not checked: no tasks were started; DagSan sees threads, and the tasks of rayon, dagsan-task and OpenMP"
    );
}

/// The headline after an atomic operation at the top of this stack, innermost frame first: the function, and its file.
fn met(what: ScheduleDependent, frames: &[(&str, &str)]) -> String {
    let mut symbols = symbols();
    let frame = |(line, &(function, file)): (u32, &(&str, &str))| Symbol {
        function: function.to_owned(),
        file: Some(file.to_owned()),
        line,
        column: 1,
        inlined: false,
    };
    symbols.know(60, (7..).zip(frames).map(frame).collect());
    let mut findings = findings();
    findings.races.clear();
    findings.stacks.push(findings::Stack { frames: vec![60], complete: false });
    // The call of rayon that it belongs to.
    findings.stacks.push(findings::Stack { frames: vec![61, 40], complete: true });
    let any = "<rayon::slice::Iter<u64> as rayon::iter::ParallelIterator>::find_any::<main::{closure#0}>";
    symbols.know(61, vec![frame((9, &(any, RAYON)))]);
    findings.uses.schedule = vec![dependence(what, None, Some(3))];
    findings.uses.schedule[0].call = Some(4);
    let text = text::headline(&made(&mut findings, &mut symbols));
    text.strip_prefix("race-free: 3 tasks, 4 strands, every schedule of this input").unwrap().to_owned()
}

const RAYON: &str = "/users/.cargo/registry/src/index/rayon-1.12.0/src/iter/mod.rs";
const FIND: &str = "/users/.cargo/registry/src/index/rayon-1.12.0/src/iter/find.rs";
const ATOMIC: &str = "/rustc/abc/library/core/src/sync/atomic.rs";

#[test]
fn atomic_operations_of_the_user_are_told_and_those_of_libraries_are_not() {
    use ScheduleDependent::{PerhapsValue, Store, Value};
    let inner = ("core::sync::atomic::atomic_add::<u64>", ATOMIC);
    let method = ("<core::sync::atomic::AtomicU64>::fetch_add", ATOMIC);
    let user = ("program::main::{closure#0}", "src/main.rs");
    let may = "; the result may depend on the schedule: on the order of atomic operations";
    assert_eq!(met(Value, &[inner, method, user]), format!("{may} (`fetch_add` at src/main.rs:9)"));
    assert_eq!(
        met(PerhapsValue, &[inner, method, user]),
        format!("{may} (`fetch_add` at src/main.rs:9, if its value is used)")
    );
    let store = ("<core::sync::atomic::AtomicBool>::store", ATOMIC);
    assert_eq!(met(Store, &[store, user]), format!("{may} (`store` at src/main.rs:8)"));
    let mutex = ("std::sys::sync::mutex::futex::Mutex::lock", "/rustc/abc/library/std/src/sys/mutex.rs");
    assert_eq!(met(Value, &[inner, method, mutex, user]), "", "a lock's own");
    let crossbeam = ("crossbeam::pop", "/users/.cargo/registry/src/index/crossbeam-1/src/lib.rs");
    assert_eq!(met(Value, &[inner, method, crossbeam, user]), "");
}

#[test]
fn a_line_by_which_the_result_may_depend_on_the_schedule_is_named_once() {
    let mut findings = findings();
    findings.races.clear();
    let mut report = made(&mut findings, &mut symbols());
    let at = |line, column, if_used| ScheduleDependence {
        on: "the order of atomic operations",
        call: "`compare_exchange`".to_owned(),
        at: Some(("src/main.rs".to_owned(), line, column)),
        if_used,
        other: None,
        count: 1,
    };
    report.native.as_mut().unwrap().schedule = vec![at(9, 4, true), at(9, 21, false), at(10, 4, false)];
    let text = text::headline(&report);
    for line in ["(`compare_exchange` at src/main.rs:9)", "(`compare_exchange` at src/main.rs:10)"] {
        assert_eq!(text.matches(line).count(), 1, "{text}");
    }
    assert_eq!(text.matches("compare_exchange").count(), 2, "{text}");
}

#[test]
fn operations_of_rayon_that_are_free_to_choose_are_told_where_they_are_called() {
    use ScheduleDependent::Value;
    let load = ("<core::sync::atomic::AtomicBool>::load", ATOMIC);
    let folder = ("<rayon::iter::find::FindFolder<u64> as rayon::iter::plumbing::Folder<u64>>::full", FIND);
    let may = "; the result may depend on the schedule: on which item";
    assert_eq!(met(Value, &[load, folder]), format!("{may} is found first (`find_any` at src/main.rs:10)"));
    let call = "<rayon::vec::IntoIter<u64> as rayon::iter::ParallelIterator>::try_for_each::<u8>";
    let direct = [load, folder, (call, RAYON), ("program::main", "src/main.rs")];
    assert_eq!(met(Value, &direct), format!("{may} ends it first (`try_for_each` at src/main.rs:10)"));
    let first = "/users/.cargo/registry/src/index/rayon-1.12.0/src/iter/find_first_last/mod.rs";
    assert_eq!(met(Value, &[load, ("rayon::full", first)]), "", "the first is the first in all schedules");
}

#[test]
fn a_run_that_was_not_checked_to_its_end_says_so() {
    let end = |end: findings::End| headline(|findings| findings.end = end);
    assert_eq!(end(findings::End::Aborted), "error: the program aborted; no race before it");
    assert_eq!(
        end(findings::End::CutShort("no room".into())),
        "not-exhausted: no race in what was checked, which is not all: no room"
    );
    assert_eq!(end(findings::End::Refused("not I".into())), "error: could not check program: not I");
    let text = end(findings::End::Broken("oh".into()));
    assert!(text.starts_with("error: could not check program: a fault of dagsan itself: oh"), "{text}");
    let text = headline(|findings| {
        findings.races.push(race(0x1000, 1, 2));
        findings.end = findings::End::Refused("not I".into());
    });
    assert_eq!(text, "1 race on a heap block of 4096 bytes; then not checked on: not I");
}

#[test]
fn memory_is_named_by_what_is_known_of_it() {
    let name = |memory: Memory| {
        let mut findings = findings();
        findings.races[0].memory = memory;
        made(&mut findings, &mut symbols()).races[0].location_names().next().unwrap()
    };
    assert_eq!(name(Memory::Heap { start: 0x1018, size: 8, stack: None }), "a heap block of 8 bytes");
    assert_eq!(name(Memory::Stack { task: None }), "8 bytes of a local of a task that has ended");
    assert_eq!(name(Memory::Other), "8 bytes at 0x1018 of mapped memory");
    assert_eq!(name(Memory::Static { at: 7 }), "8 bytes at 0x7 of a static without a name");
}

#[test]
fn json_has_the_stacks_and_the_tasks() {
    let mut findings = findings();
    let report = made(&mut findings, &mut symbols());
    let json: serde_json::Value =
        serde_json::from_str(&crate::json::object(&report, &crate::Project::new("/p", "/p")).unwrap())
            .unwrap();
    let race = &json["races"][0];
    assert_eq!(race["location"], "8 bytes at offset 24 of a heap block of 4096 bytes");
    assert_eq!((&race["first"]["file"], &race["first"]["line"]), (&"src/main.rs".into(), &6.into()));
    assert_eq!(race["first"]["access"]["stack"][0]["function"], "core::ptr::write");
    assert_eq!(race["allocated"]["line"], 10);
    assert_eq!(json["native"]["tasks"][2]["line"], 14);
    assert_eq!(json["verdict"], "race");
}

#[test]
fn damaged_findings_are_errors() {
    let mut findings = findings();
    let files = Files::new(Path::new("/nowhere"), &findings.process);
    findings.races[0].second.stack = 99;
    assert!(matches!(report(&findings, &mut symbols(), &files), Err(Error::Stack(99))));
    findings.engine = "steam".to_owned();
    assert!(matches!(report(&findings, &mut symbols(), &files), Err(Error::Engine(_))));
}

#[test]
fn an_access_without_a_line_of_the_users_is_shown_at_its_task() {
    let in_library = |findings: &mut Findings| {
        findings.stacks.push(findings::Stack { frames: vec![50], complete: false });
        findings.races[0].first.stack = 3;
    };
    let mut symbols = symbols();
    let runtime = "/checkout/crates/rayon-core/src/unwind.rs".to_owned();
    let frame =
        Symbol { function: "enter".to_owned(), file: Some(runtime), line: 46, column: 1, inlined: false };
    symbols.know(50, vec![frame]);
    let mut findings = findings();
    in_library(&mut findings);
    let report = made(&mut findings, &mut symbols);
    let Side { place, detail, .. } = &report.races[0].first;
    assert_eq!((place.line, detail.stand_in), (13, Some(StandIn::Creation)));
    let text = anstream::adapter::strip_str(&text::render(&report)).to_string();
    let said = "(1) task 1 writes 8 bytes; its line is not known, but its task comes from here";
    assert!(text.contains(said) && !text.contains("--> /checkout"), "{text}");

    // The main task was created nowhere.
    findings.races[0].first.task = 0;
    let report = made(&mut findings, &mut symbols);
    let Side { place, detail, .. } = &report.races[0].first;
    assert_eq!((place.line, detail.stand_in), (14, Some(StandIn::Parallel(2))));
}

#[test]
fn what_tasks_run_on_and_dependencies_are_no_places_of_the_users() {
    let directory = std::env::temp_dir().join(format!("dagsan-vendored-{}", std::process::id()));
    fs::create_dir_all(directory.join("vendor/matrix/src")).unwrap();
    let listed = directory.join("vendor/matrix/.cargo-checksum.json");
    fs::write(listed, "{}").unwrap();
    for file in ["vendor/matrix/src/lib.rs", "main.rs"] {
        fs::write(directory.join(file), "").unwrap();
    }
    let mut process = findings().process;
    process.directory = directory.clone();
    let files = Files::new(&directory, &process);
    for file in [
        "/rustc/abc/library/core/src/ptr/mod.rs",
        "/checkout/crates/dagsan-task/src/call.rs",
        "/checkout/crates/rayon-core/src/unwind.rs",
        "/users/.cargo/registry/src/matrix-1.0.0/src/lib.rs",
        "/users/.cargo/git/checkouts/matrix-1/abc/src/lib.rs",
        "vendor/matrix/src/lib.rs",
    ] {
        assert!(files.is_library(file), "{file}");
    }
    assert!(!files.is_library("main.rs") && !files.is_library("/elsewhere/src/lib.rs"));
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn programs_have_the_names_of_their_crates() {
    let name = |path: &str| program_name(Path::new(path));
    assert_eq!(name("target/debug/deps/my_crate-86eacab94832bf93"), "my_crate");
    assert_eq!(name("target/debug/my_crate-86eacab94832bf93"), "my_crate-86eacab94832bf93");
    assert_eq!(name("target/debug/deps/some-program"), "some-program");
    assert_eq!(name("/"), "");
}
