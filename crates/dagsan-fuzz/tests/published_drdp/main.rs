//! DRDP as published gets programs wrong that `drdp` gets right: the counterexamples of the engine's
//! documentation, each the smallest that the fuzzer found.

mod figures;

use dagsan_core::order::drdp::Drdp;
use dagsan_core::order::{Isolation, Options};
use dagsan_fuzz::{Program, misordered};
use figures::{Published, Reading};

/// The figures, read as `reading`, say `says` of some strands of the program, wrongly; `drdp` is right.
fn check(program: &str, reading: Reading, says: bool) {
    let program = Program::parse(program).unwrap();
    let wrong = misordered(&program, &mut Published::new(reading), Isolation::Ordered).unwrap();
    assert!(!wrong.is_empty(), "the figures get it right");
    assert!(wrong.iter().all(|pair| pair.precedes == says), "{wrong:?}");
    let drdp = misordered(&program, &mut Drdp::new(Options::default()), Isolation::MutualExclusion);
    assert_eq!(drdp.unwrap(), []);
}

#[test]
fn an_active_task_need_not_precede() {
    let reading = Reading { active_shortcut: true, merge_empty_tasks: false };
    check(include_str!("../../regressions/drdp_active_task.prog"), reading, true);
}

#[test]
fn merged_sets_leak_knowledge_backwards() {
    let reading = Reading { active_shortcut: false, merge_empty_tasks: true };
    check(include_str!("../../regressions/drdp_merged_knowledge.prog"), reading, true);
}

#[test]
fn merged_sets_lose_what_was_inherited() {
    let reading = Reading { active_shortcut: false, merge_empty_tasks: false };
    check(include_str!("../../regressions/drdp_lost_inheritance.prog"), reading, false);
}
