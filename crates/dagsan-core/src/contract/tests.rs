//! What is told, and when.

use super::*;
use crate::access::{AccessKind, Run};
use crate::bytes::{LINE_BYTES, Location};
use crate::ids::SiteId;

/// What was told, a word each; whether all atomic accesses are known to meet; and the lines of which it was said that they were only read.
#[derive(Default)]
struct Told(Vec<String>, bool, Vec<u64>);

impl Told {
    fn lines(set: &SmallSet) -> String {
        let lines: Vec<String> = set.runs().map(|run| format!("{:?}{}", run.kind, run.at.line)).collect();
        lines.join(" ")
    }
}

impl Expand for Told {
    type Tag = u32;

    fn accesses(&mut self, set: &SmallSet) -> Result<(), Error> {
        self.0.push(Told::lines(set));
        Ok(())
    }

    fn open(&mut self, scope: Opened) -> Result<(), Error> {
        self.0.push(format!("{scope:?}"));
        Ok(())
    }

    fn start(&mut self, _: TaskKind, tag: u32) -> Result<(), Error> {
        self.0.push(format!("start {tag}"));
        Ok(())
    }

    fn have_met(&self, _: Side, _: Side) -> bool {
        self.1
    }

    fn has_read(&mut self, line: u64, _: u64) {
        self.2.push(line);
    }

    fn run(&mut self, _: TaskKind, tag: u32, set: &SmallSet, left: Option<&SmallSet>) -> Result<(), Error> {
        let left = left.map(|left| format!(", leaves {}", Told::lines(left))).unwrap_or_default();
        self.0.push(format!("run {tag}: {}{left}", Told::lines(set)));
        Ok(())
    }
}

struct Case {
    contraction: Contraction<u32>,
    told: Told,
}

impl Case {
    fn new(limit: usize) -> Case {
        let mut contraction = Contraction::new(limit);
        contraction.open(Opened::Frame);
        Case { contraction, told: Told::default() }
    }

    fn touch(&mut self, kind: AccessKind, line: u64) {
        self.access(kind, line, SiteId::FIRST, false);
    }

    fn access(&mut self, kind: AccessKind, line: u64, site: SiteId, atomic: bool) {
        let mut set = SmallSet::default();
        set.add_run(&Run { at: Location { line, mask: 1 }, kind, site, atomic });
        self.contraction.own(&set, &mut self.told).unwrap();
    }

    /// A task that accesses a line atomically.
    fn atomic_task(&mut self, tag: u32, kind: AccessKind, line: u64, site: SiteId) -> Taken {
        assert_eq!(self.contraction.spawn(TaskKind::Spawn, tag, 0..0, &mut self.told), Ok(Taken::Here));
        self.access(kind, line, site, true);
        self.contraction.task_end(&mut self.told).unwrap()
    }

    /// A task that touches a line.
    fn task(&mut self, tag: u32, kind: AccessKind, line: u64) -> Taken {
        assert_eq!(self.contraction.spawn(TaskKind::Spawn, tag, 0..0, &mut self.told), Ok(Taken::Here));
        self.touch(kind, line);
        self.contraction.task_end(&mut self.told).unwrap()
    }
}

#[test]
fn tasks_without_conflicts_are_told_as_one() {
    let mut case = Case::new(MOST);
    case.touch(AccessKind::Write, 1);
    for tag in 7..12 {
        assert_eq!(case.task(tag, AccessKind::Read, 1), Taken::Here);
    }
    assert!(case.told.0.is_empty() && case.contraction.is_parallel());
    case.contraction.expand(&mut case.told).unwrap();
    assert_eq!(case.told.0, ["Frame", "Write1", "run 7: Read1"]);
    assert_eq!((case.contraction.contracted(), case.contraction.is_pending()), (4, false));
}

#[test]
fn a_conflict_is_told_before_it_comes() {
    let mut case = Case::new(MOST);
    assert_eq!(case.task(1, AccessKind::Read, 5), Taken::Here);
    assert_eq!(case.task(2, AccessKind::Write, 5), Taken::Pass);
    assert_eq!(case.told.0, ["Frame", "run 1: Read5", "start 2", "Write5"]);
}

