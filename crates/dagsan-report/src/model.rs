//! What there is to say about one checked program, whatever front end ran it.
//!
//! A report is plain data. The verdict is not stored: it follows from the races and from how the run ended, so
//! the two cannot disagree.

use std::collections::BTreeMap;
use std::time::Duration;

use dagsan_core::AccessKind;
use dagsan_core::graph::Neighbourhood;
use dagsan_core::order::{Isolation, Visits};

use crate::source::{Place, Source};

/// How a task is joined, besides by the finish around it: decides which advice helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Only by a finish around it.
    Finish,
    /// By a sync.
    Sync,
    /// By a get of its handle.
    Get,
    /// By an await on its region.
    Await,
    /// By the `join` of rayon that it is a closure of.
    Closure,
    /// By the parallel iterator of rayon that it is a piece of.
    Iterator,
    /// By the end of its scope of rayon.
    Scope,
    /// By nobody.
    Nobody,
    /// Whoever joins the thread.
    Thread,
    /// OpenMP: by the next barrier of its team.
    Barrier,
    /// OpenMP: by `taskwait`, the end of its `taskgroup`, or the next barrier.
    Taskwait,
}

/// A task that a report speaks of.
#[derive(Debug, Clone)]
pub struct Task {
    /// The task that created it; smaller than its own number. The main task has none.
    pub parent: Option<u32>,
    /// What it is: "main", "async", "future `fill`".
    pub what: String,
    /// Where it was created, in the user's code; the main task was not.
    pub created: Option<Place>,
    /// What would join it.
    pub join: Join,
}

/// One access of a race.
#[derive(Debug, Clone)]
pub struct Side {
    /// Where it is in the source.
    pub place: Place,
    /// Read or write.
    pub kind: AccessKind,
    /// Its task; one of [`Report::tasks`].
    pub task: u32,
    /// Was it in an isolated section, and isolation read as mutual exclusion?
    pub isolated: bool,
    /// What is known of an access of a native program.
    pub detail: Detail,
}

/// What is known of an access of a native program.
#[derive(Debug, Clone, Default)]
pub struct Detail {
    /// Does it free the block, or move it elsewhere?
    pub free: bool,
    /// Is it an atomic operation?
    pub atomic: bool,
    /// Was a lock held?
    pub locked: bool,
    /// Was it one that the other side held too, both as readers?
    pub shares_lock: bool,
    /// Is the place that of an access to bytes nearby, because that of these was forgotten?
    pub nearby: bool,
    /// If no frame of the user's code is known, and so the place is not that of the access: what it is.
    pub stand_in: Option<StandIn>,
    /// How it came to be, the innermost frame first.
    pub stack: Vec<Frame>,
    /// Does the stack go up to the start of the task?
    pub complete: bool,
}

/// What is shown instead of the place of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandIn {
    /// Where its task was created, or an ancestor of it.
    Creation,
    /// Where this task was created, which is parallel to the access.
    Parallel(u32),
}

/// A function on a call stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// Where in it: the file, line and column, if they are known.
    pub at: Option<(String, u32, u32)>,
    /// Is its code a part of the next function's?
    pub inlined: bool,
    /// Is it none of the user's: of the standard library, the task runtime or a dependency?
    pub library: bool,
}

/// Two parallel accesses, at least one of them a write.
#[derive(Debug, Clone)]
pub struct Race {
    /// The names of what both touch, one per variable or array element: "x", "a\[3\]". If there is an `object`: which
    /// part of it, in words: "8 bytes at offset 24"; empty if it is all of it.
    pub locations: Vec<String>,
    /// What they are parts of, in words, if the source has no names for them: "a heap block of 64 bytes".
    pub object: Option<String>,
    /// The access that came first in the run.
    pub first: Side,
    /// The access that came second.
    pub second: Side,
    /// Where the array was made, if the program makes it while it runs.
    pub allocated: Option<Place>,
    /// How often the same two places raced on the same locations again.
    pub duplicates: u64,
    /// The schedule that shows it, if there are several.
    pub schedule: Option<String>,
    /// What both orders of the two accesses lead to, if that was asked for.
    pub witness: Option<Witness>,
    /// What is around it in the computation graph, if that was kept.
    pub around: Option<Neighbourhood>,
}

/// The name of the program's output among the differences of a witness.
pub const OUTPUT: &str = "output";

/// What running the accesses of a race in both orders has shown.
#[derive(Debug, Clone)]
pub enum Witness {
    /// One of the orders could not be had.
    None,
    /// What differs: its name, what it is if the first access comes first, and if the second does. Empty if
    /// nothing differs.
    Differences(Vec<(String, String, String)>),
}

