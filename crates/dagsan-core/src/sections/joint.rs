//! Sections of many locks at once.
//!
//! What a task does while it holds k locks is part of k sections, and by line and lock each line has k touches of it. Beyond a few
//! locks it has one: a touch of the *joint* section, which is all of them together.
//!
//! ```text
//!   few     (line, lock) ─► touches of sections        a look-up for each lock
//!   many     line        ─► touches of joint sections  whose locks are compared with those held: both are sorted
//! ```
//!
//! A joint touch is dropped when another stands for it: one of a superset of its sections that has touched as much; or one of later
//! sections of all its locks, which follow its own, have touched as much and are over. A line that many tasks have touched in many
//! different joint sections is looked through as a whole. So this is not for few locks, of which a program may hold any two.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::known::{Known, Visit};
use super::{FEW, KINDS, Kind};
use crate::held::SectionId;
use crate::ids::{LockId, SyncId};

/// A section of a joint one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Member {
    lock: LockId,
    section: SectionId,
}

/// The number of a joint section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct JointId(u32);

/// A joint section that lines remember.
#[derive(Debug)]
struct Joint {
    /// Sorted by lock.
    members: Arc<[Member]>,
    /// How many touches there are of it.
    touches: u32,
}

/// A joint section has touched bytes of a line.
#[derive(Debug)]
struct Touch {
    joint: JointId,
    /// Which, by kind.
    masks: [u64; 4],
    /// Stands for this one when it is over, if it has touched as much by then.
    follower: Option<JointId>,
}

/// The joint sections that have touched a line, in the order of their first touches.
#[derive(Debug, Default)]
struct Line {
    touches: Vec<Touch>,
    /// What all of them have touched, and perhaps more.
    masks: [u64; 4],
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Joints {
    lines: FxHashMap<u64, Line>,
    table: Table,
}

/// The joint sections.
#[derive(Debug, Default)]
struct Table {
    joints: FxHashMap<JointId, Joint>,
    numbers: FxHashMap<Arc<[Member]>, JointId>,
    next: u32,
}

impl Table {
    fn members(&self, joint: JointId) -> &[Member] {
        self.joints.get(&joint).map_or(&[], |joint| &joint.members)
    }

    /// Is nobody in any of its sections any more?
    fn is_over(&self, joint: JointId, known: &Known) -> bool {
        self.members(joint).iter().all(|member| known.is_number_over(member.section))
    }

    fn remember(&mut self, joint: JointId) {
        if let Some(joint) = self.joints.get_mut(&joint) {
            joint.touches += 1;
        }
    }

    fn forget(&mut self, joint: JointId, known: &mut Known) {
        if let Some(known) = self.joints.get_mut(&joint) {
            known.touches -= 1;
        }
        self.drop_unused(joint, known);
    }

    fn drop_unused(&mut self, number: JointId, known: &mut Known) {
        if self.joints.get(&number).is_some_and(|joint| joint.touches == 0)
            && let Some(joint) = self.joints.remove(&number)
        {
            self.numbers.remove(&joint.members);
            joint.members.iter().for_each(|member| known.forget_number(member.section));
        }
    }
}

impl Joints {
    /// The joint section of those that a task is in, sorted by lock. To be given back by [`Joints::leave`].
    pub(super) fn enter(&mut self, visits: &[Visit], known: &mut Known) -> JointId {
        let member = |visit: &Visit| Member { lock: visit.inside.lock, section: visit.inside.section };
        let members: Vec<Member> = visits.iter().map(member).collect();
        let Table { joints, numbers, next } = &mut self.table;
        if let Some(&joint) = numbers.get(&members[..]) {
            return joint;
        }
        let (joint, members) = (JointId(*next), Arc::<[Member]>::from(members));
        *next += 1;
        numbers.insert(Arc::clone(&members), joint);
        joints.insert(joint, Joint { members, touches: 0 });
        visits.iter().for_each(|visit| known.remember_again(visit.current));
        joint
    }

    /// Nothing more is done in it for now.
    pub(super) fn leave(&mut self, joint: JointId, known: &mut Known) {
        self.table.drop_unused(joint, known);
    }

