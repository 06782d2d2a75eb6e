//! What a part has recorded, told to the session that comes to it, as if it had been done there.
//!
//! The main task of the part is the running one; the others get numbers as they come. If the part goes on, those of its tasks that live have places here, too.

use dagsan_core::contract::Opened;
use dagsan_core::{AccessKind, Event, Span, TaskId};
use dagsan_findings as findings;
use rustc_hash::FxHashMap;

use crate::heap;
use crate::nest::Nest;
use crate::owned::Owned;
use crate::promises::Promises;
use crate::races::Found;
use crate::recorder::{Item, Recorder, Told, for_lines};
use crate::session::Session;
use crate::shared;
use crate::state::Worker;
use crate::sync::Sync as Synchronisation;
use crate::tasks::{Birth, Stack, Stood, Tasks};

/// Where a task of a part is.
#[derive(Debug, Clone, Copy)]
struct Here {
    slot: u32,
    /// By the part's number.
    parent: TaskId,
}

type Living = FxHashMap<TaskId, Here>;

/// A task of which is not known how it was created.
const UNKNOWN: Birth = Birth { name: findings::TaskKind::Spawn, place: None, call: None };

impl Session {
    /// The session is that of a part from here on, which this worker runs on this stack. What it was before is over.
    pub fn begin_part(&mut self, finish: u32, number: u32, stack: Stack, worker: &'static Worker) {
        self.tasks = Tasks::of_part(number, stack, finish);
        shared::move_to(&mut self.shared, self.options.shared_reads && !self.options.exact, worker);
        self.stream.begin_part();
        self.stream.consumer_mut().record(Recorder::new(worker));
        self.tiny.forget();
        self.sync = Synchronisation::new(self.options.hygiene);
        (self.nest, self.found, self.owned) = (Nest::default(), Found::default(), Owned::default());
        (self.promises, self.uses) = (Promises::default(), findings::Uses::default());
        self.unseen.clear();
        self.offers.clear();
        self.fresh.end_strand();
        (self.stopped, self.deadlock, self.active) = (None, None, true);
        self.come_to_variables();
        self.has_no_outermost_scope();
        self.tasks.mark_at(stack.high);
    }

    /// Tells what a part has done that is over, as the running task.
    pub fn tell_part(&mut self, part: &mut Session) {
        self.pause();
        self.replay(part);
        self.tasks.mark();
    }

    /// Tells what a part has done so far, and goes on as what it runs now.
    pub fn go_on_as(&mut self, part: &mut Session) -> Stood {
        self.pause();
        let main = self.tasks.slot();
        self.tasks.lend_variables(&part.tasks);
        let living = self.replay(part);
        self.tasks.lend_variables(&Tasks::new());
        let place = |task: TaskId| living.get(&task).map(|here| here.slot);
        let places: Vec<(u32, u32)> =
            part.tasks.living().filter_map(|(slot, task)| Some((slot, place(task)?))).collect();
        self.offers.append(&mut part.offers);
        self.takes_scopes_of(part, main == 0);
        let stood = self.tasks.take_over(&mut part.tasks, &places);
        self.shared.turn(self.tasks.slot());
        stood
    }

