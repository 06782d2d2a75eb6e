//! Releases that come in parts: whoever acquires an object acquires all its parts, and now and then one is passed on to another.
//!
//! That is what the native runtime does so that a fence acquires what was loaded before it. It must make no difference to any race.

use std::collections::{BTreeMap, BTreeSet};

use dagsan_core::graph::GraphBuilder;
use dagsan_core::oracle::Oracle;
use dagsan_core::order::{ENGINES, Isolation, Options};
use dagsan_core::{Bytes, Construct, Consumer, Detector, Error, Event, Run, Step, Strand, Stream, SyncId};
use dagsan_fuzz::{Class, Schedule, Size, generate, run_in};

/// Tells a stream of what it hears, with releases in parts.
struct InParts<C: Consumer> {
    stream: Stream<C>,
    rng: fastrand::Rng,
    /// The latest part of an object, if something was released there.
    parts: BTreeMap<SyncId, SyncId>,
    passes: u64,
}

impl<C: Consumer> InParts<C> {
    fn new(consumer: C, seed: u64) -> InParts<C> {
        let rng = fastrand::Rng::with_seed(seed);
        InParts { stream: Stream::new(consumer), rng, parts: BTreeMap::new(), passes: 0 }
    }
}

/// The first part of an object, and another one. Numbers are used again.
fn halves(sync: SyncId) -> [SyncId; 2] {
    [SyncId(2 * sync.0), SyncId(2 * sync.0 + 1)]
}

impl<C: Consumer> Consumer for InParts<C> {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.stream.runs(strand.task, runs)
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        match step.event {
            Event::Release { task, sync, keep: true } => {
                let [to, from] = halves(sync);
                let keep = self.parts.insert(sync, from).is_some();
                self.stream.event(Event::Release { task, sync: from, keep })?;
                if self.rng.bool() {
                    self.parts.remove(&sync);
                    self.passes += 1;
                    self.stream.event(Event::Pass { task, from, to, keep: true })?;
                }
                Ok(())
            }
            Event::Release { task, sync, keep: false } => {
                let [to, from] = halves(sync);
                self.parts.remove(&sync);
                if self.rng.bool() {
                    return self.stream.event(Event::Release { task, sync: to, keep: false });
                }
                self.passes += 1;
                self.stream.event(Event::Release { task, sync: from, keep: false })?;
                self.stream.event(Event::Pass { task, from, to, keep: false })
            }
            Event::Acquire { task, sync } => {
                let part = self.parts.get(&sync).copied();
                [halves(sync)[0]]
                    .into_iter()
                    .chain(part)
                    .try_for_each(|sync| self.stream.event(Event::Acquire { task, sync }))
            }
            other => self.stream.event(other),
        }
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.stream.erase(bytes)
    }
}

#[test]
fn parts_make_no_difference() {
    let engines = ENGINES.iter().filter(|engine| {
        [Construct::Atomic, Construct::GeneralFuture].iter().all(|&construct| engine.supports(construct))
    });
    let (mut racy, mut passes, mut judged) = (0, 0, BTreeSet::new());
    for engine in engines {
        for seed in 0..1_000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let size = Size::pick(&mut rng);
            let program = generate(Class::Atomics, &mut rng, size);
            let schedule = if seed % 2 == 0 { Schedule::DepthFirst } else { Schedule::Interleaved(seed) };
            if engine.depth_first && seed % 2 == 1 {
                continue;
            }
            let mut stream = Stream::new(GraphBuilder::new());
            run_in(&program, schedule, &mut stream).unwrap();
            let expected = Oracle::new(&stream.into_consumer().into_graph(), Isolation::Ordered).racy_bytes();
            let mut stream = Stream::new(InParts::new(Detector::new(engine, Options::default()), seed));
            run_in(&program, schedule, &mut stream).unwrap();
            let parts = stream.into_consumer();
            passes += parts.passes;
            let mut detector = parts.stream.into_consumer();
            detector.finish().unwrap();
            let found: BTreeSet<u64> =
                detector.races().iter().flat_map(|race| race.location.addresses()).collect();
            assert_eq!(found, expected, "{}, seed {seed}: {program}", engine.name);
            racy += usize::from(!expected.is_empty());
        }
        judged.insert(engine.name);
    }
    assert!(judged.contains("dag") && judged.contains("vector-clock"), "{judged:?}");
    assert!(racy > 300 && passes > 1_000, "{racy} {passes}");
}
