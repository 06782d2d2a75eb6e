//! Tests of the scheduler: the order of hand-made programs, and that no program makes a bad stream.

use super::*;
use crate::{Class, Size, generate};

/// Everything a consumer hears, in short words.
#[derive(Default)]
struct Trace(Vec<String>);

impl Consumer for Trace {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        for run in runs {
            let atomic = if run.atomic { "a" } else { "" };
            let kind = if run.kind == AccessKind::Write { "w" } else { "r" };
            let first = run.at.addresses().next().unwrap_or_default();
            self.0.push(format!("{}:{atomic}{kind}{first}", strand.task.0));
        }
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        use Event::*;
        let what = match step.event {
            Spawn { child, .. } => format!("start {}", child.0),
            TaskEnd { .. } => "end".to_owned(),
            FinishBegin { .. } => "finish".to_owned(),
            FinishEnd { .. } => "finished".to_owned(),
            FrameBegin { .. } => "call".to_owned(),
            FrameEnd { .. } => "return".to_owned(),
            Sync { .. } => "sync".to_owned(),
            FutureGet { future, .. } => format!("join {}", future.0),
            PromiseNew { .. } | RegionNew { .. } => return Ok(()),
            PromiseSet { promise, .. } => format!("set {}", promise.0),
            PromiseGet { promise, .. } => format!("get {}", promise.0),
            IsolatedBegin { .. } => "isolated".to_owned(),
            IsolatedEnd { .. } => "unisolated".to_owned(),
            Await { .. } => "await".to_owned(),
            Ewait { joined, .. } => format!("ewait {}", joined.0),
            Lock { lock, mode, .. } => format!("lock {} {mode:?}", lock.0),
            Unlock { lock, .. } => format!("unlock {}", lock.0),
            Under { lock, .. } => format!("under {}", lock.0),
            SetLockMode { lock, mode, .. } => format!("mode {} {mode:?}", lock.0),
            Release { sync, keep, .. } => format!("release {} {keep}", sync.0),
            Acquire { sync, .. } => format!("acquire {}", sync.0),
            Pass { from, to, keep, .. } => format!("pass {} {} {keep}", from.0, to.0),
        };
        self.0.push(format!("{}:{what}", step.event.task().0));
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.0.push(format!("erase {}", bytes.start()));
        Ok(())
    }
}

fn check(text: &str, expected: &str) -> Outcome {
    let program = Program::parse(text).unwrap();
    let mut stream = Stream::new(Trace::default());
    let outcome = run(&program, &mut stream).unwrap();
    let trace = stream.into_consumer().0.join(", ");
    assert_eq!(trace, expected.split_whitespace().collect::<Vec<_>>().join(" "), "{text}");
    outcome
}

#[test]
fn locks_are_held_once_and_their_mode_is_for_what_was_not_delivered() {
    check("lock l7; w 1+1; unlock l7; unlock l7", "0:lock 0 Exclusive, 0:w1, 0:unlock 0, 0:end");
    check("unlock l7; share l3; share l3; r 1+1", "0:lock 1 Shared, 0:r1, 0:end");
    check("lock l0; w 1+1; share l0; r 2+1", "0:lock 0 Exclusive, 0:mode 0 Shared, 0:w1, 0:r2, 0:end");
}

#[test]
fn atomics_are_told_apart() {
    check(
        "aw 1+1; ar 1+1; w 1+1; store s4; update s4; load s4",
        "0:w1, 0:aw1, 0:release 4 false, 0:release 4 true, 0:acquire 4, 0:end",
    );
    check("ar 1+1; free 1+1; aw 1+1", "0:ar1, 0:w1, erase 1, 0:aw1, 0:end");
}

#[test]
fn a_created_task_runs_at_once() {
    let outcome = check(
        "w 1+1 async { w 2+1 async { w 3+1 } w 4+1 } w 5+1",
        "0:w1, 0:start 1, 1:w2, 1:start 2, 2:w3, 2:end, 1:w4, 1:end, 0:w5, 0:end",
    );
    assert_eq!(outcome, Outcome { deadlock: false, tasks: 3, events: 5, accesses: 5 });
}

