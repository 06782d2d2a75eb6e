//! Tests of the reference, on runs that are made up, and of the generator.

use std::collections::VecDeque;

use dagsan_core::{AccessKind, Bytes, SiteId};

use super::code::{Op, codes};
use super::replay::{Trace, replay};
use super::shrink::smaller;
use super::tidy::tidy;
use super::tree::{Clauses, Depend, Lock, Program, Share, Stmt, Use};
use super::{generate, write_batch};

/// A run: tasks run at once where they are created, and the first thread gets all pieces.
fn serial(program: &Program) -> Trace {
    struct Run {
        codes: Vec<Vec<Op>>,
        trace: Trace,
        actors: u32,
    }
    impl Run {
        /// Runs code of an actor from an operation to its end, or to the next barrier behind it.
        fn run(&mut self, me: u32, code: usize, (thread, threads): (u32, u32), from: usize) -> Option<usize> {
            let mut at = from;
            while let Some(op) = self.codes[code].get(at).cloned() {
                match op {
                    Op::Pass { .. } if at > from => return Some(at),
                    Op::Access { .. } | Op::MaskedDone | Op::Deal { .. } | Op::Dealt(_) => {}
                    Op::Masked { thread: of, .. } if of == thread => {}
                    Op::Masked { end, .. } => at = end - 1,
                    Op::Piece { end, .. } if thread > 0 => at = end - 1,
                    Op::Chunk { number, how: Share::StaticChunk(_), end } if number % threads != thread => {
                        at = end - 1;
                    }
                    Op::Chunk { how, end, .. } if !matches!(how, Share::StaticChunk(_)) && thread > 0 => {
                        at = end - 1;
                    }
                    _ => self.trace.push((me, at as u32)),
                }
                match op {
                    Op::Create { code, .. } => {
                        let child = self.actors;
                        self.actors += 1;
                        self.run(child, code, (0, 1), 0);
                    }
                    Op::Taskloop { first, count, .. } => {
                        let child = self.actors;
                        self.actors += count;
                        for task in 0..count {
                            self.run(child + task, first + task as usize, (0, 1), 0);
                        }
                    }
                    Op::Fork { code, threads } => {
                        let first = self.actors;
                        self.actors += threads;
                        let mut left: VecDeque<(u32, usize)> =
                            (0..threads).map(|thread| (thread, 0)).collect();
                        while let Some((thread, from)) = left.pop_front() {
                            let next = self.run(first + thread, code, (thread, threads), from);
                            left.extend(next.map(|next| (thread, next)));
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            None
        }
    }
    let mut run = Run { codes: codes(program), trace: Vec::new(), actors: 1 };
    run.run(0, 0, (0, 1), 0);
    run.trace
}

fn write() -> Stmt {
    let (bytes, site) = (Bytes::new(0, 1).unwrap(), SiteId::new(0).unwrap());
    Stmt::Access { kind: AccessKind::Write, bytes, site, atomic: false }
}

fn task(body: Vec<Stmt>) -> Stmt {
    Stmt::Task(Clauses::default(), body)
}

fn undeferred(body: Vec<Stmt>) -> Stmt {
    Stmt::Task(Clauses { undeferred: true, ..Clauses::default() }, body)
}

fn depend(how: Use) -> Stmt {
    Stmt::Task(Clauses { depend: vec![Depend { how, on: 0 }], ..Clauses::default() }, vec![write()])
}

fn single(body: Vec<Stmt>) -> Stmt {
    Stmt::Single { nowait: true, body }
}

fn is_racy(body: Vec<Stmt>) -> bool {
    let program = Program { body };
    assert_eq!(tidy(&program), program, "it is not legal");
    !replay(&program, &serial(&program)).unwrap().racy.is_empty()
}

/// In a region of two threads.
fn is_racy_in_region(body: Vec<Stmt>) -> bool {
    is_racy(vec![Stmt::Parallel(2, body)])
}

#[test]
fn tasks_are_ordered_by_what_waits_for_them() {
    let wait = || Stmt::Taskwait(Vec::new());
    assert!(is_racy(vec![task(vec![write()]), write()]));
    assert!(!is_racy(vec![task(vec![write()]), wait(), write()]));
    assert!(is_racy(vec![task(vec![task(vec![write()])]), wait(), write()]));
    assert!(!is_racy(vec![Stmt::Taskgroup(vec![task(vec![task(vec![write()])])]), write()]));
    assert!(!is_racy(vec![undeferred(vec![write()]), write()]));
    // A child of an undeferred task is not the creator's.
    assert!(is_racy(vec![undeferred(vec![task(vec![write()])]), wait(), write()]));
    let is_final = Clauses { is_final: true, ..Clauses::default() };
    assert!(!is_racy(vec![Stmt::Task(is_final, vec![task(vec![write()]), write()]), wait(), write()]));
}

#[test]
fn tasks_are_ordered_by_dependences() {
    use Use::*;
    for (first, second, racy) in [
        (Out, In, false),
        (In, Inout, false),
        (In, In, true),
        (Inoutset, Inoutset, true),
        (Mutexinoutset, Mutexinoutset, false),
        (Mutexinoutset, Inoutset, false),
    ] {
        assert_eq!(is_racy(vec![depend(first), depend(second)]), racy, "{first:?} {second:?}");
    }
    let wait = |how| Stmt::Taskwait(vec![Depend { how, on: 0 }]);
    assert!(!is_racy(vec![depend(Out), wait(In), write()]));
    assert!(is_racy(vec![depend(In), wait(In), write()]));
}

#[test]
fn what_another_thread_might_do_is_parallel() {
    assert!(is_racy_in_region(vec![write()]));
    assert!(!is_racy_in_region(vec![single(vec![write()])]));
    assert!(is_racy_in_region(vec![single(vec![write()]), single(vec![write()])]));
    assert!(!is_racy_in_region(vec![single(vec![write()]), Stmt::Barrier, single(vec![write()])]));
    let masked = |thread| Stmt::Masked(thread, vec![write()]);
    assert!(!is_racy_in_region(vec![masked(1), masked(1)]));
    assert!(is_racy_in_region(vec![masked(0), masked(1)]));
    assert!(!is_racy_in_region(vec![Stmt::Section(Lock(2), vec![write()])]));
    // A barrier is the end of tasks; a taskwait is that of the task's own.
    let tasks = || single(vec![task(vec![task(vec![write()])])]);
    assert!(!is_racy_in_region(vec![tasks(), Stmt::Barrier, masked(0)]));
    assert!(is_racy_in_region(vec![tasks(), Stmt::Taskwait(Vec::new()), masked(0)]));
    assert!(is_racy_in_region(vec![single(vec![depend(Use::Out)]), single(vec![depend(Use::In)])]));
    assert!(!is_racy(vec![Stmt::Parallel(1, vec![single(vec![write()]), single(vec![write()])])]));
}

#[test]
fn chunks_are_parallel_if_any_thread_may_get_them() {
    let deal = |how, nowait| {
        let body = vec![Stmt::Chunk(vec![write()]), Stmt::Chunk(Vec::new()), Stmt::Chunk(vec![write()])];
        Stmt::Deal { how, nowait, body }
    };
    for how in [Share::Dynamic(2), Share::Guided, Share::Sections] {
        assert!(is_racy_in_region(vec![deal(how, false)]), "{how:?}");
        assert!(!is_racy(vec![Stmt::Parallel(1, vec![deal(how, false)])]), "{how:?}");
    }
    // The first thread has both.
    assert!(!is_racy_in_region(vec![deal(Share::StaticChunk(3), false)]));
    let masked = || Stmt::Masked(0, vec![write()]);
    assert!(!is_racy_in_region(vec![deal(Share::StaticChunk(1), true), masked()]));
    assert!(is_racy(vec![Stmt::Parallel(3, vec![deal(Share::StaticChunk(1), true), masked()])]));
    let one = Stmt::Deal { how: Share::Sections, nowait: true, body: vec![Stmt::Chunk(vec![write()])] };
    assert!(is_racy_in_region(vec![one.clone(), masked()]));
    assert!(!is_racy_in_region(vec![one, Stmt::Barrier, masked()]));
}

#[test]
fn a_loop_of_tasks_is_a_group_unless_it_says_otherwise() {
    let of =
        |nogroup| Stmt::Taskloop { nogroup, body: vec![Stmt::Chunk(vec![write()]), Stmt::Chunk(Vec::new())] };
    assert!(!is_racy(vec![of(false), write()]));
    assert!(is_racy(vec![of(true), write()]));
    assert!(!is_racy(vec![of(true), Stmt::Taskwait(Vec::new()), write()]));
    let both = vec![Stmt::Chunk(vec![write()]), Stmt::Chunk(vec![write()])];
    assert!(is_racy(vec![Stmt::Taskloop { nogroup: false, body: both }]));
}

#[test]
fn a_task_that_is_waited_for_in_a_section_is_part_of_it() {
    let section = |body| Stmt::Section(Lock(2), body);
    let wait = || Stmt::Taskwait(Vec::new());
    assert!(!is_racy_in_region(vec![section(vec![task(vec![write()]), wait()])]));
    assert!(is_racy_in_region(vec![section(vec![task(vec![write()])]), wait()]));
    assert!(is_racy_in_region(vec![section(vec![task(vec![write()]), task(vec![write()]), wait()])]));
    assert!(is_racy_in_region(vec![task(vec![write()]), section(vec![wait()])]));
    let nested = task(vec![task(vec![write()]), wait()]);
    assert!(!is_racy_in_region(vec![section(vec![nested, wait()])]));
    let outlives = task(vec![task(vec![write()])]);
    assert!(is_racy_in_region(vec![section(vec![outlives, wait()])]));
}

#[test]
fn regions_in_regions_are_joined_by_whoever_has_encountered_them() {
    let inner = |body| Stmt::Parallel(2, vec![body]);
    assert!(is_racy_in_region(vec![single(vec![inner(write())])]));
    assert!(!is_racy_in_region(vec![single(vec![inner(Stmt::Masked(1, vec![write()])), write()])]));
    assert!(is_racy(vec![task(vec![inner(single(vec![write()]))]), write()]));
}

#[test]
fn a_run_that_cannot_be_is_refused() {
    let program = Program { body: vec![depend(Use::Out), depend(Use::In), Stmt::Taskwait(Vec::new())] };
    let right = serial(&program);
    assert_eq!(right, [(0, 0), (0, 1), (1, 0), (1, 2), (0, 2), (2, 0), (2, 2), (0, 3), (0, 4)]);
    let refused = |trace: &[(u32, u32)], why: &str| {
        let error = replay(&program, trace).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    assert!(replay(&program, &right).is_ok());
    refused(&[(0, 0), (0, 1), (0, 2), (2, 0)], "too early");
    refused(&[(0, 0), (0, 1), (1, 0), (0, 2), (0, 3)], "too early");
    refused(&[(0, 0), (0, 2)], "comes next");
    refused(&[(0, 0), (3, 0)], "no such task");
    refused(&right[..right.len() - 1], "does not come to its end");
    let program = Program { body: vec![Stmt::Parallel(2, vec![single(Vec::new())])] };
    let twice = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)];
    assert!(replay(&program, &twice).unwrap_err().to_string().contains("same piece"));
    let none = [(0, 0), (0, 1), (1, 0), (1, 3), (2, 0), (2, 3), (0, 2), (0, 3)];
    assert!(replay(&program, &none).unwrap_err().to_string().contains("nobody has done"));
    let body = vec![Stmt::Chunk(Vec::new())];
    let body = vec![Stmt::Deal { how: Share::StaticChunk(1), nowait: true, body }];
    let program = Program { body: vec![Stmt::Parallel(2, body)] };
    assert!(replay(&program, &serial(&program)).is_ok());
    let other = [(0, 0), (0, 1), (1, 0), (2, 0), (2, 2)];
    assert!(replay(&program, &other).unwrap_err().to_string().contains("another thread's"));
}

#[test]
fn random_programs_are_legal_and_can_be_run() {
    let mut racy = 0;
    let mut text = String::new();
    for seed in 0..400 {
        let program = generate(seed, None);
        assert_eq!(tidy(&program), program, "seed {seed}");
        assert_eq!(generate(seed, None), program);
        let expected =
            replay(&program, &serial(&program)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        racy += u32::from(!expected.racy.is_empty());
        text += &write_batch(&[&program]);
    }
    assert!((100..300).contains(&racy), "{racy} of 400 are racy");
    for word in [
        "omp task ",
        "if(0)",
        "final(1)",
        "untied",
        "taskwait",
        "taskgroup",
        "critical(",
        "omp_set_lock(&locks[3]",
        "parallel num_threads(8)",
        "single nowait",
        "omp single\n",
        "masked filter(1)",
        "omp barrier",
        "schedule(static)",
        "schedule(static, 2)",
        "schedule(dynamic, 3)",
        "schedule(guided) nowait",
        "omp sections\n",
        "omp section\n",
        "taskloop num_tasks(2)",
        " nogroup",
        "(in:",
        "(out:",
        "(inout:",
        "(mutexinoutset:",
        "(inoutset:",
    ] {
        assert!(text.contains(word), "no program has `{word}`");
    }
    assert_eq!(generate(7, Some(3)), generate(7, Some(3)));
}

#[test]
fn smaller_programs_are_legal_and_lead_to_nothing() {
    let program = generate(3, None);
    let all = smaller(&program);
    assert!(all.len() > program.len() && all.iter().all(|small| tidy(small) == *small));
    assert!(all.iter().any(Program::is_empty));
    assert!(smaller(&Program::default()).is_empty());
}
