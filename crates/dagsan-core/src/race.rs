//! Races, and the log that keeps one of each.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::access::AccessKind;
use crate::bytes::Location;
use crate::ids::{SiteId, StrandId, TaskId};

/// One side of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The strand that made the access.
    pub strand: StrandId,
    /// Its task.
    pub task: TaskId,
    /// Where in the source.
    pub site: SiteId,
    /// Read or write.
    pub kind: AccessKind,
    /// Was it in an isolated section, and isolation read as mutual exclusion?
    pub isolated: bool,
    /// Did its strand hold a lock?
    pub locked: bool,
    /// Did it hold, as a reader, a lock that the other side's strand held as a reader too?
    pub shares_lock: bool,
    /// Was it atomic?
    pub atomic: bool,
}

/// Two parallel accesses to the same bytes, at least one of them a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// The access that came first in the observed run.
    pub first: Access,
    /// The access that came second.
    pub second: Access,
    /// The bytes.
    pub location: Location,
    /// How often the same two sites raced on the same bytes again, with other strands or not.
    pub duplicates: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    sites: (SiteId, SiteId),
    kinds: (AccessKind, AccessKind),
    location: Location,
}

impl Key {
    fn of(race: &Race) -> Key {
        let Race { first, second, location, .. } = *race;
        Key { sites: (first.site, second.site), kinds: (first.kind, second.kind), location }
    }
}

/// The races found, one per pair of sites and location.
#[derive(Debug)]
pub struct RaceLog {
    races: Vec<Race>,
    index: FxHashMap<Key, usize>,
    limit: usize,
    dropped: u64,
    /// The sites that are an allocator's.
    allocators: FxHashMap<SiteId, Allocator>,
}

/// What an allocator does to a block, in the name of the task that has called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    /// It takes the block back.
    Frees,
    /// It writes a new block: zeroes, or what another one held.
    Fills,
}

impl RaceLog {
    /// Keeps at most `limit` races; more are only counted.
    pub fn new(limit: usize) -> RaceLog {
        RaceLog {
            races: Vec::new(),
            index: FxHashMap::default(),
            limit,
            dropped: 0,
            allocators: FxHashMap::default(),
        }
    }

    /// What is done at `site` is an allocator's doing.
    pub(crate) fn is_allocators(&mut self, site: SiteId, what: Allocator) {
        self.allocators.insert(site, what);
    }

    /// Blocks of code that no front end looks into, as a standard library, are passed from task to task under locks that nobody
    /// sees, and the allocator is all that is seen of it. Two such accesses are no race, unless both free the block. Code that is
    /// looked into touches a block besides, or the pointer to it.
    fn of_allocators(&self, first: SiteId, second: SiteId) -> bool {
        let of = |site| self.allocators.get(&site);
        matches!((of(first), of(second)), (Some(first), Some(second)) if (first, second) != (&Allocator::Frees, &Allocator::Frees))
    }

    /// Adds a race, and says whether it is kept: no other race of the same sites on the same bytes is.
    #[cold]
    pub(crate) fn add(&mut self, first: Access, second: Access, location: Location) -> bool {
        if self.of_allocators(first.site, second.site) {
            return false;
        }
        let race = Race { first, second, location, duplicates: 0 };
        let key = Key::of(&race);
        if let Some(&at) = self.index.get(&key) {
            self.races[at].duplicates += 1;
            false
        } else if self.races.len() < self.limit {
            self.index.insert(key, self.races.len());
            self.races.push(race);
            true
        } else {
            self.dropped += 1;
            false
        }
    }

    /// Takes back those of the races from number `from` on that were none: they do not count, and hide no others.
    pub(crate) fn withdraw(&mut self, from: usize, mut is_none: impl FnMut(&Race) -> bool) {
        for race in self.races.split_off(from) {
            let key = Key::of(&race);
            if is_none(&race) {
                self.index.remove(&key);
            } else {
                self.index.insert(key, self.races.len());
                self.races.push(race);
            }
        }
    }

    /// The races, in the order in which they were found.
    pub fn races(&self) -> &[Race] {
        &self.races
    }

    /// How many were found beyond the limit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Two places in the code whose atomic accesses to the same bytes are parallel, one of them a write. That is no race, but
/// what the other sees, or what is there in the end, may depend on the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Meeting {
    /// The place of the access that came first when they were first seen, and what it does.
    pub first: (SiteId, AccessKind),
    /// The other one.
    pub second: (SiteId, AccessKind),
}

/// The meetings, each once; of too many, some.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    all: Vec<Meeting>,
    known: FxHashSet<Meeting>,
}

/// So many meetings are kept.
const MEETINGS: usize = 10_000;

impl Meetings {
    /// Would it be kept?
    #[inline]
    pub(crate) fn wants(&self, meeting: &Meeting) -> bool {
        self.all.len() < MEETINGS && !self.known.contains(meeting)
    }

    pub(crate) fn add(&mut self, meeting: Meeting) {
        if self.known.insert(meeting) {
            self.all.push(meeting);
        }
    }

    pub(crate) fn all(&self) -> &[Meeting] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(strand: u32, site: u32) -> Access {
        let site = SiteId::new(site).unwrap_or_else(|| unreachable!("a small number"));
        let (strand, task, kind) = (StrandId(strand), TaskId(strand), AccessKind::Write);
        Access { strand, task, site, kind, isolated: false, locked: false, shares_lock: false, atomic: false }
    }

    #[test]
    fn what_allocators_do_is_no_race_and_takes_no_room_unless_both_free() {
        let mut log = RaceLog::new(2);
        let [free, fill, plain] = [1, 2, 3].map(|site| access(site, site));
        log.is_allocators(free.site, Allocator::Frees);
        log.is_allocators(fill.site, Allocator::Fills);
        let mut add = |a, b, line| log.add(a, b, Location { line, mask: 1 });
        assert!(!add(fill, free, 0) && !add(free, fill, 1) && !add(fill, fill, 2));
        assert!(add(free, free, 3) && add(plain, free, 4));
        assert_eq!((log.races().len(), log.dropped()), (2, 0));
    }

    #[test]
    fn what_is_withdrawn_counts_no_more_and_hides_nothing() {
        let mut log = RaceLog::new(3);
        let add = |log: &mut RaceLog, line| log.add(access(1, 1), access(2, 2), Location { line, mask: 1 });
        assert!((0..3).all(|line| add(&mut log, line)));
        assert!(!add(&mut log, 3) && log.dropped() == 1);
        log.withdraw(1, |race| race.location.line == 1);
        let lines = |log: &RaceLog| log.races().iter().map(|race| race.location.line).collect::<Vec<_>>();
        assert_eq!(lines(&log), [0, 2]);
        assert!(!add(&mut log, 2) && log.races()[1].duplicates == 1, "this one is still known");
        assert!(add(&mut log, 1), "this one is not");
        assert_eq!(lines(&log), [0, 2, 1]);
    }
}
