//! The judge: every engine against the oracle, on one run of a program.
//!
//! The program runs once; its stream goes to the graph builder and to a detector per engine: a [`Court`], which can
//! sit over any stream. Then each engine's racy bytes must be the oracle's, and every race it reports must be one of the oracle's. The
//! oracle reads isolated sections as the engine does. An engine may refuse a program, but only for
//! a construct that it does not claim to support.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use dagsan_core::contract::Side;
use dagsan_core::graph::{EdgeKind, GraphBuilder};
use dagsan_core::oracle::Oracle;
use dagsan_core::order::{self, Engine, Isolation, Options};
use dagsan_core::{
    Bytes, Construct, Consumer, Detector, Dropped, Error, Meeting, Race, Run, Step, Strand, Stream,
};

use crate::contracted::{Contracting, Meets};
use crate::repeated::Repeating;
use crate::sections::DependentSections;
use crate::shared::Sharing;
use crate::{Class, Outcome, Program, Schedule, Stmt, run_in};

/// Strands and tasks that are not needed any more are looked for all the time: what is wrongly forgotten shows here.
const RECENT: usize = 2;

/// Contractions and what is kept of shared reads have room for so many lines at most: that is little for some programs, and enough for others.
const ROOM: usize = 32;

/// What one engine said of a program.
pub struct Verdict {
    /// The engine.
    pub engine: &'static Engine,
    /// The races it found, or why it refused the program.
    pub races: Result<Vec<Race>, Error>,
}

/// What the oracle and all engines said of a program.
pub struct Judgement {
    /// How the run went.
    pub outcome: Outcome,
    /// The bytes that race, isolated sections read as ordered.
    pub racy_bytes: BTreeSet<u64>,
    /// A verdict per engine, in the order they were given.
    pub verdicts: Vec<Verdict>,
}

/// An engine and the oracle disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The engine's name.
    pub engine: &'static str,
    /// About what.
    pub about: About,
}

/// What an engine got wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// It refused a program that it claims to support, or for a reason that is none.
    Refused(Error),
    /// It did not report a race on this byte (and maybe others).
    Missed(u64),
    /// It reported a race on this byte (and maybe others), which has none.
    Invented(u64),
    /// It reported two accesses that do not race.
    NoRace(Race),
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine;
        match &self.about {
            About::Refused(error) => write!(f, "`{engine}` refuses the program: {error}"),
            About::Missed(address) => write!(f, "`{engine}` misses the race on byte {address:#x}"),
            About::Invented(address) => write!(f, "`{engine}` invents a race on byte {address:#x}"),
            About::NoRace(race) => write!(
                f,
                "`{engine}` reports a race that is none: {:?} at {} ({}, {}) and {:?} at {} ({}, {}) on {:?}",
                race.first.kind,
                race.first.site,
                race.first.strand,
                race.first.task,
                race.second.kind,
                race.second.site,
                race.second.strand,
                race.second.task,
                race.location,
            ),
        }
    }
}

/// A detector that stops at its first error, and lets the others go on.
struct Seat {
    detector: Detector,
    error: Option<Error>,
}

impl Seat {
    fn take(&mut self, action: impl FnOnce(&mut Detector) -> Result<(), Error>) -> Result<(), Error> {
        if self.error.is_none() {
            self.error = action(&mut self.detector).err();
        }
        Ok(())
    }

    /// The run is over.
    fn finish(&mut self) {
        self.error = self.error.take().or_else(|| self.detector.finish().err());
    }
}

impl Consumer for Seat {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.take(|detector| detector.accesses(strand, runs))
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.take(|detector| detector.event(step))
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.take(|detector| detector.erase(bytes))
    }
    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.take(|detector| detector.dropped(what))
    }
}

/// The graph builder and a detector per engine, side by side: whoever makes a stream can have it judged.
pub struct Court {
    graph: GraphBuilder,
    seats: Vec<Seat>,
}

