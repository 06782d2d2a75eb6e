//! From the findings of a native program to a report: addresses become functions, lines and names.
//!
//! An access is shown at the innermost line of the *user's* code: a race inside `Vec::push` is the caller's. What was
//! inlined or called inside of it, in the standard library, in dependencies or in the task runtime, is in the call stack.
//! Frames of the detector are left out. If no line of the user's is known, the place is where the task was created, and
//! the report says so. Tasks that a library creates, the pieces of a parallel iterator, are shown where the user calls it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use dagsan_core::graph::{EdgeKind, Neighbourhood, PathStep};
use dagsan_core::order;
use dagsan_core::{AccessKind, TaskId};
use dagsan_findings as findings;
use dagsan_findings::{Findings, Kind, Memory, TaskKind};

use crate::model::{
    Blocked, Detail, End, Frame, Join, Native, Race, Report, Side, StandIn, Task, Threads, Unseen,
};
use crate::source::{LARGEST, Place, Source, read_regular};
use crate::symbols::{Symbol, Symbols};

mod schedule;

/// Why findings cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They come from an engine that we do not have.
    #[error("the findings are of an unknown engine: {0}")]
    Engine(dagsan_core::Error),
    /// They speak of a call stack that they do not hold.
    #[error("the findings are damaged: they have no call stack {0}")]
    Stack(usize),
}

/// Where source files are.
#[derive(Debug, Clone)]
pub struct Files {
    /// Names are shown relative to this directory.
    current: PathBuf,
    /// Relative names are looked for here, in this order: compilers name files from the root of the workspace.
    roots: Vec<PathBuf>,
    /// Directories, and whether what lies in them was copied there by `cargo vendor`.
    vendored: RefCell<HashMap<PathBuf, bool>>,
}

/// Linux has no longer paths. A damaged one has as many ancestors as it likes, each of which would be asked for every file.
const LONGEST_PATH: usize = 4096;

impl Files {
    /// For a process that was started in some directory of the workspace, or whose executable is in one.
    pub fn new(current: &Path, process: &findings::Process) -> Files {
        let starts = [current, &process.directory, &process.executable];
        let possible = starts.into_iter().filter(|path| path.as_os_str().len() < LONGEST_PATH);
        let roots = possible.flat_map(Path::ancestors).map(Path::to_owned).collect();
        Files { current: current.to_owned(), roots, vendored: RefCell::default() }
    }

    /// The name to show, and where the file is, if it is anywhere.
    fn find(&self, file: &str) -> (String, Option<PathBuf>) {
        let path = Path::new(file);
        let found = match path.is_absolute() {
            true => Some(path.to_owned()),
            false if file.len() >= LONGEST_PATH => None,
            false => self.roots.iter().map(|root| root.join(path)).find(|path| path.is_file()),
        };
        let shown = found.as_deref().unwrap_or(path);
        let shown = shown.strip_prefix(&self.current).unwrap_or(shown);
        (shown.display().to_string(), found)
    }

    /// Is the file none of the user's packages'?
    fn is_library(&self, file: &str) -> bool {
        LIBRARIES.iter().any(|directory| file.contains(directory)) || self.is_vendored(file)
    }

    /// cargo leaves a list of files beside what it has copied.
    fn is_vendored(&self, file: &str) -> bool {
        let (_, Some(path)) = self.find(file) else { return false };
        let Some(directory) = path.parent() else { return false };
        let mut known = self.vendored.borrow_mut();
        *known.entry(directory.to_owned()).or_insert_with(|| {
            directory.ancestors().any(|ancestor| ancestor.join(".cargo-checksum.json").is_file())
        })
    }
}

/// What is around a race, in the words of the core.
fn around(found: &findings::Neighbourhood) -> Neighbourhood {
    let step = |step: &findings::PathStep| PathStep {
        kind: match step.why {
            findings::Order::Continue => EdgeKind::Continue,
            findings::Order::Spawn => EdgeKind::Spawn,
            findings::Order::Join => EdgeKind::Join,
            findings::Order::Promise => EdgeKind::Promise,
            findings::Order::Release => EdgeKind::Release,
            findings::Order::Isolation => EdgeKind::Isolation,
        },
        task: TaskId(step.task),
        left_out: step.left_out,
    };
    let ways =
        |[one, other]: &[Vec<findings::PathStep>; 2]| [one, other].map(|way| way.iter().map(step).collect());
    Neighbourhood { start: TaskId(found.start), down: ways(&found.down), up: found.up.as_ref().map(ways) }
}

