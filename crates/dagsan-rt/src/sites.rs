//! Which code made an access: code addresses, callers, call stacks; their numbers for the core.
//!
//! ```text
//!   Origin     code                       caller
//!   inlined    low half of the address,   low half of the return address of the function: its caller
//!   hooks      the two lowest bits 1 (`log`)
//!   called     the same                   the number of the call stack, up to [`CALLED_DEPTH`]
//!   stacks=1   the same                   the number of the call stack
//!   free       twice the number of the    0
//!              call stack, plus 2
//!   filled     the same                   1
//! ```
//!
//! Call stacks are walked by frame pointers: instrumented code has them, and so has the standard library. A frame is
//! believed only if it lies in the stack that runs; code in between without frame pointers makes a stack shorter or
//! skips a frame, and never leads astray.
//!
//! In Rust code that is not optimised (without the feature `inline-hooks`), many frames of libraries may lie between an access and the
//! code of the user. Elsewhere most of those frames are inlined, or there are none (C, the feature `callers`), and the caller is enough in most cases.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dagsan_core::SiteId;
use dagsan_findings::Stack;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::image::Image;
use crate::journal::Journal;
use crate::log::{LATER, UNKNOWN};
use crate::reserve;
use crate::session;
use crate::state::{Thread, this_thread};
use crate::uses::Use;

/// Where an access was made. The assembly in `miss` knows the layout; see the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Origin {
    pub code: u32,
    pub caller: u32,
}

impl Origin {
    /// The block was freed by the code at the top of this stack.
    pub fn free(stack: u32) -> Origin {
        Origin { code: stack * 2 + 2, caller: 0 }
    }

    /// The block was written by the allocator, for the code at the top of this stack.
    pub fn filled(stack: u32) -> Origin {
        Origin { caller: 1, ..Origin::free(stack) }
    }

    /// Is it a free?
    pub fn is_free(self) -> bool {
        self.has_stack() && self.caller == 0
    }

    /// Does it have the number of a call stack instead of a code?
    fn has_stack(self) -> bool {
        self.code & 1 == 0
    }
}

/// How many frames of a call stack the callers of origins stand for; none if they are the callers alone.
pub fn depth(whole_stacks: bool) -> Option<usize> {
    match (whole_stacks, cfg!(any(feature = "inline-hooks", feature = "callers"))) {
        (true, _) => Some(DEPTH),
        (false, false) => Some(CALLED_DEPTH),
        (false, true) => None,
    }
}

/// At most so many frames of a call stack are kept.
pub const DEPTH: usize = 64;

/// How many where hooks are called: more than the standard library puts between its caller and an access, and few enough
/// that calls which differ only far outside are the same place.
pub const CALLED_DEPTH: usize = 16;

const LATELY: usize = 1024;

/// The origins and call stacks met so far, by all sessions: a number means the same to all of them.
struct Known {
    numbers: FxHashMap<Origin, u32>,
    /// The first one is not known.
    origins: Vec<Origin>,
    stack_numbers: FxHashMap<Box<[usize]>, u32>,
    stacks: Vec<Box<[usize]>>,
    /// Of the sites of atomic operations.
    uses: FxHashMap<SiteId, Use>,
}

const UNKNOWN_ORIGIN: Origin = Origin { code: 0, caller: 0 };

/// All that is known, and the lock that is taken for it.
struct Shelf {
    known: UnsafeCell<Known>,
    lock: Mutex<()>,
    /// Who has taken it.
    held: Thread,
}

// SAFETY: only who has taken the lock changes what is there, and others do not look meanwhile; but for one that was cut off there, and will not go on ([`look`]).
unsafe impl Sync for Shelf {}

static SHELF: Shelf = Shelf {
    known: UnsafeCell::new(Known {
        numbers: FxHashMap::with_hasher(FxBuildHasher),
        origins: Vec::new(),
        stack_numbers: FxHashMap::with_hasher(FxBuildHasher),
        stacks: Vec::new(),
        uses: FxHashMap::with_hasher(FxBuildHasher),
    }),
    lock: Mutex::new(()),
    held: Thread::nobody(),
};