impl Race {
    /// What both touch, in words or by its name.
    pub fn location_names(&self) -> impl Iterator<Item = String> {
        self.locations.iter().map(|part| match &self.object {
            Some(object) if part.is_empty() => object.clone(),
            Some(object) => format!("{part} of {object}"),
            None => part.clone(),
        })
    }

    /// The kinds of the two accesses in the order of the run.
    pub fn kind(&self) -> &'static str {
        match (self.first.kind, self.second.kind) {
            (AccessKind::Write, AccessKind::Write) => "write-write",
            (AccessKind::Read, AccessKind::Write) => "read-write",
            (AccessKind::Write, AccessKind::Read) => "write-read",
            // No engine reports it; shown as it is rather than hidden.
            (AccessKind::Read, AccessKind::Read) => "read-read",
        }
    }
}

/// A finding in the source of a program, before it runs.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to say at the place; may be empty.
    pub label: String,
    /// Other places that matter, and why.
    pub others: Vec<(Place, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

/// A run-time error of the program.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The task that failed.
    pub task: u32,
    /// Where it was.
    pub place: Place,
    /// What went wrong.
    pub message: String,
}

/// A task that waits for ever.
#[derive(Debug, Clone)]
pub struct Blocked {
    /// The task.
    pub task: u32,
    /// Where it waits.
    pub place: Place,
    /// What for: "promise `p`".
    pub waits_for: String,
}

/// How the run of a program ended, or why there was none.
#[derive(Debug, Clone)]
pub enum End {
    /// Every task ended.
    Finished,
    /// A task failed.
    Failed(Failure),
    /// Tasks remain, and none can run.
    Deadlock(Vec<Blocked>),
    /// The source is not a program.
    Rejected(Vec<Diagnostic>),
    /// The file cannot be read; the message says why and what to do.
    Unreadable(String),
    /// The engine cannot judge the program; the message names those that can.
    Refused(String),
    /// A native program aborted.
    Aborted,
    /// A native program ran on, and was not checked to its end; the message says why and what to do.
    CutShort(String),
    /// Our own fault.
    Broken(String),
}

/// What is said about a program in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No race, and the program ran to its end.
    RaceFree,
    /// A race, however the run ended: what comes after a race may be its consequence.
    Race,
    /// No race, and tasks that wait for ever.
    Deadlock,
    /// No race was found, and there is no saying whether there is one.
    Error,
    /// No race in what was checked, and not all was.
    NotExhausted,
    /// There was nothing to check: no tasks.
    NotChecked,
    /// Races, all of them accepted, and the program ran to its end.
    Accepted,
}

impl Verdict {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::RaceFree => "race-free",
            Verdict::Race => "race",
            Verdict::Deadlock => "deadlock",
            Verdict::Error => "error",
            Verdict::NotExhausted => "not-exhausted",
            Verdict::NotChecked => "not-checked",
            Verdict::Accepted => "accepted",
        }
    }
}

/// What the check of a program took.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Reads and writes of shared memory that the program made.
    pub accesses: u64,
    /// Those that were handed to the detector.
    pub checks: u64,
    /// Those that a static elimination made needless, by its name.
    pub eliminated: Vec<(&'static str, u64)>,
    /// Strands that touched memory while something could be parallel to them.
    pub strands: u64,
    /// Strands that touched memory while nothing could.
    pub quiescent_strands: u64,
    /// Comparisons of accesses, by whatever the engine compares: see [`dagsan_core::Stats::checks`].
    pub comparisons: u64,
    /// Questions about order: see [`dagsan_core::Stats::queries`].
    pub queries: u64,
    /// How far the engine searched, if it searches.
    pub visits: Option<Visits>,
    /// Bytes held for the order of strands at the end.
    pub order_memory: usize,
    /// Bytes held for their accesses at the end.
    pub access_memory: usize,
    /// From source to program.
    pub compile_time: Duration,
    /// The run, with its detection.
    pub run_time: Duration,
}

/// How the schedules of a program with isolated sections or ewait were explored.
#[derive(Debug, Clone, Default)]
pub struct Exploration {
    /// States between sections.
    pub states: u64,
    /// Runs that were given up because they led to what had been seen.
    pub redundant: u64,
    /// Runs that were ended at a quiescent point, in a state that another run had reached.
    pub merged: u64,
    /// Do all sections commute, so that one run was enough?
    pub commute: bool,
    /// Why not all schedules were run, and what to do about it.
    pub stopped: Option<String>,
}

