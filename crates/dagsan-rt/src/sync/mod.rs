//! What atomic operations say about order: locks, and releases that an acquire sees.
//!
//! ```text
//!   sync     an operation comes by here: an access, perhaps an acquire or a release, perhaps of a lock
//!   words    what is known of each word
//!   locks    which operations take a lock, and which give it back
//!   holding  what becomes of that: who holds which lock, and how
//!   fences   fences
//!   futex    threads that wait, and what they give back meanwhile
//!   polls    files whose events threads wait for
//!   relaxed  operations that say nothing about order
//!   lately   those of them that say nothing new
//!   standing the same, if others have made them
//!   once     words that code without hooks changes
//!   library  functions of the standard library without hooks, of which the program tells
//!   workers  locks that are no words
//! ```
//!
//! **Accesses.** An atomic access never races with another one, and does with a plain one: atomic operations are
//! accesses of their own kind.
//!
//! **Locks.** Accesses under a common lock, held exclusively by one of the two at least, exclude each other; sections that
//! depend on each other come in the order of the run, and others in none (`dagsan_core`, sections).
//!
//! **Release and acquire.** Every other acquire comes after the releases that it sees: `Arc` counts, flags, channels.
//! This is the order of the run at hand, and the verdict says so. A store begins a new release sequence; a
//! read-modify-write continues the one it finds.

mod fences;
mod futex;
pub mod holding;
mod lately;
mod library;
mod locks;
mod once;
mod polls;
mod relaxed;
pub mod standing;
mod words;
mod workers;

use std::ops::Range;

use dagsan_core::{AccessKind, Bytes, Event, Location, LockId, Run, Span, SyncId, TaskId};
use rustc_hash::FxHashSet;

use crate::log;
use crate::options::Hygiene;
use crate::outbox::Outbox;
use crate::peek::peek;
use crate::session::Session;
use crate::shared::Shared;
use crate::sites::{Origin, Sites};
use crate::uses::Use;
use crate::watched::Watched;
use fences::Fences;
use futex::Futexes;
pub use lately::Lately;
pub use locks::Change;
use locks::{Held, LockWords};
use once::Watch;
use polls::Polls;
pub use standing::Standing;
use words::{Merge, Releasers, Words};
use workers::{ISOLATED, Seats};

/// The memory order of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub acquire: bool,
    pub release: bool,
}

impl Order {
    /// Acquire and release.
    pub const BOTH: Order = Order { acquire: true, release: true };
    const ACQUIRE: Order = Order { acquire: true, release: false };
    const RELAXED: Order = Order { acquire: false, release: false };

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
    /// It was a relaxed compare-exchange, saw another value than was wanted, and wrote none.
    Failed { value: u64 },
    /// It wrote one.
    Store { new: u64 },
    /// It saw one and wrote another.
    Update { old: u64, new: u64, change: Change },
}

impl Done {
    /// What it did to the word, and the value that is there now.
    #[inline]
    fn access(self) -> (AccessKind, u64) {
        match self {
            Done::Load { value } | Done::Failed { value } => (AccessKind::Read, value),
            Done::Store { new } | Done::Update { new, .. } => (AccessKind::Write, new),
        }
    }
}

/// Has the running strand done the same to this word before, or somebody who stands for it, so that nobody need hear of it? For the thread
/// that runs the tasks; `frame` is that of the hook.
#[inline]
pub fn says_nothing(address: usize, bytes: usize, done: Done, order: Order, frame: usize) -> bool {
    if order != Order::RELAXED {
        return false;
    }
    let uses = Use::announced(done);
    // SAFETY: above the frame pointer of a function is its return address.
    let code = || log::code(unsafe { *(frame as *const usize).add(1) });
    let known = lately::knows(address, bytes, done, uses)
        || standing::is_open_to(done) && standing::knows(address, bytes, done, uses, code());
    if known {
        Use::is_heard();
    }
    known
}

/// The next operation on any word may say something.
#[inline]
fn says_something() {
    lately::forget();
    standing::forget_all();
}

/// An atomic access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Access {
    address: usize,
    bytes: usize,
    kind: AccessKind,
    uses: Use,
}

