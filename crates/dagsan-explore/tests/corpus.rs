//! The corpus, all schedules: with and without reduction.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dagsan_core::order;
use dagsan_explore::{Exploration, Limits, Reduction, explore};
use dagsan_lang::{CompileOptions, End, Program};

fn explored(program: &Program, reduction: Reduction) -> (BTreeSet<String>, Exploration) {
    let stop = AtomicBool::new(false);
    let limits = Limits {
        run: dagsan_lang::Limits::default(),
        schedules: 100_000,
        time: Duration::from_secs(60),
        states: 1 << 22,
        stop: &stop,
        threads: NonZero::new(1).unwrap(),
    };
    let mut found = BTreeSet::new();
    let exploration = explore(program, order::default_engine(), reduction, &limits, &mut |seen| {
        for race in seen.detector.races() {
            found.extend(seen.run.location_names(race.location));
        }
        match &seen.run.end {
            End::Deadlock(_) => _ = found.insert("deadlock".to_owned()),
            End::Failed(failure) => _ = found.insert(format!("error {}", failure.message)),
            _ => {}
        }
    });
    (found, exploration.unwrap())
}

#[test]
fn reduction_finds_what_enumeration_finds() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "task") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let Ok(program) = Program::compile(&source, &CompileOptions::default()) else { continue };
        if !program.has_choices() {
            continue;
        }
        let (plain, all) = explored(&program, Reduction::None);
        let (reduced, some) = explored(&program, Reduction::PartialOrder);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        println!(
            "{name}: {} {:?} -> {} +{} states {} {}",
            all.schedules, all.stopped, some.schedules, some.redundant, some.states,
            source.lines().next().unwrap()
        );
        if plain != reduced {
            println!("   DIFFERENT {plain:?} {reduced:?}");
        }
    }
}
