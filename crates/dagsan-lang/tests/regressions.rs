//! Programs that were once judged wrongly, or would be by a small slip that nothing else notices; with every engine and
//! with every set of eliminations.

mod support;

use dagsan_core::order::{self, ENGINES};
use dagsan_lang::{Eliminations, End};
use support::{all_sets, check, describe, may_refuse, none_of, regressions};

#[test]
fn every_engine_judges_them_rightly() {
    let mut failures = Vec::new();
    for case in regressions() {
        for engine in ENGINES {
            let found = check(&case.source, engine, Eliminations::all());
            match &found {
                Ok(checked) if matches!(&checked.end, End::Refused(error) if may_refuse(engine, error)) => {}
                _ => failures.extend(
                    case.expected()
                        .compare(&found)
                        .err()
                        .map(|why| format!("{} with {}: {why}", case.name, engine.name)),
                ),
            }
        }
    }
    none_of(&failures);
}

#[test]
fn eliminations_change_nothing() {
    let mut failures = Vec::new();
    for case in regressions() {
        for set in all_sets() {
            let found = check(&case.source, order::default_engine(), set);
            failures.extend(
                case.expected()
                    .compare(&found)
                    .err()
                    .map(|why| format!("{} with {}: {why}", case.name, describe(set))),
            );
        }
    }
    none_of(&failures);
}
