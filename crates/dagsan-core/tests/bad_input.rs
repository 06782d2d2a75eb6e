//! Bad input to the core is an error that says what is wrong, whatever the engine; never a panic, never a
//! verdict.

use dagsan_core::order::{self, ENGINES, Options};
use dagsan_core::{
    AccessKind, AccessSet, Bytes, Construct, Detector, Error, Event, Location, LockId, LockMode, PromiseId,
    RegionId, Run, SiteId, Stream, SyncId, TaskId, TaskKind,
};

const MAIN: TaskId = TaskId::MAIN;

fn task(number: u32) -> TaskId {
    TaskId(number)
}

fn spawn(parent: u32, child: u32, kind: TaskKind) -> Event {
    Event::Spawn { parent: task(parent), child: task(child), kind }
}

fn end(number: u32) -> Event {
    Event::TaskEnd { task: task(number) }
}

/// The last of the events is refused with `message`, by every engine that takes the others.
fn check(events: &[Event], message: &str) {
    let (last, before) = events.split_last().unwrap();
    let mut takers = 0;
    for engine in ENGINES {
        let mut stream = Stream::new(Detector::new(engine, Options::default()));
        if !before.iter().all(|&event| stream.event(event).is_ok()) {
            continue;
        }
        takers += 1;
        let error = stream.event(*last).unwrap_err();
        assert_eq!(error.to_string(), message, "{}", engine.name);
        assert_eq!(stream.event(end(0)), Err(Error::Stopped), "nothing is taken after an error");
        assert_eq!(stream.consumer().races(), []);
    }
    assert!(takers > 0, "no engine takes the events before the bad one");
}

#[test]
fn tasks() {
    use TaskKind::*;
    check(&[end(7)], "task 7 does not exist");
    check(&[spawn(0, 1, Async), end(1), end(1)], "task 1 has ended, and can do nothing more");
    check(
        &[spawn(0, 1, Async), end(1), Event::FinishBegin { task: task(1) }],
        "task 1 has ended, and can do nothing more",
    );
    check(&[spawn(0, 2, Async)], "a new task must be numbered 1, not 2");
    check(&[spawn(0, 1, Async), spawn(0, 1, Async)], "a new task must be numbered 2, not 1");
    check(&[spawn(0, 1, Async), spawn(0, u32::MAX, Async)], "a new task must be numbered 2, not 4294967295");
}

#[test]
fn scopes() {
    use TaskKind::*;
    let finish_begin = Event::FinishBegin { task: MAIN };
    let finish_end = Event::FinishEnd { task: MAIN };
    let frame_begin = Event::FrameBegin { task: MAIN };
    let frame_end = Event::FrameEnd { task: MAIN };
    check(&[finish_end], "task 0 ends a finish, but its innermost open scope is none");
    check(&[frame_end], "task 0 ends a procedure, but its innermost open scope is none");
    check(
        &[finish_begin, frame_begin, finish_end],
        "task 0 ends a finish, but its innermost open scope is a procedure",
    );
    check(
        &[frame_begin, finish_begin, frame_end],
        "task 0 ends a procedure, but its innermost open scope is a finish",
    );
    check(
        &[finish_begin, spawn(0, 1, Async), finish_end],
        "task 0 ends a finish in which 1 task(s) are still running",
    );
    check(
        &[spawn(0, 1, Async), Event::FinishEnd { task: task(1) }],
        "task 1 ends a finish, but its innermost open scope is none",
    );
    check(&[finish_begin, end(0)], "task 0 ends inside a finish");
    check(
        &[spawn(0, 1, Spawn), Event::Sync { task: MAIN }],
        "task 0 ends a sync block in which 1 task(s) are still running",
    );
    check(
        &[spawn(0, 1, Spawn), end(1), end(0)],
        "task 0 ends its body with 1 spawned task(s) not synced: a sync is missing before it",
    );
    check(
        &[frame_begin, spawn(0, 1, Spawn), end(1), frame_end],
        "task 0 ends a procedure with 1 spawned task(s) not synced: a sync is missing before it",
    );
}

