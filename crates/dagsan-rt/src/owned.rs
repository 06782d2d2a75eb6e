//! Memory of a worker: heap that a thread-local variable leads to, and nothing else does.
//!
//! All tasks run on one thread, so they meet in a buffer that they reach through a `thread_local!`. On several threads each
//! would have its own. That is no race, but what a task finds there depends on the worker that runs it, which the verdict
//! says. Nobody tells which blocks are such buffers, so it is asked when a race on a block is found:
//!
//! ```text
//!   thread-local variables that the task has touched,
//!   as they are, or as they were when it came to them  ──► … ──► block      must lead to it
//!   statics                                            ──► … ──► block      must not: other threads would find it there
//! ```
//!
//! As they were: a task may take the block out of its variable while it uses it (`take`, `replace`), and atomic operations
//! may end its strand meanwhile. Nobody tells when a variable changes. So the lines of variables that a strand has touched are copied
//! when it ends. What a task comes to find in a line is what the last strand that touched it has left there. What the task puts
//! there itself does not count: who takes back what it has put into a variable for a while, has it from elsewhere.
//!
//! A task that has touched no such variable got the block from somebody else, who has lent it. If the block is the worker's
//! the race is withdrawn, and the block is private, like the variable itself, until it is freed. Otherwise it
//! is not asked about again. What is asked is bounded; beyond the bound a race stays one. Without races it costs nothing.
//!
//! Limits. Pointers are told as leak checkers tell them (`reach`), so a word that is left over from earlier may hide a race, or
//! keep one that is none. Memory that a thread-local variable leads to while others have it too, on their stacks or on the
//! heap, is taken for the worker's. Variables of the task runtime lead to everything, and do not count.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dagsan_core::{Location, Race, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::heap;
use crate::log;
use crate::private::within;
use crate::races;
use crate::reach;
use crate::reserve;
use crate::session::{self, Inside, Session};
use crate::state::{is_owner, this_thread, worker};
use crate::tasks::{Words, bit_of};

/// So many words are looked at in a program to answer whose the blocks are: about a second.
const WORDS: usize = 1 << 28;
/// So many for one block.
const WORDS_PER_BLOCK: usize = 1 << 22;

