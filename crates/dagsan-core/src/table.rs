//! A table by numbers that grow, of which old entries can be let go.
//!
//! ```text
//!   number       3    8    9   21 │ 22   23   24   25   26   27
//!   entry        a    b    c    d │  e    f    g    h    i    j
//!                old: those kept  │ recent: all, found by their number alone
//!
//!   pages        [ which of 64 numbers are kept │ how many are kept before them ]     one per 64 numbers
//! ```
//!
//! Old entries are found by the pages: one look at a page, one at the entry. If so few are kept that the pages would take more memory
//! than the entries, there are none, and entries are searched for.

/// See the module's documentation.
#[derive(Debug)]
pub struct Table<T> {
    /// By number.
    old: Vec<(u32, T)>,
    /// The number of the first recent entry.
    base: u32,
    recent: Vec<T>,
    /// Those of the old entries, or none.
    pages: Vec<Page>,
    /// The first of them.
    first_page: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Page {
    kept: u64,
    before: u32,
}

impl<T> Table<T> {
    /// Empty. The first entry has the number `base`.
    pub fn new(base: u32) -> Table<T> {
        Table { old: Vec::new(), base, recent: Vec::new(), pages: Vec::new(), first_page: 0 }
    }

    /// The number of the next entry.
    #[inline]
    pub fn next(&self) -> u32 {
        self.base + self.recent.len() as u32
    }

    /// Enters the next one.
    #[inline]
    pub fn push(&mut self, entry: T) {
        self.recent.push(entry);
    }

    /// The entry of a number, unless it was let go.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        match number.checked_sub(self.base) {
            Some(at) => self.recent.get(at as usize),
            None => self.find(number).map(|at| &self.old[at].1),
        }
    }

    /// The same, if it is found without a search.
    #[inline]
    pub fn recent(&self, number: u32) -> Option<&T> {
        number.checked_sub(self.base).and_then(|at| self.recent.get(at as usize))
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match number.checked_sub(self.base) {
            Some(at) => self.recent.get_mut(at as usize),
            None => self.find(number).map(|at| &mut self.old[at].1),
        }
    }

    #[inline]
    fn find(&self, number: u32) -> Option<usize> {
        if self.pages.is_empty() {
            return self.old.binary_search_by_key(&number, |&(number, _)| number).ok();
        }
        let page = self.pages.get((number / 64).checked_sub(self.first_page)? as usize)?;
        let bit = 1 << (number % 64);
        let earlier = (page.kept & (bit - 1)).count_ones();
        (page.kept & bit != 0).then_some((page.before + earlier) as usize)
    }

    /// Makes the pages, if they are worth it.
    fn make_pages(&mut self) {
        self.pages.clear();
        let (Some((first, _)), Some((last, _))) = (self.old.first(), self.old.last()) else { return };
        self.first_page = first / 64;
        let count = (last / 64 - self.first_page) as usize + 1;
        if count > self.old.len() {
            return;
        }
        self.pages.resize(count, Page::default());
        for (at, (number, _)) in self.old.iter().enumerate() {
            let page = &mut self.pages[(number / 64 - self.first_page) as usize];
            if page.kept == 0 {
                page.before = at as u32;
            }
            page.kept |= 1 << (number % 64);
        }
    }

    /// Enters one that was let go.
    pub fn restore(&mut self, number: u32, entry: T) {
        let at = self.old.partition_point(|&(other, _)| other < number);
        self.old.insert(at, (number, entry));
        self.pages.clear();
    }

    /// All entries with their numbers, which grow.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let old = self.old.iter().map(|(number, entry)| (*number, entry));
        old.chain((self.base..).zip(&self.recent))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.old.iter_mut().map(|(_, entry)| entry).chain(&mut self.recent)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.old.len() + self.recent.len()
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.old.is_empty() && self.recent.is_empty()
    }

    /// Have more than `recent` entries come since some were last let go, and so many that to look at all again costs no
    /// more than a constant per entry?
    #[inline]
    pub fn wants_collection(&self, recent: usize) -> bool {
        self.recent.len() > recent.max(2 * self.old.len())
    }

    /// Lets go all but what `keep` wants.
    pub fn retain(&mut self, mut keep: impl FnMut(u32, &T) -> bool) {
        let next = self.next();
        self.old.retain(|(number, entry)| keep(*number, entry));
        let recent = (self.base..).zip(self.recent.drain(..));
        self.old.extend(recent.filter(|(number, entry)| keep(*number, entry)));
        self.base = next;
        self.make_pages();
    }

    /// Lets all go. The next number is `next`.
    pub fn clear(&mut self, next: u32) {
        self.base = next;
        self.old.clear();
        self.recent.clear();
        self.pages.clear();
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.old.capacity() * size_of::<(u32, T)>()
            + self.recent.capacity() * size_of::<T>()
            + self.pages.capacity() * size_of::<Page>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found() {
        let mut table = Table::new(3);
        (3..100).for_each(|number| table.push(number * 10));
        table.retain(|number, &entry| {
            assert_eq!(entry, number * 10);
            number % 7 == 0
        });
        assert_eq!(table.next(), 100);
        (100..120).for_each(|number| table.push(number * 10));
        for round in 0..2 {
            let kept: Vec<u32> = (0..130).filter(|&number| table.get(number).is_some()).collect();
            let expected = |&number: &u32| {
                (3..120).contains(&number) && (number % 7 == 0 || (number >= 100 && round == 0))
            };
            assert_eq!(kept, (0..130).filter(expected).collect::<Vec<_>>());
            assert!(table.iter().all(|(number, &entry)| entry == number * 10));
            assert_eq!(table.iter().count(), kept.len());
            table.retain(|number, _| number % 7 == 0);
        }
        table.restore(50, 500);
        assert_eq!((table.get(50), table.get(51), table.next()), (Some(&500), None, 120));
        assert!(table.iter().all(|(number, &entry)| entry == number * 10));
        table.clear(500);
        assert!(table.is_empty() && table.next() == 500);
    }
    #[test]
    fn pages_say_the_same_as_a_search() {
        for step in [1, 2, 3, 63, 64, 65, 200] {
            let mut table = Table::new(70);
            (70..5000u32).for_each(|number| table.push(number));
            table.retain(|number, _| number % step == 0 || number > 4000 && number % 5 == 0);
            for number in 0..5100 {
                let kept =
                    (70..5000).contains(&number) && (number % step == 0 || number > 4000 && number % 5 == 0);
                assert_eq!(table.get(number), kept.then_some(&number), "{number} of every {step}");
            }
        }
    }
}
