//! Races, and the log that keeps one of each.

use rustc_hash::FxHashMap;

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

/// The races found, one per pair of sites and location.
#[derive(Debug)]
pub struct RaceLog {
    races: Vec<Race>,
    index: FxHashMap<Key, usize>,
    limit: usize,
    dropped: u64,
}

impl RaceLog {
    /// Keeps at most `limit` races; more are only counted.
    pub fn new(limit: usize) -> RaceLog {
        RaceLog { races: Vec::new(), index: FxHashMap::default(), limit, dropped: 0 }
    }

    /// Adds a race, and says whether it is kept: no other race of the same sites on the same bytes is.
    #[cold]
    pub(crate) fn add(&mut self, first: Access, second: Access, location: Location) -> bool {
        let key = Key { sites: (first.site, second.site), kinds: (first.kind, second.kind), location };
        if let Some(&at) = self.index.get(&key) {
            self.races[at].duplicates += 1;
            false
        } else if self.races.len() < self.limit {
            self.index.insert(key, self.races.len());
            self.races.push(Race { first, second, location, duplicates: 0 });
            true
        } else {
            self.dropped += 1;
            false
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