#[test]
fn futures_and_promises() {
    use TaskKind::*;
    let get = |future: u32| Event::FutureGet { task: MAIN, future: task(future) };
    check(&[get(1)], "task 1 does not exist");
    check(&[spawn(0, 1, Future), get(1)], "task 0 joins task 1, which is still running");
    check(&[spawn(0, 1, Async), end(1), get(1)], "task 1 is not a future: it cannot be got");
    let promise = PromiseId(0);
    let new = Event::PromiseNew { task: MAIN, promise };
    let set = Event::PromiseSet { task: MAIN, promise };
    let get = Event::PromiseGet { task: MAIN, promise };
    check(&[set], "promise 0 does not exist");
    check(&[get], "promise 0 does not exist");
    check(&[new, new], "a new promise must be numbered 1, not 0");
    check(&[new, get], "task 0 gets promise 0 before it is set");
    check(&[new, set, set], "task 0 sets promise 0, which is already set");
}

#[test]
fn isolated_sections_and_regions() {
    use TaskKind::*;
    let begin = Event::IsolatedBegin { task: MAIN };
    check(
        &[Event::IsolatedEnd { task: MAIN }],
        "task 0 ends an isolated section, but its innermost open scope is none",
    );
    check(&[begin, begin], "task 0 enters an isolated section while task 0 is inside one");
    check(
        &[begin, spawn(0, 1, Async), Event::IsolatedBegin { task: task(1) }],
        "task 1 enters an isolated section while task 0 is inside one",
    );
    let region = RegionId(0);
    let new = Event::RegionNew { task: MAIN, region };
    let wait = Event::Await { task: MAIN, region };
    let ewait = |joined: u32| Event::Ewait { task: MAIN, region, joined: task(joined) };
    check(&[wait], "region 0 does not exist");
    check(&[spawn(0, 1, Post(region))], "region 0 does not exist");
    check(&[new, new], "a new region must be numbered 1, not 0");
    check(&[new, spawn(0, 1, Post(region)), wait], "task 0 joins task 1, which is still running");
    check(&[new, spawn(0, 1, Post(region)), ewait(1)], "task 0 joins task 1, which is still running");
    check(&[new, ewait(9)], "task 9 is not waiting to be joined in region 0");
    check(
        &[new, spawn(0, 1, Post(region)), end(1), ewait(1), ewait(1)],
        "task 1 is not waiting to be joined in region 0",
    );
}

#[test]
fn locks() {
    let (lock, mode) = (LockId(7), LockMode::Shared);
    let take = Event::Lock { task: MAIN, lock, mode };
    let give = Event::Unlock { task: MAIN, lock };
    check(&[take, take], "task 0 locks lock 7, which it holds already");
    check(&[give], "task 0 does not hold lock 7");
    check(&[take, give, give], "task 0 does not hold lock 7");
    check(
        &[take, spawn(0, 1, TaskKind::Spawn), Event::Unlock { task: task(1), lock }],
        "task 1 does not hold lock 7",
    );
    check(&[Event::SetLockMode { task: MAIN, lock, mode }], "task 0 does not hold lock 7");
    check(&[Event::Lock { task: MAIN, lock: LockId(u32::MAX), mode }], "more than 2^32 - 1 locks");
    check(&[Event::Lock { task: task(1), lock, mode }], "task 1 does not exist");
    let mut stream = Stream::new(Detector::new(order::default_engine(), Options::default()));
    assert_eq!(stream.set_lock_mode(task(4), lock, mode), Err(Error::UnknownTask(task(4))));
    assert_eq!(stream.set_lock_mode(MAIN, lock, mode), Err(Error::Stopped));
    // Locks need not be given back.
    let mut stream = Stream::new(Detector::new(order::default_engine(), Options::default()));
    for event in [take, end(0)] {
        assert_eq!(stream.event(event), Ok(()));
    }
}

#[test]
fn synchronisation_objects() {
    // Whatever is released or acquired, only the task can be wrong.
    let sync = SyncId(u32::MAX);
    check(&[Event::Acquire { task: task(1), sync }], "task 1 does not exist");
    check(
        &[end(0), Event::Release { task: MAIN, sync, keep: true }],
        "task 0 has ended, and can do nothing more",
    );
    let events = [
        Event::Acquire { task: MAIN, sync },
        spawn(0, 1, TaskKind::Spawn),
        Event::Release { task: task(1), sync, keep: false },
        Event::Acquire { task: MAIN, sync },
        Event::Acquire { task: MAIN, sync: SyncId(0) },
    ];
    for engine in ENGINES.iter().filter(|engine| engine.supports(Construct::Atomic)) {
        let mut stream = Stream::new(Detector::new(engine, Options::default()));
        assert!(events.iter().all(|&event| stream.event(event).is_ok()), "{}", engine.name);
    }
}