/// Where the standard library, the task runtime and dependencies are.
const LIBRARIES: [&str; 9] = [
    "/rustc/",
    "/rust/deps/",
    "/rustlib/src/rust/library/",
    "/dagsan-task/src/",
    OPENMP,
    "/corosensei-",
    "/crates/rayon-core/src/",
    "/registry/src/",
    "/git/checkouts/",
];

/// Where the runtime of OpenMP is.
const OPENMP: &str = "/dagsan-omp/src/";

/// The name of a program. In its directory `deps`, for tests and benchmarks, cargo puts a hash behind the name of the crate, which is another one with the next toolchain.
pub fn program_name(executable: &Path) -> String {
    let name = executable.file_name().unwrap_or_default().to_string_lossy();
    let is_hash = |end: &str| end.len() == 16 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let of_cargo = executable.parent().is_some_and(|directory| directory.ends_with("deps"));
    match name.rsplit_once('-') {
        Some((start, end)) if of_cargo && is_hash(end) => start.to_owned(),
        _ => name.into_owned(),
    }
}

/// The report on one process.
pub fn report(findings: &Findings, symbols: &mut Symbols, files: &Files) -> Result<Report, Error> {
    let engine = order::find(&findings.engine).map_err(Error::Engine)?;
    let name = program_name(&findings.process.executable);
    let mut report = Report::new(Source::absent(name), engine, End::Finished);
    report.schedules = 1;
    report.task_count = findings.stats.tasks;
    report.strand_count = findings.stats.strands;
    report.dropped_races = findings.dropped_races;
    let mut reader = Reader { findings, symbols, files, sources: HashMap::new(), report };
    reader.tasks()?;
    reader.end();
    for race in &findings.races {
        let race = reader.race(race)?;
        reader.report.races.push(race);
    }
    reader.native()?;
    reader.report.clean();
    Ok(reader.report)
}

struct Reader<'a> {
    findings: &'a Findings,
    symbols: &'a mut Symbols,
    files: &'a Files,
    /// The number of each source, by the name that the compiler has for it.
    sources: HashMap<String, usize>,
    report: Report,
}

