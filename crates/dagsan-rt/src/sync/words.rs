//! The words that atomic operations use: what was seen of each, and who has released it.
//!
//! A word is one as long as its memory is: what is freed, or was on the stack of a task that has ended, is forgotten, and what
//! comes to the same address is another word, another lock, another object.
//!
//! **Parts.** Who loads a word without acquire order may acquire by a fence what it has seen, and nothing that is released later
//! (`fences`). So releases go to another object from there on, and the word passes on both. When nobody needs to tell two of them apart
//! any more, they become one: there are no more than tasks that have loaded the word, and one.

use std::collections::BTreeMap;
use std::ops::Range;

use dagsan_core::{LockId, LockMode, SyncId, TaskId};
use rustc_hash::FxHashMap;

use super::fences::{Fences, Loaded};

/// What is known about a word.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) bytes: usize,
    /// The value that was seen or written last, if it was not changed since by operations that say nothing (`lately`).
    pub(super) last: Option<u64>,
    pub(super) lock: Option<LockId>,
    /// What those have released who have given it back, if it is a lock and there are threads. That is for those who take it in another
    /// way than locks are known to be taken, where they have waited for it.
    pub(super) unlocked: Option<SyncId>,
    /// Has a task given back what another had taken? Then it is no lock, but says something to somebody.
    pub(super) is_passed_on: bool,
    /// What readers add to it, if it was seen to be a lock for reading.
    pub(super) reader: Option<u64>,
    /// What writers make of it, if it was seen to be a lock for writing.
    pub(super) writer: Option<u64>,
    /// Who has looked at it last, since it was changed, by name.
    pub(super) seen_by: Option<u64>,
    /// What is released goes here.
    pub(super) sync: SyncId,
    /// Where it went before, the oldest first.
    older: Vec<SyncId>,
    /// Who has loaded it without acquire order since its last fence. Some may have ended.
    loaders: Vec<TaskId>,
    /// Who has released it since its last store that was none.
    pub(super) released: Option<Releasers>,
    /// Who has acquired it last, after the latest release.
    pub(super) acquired: Option<TaskId>,
    /// The fences whose releases it passes on, and whose they are.
    pub(super) fences: Vec<(TaskId, SyncId)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Releasers {
    One(TaskId),
    Several,
}

impl Word {
    /// How somebody holds it who has made this of it, and may have counted.
    pub(super) fn mode(&self, taken: u64, counted: bool) -> LockMode {
        let shared = self.reader == Some(taken) || counted && self.writer != Some(taken);
        if shared { LockMode::Shared } else { LockMode::Exclusive }
    }

    /// Has nobody released it?
    pub(super) fn is_quiet(&self) -> bool {
        self.released.is_none() && self.fences.is_empty()
    }

    /// The objects by which it tells `task` what others have released.
    pub(super) fn passes_on_to(&self, task: TaskId) -> Vec<SyncId> {
        let released = self.older.iter().copied().chain([self.sync]).filter(|_| self.released.is_some());
        let fences = self.fences.iter().filter(|(by, _)| *by != task).map(|(_, fence)| *fence);
        released.chain(fences).collect()
    }

    /// `task` has loaded it, and come by a fence: it has acquired these objects.
    pub(super) fn has_passed_fence(&mut self, task: TaskId, seen: &[SyncId]) {
        self.loaders.retain(|&by| by != task);
        if self.passes_on_to(task) == seen {
            self.acquired = Some(task);
        }
    }

    /// Is there a release that `task` has not heard of?
    pub(super) fn has_news_for(&self, task: TaskId) -> bool {
        let own = self.released.is_some_and(|by| by != Releasers::One(task));
        (own || self.fences.iter().any(|(by, _)| *by != task)) && self.acquired != Some(task)
    }
}

/// Of two objects the one has what both had, besides what it has kept; the other one is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merge {
    pub(super) from: SyncId,
    pub(super) to: SyncId,
    pub(super) keep: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: FxHashMap<usize, Word>,
    /// The addresses of the words, by pages.
    pages: BTreeMap<usize, Vec<usize>>,
    pub(super) objects: Objects,
}

