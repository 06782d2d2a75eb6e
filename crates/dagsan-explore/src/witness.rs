//! A race made visible: the program is run twice, with the two accesses in opposite orders.
//!
//! The first run is the schedule that showed the race. In the second one the first access is held back until
//! the other was made; everything else goes as before, as far as it can. What differs in the end is what the race decides. If nothing does, the race is
//! benign for this input, which says nothing about others.

use std::collections::BTreeMap;

use dagsan_lang::{Choice, End, Limits, Point, Program, Run, Scheduler, TaskPath};

use crate::schedule::{Replay, Schedule};

/// What came of the two orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Shared memory that differs in the end: its name, its value if the first access comes first, and if the second
    /// does.
    pub memory: Vec<(String, String, String)>,
    /// The outputs, if they differ.
    pub output: Option<(String, String)>,
    /// How the runs ended, if they did so differently.
    pub end: Option<(String, String)>,
}

impl Witness {
    /// Did anything differ?
    pub fn differs(&self) -> bool {
        !self.memory.is_empty() || self.output.is_some() || self.end.is_some()
    }
}

/// Runs the accesses of a race in both orders. `None` if the second cannot come first. The program must have
/// been compiled to count accesses.
pub fn witness(
    program: &Program,
    limits: &Limits,
    schedule: &Schedule,
    (first, second): (&Point, &Point),
) -> Option<Witness> {
    let mut recorder = Recorder { replay: Replay::new(schedule.clone()), names: Vec::new() };
    let as_it_was = program.run_plain_scheduled(limits, &mut recorder);
    let mut again = Named { names: recorder.names };
    let (reversed, passed) = program.run_reversed(limits, &mut again, (first.clone(), second.clone()));
    passed.then(|| compare(&as_it_was, &reversed))
}

fn compare(a: &Run<'_>, b: &Run<'_>) -> Witness {
    let other: BTreeMap<String, String> = b.memory().into_iter().collect();
    let memory = a.memory().into_iter().filter_map(|(name, value)| {
        let after = other.get(&name)?;
        (*after != value).then(|| (name, value, after.clone()))
    });
    let memory = memory.collect();
    let output = (a.output != b.output).then(|| (a.output.clone(), b.output.clone()));
    let (ended, otherwise) = (describe(&a.end), describe(&b.end));
    let end = (ended != otherwise).then_some((ended, otherwise));
    Witness { memory, output, end }
}

fn describe(end: &End) -> String {
    match end {
        End::Finished => "it ends".to_owned(),
        End::Failed(failure) => format!("it fails: {}", failure.message),
        End::Deadlock(_) => "it deadlocks".to_owned(),
        End::Refused(error) => error.to_string(),
        End::Stopped => "it leaves the schedule".to_owned(),
    }
}

/// A choice by names that do not depend on the schedule.
type Name = (TaskPath, Option<TaskPath>);

/// Replays a schedule, and writes down its choices by name.
struct Recorder {
    replay: Replay,
    names: Vec<Name>,
}

impl Scheduler for Recorder {
    fn choose(&mut self, choices: &[Choice]) -> Option<usize> {
        let choice = self.replay.choose(choices)?;
        self.names.push(choices.get(choice)?.names.clone());
        Some(choice)
    }
}

/// Takes the choices of that name, as far as they come up; an access that is held back may keep some away.
struct Named {
    names: Vec<Name>,
}

impl Scheduler for Named {
    fn choose(&mut self, choices: &[Choice]) -> Option<usize> {
        let next = self.names.iter().position(|name| choices.iter().any(|choice| choice.names == *name));
        match next.map(|next| self.names.remove(next)) {
            Some(name) => choices.iter().position(|choice| choice.names == name),
            None => Some(0),
        }
    }
}
