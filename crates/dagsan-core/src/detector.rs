//! The detector: an engine chosen by name, and the races it finds.
//!
//! An order engine works together with an access history: each strand's accesses are compared, as it ends, with
//! what is remembered of their bytes. A graph engine gets all, and is asked for its races when a scope or the
//! program ends.

use crate::access::{AccessKind, Run, Span, runs_of};
use crate::analysis::Analysis;
use crate::bytes::{Bytes, Location};
use crate::error::Error;
use crate::event::Construct;
use crate::history::{History, Judge, Record};
use crate::ids::{SiteId, StrandId, TaskId};
use crate::locks::{Held, ISOLATED, Lockset, Locksets, share};
use crate::order::{self, Build, Engine, Isolation, Order, Visits};
use crate::race::{Access, Allocator, Meeting, Meetings, Race, RaceLog};
use crate::stand_in::{Exits, StandIns};
use crate::step::{Phase, Step};
use crate::stream::{Consumer, Dropped, Strand};

/// How many races a detector keeps unless told otherwise.
pub const RACE_LIMIT: usize = 100_000;

/// So many runs before a line is looked at, it is asked for: memory takes as long as to check that many.
const AHEAD: usize = 8;

/// What is done under a lock is most often remembered in lists, line by line: all that is known of so many lines is asked for at once.
const BLOCK: usize = 16;

/// What a detector did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Strands that were checked.
    pub strands: u64,
    /// Strands that ran while the program was quiescent, and needed no check.
    pub quiescent_strands: u64,
    /// Order engines: runs of bytes that were compared with the history. `cg` and `cg-otf`: pairs of nodes
    /// whose sets were compared. `zipper`: runs of bytes that were compared with those of earlier nodes.
    pub checks: u64,
    /// Questions about order: to the order engine, or about two nodes (`zipper`: two bags) of the graph.
    pub queries: u64,
}

/// Finds the determinacy races of a stream. See the module's documentation.
pub struct Detector {
    engine: &'static Engine,
    method: Method,
    found: Findings,
    /// The strand with the largest number so far.
    last: Option<StrandId>,
    finished: bool,
}

/// How an engine finds races.
enum Method {
    Order(Box<Online>),
    Graph(Box<dyn Analysis>),
}

/// An order engine and what it needs to find races.
struct Online {
    order: Box<dyn Order>,
    history: History,
    origins: order::Strands<Origin>,
    locksets: Locksets,
    stand_ins: StandIns,
    /// Strands are looked through when so many have come.
    recent: usize,
    /// Room for the locks of a strand.
    held: Vec<Held>,
}

/// What the judge has to know of a strand besides its order.
#[derive(Debug, Clone, Copy)]
struct Origin {
    task: TaskId,
    locks: Lockset,
    exits: Exits,
}

/// The races found, and what it took.
#[derive(Debug)]
pub(crate) struct Findings {
    log: RaceLog,
    meetings: Meetings,
    pub(crate) stats: Stats,
}

impl Findings {
    /// Keeps at most `limit` races.
    pub(crate) fn new(limit: usize) -> Findings {
        Findings { log: RaceLog::new(limit), meetings: Meetings::default(), stats: Stats::default() }
    }

    /// The races found so far.
    pub(crate) fn races(&self) -> &[Race] {
        self.log.races()
    }

    /// The accesses of two strands race; the one with the smaller number came first. Returns whether the race is
    /// kept: none like it was.
    #[cold]
    pub(crate) fn race(&mut self, a: Access, b: Access, location: Location) -> bool {
        let (first, second) = if a.strand <= b.strand { (a, b) } else { (b, a) };
        self.log.add(first, second, location)
    }
}

impl Detector {
    /// A detector with `engine`.
    pub fn new(engine: &'static Engine, options: order::Options) -> Detector {
        Detector::with_limit(engine, options, RACE_LIMIT)
    }

    /// A detector that keeps at most `limit` races.
    pub fn with_limit(engine: &'static Engine, options: order::Options, limit: usize) -> Detector {
        let method = match engine.build {
            Build::Order(build) => Method::Order(Box::new(Online {
                order: build(options),
                history: History::new(),
                origins: order::Strands::new(),
                locksets: Locksets::new(),
                stand_ins: StandIns::default(),
                recent: options.recent,
                held: Vec::new(),
            })),
            Build::Graph(build) => Method::Graph(build()),
        };
        Detector { engine, method, found: Findings::new(limit), last: None, finished: false }
    }

