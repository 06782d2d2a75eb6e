//! Two order-maintenance lists over the same elements.
//!
//! An element has, in each list, a label that grows along the list: comparing two elements is comparing
//! their labels. A new element takes a label between its neighbours'; if there is none, the labels around
//! are spread (Bender et al. 2002, "Two simplified algorithms for maintaining order in a list"): the
//! smallest enclosing range of labels, of a size 2^i, that holds few enough elements is numbered
//! afresh, evenly. Halfway between the neighbours would be used up by sixty insertions in one place,
//! and programs do insert in one place: the caller says where the next ones will come ([`Place`]).
//!
//! ```text
//!   chunk k holds 2^(k+10) elements and is never moved
//!   element: ┌─────────┬─────────┬───────────┬───────────┐
//!            │ English │ Hebrew  │ next, prev│ next, prev│   32 bytes; the two labels that a query
//!            │  label  │  label  │ (English) │ (Hebrew)  │   reads share a cache line
//!            └─────────┴─────────┴───────────┴───────────┘
//! ```
//!
//! One thread inserts at a time (a mutex); queries run beside it (a sequence lock).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::seqlock::SeqLock;

/// An element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Position(u32);

impl Position {
    /// The element every list starts with.
    pub(crate) const START: Position = Position(0);
}

pub(crate) const ENGLISH: usize = 0;
pub(crate) const HEBREW: usize = 1;

/// No element: the neighbour of a list's end.
const NONE: u32 = u32::MAX;
/// Labels are below this.
const LABELS: u64 = 1 << 62;
/// The T of the paper. With 1.4, the whole label space takes (2/1.4)^62, about 4 billion elements.
const OVERFLOW: f64 = 1.4;
/// After spreading, neighbours are at least this far apart, so that the next insertions find room.
const MIN_GAP: u64 = 16;
/// The labels set apart for what a task does.
const TASK_ROOM: u64 = 1 << 40;

/// Where between its neighbours a new element goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Next to the one before it: nothing will come between them.
    Next,
    /// After the room of a task, and before whatever else comes.
    AfterTask,
    /// Before the room of a task, and after whatever else comes.
    BeforeTask,
    /// After the room of a scope, which may have many tasks.
    AfterScope,
}

#[derive(Debug)]
struct Element {
    label: [AtomicU64; 2],
    next: [AtomicU32; 2],
    prev: [AtomicU32; 2],
}

const _: () = assert!(size_of::<Element>() == 32);

impl Element {
    fn new() -> Element {
        Element {
            label: [AtomicU64::new(0), AtomicU64::new(0)],
            next: [AtomicU32::new(NONE), AtomicU32::new(NONE)],
            prev: [AtomicU32::new(NONE), AtomicU32::new(NONE)],
        }
    }
}

const FIRST_CHUNK_BITS: u32 = 10;
const CHUNKS: usize = 32 - FIRST_CHUNK_BITS as usize + 1;

/// The two lists.
#[derive(Debug)]
pub(crate) struct Orders {
    chunks: [OnceLock<Box<[Element]>>; CHUNKS],
    lock: SeqLock,
    /// How many elements there are; held while inserting.
    len: Mutex<u32>,
}

impl Orders {
    pub(crate) fn new() -> Orders {
        let orders =
            Orders { chunks: [const { OnceLock::new() }; CHUNKS], lock: SeqLock::new(), len: Mutex::new(0) };
        orders.insert(|list| {
            let start = list.push();
            debug_assert_eq!(start, Position::START);
        });
        orders
    }

    /// Runs `compare` on consistent labels: see [`Orders::labels`].
    #[inline]
    pub(crate) fn read<T>(&self, compare: impl FnMut() -> T) -> T {
        self.lock.read(compare)
    }

    /// The labels of an element. Comparable with others of the same [`Orders::read`] only.
    #[inline]
    pub(crate) fn labels(&self, position: Position) -> [u64; 2] {
        let element = self.element(position.0);
        [ENGLISH, HEBREW].map(|order| element.label[order].load(Ordering::Relaxed))
    }

