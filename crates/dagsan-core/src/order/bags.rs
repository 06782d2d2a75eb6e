//! S-bags and P-bags (paper 004, section 3): which tasks are before the present, which beside it.
//!
//! Every task is in one bag. The S-bag of a running task holds itself and what precedes it from then
//! on; the P-bag of a scope holds what ended in it and was not joined yet. A bag is a disjoint set with
//! a flag, true for an S-bag. In the serial depth-first order the running task's ancestors are in
//! the middle of things, everything else has ended, and a task in an S-bag precedes the present.
//!
//! | event | bags |
//! |---|---|
//! | task A starts | S_A ← {A} |
//! | task A ends in scope F | P_F ← P_F ∪ S_A |
//! | task B joins scope F | S_B ← S_B ∪ P_F, P_F ← ∅ |

use super::union_find::UnionFind;
use crate::error::Error;
use crate::ids::{ScopeId, TaskId};

#[derive(Debug)]
pub(crate) struct Bags {
    sets: UnionFind,
    /// A task in the P-bag of each scope, if it is not empty.
    scopes: Vec<Option<TaskId>>,
}

impl Bags {
    /// The main task in its S-bag.
    pub(crate) fn new() -> Bags {
        let mut bags = Bags { sets: UnionFind::new(), scopes: vec![None] };
        bags.start().expect("the first task");
        bags
    }

    /// The next task starts.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.sets.push(true)
    }

    /// A scope opens; its number may have been used before.
    pub(crate) fn open(&mut self, scope: ScopeId) {
        if self.scopes.len() <= scope.index() {
            self.scopes.resize(scope.index() + 1, None);
        }
        self.scopes[scope.index()] = None;
    }

    /// `task` ends, and waits in the P-bag of `scope`.
    pub(crate) fn end(&mut self, task: TaskId, scope: ScopeId) {
        match self.scopes[scope.index()] {
            Some(member) => self.sets.union(member.0, task.0),
            None => {
                self.end_apart(task);
                self.scopes[scope.index()] = Some(task);
            }
        }
    }

    /// `task` ends, in a P-bag of its own.
    pub(crate) fn end_apart(&mut self, task: TaskId) {
        self.sets.set_flag(task.0, false);
    }

    /// `by` joins everything in the P-bag of `scope`.
    pub(crate) fn join_scope(&mut self, by: TaskId, scope: ScopeId) {
        if let Some(member) = self.scopes[scope.index()].take() {
            self.sets.union(by.0, member.0);
        }
    }

    /// `by` joins the bag that `task` is in.
    pub(crate) fn join(&mut self, by: TaskId, task: TaskId) {
        self.sets.union(by.0, task.0);
    }

    /// Does `task` precede the present?
    #[inline]
    pub(crate) fn serial(&mut self, task: TaskId) -> bool {
        self.sets.flag(task.0)
    }

    /// The bag that `task` is in. Bags only ever grow together.
    pub(crate) fn bag(&mut self, task: TaskId) -> u32 {
        self.sets.find(task.0)
    }

    pub(crate) fn memory(&self) -> usize {
        self.sets.memory() + self.scopes.capacity() * size_of::<Option<TaskId>>()
    }
}