    /// The engine.
    pub fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// The program has ended: finds what is left to find. To be called once after the last event, whatever
    /// the engine; graph engines may not know a single race before. Without it the races found so far
    /// stand, but others may be missing. After an error of the stream it may still be called: what came
    /// before the error is then judged. A second call does nothing, and nothing can be delivered after it.
    pub fn finish(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.finished, true)
            && let Method::Graph(analysis) = &mut self.method
        {
            analysis.finish(&mut self.found);
        }
        Ok(())
    }

    /// The races found so far, one per pair of sites and location.
    pub fn races(&self) -> &[Race] {
        self.found.races()
    }

    /// The parallel atomic accesses found so far, one per pair of sites. Order engines only; and of many on one byte the
    /// latest are compared only.
    pub fn meetings(&self) -> &[Meeting] {
        self.found.meetings.all()
    }

    /// What is done at `site` is an allocator's doing.
    pub fn is_allocators(&mut self, site: SiteId, what: Allocator) {
        self.found.log.is_allocators(site, what);
    }

    /// Takes back those of the races from number `from` on that a front end, which knows what memory is, finds to be none.
    #[cold]
    pub fn withdraw_races(&mut self, from: usize, is_none: impl FnMut(&Race) -> bool) {
        self.found.log.withdraw(from, is_none);
    }

    /// How many races were found beyond the limit.
    pub fn dropped_races(&self) -> u64 {
        self.found.log.dropped()
    }

    /// What was done so far.
    pub fn stats(&self) -> Stats {
        self.found.stats
    }

    /// The tasks whose accesses may still be found to race, some of them more than once; `None` if all may.
    pub fn remembered_tasks(&self) -> Option<impl Iterator<Item = TaskId>> {
        match &self.method {
            Method::Order(online) => Some(online.origins.iter().map(|origin| origin.task)),
            Method::Graph(_) => None,
        }
    }

    /// Those of the bytes that are remembered to have been read, and not to have been written since the last quiescent point. None if
    /// the engine has no history.
    #[inline]
    pub fn unwritten(&self, at: Location) -> u64 {
        match &self.method {
            Method::Order(online) => online.history.unwritten(at),
            Method::Graph(_) => 0,
        }
    }

    /// Those of the bytes that are remembered to have been written since the last quiescent point. All of them, if the engine has no history.
    #[inline]
    pub fn written(&self, at: Location) -> u64 {
        match &self.method {
            Method::Order(online) => online.history.written(at),
            Method::Graph(_) => at.mask,
        }
    }

    /// Those of the bytes that are remembered to have been accessed, and only atomically since the last quiescent point. None if the
    /// engine has no history.
    pub fn only_atomic(&self, at: Location) -> u64 {
        match &self.method {
            Method::Order(online) => online.history.only_atomic(at),
            Method::Graph(_) => 0,
        }
    }

    /// Those of the bytes that are remembered to have been accessed, and not only atomically, since the last quiescent point. All of them, if the
    /// engine has no history.
    pub fn plain(&self, at: Location) -> u64 {
        match &self.method {
            Method::Order(online) => online.history.plain(at),
            Method::Graph(_) => at.mask,
        }
    }

    /// Is that meeting known, or are there too many?
    pub fn have_met(&self, first: (SiteId, AccessKind), second: (SiteId, AccessKind)) -> bool {
        !self.found.meetings.wants(&Meeting { first, second })
    }

    /// How many acquires have put something in order that was not, if the engine knows.
    pub fn acquired(&self) -> Option<u64> {
        match &self.method {
            Method::Order(online) => online.order.acquired(),
            Method::Graph(_) => None,
        }
    }

    /// How far the engine's queries had to search, if it searches.
    pub fn visits(&self) -> Option<Visits> {
        match &self.method {
            Method::Order(online) => online.order.visits(),
            Method::Graph(_) => None,
        }
    }

    /// Bytes of memory held by the order engine and by the history, or for the graph and for the sets of
    /// its nodes.
    pub fn memory(&self) -> (usize, usize) {
        match &self.method {
            Method::Order(online) => {
                let order = online.order.memory() + online.origins.memory() + online.locksets.memory();
                (order, online.history.memory())
            }
            Method::Graph(analysis) => analysis.memory(),
        }
    }

    /// Is the strand to be checked?
    fn wants(&mut self, strand: &Strand) -> Result<bool, Error> {
        self.check_order(strand.depth_first, strand.task)?;
        // It may come in pieces.
        if self.last < Some(strand.id) {
            self.last = Some(strand.id);
            let stats = &mut self.found.stats;
            *(if strand.quiescent { &mut stats.quiescent_strands } else { &mut stats.strands }) += 1;
        }
        Ok(!strand.quiescent)
    }

    fn check_order(&self, depth_first: bool, task: TaskId) -> Result<(), Error> {
        if self.finished {
            return Err(Error::Finished);
        }
        if self.engine.depth_first && !depth_first {
            return Err(Error::NotDepthFirst { engine: self.engine.name, task });
        }
        Ok(())
    }
}

