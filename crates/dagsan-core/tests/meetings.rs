//! Parallel atomic accesses do not race, and are told: one pair of sites at a time, whatever acquires have ordered.

use dagsan_core::order::{self, Options};
use dagsan_core::{
    AccessKind, Detector, Event, LockId, LockMode, Run, SiteId, Stream, SyncId, TaskId, TaskKind,
};
use dagsan_core::{Bytes, Location};

const SYNC: SyncId = SyncId(0);

struct Program(Stream<Detector>);

impl Program {
    fn new() -> Program {
        let mut program = Program(Stream::new(Detector::new(order::default_engine(), Options::default())));
        program.event(Event::FinishBegin { task: TaskId::MAIN });
        program
    }

    fn event(&mut self, event: Event) {
        self.0.event(event).unwrap();
    }

    fn spawn(&mut self, child: u32, kind: TaskKind) -> TaskId {
        self.event(Event::Spawn { parent: TaskId::MAIN, child: TaskId(child), kind });
        TaskId(child)
    }

    fn atomic(&mut self, task: TaskId, kind: AccessKind, site: u32) {
        let (line, mask) = Bytes::new(64, 8).unwrap().lines().next().unwrap();
        let site = SiteId::new(site).unwrap();
        self.0.runs(task, &[Run { at: Location { line, mask }, kind, site, atomic: true }]).unwrap();
    }

    /// The pairs of sites that met.
    fn met(&self) -> Vec<(u32, u32)> {
        assert_eq!(self.0.consumer().races(), []);
        let met = self.0.consumer().meetings().iter();
        met.map(|meeting| (meeting.first.0.number(), meeting.second.0.number())).collect()
    }
}

/// A task writes, and another one does `kind`; in between, what `between` says of the two.
fn two(kind: AccessKind, between: impl FnOnce(&mut Program)) -> Vec<(u32, u32)> {
    let mut program = Program::new();
    let one = program.spawn(1, TaskKind::Async);
    program.atomic(one, AccessKind::Write, 2);
    program.event(Event::Release { task: one, sync: SYNC, keep: false });
    program.event(Event::TaskEnd { task: one });
    between(&mut program);
    let two = program.spawn(2, TaskKind::Async);
    program.event(Event::Acquire { task: two, sync: SYNC });
    program.atomic(two, kind, 4);
    program.atomic(two, kind, 4);
    program.met()
}

#[test]
fn parallel_accesses_meet_once_though_an_acquire_orders_them() {
    assert_eq!(two(AccessKind::Read, |_| {}), [(2, 4)]);
    assert_eq!(two(AccessKind::Write, |_| {}), [(2, 4)]);
}

#[test]
fn what_the_structure_orders_does_not_meet() {
    let finish = |program: &mut Program| {
        program.event(Event::FinishEnd { task: TaskId::MAIN });
        program.event(Event::FinishBegin { task: TaskId::MAIN });
    };
    assert_eq!(two(AccessKind::Write, finish), []);

    let mut program = Program::new();
    let other = program.spawn(1, TaskKind::Async);
    program.event(Event::TaskEnd { task: other });
    let future = program.spawn(2, TaskKind::Future);
    program.atomic(future, AccessKind::Write, 2);
    program.event(Event::TaskEnd { task: future });
    program.event(Event::FutureGet { task: TaskId::MAIN, future });
    program.atomic(TaskId::MAIN, AccessKind::Read, 4);
    assert_eq!(program.met(), []);
}

#[test]
fn reads_alone_do_not_meet_nor_do_sections_of_a_lock() {
    let mut program = Program::new();
    for number in 1..3 {
        let task = program.spawn(number, TaskKind::Async);
        program.atomic(task, AccessKind::Read, 2 * number);
        program.event(Event::TaskEnd { task });
    }
    assert_eq!(program.met(), []);

    let mut program = Program::new();
    let lock = LockId(7);
    for number in 1..3 {
        let task = program.spawn(number, TaskKind::Async);
        program.event(Event::Lock { task, lock, mode: LockMode::Exclusive });
        program.atomic(task, AccessKind::Write, 2 * number);
        program.event(Event::Unlock { task, lock });
        program.event(Event::TaskEnd { task });
    }
    assert_eq!(program.met(), []);
}
