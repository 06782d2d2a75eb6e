//! What is told, and when.

use super::*;
use crate::access::{AccessKind, Run};
use crate::bytes::Location;
use crate::ids::SiteId;

/// What was told, a word each.
#[derive(Default)]
struct Told(Vec<String>);

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

    fn run(&mut self, _: TaskKind, tag: u32, set: &SmallSet) -> Result<(), Error> {
        self.0.push(format!("run {tag}: {}", Told::lines(set)));
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
        let mut set = SmallSet::default();
        let at = Location { line, mask: 1 };
        set.add_run(&Run { at, kind, site: SiteId::FIRST, atomic: false });
        self.contraction.own(&set, &mut self.told).unwrap();
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
