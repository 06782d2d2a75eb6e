//! Which sections are found to depend on which, and what is remembered.

use super::*;
use crate::bytes::Location;
use crate::ids::SiteId;

const LOCK: LockId = LockId(4);

/// Task `n` in section `n` of the lock.
fn inside(number: u32, mode: LockMode) -> [Inside; 1] {
    [Inside { lock: LOCK, mode, section: SectionId(number), own: true }]
}

fn run(byte: u64, kind: AccessKind, atomic: bool) -> [Run; 1] {
    let at = Location { line: byte / 64, mask: 1 << (byte % 64) };
    [Run { at, kind, site: SiteId::new(0).unwrap(), atomic }]
}

/// A whole section of task `n`; how many it depends on that were not known to it.
fn section(sections: &mut Sections, number: u32, mode: LockMode, runs: &[[Run; 1]]) -> usize {
    let mut acquire = Vec::new();
    for run in runs {
        sections.touch(TaskId(number), &inside(number, mode), run, &mut acquire);
    }
    sections.end(SectionId(number), false);
    acquire.len()
}

/// How many touches of a line are remembered.
fn touches(sections: &mut Sections, line: u64) -> usize {
    sections.lines.find(line, LOCK).map_or(0, |line| line.len())
}

const EXCLUSIVE: LockMode = LockMode::Exclusive;
const READ: AccessKind = AccessKind::Read;
const WRITE: AccessKind = AccessKind::Write;

#[test]
fn sections_depend_on_those_that_wrote_what_they_touch_or_touched_what_they_write() {
    let mut sections = Sections::default();
    assert_eq!(section(&mut sections, 1, EXCLUSIVE, &[run(5, WRITE, false), run(9, READ, false)]), 0);
    assert_eq!(section(&mut sections, 2, EXCLUSIVE, &[run(9, READ, false), run(6, WRITE, false)]), 0);
    assert_eq!(section(&mut sections, 3, EXCLUSIVE, &[run(5, READ, false)]), 1);
    assert_eq!(section(&mut sections, 4, EXCLUSIVE, &[run(9, WRITE, false)]), 2);
    assert_eq!(section(&mut sections, 5, EXCLUSIVE, &[run(5, WRITE, false)]), 2, "1 and 3");
    assert_eq!(section(&mut sections, 6, EXCLUSIVE, &[run(5, READ, false)]), 1, "5");
}

#[test]
fn readers_and_atomic_updates_have_no_order() {
    let mut sections = Sections::default();
    section(&mut sections, 1, LockMode::Shared, &[run(5, WRITE, false), run(7, WRITE, true)]);
    assert_eq!(section(&mut sections, 2, LockMode::Shared, &[run(5, WRITE, false)]), 0);
    assert_eq!(section(&mut sections, 3, EXCLUSIVE, &[run(7, WRITE, true)]), 0);
    assert_eq!(section(&mut sections, 4, EXCLUSIVE, &[run(7, READ, true)]), 2);
    assert_eq!(section(&mut sections, 5, EXCLUSIVE, &[run(5, READ, false)]), 2);
}

#[test]
fn what_is_over_is_not_remembered() {
    let mut sections = Sections::default();
    for number in 1..1000 {
        let later = usize::from(number > 1);
        assert_eq!(section(&mut sections, number, EXCLUSIVE, &[run(5, WRITE, false)]), later);
        assert!(sections.known.len() <= 2 && touches(&mut sections, 0) <= 2);
    }
    assert_eq!(sections.known.room(), 3, "numbers are used again");
    // A section writes one byte and reads another, as one does that looks whether a mutex is poisoned.
    for number in 1000..2000 {
        section(&mut sections, number, EXCLUSIVE, &[run(130, WRITE, false), run(131, READ, true)]);
        assert!(touches(&mut sections, 2) <= 2 * FEW);
    }
    for number in 2000..3000 {
        let mut acquire = Vec::new();
        let inside = inside(number, EXCLUSIVE);
        sections.touch(TaskId(7), &inside, &run(70, READ, false), &mut acquire);
        sections.end(SectionId(number), false);
        assert!(touches(&mut sections, 1) <= 2, "of a task that reads again and again, the last");
    }
    sections.erase(Bytes::new(0, 1 << 40).unwrap());
    assert!(sections.known.len() == 0 && sections.lines.len() == 0);
    assert_eq!(section(&mut sections, 5000, EXCLUSIVE, &[run(5, READ, false)]), 0);
    sections.erase(Bytes::new(5, 1).unwrap());
    assert!(sections.known.len() == 0);
}

