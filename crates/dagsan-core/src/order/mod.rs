//! Order engines: does an earlier strand precede the one that is being delivered? And the table of all engines.
//!
//! An engine consumes [`Step`]s and answers [`Order::precedes`] about any strand it was told of and
//! the strand `now`. One file per algorithm; they are chosen by name at run time, and each declares in
//! [`ENGINES`] what it supports. The detector turns what an engine does not support into an error that
//! names those that do: an engine never guesses. Engines that look at the graph of the run, and answer no
//! questions about order, are in the same table.

pub(crate) mod bags;
pub mod closure;
pub mod dag;
pub mod drdp;
pub mod esp_bags;
pub mod multibags;
pub mod sf_order;
mod sp;
mod strands;
pub(crate) mod union_find;
pub mod vector_clock;

pub(crate) use strands::Strands;

use crate::analysis::{self, Analysis};
use crate::error::Error;
use crate::event::Construct;
use crate::ids::StrandId;
use crate::step::Step;
use crate::stream::{Dropped, Strand};
use crate::tasks::Tasks;

/// What an order engine is to the detector.
pub trait Order: Send {
    /// A task event. At [`crate::Phase::Quiesced`] the engine may forget all strands: it will not be
    /// asked about them again.
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error>;

    /// `strand` is now: the queries that follow, up to the next event, are about it. Strand numbers grow,
    /// except that a strand may come again as long as its task has had no event since.
    fn now(&mut self, strand: &Strand);

    /// Does `a` precede now? `a` has been now before.
    fn precedes(&mut self, a: StrandId) -> bool;

    /// Like [`Order::precedes`], but may say no if the answer would cost a search: what is asked is whether something
    /// can be forgotten.
    fn surely_precedes(&mut self, a: StrandId) -> bool {
        self.precedes(a)
    }

    /// Like [`Order::precedes`], but for what acquires have put in order: that is the order of the run at hand, and another
    /// may have it otherwise. May say yes where it cannot tell the two apart.
    fn precedes_without_acquires(&mut self, a: StrandId) -> bool {
        self.precedes(a)
    }

    /// How many acquires have put something in order that was not, if the engine knows.
    fn acquired(&self) -> Option<u64> {
        None
    }

    /// A bag that `a` is in, if the engine keeps strands in bags: all strands of a bag will have the same
    /// answer to every question from now on. The history then needs to remember only one of them.
    fn bag(&mut self, a: StrandId) -> Option<u32> {
        let _ = a;
        None
    }

    /// Nobody will get this any more.
    fn dropped(&mut self, what: Dropped) {
        let _ = what;
    }

    /// Is there so much to be let go by [`Order::collect`], beyond `recent`, that it costs no more than a constant for each
    /// event since the last time?
    fn wants_collection(&self, recent: usize) -> bool {
        let _ = recent;
        false
    }

    /// Of the strands so far, only `live`, sorted, will ever be asked about again: the engine may forget the others.
    fn collect(&mut self, live: &[StrandId]) {
        let _ = live;
    }

    /// How much the last collection has looked at and kept: there must be as many new strands or events before the next.
    fn weight(&self) -> usize {
        0
    }

    /// Bytes of memory held.
    fn memory(&self) -> usize;

    /// How far queries had to search, if the engine searches.
    fn visits(&self) -> Option<Visits> {
        None
    }
}

/// What the searches of an engine visit. For `drdp` these are tasks, the columns of the paper's table 3;
/// for `dag`, nodes of knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visits {
    /// Queries that had to search.
    pub searches: u64,
    /// Visited by the shortest search; `u64::MAX` if there was none.
    pub min: u64,
    /// Visited by the longest search.
    pub max: u64,
    /// Visited by all searches.
    pub total: u64,
}

impl Default for Visits {
    fn default() -> Visits {
        Visits { searches: 0, min: u64::MAX, max: 0, total: 0 }
    }
}

