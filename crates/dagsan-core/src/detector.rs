//! The detector: an order engine, an access history, and the races they find together.

use crate::access::AccessSet;
use crate::bytes::{Bytes, Location};
use crate::error::Error;
use crate::history::{History, Judge, Record};
use crate::ids::{StrandId, TaskId};
use crate::order::{self, Engine, Isolation, Order, Visits};
use crate::race::{Access, Race, RaceLog};
use crate::step::{Phase, Step};
use crate::stream::{Consumer, Strand};

/// How many races a detector keeps unless told otherwise.
pub const RACE_LIMIT: usize = 100_000;

/// What a detector did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Strands that were checked.
    pub strands: u64,
    /// Strands that ran while the program was quiescent, and needed no check.
    pub quiescent_strands: u64,
    /// Runs of bytes that were compared with the history.
    pub checks: u64,
    /// Questions put to the order engine.
    pub queries: u64,
}

/// Finds the determinacy races of a stream. See the module's documentation.
pub struct Detector {
    engine: &'static Engine,
    order: Box<dyn Order>,
    history: History,
    found: Found,
}

/// The races, and what is needed to name their sides.
struct Found {
    log: RaceLog,
    tasks: order::Strands<TaskId>,
    stats: Stats,
}

impl Detector {
    /// A detector with `engine`.
    pub fn new(engine: &'static Engine, options: order::Options) -> Detector {
        Detector::with_limit(engine, options, RACE_LIMIT)
    }

    /// A detector that keeps at most `limit` races.
    pub fn with_limit(engine: &'static Engine, options: order::Options, limit: usize) -> Detector {
        Detector {
            engine,
            order: engine.build(options),
            history: History::new(),
            found: Found { log: RaceLog::new(limit), tasks: order::Strands::new(), stats: Stats::default() },
        }
    }

    /// The engine.
    pub fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// The races found so far, one per pair of sites and location.
    pub fn races(&self) -> &[Race] {
        self.found.log.races()
    }

    /// How many races were found beyond the limit.
    pub fn dropped_races(&self) -> u64 {
        self.found.log.dropped()
    }

    /// What was done so far.
    pub fn stats(&self) -> Stats {
        self.found.stats
    }

    /// How far the engine's queries had to search, if it searches.
    pub fn visits(&self) -> Option<Visits> {
        self.order.visits()
    }

    /// Bytes of memory held by the order engine and by the history.
    pub fn memory(&self) -> (usize, usize) {
        (self.order.memory() + self.found.tasks.memory(), self.history.memory())
    }

    fn check_order(&self, depth_first: bool, task: TaskId) -> Result<(), Error> {
        if self.engine.depth_first && !depth_first {
            return Err(Error::NotDepthFirst { engine: self.engine.name, task });
        }
        Ok(())
    }
}

impl Consumer for Detector {
    fn accesses(&mut self, strand: &Strand, set: &AccessSet) -> Result<(), Error> {
        self.check_order(strand.depth_first, strand.task)?;
        if strand.quiescent {
            self.found.stats.quiescent_strands += 1;
            return Ok(());
        }
        self.found.stats.strands += 1;
        self.order.now(strand);
        self.found.tasks.enter(strand.id, strand.task);
        let isolated = strand.isolated && self.engine.isolation == Isolation::MutualExclusion;
        let mut judge = Bench { order: &mut *self.order, found: &mut self.found, now: strand.id };
        for run in set.runs() {
            judge.found.stats.checks += 1;
            let record = Record::new(strand.id, run.site, run.kind, isolated);
            self.history.access(run.at, record, &mut judge);
        }
        self.history.tidy();
        Ok(())
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let task = step.event.task();
        self.check_order(step.depth_first, task)?;
        if let Some(construct) = step.event.construct()
            && !self.engine.supports(construct)
        {
            return Err(Error::Unsupported { engine: self.engine.name, construct });
        }
        self.order.event(step)?;
        if step.phase == Phase::Quiesced {
            self.history.clear();
            self.found.tasks.forget();
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.history.erase(bytes);
        Ok(())
    }
}

/// The order engine and the race log, while the accesses of a strand are judged.
struct Bench<'a> {
    order: &'a mut dyn Order,
    found: &'a mut Found,
    now: StrandId,
}

impl Judge for Bench<'_> {
    #[inline]
    fn precedes(&mut self, strand: StrandId) -> bool {
        // A strand that comes in pieces meets itself.
        if strand == self.now {
            return true;
        }
        self.found.stats.queries += 1;
        self.order.precedes(strand)
    }

    fn bag(&mut self, strand: StrandId) -> Option<u32> {
        self.order.bag(strand)
    }

    #[cold]
    fn race(&mut self, first: Record, second: Record, location: Location) {
        let side = |record: Record| Access {
            strand: record.strand(),
            task: self.found.tasks[record.strand()],
            site: record.site(),
            kind: record.kind(),
            isolated: record.is_isolated(),
        };
        let (first, second) = (side(first), side(second));
        self.found.log.add(first, second, location);
    }
}
