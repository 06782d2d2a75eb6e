//! Every engine against the oracle: the kept counterexamples, and a fixed slice of the fuzzer.

use std::path::Path;

use dagsan_core::order::{ENGINES, Engine, Isolation, Options, default_engine};
use dagsan_core::{Detector, Recording, Stream};
use dagsan_fuzz::{Class, Program, Size, generate, judge, misordered, run};

fn engines() -> Vec<&'static Engine> {
    ENGINES.iter().collect()
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
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let program = Program::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if let Err(disagreement) = judge(&program, &engines(), None) {
            panic!("{}: {disagreement}", path.display());
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

/// Not only where it shows as a race: every engine orders every two strands right.
#[test]
fn every_two_strands() {
    for class in Class::ALL {
        for engine in ENGINES {
            let supported = class.constructs().iter().all(|&construct| engine.supports(construct));
            if !supported {
                continue;
            }
            for program in slice(class, 300) {
                let mut order = engine.build(Options::default());
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
                let mut drdp = Drdp::new(Options { search, joins });
                let wrong = misordered(&program, &mut drdp, Isolation::MutualExclusion).unwrap();
                assert_eq!(wrong, [], "{program}");
            }
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
