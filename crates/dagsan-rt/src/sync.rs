//! What atomic operations say about order: locks, and releases that an acquire sees.
//!
//! **Accesses.** An atomic access never races with another one, and does with a plain one: atomic operations are
//! accesses of their own kind.
//!
//! **Locks** are recognised by what they do. An operation with acquire order that changes a word from 0 *takes* it; a later one
//! with release order by the same task that restores what was there *gives it back*. That is what the mutexes and
//! read-write locks of the standard library and of parking_lot do. Whether a lock is shared shows when it is given
//! back: readers count, so one that subtracts a power of two was a reader. Accesses under a common lock, held
//! exclusively by one of the two at least, exclude each other; there is no order between them, so what is said holds up
//! to the order in which locks are taken.
//!
//! **Release and acquire.** Every other acquire comes after the releases that it sees: `Arc` counts, flags, channels.
//! This is the order of the run at hand, and the verdict says so. A store begins a new release sequence; a
//! read-modify-write continues the one it finds. Fences count: an acquire fence for what was loaded before it, a
//! release fence for what is stored after it.
//!
//! **Workers.** A task that is on a certain worker excludes others that are on it: a lock that nobody sees. It does not
//! count among the locks that the program uses.
//!
//! **Once.** The standard library completes a `Once` in code that is not instrumented. So the words that a strand has loaded
//! with acquire order are looked at again when it ends: a word that has changed by then was changed by the strand, and
//! what it holds now counts as released.

use std::collections::{BTreeMap, VecDeque};

use dagsan_core::{AccessKind, Bytes, Event, Location, LockId, LockMode, Run, Span, SyncId, TaskId};
use rustc_hash::FxHashSet;

use crate::image::Image;
use crate::log::Outbox;
use crate::options::Hygiene;
use crate::peek::peek;
use crate::session::Session;
use crate::sites::{Origin, Sites};

/// The memory order of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub acquire: bool,
    pub release: bool,
}

impl Order {
    /// From the number that the compiler passes: relaxed, consume, acquire, release, both, sequentially consistent.
    pub fn from_abi(order: i32) -> Order {
        Order { acquire: matches!(order, 1 | 2 | 4 | 5), release: matches!(order, 3..=5) }
    }
}

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It saw a value.
    Load { value: u64 },
    /// It wrote one.
    Store { new: u64 },
    /// It saw one and wrote another.
    Update { old: u64, new: u64, subtracts: bool },
}

/// What is known about a word that atomic operations use.
#[derive(Debug, Clone)]
struct Word {
    bytes: usize,
    /// The value that was seen or written last.
    last: u64,
    lock: Option<LockId>,
    sync: SyncId,
    /// Who has released it since its last store that was none.
    released: Option<Releasers>,
    /// Who has acquired it last, after the latest release.
    acquired: Option<TaskId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Releasers {
    One(TaskId),
    Several,
}

impl Word {
    /// Is there a release that `task` has not heard of?
    fn has_news_for(&self, task: TaskId) -> bool {
        self.released.is_some_and(|by| by != Releasers::One(task)) && self.acquired != Some(task)
    }
}

/// A word that a task has taken.
#[derive(Debug, Clone, Copy)]
struct Held {
    task: TaskId,
    address: usize,
    lock: LockId,
    /// Its values before and after.
    free: u64,
    taken: u64,
}

/// An atomic access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Access {
    address: usize,
    bytes: usize,
    kind: AccessKind,
}

/// At most so many words are looked at again, when a strand ends or at a fence. The latest are kept.
const REMEMBERED: usize = 64;

/// See the module's documentation.
#[derive(Debug)]
pub struct Sync {
    hygiene: Hygiene,
    words: BTreeMap<usize, Word>,
    held: Vec<Held>,
    locks: u32,
    /// The tasks that are on workers.
    seats: Vec<(TaskId, u64)>,
    syncs: u32,
    /// The atomic accesses of the running strand.
    accesses: Vec<(Access, Origin)>,
    known: FxHashSet<Access>,
    /// Words that tasks have loaded with acquire order, to be looked at again when a strand of theirs ends.
    watched: VecDeque<(TaskId, usize)>,
    /// Words that tasks have loaded without acquire order since their last fence.
    loaded: VecDeque<(TaskId, usize)>,
    /// The task that has come by a release fence in its running strand.
    fenced: Option<TaskId>,
}

/// The lock of isolated sections.
const ISOLATED: LockId = LockId(0);

impl Sync {
    pub fn new(hygiene: Hygiene) -> Sync {
        Sync {
            hygiene,
            words: BTreeMap::new(),
            held: Vec::new(),
            locks: ISOLATED.0 + 1,
            seats: Vec::new(),
            syncs: 0,
            accesses: Vec::new(),
            known: FxHashSet::default(),
            watched: VecDeque::new(),
            loaded: VecDeque::new(),
            fenced: None,
        }
    }