#[test]
fn what_is_joined_conflicts_no_more() {
    let mut case = Case::new(MOST);
    assert_eq!(case.task(1, AccessKind::Write, 5), Taken::Here);
    assert_eq!(case.contraction.sync(&mut case.told), Ok(Taken::Here));
    assert!(!case.contraction.is_parallel());
    case.touch(AccessKind::Write, 5);
    assert_eq!(case.contraction.close(Opened::Frame, &mut case.told), Ok(Taken::Here));
    assert!(case.told.0.is_empty());
}

#[test]
fn a_sync_in_a_finish_is_not_taken() {
    let mut case = Case::new(MOST);
    assert_eq!(case.task(1, AccessKind::Write, 5), Taken::Here);
    case.contraction.open(Opened::Finish);
    assert_eq!(case.contraction.sync(&mut case.told), Ok(Taken::Pass));
    assert_eq!(case.told.0, ["Frame", "run 1: Write5", "Finish"]);
}

#[test]
fn what_has_no_room_is_told() {
    let mut case = Case::new(2);
    (1..3).for_each(|line| case.touch(AccessKind::Read, line));
    assert!(case.told.0.is_empty());
    case.touch(AccessKind::Read, 3);
    assert_eq!(case.told.0, ["Frame", "Read1 Read2"]);
    case.contraction.expand(&mut case.told).unwrap();
    assert_eq!(case.told.0, ["Frame", "Read1 Read2", "Read3"]);
}

#[test]
fn the_stack_of_a_task_is_gone_with_it() {
    let mut case = Case::new(MOST);
    let start = |case: &mut Case, tag, stack| {
        assert_eq!(case.contraction.spawn(TaskKind::Spawn, tag, stack, &mut case.told), Ok(Taken::Here));
    };
    for tag in [1, 3] {
        start(&mut case, tag, 0..640);
        // Another task, on the same stack, writes what is its parent's.
        start(&mut case, tag + 1, 0..576);
        case.touch(AccessKind::Write, 9);
        case.touch(AccessKind::Write, 8);
        assert_eq!(case.contraction.task_end(&mut case.told), Ok(Taken::Here));
        assert_eq!(case.contraction.sync(&mut case.told), Ok(Taken::Here));
        assert_eq!(case.contraction.task_end(&mut case.told), Ok(Taken::Here));
    }
    assert!(case.told.0.is_empty());
    start(&mut case, 5, 0..640);
    case.touch(AccessKind::Write, 8);
    start(&mut case, 6, 0..512);
    case.touch(AccessKind::Read, 9);
    case.contraction.expand(&mut case.told).unwrap();
    assert_eq!(case.told.0, ["Frame", "start 5", "Write8", "start 6", "Read9"]);
}

/// A task on a stack of ten lines.
fn start_on_stack(case: &mut Case, tag: u32) {
    let taken = case.contraction.spawn(TaskKind::Spawn, tag, 0..640, &mut case.told);
    assert_eq!(taken, Ok(Taken::Here));
}

#[test]
fn what_a_task_does_to_its_own_stack_is_told_with_it() {
    let mut case = Case::new(MOST);
    start_on_stack(&mut case, 1);
    case.touch(AccessKind::Read, 8);
    case.contraction.open(Opened::Frame);
    case.touch(AccessKind::Write, 8);
    case.touch(AccessKind::Write, 8);
    // The task of another begins on the rest of its stack, and takes nothing with it but its own.
    assert_eq!(case.contraction.spawn(TaskKind::Spawn, 2, 0..512, &mut case.told), Ok(Taken::Here));
    case.touch(AccessKind::Write, 7);
    assert_eq!(case.contraction.task_end(&mut case.told), Ok(Taken::Here));
    assert_eq!(case.contraction.touched(7), [0; 2]);
    assert_eq!(case.contraction.touched(8), [1, 0]);
    assert!(case.contraction.touches(&(8..9)) && !case.contraction.touches(&(7..8)));
    case.contraction.expand(&mut case.told).unwrap();
    assert_eq!(case.told.0, ["Frame", "start 1", "Read8", "Frame", "Write8"]);
    assert_eq!(case.contraction.touched(8), [0; 2]);
}

