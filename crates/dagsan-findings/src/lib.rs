//! What the runtime inside a checked program tells the command: the *findings* of one process.
//!
//! The runtime knows addresses, the command knows debug information. So the runtime writes what it found as a
//! small file of JSON when the program ends, and the command turns addresses into source lines and prints. The file
//! also says how the program was started, so that it can be started again to be looked at more closely.
//!
//! Code addresses are relative to the start of the program's image (its load bias is taken off), so that they can be
//! looked up in the executable, and are the same in every run.

mod json;
pub mod output;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The variable that tells the runtime where to write its findings. Without it, the runtime writes
/// `dagsan.<process id>.json` in the current directory if there is something to tell.
pub const FINDINGS_FILE: &str = "DAGSAN_FINDINGS";

/// The format of the file. A command reads files of its own version only.
pub const VERSION: u32 = 1;

/// The findings of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// See [`VERSION`].
    pub version: u32,
    /// The process.
    pub process: Process,
    /// The engine.
    pub engine: String,
    /// How the program ended.
    pub end: End,
    /// The exit code that it asked for, if it came to its end: with races it gets another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The races, in the order in which they were found.
    pub races: Vec<Race>,
    /// How many more were found than are kept.
    pub dropped_races: u64,
    /// The tasks that races and the end speak of, and all their ancestors.
    pub tasks: Vec<Task>,
    /// Call stacks, which others name by their place in this list.
    pub stacks: Vec<Stack>,
    /// What the verdict depends on.
    pub uses: Uses,
    /// Threads that were not started by a task runtime, one entry per place that started some.
    pub threads: Vec<Threads>,
    /// What is around races in the computation graph, if that was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<Neighbourhood>,
    /// What it took.
    pub stats: Stats,
}

/// How the process was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The executable.
    pub executable: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Where it was started.
    pub directory: PathBuf,
    /// Its number.
    pub id: u32,
}

/// How the program ended, as far as the runtime could see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It returned from `main`, or called `exit`.
    Exited,
    /// It aborted: a panic that may not unwind, a call of `abort`, or a fault of C or C++ (an address that is not there, a division by zero).
    Aborted,
    /// Tasks remained, and none could run.
    Deadlock(Vec<Blocked>),
    /// The check came to its end before the program did: there was no more memory, or a limit was reached, or the thread that ran
    /// the tasks has ended; the text says which, and what to do. What came after was not checked.
    CutShort(String),
    /// The engine could not take what the program does; the text names those that can. Not checked from there on.
    Refused(String),
    /// A fault of the runtime itself. Not checked from there on.
    Broken(String),
}

/// A task that waits for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The task.
    pub task: u32,
    /// Where it waits.
    pub place: Option<Place>,
    /// What for: "promise `left`".
    pub waits_for: String,
}

/// Two parallel accesses to the same bytes, at least one of them a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Race {
    /// The bytes: (address, length), lowest first.
    pub bytes: Vec<(u64, u64)>,
    /// What kind of memory they are in.
    pub memory: Memory,
    /// The access that came first in the run.
    pub first: Side,
    /// The access that came second.
    pub second: Side,
    /// How often the same two places raced on the same bytes again.
    pub duplicates: u64,
    /// What is around it in the graph, in [`Findings::graphs`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<usize>,
}

/// What is around a race in the computation graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbourhood {
    /// The task of the latest strand that comes before both accesses.
    pub start: u32,
    /// The ways from there to the first and to the second.
    pub down: [Vec<PathStep>; 2],
    /// The ways from each of them to the earliest strand that comes after both, if the program came that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<[Vec<PathStep>; 2]>,
}

/// A step of a way in the computation graph, from one strand to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStep {
    /// Why the one comes before the other.
    pub why: Order,
    /// The task of the other.
    pub task: u32,
    /// So many strands between the two are passed over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why one strand comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The same task goes on.
    Continue,
    /// A task creates another.
    Spawn,
    /// A task joins another.
    Join,
    /// A promise is set, and got.
    Promise,
    /// A release, and an acquire that sees it.
    Release,
    /// One isolated section, and the next.
    Isolation,
}