/// One that was made.
#[derive(Debug, Clone, Copy)]
struct Made {
    access: Access,
    origin: Origin,
    /// May it stand for others?
    stands: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Sync {
    hygiene: Hygiene,
    words: Words,
    locks: LockWords,
    fences: Fences,
    watch: Watch,
    seats: Seats,
    futexes: Futexes,
    polls: Polls,
    /// The atomic accesses of the running strand.
    accesses: Vec<Made>,
    known: FxHashSet<Access>,
    /// How many acquires of atomics have brought something new.
    acquired: u64,
}

impl Sync {
    pub fn new(hygiene: Hygiene) -> Sync {
        Sync {
            hygiene,
            words: Words::default(),
            locks: LockWords::new(LockId(ISOLATED.0 + 1)),
            fences: Fences::default(),
            watch: Watch::new(),
            seats: Seats::new(),
            futexes: Futexes::default(),
            polls: Polls::default(),
            accesses: Vec::new(),
            known: FxHashSet::default(),
            acquired: 0,
        }
    }

    /// How many acquires of atomics have brought something new, if the engine tells.
    pub fn acquired(&self) -> u64 {
        self.acquired
    }

    /// Is there nothing that the end of a strand or a task must be compared with: no lock held or lost, no word that code without
    /// hooks may change, nobody on a worker?
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.watch.is_empty() && self.locks.is_idle() && self.seats.is_empty()
    }

    /// Do relaxed operations of the task on this word mean nothing but an access?
    fn is_quiet(&self, address: usize, task: TaskId) -> bool {
        self.watch.is_empty() && !self.locks.is_held(address) && self.fences.latest(task).is_none()
    }

    /// Has the running strand accessed something atomically?
    #[inline]
    pub fn has_accesses(&self) -> bool {
        !self.accesses.is_empty()
    }

    /// Does this hold for all lines that it has accessed so?
    pub fn all_lines(&self, holds: impl Fn(u64) -> bool) -> bool {
        self.accesses
            .iter()
            .all(|made| holds(standing::location(made.access.address, made.access.bytes).line))
    }

    /// Brings the atomic accesses of the running strand to `outbox`, without the bytes that `drop` picks of a line.
    pub fn bring<F: FnMut(&[Span])>(
        &self,
        sites: &mut Sites,
        outbox: &mut Outbox<F>,
        drop: impl Fn(u64) -> u64,
    ) {
        for &Made { access, origin, .. } in &self.accesses {
            let Ok(bytes) = Bytes::new(access.address as u64, access.bytes as u64) else { continue };
            let site = sites.number_of_atomic(origin, access.uses);
            for (line, mask) in bytes.lines() {
                let at = Location { line, mask: mask & !drop(line) };
                outbox.push(Run { at, kind: access.kind, site, atomic: true });
            }
        }
    }

    /// The atomic accesses of the running strand have been told, or contracted. Those that stand for others are kept, if any are; `only` says which
    /// of some bytes are accessed atomically only.
    pub fn told(
        &mut self,
        sites: &mut Sites,
        shared: &mut Shared,
        keeps: bool,
        detector: &Watched,
        only: impl Fn(Location) -> u64,
    ) {
        self.known.clear();
        lately::forget();
        let keeps = keeps && shared.is_on() && sites.depth().is_none();
        let quiet = self.watch.is_empty() && self.fences.is_empty();
        for Made { access, origin, stands } in self.accesses.drain(..) {
            if !(keeps && quiet && stands) {
                continue;
            }
            let side = (sites.number_of_atomic(origin, access.uses), access.kind);
            let has_met = access.kind == AccessKind::Read || detector.have_met(side, side);
            let at @ Location { line, .. } = standing::location(access.address, access.bytes);
            if has_met && only(at) == at.mask {
                standing::remember(&access, origin.code);
                shared.keep(line..line + 1);
            }
        }
    }

    /// All that was precedes all that comes.
    pub fn forget(&mut self) {
        let locks = &self.locks;
        says_something();
        self.words.quiesce(|address| locks.is_held(address) || locks.is_handed(address));
        self.fences.quiesce();
        self.watch.clear();
        self.futexes.clear();
        self.polls.clear();
    }

