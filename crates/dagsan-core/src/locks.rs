//! Locks, read as mutual exclusion: two accesses do not race if their strands held a common lock, one of them
//! exclusively. Locks are no scopes, and add no edges: which section comes first is left open.
//!
//! ```text
//!   task     holds, sorted by lock            { lock 2 shared, lock 7 exclusive }
//!   strand   what its task held               the whole strand: locking and unlocking end strands
//!   history  a bit in the record, and the strand's lockset by number, asked for if both sides have the bit
//! ```
//!
//! This is the lockset of Eraser (Savage et al. 1997), but nothing is learnt from it: the locks of two
//! accesses are compared, not those of a location intersected. Which of them a task holds is kept in `held`. That sections
//! which depend on each other are ordered besides is the business of `sections`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ids::LockId;

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockMode {
    /// With others that hold it shared: a reader's lock.
    Shared,
    /// Alone.
    Exclusive,
}

/// A lock that a strand held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    /// Which.
    pub lock: LockId,
    /// How.
    pub mode: LockMode,
    /// Of a lock that tasks share because they are under it: which section of it they are part of. 0 if none is.
    pub family: u32,
}

/// The lock is the task's alone.
pub(crate) const NO_FAMILY: u32 = 0;

impl Held {
    /// Do the two, which hold the same lock, wait for each other?
    #[inline]
    fn excludes(self, other: Held) -> bool {
        self.mode.max(other.mode) == LockMode::Exclusive
            && (self.family != other.family || self.family == NO_FAMILY)
    }
}

impl LockId {
    /// What the tasks hold that are on a worker, which runs one task at a time: a lock that no program knows of.
    pub fn of_worker(worker: u32) -> LockId {
        LockId(WORKERS + worker % WORKERS)
    }

    /// Is it one of the program's?
    pub(crate) fn is_programs(self) -> bool {
        self.0 < WORKERS
    }
}

/// From this number on locks are those of workers.
const WORKERS: u32 = u32::MAX / 2;

/// The isolated section, where it is read as mutual exclusion: no lock of a program has its number.
pub(crate) const ISOLATED: Held =
    Held { lock: LockId(u32::MAX), mode: LockMode::Exclusive, family: NO_FAMILY };

/// Do the locks keep two strands apart? Both are sorted by lock.
pub(crate) fn exclude(a: &[Held], b: &[Held]) -> bool {
    a.iter().any(|mine| find(b, mine.lock).is_some_and(|at| mine.excludes(b[at])))
}

/// Do both hold a lock of the program's as readers? Both are sorted by lock.
pub(crate) fn share(a: &[Held], b: &[Held]) -> bool {
    let shared = |held: &Held| held.mode == LockMode::Shared && held.lock.is_programs();
    a.iter().filter(|mine| shared(mine)).any(|mine| find(b, mine.lock).is_some_and(|at| shared(&b[at])))
}

/// Does whoever excludes `a` exclude `b` too?
fn excludes_no_more(a: &[Held], b: &[Held]) -> bool {
    let no_more = |mine: &Held, other: Held| {
        other.mode >= mine.mode && (other.family == NO_FAMILY || other.family == mine.family)
    };
    a.iter().all(|mine| find(b, mine.lock).is_some_and(|at| no_more(mine, b[at])))
}

fn find(held: &[Held], lock: LockId) -> Option<usize> {
    held.binary_search_by_key(&lock, |held| held.lock).ok()
}

/// A set of held locks, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lockset(u32);

impl Lockset {
    pub(crate) const EMPTY: Lockset = Lockset(0);
}

/// The sets of locks that strands have held since the last quiescent point, as long as the strands are remembered.
#[derive(Debug)]
pub(crate) struct Locksets {
    numbers: FxHashMap<Arc<[Held]>, Lockset>,
    /// Set 0 is empty.
    sets: Vec<Arc<[Held]>>,
}

impl Locksets {
    pub(crate) fn new() -> Locksets {
        Locksets { numbers: FxHashMap::default(), sets: vec![Arc::default()] }
    }

    /// The number of a set that is sorted by lock. There are fewer sets than strands.
    pub(crate) fn intern(&mut self, held: &[Held]) -> Lockset {
        if held.is_empty() {
            return Lockset::EMPTY;
        }
        if let Some(&number) = self.numbers.get(held) {
            return number;
        }
        self.add(held.into())
    }

    fn add(&mut self, held: Arc<[Held]>) -> Lockset {
        let number = Lockset(self.sets.len() as u32);
        self.numbers.insert(Arc::clone(&held), number);
        self.sets.push(held);
        number
    }

