//! Two order-maintenance lists over the same elements, in two levels (Dietz and Sleator 1987; Bender et
//! al. 2002).
//!
//! In each list the elements are in groups: runs of at most 64 neighbours. A group has a label that
//! grows along the list ([`groups`]), an element a label that grows along its group. Of two elements of
//! one group their labels tell which comes first, of any others the labels of their groups.
//!
//! ```text
//!   a list     ┌ group ─────┐   ┌ group ──┐   ┌ group ────────┐
//!              │ a · b · c ─┼───┼ d · e ──┼───┼ f · g · h · i │
//!              └────────────┘   └─────────┘   └───────────────┘
//!
//!   what a query reads of an element, 16 bytes           what an insertion reads besides, 8 bytes
//!   ┌─────────┬─────────┬─────────┬─────────┐            ┌─────────┬─────────┐
//!   │  label  │  group  │  label  │  group  │            │  next   │  next   │
//!   └ English place ────┴ Hebrew place ─────┘            └ English ┴ Hebrew ─┘
//! ```
//!
//! A new element takes a label between its neighbours', in the group of the one before it. If the
//! group is full, its later part becomes a new group. If there is no label left, the group is numbered
//! afresh, evenly. Both touch one group, and wherever insertions come, there are at least 16 in a group
//! before it is full again, and 20 before it is out of labels again. So an insertion costs O(1)
//! on average, without knowing where the next ones will come.
//!
//! One thread inserts at a time (a mutex); queries run beside it (a sequence lock).
//!
//! [`groups`]: super::groups

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::chunks::{Chunks, Spot};
use super::groups::{Group, GroupId, Labels};
use super::seqlock::SeqLock;
use crate::error::Error;

/// An element, by where its places are: `chunk << 27 | offset`, so that a query need not work that out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Position(u32);

const OFFSET_BITS: u32 = 27;

impl Position {
    /// The element every list starts with.
    pub(crate) const START: Position = Position::new(0);

    pub(super) const fn new(number: u32) -> Position {
        let Spot { chunk, offset } = PlaceChunks::spot(number);
        Position(chunk << OFFSET_BITS | offset)
    }

    #[inline]
    fn spot(self) -> Spot {
        Spot { chunk: self.0 >> OFFSET_BITS, offset: self.0 & ((1 << OFFSET_BITS) - 1) }
    }

    /// The elements are numbered as they come.
    #[inline]
    pub(super) fn number(self) -> usize {
        PlaceChunks::number(self.spot()) as usize
    }
}

pub(super) const ENGLISH: usize = 0;
pub(super) const HEBREW: usize = 1;

/// No element: the next one of a list's last.
pub(super) const NONE: u32 = u32::MAX;
/// How many elements there may be: offsets have 27 bits. A group is split into parts of 16 elements or
/// more, so that there are fewer than 2^27 groups of both lists.
const MOST: usize = (1 << 28) - (1 << 8);
/// A group has at most this many elements.
pub(super) const FULL: u32 = 64;
/// An element's label is below this.
const LABELS: u64 = 1 << 32;
/// New elements are no further apart than this. It leaves room for what comes after them in the order,
/// as in a flat program in the English order, and still is enough for 13 forks between two of them,
/// as in a flat program in the Hebrew order. Measured: with more, or less, groups are numbered more often.
const STEP: u64 = 1 << 22;

/// Where an element is in both lists: `group << 32 | label`. One load gets what belongs together, and
/// places in one group compare as numbers.
pub(super) type Places = [AtomicU64; 2];

type PlaceChunks = Chunks<2, 7>;

#[inline]
fn place<const ORDER: usize>(places: &Places) -> u64 {
    places[ORDER].load(Ordering::Relaxed)
}

/// Sets a place: of an element that nobody knows of, or inside of [`SeqLock::write`].
#[inline]
fn set_place<const ORDER: usize>(places: &Places, place: u64) {
    places[ORDER].store(place, Ordering::Relaxed);
}

#[inline]
fn group(place: u64) -> GroupId {
    GroupId::from_bits((place >> 32) as u32)
}

/// The lowest place in a group.
#[inline]
fn lowest(group: GroupId) -> u64 {
    u64::from(group.bits()) << 32
}

/// The two lists.
#[derive(Debug)]
pub(super) struct Orders {
    places: PlaceChunks,
    labels: Labels,
    lock: SeqLock,
    pub(super) links: Mutex<Links>,
}

/// What only the one who inserts needs.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The next element in each list.
    next: Vec<[u32; 2]>,
    groups: Vec<Group>,
}