const PAGE_SHIFT: u32 = 10;

impl Words {
    pub(super) fn get_mut(&mut self, address: usize) -> Option<&mut Word> {
        self.words.get_mut(&address)
    }

    /// The word at an address, which is new if it is not known.
    pub(super) fn entry(&mut self, address: usize, bytes: usize, value: u64) -> &mut Word {
        self.words.entry(address).or_insert_with(|| {
            self.pages.entry(address >> PAGE_SHIFT).or_default().push(address);
            Word {
                bytes,
                last: Some(value),
                lock: None,
                unlocked: None,
                is_passed_on: false,
                reader: None,
                writer: None,
                seen_by: None,
                sync: self.objects.new_object(),
                older: Vec::new(),
                loaders: Vec::new(),
                released: None,
                acquired: None,
                fences: Vec::new(),
            }
        })
    }

    /// The addresses of the words of so many bytes in a range, in their order.
    pub(super) fn within(&self, range: &Range<usize>, bytes: usize) -> Vec<usize> {
        let pages = range.start >> PAGE_SHIFT..=range.end >> PAGE_SHIFT;
        let addresses = self.pages.range(pages).flat_map(|(_, addresses)| addresses.iter().copied());
        let wanted = |address: &usize| {
            range.contains(address) && self.words.get(address).is_some_and(|word| word.bytes == bytes)
        };
        let mut addresses: Vec<usize> = addresses.filter(wanted).collect();
        // With a key of its own: a program that sorts plain numbers would be linked to this copy of the sort, which has no hooks.
        addresses.sort_unstable_by_key(|&address| address);
        addresses
    }

    /// Whoever takes the word at an address from here on takes another lock.
    pub(super) fn is_another_lock(&mut self, address: usize) {
        if let Some(word) = self.words.get_mut(&address) {
            word.lock = None;
        }
    }

    /// What is at these addresses will be other memory. Were there words?
    pub(super) fn forget(&mut self, range: &Range<usize>, fences: &mut Fences) -> bool {
        let mut any = false;
        if range.is_empty() || self.words.is_empty() {
            return false;
        }
        let pages = range.start >> PAGE_SHIFT..=(range.end - 1) >> PAGE_SHIFT;
        let mut empty = Vec::new();
        for (&page, addresses) in self.pages.range_mut(pages) {
            for address in addresses.extract_if(.., |address| range.contains(address)) {
                any = true;
                if let Some(word) = self.words.remove(&address) {
                    let loaded = word.loaders.iter().filter_map(|&by| fences.forget(by, address));
                    for object in loaded.flat_map(|loaded| loaded.objects().collect::<Vec<_>>()) {
                        self.objects.let_go(object);
                    }
                    self.objects.drop_object(word.sync);
                    word.older.iter().for_each(|&older| self.objects.let_go(older));
                    word.unlocked.iter().for_each(|&unlocked| self.objects.drop_object(unlocked));
                    word.fences.iter().for_each(|&(_, fence)| self.objects.let_go(fence));
                }
            }
            if addresses.is_empty() {
                empty.push(page);
            }
        }
        empty.iter().for_each(|page| _ = self.pages.remove(page));
        any
    }

    /// All that was precedes all that comes: only locks that are held are still of interest.
    pub(super) fn quiesce(&mut self, held: impl Fn(usize) -> bool) {
        self.words.retain(|address, _| held(*address));
        self.pages.clear();
        for &address in self.words.keys() {
            self.pages.entry(address >> PAGE_SHIFT).or_default().push(address);
        }
        self.objects = Objects::default();
        for word in self.words.values_mut() {
            (word.released, word.acquired, word.unlocked) = (None, None, None);
            word.fences.clear();
            (word.older, word.loaders) = (Vec::new(), Vec::new());
            word.sync = self.objects.new_object();
        }
    }

