//! Files of findings, made by hand.

use std::path::Path;

use dagsan_findings::{
    Blocked, End, Findings, Kind, Memory, Neighbourhood, Order, PathStep, Place, Process, Race, Side, Stack,
    Stats, Task, TaskKind, Threads, Unseen, Uses, VERSION,
};

use super::NAME;

/// Findings with a race.
fn plain() -> Findings {
    let side = |task| Side {
        kind: Kind::Write,
        atomic: false,
        locked: false,
        shares_lock: false,
        task,
        stack: 0,
        nearby: false,
    };
    let task = |number, parent, kind| Task { number, parent, kind, created: None, stack: None };
    Findings {
        version: VERSION,
        process: Process { executable: "/gone".into(), arguments: Vec::new(), directory: "/".into(), id: 1 },
        engine: "dag".to_owned(),
        end: End::Exited,
        code: None,
        races: vec![Race {
            bytes: vec![(72, 8)],
            memory: Memory::Heap { start: 64, size: 80, stack: Some(0) },
            first: side(1),
            second: side(2),
            duplicates: 0,
            graph: None,
        }],
        dropped_races: 0,
        tasks: vec![
            task(0, None, TaskKind::Main),
            task(1, Some(0), TaskKind::Future),
            task(2, Some(0), TaskKind::Join),
        ],
        stacks: vec![Stack { frames: vec![7, 9], complete: true }],
        uses: Uses::default(),
        threads: Vec::new(),
        graphs: Vec::new(),
        stats: Stats { tasks: 3, strands: 3, ..Stats::default() },
    }
}