#[test]
fn accesses() {
    let mut set = AccessSet::new();
    set.record(Bytes::new(64, 8).unwrap(), AccessKind::Write, SiteId::new(0).unwrap());
    for engine in ENGINES {
        let mut stream = Stream::new(Detector::new(engine, Options::default()));
        assert_eq!(stream.accesses(task(3), &set), Err(Error::UnknownTask(task(3))));
        let mut stream = Stream::new(Detector::new(engine, Options::default()));
        stream.event(end(0)).unwrap();
        assert_eq!(stream.accesses(MAIN, &set), Err(Error::TaskEnded(MAIN)));
    }
    assert_eq!(SiteId::new(SiteId::MAX + 1), None);
    let error = Bytes::new(u64::MAX, 2).unwrap_err();
    assert_eq!(error.to_string(), "2 bytes from 0xffffffffffffffff run past the end of the address space");
}

#[test]
fn unsupported_constructs_name_the_engines_for_them() {
    let refuses = |name: &str, events: &[Event], message: &str| {
        let mut stream = Stream::new(Detector::new(order::find(name).unwrap(), Options::default()));
        let (last, before) = events.split_last().unwrap();
        before.iter().for_each(|&event| stream.event(event).unwrap());
        assert_eq!(stream.event(*last).unwrap_err().to_string(), message);
    };
    let promise = PromiseId(0);
    refuses(
        "esp-bags",
        &[Event::PromiseNew { task: MAIN, promise }, Event::PromiseSet { task: MAIN, promise }],
        "engine `esp-bags` does not support promises; these do: dag, drdp, vector-clock, closure, cg, cg-otf",
    );
    refuses(
        "sf-order",
        &[Event::FinishBegin { task: MAIN }],
        "engine `sf-order` does not support async/finish; these do: dag, esp-bags, multibags, drdp, \
         vector-clock, closure, cg, cg-otf, zipper",
    );
    let get = Event::FutureGet { task: MAIN, future: task(1) };
    for name in ["multibags", "sf-order"] {
        refuses(
            name,
            // A second future is never joined, so that nothing is forgotten in between.
            &[spawn(0, 1, TaskKind::Future), end(1), spawn(0, 2, TaskKind::Future), end(2), get, get],
            &format!(
                "engine `{name}` does not support general futures; these do: dag, drdp, vector-clock, closure, \
                 cg, cg-otf"
            ),
        );
    }
    refuses(
        "drdp",
        &[Event::RegionNew { task: MAIN, region: RegionId(0) }, spawn(0, 1, TaskKind::Post(RegionId(0)))],
        "engine `drdp` does not support regions; these do: dag, vector-clock, closure, cg, cg-otf",
    );
    refuses(
        "esp-bags",
        &[spawn(0, 1, TaskKind::Async), Event::FinishBegin { task: MAIN }],
        "engine `esp-bags` needs the serial depth-first order, and task 0 ran out of turn; these do not need \
         it: dag, drdp, sf-order, vector-clock, closure, cg, cg-otf, zipper",
    );
    refuses(
        "zipper",
        &[Event::Lock { task: MAIN, lock: LockId(0), mode: LockMode::Shared }],
        "engine `zipper` does not support locks; these do: dag, esp-bags, multibags, drdp, sf-order, \
         vector-clock, closure",
    );
    let no_atomics =
        "engine `zipper` does not support atomics; these do: dag, vector-clock, closure, cg, cg-otf";
    refuses("zipper", &[Event::Acquire { task: MAIN, sync: SyncId(0) }], no_atomics);
    let mut stream = Stream::new(Detector::new(order::find("zipper").unwrap(), Options::default()));
    stream.event(spawn(0, 1, TaskKind::Spawn)).unwrap();
    let (at, site) = (Location { line: 0, mask: 1 }, SiteId::new(0).unwrap());
    let atomic = Run { at, kind: AccessKind::Read, site, atomic: true };
    assert_eq!(stream.runs(task(1), &[atomic]).unwrap_err().to_string(), no_atomics);
    let error = order::find("espbags").unwrap_err().to_string();
    assert!(error.starts_with("no engine is called `espbags`; there are: dag, esp-bags,"), "{error}");
}
