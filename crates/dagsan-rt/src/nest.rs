//! Memory of one thread of a team: its stack, and the blocks that it has allocated for itself.
//!
//! A piece of work that any thread of a team may get (a `single`, a section, a chunk of a loop) is a task of its own, parallel to all that the
//! team does between the same barriers: whoever ran it, another thread may have (`team`). But what a thread keeps for itself, private variables and
//! buffers, is another thread's own if another thread runs the piece. So these bytes are judged by the order of the threads themselves: to them, a
//! piece is part of the thread that ran it. Each running task has a *shadow* for that, a second task in the stream. Both are told of the same events.
//!
//! Limits. A block that a thread has allocated outside of a `single` and outside of explicit tasks is taken for its own, also if others get its
//! address: what they do to it is compared as this run went.

use std::collections::BTreeMap;
use std::ops::Range;

use dagsan_core::{Error, Event, Location, Run, Span, TaskId};

use crate::log;
use crate::outbox::Outbox;
use crate::private::{Private, within};
use crate::session::Session;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Nest {
    stacks: Vec<Range<usize>>,
    /// Starts and ends.
    blocks: BTreeMap<usize, usize>,
    /// Room for what is delivered: all of it, and its two parts.
    room: [Vec<Span>; 3],
}

impl Nest {
    /// A thread of a team has this stack, or this part of one.
    pub fn stack(&mut self, stack: Range<usize>) {
        match self.stacks.iter_mut().find(|known| known.start == stack.start) {
            Some(known) => *known = stack,
            None => self.stacks.push(stack),
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
            || self.stacks.iter().any(|stack| stack.contains(&address))
    }

    /// The bytes of a line that are a thread's own.
    fn of(&self, line: u64) -> u64 {
        let stacks = self.stacks.iter().fold(0, |mask, stack| mask | within(stack, line));
        let (start, end) = ((line as usize) << 6, (line as usize + 1) << 6);
        let before = self.blocks.range(..start).next_back();
        let blocks = self.blocks.range(start..end).chain(before);
        blocks.fold(stacks, |mask, (&start, &end)| mask | within(&(start..end), line))
    }

    /// Is nothing in these bytes a thread's own?
    fn is_shared(&self, bytes: &Range<usize>) -> bool {
        let block = self.blocks.range(..bytes.end).next_back();
        block.is_none_or(|(_, &end)| end <= bytes.start)
            && self.stacks.iter().all(|stack| bytes.end <= stack.start || stack.end <= bytes.start)
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
        match self.tasks.shadow() {
            Some(shadow) if self.nest.holds(address) => shadow,
            _ => task,
        }
    }

    /// Tells the stream what the running task has done, as itself and as its shadow.
    fn parted(&mut self, room: &mut [Vec<Span>; 3], task: TaskId, shadow: TaskId) -> Result<(), Error> {
        let [all, shared, own] = room;
        self.nest.part(all, shared, own);
        self.stream.spans(task, shared)?;
        if own.is_empty() { Ok(()) } else { self.stream.spans(shadow, own) }
    }

    /// Hands what the running task, which has a shadow, has done so far to the detector: nothing is kept of what it reads.
    #[cold]
    pub fn deliver_parted(&mut self, shadow: TaskId) {
        let (task, mut room) = (self.tasks.current(), std::mem::take(&mut self.nest.room));
        let all = &mut room[0];
        let private = Private::new(self.tasks.private(), self.worker_variables(), &self.owned);
        let shares = !self.shared.is_empty();
        let mut outbox =
            Outbox::new(std::mem::take(&mut self.spans), true, |spans| all.extend_from_slice(spans));
        log::take(&mut self.sites, &mut outbox, &private, shares);
        self.sync.bring(&mut self.sites, &mut outbox, |line| private.of(line));
        self.spans = outbox.close();
        self.sync.told(&mut self.sites, &mut self.shared, false, self.stream.consumer());
        self.tasks.touch(private.touched());
        let any = !all.is_empty() && self.stopped.is_none();
        let result = if any { self.parted(&mut room, task, shadow) } else { Ok(()) };
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
    pub fn shadow_follows(&mut self, event: Event, shadow: TaskId) {
        use Event::*;
        let mut event = event;
        match &mut event {
            // What the task itself has just released stays.
            Release { keep, .. } => *keep = true,
            Acquire { .. } | Lock { .. } | Unlock { .. } | FinishBegin { .. } | FinishEnd { .. } => {}
            // Told by whoever makes them (`team`).
            _ => return,
        }
        if event.task() == self.tasks.current() && self.stopped.is_none() {
            *event.task_mut() = shadow;
            self.send(event);
        }
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
}
