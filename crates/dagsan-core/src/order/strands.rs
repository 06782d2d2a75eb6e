//! A table with an entry per strand since the last quiescent point.

use crate::ids::StrandId;
use crate::pages::prefetch;
use crate::table::Table;

/// Strands of quiescent times are never entered; as the table is emptied at a quiescent point, there are no gaps but
/// those that [`Strands::retain`] makes.
#[derive(Debug)]
pub(crate) struct Strands<T> {
    entries: Table<T>,
}

impl<T> Strands<T> {
    pub(crate) fn new() -> Strands<T> {
        Strands { entries: Table::new(0) }
    }

    /// Enters `strand`, unless it is there already.
    #[inline]
    pub(crate) fn enter(&mut self, strand: StrandId, entry: T) {
        if self.entries.is_empty() {
            self.entries.clear(strand.0);
        }
        debug_assert!(strand.0 <= self.next(), "{strand} skips a number");
        if self.next() == strand.0 {
            self.entries.push(entry);
        } else if self.entries.get(strand.0).is_none() {
            // It comes in pieces, and what it did before has been forgotten.
            self.entries.restore(strand.0, entry);
        }
    }

    /// The entry of a strand will soon be asked for: it will be in the processor's cache then.
    #[inline]
    pub(crate) fn expect(&self, strand: StrandId) {
        if let Some(entry) = self.entries.recent(strand.0) {
            prefetch(&raw const *entry);
        }
    }

    /// One more than the last number entered.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.entries.next()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// See [`Table::wants_collection`].
    #[inline]
    pub(crate) fn wants_collection(&self, recent: usize) -> bool {
        self.entries.wants_collection(recent)
    }

    /// Lets go all but `live`, whose numbers grow.
    pub(crate) fn retain(&mut self, live: &[StrandId]) {
        let mut live = live.iter().peekable();
        self.entries.retain(|number, _| {
            while live.next_if(|strand| strand.0 < number).is_some() {}
            live.peek().is_some_and(|strand| strand.0 == number)
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }

    pub(crate) fn forget(&mut self) {
        self.entries.clear(self.entries.next());
    }

    pub(crate) fn memory(&self) -> usize {
        self.entries.memory()
    }
}

impl<T> std::ops::Index<StrandId> for Strands<T> {
    type Output = T;

    #[inline]
    fn index(&self, strand: StrandId) -> &T {
        self.entries.get(strand.0).expect("the strand was entered, and not let go")
    }
}
