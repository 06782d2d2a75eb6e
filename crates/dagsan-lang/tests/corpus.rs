//! The corpus, program by program, with every engine that supports it: one run, the serial depth-first one.

mod support;

use std::fs;

use dagsan_core::order::ENGINES;
use dagsan_lang::{Eliminations, End};
use support::{Case, Expected, check, corpus, corpus_directory, may_refuse, none_of};

/// Programs that show their races in other runs than the serial one, and why. One run shows some of them.
const OTHER_RUNS: &[(&str, &str)] = &[
    ("isolated_fails_first.task", "order of sections"),
    ("isolated_flag_inverted.task", "order of sections"),
    ("isolated_hidden_race.task", "order of sections"),
    ("isolated_last_writer.task", "order of sections"),
    ("isolated_maximum_read_before.task", "order of sections"),
    ("isolated_order_is_luck.task", "order of sections"),
    ("isolated_remembered.task", "order of sections"),
    ("isolated_third_order.task", "order of sections"),
    ("paper002_fig3_zipper.task", "order of sections"),
    ("paper003_fig3_6_ewait.task", "choice of ewait"),
    ("paper003_fig6_2_exclusion.task", "order of sections"),
    ("paper004_fig7_hidden_race.task", "order of sections"),
    ("region_ewait_first_wins.task", "choice of ewait"),
    ("region_ewait_one.task", "choice of ewait"),
];

fn needs_other_runs(name: &str) -> bool {
    OTHER_RUNS.iter().any(|&(program, _)| program == name)
}

/// What engines see otherwise than the first line says: (program, engine, expectation).
fn exceptions() -> Vec<(String, String, Expected)> {
    let text =
        fs::read_to_string(corpus_directory().join("exceptions.txt")).expect("exceptions.txt can be read");
    let mut exceptions = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let rule = line.split('#').next().unwrap_or_default();
        let mut words = rule.split_whitespace();
        let (Some(program), Some(engines)) = (words.next(), words.next()) else {
            panic!("`{line}` is incomplete")
        };
        let expected = words.collect::<Vec<_>>().join(" ");
        let expected = Expected::parse(&expected).unwrap_or_else(|| panic!("`{line}` is not understood"));
        exceptions.extend(
            engines.split(',').map(|engine| (program.to_owned(), engine.to_owned(), expected.clone())),
        );
    }
    exceptions
}

#[test]
fn every_engine_finds_what_is_expected() {
    let exceptions = exceptions();
    let expected = |case: &Case, engine: &str| {
        let exception = exceptions.iter().find(|(program, name, _)| *program == case.name && name == engine);
        exception.map_or_else(|| case.expected(), |(_, _, expected)| expected.clone())
    };
    let mut failures = Vec::new();
    let mut judged = 0;
    for case in corpus() {
        for engine in ENGINES {
            let found = check(&case.source, engine, Eliminations::all());
            let result = match &found {
                Ok(checked) if matches!(&checked.end, End::Refused(error) if may_refuse(engine, error)) => {
                    continue;
                }
                Ok(checked) if needs_other_runs(&case.name) => {
                    let (end, expected) = (&checked.end, case.expected().names());
                    let ended = matches!(end, End::Finished | End::Failed(_));
                    let fine = ended && checked.names.is_subset(&expected);
                    if fine { Ok(()) } else { Err(format!("found {}", checked.verdict())) }
                }
                _ => expected(&case, engine.name).compare(&found),
            };
            judged += 1;
            failures.extend(result.err().map(|why| format!("{} with {}: {why}", case.name, engine.name)));
        }
    }
    none_of(&failures);
    assert!(judged > 1_000, "only {judged} verdicts");
}

#[test]
fn programs_that_need_other_runs_exist() {
    let corpus = corpus();
    let missing = |&&(name, _): &&(&str, &str)| !corpus.iter().any(|case| case.name == name);
    assert_eq!(OTHER_RUNS.iter().find(missing), None);
}