    /// Looks for sections that what a task does, in these sections, depends on. They are all of `joint`, if there is one.
    pub(super) fn compare(
        &mut self,
        (number, kind, mask): (u64, Kind, u64),
        visits: &[Visit],
        joint: Option<JointId>,
        known: &mut Known,
        acquire: &mut Vec<SyncId>,
    ) {
        let Joints { lines, table } = self;
        let Some(line) = lines.get_mut(&number) else { return };
        if !depends(kind, mask, &line.masks) {
            return;
        }
        line.drop_followed(0, table, known);
        for touch in line.touches.iter_mut().filter(|touch| Some(touch.joint) != joint) {
            if !depends(kind, mask, &touch.masks) {
                continue;
            }
            let members = table.members(touch.joint);
            let mut followed = 0;
            let mut mine = visits.iter().peekable();
            for member in members {
                while mine.next_if(|visit| visit.inside.lock < member.lock).is_some() {}
                if let Some(visit) = mine.next_if(|visit| visit.inside.lock == member.lock) {
                    followed += usize::from(known.depend_on_number(member.section, visit, acquire));
                }
            }
            if followed == members.len() {
                touch.follower = touch.follower.or(joint);
            }
        }
    }

    /// A task that is in this joint section has done this.
    pub(super) fn add(&mut self, (number, kind, mask): (u64, Kind, u64), joint: JointId, known: &mut Known) {
        let Joints { lines, table } = self;
        let line = lines.entry(number).or_default();
        line.masks[kind as usize] |= mask;
        // Others may be one more touch of the same; who walks through a long list does so only to compare.
        let last = line.touches.len().saturating_sub(FEW);
        if let Some(touch) = line.touches[last..].iter_mut().find(|touch| touch.joint == joint) {
            touch.masks[kind as usize] |= mask;
        } else {
            let members = table.members(joint);
            let has_it = |touch: &Touch| {
                touch.masks[kind as usize] & mask == mask && is_part(members, table.members(touch.joint))
            };
            if line.touches[last..].iter().any(has_it) {
                return;
            }
            let mut masks = [0; 4];
            masks[kind as usize] = mask;
            line.touches.push(Touch { joint, masks, follower: None });
            table.remember(joint);
        }
        line.drop_parts(last, joint, table, known);
        line.drop_followed(last, table, known);
    }

    /// The end of the section does not come after what tasks did in it.
    pub(super) fn stands_for_nobody(&mut self, section: SectionId) {
        let Joints { lines, table } = self;
        let has_it = |joint: JointId| table.members(joint).iter().any(|member| member.section == section);
        for touch in lines.values_mut().flat_map(|line| &mut line.touches) {
            touch.follower = touch.follower.filter(|&follower| !has_it(follower));
        }
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The numbers of the lines from `first` to `last`, of those that are there.
    pub(super) fn between(&self, first: u64, last: u64) -> Vec<u64> {
        // Walk the smaller of the two: the lines of the range or the lines there are.
        if last - first >= self.lines.len() as u64 {
            self.lines.keys().copied().filter(|number| (first..=last).contains(number)).collect()
        } else {
            (first..=last).filter(|number| self.lines.contains_key(number)).collect()
        }
    }

    /// The bytes of a line become other memory.
    pub(super) fn erase_in_line(&mut self, number: u64, mask: u64, known: &mut Known) {
        let Joints { lines, table } = self;
        let Some(line) = lines.get_mut(&number) else { return };
        line.masks = line.masks.map(|all| all & !mask);
        line.touches.retain_mut(|touch| {
            touch.masks = touch.masks.map(|touched| touched & !mask);
            let is_left = touch.masks != [0; 4];
            if !is_left {
                table.forget(touch.joint, known);
            }
            is_left
        });
        if line.touches.is_empty() {
            lines.remove(&number);
        }
    }
}

#[cfg(test)]
impl Joints {
    /// How many joint sections a line remembers.
    pub(super) fn touches(&self, line: u64) -> usize {
        self.lines.get(&line).map_or(0, |line| line.touches.len())
    }

