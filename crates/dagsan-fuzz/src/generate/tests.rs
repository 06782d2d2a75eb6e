//! Tests of the generator: same seed, same program; every construct of the class and no other.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::LockMode;

use super::*;
use crate::run;

fn programs(class: Class, seed: u64, count: usize) -> impl Iterator<Item = Program> {
    let mut rng = Rng::with_seed(seed);
    (0..count).map(move |_| {
        let size = Size::pick(&mut rng);
        generate(class, &mut rng, size)
    })
}

/// The first word of each statement, and the construct it needs.
fn describe(stmt: &Stmt) -> (&'static str, Option<Construct>) {
    match stmt {
        Stmt::Read { .. } => ("r", None),
        Stmt::Write { .. } => ("w", None),
        Stmt::Free { .. } => ("free", None),
        Stmt::Async(_) => ("async", Some(Construct::AsyncFinish)),
        Stmt::Finish(_) => ("finish", Some(Construct::AsyncFinish)),
        Stmt::Spawn(_) => ("spawn", Some(Construct::SpawnSync)),
        Stmt::Sync => ("sync", Some(Construct::SpawnSync)),
        Stmt::Call(_) => ("call", Some(Construct::SpawnSync)),
        Stmt::Future(..) => ("future", Some(Construct::StructuredFuture)),
        Stmt::GetFuture(_) => ("get future", Some(Construct::StructuredFuture)),
        Stmt::Set(_) => ("set", Some(Construct::Promise)),
        Stmt::Get(_) => ("get promise", Some(Construct::Promise)),
        Stmt::Isolated(_) => ("isolated", Some(Construct::Isolated)),
        Stmt::Post(..) => ("post", Some(Construct::Region)),
        Stmt::Await(_) => ("await", Some(Construct::Region)),
        Stmt::Ewait(_) => ("ewait", Some(Construct::Region)),
        Stmt::Atomic { kind: AccessKind::Read, .. } => ("ar", None),
        Stmt::Atomic { kind: AccessKind::Write, .. } => ("aw", None),
        Stmt::Lock(_, LockMode::Exclusive) => ("lock", Some(Construct::Lock)),
        Stmt::Lock(_, LockMode::Shared) => ("share", Some(Construct::Lock)),
        Stmt::Unlock(_) => ("unlock", Some(Construct::Lock)),
        Stmt::Release(_, false) => ("store", Some(Construct::Atomic)),
        Stmt::Release(_, true) => ("update", Some(Construct::Atomic)),
        Stmt::Acquire(_) => ("load", Some(Construct::Atomic)),
        Stmt::Detached(_) => ("detached", Some(Construct::Detached)),
        Stmt::Child(..) => ("child", Some(Construct::Child)),
    }
}

#[test]
fn the_same_seed_makes_the_same_program() {
    for class in Class::ALL {
        assert!(programs(class, 7, 50).eq(programs(class, 7, 50)));
        assert!(programs(class, 7, 50).ne(programs(class, 8, 50)));
    }
}

#[test]
fn every_construct_of_the_class_comes_and_no_other() {
    for class in Class::ALL {
        let mut counts = BTreeMap::new();
        for program in programs(class, 9, 2000) {
            for stmt in program.walk() {
                let (name, construct) = describe(stmt);
                assert!(construct.is_none_or(|c| class.constructs().contains(&c)), "{class}: {name}");
                *counts.entry(name).or_insert(0) += 1;
            }
        }
        let kinds = match class {
            Class::Sp => 5,
            Class::SpawnSync => 6,
            Class::StructuredFutures => 8,
            Class::Futures => 10,
            Class::Promises => 12,
            Class::Isolated => 9,
            Class::All => 16,
            Class::Locks => 14,
            Class::Atomics => 21,
            Class::Native => 24,
            Class::Detached => 17,
            Class::Children => 16,
        };
        assert_eq!(counts.len(), kinds, "{class}: {counts:?}");
        assert!(counts.values().all(|&count| count > 100), "{class}: {counts:?}");
    }
}

#[test]
fn programs_are_small_and_large_deep_and_wide() {
    for class in Class::ALL {
        let (mut small, mut large, mut deep, mut wide) = (0, 0, 0, 0);
        for program in programs(class, 10, 2000) {
            let tasks = program.task_count();
            assert!(tasks <= 300);
            small += u32::from(tasks <= 12);
            large += u32::from(tasks > 100);
            deep += u32::from(depth(&program) > 8);
            wide += u32::from(program.body.iter().filter(|stmt| stmt.creates_task()).count() > 8);
        }
        let counts = format!("{class}: {small} {large} {deep} {wide}");
        assert!(small > 1500 && large > 10 && deep > 20 && wide > 40, "{counts}");
    }
}

fn depth(program: &Program) -> usize {
    let text = program.to_string();
    text.lines().map(|line| line.len() - line.trim_start().len()).max().unwrap_or(0) / 2
}

#[test]
fn structured_futures_are_got_at_most_once_and_never_block() {
    let (mut created, mut got) = (0, 0);
    for program in programs(Class::StructuredFutures, 11, 3000) {
        let mut seen = BTreeSet::new();
        for stmt in program.walk() {
            match stmt {
                Stmt::Future(..) => created += 1,
                Stmt::GetFuture(name) => {
                    assert!(seen.insert(*name), "f{name} is got twice:\n{program}");
                    got += 1;
                }
                _ => {}
            }
        }
        // The serial elision of a structured program is a run of it.
        let depth_first = runs_depth_first(&program);
        assert!(depth_first, "a get blocks:\n{program}");
    }
    assert!(got * 3 > created && got < created, "{got} of {created}");
}

#[test]
fn gets_of_promises_and_general_futures_often_block() {
    for class in [Class::Futures, Class::Promises, Class::All] {
        let blocking = programs(class, 12, 1000).filter(|program| !runs_depth_first(program)).count();
        assert!((100..950).contains(&blocking), "{class}: {blocking}");
    }
}

fn runs_depth_first(program: &Program) -> bool {
    #[derive(Default)]
    struct DepthFirst(bool);
    impl dagsan_core::Consumer for DepthFirst {
        fn accesses(
            &mut self,
            _: &dagsan_core::Strand,
            _: &[dagsan_core::Run],
        ) -> Result<(), dagsan_core::Error> {
            Ok(())
        }
        fn event(&mut self, step: &dagsan_core::Step<'_>) -> Result<(), dagsan_core::Error> {
            self.0 = step.depth_first;
            Ok(())
        }
        fn erase(&mut self, _: Bytes) -> Result<(), dagsan_core::Error> {
            Ok(())
        }
    }
    let mut stream = dagsan_core::Stream::new(DepthFirst::default());
    run(program, &mut stream).unwrap();
    stream.into_consumer().0
}
