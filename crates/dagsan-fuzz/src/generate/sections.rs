//! The part of the generator that keeps tasks apart, or tells them apart, without joins: locks, releases and
//! acquires. What they order depends on the schedule, so of what others knew little is made use of.

use dagsan_core::LockMode;

use super::Simulation;
use crate::program::Stmt;

impl Simulation<'_> {
    /// A lock and mostly its unlock, with some accesses in between. If the unlock is left out, sections overlap, or
    /// the lock is never given back.
    pub(super) fn lock(&mut self, task: usize) -> bool {
        let name = self.mix.name(self.rng);
        let shared = self.rng.u32(0..3) == 0;
        let mode = if shared { LockMode::Shared } else { LockMode::Exclusive };
        self.leaf(task, Stmt::Lock(name, mode));
        for _ in 0..self.rng.u32(0..4) {
            let bytes = self.pool.favourite(name, self.rng);
            let write = self.rng.u32(0..10) < if shared { 1 } else { 6 };
            self.leaf(task, if write { Stmt::write(bytes) } else { Stmt::read(bytes) });
        }
        // A front end may learn late how a lock is held.
        if self.rng.u32(0..8) == 0 {
            self.leaf(task, Stmt::Lock(name, LockMode::Shared));
        }
        if self.rng.u32(0..5) > 0 {
            self.leaf(task, Stmt::Unlock(name));
        }
        true
    }

    pub(super) fn release(&mut self, task: usize) -> bool {
        self.write_own(task);
        let (name, keep) = (self.mix.name(self.rng), self.rng.bool());
        self.leaf(task, Stmt::Release(name, keep));
        self.releases.resize(self.releases.len().max(name as usize + 1), Vec::new());
        self.releases[name as usize].clone_from(&self.tasks[task].known);
        true
    }

    pub(super) fn acquire(&mut self, task: usize) -> bool {
        let name = self.mix.name(self.rng);
        self.leaf(task, Stmt::Acquire(name));
        let told = self.releases.get(name as usize).cloned().unwrap_or_default();
        self.learn(task, &told);
        // Half of them are one with a release: a read-modify-write.
        if self.rng.bool() {
            self.leaf(task, Stmt::Release(name, true));
        }
        true
    }
}