    /// Runs `insert` as the only one that inserts.
    pub(crate) fn insert<T>(&self, insert: impl FnOnce(&mut Inserter<'_>) -> T) -> T {
        // A panic while inserting is an error of this file; the lists are not used after it.
        let mut len = self.len.lock().unwrap_or_else(PoisonError::into_inner);
        insert(&mut Inserter { orders: self, len: &mut len })
    }

    /// Back to the first element alone. The others are written anew when they are pushed again.
    pub(crate) fn clear(&mut self) {
        *self.len.get_mut().unwrap_or_else(PoisonError::into_inner) = 1;
        let first = self.chunks[0].get_mut().expect("made by new");
        first[0] = Element::new();
    }

    #[inline]
    fn element(&self, number: u32) -> &Element {
        let (chunk, offset) = place(number);
        &self.chunks[chunk].get().expect("numbers are given out after their chunk is made")[offset]
    }

    pub(crate) fn memory(&self) -> usize {
        self.chunks.iter().filter_map(OnceLock::get).map(|chunk| size_of_val(&**chunk)).sum()
    }
}

/// The chunk of an element and its place in it.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let shifted = u64::from(number) + (1 << FIRST_CHUNK_BITS);
    let chunk = shifted.ilog2() - FIRST_CHUNK_BITS;
    (chunk as usize, (shifted - (1 << (chunk + FIRST_CHUNK_BITS))) as usize)
}

/// The right to insert.
pub(crate) struct Inserter<'a> {
    orders: &'a Orders,
    len: &'a mut u32,
}

impl Inserter<'_> {
    /// A new element, in neither list yet.
    pub(crate) fn push(&mut self) -> Position {
        let number = *self.len;
        let (chunk, _) = place(number);
        self.orders.chunks[chunk].get_or_init(|| {
            let size = 1usize << (chunk as u32 + FIRST_CHUNK_BITS);
            (0..size).map(|_| Element::new()).collect()
        });
        *self.len += 1;
        Position(number)
    }

    /// Puts `new` right after `at` in one of the lists.
    pub(crate) fn link_after<const ORDER: usize>(&mut self, at: Position, new: Position, place: Place) {
        let element = self.orders.element(at.0);
        let mut low = element.label[ORDER].load(Ordering::Relaxed);
        let mut high = self.label_after::<ORDER>(at);
        if high - low < 2 {
            self.spread::<ORDER>(at);
            low = element.label[ORDER].load(Ordering::Relaxed);
            high = self.label_after::<ORDER>(at);
        }
        let gap = high - low;
        let task = (gap / 2).clamp(1, TASK_ROOM);
        let label = match place {
            Place::Next => low + 1,
            Place::AfterTask => low + task,
            Place::BeforeTask => high - task,
            Place::AfterScope => low + (gap / 2).max(1),
        };
        debug_assert!(low < label && label < high);
        let next = element.next[ORDER].load(Ordering::Relaxed);
        let inserted = self.orders.element(new.0);
        inserted.label[ORDER].store(label, Ordering::Relaxed);
        inserted.prev[ORDER].store(at.0, Ordering::Relaxed);
        inserted.next[ORDER].store(next, Ordering::Relaxed);
        element.next[ORDER].store(new.0, Ordering::Relaxed);
        if next != NONE {
            self.orders.element(next).prev[ORDER].store(new.0, Ordering::Relaxed);
        }
    }

    fn label<const ORDER: usize>(&self, number: u32) -> u64 {
        self.orders.element(number).label[ORDER].load(Ordering::Relaxed)
    }

    fn label_after<const ORDER: usize>(&self, at: Position) -> u64 {
        match self.orders.element(at.0).next[ORDER].load(Ordering::Relaxed) {
            NONE => LABELS,
            next => self.label::<ORDER>(next),
        }
    }

    /// Makes room after `at`.
    #[cold]
    fn spread<const ORDER: usize>(&mut self, at: Position) {
        let label = self.label::<ORDER>(at.0);
        let (mut first, mut last, mut count) = (at.0, at.0, 1u64);
        let (mut size, mut limit) = (1u64, 1.0f64);
        loop {
            size *= 2;
            limit *= 2.0 / OVERFLOW;
            let low = label & !(size - 1);
            loop {
                let prev = self.orders.element(first).prev[ORDER].load(Ordering::Relaxed);
                if prev == NONE || self.label::<ORDER>(prev) < low {
                    break;
                }
                (first, count) = (prev, count + 1);
            }
            loop {
                let next = self.orders.element(last).next[ORDER].load(Ordering::Relaxed);
                if next == NONE || self.label::<ORDER>(next) - low >= size {
                    break;
                }
                (last, count) = (next, count + 1);
            }
            let gap = size / count;
            if ((count as f64) < limit && gap >= MIN_GAP) || size == LABELS {
                self.renumber::<ORDER>(first, count, low, gap);
                return;
            }
        }
    }

    fn renumber<const ORDER: usize>(&mut self, first: u32, count: u64, low: u64, gap: u64) {
        self.orders.lock.write(|| {
            let mut at = first;
            for i in 0..count {
                let element = self.orders.element(at);
                element.label[ORDER].store(low + i * gap, Ordering::Relaxed);
                at = element.next[ORDER].load(Ordering::Relaxed);
            }
        });
    }
}