impl Consumer for Detector {
    fn accesses(&mut self, strand: &Strand, runs: &[Run]) -> Result<(), Error> {
        if !self.wants(strand)? {
            return Ok(());
        }
        match &mut self.method {
            Method::Graph(analysis) => {
                if !self.engine.supports(Construct::Atomic) && runs.iter().any(|run| run.atomic) {
                    let (engine, construct) = (self.engine.name, Construct::Atomic);
                    return Err(Error::Unsupported { engine, construct });
                }
                analysis.accesses(strand, runs);
            }
            Method::Order(online) => online.accesses(strand, runs, self.engine.isolation, &mut self.found),
        }
        Ok(())
    }

    fn spans(&mut self, strand: &Strand, spans: &[Span]) -> Result<(), Error> {
        if let Method::Graph(_) = &self.method {
            return self.accesses(strand, &runs_of(spans));
        }
        if self.wants(strand)?
            && let Method::Order(online) = &mut self.method
        {
            online.accesses(strand, spans, self.engine.isolation, &mut self.found);
        }
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
        match &mut self.method {
            Method::Graph(analysis) => analysis.event(step, &mut self.found),
            Method::Order(online) => online.event(step),
        }
    }

    fn dropped(&mut self, what: Dropped) -> Result<(), Error> {
        if let Method::Order(online) = &mut self.method {
            online.order.dropped(what);
        }
        Ok(())
    }

    fn erase(&mut self, bytes: Bytes) -> Result<(), Error> {
        match &mut self.method {
            _ if self.finished => Err(Error::Finished),
            Method::Graph(analysis) => analysis.erase(bytes),
            Method::Order(online) => {
                online.history.erase(bytes);
                Ok(())
            }
        }
    }
}

impl Online {
    fn accesses<S: Copy + Into<Span>>(
        &mut self,
        strand: &Strand,
        spans: &[S],
        isolation: Isolation,
        found: &mut Findings,
    ) {
        self.order.now(strand);
        let isolated = strand.isolated && isolation == Isolation::MutualExclusion;
        let locks = self.locks(strand, isolated);
        let exits = self.stand_ins.exits(strand);
        self.origins.enter(strand.id, Origin { task: strand.task, locks, exits });
        let Online { order, history, origins, locksets, .. } = self;
        let mut judge =
            Bench { order: &mut **order, origins, locksets, found, now: strand.id, task: strand.task, exits };
        let record = |run: &Run| Record::new(strand.id, run, locks != Lockset::EMPTY);
        let span = |number: usize| spans.get(number).map(|&span| span.into());
        let (mut next, mut fetched) = (0, 0);
        while let Some(Span { first: one, more }) = span(next) {
            judge.found.stats.checks += u64::from(more) + 1;
            if locks != Lockset::EMPTY {
                if next >= fetched {
                    fetched = next + BLOCK;
                    let block = spans[next..fetched.min(spans.len())].iter();
                    let block = block.map(|&span| -> Span { span.into() });
                    history.expect_all(block.map(|span| span.first.at.line), |strand| origins.expect(strand));
                }
            } else {
                if let Some(soon) = span(next + AHEAD) {
                    history.expect(soon.first.at.line, soon.more);
                }
                if let Some(sooner) = span(next + AHEAD / 2) {
                    history.expect_segments(sooner.first.at.line);
                }
            }
            next += 1;
            match span(next) {
                // A front end may well have the read of a line beside its write.
                Some(Span { first: two, more: 0 }) if more == 0 && one.at.line == two.at.line => {
                    judge.found.stats.checks += 1;
                    next += 1;
                    history.access_twice(one.at, record(&one), (two.at.mask, record(&two)), &mut judge);
                }
                _ => history.access(one.at, more, record(&one), &mut judge),
            }
        }
        history.tidy();
        if self.origins.wants_collection(self.many()) {
            self.collect(Some(strand.id));
        }
    }