    /// `task` has loaded the word without acquire order. What is to be merged?
    pub(super) fn load(&mut self, address: usize, task: TaskId, fences: &mut Fences) -> Vec<Merge> {
        let Some(word) = self.words.get_mut(&address) else { return Vec::new() };
        let seen = word.passes_on_to(task);
        let known = fences.loaded(task, address);
        if known.as_ref().is_some_and(|known| known.seen == seen) {
            return Vec::new();
        }
        seen.iter().for_each(|&object| self.objects.hold(object));
        let Some(known) = known else {
            if word.loaders.len() >= 8 && word.loaders.len().is_power_of_two() {
                word.loaders.retain(|&by| fences.loaded(by, address).is_some());
            }
            word.loaders.push(task);
            fences.load(task, address, Loaded { before: None, seen });
            return Vec::new();
        };
        let mut merges = Vec::new();
        for from in std::mem::replace(&mut known.seen, seen) {
            if known.seen.contains(&from) {
                self.objects.let_go(from);
                continue;
            }
            // A store has begun anew.
            match known.before {
                Some(to) => merges.push(Merge { from, to, keep: true }),
                None if !self.objects.is_held(from) => known.before = Some(from),
                None => {
                    let to = self.objects.new_object();
                    known.before = Some(to);
                    merges.push(Merge { from, to, keep: false });
                }
            }
        }
        merges
    }

    /// `task` is about to release the word, besides what was released before or not. Is what it releases into new, so that there is
    /// nothing to keep, and what is to be merged?
    pub(super) fn begin_part(
        &mut self,
        address: usize,
        keep: bool,
        task: TaskId,
        fences: &mut Fences,
    ) -> (bool, Vec<Merge>) {
        let Some(word) = self.words.get_mut(&address) else { return (false, Vec::new()) };
        let objects = &mut self.objects;
        if !keep || word.released.is_none() {
            word.older.drain(..).for_each(|older| objects.let_go(older));
            if objects.is_held(word.sync) {
                let old = std::mem::replace(&mut word.sync, objects.new_object());
                objects.drop_object(old);
            }
            return (false, Vec::new());
        }
        let mut has_seen = |by: TaskId, object: SyncId| {
            fences.loaded(by, address).is_some_and(|loaded| loaded.seen.contains(&object))
        };
        // What it has released itself is no news to it.
        let is_seen = objects.is_held(word.sync)
            && word.loaders.iter().any(|&by| by != task && has_seen(by, word.sync));
        if !is_seen {
            return (false, Vec::new());
        }
        word.older.push(std::mem::replace(&mut word.sync, objects.new_object()));
        let mut merges = Vec::new();
        let mut at = 0;
        while let Some(&[to, from]) = word.older.get(at..at + 2) {
            if word.loaders.iter().any(|&by| has_seen(by, to) && !has_seen(by, from)) {
                at += 1;
                continue;
            }
            word.older.remove(at + 1);
            merges.push(Merge { from, to, keep: true });
        }
        for &by in &word.loaders {
            let Some(loaded) = fences.loaded(by, address) else { continue };
            let gone = loaded.seen.extract_if(.., |object| merges.iter().any(|merge| merge.from == *object));
            gone.for_each(|object| objects.let_go(object));
        }
        (true, merges)
    }

    /// Passes on what a fence of `task` has released; with `keep` besides what others have.
    pub(super) fn pass_on(&mut self, address: usize, keep: bool, fence: Option<(TaskId, SyncId)>) {
        let Some(word) = self.words.get_mut(&address) else { return };
        if !keep {
            word.fences.drain(..).for_each(|(_, fence)| self.objects.let_go(fence));
        }
        if let Some(fence) = fence
            && !word.fences.contains(&fence)
        {
            // What an earlier fence of the same task has released, a later one has too.
            let earlier = word.fences.extract_if(.., |(by, _)| *by == fence.0);
            earlier.for_each(|(_, fence)| self.objects.let_go(fence));
            word.fences.push(fence);
            word.acquired = None;
            self.objects.hold(fence.1);
        }
    }
}

