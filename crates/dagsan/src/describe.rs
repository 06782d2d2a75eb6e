//! From what the interpreter says about a run to what a report says: places, tasks, races.

use std::collections::{BTreeMap, HashMap};

use dagsan_core::graph::{Around, Neighbourhood};
use dagsan_core::{Detector, Error, Location, SiteId, TaskId};
use dagsan_lang::{self as lang, Elimination, Point, Run};
use dagsan_report::OUTPUT;
use dagsan_report::graph::Names;
use dagsan_report::{
    Blocked, Detail, Diagnostic, End, Failure, Join, Place, Race, Side, Source, Stats, Task, Witness,
};

/// Tasks by numbers that mean the same in every schedule.
///
/// A run numbers its tasks as they are created, which depends on the schedule. Which child of its parent a task
/// is does not. The numbers here are those of the first run, and new ones for tasks that only other runs have.
#[derive(Debug, Default)]
pub struct Tasks {
    numbers: HashMap<(u32, u32), u32>,
    /// What reports will speak of.
    pub mentioned: BTreeMap<u32, Task>,
}

impl Tasks {
    /// Numbered as in `run`.
    pub fn new(run: &Run<'_>) -> Tasks {
        let others = run.tasks.iter().enumerate().skip(1);
        let mut tasks = Tasks::default();
        for (number, info) in others {
            // Parents come first, and have their numbers.
            tasks.numbers.insert((info.parent.0, info.birth), number as u32);
        }
        tasks
    }

    /// The number of a task of `run`, which a report will speak of.
    pub fn mention(&mut self, source: &Source, run: &Run<'_>, task: TaskId) -> u32 {
        let Some(info) = run.tasks.get(task.index()) else { return task.0 };
        if task == TaskId::MAIN {
            let main = Task { parent: None, what: describe(info), created: None, join: Join::Finish };
            self.mentioned.entry(0).or_insert(main);
            return 0;
        }
        // Not recursive: tasks may be nested very deep.
        let mut chain = vec![task];
        while let Some(parent) =
            chain.last().and_then(|task| run.tasks.get(task.index())).map(|info| info.parent)
            && parent != TaskId::MAIN
        {
            chain.push(parent);
        }
        let mut parent = self.mention(source, run, TaskId::MAIN);
        for task in chain.into_iter().rev() {
            let info = &run.tasks[task.index()];
            let next = self.numbers.len() as u32 + 1;
            let number = *self.numbers.entry((parent, info.birth)).or_insert(next);
            self.mentioned.entry(number).or_insert_with(|| Task {
                parent: Some(parent),
                what: describe(info),
                created: Some(place(source, info.created)),
                join: match info.kind {
                    "spawn" => Join::Sync,
                    "future" => Join::Get,
                    "post" => Join::Await,
                    _ => Join::Finish,
                },
            });
            parent = number;
        }
        parent
    }
}

/// How the run ended.
pub fn end(source: &Source, run: &Run<'_>, tasks: &mut Tasks) -> End {
    match &run.end {
        lang::End::Finished => End::Finished,
        lang::End::Failed(failure) => End::Failed(Failure {
            task: tasks.mention(source, run, failure.task),
            place: place(source, failure.span),
            message: failure.message.clone(),
        }),
        lang::End::Deadlock(blocked) => {
            let waiting = blocked.iter().map(|blocked| Blocked {
                task: tasks.mention(source, run, blocked.task),
                place: place(source, blocked.span),
                waits_for: blocked.waits_for.clone(),
            });
            End::Deadlock(waiting.collect())
        }
        lang::End::Refused(error) => refused(error),
        lang::End::Stopped => {
            End::Refused("this schedule has a choice that the program does not have".to_owned())
        }
    }
}

/// Why a run was broken off.
pub fn refused(error: &Error) -> End {
    match error {
        Error::Unsupported { .. } | Error::NotDepthFirst { .. } => End::Refused(error.to_string()),
        _ => End::Broken(error.to_string()),
    }
}

/// The accesses of a race, to be found again in other schedules.
pub type Points = (Point, Point);

