//! Zipper as published gets programs wrong that `zipper` gets right: the counterexamples of the engine's
//! documentation.

mod listings;

use dagsan_core::order;
use dagsan_fuzz::{Program, judge};
use listings::{Published, Reading};

const TEXT: Reading =
    Reading { sections_of_the_bag: true, smaller_on_the_way_up: true, inner_branches: false };

/// The program has a race or not, as `racy` says; the listings, read as `wrong`, say the opposite, and read as
/// `right` agree. The engine agrees with the oracle.
fn check(program: &str, racy: bool, wrong: Reading, right: Option<Reading>) {
    let program = Program::parse(program).unwrap();
    let zipper = order::find("zipper").unwrap();
    let judgement = judge(&program, &[zipper], None).unwrap_or_else(|d| panic!("{d}"));
    assert!(judgement.verdicts[0].races.is_ok());
    assert_eq!(!judgement.racy_bytes.is_empty(), racy);
    assert_eq!(Published::race(&program, wrong), !racy, "the listings get it right");
    assert!(
        right.is_none_or(|right| Published::race(&program, right) == racy),
        "there is more wrong with them"
    );
}

#[test]
fn sections_of_the_own_branch() {
    let program = include_str!("../../regressions/zipper_own_branch.prog");
    check(program, true, Reading { sections_of_the_bag: false, ..TEXT }, Some(TEXT));
}

#[test]
fn the_slider_on_the_way_up() {
    let program = include_str!("../../regressions/zipper_way_up.prog");
    check(program, true, Reading { smaller_on_the_way_up: false, ..TEXT }, Some(TEXT));
}

#[test]
fn branches_inside_branches() {
    let program = include_str!("../../regressions/zipper_inner_branch.prog");
    check(program, true, TEXT, Some(Reading { inner_branches: true, ..TEXT }));
}

#[test]
fn sections_outside_of_the_branch() {
    let program = include_str!("../../regressions/zipper_outer_section.prog");
    check(program, false, Reading { inner_branches: true, ..TEXT }, None);
}

/// What the listings are made for, they get right: the paper's figure 3 has one async and two branches.
#[test]
fn two_branches() {
    let order = |program: &str| Published::race(&Program::parse(program).unwrap(), TEXT);
    assert!(order("async { w 0x0+1 } w 0x0+1"));
    assert!(!order("finish { async { w 0x0+1 } } w 0x0+1"));
    assert!(!order("async { w 0x0+1; isolated { } } isolated { } w 0x0+1"));
    assert!(order("async { isolated { } w 0x0+1 } isolated { } w 0x0+1"));
}