    /// How many strands or events must have come before some are let go. To find out who is remembered, all lines are
    /// looked at, and all that the order engine keeps: that must not cost more than a few for each.
    fn many(&self) -> usize {
        self.recent.max(self.history.lines() / 4).max(self.order.weight())
    }

    /// Forgets the strands that nothing remembers, but for the one that is now.
    #[cold]
    fn collect(&mut self, now: Option<StrandId>) {
        let mut live = self.history.strands();
        if let Some(now) = now
            && let Err(at) = live.binary_search(&now)
        {
            live.insert(at, now);
        }
        self.order.collect(&live);
        self.origins.retain(&live);
        self.locksets.collect(self.origins.iter_mut().map(|origin| &mut origin.locks));
    }

    /// What the strand held. If isolated sections are read as mutual exclusion, one is a lock like others.
    fn locks(&mut self, strand: &Strand, isolated: bool) -> Lockset {
        if !isolated {
            return self.locksets.intern(strand.locks);
        }
        self.held.clear();
        self.held.extend_from_slice(strand.locks);
        self.held.push(ISOLATED);
        self.locksets.intern(&self.held)
    }

    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        self.order.event(step)?;
        self.stand_ins.event(step);
        if step.phase == Phase::Quiesced {
            self.history.clear();
            self.origins.forget();
            self.locksets.clear();
        } else if self.order.wants_collection(self.recent) && self.order.wants_collection(self.many()) {
            self.collect(None);
        }
        Ok(())
    }
}

/// The order engine and the race log, while the accesses of a strand are judged.
struct Bench<'a> {
    order: &'a mut dyn Order,
    origins: &'a order::Strands<Origin>,
    locksets: &'a Locksets,
    found: &'a mut Findings,
    now: StrandId,
    task: TaskId,
    exits: Exits,
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

    #[inline]
    fn surely_precedes(&mut self, strand: StrandId) -> bool {
        self.found.stats.queries += 1;
        strand == self.now || self.task(strand) == self.task || self.order.surely_precedes(strand)
    }

    #[inline]
    fn task(&self, strand: StrandId) -> TaskId {
        self.origins[strand].task
    }

    #[inline]
    fn stands_in(&self, strand: StrandId) -> bool {
        self.exits.is_some() && self.origins[strand].exits == self.exits
    }

    fn bag(&mut self, strand: StrandId) -> Option<u32> {
        self.order.bag(strand)
    }

    fn exclude(&self, a: StrandId, b: StrandId) -> bool {
        self.locksets.exclude(self.origins[a].locks, self.origins[b].locks)
    }

    fn excludes_no_more(&self, a: StrandId, b: StrandId) -> bool {
        self.locksets.excludes_no_more(self.origins[a].locks, self.origins[b].locks)
    }

    fn meet(&mut self, first: Record, second: Record) {
        let side = |record: Record| (record.site(), record.kind());
        let meeting = Meeting { first: side(first), second: side(second) };
        if first.strand() != self.now
            && self.task(first.strand()) != self.task
            && self.found.meetings.wants(&meeting)
            && !self.order.precedes_without_acquires(first.strand())
        {
            self.found.meetings.add(meeting);
        }
    }

    #[cold]
    fn race(&mut self, first: Record, second: Record, location: Location) -> bool {
        let held = |record: Record| self.locksets.held(self.origins[record.strand()].locks);
        let shares_lock = share(held(first), held(second));
        let side = |record: Record| {
            let (task, held) = (self.task(record.strand()), held(record));
            // No lock has a larger number.
            let isolated = held.last() == Some(&ISOLATED);
            Access {
                strand: record.strand(),
                task,
                site: record.site(),
                kind: record.kind(),
                isolated,
                locked: held.iter().any(|held| held.lock.is_programs()),
                shares_lock,
                atomic: record.is_atomic(),
            }
        };
        let (first, second) = (side(first), side(second));
        self.found.race(first, second, location)
    }
}