/// One access of a race.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// What it did.
    pub kind: Kind,
    /// Was it an atomic operation?
    pub atomic: bool,
    /// Was it made while a lock was held, or in an isolated section?
    pub locked: bool,
    /// Did both sides hold the same lock, both as readers?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_lock: bool,
    /// Its task.
    pub task: u32,
    /// Its call stack, in [`Findings::stacks`].
    pub stack: usize,
    /// Is it the call stack of an access nearby? The strand accessed the same 64 bytes from several places, and which
    /// it was for these is forgotten.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nearby: bool,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Frees the block, or moves it elsewhere: a write to all of it.
    Free,
}

/// Memory that can be raced on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// A heap block.
    Heap {
        /// Where it starts.
        start: u64,
        /// How many bytes were asked for.
        size: u64,
        /// The call stack that allocated it, if it is known.
        stack: Option<usize>,
    },
    /// The stack of a task.
    Stack {
        /// Whose; none if it is not known any more.
        task: Option<u32>,
    },
    /// In the program's image: a static. `at` is relative to the image, like code addresses.
    Static {
        /// The first racing byte.
        at: u64,
    },
    /// Mapped memory, or something the runtime knows nothing about.
    Other,
}

/// A call stack, innermost frame first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Stack {
    /// Return addresses relative to the program's image. The first one is just behind the access or the call in
    /// question; look up the byte before each.
    pub frames: Vec<u64>,
    /// Does it go up to the start of the task? If not, only the innermost frames are known.
    pub complete: bool,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number. The main task is 0; a task has a larger number than the one that created it.
    pub number: u32,
    /// The task that created it; the main task has none.
    pub parent: Option<u32>,
    /// How it was created.
    pub kind: TaskKind,
    /// Where.
    pub created: Option<Place>,
    /// Of a task that the main one has created: the call stack of the outermost call that it belongs to, in
    /// [`Findings::stacks`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<usize>,
}

/// How a task was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskKind {
    /// The one that runs `main`.
    Main,
    /// Joined by the finish around it only.
    Async,
    /// Joined by the next sync of the scope that spawned it.
    Spawn,
    /// Joined by get.
    Future,
    /// rayon: the first closure of a `join`, or a piece of a parallel iterator.
    Join,
    /// rayon: a job of a scope; joined by the end of the scope.
    Scope,
    /// rayon: a job that nobody joins.
    Detached,
    /// A thread; joined by who waits for its end.
    Thread,
    /// OpenMP: what a thread of a team does between two barriers.
    Team,
    /// OpenMP: an explicit task; joined by `taskwait`, `taskgroup` and barriers.
    Task,
    /// OpenMP: what any thread of a team may have got: a `single`, a section, a chunk of a loop.
    Piece,
}

/// A place in the source, as the compiler names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// What a verdict depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Uses {
    /// Locks or isolated sections were used by tasks that may run in parallel, and read as mutual exclusion: what is said holds
    /// if the sections commute.
    pub locks: bool,
    /// Sections of a lock that depend on each other came in the order of this run: what is said holds for schedules in which
    /// they do.
    #[serde(default)]
    pub lock_order: bool,
    /// A lock was given back while tasks that were started under it were not joined.
    #[serde(default)]
    pub unlocked_early: bool,
    /// An atomic operation of one task saw what a parallel one had written: what is said holds for schedules in which
    /// it sees the same.
    pub atomics: bool,
    /// Processes were forked: what they did is not checked.
    pub forks: u32,
    /// How often a thread slept in a call that is not known, while it had the turn: what it did right after that was not seen.
    #[serde(default)]
    pub turns_lost: u32,
    /// rayon's parallel iterators were split into about so many pieces, or down to single items (0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<u32>,
    /// Where tasks asked what depends on the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<ScheduleDependence>,
    /// The compiler did not take DagSan's own pass: accesses of other sizes than 1, 2, 4, 8 and 16 bytes are not seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub odd_sizes_unseen: bool,
    /// What tasks executed and nobody can see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Unseen>,
}