#[test]
fn a_task_and_what_it_has_not_joined_conflict_on_its_stack() {
    for joined in [false, true] {
        let mut case = Case::new(MOST);
        start_on_stack(&mut case, 1);
        case.contraction.open(Opened::Frame);
        assert_eq!(case.contraction.spawn(TaskKind::Spawn, 2, 0..512, &mut case.told), Ok(Taken::Here));
        case.touch(AccessKind::Write, 9);
        assert_eq!(case.contraction.task_end(&mut case.told), Ok(Taken::Here));
        assert!(!case.contraction.has_stack_alone());
        if joined {
            assert_eq!(case.contraction.sync(&mut case.told), Ok(Taken::Here));
            assert_eq!(case.contraction.close(Opened::Frame, &mut case.told), Ok(Taken::Here));
        }
        assert_eq!(case.contraction.has_stack_alone(), joined);
        case.touch(AccessKind::Read, 9);
        let told: &[&str] =
            if joined { &[] } else { &["Frame", "start 1", "Frame", "run 2: Write9", "Read9"] };
        assert_eq!(case.told.0, told);
    }
}

#[test]
fn a_line_may_be_of_two_stacks() {
    let mut case = Case::new(MOST);
    for (tag, stack) in [(1, 0..600), (2, 0..580)] {
        let taken = case.contraction.spawn(TaskKind::Spawn, tag, stack, &mut case.told);
        assert_eq!(taken, Ok(Taken::Here));
    }
    let owners: Vec<_> = owners(&case.contraction.levels[..=case.contraction.top], 9)
        .map(|(owner, bytes)| (owner.level, bytes))
        .collect();
    assert_eq!(owners, [(3, 0xf), (2, 0xff_fff0), (0, !0xff_ffff)]);
}

#[test]
fn atomic_accesses_are_contracted_once_they_have_met() {
    for met in [false, true] {
        let mut case = Case::new(MOST);
        case.told.1 = met;
        assert_eq!(case.atomic_task(1, AccessKind::Write, 5, SiteId::FIRST), Taken::Here);
        let second = case.atomic_task(2, AccessKind::Write, 5, SiteId::FIRST);
        assert_eq!(second, if met { Taken::Here } else { Taken::Pass });
        case.contraction.expand(&mut case.told).unwrap();
        let told: &[&str] = match met {
            false => &["Frame", "run 1: Write5", "start 2", "Write5"],
            true => &["Frame", "run 1: Write5"],
        };
        assert_eq!(case.told.0, told);
    }
}

#[test]
fn each_place_of_an_atomic_access_is_told() {
    let mut case = Case::new(MOST);
    let other = SiteId::new(7).unwrap();
    for (tag, site) in [(1, SiteId::FIRST), (2, other), (3, other)] {
        assert_eq!(case.atomic_task(tag, AccessKind::Read, 5, site), Taken::Here);
    }
    case.contraction.expand(&mut case.told).unwrap();
    assert_eq!(case.told.0, ["Frame", "run 1: Read5 Read5"]);
}

#[test]
fn an_atomic_access_conflicts_with_a_plain_one() {
    for atomic in [false, true] {
        let mut case = Case::new(MOST);
        case.told.1 = true;
        assert_eq!(case.contraction.spawn(TaskKind::Spawn, 1, 0..0, &mut case.told), Ok(Taken::Here));
        case.access(AccessKind::Write, 5, SiteId::FIRST, atomic);
        assert_eq!(case.contraction.task_end(&mut case.told), Ok(Taken::Here));
        case.access(AccessKind::Read, 5, SiteId::FIRST, !atomic);
        assert_eq!(case.told.0, ["Frame", "run 1: Write5", "Read5"]);
    }
}

/// Children that touch a line each, and are not waited for; the one who has them touches `line` first.
fn leave(case: &mut Case, tag: u32, line: u64) {
    assert_eq!(case.contraction.spawn(TaskKind::Child, tag, 0..0, &mut case.told), Ok(Taken::Here));
    case.touch(AccessKind::Write, line);
    for at in 1..3 {
        let spawned = case.contraction.spawn(TaskKind::Child, tag + at, 0..0, &mut case.told);
        assert_eq!(spawned, Ok(Taken::Here));
        case.touch(AccessKind::Write, line + u64::from(at));
        assert_eq!(case.contraction.task_end(&mut case.told), Ok(Taken::Here));
    }
    assert_eq!(case.contraction.task_end(&mut case.told), Ok(Taken::Here));
}

