//! A table of lines: what is known of each is kept by pages of memory.
//!
//! ```text
//!   page number ─► cache (direct mapped) ─┬─► numbers[at] is that number?   ─► page at
//!                  else index (hash map) ─┘
//!
//!   pages   [ in use ……………………… | spare: emptied when they are taken ]     in chunks, which do not move
//!   numbers [ in use ……………………… ]
//! ```
//!
//! An entry of the cache is a guess, which the number of the page confirms: nothing has to be wiped when pages go. The cache grows with the
//! pages: accesses all over a large table find theirs at once, and can fetch them ahead.
//! Clearing costs as much as was touched since the last time, and keeps memory for as much again.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

/// Lines per page: a page is 4 KiB of memory.
pub(crate) const PAGE_LINES: u64 = 64;

/// So many pages are allocated at a time, and lie side by side.
const CHUNK: usize = 32;
const CHUNK_LINES: usize = CHUNK * PAGE_LINES as usize;

/// So many entries the cache has at least, and as many for each page. A power of two.
const CACHE: usize = 4096;
const ENTRIES: usize = 2;
/// So many pages are kept in any case.
const SPARE: usize = 16;
/// No page has this number: it would lie outside the address space.
const NONE: u64 = u64::MAX;

/// Where a line is: its page, and its place in the page.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    page: u32,
    pub(crate) slot: u32,
}

impl Place {
    /// The place of `line`, whose page is `page`.
    #[inline]
    pub(crate) fn new(page: u32, line: u64) -> Place {
        Place { page, slot: (line % PAGE_LINES) as u32 }
    }