impl Visits {
    /// Counts a search that visited so many.
    pub fn count(&mut self, visited: u64) {
        self.searches += 1;
        self.min = self.min.min(visited);
        self.max = self.max.max(visited);
        self.total += visited;
    }

    /// Visited per search; 0 if there was none.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.searches.max(1) as f64
    }
}

/// How isolated sections are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each section follows the one before it in the observed run, as an edge of the graph (papers
    /// 002, 003). The verdict is about that graph.
    Ordered,
    /// No edges; two isolated accesses never race with each other (paper 004).
    MutualExclusion,
}

/// The order in which DRDP's search visits the graph (its section 4.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Search {
    /// Breadth first: the paper's choice.
    #[default]
    BreadthFirst,
    /// Depth first.
    DepthFirst,
}

/// The order in which DRDP's search takes the non-tree joins of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JoinOrder {
    /// Latest first: the paper's choice.
    #[default]
    BackToFront,
    /// Earliest first.
    FrontToBack,
}

/// Choices that some engines offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// For `drdp`.
    pub search: Search,
    /// For `drdp`.
    pub joins: JoinOrder,
    /// Strands that nobody can ask about any more are looked for when so many have come.
    pub recent: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { search: Search::default(), joins: JoinOrder::default(), recent: crate::RECENT }
    }
}

/// An engine as the user sees it.
pub struct Engine {
    /// The name it is chosen by.
    pub name: &'static str,
    /// One line for a help text.
    pub summary: &'static str,
    /// What it can judge.
    pub constructs: &'static [Construct],
    /// Does it need the serial depth-first order?
    pub depth_first: bool,
    /// How it reads isolated sections.
    pub isolation: Isolation,
    pub(crate) build: Build,
}

/// How an engine is made: one that answers questions about order, or one that looks at the graph.
pub(crate) enum Build {
    Order(fn(Options) -> Box<dyn Order>),
    Graph(fn() -> Box<dyn Analysis>),
}

impl Engine {
    /// Can it judge the construct?
    pub fn supports(&self, construct: Construct) -> bool {
        self.constructs.contains(&construct)
    }

    /// A new instance, at the start of a program; `None` for a graph engine, which answers no questions
    /// about order.
    pub fn order(&self, options: Options) -> Option<Box<dyn Order>> {
        match self.build {
            Build::Order(build) => Some(build(options)),
            Build::Graph(_) => None,
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.name)
    }
}

use Construct::*;
const EVERYTHING: &[Construct] = &[
    AsyncFinish,
    SpawnSync,
    StructuredFuture,
    GeneralFuture,
    Child,
    Promise,
    Isolated,
    Region,
    Lock,
    Atomic,
    Detached,
];
const ALL_BUT_LOCKS: &[Construct] =
    &[AsyncFinish, SpawnSync, StructuredFuture, GeneralFuture, Promise, Isolated, Region, Atomic, Detached];
const SCOPED_BUT_LOCKS: &[Construct] =
    &[AsyncFinish, SpawnSync, StructuredFuture, GeneralFuture, Promise, Isolated, Region, Atomic];