    /// Something by which a task runtime orders tasks; the caller is its owner.
    pub fn new_order(&mut self) -> SyncId {
        self.words.objects.new_object()
    }

    /// It is about to be released: does that add to what others have released by it?
    pub fn keeps_order(&mut self, order: SyncId) -> bool {
        self.words.objects.keeps(order)
    }

    /// Its owner has no use for it any more.
    pub fn drop_order(&mut self, order: SyncId) {
        self.words.objects.drop_object(order);
    }

    /// The task has ended.
    #[inline]
    pub fn task_ended(&mut self, task: TaskId) {
        for held in self.locks.task_ended(task) {
            self.words.is_another_lock(held.address);
        }
        for object in self.fences.task_ended(task) {
            self.words.objects.drop_object(object);
        }
        if !self.seats.is_empty() {
            self.seats.retain(|(by, _)| *by != task);
        }
        if !self.watch.is_empty() {
            self.watch.task_ended(task);
        }
    }
}

impl Session {
    /// The running task has performed an atomic operation.
    pub fn atomic(&mut self, address: usize, bytes: usize, done: Done, order: Order, frame: usize) {
        if self.stopped.is_some() || order == Order::RELAXED && self.relaxed(address, bytes, done, frame) {
            return;
        }
        let task = self.told();
        self.take_again(match done {
            Done::Update { old, .. } => Some((address, old)),
            _ => None,
        });
        let (kind, value) = done.access();
        let before = self.sync.words.get_mut(address);
        let news = before.as_ref().is_some_and(|word| word.has_news_for(task));
        let before = before.and_then(|word| word.last);
        if news && !matches!(done, Done::Store { .. }) {
            self.acquire(address, order, task);
        }
        let uses = Use::of(done, before);
        let access = Access { address, bytes, kind, uses };
        let is_new = self.sync.known.insert(access);
        if is_new {
            let origin = self.origin_of_call(frame);
            self.sync.accesses.push(Made { access, origin, stands: false });
        }
        let is_locks = self.lock_operation(address, bytes, done, order, task);
        if order.acquire && !is_locks {
            self.waited_for_lock(address, task);
        }
        let relaxed = order == Order::RELAXED && !is_locks && self.sync.is_quiet(address, task);
        let word = self.sync.words.entry(address, bytes, value);
        (word.last, word.seen_by) = (Some(value), (kind == AccessKind::Read).then_some(self.tasks.name()));
        if relaxed && word.is_quiet() {
            if matches!(done, Done::Update { .. }) {
                // It will be changed unseen.
                word.last = None;
            }
            if is_new && let Some(made) = self.sync.accesses.last_mut() {
                made.stands = standing::is_open_to(done);
            }
            return lately::remember(address, bytes, done, uses);
        }
        says_something();
        if is_locks {
            return;
        }
        match done {
            Done::Load { .. } | Done::Failed { .. } => {
                if order.acquire && is_new && self.sync.hygiene.once {
                    self.sync.watch.loaded(task, address, bytes, value);
                }
            }
            Done::Store { .. } | Done::Update { .. } => {
                let update = matches!(done, Done::Update { .. });
                if order.release {
                    self.release(address, update, task);
                } else {
                    self.store(address, update, task);
                }
            }
        }
    }

    /// The running task sees what others have released.
    fn acquire(&mut self, address: usize, order: Order, task: TaskId) {
        let Some(word) = self.sync.words.get_mut(address) else { return };
        if !self.sync.hygiene.atomics || !word.has_news_for(task) {
            return;
        }
        if !order.acquire {
            return self.load(address, task);
        }
        word.acquired = Some(task);
        let objects = word.passes_on_to(task);
        self.uses.atomics = true;
        for sync in objects {
            self.counted_acquire(task, sync);
        }
    }

    /// The running task has loaded a word, of which a fence may make an acquire.
    fn load(&mut self, address: usize, task: TaskId) {
        for merge in self.sync.words.load(address, task, &mut self.sync.fences) {
            self.merge(task, merge);
        }
    }