/// The numbers of synchronisation objects: those of words, one each, and those of fences, which words refer to. Numbers of objects
/// that are gone are used again: the first release of the new one must start anew ([`Objects::keeps`]), and nobody may acquire it before.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// How many words refer to each, and whether its owner does.
    uses: Vec<u32>,
    /// Which have been released by those who add to what others have.
    added_to: Vec<bool>,
    spare: Vec<SyncId>,
}

impl Objects {
    /// A number that nobody has; the caller is its owner.
    pub(super) fn new_object(&mut self) -> SyncId {
        let object = self.spare.pop().unwrap_or_else(|| {
            self.uses.push(0);
            self.added_to.push(false);
            SyncId((self.uses.len() - 1) as u32)
        });
        self.uses[object.index()] = 1;
        self.added_to[object.index()] = false;
        object
    }

    /// It is about to be released, besides what others have released by it. Have any, or is what its number passes on that of another
    /// object, which is gone?
    pub(super) fn keeps(&mut self, object: SyncId) -> bool {
        let added_to = self.added_to.get_mut(object.index());
        added_to.is_some_and(|added_to| std::mem::replace(added_to, true))
    }

    /// One more refers to it.
    fn hold(&mut self, object: SyncId) {
        self.uses[object.index()] += 1;
    }

    /// Does anybody but its owner refer to it?
    pub(super) fn is_held(&self, object: SyncId) -> bool {
        self.uses[object.index()] > 1
    }

    /// One less refers to it.
    pub(super) fn let_go(&mut self, object: SyncId) {
        self.uses[object.index()] -= 1;
        if self.uses[object.index()] == 0 {
            self.spare.push(object);
        }
    }

    /// Its owner has no use for it any more.
    pub(super) fn drop_object(&mut self, object: SyncId) {
        self.let_go(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_words_that_are_gone_are_used_again() {
        let (mut words, mut fences) = (Words::default(), Fences::default());
        for block in 0..1000 {
            (0..4).for_each(|word| _ = words.entry(0x1000 + block * 64 + word * 8, 8, 0));
            let start = 0x1000 + block * 64;
            assert!(words.forget(&(start..start + 64), &mut fences));
        }
        assert_eq!((words.words.len(), words.objects.uses.len()), (0, 4));
        // Only what is in the range goes.
        (0..4).for_each(|word| _ = words.entry(word * 8, 8, 0));
        words.forget(&(8..24), &mut fences);
        let mut left: Vec<usize> = words.words.keys().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [0, 24]);
        assert!(!words.forget(&(1..24), &mut fences));
    }

    #[test]
    fn what_had_the_number_before_is_not_kept() {
        let mut objects = Objects::default();
        let first = objects.new_object();
        assert_eq!([objects.keeps(first), objects.keeps(first)], [false, true]);
        objects.drop_object(first);
        let second = objects.new_object();
        assert_eq!((second, objects.keeps(second)), (first, false));
    }

    #[test]
    fn a_fence_lasts_as_long_as_a_word_passes_it_on() {
        let (mut words, task) = (Words::default(), TaskId(3));
        words.entry(0, 8, 0);
        words.entry(8, 8, 0);
        let fence = words.objects.new_object();
        assert!(!words.objects.is_held(fence));
        words.pass_on(0, true, Some((task, fence)));
        words.pass_on(8, false, Some((task, fence)));
        words.objects.drop_object(fence);
        assert!(words.words[&0].has_news_for(TaskId(4)) && !words.words[&0].has_news_for(task));
        words.pass_on(0, true, None);
        assert_eq!(words.objects.uses[fence.index()], 2);
        words.pass_on(0, false, None);
        words.forget(&(8..9), &mut Fences::default());
        assert!(words.objects.spare.contains(&fence));
    }
}