/// Something that accesses memory in a way that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// What: "inline assembly", or the name of an intrinsic function of LLVM's.
    pub what: String,
    /// Where: a call stack, in [`Findings::stacks`].
    pub stack: usize,
    /// How often.
    pub count: u64,
}

/// Tasks did something whose outcome depends on the schedule: without a race, but not determinate either. What the
/// runtime cannot tell is whose code it is in: atomic operations of locks are listed too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleDependence {
    /// What they asked for.
    pub what: ScheduleDependent,
    /// Where, if the task runtime has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Where, otherwise: a call stack, in [`Findings::stacks`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<usize>,
    /// The call stack of an atomic operation that may come before or after the one in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<usize>,
    /// The call stack of the outermost call of a task runtime that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// How often.
    pub count: u64,
}

/// What depends on the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleDependent {
    /// Which worker runs the task: `rayon::current_thread_index`.
    Worker,
    /// Which task gets which item: `ParallelBridge::par_bridge`.
    Bridge,
    /// Which worker runs the task: memory that a thread-local variable leads to.
    ThreadLocal,
    /// Which of two atomic operations comes first, one of which looks at the value that the other changes.
    Value,
    /// The same, if the program looks at the value.
    PerhapsValue,
    /// Which of two atomic stores comes last.
    Store,
}

/// Threads that nobody checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// The call stack that started them, in [`Findings::stacks`].
    pub stack: usize,
    /// The name of the first of them, if it has one.
    pub name: Option<String>,
    /// How many.
    pub count: u32,
}

/// What the check took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Tasks, the main one included.
    pub tasks: u64,
    /// Strands that touched memory while something could be parallel to them.
    pub strands: u64,
    /// Runs of bytes that were compared with what is remembered of them.
    pub checks: u64,
    /// Questions about order.
    pub queries: u64,
    /// Bytes held for the order of strands at the end.
    pub order_memory: u64,
    /// Bytes held for the accesses that are remembered at the end.
    pub access_memory: u64,
    /// Milliseconds from the start of the program to its end.
    pub milliseconds: u64,
    /// What the program has counted, if it was compiled with `DAGSAN_COUNTS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
}

/// Accesses that were executed while something could be parallel to them, by what became of their marks; and the marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Marks {
    /// Accesses that have their mark.
    pub in_place: u64,
    /// Accesses whose marks others make superfluous.
    pub covered: u64,
    /// Accesses that have a mark with their neighbours.
    pub merged: u64,
    /// Accesses that are in ranges behind their loops.
    pub sunk: u64,
    /// Accesses whose bytes are known at run time only. They have their mark.
    pub other: u64,
    /// Marks in line.
    pub in_line: u64,
    /// Ranges.
    pub ranges: u64,
}

/// Why a file of findings could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system says no.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path, say, that is not Unicode.
    #[error("what was found cannot be written: {0}")]
    Unwritable(#[from] json::Error),
    /// It is not what a runtime writes.
    #[cfg(feature = "read")]
    #[error("{path} does not hold findings of this version of dagsan: {error}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// Another version wrote it.
    #[cfg(feature = "read")]
    #[error(
        "{path} was written by another version of dagsan (format {found}, not {VERSION}): build the program again"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

impl Findings {
    /// Writes the file, whole or not at all: another process may be waiting for it.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let text = json::to_string(self)?;
        output::write(path, text.as_bytes()).map_err(|error| Error::File { path: path.to_owned(), error })
    }

    /// Reads the file.
    #[cfg(feature = "read")]
    pub fn read(path: &Path) -> Result<Findings, Error> {
        /// What all versions have.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let text = std::fs::read(path).map_err(|error| Error::File { path: path.to_owned(), error })?;
        let format = |error| Error::Format { path: path.to_owned(), error };
        let Head { version } = serde_json::from_slice(&text).map_err(format)?;
        if version != VERSION {
            return Err(Error::Version { path: path.to_owned(), found: version });
        }
        serde_json::from_slice(&text).map_err(format)
    }
}
