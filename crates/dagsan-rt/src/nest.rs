//! Memory of one thread of a team: its stack, and the blocks that it has allocated for itself.
//!
//! A piece of work that any thread of a team may get (a `single`, a section, a chunk of a loop) is a task of its own, parallel to all that the
//! team does between the same barriers: whoever ran it, another thread may have (`team`). But what a thread keeps for itself, private variables and
//! buffers, is another thread's own if another thread runs the piece. So these bytes are judged by the order of the threads themselves: to them, a
//! piece is part of the thread that ran it. Each running task has a *shadow* for that, a second task in the stream. Both are told of the same events.
//!
//! ```text
//!   the stack of a thread   │ frames of before │ own: the region's │ frames of a piece │ own: a region in it │ frames of a piece of that …
//!                           high               └ zones: each begins where the last one ends, and they alternate                       low
//! ```
//!
//! **Zones.** Frames that come and go while a thread runs a piece are known to nobody but the piece and the tasks that it starts, and between these both orders say the same.
//! So they are judged by the order of tasks, and are other memory when the piece ends. A thread's own are those frames that were there before.
//!
//! **Shadows that are due.** An explicit task that runs at once, where it is created, gets its shadow only if it needs one: when it first touches what is a thread's own, or makes
//! an event that orders or excludes. Whoever has started it waits for it meanwhile, and so does the shadow of that one, which has done nothing since: the shadow that is started late
//! is started from where it would have been. If it is never needed, it has done nothing, and need not be joined.
//!
//! Limits. A block that a thread has allocated outside of a `single` and outside of explicit tasks is taken for its own, also if others get its
//! address: what they do to it is compared as this run went.

use std::collections::BTreeMap;
use std::ops::Range;

use dagsan_core::{Error, Event, Location, Run, Span, TaskId, TaskKind};

use crate::log;
use crate::outbox::Outbox;
use crate::private::{Private, within};
use crate::session::Session;
use crate::tasks::Shadow;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Nest {
    stacks: Vec<Own>,
    /// Starts and ends.
    blocks: BTreeMap<usize, usize>,
    /// Room for what is delivered: all of it, and its two parts.
    room: [Vec<Span>; 3],
}

/// A stack, and where its zones begin, from the highest: its own, that of a piece, its own, …
#[derive(Debug)]
struct Own {
    stack: Range<usize>,
    zones: Vec<usize>,
}

impl Own {
    /// The zones that are its own.
    fn own(&self) -> impl Iterator<Item = Range<usize>> {
        self.zones.chunks(2).map(|zone| zone.get(1).copied().unwrap_or(self.stack.start)..zone[0])
    }
}

impl Nest {
    /// A thread of a team has this stack, or this part of one.
    pub fn stack(&mut self, stack: Range<usize>) {
        let known = Own { zones: vec![stack.end], stack };
        match self.stacks.iter_mut().find(|other| other.stack.start == known.stack.start) {
            Some(other) => *other = known,
            None => self.stacks.push(known),
        }
    }

    /// The zone of the stack that lies below this address is another one, a thread's `own` or not; not if it is such a zone already. Did it change?
    fn begin_zone(&mut self, at: usize, own: bool) -> bool {
        let Some(Own { zones, .. }) = self.stacks.iter_mut().find(|known| known.stack.contains(&(at - 1)))
        else {
            return false;
        };
        let changes = (zones.len() % 2 == 1) != own;
        if changes {
            zones.push(at);
        }
        changes
    }

    /// The last zone of the stack ends, which has begun there.
    fn end_zone(&mut self, at: usize) {
        if let Some(Own { zones, .. }) = self.stacks.iter_mut().find(|known| known.stack.contains(&(at - 1)))
        {
            // Those in it that nobody has ended, as the program has jumped out of them, end, too.
            while zones.len() > 1 && zones.last().is_some_and(|&zone| zone <= at) {
                zones.pop();
            }
        }
    }

    /// A thread has allocated a block for itself.
    pub fn allocated(&mut self, start: usize, size: usize) {
        self.blocks.insert(start, start.saturating_add(size));
    }