/// Those with something changed.
fn changed(change: impl FnOnce(&mut Findings)) -> Vec<u8> {
    let mut findings = plain();
    change(&mut findings);
    let path = std::env::temp_dir().join(format!("dagsan-hostile-{}.json", std::process::id()));
    findings.write(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bytes
}

fn place(file: &str) -> Option<Place> {
    Some(Place { file: file.to_owned(), line: 3, column: 5 })
}

/// A neighbourhood whose ways have so many steps.
fn around(steps: usize) -> Neighbourhood {
    let way = || vec![PathStep { why: Order::Spawn, task: 1, left_out: u32::MAX }; steps];
    Neighbourhood { start: u32::MAX, down: [way(), way()], up: Some([way(), way()]) }
}

/// By name. `pipe` is one that nobody writes to.
pub fn all(pipe: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let good = changed(|_| {});
    let text = String::from_utf8(good.clone()).unwrap();
    let file = |file: &str| changed(|found| found.tasks[1].created = place(file));
    let executable = |path: &Path| changed(|found| found.process.executable = path.to_owned());
    vec![
        ("hostile executable", executable(Path::new(NAME))),
        ("hostile arguments", changed(|found| found.process.arguments = vec![NAME.to_owned(); 3])),
        ("hostile directory", changed(|found| found.process.directory = NAME.into())),
        ("hostile file", file(NAME)),
        (
            "hostile thread",
            changed(|found| {
                found.threads = vec![Threads { stack: 0, name: Some(NAME.to_owned()), count: u32::MAX }];
            }),
        ),
        (
            "hostile code",
            changed(|found| {
                found.uses.unseen = vec![Unseen { what: NAME.to_owned(), stack: 0, count: u64::MAX }];
            }),
        ),
        ("hostile engine", changed(|found| found.engine = NAME.to_owned())),
        ("hostile end", changed(|found| found.end = End::CutShort(NAME.to_owned()))),
        ("hostile refusal", changed(|found| found.end = End::Refused(NAME.to_owned()))),
        (
            "hostile fault",
            changed(|found| {
                found.races.clear();
                found.end = End::Refused(NAME.to_owned());
            }),
        ),
        (
            "hostile deadlock",
            changed(|found| {
                found.races.clear();
                found.end =
                    End::Deadlock(vec![Blocked { task: 1, place: place(NAME), waits_for: NAME.to_owned() }]);
            }),
        ),
        ("executable without end", executable(Path::new("/dev/zero"))),
        ("executable that is a pipe", executable(pipe)),
        ("executable that is a directory", executable(Path::new("/"))),
        ("executable of proc", executable(Path::new("/proc/self/mem"))),
        ("executable that is text", executable(Path::new("/etc/passwd"))),
        ("file without end", file("/dev/zero")),
        ("file that is a pipe", file(&pipe.to_string_lossy())),
        ("file of proc", file("/proc/self/environ")),
        ("file with a long name", file(&"a/".repeat(100_000))),
        ("bytes beyond all", changed(|found| found.races[0].bytes = vec![(u64::MAX, u64::MAX); 3])),
        ("no bytes", changed(|found| found.races[0].bytes.clear())),
        ("many bytes", changed(|found| found.races[0].bytes = (0..100_000).map(|at| (at * 16, 8)).collect())),
        (
            "block beyond all",
            changed(|found| {
                found.races[0].memory = Memory::Heap { start: u64::MAX, size: u64::MAX, stack: None }
            }),
        ),
        ("static beyond all", changed(|found| found.races[0].memory = Memory::Static { at: u64::MAX })),
        (
            "stack of a task that is not there",
            changed(|found| found.races[0].memory = Memory::Stack { task: Some(u32::MAX) }),
        ),
        ("call stack that is not there", changed(|found| found.races[0].first.stack = usize::MAX)),
        ("frames beyond all", changed(|found| found.stacks[0].frames = vec![u64::MAX; 100_000])),
        ("tasks that are not there", changed(|found| found.tasks.clear())),
        ("task that is its own parent", changed(|found| found.tasks[1].parent = Some(1))),
        (
            "tasks that are each other's parents",
            changed(|found| {
                found.tasks[1].parent = Some(2);
                found.tasks[2].parent = Some(1);
            }),
        ),
        (
            "a chain of tasks",
            changed(|found| {
                let task = |number| Task {
                    number,
                    parent: Some(number - 1),
                    kind: TaskKind::Async,
                    created: None,
                    stack: None,
                };
                found.tasks.extend((3..300_000).map(task));
                found.races[0].second.task = 299_999;
            }),
        ),
        (
            "many duplicates",
            changed(|found| {
                found.races[0].duplicates = u64::MAX;
                found.dropped_races = u64::MAX;
            }),
        ),
        (
            "many races",
            changed(|found| {
                let race = found.races[0].clone();
                found.races = (0..20_000)
                    .map(|at| Race {
                        bytes: vec![(at * 8, 8)],
                        memory: Memory::Static { at: at * 8 },
                        ..race.clone()
                    })
                    .collect();
            }),
        ),
        (
            "a graph of a million nodes",
            changed(|found| {
                found.graphs = vec![around(250_000)];
                found.races[0].graph = Some(0);
            }),
        ),
        ("a graph that is not there", changed(|found| found.races[0].graph = Some(usize::MAX))),
        (
            "a graph without steps",
            changed(|found| {
                found.graphs = vec![around(0)];
                found.races[0].graph = Some(0);
            }),
        ),
        (
            "numbers beyond all",
            changed(|found| {
                found.stats = Stats {
                    tasks: u64::MAX,
                    strands: u64::MAX,
                    checks: u64::MAX,
                    queries: u64::MAX,
                    order_memory: u64::MAX,
                    access_memory: u64::MAX,
                    milliseconds: u64::MAX,
                    marks: None,
                };
                found.uses.forks = u32::MAX;
                found.uses.turns_lost = u32::MAX;
                found.uses.split = Some(u32::MAX);
                found.code = Some(i32::MIN);
            }),
        ),
        (
            "another version",
            text.replacen(&format!("\"version\":{VERSION}"), "\"version\":4294967295", 1).into_bytes(),
        ),
        ("half of it", good[..good.len() / 2].to_vec()),
        ("twice", [good.clone(), good].concat()),
        ("nothing", Vec::new()),
        ("zeroes", vec![0; 4096]),
        ("hostile text", NAME.as_bytes().to_vec()),
        ("brackets", b"[".repeat(1_000_000)),
        ("no UTF-8", vec![0xff; 4096]),
        ("hostile key", format!("{{{}: 1}}", serde_json::to_string(NAME).unwrap()).into_bytes()),
    ]
}
