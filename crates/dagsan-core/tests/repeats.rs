//! Steps that a task makes once more are left out, and nothing else changes.

use dagsan_core::order::{self, Options};
use dagsan_core::{
    AccessKind, Bytes, Consumer, Detector, Error, Event, Location, LockId, LockMode, Run, SiteId, Step,
    Strand, Stream, SyncId, TaskId, TaskKind,
};

const MAIN: TaskId = TaskId::MAIN;
const FIRST: TaskId = TaskId(1);
const SECOND: TaskId = TaskId(2);
const A: LockId = LockId(1);
const B: LockId = LockId(2);
const READ: AccessKind = AccessKind::Read;
const WRITE: AccessKind = AccessKind::Write;

/// Counts what is told, and finds races.
struct Counting {
    detector: Detector,
    strands: usize,
    events: usize,
}

impl Consumer for Counting {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.strands += 1;
        self.detector.accesses(strand, runs)
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.events += 1;
        self.detector.event(step)
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.detector.erase(bytes)
    }
}

/// A finish with two tasks, which run in turn.
struct Program(Stream<Counting>);

impl Program {
    fn new() -> Program {
        let detector = Detector::new(order::default_engine(), Options::default());
        let mut stream = Stream::new(Counting { detector, strands: 0, events: 0 });
        stream.order_sections();
        stream.leave_out_repeats();
        let mut program = Program(stream);
        program.event(Event::FinishBegin { task: MAIN });
        for child in [FIRST, SECOND] {
            program.event(Event::Spawn { parent: MAIN, child, kind: TaskKind::Async });
        }
        program
    }

    fn event(&mut self, event: Event) {
        self.0.event(event).unwrap();
    }

    fn touch(&mut self, task: TaskId, byte: u64, kind: AccessKind) {
        let at = Location { line: byte / 64, mask: 1 << (byte % 64) };
        let site = SiteId::new(byte as u32 + 1).unwrap();
        self.0.runs(task, &[Run { at, kind, site, atomic: false }]).unwrap();
    }

    fn lock(&mut self, task: TaskId, lock: LockId) {
        self.event(Event::Lock { task, lock, mode: LockMode::Exclusive });
    }

    fn unlock(&mut self, task: TaskId, lock: LockId) {
        self.event(Event::Unlock { task, lock });
    }

    /// `task` writes a byte under a lock.
    fn count(&mut self, task: TaskId, lock: LockId, byte: u64) {
        self.lock(task, lock);
        self.touch(task, byte, WRITE);
        self.unlock(task, lock);
    }

    /// How many strands and events were told since it was last asked.
    fn told(&mut self) -> [usize; 2] {
        let counting = self.0.consumer_mut();
        [&mut counting.strands, &mut counting.events].map(std::mem::take)
    }

    fn racy(&self) -> Vec<u64> {
        let races = self.0.consumer().detector.races().iter();
        races.flat_map(|race| race.location.addresses()).collect()
    }
}

#[test]
fn sections_that_come_again_are_told_no_more() {
    let mut program = Program::new();
    program.count(FIRST, A, 0);
    program.told();
    (0..100).for_each(|_| program.count(FIRST, A, 0));
    // The first strand of a task has begun before anything was known of it.
    let [strands, events] = program.told();
    assert!(strands <= 1 && events <= 3, "{strands} {events}");
    assert!(program.0.left_out() >= 99);
    // What is different is told, and what was held back before it.
    program.lock(FIRST, A);
    assert!(program.0.in_section(FIRST) && !program.0.in_section(SECOND));
    program.touch(FIRST, 0, WRITE);
    assert_eq!(program.told(), [0, 0]);
    program.touch(FIRST, 1, WRITE);
    assert_eq!(program.told(), [2, 1]);
    program.unlock(FIRST, A);
    program.touch(SECOND, 1, WRITE);
    assert_eq!(program.racy(), [1]);
}

#[test]
fn releases_that_come_again_are_told_no_more() {
    let mut program = Program::new();
    let release = Event::Release { task: FIRST, sync: SyncId(3), keep: true };
    program.event(Event::Release { task: FIRST, sync: SyncId(3), keep: false });
    for _ in 0..3 {
        program.touch(FIRST, 0, WRITE);
        program.event(release);
    }
    program.told();
    for _ in 0..100 {
        program.touch(FIRST, 0, WRITE);
        program.event(release);
    }
    assert_eq!(program.told(), [0, 0]);
    program.touch(FIRST, 1, WRITE);
    // Who acquires comes after all that was left out, and not after what is told since.
    program.event(Event::Acquire { task: SECOND, sync: SyncId(3) });
    program.touch(SECOND, 0, WRITE);
    assert_eq!(program.racy(), []);
    program.touch(SECOND, 1, WRITE);
    assert_eq!(program.racy(), [1]);
}

#[test]
fn what_was_held_back_races_with_what_comes() {
    let mut program = Program::new();
    let round = |program: &mut Program| {
        program.touch(FIRST, 5, READ);
        program.count(FIRST, A, 0);
        program.touch(FIRST, 9, WRITE);
        program.count(FIRST, B, 64);
    };
    (0..10).for_each(|_| round(&mut program));
    // In the middle of a round.
    program.touch(FIRST, 5, READ);
    program.count(FIRST, A, 0);
    program.touch(FIRST, 9, WRITE);
    // Sections of other locks order nothing.
    program.count(SECOND, B, 128);
    program.touch(SECOND, 5, WRITE);
    assert_eq!(program.racy(), [5]);
    // It comes after the last section of lock B, and not after what came since.
    program.count(SECOND, B, 64);
    program.touch(SECOND, 9, WRITE);
    assert_eq!(program.racy(), [5, 9]);
}

#[test]
fn what_another_task_has_come_after_is_told_anew() {
    let mut program = Program::new();
    let round = |program: &mut Program| {
        program.touch(FIRST, 5, WRITE);
        program.count(FIRST, A, 0);
    };
    (0..3).for_each(|_| round(&mut program));
    // It comes after these rounds, and is parallel to how the next one begins.
    program.count(SECOND, A, 0);
    round(&mut program);
    program.touch(SECOND, 5, READ);
    assert_eq!(program.racy(), [5]);
}

#[test]
fn what_comes_into_a_round_is_not_left_out_with_it() {
    let mut program = Program::new();
    program.touch(SECOND, 200, WRITE);
    program.count(SECOND, A, 0);
    let release = |sync| Event::Release { task: FIRST, sync: SyncId(sync), keep: false };
    program.event(release(9));
    // The first section follows that of the other task: only from the second round on does the release pass on what that has done.
    for _ in 0..2 {
        program.event(release(3));
        program.count(FIRST, A, 0);
    }
    program.event(Event::Acquire { task: MAIN, sync: SyncId(3) });
    program.touch(MAIN, 200, WRITE);
    assert_eq!(program.racy(), []);
}