    /// Has the running strand accessed something atomically?
    #[inline]
    pub fn has_accesses(&self) -> bool {
        !self.accesses.is_empty()
    }

    /// Takes the atomic accesses of the running strand to `outbox`, without the bytes that `drop` picks of a line.
    pub fn take<F: FnMut(&[Span])>(
        &mut self,
        sites: &mut Sites,
        outbox: &mut Outbox<F>,
        drop: impl Fn(u64) -> u64,
    ) {
        self.known.clear();
        for (access, origin) in self.accesses.drain(..) {
            let Ok(bytes) = Bytes::new(access.address as u64, access.bytes as u64) else { continue };
            let site = sites.number(origin, false);
            for (line, mask) in bytes.lines() {
                let at = Location { line, mask: mask & !drop(line) };
                outbox.push(Run { at, kind: access.kind, site, atomic: true });
            }
        }
    }

    fn word(&mut self, address: usize, bytes: usize, value: u64) -> &mut Word {
        self.words.entry(address).or_insert_with(|| {
            self.syncs += 1;
            let sync = SyncId(self.syncs - 1);
            Word { bytes, last: value, lock: None, sync, released: None, acquired: None }
        })
    }

    /// The memory is freed: what comes there will be other words.
    pub fn freed(&mut self, start: usize, size: usize) {
        let range = start..start.saturating_add(size);
        if self.words.range(range.clone()).next().is_some() {
            self.words.retain(|address, _| !range.contains(address));
            self.watched.retain(|(_, address)| !range.contains(address));
            self.loaded.retain(|(_, address)| !range.contains(address));
            self.held.retain(|held| !range.contains(&held.address));
        }
    }

    /// All that was precedes all that comes.
    pub fn forget(&mut self) {
        let held = &self.held;
        self.words.retain(|address, _| held.iter().any(|held| held.address == *address));
        for word in self.words.values_mut() {
            (word.released, word.acquired) = (None, None);
        }
        if self.words.is_empty() {
            self.syncs = 0;
        }
        self.watched.clear();
        self.loaded.clear();
    }

    /// The task has ended; what it holds it will not give back.
    #[inline]
    pub fn task_ended(&mut self, task: TaskId) {
        if !self.held.is_empty() {
            self.held.retain(|held| held.task != task);
        }
        if !self.seats.is_empty() {
            self.seats.retain(|(by, _)| *by != task);
        }
        if !self.watched.is_empty() {
            self.watched.retain(|(by, _)| *by != task);
        }
    }

    /// A word that the task watches and that code without hooks has changed since it was seen.
    /// What it is now.
    fn changed(&mut self, task: TaskId, image: &Image) -> Option<(usize, u64)> {
        self.watched.iter().filter(|(by, _)| *by == task).find_map(|&(_, address)| {
            let word = self.words.get(&address)?;
            let now = peek(address, word.bytes, image)?;
            (now != word.last).then_some((address, now))
        })
    }

    fn remember(list: &mut VecDeque<(TaskId, usize)>, entry: (TaskId, usize)) {
        if !list.contains(&entry) {
            if list.len() == REMEMBERED {
                list.pop_front();
            }
            list.push_back(entry);
        }
    }
}

impl Session {
    /// The running task has performed an atomic operation.
    pub fn atomic(&mut self, address: usize, bytes: usize, done: Done, order: Order, frame: usize) {
        if self.stopped.is_some() {
            return;
        }
        let task = self.tasks.current();
        let (kind, value) = match done {
            Done::Load { value } => (AccessKind::Read, value),
            Done::Store { new } | Done::Update { new, .. } => (AccessKind::Write, new),
        };
        if !matches!(done, Done::Store { .. }) {
            self.acquire(address, order, task);
        }
        let access = Access { address, bytes, kind };
        if self.sync.known.insert(access) {
            let origin = self.origin_of_call(frame);
            self.sync.accesses.push((access, origin));
        }
        let gave_back = self.give_back(address, done, order, task);
        if let Done::Update { old: 0, new, .. } = done
            && order.acquire
            && new != 0
        {
            self.take_lock(address, bytes, new, task);
        }
        self.sync.word(address, bytes, value).last = value;
        if gave_back {
            return;
        }
        match done {
            Done::Load { .. } => {
                if order.acquire && self.sync.hygiene.once {
                    Sync::remember(&mut self.sync.watched, (task, address));
                }
            }
            _ if order.release || self.sync.fenced == Some(task) => {
                self.release(address, matches!(done, Done::Update { .. }), task);
            }
            // A store that releases nothing ends what was released before.
            Done::Store { .. } => self.sync.word(address, bytes, value).released = None,
            Done::Update { .. } => {}
        }
    }