/// Variables of the task runtime, in the thread-local block: how far below the thread pointer, and their sizes.
static RUNTIME: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The list of them; none for a thread that reports, if another one keeps it.
fn runtime() -> Option<MutexGuard<'static, Vec<(usize, usize)>>> {
    if reserve::is_mine() {
        return session::be_patient(|| RUNTIME.try_lock().ok());
    }
    Some(RUNTIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A thread-local variable of this thread is the task runtime's.
pub fn is_runtimes(start: usize, size: usize, _: &Inside) {
    let variable = (this_thread().wrapping_sub(start), size);
    let Some(mut known) = runtime() else { return };
    if !known.contains(&variable) {
        known.push(variable);
    }
}

/// The part of the thread-local block of `thread` without the variables of the task runtime.
fn programs(part: Range<usize>, thread: usize) -> Vec<Range<usize>> {
    let known = runtime();
    known.iter().flat_map(|known| known.iter()).fold(vec![part], |parts, &(below, size)| {
        let start = thread.wrapping_sub(below);
        let hole = start..start.wrapping_add(size);
        let around = |part: Range<usize>| {
            let before = part.start..part.end.min(hole.start);
            [before, part.start.max(hole.end)..part.end].into_iter().filter(|part| !part.is_empty())
        };
        parts.into_iter().flat_map(around).collect()
    })
}

/// Those of the words of a line of this thread's variables that are not the task runtime's.
fn programs_words((line, words): (u64, Words)) -> Vec<usize> {
    let start = (line as usize) << 6;
    let parts = programs(start..start + 64, this_thread());
    let address = |at: usize| start + at * size_of::<usize>();
    let is_programs = |at: &usize| parts.iter().any(|part| part.contains(&address(*at)));
    (0..words.len()).filter(is_programs).map(|at| words[at]).collect()
}

/// Does any of these words lead to the heap?
fn leads_to_heap(words: &Words) -> bool {
    heap::with_living(|living| words.iter().any(|&word| living.at(word).is_some()))
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Owned {
    /// The blocks of the worker: their starts and ends.
    blocks: BTreeMap<usize, usize>,
    /// Blocks that were asked about and are not.
    shared: FxHashSet<usize>,
    /// Lines of thread-local variables, as the last strand that touched them has left them.
    variables: FxHashMap<u64, Words>,
    /// Where tasks have met in a block of the worker, and how often.
    pub met: Vec<(SiteId, u64)>,
    words: usize,
}

impl Default for Owned {
    fn default() -> Owned {
        Owned {
            blocks: BTreeMap::new(),
            shared: FxHashSet::default(),
            variables: FxHashMap::default(),
            met: Vec::new(),
            words: WORDS,
        }
    }
}

impl Owned {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// From the first block to the last; there is one.
    pub fn span(&self) -> Range<usize> {
        let first = self.blocks.first_key_value().map_or(0, |(start, _)| *start);
        let last = self.blocks.last_key_value().map_or(0, |(_, end)| *end);
        first..last
    }

    /// The bytes of a line that are the worker's.
    pub fn within(&self, line: u64) -> u64 {
        let (start, end) = ((line as usize) << 6, (line as usize + 1) << 6);
        let near = self.blocks.range(..end).rev().take_while(|(_, block_end)| **block_end > start);
        near.fold(0, |mask, (from, to)| mask | within(&(*from..*to), line))
    }

    /// Are all of these bytes the worker's?
    fn has(&self, at: Location) -> bool {
        self.within(at.line) & at.mask == at.mask
    }

    /// A block is freed, or there is another one in its place. Was it the worker's?
    #[inline]
    pub fn forget(&mut self, start: usize) -> bool {
        if self.blocks.is_empty() && self.shared.is_empty() {
            return false;
        }
        self.shared.remove(&start);
        self.blocks.remove(&start).is_some()
    }

    /// The block is the worker's.
    pub fn insert(&mut self, block: Range<usize>) {
        self.blocks.insert(block.start, block.end);
    }

    /// Nothing is parallel to the present.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.shared.clear();
    }
}

impl Session {
    /// The strand of the running task ends, and has touched these lines of thread-local variables, each by a bit. Do they lead to the heap? If so, races on what
    /// is there are to be looked at while this task runs.
    #[inline]
    pub fn touch_variables(&mut self, lines: u64) -> bool {
        if lines == 0 {
            return false;
        }
        let lead = self.look_at_variables(lines);
        self.tasks.touch(lines);
        lead
    }

    fn look_at_variables(&mut self, touched: u64) -> bool {
        // At the end of the program this may be another thread.
        if !self.options.hygiene.heap || !is_owner() {
            return false;
        }
        let mut lead = false;
        for line in self.lines_of_variables().filter(|&line| touched & bit_of(line) != 0) {
            let words = self.words_of_variables(line);
            lead |= leads_to_heap(&words);
            let left = self.owned.variables.insert(line, words);
            if let Some(left) = left.filter(|_| !self.tasks.has_touched(line)) {
                lead |= leads_to_heap(&left);
                self.tasks.came_to(line, left);
            }
        }
        if lead {
            worker().want_order();
        }
        lead
    }

    /// The session goes on on this thread. What others have done there with its variables is over.
    pub fn come_to_variables(&mut self) {
        if self.options.hygiene.thread_locals {
            self.thread_locals = self.image.thread_locals(this_thread());
            for line in self.lines_of_variables() {
                let words = self.words_of_variables(line);
                self.owned.variables.insert(line, words);
            }
        }
    }

    fn lines_of_variables(&self) -> Range<u64> {
        let Range { start, end } = self.thread_locals;
        start as u64 >> 6..(end as u64).div_ceil(64)
    }

    /// What is in a line of the variables of this thread.
    fn words_of_variables(&self, line: u64) -> Words {
        std::array::from_fn(|at| {
            let address = ((line as usize) << 6) + at * size_of::<usize>();
            let inside = self.thread_locals.contains(&address);
            // SAFETY: a word of the variables of this thread, which begin and end at words.
            if inside { unsafe { (address as *const usize).read_volatile() } } else { 0 }
        })
    }

    /// A part is about to free a block. If variables of this thread lead to it that the running task has touched, and nothing else does, it is the worker's, and
    /// was: later it cannot be asked for any more.
    pub fn frees_own(&mut self, start: usize) {
        let leads = |line: &u64| {
            self.touches(*line)
                && (leads_to_heap(&self.words_of_variables(*line))
                    || self.owned.variables.get(line).is_some_and(leads_to_heap))
        };
        if self.lines_of_variables().any(|line| leads(&line))
            && let Some(block) = heap::with_living(|living| living.at(start))
            && self.leads_from_variables_only(block.start)
        {
            self.owned.insert(block.clone());
            if let Some(recorder) = self.stream.consumer_mut().recorder() {
                recorder.was_owned(block);
            }
        }
    }

    /// Has the running task touched a line of thread-local variables, or is it about to say so? It may say yes of one that it has not.
    fn touches(&self, line: u64) -> bool {
        self.tasks.has_touched(line) || log::has(line)
    }

    /// Withdraws those of the latest races that are on memory of the worker.
    #[cold]
    pub fn withdraw_owned(&mut self) {
        let known = self.found.known();
        let detector = self.stream.consumer();
        let hygiene = self.options.hygiene;
        // At the end of the program this may be another thread. If there were more races than can be kept, nobody knows which
        // have made room for these.
        if !(hygiene.thread_locals && hygiene.heap && is_owner()) || detector.dropped_races() > 0 {
            return;
        }
        let new: Vec<Race> = detector.races()[known..].to_vec();
        let mut withdrawn = Vec::new();
        for race in &new {
            // Tasks on different threads have met, and not by chance.
            let threads = [race.first.task, race.second.task].map(|task| self.tasks.thread_of(task.0));
            if threads[0] != threads[1] || !self.is_owned(race.location) {
                continue;
            }
            withdrawn.push(race.location);
            let site = races::second_site(race, &mut self.sites);
            match self.owned.met.iter_mut().find(|(met, _)| *met == site) {
                Some((_, count)) => *count += race.duplicates + 1,
                None => self.owned.met.push((site, race.duplicates + 1)),
            }
        }
        self.stream.consumer_mut().withdraw_races(known, |race| withdrawn.contains(&race.location));
    }

    /// Are these bytes, which tasks have met on, all in blocks of the worker? Asks about blocks that are not known yet.
    fn is_owned(&mut self, at: Location) -> bool {
        for address in at.addresses() {
            let byte = Location { mask: 1 << (address % 64), ..at };
            if !self.owned.has(byte) {
                self.ask_about(address as usize);
            }
            if !self.owned.has(byte) {
                return false;
            }
        }
        true
    }

    fn ask_about(&mut self, address: usize) {
        let Some(Range { start, end }) = heap::with_living(|living| living.at(address)) else { return };
        if self.owned.shared.contains(&start) {
            return;
        }
        if !self.leads_from_variables_only(start) {
            self.owned.shared.insert(start);
            return;
        }
        self.owned.insert(start..end);
        self.erase(start, end - start);
    }

    fn leads_from_variables_only(&mut self, block: usize) -> bool {
        // The running strand may not have been delivered.
        let touched = |line: &usize| self.touches(*line as u64 >> 6);
        let lines = (self.thread_locals.start & !63..self.thread_locals.end).step_by(64).filter(touched);
        let mut variables: Vec<Range<usize>> = lines
            .map(|line| line.max(self.thread_locals.start)..(line + 64).min(self.thread_locals.end))
            .flat_map(|line| programs(line, this_thread()))
            .collect();
        let is_new = |line: &u64| log::has(*line) && !self.tasks.has_touched(*line);
        let finds = self
            .lines_of_variables()
            .filter(is_new)
            .filter_map(|line| self.owned.variables.get(&line).map(|words| (line, *words)));
        let found: Vec<usize> =
            self.tasks.found_in_variables().chain(finds).flat_map(programs_words).collect();
        variables.push(found.as_ptr().addr()..found.as_ptr_range().end.addr());
        let statics = self.image.statics();
        let before = self.owned.words.min(WORDS_PER_BLOCK);
        let mut words = before;
        let owned = heap::with_living(|living| {
            // SAFETY: blocks that live as long as `with_living` runs; the variables of this thread, what was found in them, and
            // the statics of the program, which are there as long as these are.
            unsafe {
                reach::lead_to(block, &variables, |at| living.at(at), &mut words) == Some(true)
                    && reach::lead_to(block, &statics, |at| living.at(at), &mut words) == Some(false)
            }
        });
        self.owned.words -= before - words;
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_runtime_are_left_out() {
        let thread = this_thread();
        let inside = Inside::enter().unwrap();
        for (below, size) in [(64, 16), (64, 16), (24, 8)] {
            is_runtimes(thread - below, size, &inside);
        }
        let parts = programs(thread - 100..thread, thread);
        assert_eq!(parts, [thread - 100..thread - 64, thread - 48..thread - 24, thread - 16..thread]);
    }

    #[test]
    fn the_part_of_a_line_in_blocks() {
        let mut owned = Owned::default();
        owned.blocks.extend([(0, 70), (80, 84), (120, 500)]);
        assert_eq!(owned.within(0), u64::MAX);
        assert_eq!(owned.within(1), 0b11_1111 | 0b1111 << 16 | 0xff << 56);
        assert_eq!((owned.within(3), owned.within(9)), (u64::MAX, 0));
        assert_eq!(owned.span(), 0..500);
        assert!(owned.forget(80) && !owned.forget(81));
        assert_eq!(owned.within(1), 0b11_1111 | 0xff << 56);
    }
}