/// All engines, the default first.
pub static ENGINES: &[Engine] = &[
    Engine {
        name: "dag",
        summary: "series-parallel order and knowledge of non-tree joins: everything",
        constructs: EVERYTHING,
        depth_first: false,
        isolation: Isolation::Ordered,
        build: Build::Order(|_| Box::new(dag::Dag::new(Isolation::Ordered))),
    },
    Engine {
        name: "esp-bags",
        summary: "S-bags and P-bags: async/finish, spawn/sync, isolated; serial",
        constructs: &[AsyncFinish, SpawnSync, Isolated, Lock],
        depth_first: true,
        isolation: Isolation::MutualExclusion,
        build: Build::Order(|_| Box::new(esp_bags::EspBags::new())),
    },
    Engine {
        name: "multibags",
        summary: "bags with structured futures; serial",
        constructs: &[AsyncFinish, SpawnSync, Isolated, StructuredFuture, Lock],
        depth_first: true,
        isolation: Isolation::MutualExclusion,
        build: Build::Order(|_| Box::new(multibags::MultiBags::new())),
    },
    Engine {
        name: "drdp",
        summary: "program structure tree and non-tree joins: futures and promises",
        constructs: &[AsyncFinish, SpawnSync, Isolated, StructuredFuture, GeneralFuture, Promise, Lock],
        depth_first: false,
        isolation: Isolation::MutualExclusion,
        build: Build::Order(|options| Box::new(drdp::Drdp::new(options))),
    },
    Engine {
        name: "sf-order",
        summary: "order-maintenance lists and future bitmaps: spawn/sync and structured futures",
        constructs: &[SpawnSync, StructuredFuture, Lock],
        depth_first: false,
        isolation: Isolation::Ordered,
        build: Build::Order(|_| Box::new(sf_order::SfOrder::new())),
    },
    Engine {
        name: "vector-clock",
        summary: "a clock per task, for comparison: everything, at n² cost",
        constructs: EVERYTHING,
        depth_first: false,
        isolation: Isolation::Ordered,
        build: Build::Order(|_| Box::new(vector_clock::VectorClock::new())),
    },
    Engine {
        name: "closure",
        summary: "transitive closure of the whole graph: slow, and obviously right",
        constructs: EVERYTHING,
        depth_first: false,
        isolation: Isolation::Ordered,
        build: Build::Order(|_| Box::new(closure::Closure::new(Isolation::Ordered))),
    },
    Engine {
        name: "cg",
        summary: "every two nodes of the finished computation graph: everything but locks, at n² cost",
        constructs: ALL_BUT_LOCKS,
        depth_first: false,
        isolation: Isolation::Ordered,
        build: Build::Graph(|| Box::new(analysis::Cg::new())),
    },
    Engine {
        name: "cg-otf",
        summary: "the computation graph on the fly: scopes are checked and replaced as they end; everything but locks and detached tasks",
        constructs: SCOPED_BUT_LOCKS,
        depth_first: false,
        isolation: Isolation::Ordered,
        build: Build::Graph(|| Box::new(analysis::CgOtf::new())),
    },
    Engine {
        name: "zipper",
        summary: "the finished graph, by bags and the order of isolated sections: async/finish, spawn/sync, isolated",
        constructs: &[AsyncFinish, SpawnSync, Isolated],
        depth_first: false,
        isolation: Isolation::Ordered,
        build: Build::Graph(|| Box::new(analysis::Zipper::new())),
    },
];

/// `dag` with isolated sections read as mutual exclusion. For explorations of schedules, which bring the edges
/// between sections that matter; it is not chosen by name.
pub static EXPLORER: Engine = Engine {
    name: "dag (mutual exclusion)",
    summary: "dag, for explorations",
    constructs: EVERYTHING,
    depth_first: false,
    isolation: Isolation::MutualExclusion,
    build: Build::Order(|_| Box::new(dag::Dag::new(Isolation::MutualExclusion))),
};

/// The engine that is used unless another is asked for.
pub fn default_engine() -> &'static Engine {
    &ENGINES[0]
}

/// The engine called `name`.
pub fn find(name: &str) -> Result<&'static Engine, Error> {
    let engine = ENGINES.iter().find(|engine| engine.name == name);
    engine.ok_or_else(|| Error::NoSuchEngine { name: name.to_owned() })
}

fn list(keep: impl Fn(&Engine) -> bool) -> String {
    let names: Vec<_> = ENGINES.iter().filter(|engine| keep(engine)).map(|engine| engine.name).collect();
    names.join(", ")
}

/// The engines that support `construct`, for a message.
pub(crate) fn names_supporting(construct: Construct) -> String {
    list(|engine| engine.supports(construct))
}

/// The engines that take any order of delivery, for a message.
pub(crate) fn names_any_order() -> String {
    list(|engine| !engine.depth_first)
}

/// All engines, for a message.
pub(crate) fn names() -> String {
    list(|_| true)
}
