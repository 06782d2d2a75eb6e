//! Which steps of the schedule come before the present of each task.

use dagsan_core::{Event, Phase, Step, TaskId};

/// A set of steps, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    words: Vec<u64>,
}

impl Steps {
    pub(crate) fn contains(&self, step: usize) -> bool {
        self.words.get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, step: usize) {
        if self.words.len() <= step / 64 {
            self.words.resize(step / 64 + 1, 0);
        }
        self.words[step / 64] |= 1 << (step % 64);
    }

    pub(crate) fn join(&mut self, other: &Steps) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }
}

/// Follows the task events; the steps themselves are entered by the observer.
#[derive(Debug)]
pub(crate) struct Pasts {
    tasks: Vec<Steps>,
    sets: Vec<Steps>,
}

impl Pasts {
    pub(crate) fn new() -> Pasts {
        Pasts { tasks: vec![Steps::default()], sets: Vec::new() }
    }

    pub(crate) fn of(&mut self, task: TaskId) -> &mut Steps {
        &mut self.tasks[task.index()]
    }

    /// An event after which `steps` steps have been made.
    pub(crate) fn event(&mut self, step: &Step<'_>, steps: usize) {
        let task = step.event.task();
        match step.event {
            Event::Spawn { parent, .. } => {
                let past = self.of(parent).clone();
                self.tasks.push(past);
            }
            Event::PromiseNew { .. } => self.sets.push(Steps::default()),
            Event::PromiseSet { promise, .. } => self.sets[promise.index()] = self.of(task).clone(),
            Event::PromiseGet { promise, .. } => {
                let set = std::mem::take(&mut self.sets[promise.index()]);
                self.of(task).join(&set);
                self.sets[promise.index()] = set;
            }
            _ => {}
        }
        for &joined in step.joined {
            let past = std::mem::take(self.of(joined));
            self.of(task).join(&past);
            *self.of(joined) = past;
        }
        if step.phase != Phase::Parallel {
            (0..steps).for_each(|step| self.of(TaskId::MAIN).insert(step));
        }
    }
}
