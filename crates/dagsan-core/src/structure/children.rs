//! What outlives a scope: children, which are in the sync block of their parent until that ends.

use super::Structure;
use crate::ids::{ScopeId, TaskId};

impl Structure {
    /// Something was started that the innermost scope of `task` may not join.
    pub(super) fn mark_escaping(&mut self, task: TaskId) {
        match self.tasks[task].top {
            Some(top) => self.scopes[top.index()].escapes = true,
            None => self.tasks[task].escapes = true,
        }
    }

    /// The task is in no sync block any more.
    pub(super) fn leaves_block(&mut self, task: TaskId) {
        if let Some(task) = self.tasks.get_mut(task) {
            task.is_child = false;
        }
    }

    /// What is left of the innermost sync block of a task that ends goes to the finish around, if it is children.
    pub(super) fn leave_children(&mut self, by: TaskId) -> Option<ScopeId> {
        let block = self.top_block(by)?;
        let is_spawn = |&task: &TaskId| self.tasks.get(task).is_some_and(|task| !task.is_child);
        let scope = &self.scopes[block.index()];
        if scope.tasks.is_empty() || scope.tasks.iter().any(is_spawn) {
            return None;
        }
        let finish = scope.finish;
        self.outlived.clear();
        let scope = &mut self.scopes[block.index()];
        self.outlived.append(&mut scope.tasks);
        scope.escapes = true;
        let running = std::mem::take(&mut scope.running);
        for &task in &self.outlived {
            if let Some(task) = self.tasks.get_mut(task) {
                (task.scope, task.is_child) = (finish, false);
            }
        }
        let to = &mut self.scopes[finish.index()];
        to.tasks.extend_from_slice(&self.outlived);
        to.running += running;
        Some(finish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, TaskKind};
    use crate::structure::ROOT;

    const MAIN: TaskId = TaskId::MAIN;
    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);
    const C: TaskId = TaskId(3);

    fn child(parent: TaskId, child: TaskId) -> Event {
        Event::Spawn { parent, child, kind: TaskKind::Child }
    }

    fn apply(structure: &mut Structure, events: &[Event]) {
        for &event in events {
            structure.apply(event).unwrap();
        }
    }

    #[test]
    fn a_sync_that_nothing_passes_by_is_a_tree_join() {
        let mut structure = Structure::new();
        apply(&mut structure, &[child(MAIN, A), child(A, B), Event::TaskEnd { task: B }]);
        apply(&mut structure, &[Event::Sync { task: A }, Event::TaskEnd { task: A }]);
        let step = structure.apply(Event::Sync { task: MAIN }).unwrap();
        assert!(step.closed.is_some() && step.cross.is_empty() && step.joined == [A]);
        assert!(structure.quiescent());
    }

    #[test]
    fn the_finish_around_takes_over_what_a_task_leaves() {
        let mut structure = Structure::new();
        apply(&mut structure, &[child(MAIN, A), child(A, B), Event::TaskEnd { task: B }]);
        let step = structure.apply(Event::TaskEnd { task: A }).unwrap();
        let left = step.outlived.unwrap();
        assert!(left.tasks == [B] && left.finish == ROOT);
        let step = structure.apply(Event::Sync { task: MAIN }).unwrap();
        assert!(step.closed.is_none() && step.cross == [A] && step.joined == [A]);
        assert!(!structure.quiescent());
        // The next block is one of its own.
        apply(&mut structure, &[child(MAIN, C), Event::TaskEnd { task: C }]);
        assert!(structure.apply(Event::Sync { task: MAIN }).unwrap().closed.is_some());
    }

    #[test]
    fn a_child_that_somebody_has_got_is_joined_by_its_parent_too() {
        let mut structure = Structure::new();
        apply(&mut structure, &[child(MAIN, A), Event::TaskEnd { task: A }, child(MAIN, B)]);
        apply(&mut structure, &[Event::FutureGet { task: B, future: A }, Event::TaskEnd { task: B }]);
        assert_eq!(structure.apply(Event::Sync { task: MAIN }).unwrap().joined, [A, B]);
    }
}