    /// Tells what a part has told, as the running task, which is its main one. Returns where those of its tasks are that live.
    fn replay(&mut self, part: &mut Session) -> Living {
        let main = Here { slot: self.tasks.slot(), parent: TaskId::MAIN };
        let mut living = FxHashMap::from_iter([(TaskId::MAIN, main)]);
        let told = part.stream.consumer_mut().recorder().map(Recorder::take);
        for (item, spans) in told.iter().flat_map(Told::iter) {
            match *item {
                Item::Event(event) => self.replay_event(event, part, &mut living),
                Item::Accesses { task, .. } => {
                    self.turn_to(task, &living);
                    self.replay_accesses(spans);
                }
                Item::Erase(bytes) => {
                    self.owned.forget(bytes.start() as usize);
                    self.erase(bytes.start() as usize, bytes.len() as usize);
                }
                Item::Owned { start, end } => {
                    self.owned.insert(start..end);
                    if let Some(recorder) = self.stream.consumer_mut().recorder() {
                        recorder.push(*item);
                    }
                }
                Item::Allocators(site, what) => self.stream.consumer_mut().is_allocators(site, what),
                Item::Freed { start, size } => {
                    self.owned.forget(start);
                    self.forget_words(start..start.saturating_add(size));
                    if let Some(recorder) = self.stream.consumer_mut().recorder() {
                        recorder.push(*item);
                    }
                }
            }
        }
        // If the part goes on, another one runs, which is the innermost in the order of one thread, too. So nobody goes on out of his turn, and shared reads are kept.
        self.tasks.go_on(main.slot);
        self.tiny.adds(&mut part.tiny);
        self.add_uses(part);
        if let Some(end) = part.stopped.take() {
            self.give_up(end);
        }
        // A part that is told to another part is told again, and its blocks wait until then.
        match self.stream.consumer_mut().recorder() {
            Some(_) => self.freed.append(&mut part.freed),
            None => heap::give_back_all(&mut part.freed),
        }
        living
    }

    /// The task goes on that a part knows by this number.
    fn turn_to(&mut self, task: TaskId, living: &Living) {
        if let Some(here) = living.get(&task)
            && here.slot != self.tasks.slot()
        {
            self.tasks.go_on(here.slot);
            self.shared.turn(here.slot);
        }
    }

    fn replay_accesses(&mut self, spans: &[Span]) {
        if self.stopped.is_some() {
            return;
        }
        let task = self.tasks.current();
        let keeps = shared::are_worth_it(spans, self.stream.consumer());
        let result = self.stream.spans(task, spans);
        shared::delivered(&mut self.shared, spans, keeps, self.stream.consumer());
        if !self.shared.is_empty() {
            // What this thread writes itself goes by the tables.
            for span in spans.iter().filter(|span| span.first.kind == AccessKind::Write) {
                for_lines(span, shared::forget);
            }
        }
        self.delivered(result);
    }

    fn replay_event(&mut self, event: Event, part: &Session, living: &mut Living) {
        let by = event.task();
        self.turn_to(by, living);
        let task = self.tasks.current();
        match event {
            Event::Spawn { child, kind, .. } => {
                let number = TaskId(self.stream.structure().task_count());
                self.tell_event(Event::Spawn { parent: task, child: number, kind });
                self.forget_births();
                self.tasks.born(task, part.tasks.birth(child).unwrap_or(UNKNOWN));
                self.tasks.spawn(number, kind, Stack::default());
                self.shared.spawn(kind, self.tasks.slot());
                living.insert(child, Here { slot: self.tasks.slot(), parent: by });
            }
            Event::TaskEnd { .. } => {
                self.tell_event(Event::TaskEnd { task });
                self.shared.task_end();
                self.sync.task_ended(task);
                self.tasks.end();
                if let Some(ended) = living.remove(&by)
                    && let Some(parent) = living.get(&ended.parent)
                {
                    self.tasks.go_on(parent.slot);
                }
            }
            Event::FrameBegin { .. } => {
                self.tell_event(Event::FrameBegin { task });
                self.shared.open(Opened::Frame);
            }
            Event::FrameEnd { .. } => {
                self.tell_event(Event::FrameEnd { task });
                self.shared.close();
            }
            Event::Sync { .. } => {
                self.tell_event(Event::Sync { task });
                self.shared.sync();
            }
            // Whoever comes to another one falls in first.
            _ => self.give_up(findings::End::Broken(format!("a part that runs ahead has told of {event:?}"))),
        }
    }

    /// What a part depends on, the session does.
    fn add_uses(&mut self, part: &mut Session) {
        self.uses.split = part.uses.split.or(self.uses.split);
        for seen in part.unseen.drain(..) {
            match self.unseen.iter_mut().find(|known| known.what == seen.what && known.site == seen.site) {
                Some(known) => known.count += seen.count,
                None => self.unseen.push(seen),
            }
        }
    }

    fn tell_event(&mut self, event: Event) {
        if self.stopped.is_none() {
            self.send(event);
        }
    }
}