impl Court {
    /// A court over these engines.
    pub fn new(engines: &[&'static Engine]) -> Court {
        // A race that is found and not kept would look like one that is missed.
        let seat = |&engine| Seat {
            detector: Detector::with_limit(
                engine,
                Options { recent: RECENT, ..Options::default() },
                usize::MAX,
            ),
            error: None,
        };
        Court { graph: GraphBuilder::new(), seats: engines.iter().map(seat).collect() }
    }

    /// The run is over: the bytes that race, isolated sections read as ordered, and a verdict per engine. Engines may
    /// refuse what they do not claim to support.
    pub fn judge(self) -> Result<(BTreeSet<u64>, Vec<Verdict>), Disagreement> {
        self.judge_with(|engine, error| may_refuse(engine, None, Schedule::DepthFirst, error))
    }

    fn judge_with(
        mut self,
        may_refuse: impl Fn(&Engine, &Error) -> bool,
    ) -> Result<(BTreeSet<u64>, Vec<Verdict>), Disagreement> {
        let graph = self.graph.into_graph();
        for seat in &mut self.seats {
            seat.finish();
        }

        let ordered = Oracle::new(&graph, Isolation::Ordered);
        let racy_bytes = ordered.racy_bytes();
        let isolated = graph.edges.iter().any(|edge| edge.kind == EdgeKind::Isolation);
        let exclusive = isolated.then(|| Oracle::new(&graph, Isolation::MutualExclusion));
        let exclusive_bytes = exclusive.as_ref().map(Oracle::racy_bytes);

        let mut verdicts = Vec::new();
        for Seat { detector, error } in self.seats {
            let engine = detector.engine();
            let disagree = |about| Disagreement { engine: engine.name, about };
            if let Some(error) = error {
                if !may_refuse(engine, &error) {
                    return Err(disagree(About::Refused(error)));
                }
                verdicts.push(Verdict { engine, races: Err(error) });
                continue;
            }
            let (oracle, bytes) = match (engine.isolation, &exclusive, &exclusive_bytes) {
                (Isolation::MutualExclusion, Some(oracle), Some(bytes)) => (oracle, bytes),
                _ => (&ordered, &racy_bytes),
            };
            let races = detector.races();
            if let Some(race) = races.iter().find(|race| !oracle.confirms(race)) {
                return Err(disagree(About::NoRace(*race)));
            }
            // Every reported race is one, so the engine has no byte too many.
            let found: BTreeSet<u64> = races.iter().flat_map(|race| race.location.addresses()).collect();
            if let Some(&missed) = bytes.difference(&found).next() {
                return Err(disagree(About::Missed(missed)));
            }
            verdicts.push(Verdict { engine, races: Ok(races.to_vec()) });
        }
        Ok((racy_bytes, verdicts))
    }
}

impl Meets for Court {
    fn have_met(&self, first: Side, second: Side) -> bool {
        self.seats.iter().all(|seat| seat.detector.have_met(first, second))
    }
}

impl Consumer for Court {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        self.graph.accesses(strand, runs)?;
        self.seats.accesses(strand, runs)
    }
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.graph.event(step)?;
        self.seats.event(step)
    }
    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.graph.erase(bytes)?;
        self.seats.erase(bytes)
    }
    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        self.graph.dropped(what)?;
        self.seats.dropped(what)
    }
}

