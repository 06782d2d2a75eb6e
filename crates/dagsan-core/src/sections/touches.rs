//! Who has touched a line in sections of one lock: four lists, one for each kind of access, in one arena.
//!
//! ```text
//!   Line     masks [ r │ w │ ar │ aw ]      what all of a list have touched, and perhaps more
//!            first [ 7 │ 2 │ –  │ –  ]
//!                    │   └─► touch ─► …
//!                    └─► touch ─► touch     the newest first
//! ```
//!
//! A section of a few instructions touches some lines, and for each of them the last touch takes the place of the one before it. So
//! nothing is allocated for it: touches that are dropped are used again.

use rustc_hash::FxHashMap;

use super::known::{Known, Ref, Visit};
use super::{FEW, KINDS, Kind};
use crate::held::SectionId;
use crate::ids::{SyncId, TaskId};
use crate::locks::LockMode;
use crate::pages::prefetch;

/// The end of a list.
const END: u32 = u32::MAX;

/// A section has touched bytes of a line.
#[derive(Debug, Clone, Copy)]
struct Touch {
    section: Ref,
    /// A section that follows this one and has written these bytes since. When it is over, it stands for this one.
    replaced_by: Option<Ref>,
    mask: u64,
    next: u32,
}

/// Who has touched a line in sections of one lock, by kind.
#[derive(Debug)]
pub(super) struct Line {
    masks: [u64; 4],
    first: [u32; 4],
    len: u32,
    /// How many touches there were when it was last looked for those that others stand for.
    clean: u32,
}

impl Default for Line {
    fn default() -> Line {
        Line { masks: [0; 4], first: [END; 4], len: 0, clean: 0 }
    }
}

/// The touches of all lines.
#[derive(Debug)]
pub(super) struct Touches {
    all: Vec<Touch>,
    /// The first that is free.
    free: u32,
    /// Room for touches of which a part was replaced.
    parts: Vec<Touch>,
    /// Room for what later sections of tasks have touched.
    later: FxHashMap<(LockMode, TaskId), u64>,
    /// Room for what sections have touched that follow others.
    followers: FxHashMap<Ref, [u64; 4]>,
}

impl Default for Touches {
    fn default() -> Touches {
        Touches {
            all: Vec::new(),
            free: END,
            parts: Vec::new(),
            later: FxHashMap::default(),
            followers: FxHashMap::default(),
        }
    }
}

/// What a list is after some were dropped.
struct Left {
    mask: u64,
    last: u32,
    gone: u32,
}

impl Touches {
    fn new_touch(&mut self, touch: Touch) -> u32 {
        let at = self.free;
        match self.all.get_mut(at as usize) {
            Some(free) => {
                self.free = free.next;
                *free = touch;
                at
            }
            None => {
                self.all.push(touch);
                self.all.len() as u32 - 1
            }
        }
    }

    fn give_back(&mut self, at: u32) {
        self.all[at as usize].next = self.free;
        self.free = at;
    }

    /// Keeps those of a list that `keep` wants.
    fn retain(&mut self, first: &mut u32, mut keep: impl FnMut(&mut Touch) -> bool) -> Left {
        let mut left = Left { mask: 0, last: END, gone: 0 };
        let mut at = *first;
        while at != END {
            let touch = &mut self.all[at as usize];
            let next = touch.next;
            if keep(touch) {
                left.mask |= touch.mask;
                left.last = at;
            } else {
                match self.all.get_mut(left.last as usize) {
                    Some(before) => before.next = next,
                    None => *first = next,
                }
                self.give_back(at);
                left.gone += 1;
            }
            at = next;
        }
        left
    }

    /// Those of a list.
    fn iter(&self, first: u32) -> impl Iterator<Item = &Touch> {
        let mut at = first;
        std::iter::from_fn(move || {
            let touch = self.all.get(at as usize)?;
            at = touch.next;
            Some(touch)
        })
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.free = END;
    }

    /// The section has ended too early to stand for those that it follows.
    pub(super) fn stands_for_nobody(&mut self, section: SectionId) {
        for touch in &mut self.all {
            touch.replaced_by = touch.replaced_by.filter(|by| !by.is_of(section));
        }
    }
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The line will soon be touched: the newest of each list will be in the processor's cache then.
    #[inline]
    pub(super) fn expect(&self, touches: &Touches) {
        self.newest(touches).for_each(|touch| prefetch(&raw const *touch));
    }

    /// The same for the ones before these, which have come by then, and for the sections of these.
    #[inline]
    pub(super) fn expect_older(&self, touches: &Touches, known: &Known) {
        for touch in self.newest(touches) {
            known.expect(touch.section);
            if let Some(older) = touches.all.get(touch.next as usize) {
                prefetch(&raw const *older);
            }
        }
    }

    /// The same for the sections of the ones before.
    #[inline]
    pub(super) fn expect_sections(&self, touches: &Touches, known: &Known) {
        let older = self.newest(touches).filter_map(|touch| touches.all.get(touch.next as usize));
        older.for_each(|touch| known.expect(touch.section));
    }