/// What the verdict about a native program depends on.
#[derive(Debug, Clone, Default)]
pub struct Native {
    /// Did parallel tasks use locks or isolated sections?
    pub locks: bool,
    /// Does it hold for schedules in which sections of locks that depend on each other come in the order of the run?
    pub lock_order: bool,
    /// Was a lock given back while tasks under it were not joined? Races with what they did under it may be missed.
    pub unlocked_early: bool,
    /// Did a task see by an atomic operation what a parallel one had written?
    pub atomics: bool,
    /// How many processes were forked and not checked.
    pub forks: u32,
    /// How often a thread slept in a call that is not known, and what it did right after that was not seen.
    pub turns_lost: u32,
    /// Threads that were not checked.
    pub threads: Vec<Threads>,
    /// Parallel iterators of rayon were cut into about so many pieces, or down to single items (0).
    pub split: Option<u32>,
    /// Where tasks did something whose outcome depends on the schedule.
    pub schedule: Vec<ScheduleDependence>,
    /// Were accesses of other sizes than 1, 2, 4, 8 and 16 bytes not seen?
    pub odd_sizes_unseen: bool,
    /// What was executed and cannot be seen.
    pub unseen: Vec<Unseen>,
}

/// What tasks executed in one place and nobody can see.
#[derive(Debug, Clone)]
pub struct Unseen {
    /// "inline assembly".
    pub what: String,
    /// Where, if that is known: the file, the line and the column.
    pub at: Option<(String, u32, u32)>,
    /// How often.
    pub count: u64,
}

/// A place where tasks did something whose outcome depends on the schedule.
#[derive(Debug, Clone)]
pub struct ScheduleDependence {
    /// What it depends on, in words: "the worker that runs the task".
    pub on: &'static str,
    /// What was called: "rayon::current_thread_index", "`fetch_add`".
    pub call: String,
    /// Where, if that is known: the file, the line and the column.
    pub at: Option<(String, u32, u32)>,
    /// Does it depend on it only if the program looks at the value of the operation?
    pub if_used: bool,
    /// The atomic operation that may come before or after it.
    pub other: Option<(String, u32, u32)>,
    /// How often.
    pub count: u64,
}

/// Threads that one place of a native program started by itself.
#[derive(Debug, Clone)]
pub struct Threads {
    /// How many.
    pub count: u32,
    /// The name of the first one.
    pub name: Option<String>,
    /// Where they were started: the file and line, if known.
    pub at: Option<(String, u32, u32)>,
}

/// A race that was found, and that somebody has accepted.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The race.
    pub race: Race,
    /// Why it does not count.
    pub by: Acceptance,
}

/// Why a race does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    /// An entry of a file of suppressions matches it.
    Suppressed {
        /// The file and the line of the entry.
        entry: String,
        /// What the entry gives as its reason.
        reason: String,
    },
    /// It is in this baseline.
    Known {
        /// The file.
        baseline: String,
    },
}

/// What the author of a program expects of it.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// In the words of the `// expect:` line.
    pub text: String,
    /// Is it so? Unknown if the engine refused the program.
    pub met: Option<bool>,
}

/// All there is to say about one program.
#[derive(Debug, Clone)]
pub struct Report {
    /// The sources; the first one is the program.
    pub sources: Vec<Source>,
    /// The engine.
    pub engine: &'static str,
    /// How the engine reads isolated sections.
    pub isolation: Isolation,
    /// Did the program enter an isolated section?
    pub has_isolated: bool,
    /// Did it come to an ewait?
    pub has_ewait: bool,
    /// Did several tasks use one region?
    pub has_shared_region: bool,
    /// How many schedules were run.
    pub schedules: u64,
    /// How they were explored, if one was not enough.
    pub exploration: Option<Exploration>,
    /// The schedule in which the run ended as it did, if it was not the default one.
    pub schedule: Option<String>,
    /// How many tasks there were, the main one included.
    pub task_count: u64,
    /// How many strands touched memory.
    pub strand_count: u64,
    /// What else matters about a native program.
    pub native: Option<Native>,
    /// How it ended.
    pub end: End,
    /// The races.
    pub races: Vec<Race>,
    /// Those that were accepted, which are not among the others.
    pub accepted: Vec<Accepted>,
    /// How many more were found than are kept.
    pub dropped_races: u64,
    /// The tasks that races, failures and waits speak of, and all their ancestors.
    pub tasks: BTreeMap<u32, Task>,
    /// What the program printed.
    pub output: String,
    /// What it took, if that was asked for.
    pub stats: Option<Stats>,
    /// What was expected, if that was asked for.
    pub expectation: Option<Expectation>,
    /// What else the reader should know.
    pub notes: Vec<String>,
}

