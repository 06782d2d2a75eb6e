//! What came of a run.

use dagsan_core::{Error, Location, SiteId, TaskId};

use crate::check::types::{Ty, Type};
use crate::compile::FIRST_CELL;
use crate::compile::op::Code;
use crate::eliminate::{Elimination, Plan};
use crate::hir::{AccessId, Hir};
use crate::lines::Lines;
use crate::schedule::{Point, TaskPath};
use crate::span::Span;
use crate::vm::{Machine, NONE, Names, State};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As it should.
    Finished,
    /// The program did something wrong.
    Failed(Failure),
    /// Tasks are left, and none of them can run.
    Deadlock(Vec<Blocked>),
    /// The consumer refused an event: the engine does not support a construct.
    Refused(Error),
    /// The scheduler did not choose: nothing more is wanted of this run.
    Stopped,
}

/// What a program did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which task.
    pub task: TaskId,
    /// Where.
    pub span: Span,
    /// What.
    pub message: String,
}

/// A task in a deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The task.
    pub task: TaskId,
    /// Where it waits.
    pub span: Span,
    /// For what.
    pub waits_for: String,
}

/// A task of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInfo<'a> {
    /// Who created it; the main task is its own parent.
    pub parent: TaskId,
    /// How many tasks its parent had created before it: with the parent, this says which task it is in whatever
    /// schedule.
    pub birth: u32,
    /// The keyword that created it, or `main`.
    pub kind: &'static str,
    /// The procedure it runs, if it is not a block.
    pub procedure: Option<&'a str>,
    /// Where it was created.
    pub created: Span,
}

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations of the interpreter.
    pub operations: u64,
    /// Accesses to shared memory, if they were counted.
    pub accesses: u64,
    /// Accesses, or ranges of them, that were put into an access set.
    pub checks: u64,
    /// Accesses without a check, by elimination, in the order of [`Elimination::ALL`]; if they were counted.
    pub eliminated: [u64; 6],
}

/// What came of a run.
#[derive(Debug)]
pub struct Run<'a> {
    /// How it ended.
    pub end: End,
    /// What it printed.
    pub output: String,
    /// Its tasks, by number.
    pub tasks: Vec<TaskInfo<'a>>,
    /// How many strands touched memory.
    pub strands: u32,
    /// What it did.
    pub counts: Counts,
    /// Was a region used by several tasks? Who of them came first decides what is joined, and is not explored.
    pub shared_region: bool,
    hir: &'a Hir,
    lines: &'a Lines,
    state: State,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        machine: Machine<'a, '_>,
        end: End,
        code: &'a Code,
        plan: &Plan,
        lines: &'a Lines,
    ) -> Run<'a> {
        let (strands, counts) = (machine.strands(), counts(&machine, plan));
        let (hir, mut state) = (machine.hir, machine.state);
        let output = std::mem::take(&mut state.output);
        let tasks = state.tasks.iter().map(|task| {
            let site = code.starts.get(task.site as usize).filter(|_| task.site != NONE);
            TaskInfo {
                parent: TaskId(task.parent),
                birth: task.birth,
                kind: site.map_or("main", |site| site.kind.name()),
                procedure: site.and_then(|site| code.functions[site.function as usize].name.as_deref()),
                created: site.map_or(Span::default(), |site| site.span),
            }
        });
        let tasks = tasks.collect();
        let shared_region = state.shared_region;
        Run { end, output, tasks, strands, counts, shared_region, hir, lines, state }
    }

    /// The names of the cells of a location, lowest first: `x`, `a[3]`.
    pub fn location_names(&self, location: Location) -> Vec<String> {
        self.names().location(location, |span| {
            let (line, column) = self.lines.position(span.start);
            format!("{line}:{column}")
        })
    }

    /// Where the array of a location was made, if it was made by `new`.
    pub fn allocated_at(&self, location: Location) -> Option<Span> {
        self.names().made_at(location)
    }

    /// Where an access stands in the source.
    pub fn site_span(&self, site: SiteId) -> Span {
        self.hir.accesses.get(site.number() as usize).map_or(Span::default(), |access| access.span)
    }

    /// Which child of its parent a task is, of its parent's parent, …
    pub fn path(&self, task: TaskId) -> TaskPath {
        let mut path = Vec::new();
        let mut at = task;
        while let Some(info) = self.tasks.get(at.index()).filter(|_| at != TaskId::MAIN) {
            path.push(info.birth);
            at = info.parent;
        }
        path.reverse();
        path
    }

    /// An access of `task` to the first cell of `location`, to be found again in another run.
    pub fn point(&self, task: TaskId, site: SiteId, location: Location) -> Point {
        Point { task: self.path(task), site, cell: self.names().stable(location) }
    }

    /// What numbers and truth values are in shared memory at the end: names and values.
    pub fn memory(&self) -> Vec<(String, String)> {
        let value = |ty: Ty, value: i64| match self.hir.types.get(ty) {
            Type::Int | Type::Unknown => Some(value.to_string()),
            Type::Bool => Some((value != 0).to_string()),
            // References and handles are numbers that mean nothing outside of the run.
            _ => None,
        };
        let cells = &self.state.cells;
        let scalars = self.hir.shareds.iter().enumerate().filter_map(|(number, (name, ty))| {
            Some((name.clone(), value(*ty, cells[FIRST_CELL as usize + number])?))
        });
        let mut memory: Vec<(String, String)> = scalars.collect();
        for object in &self.state.objects {
            let maker = &self.hir.makers[object.maker.index()];
            if let (Some(name), Some(ty), false) = (&maker.name, maker.element, maker.is_new) {
                let elements = &cells[object.base as usize..][..object.len as usize];
                memory.extend(
                    elements.iter().enumerate().filter_map(|(index, &element)| {
                        Some((format!("{name}[{index}]"), value(ty, element)?))
                    }),
                );
            }
        }
        memory
    }

    fn names(&self) -> Names<'_> {
        Names { hir: self.hir, state: &self.state }
    }
}

fn counts(machine: &Machine<'_, '_>, plan: &Plan) -> Counts {
    let mut counts = Counts { operations: machine.steps, checks: machine.checks(), ..Counts::default() };
    for (number, &count) in machine.counts.iter().enumerate() {
        counts.accesses += count;
        if let Some(reason) = plan.reason(AccessId(number as u32)) {
            let place = Elimination::ALL.iter().position(|&elimination| elimination == reason);
            counts.eliminated[place.unwrap_or(0)] += count;
        }
    }
    counts
}
