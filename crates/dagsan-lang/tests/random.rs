//! Random programs, every engine against the oracle, on the graph of the same run.
//!
//! A program runs once; its stream is recorded, and replayed for the graph and for every engine. The racy bytes of
//! an engine must be those of the oracle, which reads isolated sections as the engine does, and every
//! reported race must be one of the oracle's.

mod support;

use std::collections::BTreeSet;

use dagsan_core::graph::{Graph, GraphBuilder};
use dagsan_core::oracle::Oracle;
use dagsan_core::order::{ENGINES, Engine, Isolation};
use dagsan_core::{Consumer, Detector, Error, Event, Recording, Step, Stream};
use dagsan_fuzz::source::{MAX_SECTIONS, SourceClass, generate};
use dagsan_lang::{CompileOptions, Eliminations, Program};
use support::{LIMITS, may_refuse};

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

/// What an engine gets wrong, if anything.
fn judge(engine: &'static Engine, recording: &Recording, graph: &Graph) -> Result<Option<Judged>, String> {
    let mut detector = match replay(recording, Detector::new(engine, Default::default())) {
        Ok(detector) => detector,
        Err(error) if may_refuse(engine, &error) => return Ok(None),
        Err(error) => return Err(format!("refuses the program: {error}")),
    };
    detector.finish().map_err(|error| format!("cannot finish: {error}"))?;
    let oracle = Oracle::new(graph, engine.isolation);
    if let Some(race) = detector.races().iter().find(|race| !oracle.confirms(race)) {
        return Err(format!("reports a race that is none: {race:?}"));
    }
    let found: BTreeSet<u64> = detector.races().iter().flat_map(|race| race.location.addresses()).collect();
    let racy = oracle.racy_bytes();
    if found != racy {
        return Err(format!("finds {found:?}, the oracle {racy:?}"));
    }
    Ok(Some(Judged { racy: !racy.is_empty() }))
}

struct Judged {
    racy: bool,
}

#[test]
fn every_engine_agrees_with_the_oracle() {
    // By engine: programs judged, and how many of them were racy.
    let mut tally = vec![(0, 0); ENGINES.len()];
    for class in SourceClass::ALL {
        for seed in 0..PROGRAMS {
            let source = generate(seed, class);
            let recording = record(&source);
            let builder = replay(&recording, GraphBuilder::new()).expect("a recorded stream can be replayed");
            let graph = builder.into_graph();
            for (engine, (judged, racy)) in ENGINES.iter().zip(&mut tally) {
                match judge(engine, &recording, &graph) {
                    Ok(None) => {}
                    Ok(Some(verdict)) => {
                        *judged += 1;
                        *racy += u64::from(verdict.racy);
                    }
                    Err(why) => panic!("seed {seed} of class {class}: `{}` {why}\n{source}", engine.name),
                }
            }
        }
    }
    for (engine, (judged, racy)) in ENGINES.iter().zip(tally) {
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
    fn accesses(&mut self, _: &dagsan_core::Strand, _: &dagsan_core::AccessSet) -> Result<(), Error> {
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
