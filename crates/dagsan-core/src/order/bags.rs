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
//!
//! Tasks from before a quiescent point are forgotten: they precede everything.

use super::Strands;
use super::union_find::UnionFind;
use crate::error::Error;
use crate::ids::{ScopeId, StrandId, TaskId};
use crate::stream::Strand;

#[derive(Debug)]
pub(crate) struct Bags {
    /// The main task is number 0, task `first` number 1, and so on.
    sets: UnionFind,
    first: u32,
    /// The number of a task in the P-bag of each scope, if the bag is not empty.
    scopes: Vec<Option<u32>>,
    strands: Strands<TaskId>,
}

impl Bags {
    /// The main task in its S-bag.
    pub(crate) fn new() -> Bags {
        let mut bags = Bags { sets: UnionFind::new(), first: 1, scopes: vec![None], strands: Strands::new() };
        bags.start().expect("the first task");
        bags
    }

    /// The next task starts.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.sets.push(true)
    }

    /// The number of `task`; that of the main task, which precedes the present too, if it was forgotten.
    #[inline]
    fn number(&self, task: TaskId) -> u32 {
        (task.0 + 1).saturating_sub(self.first)
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
            Some(member) => self.sets.union(member, self.number(task)),
            None => {
                self.end_apart(task);
                self.scopes[scope.index()] = Some(self.number(task));
            }
        }
    }

    /// `task` ends, in a P-bag of its own.
    pub(crate) fn end_apart(&mut self, task: TaskId) {
        self.sets.set_flag(self.number(task), false);
    }

    /// `by` joins everything in the P-bag of `scope`.
    pub(crate) fn join_scope(&mut self, by: TaskId, scope: ScopeId) {
        if let Some(member) = self.scopes[scope.index()].take() {
            self.sets.union(self.number(by), member);
        }
    }

    /// `by` joins the P-bag that `task` is in. An S-bag is joined already, and not this task's to take.
    pub(crate) fn join(&mut self, by: TaskId, task: TaskId) {
        if !self.serial(task) {
            self.sets.union(self.number(by), self.number(task));
        }
    }

    /// Does `task` precede the present?
    #[inline]
    pub(crate) fn serial(&mut self, task: TaskId) -> bool {
        self.sets.flag(self.number(task))
    }

    /// The running strand is `strand`.
    pub(crate) fn now(&mut self, strand: &Strand) {
        self.strands.enter(strand.id, strand.task);
    }

    /// Does `a` precede the present? All strands of its task so far do, or its last one does not.
    #[inline]
    pub(crate) fn precedes(&mut self, a: StrandId) -> bool {
        self.serial(self.strands[a])
    }

    /// The bag that the task of `a` is in. Bags only ever grow together.
    pub(crate) fn bag(&mut self, a: StrandId) -> u32 {
        self.bag_of(self.strands[a])
    }

    /// The bag that `task` is in.
    pub(crate) fn bag_of(&mut self, task: TaskId) -> u32 {
        self.sets.find(self.number(task))
    }

    /// All tasks have been joined into the main task.
    pub(crate) fn forget(&mut self) {
        self.first += self.sets.len() - 1;
        self.sets.clear();
        self.start().expect("the first task");
        self.scopes.fill(None);
        self.strands.forget();
    }

    pub(crate) fn memory(&self) -> usize {
        self.sets.memory() + self.scopes.capacity() * size_of::<Option<u32>>() + self.strands.memory()
    }
}