impl Links {
    /// Two lists of the same elements, all of which are still to be put into groups but for the first.
    pub(super) fn of_lists(english: &[u32], hebrew: &[u32]) -> Links {
        let mut next = vec![[NONE; 2]; english.len()];
        for (order, list) in [(ENGLISH, english), (HEBREW, hebrew)] {
            for pair in list.windows(2) {
                next[pair[0] as usize][order] = pair[1];
            }
        }
        Links { next, groups: vec![Group::alone(0, 1); 2] }
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        self.next.len()
    }

    /// The element after this one, or [`NONE`].
    pub(super) fn next_of<const ORDER: usize>(&self, element: u32) -> u32 {
        self.next[element as usize][ORDER]
    }
}

/// Where an element was when it was looked up. Good until the next insertion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookedUp {
    places: [u64; 2],
    labels: [u64; 2],
}

/// Where new elements go: after `place`, `step` apart.
struct Room {
    place: u64,
    step: u64,
}

impl Orders {
    pub(super) fn new() -> Orders {
        let mut orders = Orders {
            places: Chunks::new(),
            labels: Labels::new(),
            lock: SeqLock::new(),
            links: Mutex::default(),
        };
        orders.clear();
        orders
    }

    /// Only the first element. What is left of others is written over when their numbers come again.
    pub(super) fn clear(&mut self) {
        let links = self.links.get_mut().unwrap_or_else(PoisonError::into_inner);
        links.next.clear();
        links.next.push([NONE; 2]);
        links.groups.clear();
        links.groups.extend([Group::alone(0, 1); 2]);
        let (english, hebrew) = (GroupId::new(ENGLISH), GroupId::new(HEBREW));
        self.labels.set(english, 0);
        self.labels.set(hebrew, 0);
        let start = self.places.make(PlaceChunks::spot(0));
        set_place::<ENGLISH>(start, lowest(english));
        set_place::<HEBREW>(start, lowest(hebrew));
    }

    /// Runs `query` on places and labels that belong together.
    #[inline]
    pub(super) fn read<T>(&self, query: impl FnMut() -> T) -> T {
        self.lock.read(query)
    }

    /// Where an element is; to be compared with others inside of [`Orders::read`].
    #[inline]
    pub(super) fn places(&self, element: Position) -> &Places {
        self.places.get(element.spot()).expect("who knows an element sees its chunk")
    }

    /// The same by the element's number.
    #[inline]
    fn places_of(&self, number: u32) -> &Places {
        self.places.get(PlaceChunks::spot(number)).expect("who knows an element sees its chunk")
    }

    /// Does `a` come before `b`? Inside of [`Orders::read`].
    #[inline]
    pub(super) fn before<const ORDER: usize>(&self, a: &Places, b: &Places) -> bool {
        let (a, b) = (place::<ORDER>(a), place::<ORDER>(b));
        if group(a) == group(b) { a < b } else { self.labels.get(group(a)) < self.labels.get(group(b)) }
    }

    /// Looks an element up, to be compared with many others.
    #[inline]
    pub(super) fn look_up(&mut self, element: Position) -> LookedUp {
        let places = [ENGLISH, HEBREW].map(|order| self.places(element)[order].load(Ordering::Relaxed));
        LookedUp { places, labels: places.map(|place| self.labels.get(group(place))) }
    }

    /// Does `a` come before `b`, which was looked up since the last insertion? Nobody else is there, so this
    /// needs no lock.
    #[inline]
    pub(super) fn before_looked_up<const ORDER: usize>(&mut self, a: Position, b: &LookedUp) -> bool {
        let a = place::<ORDER>(self.places(a));
        if group(a) == group(b.places[ORDER]) {
            a < b.places[ORDER]
        } else {
            self.labels.get(group(a)) < b.labels[ORDER]
        }
    }

    /// New elements right after `at`: in this order in the English list, in the opposite one in the Hebrew
    /// list.
    #[inline]
    pub(super) fn insert_after<const N: usize>(&self, at: Position) -> Result<[Position; N], Error> {
        // A panic while inserting is an error of this file; the lists are not used after it.
        let links = &mut *self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.next.len() >= MOST {
            return Err(Error::TooMany("positions of tasks without a quiescent point (2^28)"));
        }
        let first = links.next.len() as u32;
        let new: [u32; N] = std::array::from_fn(|i| first + i as u32);
        let last = first + N as u32 - 1;

        let places = self.places(at);
        let at = at.number();
        let english = self.take_room::<ENGLISH, N>(links, at, places);
        let hebrew = self.take_room::<HEBREW, N>(links, at, places);
        for (element, i) in new.into_iter().zip(1..) {
            let places = self.places.make(PlaceChunks::spot(element));
            set_place::<ENGLISH>(places, english.place + i * english.step);
            set_place::<HEBREW>(places, hebrew.place + (N as u64 + 1 - i) * hebrew.step);
        }

        let [english, hebrew] = std::mem::replace(&mut links.next[at], [first, last]);
        links.next.extend(new.map(|element| {
            let english = if element == last { english } else { element + 1 };
            let hebrew = if element == first { hebrew } else { element - 1 };
            [english, hebrew]
        }));
        Ok(new.map(Position::new))
    }