    /// Keeps the sets that strands have, and tells them their new numbers.
    pub(crate) fn collect<'a>(&mut self, of_strands: impl Iterator<Item = &'a mut Lockset>) {
        let old = std::mem::replace(self, Locksets::new());
        let mut renamed = vec![None; old.sets.len()];
        renamed[0] = Some(Lockset::EMPTY);
        for set in of_strands {
            let number = set.0 as usize;
            *set = *renamed[number].get_or_insert_with(|| self.add(Arc::clone(&old.sets[number])));
        }
    }

    pub(crate) fn held(&self, set: Lockset) -> &[Held] {
        &self.sets[set.0 as usize]
    }

    /// Do the locks keep strands with these apart?
    pub(crate) fn exclude(&self, a: Lockset, b: Lockset) -> bool {
        exclude(self.held(a), self.held(b))
    }

    /// Does whoever excludes `a` exclude `b` too?
    pub(crate) fn excludes_no_more(&self, a: Lockset, b: Lockset) -> bool {
        a == b || excludes_no_more(self.held(a), self.held(b))
    }

    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.sets.truncate(1);
    }

    pub(crate) fn memory(&self) -> usize {
        let held: usize = self.sets.iter().map(|set| size_of_val::<[Held]>(set)).sum();
        held + self.sets.capacity() * size_of::<Arc<[Held]>>()
            + self.numbers.capacity() * size_of::<(Arc<[Held]>, Lockset)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sets over two locks, alone and in two families.
    fn all() -> Vec<Vec<Held>> {
        let modes = [LockMode::Shared, LockMode::Exclusive];
        let ways = modes.iter().flat_map(|&mode| (0..3).map(move |family| Some((mode, family))));
        let ways: Vec<_> = ways.chain([None]).collect();
        let pairs = ways.iter().flat_map(|&first| ways.iter().map(move |&second| [first, second]));
        pairs
            .map(|pair| {
                let held = (0..).map(LockId).zip(pair);
                held.filter_map(|(lock, way)| way.map(|(mode, family)| Held { lock, mode, family })).collect()
            })
            .collect()
    }

    #[test]
    fn excluding_no_more_is_what_its_name_says() {
        for a in all() {
            for b in all() {
                let plain = all().iter().all(|c| !exclude(&a, c) || exclude(&b, c));
                assert_eq!(excludes_no_more(&a, &b), plain, "{a:?} {b:?}");
                assert_eq!(exclude(&a, &b), exclude(&b, &a));
            }
        }
    }

    #[test]
    fn workers_are_told_from_locks_and_from_sections() {
        let workers = [0, 1, WORKERS - 1].map(LockId::of_worker);
        assert!(workers.iter().all(|worker| !worker.is_programs() && *worker != ISOLATED.lock));
        assert!(workers[0] != workers[1] && LockId(0).is_programs());
    }

    #[test]
    fn readers_do_not_exclude_each_other() {
        let held = |mode| [Held { lock: LockId(4), mode, family: NO_FAMILY }];
        let (shared, exclusive) = (held(LockMode::Shared), held(LockMode::Exclusive));
        assert!(!exclude(&shared, &shared) && share(&shared, &shared) && !share(&shared, &exclusive));
        assert!(exclude(&shared, &exclusive) && exclude(&exclusive, &exclusive));
        assert!(!exclude(&exclusive, &[Held { lock: LockId(5), ..exclusive[0] }]));
    }

    #[test]
    fn equal_sets_have_one_number_until_all_is_forgotten() {
        let mut sets = Locksets::new();
        let shared = [Held { lock: LockId(1), mode: LockMode::Shared, family: NO_FAMILY }];
        let number = sets.intern(&shared);
        assert_eq!(sets.intern(&shared), number);
        assert_ne!(sets.intern(&[ISOLATED]), number);
        assert_eq!(sets.intern(&[]), Lockset::EMPTY);
        sets.clear();
        assert_eq!((sets.numbers.len(), sets.sets.len()), (0, 1));
    }

    #[test]
    fn sets_go_with_the_strands_that_had_them() {
        let mut sets = Locksets::new();
        let held = |lock| [Held { lock: LockId(lock), mode: LockMode::Exclusive, family: NO_FAMILY }];
        let mut strands: Vec<Lockset> = (0..100).map(|lock| sets.intern(&held(lock))).collect();
        let mut kept = [strands[70], Lockset::EMPTY, strands[7], strands[70]];
        strands.clear();
        sets.collect(kept.iter_mut());
        assert_eq!(kept.map(|set| sets.held(set).to_vec()), [&held(70)[..], &[], &held(7), &held(70)]);
        assert_eq!((sets.sets.len(), sets.numbers.len()), (3, 2));
        assert_eq!((sets.intern(&held(7)), kept[0]), (kept[2], kept[3]));
    }

    #[test]
    fn a_family_is_not_kept_apart() {
        let held = |family| [Held { lock: LockId(4), mode: LockMode::Exclusive, family }];
        assert!(!exclude(&held(3), &held(3)));
        assert!(exclude(&held(3), &held(4)) && exclude(&held(3), &held(NO_FAMILY)));
    }
}