    /// The block is freed, or somebody else's.
    pub fn freed(&mut self, start: usize) {
        if !self.blocks.is_empty() {
            self.blocks.remove(&start);
        }
    }

    /// Nothing is parallel to the present.
    pub fn forget(&mut self) {
        self.blocks.clear();
    }

    fn holds(&self, address: usize) -> bool {
        let block = self.blocks.range(..=address).next_back();
        block.is_some_and(|(_, &end)| address < end)
            || self.stacks.iter().flat_map(Own::own).any(|zone| zone.contains(&address))
    }

    /// The bytes of a line that are a thread's own.
    fn of(&self, line: u64) -> u64 {
        let zones = self.stacks.iter().flat_map(Own::own);
        let stacks = zones.fold(0, |mask, zone| mask | within(&zone, line));
        let (start, end) = ((line as usize) << 6, (line as usize + 1) << 6);
        let before = self.blocks.range(..start).next_back();
        let blocks = self.blocks.range(start..end).chain(before);
        blocks.fold(stacks, |mask, (&start, &end)| mask | within(&(start..end), line))
    }

    /// Is nothing in these bytes a thread's own?
    fn is_shared(&self, bytes: &Range<usize>) -> bool {
        let block = self.blocks.range(..bytes.end).next_back();
        block.is_none_or(|(_, &end)| end <= bytes.start)
            && self
                .stacks
                .iter()
                .filter(|Own { stack, .. }| stack.start < bytes.end && bytes.start < stack.end)
                .flat_map(Own::own)
                .all(|zone| bytes.end <= zone.start || zone.end <= bytes.start)
    }

    /// Has a line no bytes that are a thread's own?
    #[inline]
    pub fn is_shared_line(&self, line: u64) -> bool {
        let start = (line as usize) << 6;
        self.is_shared(&(start..start + 64))
    }

    /// Parts the spans: those that are a thread's own go to the second list.
    pub fn part(&self, spans: &[Span], shared: &mut Vec<Span>, own: &mut Vec<Span>) {
        for span in spans {
            let (line, more) = (span.first.at.line as usize, span.more as usize);
            if self.is_shared(&(line << 6..(line + more + 1) << 6)) {
                shared.push(*span);
            } else {
                self.part_runs(span, shared, own);
            }
        }
    }

    fn part_runs(&self, span: &Span, shared: &mut Vec<Span>, own: &mut Vec<Span>) {
        for run in span.runs() {
            let mine = self.of(run.at.line);
            for (mask, list) in [(run.at.mask & !mine, &mut *shared), (run.at.mask & mine, &mut *own)] {
                if mask != 0 {
                    let at = Location { mask, ..run.at };
                    list.push(Span { first: Run { at, ..run }, more: 0 });
                }
            }
        }
    }
}

impl Session {
    /// Who accesses this address, if the running task does: itself or its shadow.
    pub fn who_accesses(&mut self, address: usize) -> TaskId {
        let task = self.told();
        if self.tasks.shadow() != Shadow::Itself && self.nest.holds(address) {
            self.shadow().unwrap_or(task)
        } else {
            task
        }
    }

    /// The running task in the order of threads, if it is another one there. From here on it is.
    pub fn shadow(&mut self) -> Option<TaskId> {
        if let Shadow::Due(_) = self.tasks.shadow() {
            self.start_shadows();
        }
        match self.tasks.shadow() {
            Shadow::Other(shadow) => Some(shadow),
            Shadow::Itself | Shadow::Due(_) => None,
        }
    }

