//! How tasks were created, and by whom, for as long as somebody can speak of them.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::Location as Place;

use dagsan_core::{RECENT, TaskId};
use dagsan_findings as findings;
use rustc_hash::FxHashSet;

use super::Tasks;

/// How a task was created.
#[derive(Debug, Clone, Copy)]
pub struct Birth {
    pub name: findings::TaskKind,
    /// Not known of a thread, whose call stack is.
    pub place: Option<&'static Place<'static>>,
    /// The code that has created it, as the number of a stack, if the place is not known.
    pub call: Option<NonZero<u32>>,
}

/// Where a task comes from, in 24 bytes: there may be millions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parentage {
    parent: u32,
    kind: findings::TaskKind,
    place: Option<&'static Place<'static>>,
    call: Option<NonZero<u32>>,
}

impl Tasks {
    /// How the task of that number was created, if anybody can still speak of it.
    pub fn birth(&self, task: TaskId) -> Option<Birth> {
        let Parentage { kind: name, place, call, .. } = *self.births.get(task.0)?;
        Some(Birth { name, place, call })
    }

    /// The stream has heard of the next task.
    #[inline]
    pub fn born(&mut self, parent: TaskId, birth: Birth) {
        let Birth { name: kind, place, call } = birth;
        self.births.push(Parentage { parent: parent.0, kind, place, call });
    }

    /// Is the running task the one that its thread began with?
    pub fn is_thread(&self) -> bool {
        let birth = self.births.get(self.current().0);
        birth.is_some_and(|birth| birth.kind == findings::TaskKind::Thread)
    }

    /// The thread that a task is on, by the task that the thread began with.
    pub fn thread_of(&self, mut task: u32) -> u32 {
        while let Some(birth) = self.births.get(task)
            && birth.kind != findings::TaskKind::Thread
        {
            task = birth.parent;
        }
        task
    }

    /// All tasks but the main one have ended, and nobody will ask for them; the next one will be `next`.
    pub fn forget(&mut self, next: u32) {
        self.births.clear(next);
    }

    /// Are there many births that may be of no use any more?
    #[inline]
    pub fn want_collection(&self) -> bool {
        self.births.wants_collection(RECENT)
    }

    /// Forgets all births but those of `spoken_of`, of tasks that live, and of their ancestors.
    pub fn collect(&mut self, spoken_of: impl Iterator<Item = TaskId>) {
        let mut kept = FxHashSet::default();
        let living = self.live.iter().map(|live| live.task);
        for task in spoken_of.chain(living) {
            let mut task = task.0;
            while let Some(birth) = self.births.get(task)
                && kept.insert(task)
            {
                task = birth.parent;
            }
        }
        self.births.retain(|task, _| kept.contains(&task));
    }

    /// Is it known how it was created?
    pub fn is_known(&self, task: u32) -> bool {
        task == 0 || self.births.get(task).is_some()
    }

    /// Enters the task and its ancestors, to be spoken of. Returns the eldest but for the main one.
    pub fn mention(
        &self,
        mut task: u32,
        into: &mut BTreeMap<u32, findings::Task>,
        calls: &mut BTreeMap<u32, u32>,
    ) -> Option<u32> {
        let mut eldest = None;
        loop {
            let birth = self.births.get(task);
            let (parent, kind, created) = match birth {
                Some(birth) => (Some(birth.parent), birth.kind, birth.place.map(place)),
                None => (None, findings::TaskKind::Main, None),
            };
            into.entry(task).or_insert(findings::Task { number: task, parent, kind, created, stack: None });
            if let Some(call) = birth.and_then(|birth| birth.call) {
                calls.entry(task).or_insert(call.get());
            }
            let Some(parent) = parent else { return eldest };
            eldest = Some(task);
            task = parent;
        }
    }
}

/// A place in the words of the findings.
pub fn place(place: &Place<'_>) -> findings::Place {
    findings::Place { file: place.file().to_owned(), line: place.line(), column: place.column() }
}

#[cfg(test)]
mod tests {
    use dagsan_core::TaskKind;

    use super::super::Stack;
    use super::*;

    #[test]
    fn births_are_kept_for_those_who_are_spoken_of_and_their_ancestors() {
        let mut tasks = Tasks::new();
        let birth = Birth { name: findings::TaskKind::Async, place: Some(Place::caller()), call: None };
        for child in 1..9 {
            let parent = TaskId(child / 2);
            tasks.born(parent, birth);
            tasks.spawn(TaskId(child), TaskKind::Async, Stack::default());
            tasks.end();
        }
        tasks.live.truncate(1);
        tasks.collect([TaskId(6)].into_iter());
        let mut mentioned = BTreeMap::new();
        tasks.mention(6, &mut mentioned, &mut BTreeMap::new());
        let parents: Vec<_> = mentioned.values().map(|task| (task.number, task.parent)).collect();
        assert_eq!(parents, [(0, None), (1, Some(0)), (3, Some(1)), (6, Some(3))]);
        assert_eq!(tasks.births.iter().map(|(task, _)| task).collect::<Vec<_>>(), [1, 3, 6]);
    }
}