#[test]
fn a_set_resumes_the_waiting_before_the_setter_goes_on() {
    check(
        "async { w 1+1; get p0; w 2+1 } async { get p0; w 3+1 } w 4+1; set p0; w 5+1",
        "0:start 1, 1:w1, 0:start 2, 0:w4, 0:set 0, 1:get 0, 1:w2, 1:end, 2:get 0, 2:w3, 2:end, 0:w5, 0:end",
    );
}

#[test]
fn a_second_set_is_skipped() {
    check("set p3; set p3; get p3", "0:set 0, 0:get 0, 0:end");
}

#[test]
fn blocked_tasks_give_way_to_their_parents_recursively() {
    check(
        "async { finish { async { get p0; w 1+1 } w 2+1 } w 3+1 } w 4+1; set p0; w 5+1",
        "0:start 1, 1:finish, 1:start 2, 1:w2, 0:w4, 0:set 0, 2:get 0, 2:w1, 2:end, 1:finished, 1:w3, 1:end,
         0:w5, 0:end",
    );
}

#[test]
fn a_get_waits_for_a_future_that_does_not_exist_yet() {
    check(
        "async { get f0; w 1+1 } future f0 { w 2+1 } w 3+1; get f0",
        "0:start 1, 0:start 2, 2:w2, 2:end, 1:join 2, 1:w1, 1:end, 0:w3, 0:join 2, 0:end",
    );
}

#[test]
fn procedures_and_tasks_sync_before_they_end() {
    check(
        "spawn { spawn { } } call { spawn { get p0 } w 1+1 } set p0",
        "0:start 1, 1:start 2, 2:end, 1:sync, 1:end, 0:call, 0:start 3, 0:w1",
    );
    check(
        "async { call { spawn { get p0 } w 1+1 } } set p0",
        "0:start 1, 1:call, 1:start 2, 1:w1, 0:set 0, 2:get 0, 2:end, 1:sync, 1:return, 1:end, 0:end",
    );
}

#[test]
fn a_finish_joins_its_spawns_and_leaves_the_others() {
    check(
        "spawn { } finish { spawn { } } call { sync } w 1+1",
        "0:start 1, 1:end, 0:finish, 0:start 2, 2:end, 0:finished, 0:call, 0:sync, 0:return, 0:w1, 0:sync, 0:end",
    );
    check("finish { spawn { } } w 1+1", "0:finish, 0:start 1, 1:end, 0:finished, 0:w1, 0:end");
}

#[test]
fn isolated_sections_wait_for_one_another_and_do_not_nest() {
    check(
        "async { get p0; isolated { w 1+1 } } isolated { set p0; isolated { w 2+1 } w 3+1 } w 4+1",
        "0:start 1, 0:isolated, 0:set 0, 1:get 0, 0:w2, 0:w3, 0:unisolated, 0:w4, 1:isolated, 1:w1,
         1:unisolated, 1:end, 0:end",
    );
    check("isolated { spawn { w 1+1 } }", "0:isolated, 0:start 1, 1:w1, 1:end, 0:sync, 0:unisolated, 0:end");
    check(
        "isolated { isolated { spawn { } } call { } }",
        "0:isolated, 0:start 1, 1:end, 0:call, 0:return, 0:sync, 0:unisolated, 0:end",
    );
}

#[test]
fn regions_join_in_the_order_of_the_ends() {
    check(
        "post r5 { get p0 } post r5 { } ewait r5; set p0; ewait r5; ewait r5; await r5",
        "0:start 1, 0:start 2, 2:end, 0:ewait 2, 0:set 0, 1:get 0, 1:end, 0:ewait 1, 0:await, 0:end",
    );
    check(
        "async { post r0 { get p0 } await r0; w 1+1 } w 2+1; set p0",
        "0:start 1, 1:start 2, 0:w2, 0:set 0, 2:get 0, 2:end, 1:await, 1:w1, 1:end, 0:end",
    );
}

#[test]
fn a_free_is_delivered_at_once() {
    check("async { } w 128+4; free 0+64; w 1+1", "0:start 1, 1:end, 0:w128, 0:w0, erase 0, 0:w1, 0:end");
}