    /// Room for `N` elements after `at`, which are counted as being there.
    #[inline]
    fn take_room<const ORDER: usize, const N: usize>(
        &self,
        links: &mut Links,
        at: usize,
        places: &Places,
    ) -> Room {
        let next = links.next[at][ORDER];
        let mut room = self.room::<ORDER, N>(places, next);
        let size = &mut links.groups[group(room.place).index()].size;
        if room.step > 0 && *size + N as u32 <= FULL {
            *size += N as u32;
        } else {
            room = self.make_room::<ORDER, N>(links, places, next);
        }
        room
    }

    /// The room between an element and the next one, if that one is in its group, or the group's end.
    #[inline]
    fn room<const ORDER: usize, const N: usize>(&self, at: &Places, next: u32) -> Room {
        let at = place::<ORDER>(at);
        let end = (at | (LABELS - 1)) + 1;
        let next = if next == NONE { end } else { place::<ORDER>(self.places_of(next)) };
        // A place in another group is below `at` or not below `end`.
        let gap = if at < next && next < end { next - at } else { end - at };
        Room { place: at, step: (gap / (N as u64 + 1)).min(STEP) }
    }

    /// As [`Orders::take_room`], where the group is full or has no labels left.
    #[cold]
    fn make_room<const ORDER: usize, const N: usize>(
        &self,
        links: &mut Links,
        at: &Places,
        next: u32,
    ) -> Room {
        if links.groups[group(place::<ORDER>(at)).index()].size + N as u32 > FULL {
            self.split::<ORDER>(links, place::<ORDER>(at));
        }
        let group = group(place::<ORDER>(at));
        if self.room::<ORDER, N>(at, next).step == 0 {
            self.number::<ORDER>(links, group);
        }
        links.groups[group.index()].size += N as u32;
        let room = self.room::<ORDER, N>(at, next);
        debug_assert!(room.step > 0 && links.groups[group.index()].size <= FULL);
        room
    }

    /// Moves the later part of a group into a new one.
    ///
    /// If the insertions move along the list, little of what is before `at` will be needed again: then the
    /// new group is the smaller part, and the groups that stay behind are well filled. It is never
    /// less than a quarter, or insertions could make tiny groups again and again.
    fn split<const ORDER: usize>(&self, links: &mut Links, at: u64) {
        let old = group(at);
        let Group { first, size, .. } = links.groups[old.index()];
        let (mut middle, mut stay) = (first, 0);
        let before = |element| place::<ORDER>(self.places_of(element)) <= at;
        while stay < size / 2 || (stay < size / 4 * 3 && before(middle)) {
            middle = links.next[middle as usize][ORDER];
            stay += 1;
        }
        links.groups[old.index()].size = stay;
        let new = self.labels.insert_after(&mut links.groups, &self.lock, old, (middle, size - stay));
        self.number::<ORDER>(links, new);
    }

    /// Gives all elements of a group their places, evenly.
    fn number<const ORDER: usize>(&self, links: &Links, group: GroupId) {
        let Group { first, size, .. } = links.groups[group.index()];
        let step = LABELS / u64::from(size);
        self.lock.write(|| {
            let (mut element, mut place) = (first, lowest(group));
            for _ in 0..size {
                set_place::<ORDER>(self.places_of(element), place);
                place += step;
                element = links.next[element as usize][ORDER];
            }
        });
    }

    /// A new group for the elements from `first` on, so many, behind the list's `last` group. They have been elements before.
    pub(super) fn append_group<const ORDER: usize>(
        &mut self,
        last: Option<GroupId>,
        first: u32,
        size: u32,
    ) -> GroupId {
        let mut links = std::mem::take(self.links.get_mut().unwrap_or_else(PoisonError::into_inner));
        let group = match last {
            Some(last) => self.labels.insert_after(&mut links.groups, &self.lock, last, (first, size)),
            None => {
                let group = GroupId::new(ORDER);
                links.groups[group.index()] = Group::alone(first, size);
                self.labels.set(group, 0);
                group
            }
        };
        self.number::<ORDER>(&links, group);
        *self.links.get_mut().unwrap_or_else(PoisonError::into_inner) = links;
        group
    }

    pub(super) fn memory(&self) -> usize {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        self.places.memory()
            + self.labels.memory()
            + links.next.capacity() * size_of::<[u32; 2]>()
            + links.groups.capacity() * size_of::<Group>()
    }
}
