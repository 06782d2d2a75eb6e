//! A table with an entry per task since the last quiescent point, and one for the main task.

use crate::ids::TaskId;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Tasks<T> {
    main: T,
    /// The number of the first of the others.
    first: u32,
    others: Vec<T>,
}

impl<T> Tasks<T> {
    pub(crate) fn new(main: T) -> Tasks<T> {
        Tasks { main, first: 1, others: Vec::new() }
    }

    /// The number of the next task.
    pub(crate) fn next(&self) -> u32 {
        self.first + self.others.len() as u32
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
            _ => self.others.get(task.0.checked_sub(self.first)? as usize),
        }
    }

    /// The entry to change, unless the task was forgotten.
    pub(crate) fn get_mut(&mut self, task: TaskId) -> Option<&mut T> {
        match task {
            TaskId::MAIN => Some(&mut self.main),
            _ => self.others.get_mut(task.0.checked_sub(self.first)? as usize),
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
        self.others.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.main).chain(&self.others)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.main).chain(&mut self.others)
    }

    pub(crate) fn memory(&self) -> usize {
        self.others.capacity() * size_of::<T>()
    }
}

impl<T> std::ops::Index<TaskId> for Tasks<T> {
    type Output = T;

    #[inline]
    fn index(&self, task: TaskId) -> &T {
        if task == TaskId::MAIN { &self.main } else { &self.others[(task.0 - self.first) as usize] }
    }
}

impl<T> std::ops::IndexMut<TaskId> for Tasks<T> {
    #[inline]
    fn index_mut(&mut self, task: TaskId) -> &mut T {
        if task == TaskId::MAIN { &mut self.main } else { &mut self.others[(task.0 - self.first) as usize] }
    }
}