/// Runs `program` depth first and judges `engines` on it. If `class` is given, the program is of that class, and an
/// engine that supports the class must not refuse it.
pub fn judge(
    program: &Program,
    engines: &[&'static Engine],
    class: Option<Class>,
) -> Result<Judgement, Disagreement> {
    judge_in(program, Schedule::DepthFirst, engines, class)
}

/// Judges `engines` as [`judge`] does, on a run in the order of `schedule`. If that is interleaved, engines that
/// need the depth-first order may refuse any program.
pub fn judge_in(
    program: &Program,
    schedule: Schedule,
    engines: &[&'static Engine],
    class: Option<Class>,
) -> Result<Judgement, Disagreement> {
    let mut stream = Stream::with_recent(Court::new(engines), RECENT);
    let outcome = run_in(program, schedule, &mut stream).map_err(ill_formed)?;
    let (racy_bytes, verdicts) =
        stream.into_consumer().judge_with(|engine, error| may_refuse(engine, class, schedule, error))?;
    if program.walk().any(|stmt| matches!(stmt, Stmt::Lock(..))) {
        judge_sections(program, schedule, engines)?;
    }
    judge_contracted(program, schedule, &racy_bytes)?;
    judge_shared(program, schedule)?;
    if program.walk().any(|stmt| matches!(stmt, Stmt::Lock(..) | Stmt::Atomic { .. })) {
        judge_repeats(program, schedule)?;
    }
    Ok(Judgement { outcome, racy_bytes, verdicts })
}

/// Judges those of the engines that take atomics on the same run, with sections of locks in the order of the run if they
/// depend on each other; and that the stream finds the same edges as the definition does.
fn judge_sections(
    program: &Program,
    schedule: Schedule,
    engines: &[&'static Engine],
) -> Result<(), Disagreement> {
    let takes = |engine: &&Engine| engine.supports(Construct::Lock) && engine.supports(Construct::Atomic);
    let engines: Vec<&'static Engine> = engines.iter().copied().filter(takes).collect();
    let mut stream = Stream::with_recent(Court::new(&engines), RECENT);
    // Random programs hold few locks at once: with these numbers, sections that are kept together are among them.
    stream.order_sections_apart(program.walk().count() % 3);
    run_in(program, schedule, &mut stream).map_err(ill_formed)?;
    let (found, _) = stream.into_consumer().judge_with(|_, _| false)?;

    let mut stream = Stream::new(DependentSections::default());
    run_in(program, schedule, &mut stream).map_err(ill_formed)?;
    let racy = stream.into_consumer().racy_bytes();
    same_bytes("(sections)", &racy, &found)
}

/// Are the bytes that `engine` has found those that race?
fn same_bytes(engine: &'static str, racy: &BTreeSet<u64>, found: &BTreeSet<u64>) -> Result<(), Disagreement> {
    let about = match (racy.difference(found).next(), found.difference(racy).next()) {
        (Some(&byte), _) => About::Missed(byte),
        (None, Some(&byte)) => About::Invented(byte),
        (None, None) => return Ok(()),
    };
    Err(Disagreement { engine, about })
}

/// Contracted, the same run has the same races: with sets of one line, and so little is contracted, or with more.
fn judge_contracted(
    program: &Program,
    schedule: Schedule,
    racy_bytes: &BTreeSet<u64>,
) -> Result<(), Disagreement> {
    let limit = 1 + program.walk().count() % ROOM;
    let court = Stream::with_recent(Court::new(&[order::default_engine()]), RECENT);
    let children = !program.walk().any(|stmt| matches!(stmt, Stmt::GetFuture(_)));
    let mut stream = Stream::new(Contracting::new(court, limit, children));
    run_in(program, schedule, &mut stream).map_err(ill_formed)?;
    let mut contracting = stream.into_consumer();
    contracting.expand().map_err(ill_formed)?;
    let court = contracting.into_consumer();
    judge_meetings(program, schedule, &court.seats[0].detector, racy_bytes)?;
    let (found, _) = court.judge()?;
    same_bytes("(contraction)", racy_bytes, &found)
}

/// Contracted, atomic accesses meet on the same bytes. Of many accesses to one byte the latest alone are compared, so programs with few of them are judged;
/// and on a byte that races a plain access may stand for an atomic one.
fn judge_meetings(
    program: &Program,
    schedule: Schedule,
    contracted: &Detector,
    racy_bytes: &BTreeSet<u64>,
) -> Result<(), Disagreement> {
    const FEW: usize = 8;
    let mut atomics = BTreeMap::new();
    for stmt in program.walk() {
        if let Stmt::Atomic { bytes, site, .. } = *stmt {
            atomics.insert(site, bytes);
        }
    }
    if atomics.is_empty() || atomics.len() > FEW {
        return Ok(());
    }
    let met = |detector: &Detector| -> BTreeSet<u64> {
        let both = |meeting: &Meeting| {
            let [first, second] = [meeting.first.0, meeting.second.0].map(|site| atomics[&site]);
            first.start().max(second.start())..first.end().min(second.end())
        };
        detector.meetings().iter().flat_map(both).filter(|byte| !racy_bytes.contains(byte)).collect()
    };
    let options = Options { recent: RECENT, ..Options::default() };
    let detector = Detector::with_limit(order::default_engine(), options, usize::MAX);
    let mut stream = Stream::with_recent(detector, RECENT);
    run_in(program, schedule, &mut stream).map_err(ill_formed)?;
    same_bytes("(meetings, contracted)", &met(stream.consumer()), &met(contracted))
}

/// Without the reads for which others stand, the same run has the same races, whatever the room for what is kept; sections of locks that depend on each other come in the order
/// of the run, if there are any.
fn judge_shared(program: &Program, schedule: Schedule) -> Result<(), Disagreement> {
    let room = 1 + program.walk().count() % ROOM;
    let options = Options { recent: RECENT, ..Options::default() };
    let detector = || Detector::with_limit(order::default_engine(), options, usize::MAX);
    let bytes = |races: &[Race]| -> BTreeSet<u64> {
        races.iter().flat_map(|race| race.location.addresses()).collect()
    };
    let mut all = Stream::with_recent(detector(), RECENT);
    let mut less = Stream::with_recent(Sharing::new(detector(), room), RECENT);
    all.order_sections();
    less.order_sections();
    run_in(program, schedule, &mut all).map_err(ill_formed)?;
    run_in(program, schedule, &mut less).map_err(ill_formed)?;
    let (all, less) = (all.into_consumer(), less.into_consumer().into_detector());
    same_bytes("(shared reads)", &bytes(all.races()), &bytes(less.races()))
}

/// Without the steps that tasks make once more, as they have just made them, a run in which there are many has the same races; and it may hold
/// so many locks that sections are kept together.
fn judge_repeats(program: &Program, schedule: Schedule) -> Result<(), Disagreement> {
    let seed = program.walk().count();
    let options = Options { recent: RECENT, ..Options::default() };
    let racy = |leave_out: bool| -> Result<BTreeSet<u64>, Disagreement> {
        let detector = Detector::with_limit(order::default_engine(), options, usize::MAX);
        let mut stream = Stream::with_recent(detector, RECENT);
        stream.order_sections_apart(seed % 3);
        if leave_out {
            stream.leave_out_repeats();
        }
        let mut outer = Stream::new(Repeating::new(stream, seed));
        run_in(program, schedule, &mut outer).map_err(ill_formed)?;
        let detector = outer.into_consumer().into_stream().into_consumer();
        Ok(detector.races().iter().flat_map(|race| race.location.addresses()).collect())
    };
    same_bytes("(repeats)", &racy(false)?, &racy(true)?)
}

/// The runner sends well-formed streams only: the structure is wrong about that.
fn ill_formed(error: Error) -> Disagreement {
    Disagreement { engine: "(structure)", about: About::Refused(error) }
}

fn may_refuse(engine: &Engine, class: Option<Class>, schedule: Schedule, error: &Error) -> bool {
    let claims = class.is_some_and(|class| class.constructs().iter().all(|&c| engine.supports(c)));
    match *error {
        Error::NotDepthFirst { .. } => engine.depth_first && !(claims && schedule == Schedule::DepthFirst),
        _ if claims => false,
        Error::Unsupported { construct, .. } => !engine.supports(construct),
        _ => false,
    }
}
