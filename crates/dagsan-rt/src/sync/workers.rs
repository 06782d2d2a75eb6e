//! Workers and isolated sections: locks that are no words.
//!
//! A task that is on a certain worker excludes others that are on it. That does not count among the locks that the program uses.

use dagsan_core::{Event, LockId, LockMode, TaskId};

use crate::session::Session;

/// The lock of isolated sections.
pub(super) const ISOLATED: LockId = LockId(0);

/// The tasks that are on workers.
pub(super) type Seats = Vec<(TaskId, u64)>;

impl Session {
    /// The running task is on a worker from here on.
    pub fn worker_begin(&mut self, worker: u64) {
        let seat = (self.told(), worker);
        if !self.sync.hygiene.locks || self.sync.seats.contains(&seat) {
            return;
        }
        self.sync.seats.push(seat);
        let (lock, mode) = (LockId::of_worker(worker as u32), LockMode::Exclusive);
        self.event(Event::Lock { task: seat.0, lock, mode });
    }

    /// It leaves the worker, if it is there: it may have come while nothing was checked.
    pub fn worker_end(&mut self, worker: u64) {
        let seat = (self.told(), worker);
        if let Some(at) = self.sync.seats.iter().position(|other| *other == seat) {
            self.sync.seats.swap_remove(at);
            self.event(Event::Unlock { task: seat.0, lock: LockId::of_worker(worker as u32) });
        }
    }

    /// The main task leaves whatever worker it is on: from here on nothing is checked.
    pub fn leave_workers(&mut self) {
        let on = self.sync.seats.iter().filter(|(task, _)| *task == TaskId::MAIN);
        let workers: Vec<u64> = on.map(|(_, worker)| *worker).collect();
        for worker in workers {
            self.worker_end(worker);
        }
    }

    /// The running task enters an isolated section: a lock that all of them share.
    pub fn isolated_begin(&mut self) {
        self.uses.locks |= self.active;
        let task = self.told();
        self.event(Event::Lock { task, lock: ISOLATED, mode: LockMode::Exclusive });
    }

    /// It leaves the section.
    pub fn isolated_end(&mut self) {
        let task = self.told();
        self.event(Event::Unlock { task, lock: ISOLATED });
    }
}