fn case_of_children() -> Case {
    Case { contraction: Contraction::new(MOST), told: Told::default() }
}

#[test]
fn a_sync_does_not_join_what_children_leave_behind() {
    let mut case = case_of_children();
    _ = case.contraction.spawn(TaskKind::Child, 1, 0..0, &mut case.told).unwrap();
    leave(&mut case, 10, 20);
    leave(&mut case, 30, 40);
    assert_eq!(case.contraction.sync(&mut case.told), Ok(Taken::Here));
    // The child was waited for, so this is in order.
    case.touch(AccessKind::Write, 20);
    assert!(case.told.0.is_empty() && case.contraction.is_parallel());
    // What it has left behind was not.
    case.touch(AccessKind::Read, 21);
    assert_eq!(
        case.told.0,
        ["start 1", "Write20 Write40", "run 10: , leaves Write21 Write22 Write41 Write42", "Read21"]
    );
}

#[test]
fn a_finish_joins_what_children_leave_behind() {
    let mut case = case_of_children();
    case.contraction.open(Opened::Finish);
    leave(&mut case, 10, 20);
    assert_eq!(case.contraction.close(Opened::Finish, &mut case.told), Ok(Taken::Here));
    assert!(!case.contraction.is_parallel());
    for line in 20..23 {
        case.touch(AccessKind::Write, line);
    }
    assert!(case.told.0.is_empty());
}

#[test]
fn no_reader_stands_for_another_that_outlives_a_sync() {
    let mut case = case_of_children();
    _ = case.contraction.spawn(TaskKind::Child, 1, 0..0, &mut case.told).unwrap();
    _ = case.contraction.spawn(TaskKind::Child, 2, 0..0, &mut case.told).unwrap();
    case.touch(AccessKind::Read, 7);
    _ = case.contraction.task_end(&mut case.told).unwrap();
    _ = case.contraction.spawn(TaskKind::Child, 3, 0..0, &mut case.told).unwrap();
    _ = case.contraction.spawn(TaskKind::Child, 4, 0..0, &mut case.told).unwrap();
    case.touch(AccessKind::Read, 7);
    _ = case.contraction.task_end(&mut case.told).unwrap();
    _ = case.contraction.task_end(&mut case.told).unwrap();
    _ = case.contraction.sync(&mut case.told).unwrap();
    case.touch(AccessKind::Write, 7);
    assert_eq!(case.told.0, ["start 1", "Read7", "run 3: , leaves Read7", "Write7"]);
}

#[test]
fn memory_that_came_and_went_is_not_told() {
    let mut case = case_of_children();
    _ = case.contraction.spawn(TaskKind::Child, 1, 0..0, &mut case.told).unwrap();
    let epoch = case.contraction.epoch();
    _ = case.contraction.spawn(TaskKind::Child, 2, 0..0, &mut case.told).unwrap();
    case.touch(AccessKind::Write, 7);
    _ = case.contraction.task_end(&mut case.told).unwrap();
    assert_eq!(epoch, case.contraction.epoch());
    case.contraction.forget_bytes(Bytes::new(7 * LINE_BYTES, 8).unwrap());
    case.touch(AccessKind::Write, 7);
    assert!(case.told.0.is_empty());
    case.contraction.expand(&mut case.told).unwrap();
    assert_eq!(case.told.0, ["start 1", "Write7"]);
    assert_ne!(epoch, case.contraction.epoch());
}

#[test]
fn what_a_strand_writes_atomically_it_has_not_only_read() {
    let mut case = Case::new(MOST);
    assert_eq!(case.contraction.spawn(TaskKind::Spawn, 1, 0..0, &mut case.told), Ok(Taken::Here));
    let mut set = SmallSet::default();
    for (line, kind, atomic) in
        [(5, AccessKind::Read, false), (6, AccessKind::Read, false), (6, AccessKind::Write, true)]
    {
        set.add_run(&Run { at: Location { line, mask: 1 }, kind, site: SiteId::FIRST, atomic });
    }
    case.contraction.own(&set, &mut case.told).unwrap();
    assert_eq!(case.told.2, [5]);
}