impl Reader<'_> {
    /// A task has a larger number than the one that created it, and comes after it.
    fn tasks(&mut self) -> Result<(), Error> {
        for task in &self.findings.tasks {
            let ours = task.created.as_ref().filter(|created| !self.files.is_library(&created.file));
            let (what, join) = match task.kind {
                TaskKind::Main => ("main", Join::Finish),
                TaskKind::Async => ("async", Join::Finish),
                TaskKind::Spawn => ("spawn", Join::Sync),
                TaskKind::Future => ("future", Join::Get),
                TaskKind::Join if ours.is_none() => ("parallel iterator", Join::Iterator),
                TaskKind::Join => ("join", Join::Closure),
                TaskKind::Scope => ("scope", Join::Scope),
                TaskKind::Detached => ("spawn", Join::Nobody),
                TaskKind::Thread => ("thread", Join::Thread),
                TaskKind::Team => ("parallel", Join::Barrier),
                TaskKind::Task => ("task", Join::Taskwait),
                TaskKind::Piece => ("work of a team", Join::Barrier),
            };
            let created = match (ours, task.stack) {
                (Some(created), _) => Some(self.named(created)),
                // A library has created it: the user has called that, or has created a task that has.
                (None, Some(call)) => self.user_place(call)?,
                (None, None) => {
                    let parent = task.parent.and_then(|parent| self.report.tasks.get(&parent));
                    parent.and_then(|parent| parent.created.clone())
                }
            };
            self.report
                .tasks
                .insert(task.number, Task { parent: task.parent, what: what.to_owned(), created, join });
        }
        Ok(())
    }

    fn end(&mut self) {
        self.report.end = match &self.findings.end {
            findings::End::Exited => End::Finished,
            findings::End::Aborted => End::Aborted,
            findings::End::Deadlock(blocked) => End::Deadlock(
                blocked
                    .iter()
                    .map(|blocked| Blocked {
                        task: blocked.task,
                        place: blocked.place.as_ref().map_or_else(unknown, |place| self.named(place)),
                        waits_for: blocked.waits_for.clone(),
                    })
                    .collect(),
            ),
            findings::End::CutShort(why) => End::CutShort(why.clone()),
            findings::End::Refused(why) => End::Refused(why.clone()),
            findings::End::Broken(why) => End::Broken(why.clone()),
        };
    }

    fn native(&mut self) -> Result<(), Error> {
        let uses = self.findings.uses.clone();
        let mut threads = Vec::new();
        for started in &self.findings.threads {
            let stack = self.stack(started.stack)?;
            let at = user_frame(&stack).and_then(|frame| frame.at.clone());
            threads.push(Threads { count: started.count, name: started.name.clone(), at });
        }
        let schedule = self.schedule()?;
        let mut unseen = Vec::new();
        for met in &uses.unseen {
            let at = user_frame(&self.stack(met.stack)?).and_then(|frame| frame.at.clone());
            unseen.push(Unseen { what: met.what.clone(), at, count: met.count });
        }
        self.report.native = Some(Native {
            locks: uses.locks,
            lock_order: uses.lock_order,
            unlocked_early: uses.unlocked_early,
            atomics: uses.atomics,
            forks: uses.forks,
            turns_lost: uses.turns_lost,
            threads,
            split: uses.split,
            schedule,
            odd_sizes_unseen: uses.odd_sizes_unseen,
            unseen,
        });
        Ok(())
    }

    fn race(&mut self, race: &findings::Race) -> Result<Race, Error> {
        let length = race.bytes.iter().map(|&(_, length)| length).fold(0, u64::saturating_add);
        let start = race.bytes.first().map_or(0, |&(start, _)| start);
        let (object, part) = self.memory(&race.memory, start, length);
        let allocated = match race.memory {
            Memory::Heap { stack: Some(stack), .. } => self.user_place(stack)?,
            _ => None,
        };
        Ok(Race {
            locations: vec![part],
            object: Some(object),
            first: self.side(&race.first, race.second.task)?,
            second: self.side(&race.second, race.first.task)?,
            allocated,
            duplicates: race.duplicates,
            schedule: None,
            witness: None,
            around: race.graph.and_then(|number| self.findings.graphs.get(number)).map(around),
        })
    }

    /// What the bytes are in, and which part of it they are.
    fn memory(&self, memory: &Memory, start: u64, length: u64) -> (String, String) {
        let part = |offset: u64, size: u64| match (offset, length) {
            (0, length) if length == size => String::new(),
            _ => format!("{} at offset {offset}", bytes(length)),
        };
        match *memory {
            Memory::Heap { start: block, size, .. } => {
                (format!("a heap block of {}", bytes(size)), part(start.saturating_sub(block), size))
            }
            Memory::Static { at } => match self.symbols.data(at) {
                Some(found) => (format!("static `{}`", found.name), part(at - found.address, found.size)),
                None => ("a static without a name".to_owned(), format!("{} at {at:#x}", bytes(length))),
            },
            Memory::Stack { task: Some(task) } => (format!("a local of task {task}"), bytes(length)),
            Memory::Stack { task: None } => ("a local of a task that has ended".to_owned(), bytes(length)),
            Memory::Other => ("mapped memory".to_owned(), format!("{} at {start:#x}", bytes(length))),
        }
    }

    /// An access, which is parallel to one of the task `other`.
    fn side(&mut self, side: &findings::Side, other: u32) -> Result<Side, Error> {
        let stack = self.stack(side.stack)?;
        let (place, stand_in) = match self.user_place(side.stack)? {
            Some(place) => (place, None),
            None => self.stand_in(side.task, other).unwrap_or_else(|| (unknown(), None)),
        };
        Ok(Side {
            place,
            kind: match side.kind {
                Kind::Read => AccessKind::Read,
                Kind::Write | Kind::Free => AccessKind::Write,
            },
            task: side.task,
            isolated: false,
            detail: Detail {
                free: side.kind == Kind::Free,
                atomic: side.atomic,
                locked: side.locked,
                shares_lock: side.shares_lock,
                nearby: side.nearby,
                stand_in,
                stack,
                complete: self.findings.stacks.get(side.stack).is_some_and(|stack| stack.complete),
            },
        })
    }

    /// What to show for an access of `task` that is nowhere in the user's code.
    fn stand_in(&self, task: u32, other: u32) -> Option<(Place, Option<StandIn>)> {
        let created = |task: &u32| self.report.tasks.get(task)?.created.clone();
        let own = self.report.ancestry(task, other).iter().find_map(created);
        if let Some(place) = own {
            return Some((place, Some(StandIn::Creation)));
        }
        let parallel = *self.report.ancestry(other, task).last()?;
        Some((created(&parallel)?, Some(StandIn::Parallel(parallel))))
    }

    /// The frames of a call stack, without those of the detector.
    fn stack(&mut self, number: usize) -> Result<Vec<Frame>, Error> {
        let stack = self.findings.stacks.get(number).ok_or(Error::Stack(number))?;
        let (mut frames, mut users) = (Vec::new(), 0);
        for &address in &stack.frames {
            for symbol in self.symbols.code(address) {
                if !is_detector(&symbol) {
                    let starts_threads = is_in(&symbol, &[OPENMP]) || symbol.function.starts_with("__kmpc_");
                    frames.push(self.frame(symbol));
                    users = if starts_threads { users } else { frames.len() };
                }
            }
        }
        // Where a thread of a team was started is said elsewhere.
        if users > 0 {
            frames.truncate(users);
        }
        Ok(frames)
    }

    fn frame(&self, symbol: Symbol) -> Frame {
        let library = symbol.file.as_ref().is_none_or(|file| self.files.is_library(file));
        let Symbol { function, file, line, column, inlined } = symbol;
        let at = file.filter(|_| line > 0).map(|file| (self.files.find(&file).0, line, column));
        Frame { function, at, inlined, library }
    }

    /// The innermost place of a call stack in the user's code.
    fn user_place(&mut self, number: usize) -> Result<Option<Place>, Error> {
        let stack = self.stack(number)?;
        let at = user_frame(&stack).and_then(|frame| frame.at.clone());
        Ok(at.map(|(file, line, column)| self.place(&file, line as usize, column as usize)))
    }

    fn named(&mut self, place: &findings::Place) -> Place {
        let name = self.files.find(&place.file).0;
        self.place(&name, place.line as usize, place.column as usize)
    }

    fn place(&mut self, file: &str, line: usize, column: usize) -> Place {
        let number = match self.sources.get(file) {
            Some(&number) => number,
            None => {
                let (name, path) = self.files.find(file);
                // A file that cannot be read is shown by its name alone.
                let text = path.and_then(|path| read_regular(&path, LARGEST).ok());
                let source = match text.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    Some(text) => Source::new(name, text),
                    None => Source::absent(name),
                };
                self.report.sources.push(source);
                let number = self.report.sources.len() - 1;
                self.sources.insert(file.to_owned(), number);
                number
            }
        };
        self.report.sources[number].place_at(number, line, column)
    }
}

/// No source, no line.
fn unknown() -> Place {
    Place { source: 0, span: 0..0, line: 0, column: 0 }
}

/// The innermost frame in the user's code.
fn user_frame(stack: &[Frame]) -> Option<&Frame> {
    stack.iter().find(|frame| frame.at.is_some() && !frame.library)
}

fn is_detector(symbol: &Symbol) -> bool {
    let hook = ["__tsan_", "__dagsan_", "dagsan_rt::", "dagsan_core::", "<dagsan_rt::", "<dagsan_core::"];
    hook.iter().any(|prefix| symbol.function.starts_with(prefix)) || is_in(symbol, &["/dagsan-rt/src/"])
}

fn is_in(symbol: &Symbol, directories: &[&str]) -> bool {
    symbol.file.as_ref().is_some_and(|file| directories.iter().any(|directory| file.contains(directory)))
}

fn bytes(count: u64) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
