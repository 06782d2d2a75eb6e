//! Random programs, every engine against the oracle, on the graph of the same run.
//!
//! A program runs once; its stream is recorded, and replayed to the court of `dagsan-fuzz`, which judges every
//! engine on it as it does for its own programs.

mod support;

use dagsan_core::graph::GraphBuilder;
use dagsan_core::oracle::Oracle;
use dagsan_core::order::{ENGINES, EXPLORER, Engine, Isolation};
use dagsan_core::{Consumer, Error, Event, Recording, Step, Stream};
use dagsan_fuzz::Court;
use dagsan_fuzz::source::{MAX_SECTIONS, SourceClass, generate};
use dagsan_lang::{CompileOptions, Eliminations, Program};
use support::LIMITS;

/// Random programs of each class.
const PROGRAMS: u64 = 400;

/// Runs a program, and keeps what its consumer sees.
fn record(source: &str) -> Recording {
    let options = CompileOptions { eliminations: Eliminations::all(), checks: true, count: false };
    let program = Program::compile(source, &options).expect("generated programs compile");
    let mut recording = Recording::new();
    // However it ends, what came before is a stream.
    program.run(&LIMITS, &mut recording);
    recording
}

fn replay<C: Consumer>(recording: &Recording, consumer: C) -> Result<C, Error> {
    let mut stream = Stream::new(consumer);
    recording.replay(&mut stream)?;
    Ok(stream.into_consumer())
}

#[test]
fn every_engine_agrees_with_the_oracle() {
    let engines: Vec<&'static Engine> = ENGINES.iter().chain([&EXPLORER]).collect();
    // By engine: programs judged, and how many of them were racy.
    let mut tally = vec![(0, 0); engines.len()];
    for class in SourceClass::ALL {
        for seed in 0..PROGRAMS {
            let source = generate(seed, class);
            let court = replay(&record(&source), Court::new(&engines));
            match court.expect("a recorded stream can be replayed").judge() {
                Ok((_, verdicts)) => {
                    for (verdict, (judged, racy)) in verdicts.iter().zip(&mut tally) {
                        *judged += u64::from(verdict.races.is_ok());
                        *racy += u64::from(verdict.races.as_ref().is_ok_and(|races| !races.is_empty()));
                    }
                }
                Err(disagreement) => panic!("seed {seed} of class {class}: {disagreement}\n{source}"),
            }
        }
    }
    for (engine, (judged, racy)) in engines.iter().zip(tally) {
        assert!(
            judged > 20 && racy > 5,
            "`{}` judged only {judged} programs, {racy} of them racy",
            engine.name
        );
    }
}

/// Counts isolated sections.
#[derive(Default)]
struct Sections(u64);

impl Consumer for Sections {
    fn accesses(&mut self, _: &dagsan_core::Strand, _: &[dagsan_core::Run]) -> Result<(), Error> {
        Ok(())
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.0 += u64::from(matches!(step.event, Event::IsolatedBegin { .. }));
        Ok(())
    }
    fn erase(&mut self, _: dagsan_core::Bytes) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn sections_are_few_enough_to_try_all_orders_and_enough_to_matter() {
    let (mut several, mut readings_differ) = (0, 0);
    for seed in 0..PROGRAMS {
        let source = generate(seed, SourceClass::Isolated);
        let recording = record(&source);
        let sections = replay(&recording, Sections::default()).expect("a recorded stream can be replayed").0;
        assert!(sections <= MAX_SECTIONS, "seed {seed} has {sections} sections\n{source}");
        several += u64::from(sections > 1);
        let graph =
            replay(&recording, GraphBuilder::new()).expect("a recorded stream can be replayed").into_graph();
        let racy = |isolation| Oracle::new(&graph, isolation).racy_bytes();
        readings_differ += u64::from(racy(Isolation::Ordered) != racy(Isolation::MutualExclusion));
    }
    assert!(several > PROGRAMS / 2, "only {several} of {PROGRAMS} programs have several sections");
    assert!(
        readings_differ > PROGRAMS / 20,
        "the reading of isolated matters in {readings_differ} programs only"
    );
}