    /// Of two objects one is left.
    fn merge(&mut self, task: TaskId, Merge { from, to, keep }: Merge) {
        self.event(Event::Pass { task, from, to, keep });
        self.sync.words.objects.let_go(from);
    }

    fn counted_acquire(&mut self, task: TaskId, sync: SyncId) {
        let before = self.stream.consumer().acquired();
        self.event(Event::Acquire { task, sync });
        let after = self.stream.consumer().acquired();
        self.sync.acquired += after.zip(before).map_or(1, |(after, before)| after - before);
    }

    fn release(&mut self, address: usize, update: bool, task: TaskId) {
        if !self.sync.hygiene.atomics {
            return;
        }
        // What a fence has released this releases too.
        self.sync.words.pass_on(address, update, None);
        let (is_new, merges) = self.sync.words.begin_part(address, update, task, &mut self.sync.fences);
        for merge in merges {
            self.merge(task, merge);
        }
        let Some(word) = self.sync.words.get_mut(address) else { return };
        let keep = update && word.released.is_some();
        word.released = match word.released {
            Some(by) if keep && by != Releasers::One(task) => Some(Releasers::Several),
            _ => Some(Releasers::One(task)),
        };
        word.acquired = None;
        let sync = word.sync;
        self.event(Event::Release { task, sync, keep: keep && !is_new });
    }

    /// A store, or an update, that releases nothing by itself: what it passes on is that of the latest fence. A store ends what
    /// was released before.
    fn store(&mut self, address: usize, update: bool, task: TaskId) {
        let sync = &mut self.sync;
        let fence = sync.fences.latest(task).filter(|_| sync.hygiene.atomics);
        if !update && let Some(word) = sync.words.get_mut(address) {
            word.released = None;
        }
        sync.words.pass_on(address, update, fence.map(|fence| (task, fence)));
    }

    /// What is at these addresses will be other memory: other words, and other locks.
    #[inline]
    pub fn forget_words(&mut self, range: Range<usize>) {
        self.sync.futexes.forget(&range, &mut self.sync.words.objects);
        if self.sync.words.forget(&range, &mut self.sync.fences) {
            says_something();
            self.sync.watch.forget(&range);
            for Held { task, lock, .. } in self.sync.locks.forget(&range) {
                self.lost(task, lock);
            }
        }
    }

    /// The running task has come by a fence.
    pub fn fence(&mut self, order: Order) {
        if self.stopped.is_some() {
            return;
        }
        let task = self.told();
        says_something();
        if order.acquire {
            for (address, loaded) in self.sync.fences.take_loaded(task) {
                self.uses.atomics = true;
                if let Some(word) = self.sync.words.get_mut(address) {
                    word.has_passed_fence(task, &loaded.seen);
                }
                for object in loaded.objects() {
                    self.counted_acquire(task, object);
                    self.sync.words.objects.let_go(object);
                }
            }
        }
        if order.release && self.sync.hygiene.atomics {
            let (fences, objects) = (&mut self.sync.fences, &mut self.sync.words.objects);
            let sync = match fences.latest(task) {
                Some(latest) if !objects.is_held(latest) => latest,
                Some(latest) => {
                    objects.drop_object(latest);
                    objects.new_object()
                }
                None => objects.new_object(),
            };
            fences.release(task, sync);
            self.sync.locks.fence(task);
            self.event(Event::Release { task, sync, keep: false });
        }
    }

    /// The running strand is about to end: what code without hooks has done to the words it has loaded counts as
    /// released.
    #[inline]
    pub fn release_changed(&mut self) {
        if !self.sync.watch.is_empty() {
            self.look_at_watched();
        }
    }

    #[cold]
    fn look_at_watched(&mut self) {
        let task = self.told();
        for watched in self.sync.watch.take(task) {
            let Some(word) = self.sync.words.get_mut(watched.address) else { continue };
            // One that cannot be looked at is gone.
            let Some(value) = peek(watched.address, word.bytes, &self.image) else { continue };
            let changed = (Some(value) != word.last).then_some(value);
            self.sync.watch.looked_at(watched, changed);
            if changed.is_some() {
                (word.last, word.released) = (Some(value), None);
                self.release(watched.address, false, task);
            }
        }
    }
}