    #[inline]
    fn in_chunk(self) -> usize {
        self.page as usize % CHUNK * PAGE_LINES as usize + self.slot as usize
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Pages<L> {
    index: FxHashMap<u64, u32>,
    /// A power of two of entries.
    cache: Vec<u32>,
    chunks: Vec<Box<[L; CHUNK_LINES]>>,
    /// The number of each page in use, or [`NONE`].
    numbers: Vec<u64>,
    /// Pages in use without a number; all their lines are empty.
    free: Vec<u32>,
}

impl<L: Copy + Default> Pages<L> {
    pub(crate) fn new() -> Pages<L> {
        Pages {
            index: FxHashMap::default(),
            cache: vec![0; CACHE],
            chunks: Vec::new(),
            numbers: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The place of a line, which is there from now on.
    #[inline]
    pub(crate) fn place(&mut self, line: u64) -> Place {
        let number = line / PAGE_LINES;
        let page = match self.cached(number) {
            Some(page) => page,
            None => self.look_up(number),
        };
        Place::new(page, line)
    }

    /// The place of a line, if it is quickly found.
    #[inline]
    pub(crate) fn lookup(&self, line: u64) -> Option<Place> {
        self.cached(line / PAGE_LINES).map(|page| Place::new(page, line))
    }

    /// The page of this number, if there is one.
    pub(crate) fn find(&self, number: u64) -> Option<u32> {
        self.cached(number).or_else(|| self.index.get(&number).copied())
    }

    /// The numbers of the pages from `first` to `last`, of those that are there.
    pub(crate) fn between(&self, first: u64, last: u64) -> Vec<u64> {
        // Walk the smaller of the two: the pages of the range or the pages there are.
        if last - first >= self.index.len() as u64 {
            self.index.keys().copied().filter(|number| (first..=last).contains(number)).collect()
        } else {
            (first..=last).filter(|number| self.index.contains_key(number)).collect()
        }
    }

    /// The place of a page in the cache.
    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & (self.cache.len() - 1)
    }

    #[inline]
    fn cached(&self, number: u64) -> Option<u32> {
        let guess = self.cache[self.slot(number)];
        self.numbers.get(guess as usize).is_some_and(|&found| found == number).then_some(guess)
    }

    fn look_up(&mut self, number: u64) -> u32 {
        let page = match self.index.get(&number) {
            Some(&page) => page,
            None => {
                let page = self.free.pop().unwrap_or_else(|| self.take_spare());
                self.numbers[page as usize] = number;
                self.index.insert(number, page);
                if self.cache.len() < ENTRIES * self.numbers.len() {
                    self.grow_cache();
                }
                page
            }
        };
        let slot = self.slot(number);
        self.cache[slot] = page;
        page
    }

    #[cold]
    fn grow_cache(&mut self) {
        self.cache = vec![0; 2 * ENTRIES * self.numbers.len().next_power_of_two()];
        for page in 0..self.numbers.len() {
            let slot = self.slot(self.numbers[page]);
            self.cache[slot] = page as u32;
        }
    }

    /// An empty page more.
    fn take_spare(&mut self) -> u32 {
        let page = self.numbers.len();
        match self.chunks.get_mut(page / CHUNK) {
            Some(chunk) => {
                let first = page % CHUNK * PAGE_LINES as usize;
                chunk[first..first + PAGE_LINES as usize].fill(L::default());
            }
            None => {
                let chunk = vec![L::default(); CHUNK_LINES].into_boxed_slice();
                self.chunks.push(chunk.try_into().unwrap_or_else(|_| unreachable!("the length is right")));
            }
        }
        self.numbers.push(NONE);
        page as u32
    }

    /// Gives back the page of this number, which is empty.
    pub(crate) fn remove(&mut self, number: u64) {
        if let Some(page) = self.index.remove(&number) {
            self.numbers[page as usize] = NONE;
            self.free.push(page);
        }
    }

    pub(crate) fn clear(&mut self) {
        let used = self.numbers.len();
        if used == 0 {
            return;
        }
        self.chunks.truncate((2 * used).max(SPARE).div_ceil(CHUNK));
        if self.cache.len() > CACHE.max(16 * ENTRIES * used) {
            self.cache = vec![0; CACHE];
        }
        self.numbers.clear();
        self.free.clear();
        // To clear a map costs as much as it could hold.
        if self.index.capacity() > 8 * used.max(SPARE) {
            self.index = FxHashMap::default();
        } else {
            self.index.clear();
        }
    }

    /// All lines.
    pub(crate) fn lines_mut(&mut self) -> impl Iterator<Item = &mut L> {
        let used = self.numbers.len() * PAGE_LINES as usize;
        self.chunks.iter_mut().flat_map(|chunk| chunk.iter_mut()).take(used)
    }

    /// How many pages there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.chunks.len() * size_of::<[L; CHUNK_LINES]>()
            + self.numbers.capacity() * size_of::<u64>()
            + self.cache.len() * size_of::<u32>()
    }
}

impl<L> Index<Place> for Pages<L> {
    type Output = L;

    #[inline]
    fn index(&self, place: Place) -> &L {
        &self.chunks[place.page as usize / CHUNK][place.in_chunk()]
    }
}

impl<L> IndexMut<Place> for Pages<L> {
    #[inline]
    fn index_mut(&mut self, place: Place) -> &mut L {
        &mut self.chunks[place.page as usize / CHUNK][place.in_chunk()]
    }
}

/// Has the processor fetch the memory at `at`, without waiting for it.
#[inline]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, for whatever address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks a line by its mask.
    fn mark(pages: &mut Pages<u64>, line: u64) {
        let place = pages.place(line);
        pages[place] = line + 1;
    }

    fn marked(pages: &mut Pages<u64>, line: u64) -> bool {
        let place = pages.place(line);
        pages[place] == line + 1
    }

    #[test]
    fn lines_are_found_again_in_the_cache_or_not() {
        let mut pages = Pages::new();
        let lines: Vec<u64> = (0..3000).map(|i| i * i * 7).chain([u64::MAX / 64]).collect();
        lines.iter().for_each(|&line| mark(&mut pages, line));
        assert!(lines.iter().all(|&line| marked(&mut pages, line)));
    }

    #[test]
    fn what_was_cleared_or_removed_is_empty() {
        let mut pages = Pages::new();
        for round in 0..3 {
            for line in 0..1000 {
                assert!(!marked(&mut pages, line), "round {round}");
                mark(&mut pages, line);
            }
            pages.clear();
            assert!(pages.find(0).is_none() && pages.between(0, 100).is_empty());
        }
        mark(&mut pages, 0);
        let place = pages.place(0);
        pages[place] = 0;
        pages.remove(0);
        assert!(pages.find(0).is_none());
        assert!(!marked(&mut pages, PAGE_LINES), "the page is used again, for another number");
        assert_eq!(pages.find(1), Some(0));
    }

    #[test]
    fn memory_follows_use() {
        let mut pages = Pages::new();
        (0..10_000).for_each(|page| mark(&mut pages, page * PAGE_LINES));
        let much = pages.memory();
        for _ in 0..3 {
            pages.clear();
            mark(&mut pages, 0);
        }
        assert!(pages.memory() < much / 4 && pages.index.capacity() < 1000);
    }
}
