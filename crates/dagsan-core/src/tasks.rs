//! A table with an entry per task since the last quiescent point, and one for the main task.

use crate::ids::TaskId;
use crate::table::Table;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Tasks<T> {
    main: T,
    others: Table<T>,
    /// The number of the first task since the last quiescent point.
    first: u32,
}

impl<T> Tasks<T> {
    pub(crate) fn new(main: T) -> Tasks<T> {
        Tasks { main, others: Table::new(1), first: 1 }
    }

    /// The number of the next task.
    pub(crate) fn next(&self) -> u32 {
        self.others.next()
    }

    /// Enters the next task.
    pub(crate) fn push(&mut self, task: T) {
        self.others.push(task);
    }

    /// The place of a task in tables of its own: 0 for the main task, then 1, 2, … in the order of
    /// creation since the last quiescent point. `None` if the task was forgotten.
    pub(crate) fn slot(&self, task: TaskId) -> Option<u32> {
        match task {
            TaskId::MAIN => Some(0),
            _ => Some(task.0.checked_sub(self.first)? + 1),
        }
    }

    /// The entry, unless the task was forgotten.
    pub(crate) fn get(&self, task: TaskId) -> Option<&T> {
        match task {
            TaskId::MAIN => Some(&self.main),
            _ => self.others.get(task.0),
        }
    }

    /// The entry to change, unless the task was forgotten.
    pub(crate) fn get_mut(&mut self, task: TaskId) -> Option<&mut T> {
        match task {
            TaskId::MAIN => Some(&mut self.main),
            _ => self.others.get_mut(task.0),
        }
    }

    /// Forgets all but the main task, whose entry becomes `main`.
    pub(crate) fn forget(&mut self, main: T) {
        self.main = main;
        self.forget_others();
    }

    /// Forgets all but the main task.
    pub(crate) fn forget_others(&mut self) {
        self.first = self.next();
        self.others.clear(self.first);
    }

    /// How many tasks there are beside the main one.
    pub(crate) fn len(&self) -> usize {
        self.others.len()
    }

    /// See [`Table::wants_collection`].
    #[inline]
    pub(crate) fn wants_collection(&self, recent: usize) -> bool {
        self.others.wants_collection(recent)
    }

    /// Forgets all others but those that `keep` wants.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.others.retain(|_, task| keep(task));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.main).chain(self.others.iter().map(|(_, task)| task))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.main).chain(self.others.iter_mut())
    }

    pub(crate) fn memory(&self) -> usize {
        self.others.memory()
    }
}

impl<T> std::ops::Index<TaskId> for Tasks<T> {
    type Output = T;

    #[inline]
    fn index(&self, task: TaskId) -> &T {
        self.get(task).expect("the task was not forgotten")
    }
}

impl<T> std::ops::IndexMut<TaskId> for Tasks<T> {
    #[inline]
    fn index_mut(&mut self, task: TaskId) -> &mut T {
        self.get_mut(task).expect("the task was not forgotten")
    }
}
