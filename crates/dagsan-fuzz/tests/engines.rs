//! Every engine against the oracle: the kept counterexamples, and a fixed slice of the fuzzer.

use std::path::Path;

use dagsan_core::order::{ENGINES, EXPLORER, Engine, Isolation, Options, default_engine};
use dagsan_core::{Detector, Recording, Stream};
use dagsan_fuzz::{Class, Program, Schedule, Size, generate, judge, judge_in, misordered, run};

fn engines() -> Vec<&'static Engine> {
    ENGINES.iter().chain([&EXPLORER]).collect()
}

fn slice(class: Class, programs: u64) -> impl Iterator<Item = Program> {
    (0..programs).map(move |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let size = Size::pick(&mut rng);
        generate(class, &mut rng, size)
    })
}

#[test]
fn kept_counterexamples() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut count = 0;
    // Those that were found in native programs are programs like others.
    let directories = [directory.join("native"), directory.join("threads"), directory];
    let entries = directories.into_iter().flat_map(|directory| std::fs::read_dir(directory).unwrap());
    for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let program = Program::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let interleaved = (0..20).map(Schedule::Interleaved);
        for schedule in interleaved.chain([Schedule::DepthFirst]) {
            if let Err(disagreement) = judge_in(&program, schedule, &engines(), None) {
                panic!("{}, {schedule:?}: {disagreement}", path.display());
            }
        }
        count += 1;
    }
    assert!(count > 0, "the counterexamples are gone");
}

#[test]
fn a_slice_of_the_fuzzer() {
    for class in Class::ALL {
        for program in slice(class, 1_000) {
            if let Err(disagreement) = judge(&program, &engines(), Some(class)) {
                panic!("{class}: {disagreement}\n{program}");
            }
        }
    }
}

/// The same in other orders of delivery, isolated sections in other orders too.
#[test]
fn a_slice_of_the_fuzzer_interleaved() {
    for class in Class::ALL {
        for (seed, program) in (0..).zip(slice(class, 1_000)) {
            if let Err(disagreement) =
                judge_in(&program, Schedule::Interleaved(seed), &engines(), Some(class))
            {
                panic!("{class}, seed {seed}: {disagreement}\n{program}");
            }
        }
    }
}

/// Not only where it shows as a race: every order engine orders every two strands right.
#[test]
fn every_two_strands() {
    let graph_engines: Vec<&str> =
        ENGINES.iter().filter(|engine| engine.order(Options::default()).is_none()).map(|e| e.name).collect();
    assert_eq!(graph_engines, ["cg", "cg-otf", "zipper"], "these answer no questions about order");
    for class in Class::ALL {
        for engine in ENGINES {
            let supported = class.constructs().iter().all(|&construct| engine.supports(construct));
            if !supported {
                continue;
            }
            for program in slice(class, 300) {
                let Some(mut order) = engine.order(Options::default()) else { break };
                let wrong = misordered(&program, &mut *order, engine.isolation).unwrap();
                assert_eq!(wrong, [], "{} on {class}:\n{program}", engine.name);
            }
        }
    }
}

/// The four orders of DRDP's search differ in cost, not in answers.
#[test]
fn the_searches_of_drdp() {
    use dagsan_core::order::drdp::Drdp;
    use dagsan_core::order::{JoinOrder::*, Search::*};
    for search in [BreadthFirst, DepthFirst] {
        for joins in [BackToFront, FrontToBack] {
            for program in slice(Class::Promises, 100) {
                let mut drdp = Drdp::new(Options { search, joins, ..Options::default() });
                let wrong = misordered(&program, &mut drdp, Isolation::MutualExclusion).unwrap();
                assert_eq!(wrong, [], "{program}");
            }
        }
    }
}

/// Graph engines find nothing more when asked again, and take nothing more.
#[test]
fn the_end() {
    for program in slice(Class::Isolated, 100) {
        for engine in ENGINES {
            let mut stream = Stream::new(Detector::new(engine, Options::default()));
            if run(&program, &mut stream).is_err() {
                continue;
            }
            let mut detector = stream.into_consumer();
            detector.finish().unwrap();
            let (races, stats) = (detector.races().to_vec(), detector.stats());
            detector.finish().unwrap();
            assert_eq!((detector.races(), detector.stats()), (&races[..], stats), "{}", engine.name);
            let erased = dagsan_core::Consumer::erase(&mut detector, dagsan_core::Bytes::new(0, 1).unwrap());
            assert_eq!(erased, Err(dagsan_core::Error::Finished));
        }
    }
}

/// A replayed recording is the run itself: the same stream, and so the same races.
#[test]
fn recordings() {
    let detector = || Detector::new(default_engine(), Options::default());
    for program in slice(Class::All, 300) {
        let mut live = Stream::new((Recording::new(), detector()));
        run(&program, &mut live).unwrap();
        let (recording, live) = live.into_consumer();
        let mut replayed = Stream::new((Recording::new(), detector()));
        recording.replay(&mut replayed).unwrap();
        let (again, replayed) = replayed.into_consumer();
        assert_eq!(again, recording, "{program}");
        assert_eq!(replayed.races(), live.races(), "{program}");
    }
}