    /// The running task sees what others have released.
    fn acquire(&mut self, address: usize, order: Order, task: TaskId) {
        let Some(word) = self.sync.words.get_mut(&address) else { return };
        if !self.sync.hygiene.atomics || !word.has_news_for(task) {
            return;
        }
        if order.acquire {
            word.acquired = Some(task);
            let sync = word.sync;
            self.uses.atomics = true;
            self.event(Event::Acquire { task, sync });
        } else {
            Sync::remember(&mut self.sync.loaded, (task, address));
        }
    }

    fn release(&mut self, address: usize, update: bool, task: TaskId) {
        if !self.sync.hygiene.atomics {
            return;
        }
        let Some(word) = self.sync.words.get_mut(&address) else { return };
        let keep = update && word.released.is_some();
        word.released = match word.released {
            Some(by) if keep && by != Releasers::One(task) => Some(Releasers::Several),
            _ => Some(Releasers::One(task)),
        };
        word.acquired = None;
        let sync = word.sync;
        self.event(Event::Release { task, sync, keep });
    }

    fn take_lock(&mut self, address: usize, bytes: usize, taken: u64, task: TaskId) {
        let sync = &mut self.sync;
        if !sync.hygiene.locks || sync.held.iter().any(|held| held.task == task && held.address == address) {
            return;
        }
        let next = LockId(sync.locks);
        let word = sync.word(address, bytes, taken);
        let lock = *word.lock.get_or_insert(next);
        if lock == next {
            sync.locks += 1;
        }
        sync.held.push(Held { task, address, lock, free: 0, taken });
        self.event(Event::Lock { task, lock, mode: LockMode::Exclusive });
    }

    /// Did the operation give back a lock of the running task?
    fn give_back(&mut self, address: usize, done: Done, order: Order, task: TaskId) -> bool {
        let mine = |held: &Held| held.task == task && held.address == address;
        let (new, subtracted) = match done {
            Done::Store { new } => (new, None),
            Done::Update { old, new, subtracts } => (new, subtracts.then(|| old.wrapping_sub(new))),
            Done::Load { .. } => return false,
        };
        if !order.release {
            return false;
        }
        let Some(at) = self.sync.held.iter().position(mine) else { return false };
        let Held { lock, free, taken, .. } = self.sync.held.swap_remove(at);
        let amount = taken.wrapping_sub(free);
        if subtracted == Some(amount) && amount.is_power_of_two() {
            self.set_lock_mode(task, lock, LockMode::Shared);
        }
        self.event(Event::Unlock { task, lock });
        // A word that is left with another value was no lock: it was claimed, and is now published.
        let restored = new == free || subtracted == Some(amount);
        self.uses.locks |= restored;
        if restored && let Some(word) = self.sync.words.get_mut(&address) {
            word.released = None;
        }
        restored
    }

    fn set_lock_mode(&mut self, task: TaskId, lock: LockId, mode: LockMode) {
        if let Err(error) = self.stream.set_lock_mode(task, lock, mode) {
            self.stop(&error);
        }
    }

    /// The running task has come by a fence.
    pub fn fence(&mut self, order: Order) {
        let task = self.tasks.current();
        if order.acquire {
            let loaded = std::mem::take(&mut self.sync.loaded);
            let (mine, others): (VecDeque<_>, _) = loaded.into_iter().partition(|(by, _)| *by == task);
            self.sync.loaded = others;
            for (_, address) in mine {
                self.acquire(address, Order { acquire: true, release: false }, task);
            }
        }
        if order.release {
            self.sync.fenced = Some(task);
        }
    }

    /// The running strand is about to end: what code without hooks has done to the words it has loaded counts as
    /// released.
    #[inline]
    pub fn release_changed(&mut self) {
        self.sync.fenced = None;
        if !self.sync.watched.is_empty() {
            let task = self.tasks.current();
            while let Some((address, now)) = self.sync.changed(task, &self.image) {
                let Some(word) = self.sync.words.get_mut(&address) else { return };
                word.last = now;
                word.released = None;
                self.release(address, false, task);
            }
        }
    }

    /// The running task is on a worker from here on.
    pub fn worker_begin(&mut self, worker: u64) {
        let seat = (self.tasks.current(), worker);
        if !self.sync.hygiene.locks || self.sync.seats.contains(&seat) {
            return;
        }
        self.sync.seats.push(seat);
        let (lock, mode) = (LockId::of_worker(worker as u32), LockMode::Exclusive);
        self.event(Event::Lock { task: seat.0, lock, mode });
    }

    /// It leaves the worker, if it is there: it may have come while nothing was checked.
    pub fn worker_end(&mut self, worker: u64) {
        let seat = (self.tasks.current(), worker);
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
        let task = self.tasks.current();
        self.event(Event::Lock { task, lock: ISOLATED, mode: LockMode::Exclusive });
    }

    /// It leaves the section.
    pub fn isolated_end(&mut self) {
        let task = self.tasks.current();
        self.event(Event::Unlock { task, lock: ISOLATED });
    }
}