/// The races of a run.
pub fn races(source: &Source, run: &Run<'_>, detector: &Detector, tasks: &mut Tasks) -> Vec<(Race, Points)> {
    let mut places: HashMap<SiteId, Place> = HashMap::new();
    let mut side = |access: &dagsan_core::Access| Side {
        place: places.entry(access.site).or_insert_with(|| place(source, run.site_span(access.site))).clone(),
        kind: access.kind,
        task: tasks.mention(source, run, access.task),
        isolated: access.isolated,
        detail: Detail::default(),
    };
    let race = |race: &dagsan_core::Race| {
        let point = |access: &dagsan_core::Access| run.point(access.task, access.site, race.location);
        let points = (point(&race.first), point(&race.second));
        let race = Race {
            locations: run.location_names(race.location),
            object: None,
            first: side(&race.first),
            second: side(&race.second),
            allocated: run.allocated_at(race.location).map(|span| place(source, span)),
            duplicates: race.duplicates,
            schedule: None,
            witness: None,
            around: None,
        };
        (race, points)
    };
    detector.races().iter().map(race).collect()
}

/// What is around a race, with the numbers that tasks have in reports.
pub fn around(
    source: &Source,
    run: &Run<'_>,
    around: &Around,
    race: &dagsan_core::Race,
    tasks: &mut Tasks,
) -> Option<Neighbourhood> {
    let mut near = around.all().nth(around.of(race.first.strand, race.second.strand)?)?.clone();
    let steps = near.down.iter_mut().chain(near.up.iter_mut().flatten()).flatten();
    for task in steps.map(|step| &mut step.task).chain([&mut near.start]) {
        *task = TaskId(tasks.mention(source, run, *task));
    }
    Some(near)
}

/// What both orders of a race have shown.
pub fn witness(witness: Option<dagsan_explore::Witness>) -> Witness {
    let Some(found) = witness else { return Witness::None };
    let mut differences = found.memory;
    differences.extend(found.output.map(|(one, other)| (OUTPUT.to_owned(), one, other)));
    differences.extend(found.end.map(|(one, other)| ("end".to_owned(), one, other)));
    Witness::Differences(differences)
}

/// What the run and its detector did.
pub fn stats(run: &Run<'_>, detector: &Detector) -> Stats {
    let done = detector.stats();
    let (order_memory, access_memory) = detector.memory();
    Stats {
        accesses: run.counts.accesses,
        checks: run.counts.checks,
        eliminated: Elimination::ALL.map(Elimination::name).into_iter().zip(run.counts.eliminated).collect(),
        strands: done.strands,
        quiescent_strands: done.quiescent_strands,
        comparisons: done.checks,
        queries: done.queries,
        visits: detector.visits(),
        order_memory,
        access_memory,
        ..Stats::default()
    }
}

/// An error of the compiler.
pub fn diagnostic(source: &Source, found: lang::Diagnostic) -> Diagnostic {
    Diagnostic {
        place: place(source, found.span),
        message: found.message,
        label: found.label,
        others: found.others.into_iter().map(|(span, label)| (place(source, span), label)).collect(),
        help: found.help,
    }
}

fn describe(task: &lang::TaskInfo<'_>) -> String {
    match &task.procedure {
        Some(procedure) if task.kind != "main" => format!("{} `{procedure}`", task.kind),
        _ => task.kind.to_owned(),
    }
}

fn place(source: &Source, span: lang::Span) -> Place {
    source.place(0, span.start as usize..span.end as usize)
}

/// The names for a picture.
pub struct RunNames<'a> {
    /// The run in it.
    pub run: &'a Run<'a>,
    /// The program.
    pub source: &'a Source,
}

impl Names for RunNames<'_> {
    fn task(&self, task: TaskId) -> String {
        self.run.tasks.get(task.index()).map_or_else(String::new, describe)
    }

    fn locations(&self, location: Location) -> Vec<String> {
        self.run.location_names(location)
    }

    fn line(&self, site: SiteId) -> Option<usize> {
        Some(place(self.source, self.run.site_span(site)).line)
    }
}