#[test]
fn deadlocks_are_found_and_what_came_before_is_delivered() {
    let outcome = check("async { w 1+1; get p0 } w 2+1; get f0; set p0", "0:start 1, 1:w1, 0:w2");
    assert!(outcome.deadlock);
    for text in
        ["get p0", "future f0 { get f0 }", "post r0 { await r0 }", "isolated { spawn { isolated { } } }"]
    {
        let program = Program::parse(text).unwrap();
        assert!(run(&program, &mut Stream::new(Ignore)).unwrap().deadlock, "{text}");
    }
}

#[test]
fn deep_nesting_costs_no_native_stack() {
    let mut body = vec![Stmt::Sync];
    for _ in 0..2000 {
        body = vec![Stmt::Async(vec![Stmt::Finish(body)])];
    }
    let outcome = run(&Program { body }, &mut Stream::new(Ignore)).unwrap();
    assert_eq!((outcome.deadlock, outcome.tasks), (false, 2001));
}

#[test]
fn generated_programs_run_to_their_end() {
    let mut rng = fastrand::Rng::with_seed(3);
    for class in Class::ALL {
        for _ in 0..3000 {
            let size = Size::pick(&mut rng);
            let program = generate(class, &mut rng, size);
            let outcome = run(&program, &mut Stream::new(Ignore));
            assert!(matches!(outcome, Ok(Outcome { deadlock: false, .. })), "{outcome:?}\n{program}");
            assert_eq!(outcome.unwrap().tasks as usize, program.task_count());
        }
    }
}

/// Statements put anywhere, gets of what nobody sets, spawns in isolated sections: all that
/// hand-written and shrunk programs can be.
#[test]
fn no_program_makes_a_bad_stream() {
    let mut rng = fastrand::Rng::with_seed(4);
    let mut deadlocks = 0;
    for _ in 0..20_000 {
        let program = Program { body: any_body(&mut rng, 0) };
        match run(&program, &mut Stream::new(Ignore)) {
            Ok(outcome) => deadlocks += u32::from(outcome.deadlock),
            Err(error) => panic!("{error}\n{program}"),
        }
    }
    assert!((2000..18_000).contains(&deadlocks), "{deadlocks}");
}

fn any_body(rng: &mut fastrand::Rng, depth: u32) -> Vec<Stmt> {
    let bytes = Bytes::new(rng.u64(0..100), rng.u64(1..70)).unwrap();
    let mut body = Vec::new();
    for _ in 0..rng.u32(0..5) {
        let name = rng.u32(0..3);
        let kinds = if depth < 5 { 24 } else { 15 };
        body.push(match rng.u32(0..kinds) {
            0 => Stmt::read(bytes),
            1 => Stmt::write(bytes),
            2 => Stmt::free(bytes),
            3 => Stmt::Sync,
            4 => Stmt::GetFuture(name),
            5 => Stmt::Set(name),
            6 => Stmt::Get(name),
            7 => Stmt::Await(name),
            8 => Stmt::Ewait(name),
            9 => Stmt::atomic(AccessKind::Write, bytes),
            10 => Stmt::atomic(AccessKind::Read, bytes),
            11 => Stmt::Lock(name, if rng.bool() { LockMode::Shared } else { LockMode::Exclusive }),
            12 => Stmt::Unlock(name),
            13 => Stmt::Release(name, rng.bool()),
            14 => Stmt::Acquire(name),
            15 => Stmt::Async(any_body(rng, depth + 1)),
            16 => Stmt::Finish(any_body(rng, depth + 1)),
            17 => Stmt::Spawn(any_body(rng, depth + 1)),
            18 => Stmt::Call(any_body(rng, depth + 1)),
            19 => Stmt::Future(name, any_body(rng, depth + 1)),
            20 => Stmt::Isolated(any_body(rng, depth + 1)),
            21 => Stmt::Detached(any_body(rng, depth + 1)),
            22 => Stmt::Child(name, any_body(rng, depth + 1)),
            _ => Stmt::Post(name, any_body(rng, depth + 1)),
        });
    }
    body
}