    /// Starts the shadows that are due, of the running task and of those that wait for it.
    #[cold]
    fn start_shadows(&mut self) {
        self.tell();
        let mut due = Vec::new();
        let mut slot = self.tasks.slot();
        while let Shadow::Due(parent) = self.tasks.shadow_of(slot) {
            due.push(slot);
            slot = parent;
        }
        // Whoever's shadow is due was started by somebody who has another one.
        let Shadow::Other(mut parent) = self.tasks.shadow_of(slot) else { return };
        for next in due.into_iter().rev() {
            let kind = self.kind_of_shadow(self.kind_of_explicit(), slot);
            let child = TaskId(self.stream.structure().task_count());
            let birth = self.tasks.birth(self.tasks.number_of(next));
            self.send(Event::Spawn { parent, child, kind });
            let Some(birth) = birth.filter(|_| self.stopped.is_none()) else { return };
            self.tasks.born(parent, birth);
            self.tasks.set_shadow(next, Shadow::Other(child));
            for _ in 0..self.tasks.open_scopes(next) {
                self.send(Event::FinishBegin { task: child });
            }
            (slot, parent) = (next, child);
        }
    }

    /// What the shadow is of a task of that kind, which the task there has started. The shadow of a piece is the thread's own task, which has children that
    /// nobody waits for in a piece.
    pub fn kind_of_shadow(&self, kind: TaskKind, parent: u32) -> TaskKind {
        match kind {
            TaskKind::Child if self.tasks.is_piece(parent) => TaskKind::Future,
            other => other,
        }
    }

    /// Tells the stream what the running task has done, as itself and as its shadow.
    fn parted(&mut self, room: &mut [Vec<Span>; 3], task: TaskId) -> Result<(), Error> {
        let [all, shared, own] = room;
        self.nest.part(all, shared, own);
        self.stream.spans(task, shared)?;
        if own.is_empty() {
            return Ok(());
        }
        let shadow = self.shadow().unwrap_or(task);
        self.stream.spans(shadow, own)
    }

    /// Hands what the running task, which has a shadow, has done so far to the detector: nothing is kept of what it reads.
    #[cold]
    pub fn deliver_parted(&mut self) {
        let (task, mut room) = (self.tasks.current(), std::mem::take(&mut self.nest.room));
        let all = &mut room[0];
        let private = Private::new(self.tasks.private(), self.worker_variables(), &self.owned);
        let shares = !self.shared.is_empty();
        let mut outbox =
            Outbox::new(std::mem::take(&mut self.spans), true, |spans| all.extend_from_slice(spans));
        log::take(&mut self.sites, &mut outbox, &private, shares);
        self.sync.bring(&mut self.sites, &mut outbox, |line| private.of(line));
        self.spans = outbox.close();
        self.sync.told(&mut self.sites, &mut self.shared, false, self.stream.consumer(), |_| 0);
        self.touch_variables(private.touched());
        let any = !all.is_empty() && self.stopped.is_none();
        let result = if any { self.parted(&mut room, task) } else { Ok(()) };
        room.iter_mut().for_each(Vec::clear);
        self.nest.room = room;
        let strand = if any { self.stream.strand(task) } else { None };
        self.sites.journal.end_piece(strand);
        if any {
            self.delivered(result);
        }
    }

    /// The running task has made an event, and so has its shadow.
    #[cold]
    pub fn shadow_follows(&mut self, event: Event) {
        use Event::*;
        let mut event = event;
        match &mut event {
            // What the task itself has just released stays.
            Release { keep, .. } => *keep = true,
            Acquire { .. } | Lock { .. } | Unlock { .. } => {}
            // A shadow that is due will begin as many as are open.
            FinishBegin { .. } | FinishEnd { .. } if matches!(self.tasks.shadow(), Shadow::Other(_)) => {}
            // Told by whoever makes them (`team`).
            _ => return,
        }
        if event.task() == self.tasks.current()
            && self.stopped.is_none()
            && let Some(shadow) = self.shadow()
        {
            *event.task_mut() = shadow;
            self.send(event);
        }
    }

    /// The running task, whose frames end there, is a piece of work from here on, or no longer: frames below are, or were, the piece's, and other memory before and behind.
    pub fn turn_zone(&mut self, at: usize, begins: bool) {
        if begins {
            self.nest.begin_zone(at, false);
        } else {
            self.nest.end_zone(at);
        }
        self.forget_frames_below(at);
    }