impl Report {
    /// A report about a program that has not run.
    pub fn new(source: Source, engine: &'static dagsan_core::order::Engine, end: End) -> Report {
        Report {
            sources: vec![source],
            engine: engine.name,
            isolation: engine.isolation,
            has_isolated: false,
            has_ewait: false,
            has_shared_region: false,
            schedules: 0,
            exploration: None,
            schedule: None,
            task_count: 0,
            strand_count: 0,
            native: None,
            end,
            races: Vec::new(),
            accepted: Vec::new(),
            dropped_races: 0,
            tasks: BTreeMap::new(),
            output: String::new(),
            stats: None,
            expectation: None,
            notes: Vec::new(),
        }
    }

    /// Gives the program another name: that of the test that was run, say.
    pub fn rename(&mut self, name: &str) {
        if let Some(program) = self.sources.first_mut() {
            program.rename(name);
        }
    }

    /// The name of the program.
    pub fn name(&self) -> &str {
        self.sources.first().map_or("", Source::name)
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        match self.end {
            // Those beyond what is kept were asked about by nobody.
            _ if !self.races.is_empty() || self.dropped_races > 0 => Verdict::Race,
            End::Finished if self.is_cut_short() => Verdict::NotExhausted,
            End::Finished if !self.accepted.is_empty() => Verdict::Accepted,
            End::Finished if self.native.is_some() && self.task_count <= 1 => Verdict::NotChecked,
            End::Finished => Verdict::RaceFree,
            End::Deadlock(_) => Verdict::Deadlock,
            End::CutShort(_) => Verdict::NotExhausted,
            End::Failed(_)
            | End::Rejected(_)
            | End::Unreadable(_)
            | End::Refused(_)
            | End::Aborted
            | End::Broken(_) => Verdict::Error,
        }
    }

    /// Were schedules left out?
    pub fn is_cut_short(&self) -> bool {
        self.exploration.as_ref().is_some_and(|exploration| exploration.stopped.is_some())
    }

    /// The distinct racy locations, or what they are parts of, in the order in which they were found.
    pub fn locations(&self) -> Vec<&str> {
        locations(&self.races)
    }

    /// The task and its ancestors below their common ancestor with `other`, the task itself first. Empty if
    /// the task is an ancestor of `other`.
    pub fn ancestry(&self, task: u32, other: u32) -> Vec<u32> {
        // A parent is older than its child, and so has the smaller number: the larger of two different
        // tasks is not the common ancestor, and the way up goes through its parent.
        let (mut up, mut across) = (task, other);
        let mut chain = Vec::new();
        while up != across {
            let larger = up.max(across);
            let Some(parent) = self.tasks.get(&larger).and_then(|task| task.parent).filter(|&p| p < larger)
            else {
                break;
            };
            if up == larger {
                chain.push(up);
                up = parent;
            } else {
                across = parent;
            }
        }
        chain
    }

    /// Is there a race of tasks that are not simply the creator of a task and that task, or two tasks of one
    /// creator? A picture of the graph then says more than two lines of source.
    pub fn is_entangled(&self) -> bool {
        let depth = |one, other| self.ancestry(one, other).len();
        let deep = |race: &Race| {
            depth(race.first.task, race.second.task).max(depth(race.second.task, race.first.task)) > 1
        };
        self.races.iter().any(deep)
    }
}

/// The distinct racy locations of these, or what they are parts of.
pub(crate) fn locations<'a>(races: impl IntoIterator<Item = &'a Race>) -> Vec<&'a str> {
    distinct(races.into_iter().flat_map(|race| match &race.object {
        Some(object) => std::slice::from_ref(object).iter().map(String::as_str),
        None => race.locations.iter().map(String::as_str),
    }))
}

/// Each item once, at its first place.
pub(crate) fn distinct<T: Copy + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    items.filter(|&item| seen.insert(item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestries_end_below_the_common_ancestor() {
        let mut report =
            Report::new(Source::new("a.task", ""), dagsan_core::order::default_engine(), End::Finished);
        for (task, parent) in
            [(0, None), (1, Some(0)), (2, Some(1)), (3, Some(2)), (4, Some(1)), (5, Some(0))]
        {
            let task_info = Task { parent, what: "async".into(), created: None, join: Join::Finish };
            report.tasks.insert(task, task_info);
        }
        assert_eq!(report.ancestry(3, 4), [3, 2]);
        assert_eq!(report.ancestry(4, 3), [4]);
        assert_eq!(report.ancestry(3, 0), [3, 2, 1]);
        assert!(report.ancestry(0, 3).is_empty());
        assert!(report.ancestry(9, 5).is_empty(), "an unknown task has no known ancestors");
    }
}