    /// Does nothing remember any?
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.table.joints.is_empty() && self.table.numbers.is_empty()
    }
}

impl Line {
    /// Drops touches from the `first` on for which that of `joint` stands: its task is in all of their sections.
    fn drop_parts(&mut self, first: usize, joint: JointId, table: &mut Table, known: &mut Known) {
        let mut own = self.touches.iter().rev().filter(|touch| touch.joint == joint);
        let Some(masks) = own.next().map(|touch| touch.masks) else { return };
        let members = table.members(joint);
        let gone = |touch: &Touch| {
            let as_much = touch.masks.iter().zip(masks).all(|(touched, mask)| touched & !mask == 0);
            touch.joint != joint && as_much && is_part(table.members(touch.joint), members)
        };
        let gone: Vec<bool> = self.touches[first..].iter().map(gone).collect();
        // Once its sections are over, they stand for earlier ones of the same tasks.
        for touch in self.touches[first..].iter_mut().filter(|touch| touch.joint != joint) {
            if touch.follower.is_none() && are_later(table.members(touch.joint), members, known) {
                touch.follower = Some(joint);
            }
        }
        self.drop(first, &gone, table, known);
    }

    /// Drops touches from the `first` on whose follower is over and has touched as much.
    fn drop_followed(&mut self, first: usize, table: &mut Table, known: &mut Known) {
        let over = |touch: &Touch| touch.follower.filter(|&follower| table.is_over(follower, known));
        let over: Vec<Option<JointId>> = self.touches[first..].iter().map(over).collect();
        if over.iter().all(Option::is_none) {
            return;
        }
        let mut masks: FxHashMap<JointId, [u64; 4]> = FxHashMap::default();
        for touch in &self.touches {
            let all = masks.entry(touch.joint).or_default();
            all.iter_mut().zip(touch.masks).for_each(|(all, mask)| *all |= mask);
        }
        let gone = |(touch, over): (&mut Touch, Option<JointId>)| {
            let Some(by) = over else { return false };
            let stands = masks.get(&by).is_some_and(|later| covers(later, &touch.masks));
            // Who has touched less does not stand for it; a later one may.
            touch.follower = touch.follower.filter(|_| stands);
            stands
        };
        let gone: Vec<bool> = self.touches[first..].iter_mut().zip(over).map(gone).collect();
        self.drop(first, &gone, table, known);
    }

    /// Drops those of the touches from the `first` on.
    fn drop(&mut self, first: usize, gone: &[bool], table: &mut Table, known: &mut Known) {
        let mut at = 0;
        self.touches.retain(|touch| {
            let is_gone = at >= first && gone[at - first];
            at += 1;
            if is_gone {
                table.forget(touch.joint, known);
            }
            !is_gone
        });
    }
}

/// Does what is done to these bytes depend on what was done to those?
fn depends(kind: Kind, mask: u64, masks: &[u64; 4]) -> bool {
    KINDS.into_iter().any(|earlier| kind.depends_on(earlier) && masks[earlier as usize] & mask != 0)
}

/// Does whoever depends on these touches depend on the later ones too?
fn covers(later: &[u64; 4], earlier: &[u64; 4]) -> bool {
    KINDS.into_iter().all(|kind| {
        let covering = KINDS.into_iter().filter(|later| later.covers(kind));
        earlier[kind as usize] & !covering.fold(0, |all, covering| all | later[covering as usize]) == 0
    })
}

/// Is each of the sections among the others?
fn is_part(members: &[Member], of: &[Member]) -> bool {
    let mut rest = of.iter();
    members.len() <= of.len() && members.iter().all(|member| rest.any(|other| other == member))
}

/// Is there a later section of the same task for each of them, of the same lock and no weaker?
fn are_later(members: &[Member], later: &[Member], known: &Known) -> bool {
    let mut rest = later.iter();
    members.len() <= later.len()
        && members.iter().all(|member| {
            rest.find(|other| other.lock == member.lock)
                .is_some_and(|other| known.is_later(member.section, other.section))
        })
}