    #[inline]
    fn newest<'a>(&self, touches: &'a Touches) -> impl Iterator<Item = &'a Touch> {
        self.first.into_iter().filter_map(|first| touches.all.get(first as usize))
    }

    /// The bytes become other memory.
    pub(super) fn erase(&mut self, mask: u64, touches: &mut Touches, known: &mut Known) {
        for (all, first) in self.masks.iter_mut().zip(&mut self.first) {
            let left = touches.retain(first, |touch| {
                touch.mask &= !mask;
                if touch.mask == 0 {
                    known.forget(touch.section);
                }
                touch.mask != 0
            });
            self.len -= left.gone;
            *all = left.mask;
        }
    }

    /// A task that is in a section does this to the line. Adds to `acquire` what it has to acquire first.
    #[inline]
    pub(super) fn touch(
        &mut self,
        visit: &Visit,
        (kind, mask): (Kind, u64),
        touches: &mut Touches,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        self.compare(visit, (kind, mask), touches, known, acquire);
        self.add(visit, (kind, mask), touches, known);
        if self.len() >= 2 * (self.clean as usize).max(FEW) {
            self.drop_followed(touches, known);
            self.clean = self.len;
        }
    }

    /// Looks for sections that this one depends on.
    #[inline]
    pub(super) fn compare(
        &mut self,
        visit: &Visit,
        (kind, mask): (Kind, u64),
        touches: &mut Touches,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        for earlier in KINDS.into_iter().filter(|&earlier| kind.depends_on(earlier)) {
            if self.masks[earlier as usize] & mask != 0 {
                self.compare_list(earlier, visit, (kind, mask), touches, known, acquire);
            }
        }
    }

    /// The same, of those who have done `earlier`.
    fn compare_list(
        &mut self,
        earlier: Kind,
        visit: &Visit,
        (kind, mask): (Kind, u64),
        touches: &mut Touches,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        let mut parts = std::mem::take(&mut touches.parts);
        let first = &mut self.first[earlier as usize];
        let mut left = touches.retain(first, |touch| {
            if touch.replaced_by.is_some_and(|by| known.is_over(by)) {
                known.forget(touch.section);
                return false;
            }
            let depends = touch.mask & mask != 0 && known.depend(touch.section, visit, acquire);
            // Whoever depends on bytes that are written depends on this section too.
            if depends && kind == Kind::Write {
                let replaced_by = Some(visit.current);
                let (part, rest) = (touch.mask & mask, touch.mask & !mask);
                if rest == 0 {
                    touch.replaced_by = replaced_by;
                } else {
                    touch.mask = rest;
                    parts.push(Touch { mask: part, replaced_by, ..*touch });
                }
            }
            true
        });
        self.len = self.len + parts.len() as u32 - left.gone;
        // Behind the others, for the newest may still grow.
        for part in parts.drain(..) {
            left.mask |= part.mask;
            known.remember_again(part.section);
            let at = touches.new_touch(Touch { next: END, ..part });
            touches.all[left.last as usize].next = at;
            left.last = at;
        }
        self.masks[earlier as usize] = left.mask;
        touches.parts = parts;
    }

    /// A task that is in a section has done this.
    fn add(&mut self, visit: &Visit, (kind, mask): (Kind, u64), touches: &mut Touches, known: &mut Known) {
        self.masks[kind as usize] |= mask;
        let first = &mut self.first[kind as usize];
        if let Some(newest) =
            touches.all.get_mut(*first as usize).filter(|newest| newest.replaced_by.is_none())
        {
            if newest.section == visit.current {
                newest.mask |= mask;
                return;
            }
            // Once this section is over, it stands for an earlier one of the same task. So did the earlier one for those before it.
            if newest.mask & !mask == 0 && known.is_earlier_of(newest.section, visit) {
                newest.replaced_by = Some(visit.current);
                let &mut Touch { section, next, .. } = newest;
                if let Some(&before) = touches.all.get(next as usize)
                    && before.replaced_by == Some(section)
                {
                    known.forget(before.section);
                    touches.all[*first as usize].next = before.next;
                    touches.give_back(next);
                    self.len -= 1;
                }
            }
        }
        *first = touches.new_touch(Touch { section: visit.current, replaced_by: None, mask, next: *first });
        self.len += 1;
        known.remember_again(visit.current);
    }

    /// Drops touches that later ones stand for, since their sections follow them and are over, or are of the same task.
    fn drop_followed(&mut self, touches: &mut Touches, known: &mut Known) {
        self.drop_earlier(touches, known);
        let mut followers = std::mem::take(&mut touches.followers);
        for first in self.first {
            let of = |touch: &Touch| known.follower(touch.section);
            followers.extend(touches.iter(first).filter_map(of).map(|by| (by, [0; 4])));
        }
        if !followers.is_empty() {
            for (kind, first) in self.first.into_iter().enumerate() {
                for touch in touches.iter(first) {
                    if let Some(masks) = followers.get_mut(&touch.section) {
                        masks[kind] |= touch.mask;
                    }
                }
            }
            let lists = self.masks.iter_mut().zip(&mut self.first);
            for (kind, (all, first)) in KINDS.into_iter().zip(lists) {
                let left = touches.retain(first, |touch| {
                    let masks = known.follower(touch.section).map_or([0; 4], |by| followers[&by]);
                    let covering = KINDS.into_iter().zip(masks).filter(|(later, _)| later.covers(kind));
                    let is_covered = touch.mask & !covering.fold(0, |all, (_, mask)| all | mask) == 0;
                    if is_covered {
                        known.forget(touch.section);
                    }
                    !is_covered
                });
                *all = left.mask;
                self.len -= left.gone;
            }
            followers.clear();
        }
        touches.followers = followers;
    }

    /// Drops those that later ones of the same task stand for, once these are over: who depends on the earlier may as well
    /// depend on them.
    fn drop_earlier(&mut self, touches: &mut Touches, known: &mut Known) {
        let mut later = std::mem::take(&mut touches.later);
        for (all, first) in self.masks.iter_mut().zip(&mut self.first) {
            let left = touches.retain(first, |touch| {
                let Some(by) = known.ended_by(touch.section) else { return true };
                let mask = later.entry(by).or_default();
                let stands = touch.mask & !*mask == 0;
                *mask |= touch.mask;
                if stands {
                    known.forget(touch.section);
                }
                !stands
            });
            later.clear();
            *all = left.mask;
            self.len -= left.gone;
        }
        touches.later = later;
    }
}