    /// The frames that the running task had below that address are judged by another order from here on.
    fn forget_frames_below(&mut self, at: usize) {
        let had = self.tasks.no_frames_below(at);
        if self.options.hygiene.stacks && !had.is_empty() && self.stopped.is_none() {
            self.forget_words(had.clone());
            self.erase(had.start, had.len());
        }
    }

    /// The running task, whose frames end there, comes to a region: the frames of the region are the thread's own, also in a piece. Did that change anything?
    pub fn begin_own_zone(&mut self, at: usize) -> bool {
        let changes = self.nest.begin_zone(at, true);
        if changes {
            self.forget_stack_below(at);
        }
        changes
    }

    /// Nothing lives on the stack below that address, whoever had frames there: these were judged by one order, and those that come will be by the other.
    fn forget_stack_below(&mut self, at: usize) {
        let low = self.tasks.stack().low;
        self.tasks.no_frames_below(at);
        if self.options.hygiene.stacks && low < at && self.stopped.is_none() {
            self.forget_words(low..at);
            self.erase(low, at - low);
        }
    }

    /// The region ends, which has changed something.
    pub fn end_own_zone(&mut self, at: usize) {
        self.nest.end_zone(at);
        self.forget_stack_below(at);
    }
}

#[cfg(test)]
mod tests {
    use dagsan_core::{AccessKind, SiteId};

    use super::*;

    #[test]
    fn bytes_of_a_line_are_a_threads_own_or_not() {
        let mut nest = Nest::default();
        nest.stack(4096..8192);
        nest.allocated(128 + 16, 16);
        assert_eq!(nest.of(2), 0xffff_0000);
        assert_eq!((nest.of(64), nest.of(128)), (u64::MAX, 0));
        assert!(nest.holds(150) && !nest.holds(160) && nest.holds(5000));
        let at = Location { line: 2, mask: 0xff00_00ff };
        let run = Run { at, kind: AccessKind::Write, site: SiteId::new(0).unwrap(), atomic: false };
        let (mut shared, mut own) = (Vec::new(), Vec::new());
        nest.part(&[Span { first: run, more: 1 }], &mut shared, &mut own);
        let masks = |list: &[Span]| list.iter().map(|span| span.first.at.mask).collect::<Vec<_>>();
        assert_eq!((masks(&shared), masks(&own)), (vec![0xff, 0xff00_00ff], vec![0xff00_0000]));
        // Lines before a block, behind it, and before a stack stay together.
        let whole = |line, more| {
            let (mut shared, mut own) = (Vec::new(), Vec::new());
            let span = Span { first: Run { at: Location { line, mask: 1 }, ..run }, more };
            nest.part(&[span], &mut shared, &mut own);
            (shared.len(), shared.iter().map(|span| span.more).sum::<u32>(), own.len())
        };
        assert_eq!([whole(0, 1), whole(3, 60), whole(128, 9)], [(1, 1, 0), (1, 60, 0), (1, 9, 0)]);
        assert_eq!([whole(1, 1), whole(62, 3)], [(2, 0, 0), (2, 0, 2)]);
        nest.freed(128 + 16);
        assert_eq!(nest.of(2), 0);
    }

    #[test]
    fn frames_of_a_piece_are_not_the_threads_own() {
        let mut nest = Nest::default();
        nest.stack(4096..8192);
        // A piece begins, a region in it, and a piece of that.
        assert!(nest.begin_zone(8000, false) && !nest.begin_zone(7900, false));
        assert!(nest.holds(8000) && !nest.holds(7999));
        assert!(nest.begin_zone(7000, true) && nest.begin_zone(6000, false));
        assert!(nest.holds(6500) && !nest.holds(7000) && !nest.holds(5999));
        assert!(nest.is_shared_line(5000 >> 6) && !nest.is_shared_line(6500 >> 6));
        nest.end_zone(6000);
        assert!(nest.holds(5000));
        // The end of the outer piece is that of what is in it.
        nest.end_zone(8000);
        assert!(nest.holds(7500) && nest.holds(4096) && !nest.holds(8192));
    }
}