/// Task `n` in section `n` of `locks` locks at once.
fn joint(sections: &mut Sections, number: u32, locks: u32, runs: &[[Run; 1]]) -> usize {
    let section = |lock| SectionId(number * 100 + lock);
    let inside: Vec<Inside> = (0..locks)
        .map(|lock| Inside { lock: LockId(lock), mode: EXCLUSIVE, section: section(lock), own: true })
        .collect();
    let mut acquire = Vec::new();
    runs.iter().for_each(|run| sections.touch(TaskId(number), &inside, run, &mut acquire));
    (0..locks).for_each(|lock| _ = sections.end(section(lock), false));
    acquire.len()
}

#[test]
fn sections_of_many_locks_depend_on_those_of_few_and_these_on_them() {
    let mut sections = Sections::with_apart(2);
    assert_eq!(section(&mut sections, 1, EXCLUSIVE, &[run(5, WRITE, false)]), 0);
    assert_eq!(joint(&mut sections, 2, 4, &[run(5, READ, false)]), 0, "it is under other locks");
    assert_eq!(joint(&mut sections, 3, 5, &[run(5, READ, false), run(6, WRITE, false)]), 1, "1");
    assert_eq!(joint(&mut sections, 4, 3, &[run(5, WRITE, false)]), 6, "three of 2 and of 3");
    assert_eq!(section(&mut sections, 5, EXCLUSIVE, &[run(6, READ, false)]), 1, "3");
}

#[test]
fn sections_of_many_locks_are_remembered_once_for_a_line_and_let_go() {
    let mut sections = Sections::with_apart(2);
    for number in 1..1000 {
        let written = [run(5, WRITE, false), run(9, READ, true)];
        assert_eq!(joint(&mut sections, number, 40, &written), if number > 1 { 40 } else { 0 });
        assert!(sections.known.len() <= 120 && sections.lines.len() == 0);
    }
    let mut acquire = Vec::new();
    let all: Vec<Inside> = (0..90)
        .map(|lock| Inside { lock: LockId(lock), mode: EXCLUSIVE, section: SectionId(1 + lock), own: true })
        .collect();
    // As one lock after the other is taken, and given back.
    for held in (3..90).map(|end| &all[..end]).chain((0..87).map(|begin| &all[begin..])) {
        sections.touch(TaskId(7), held, &run(70, WRITE, false), &mut acquire);
        assert!(sections.joints.touches(1) == 1, "{}", held.len());
    }
    (0..90).for_each(|lock| _ = sections.end(SectionId(1 + lock), false));
    sections.erase(Bytes::new(0, 1 << 40).unwrap());
    assert!(sections.known.len() == 0 && sections.joints.is_empty());
}

#[test]
fn a_section_that_ends_before_its_tasks_do_stands_for_no_other() {
    for (apart, early) in [(0, false), (0, true), (1, false), (1, true)] {
        let mut sections = Sections::with_apart(apart);
        let mut acquire = Vec::new();
        // Task 1 holds the lock, and a task under it has taken it as well in between.
        sections.touch(TaskId(1), &inside(1, EXCLUSIVE), &run(5, WRITE, false), &mut acquire);
        section(&mut sections, 2, EXCLUSIVE, &[run(5, WRITE, false)]);
        // Another one under it follows that.
        let under = [Inside { own: false, ..inside(1, EXCLUSIVE)[0] }];
        sections.touch(TaskId(3), &under, &run(5, WRITE, false), &mut acquire);
        assert_eq!(acquire.len(), 1);
        sections.end(SectionId(1), early);
        let found = section(&mut sections, 4, EXCLUSIVE, &[run(5, READ, false)]);
        assert_eq!(found, if early { 2 } else { 1 }, "{apart}");
    }
}