/// The lock. None if it is not to be had: a thread that reports why the program is cut off waits only so long for others, who may wait for what it
/// holds itself.
fn lock() -> Option<MutexGuard<'static, ()>> {
    if reserve::is_mine() {
        return session::be_patient(|| SHELF.lock.try_lock().ok());
    }
    Some(SHELF.lock.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Was this thread cut off while it had the lock?
fn is_cut_off() -> bool {
    SHELF.held.get() == this_thread()
}

/// Changes what is known, if that is possible.
fn change<R>(action: impl FnOnce(&mut Known) -> R) -> Option<R> {
    if is_cut_off() {
        return None;
    }
    let _lock = lock()?;
    SHELF.held.set(this_thread());
    // SAFETY: the lock is taken.
    let result = action(unsafe { &mut *SHELF.known.get() });
    SHELF.held.leave();
    Some(result)
}

/// Looks at what is known. Who was cut off here sees what was there between two steps.
fn look<R>(action: impl FnOnce(&Known) -> R) -> Option<R> {
    if is_cut_off() {
        // SAFETY: this thread has the lock, and will not go on there. What has cut it off is an allocation that failed: neither a vector nor a table has changed then.
        return Some(action(unsafe { &*SHELF.known.get() }));
    }
    change(|known| action(known))
}

impl Known {
    fn number(&mut self, origin: Origin) -> u32 {
        if self.origins.is_empty() {
            self.origins.push(UNKNOWN_ORIGIN);
        }
        let next = self.origins.len() as u32;
        let number = *self.numbers.entry(origin).or_insert(next);
        if number == next {
            self.origins.push(origin);
        }
        number
    }

    fn stack_number(&mut self, frames: &[usize]) -> u32 {
        if let Some(&number) = self.stack_numbers.get(frames) {
            return number;
        }
        let number = self.stacks.len() as u32;
        self.stacks.push(frames.into());
        self.stack_numbers.insert(frames.into(), number);
        number
    }
}

/// What a session knows of these numbers without asking the others.
#[derive(Debug)]
pub struct Sites {
    image: Image,
    /// If the callers of origins are numbers of stacks: how many frames of these are kept.
    depth: Option<usize>,
    /// Origins asked for lately, each at the place that its bits choose.
    lately: Box<[(Origin, u32); LATELY]>,
    pub journal: Journal,
    stack_numbers: FxHashMap<Box<[usize]>, u32>,
    uses: FxHashMap<SiteId, Use>,
}

impl Sites {
    /// None yet.
    pub fn new(image: Image, depth: Option<usize>) -> Sites {
        Sites {
            image,
            depth,
            lately: Box::new([(UNKNOWN_ORIGIN, 0); LATELY]),
            journal: Journal::default(),
            stack_numbers: FxHashMap::default(),
            uses: FxHashMap::default(),
        }
    }

    /// The site of an origin. `several` says that the strand did the same to other bytes of the line from other places.
    #[inline]
    pub fn number(&mut self, origin: Origin, several: bool) -> SiteId {
        // Calls are some bytes long, so the lowest bits say little.
        let at = ((origin.code >> 2) ^ (origin.caller >> 2)) as usize % LATELY;
        if self.lately[at].0 != origin {
            self.look_up(origin, at);
        }
        // Half a billion sites are more than a program has; what is beyond them is called unknown.
        SiteId::new(self.lately[at].1 << 1 | u32::from(several)).unwrap_or(UNKNOWN)
    }

    #[cold]
    fn look_up(&mut self, origin: Origin, at: usize) {
        self.lately[at] = (origin, change(|known| known.number(origin)).unwrap_or(0));
    }

    /// The site of an atomic operation. The same code may be several: with and without a use.
    pub fn number_of_atomic(&mut self, origin: Origin, uses: Use) -> SiteId {
        let later = if uses == Use::Sets { LATER } else { 0 };
        let site = self.number(Origin { code: origin.code | later, ..origin }, false);
        if uses != Use::None && self.uses.insert(site, uses) != Some(uses) {
            change(|known| known.uses.insert(site, uses));
        }
        site
    }

    /// What an atomic operation does with values.
    pub fn use_of(&self, site: SiteId) -> Use {
        look(|known| known.uses.get(&site).copied()).flatten().unwrap_or_default()
    }

    /// Were there several places?
    pub fn is_one_of_several(site: SiteId) -> bool {
        site.number() & 1 != 0
    }

    /// The same place, as if there were no others.
    pub fn alone(site: SiteId) -> SiteId {
        SiteId::new(site.number() & !1).unwrap_or(UNKNOWN)
    }

    /// If the callers of origins are numbers of stacks: how many frames of these are kept.
    pub fn depth(&self) -> Option<usize> {
        self.depth
    }

    /// The number of a call stack.
    pub fn stack_number(&mut self, frames: &[usize]) -> u32 {
        if let Some(&number) = self.stack_numbers.get(frames) {
            return number;
        }
        let number = change(|known| known.stack_number(frames)).unwrap_or(0);
        self.stack_numbers.insert(frames.into(), number);
        number
    }

    /// Is it a free, or what the allocator has written?
    pub fn is_allocators(&self, site: SiteId) -> bool {
        origin(site).is_some_and(Origin::has_stack)
    }

    /// Was it a free?
    pub fn is_free(&self, site: SiteId) -> bool {
        origin(site).is_some_and(Origin::is_free)
    }

    /// What is known of the call stack of a site.
    pub fn stack(&self, site: SiteId) -> Stack {
        let Some(origin) = origin(site) else { return Stack::default() };
        let Origin { code, caller } = origin;
        if origin.has_stack() {
            return self.whole_stack(code / 2 - 1);
        }
        let code = self.image.address(code & !3);
        if let Some(depth) = self.depth {
            let callers = frames(caller);
            return self.relative(&[&[code], &callers[..]].concat(), callers.len() < depth);
        }
        self.relative(&[code, self.image.address(caller)], false)
    }

    /// A call stack by its number, up to the start of its task.
    pub fn whole_stack(&self, number: u32) -> Stack {
        self.relative(&frames(number), true)
    }

    /// The stack with addresses relative to the image, and without frames that are outside of it.
    pub fn relative(&self, frames: &[usize], complete: bool) -> Stack {
        let frames = frames.iter().filter_map(|&frame| self.image.relative(frame)).collect();
        Stack { frames, complete }
    }
}

/// Where a site is, if that is known.
fn origin(site: SiteId) -> Option<Origin> {
    let number = (site.number() >> 1) as usize;
    let origin = look(|known| known.origins.get(number).copied()).flatten();
    origin.filter(|&origin| site != UNKNOWN && origin != UNKNOWN_ORIGIN)
}

/// The frames of a call stack.
fn frames(number: u32) -> Box<[usize]> {
    look(|known| known.stacks.get(number as usize).cloned()).flatten().unwrap_or_default()
}

/// The return addresses from the frame at `frame` outwards, into `into`; how many. The frames must lie in `low..high`,
/// which is mapped memory.
pub fn walk(mut frame: usize, low: usize, high: usize, into: &mut [usize]) -> usize {
    let mut count = 0;
    while count < into.len() && frame >= low && frame < high.saturating_sub(16) && frame.is_multiple_of(8) {
        // SAFETY: in `low..high`, which the caller says is mapped, and aligned.
        let [outer, code] = unsafe { *(frame as *const [usize; 2]) };
        if code == 0 {
            break;
        }
        into[count] = code;
        count += 1;
        if outer <= frame {
            break;
        }
        frame = outer;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_follows_frames_and_stops_where_they_make_no_sense() {
        let mut memory = [0usize; 16];
        let base = memory.as_ptr() as usize;
        let at = |slot: usize| base + slot * 8;
        (memory[0], memory[1]) = (at(4), 11);
        (memory[4], memory[5]) = (at(10), 12);
        (memory[10], memory[11]) = (at(2), 13);
        std::hint::black_box(&memory);
        let mut frames = [0; 8];
        let count = walk(at(0), at(0), at(16), &mut frames);
        assert_eq!(frames[..count], [11, 12, 13], "the last frame leads inwards");
        assert_eq!(walk(at(0), at(0), at(10), &mut frames), 2, "a frame outside of the stack");
        assert_eq!(walk(at(0) + 1, at(0), at(16), &mut frames), 0, "not aligned");
        assert_eq!(walk(at(0), at(0), at(16), &mut frames[..1]), 1);
    }

    #[test]
    fn origins_are_numbered_once() {
        let mut sites = Sites::new(Image::of_program(), None);
        let [a, b] = [1, 3].map(|code| Origin { code, caller: 7 });
        let [one, two, again, other] = [a, b, a, b].map(|origin| sites.number(origin, false));
        assert!(one == again && two == other && one != two);
        let several = sites.number(a, true);
        assert!(Sites::is_one_of_several(several) && !Sites::is_one_of_several(one));
        // Another session has the same numbers.
        assert_eq!(Sites::new(Image::of_program(), None).number(b, false), two);
        let stack = sites.stack_number(&[1, 2]);
        assert_eq!(sites.stack_number(&[1, 2]), stack);
        let site = sites.number(Origin::free(stack), false);
        assert!(sites.is_free(site) && !sites.is_free(several) && !sites.is_free(UNKNOWN));
        let filled = sites.number(Origin::filled(stack), false);
        assert!(!sites.is_free(filled) && filled != site);
    }
}
