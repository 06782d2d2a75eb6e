//! Tasks of a team in the stream: how they are started, ended and joined, each with its shadow (`nest`), if it has one.

use std::num::NonZero;

use dagsan_core::{Construct, Event, TaskId, TaskKind};

use crate::session::Session;
use crate::sites;
use crate::tasks::{Birth, Handle, Shadow, Stack};
use crate::team::{Before, Kind, RETURN, Task, Unwaited};

impl Session {
    /// The number of the code that has called the function of this frame, as that of a stack.
    fn code_of_call(&mut self, frame: usize) -> Option<NonZero<u32>> {
        let stack = self.tasks.stack();
        let mut frames = [0; 1];
        let count = sites::walk(frame, stack.low, usize::MAX, &mut frames);
        NonZero::new(self.sites.stack_number(&frames[..count]))
    }

    pub(crate) fn start(&mut self, parent: Task, kind: Kind, call: usize) -> Task {
        self.tell();
        let call = self.code_of_call(call);
        let of_finish = match kind {
            Kind::Explicit => self.kind_of_explicit(),
            Kind::Loose => TaskKind::Future,
            Kind::Implicit | Kind::Piece => TaskKind::Async,
        };
        self.deliver_before_spawn();
        let birth = Birth { name: kind.name(), place: None, call };
        let running = self.tasks.handle();
        let by = self.tasks.of_handle(parent.handle);
        let child = self.born(by, of_finish, birth);
        let of_shadow = self.kind_of_shadow(of_finish, self.tasks.slot());
        let shadow = match parent.shadow {
            Shadow::Other(parent) => Shadow::Other(self.born(parent, of_shadow, birth)),
            other => other,
        };
        self.tasks.mark();
        let handle = self.tasks.spawn(child, of_finish, Stack::default());
        self.tasks.set_shadow(self.tasks.slot(), shadow);
        self.shared.spawn(of_finish, self.tasks.slot());
        self.tasks.resume(running);
        self.shared.turn(self.tasks.slot());
        Task { handle, shadow, parents: parents(of_finish, by, of_shadow, parent.shadow) }
    }

    /// What an explicit task is to the stream.
    pub(crate) fn kind_of_explicit(&self) -> TaskKind {
        if self.options.engine.supports(Construct::Child) { TaskKind::Child } else { TaskKind::Future }
    }

    pub(crate) fn start_here(&mut self, frame: usize) {
        let call = self.code_of_call(frame);
        let birth = Birth { name: Kind::Explicit.name(), place: None, call };
        let stack = Stack { low: 0, high: frame + RETURN };
        let kind = self.kind_of_explicit();
        let had = self.tasks.no_frames_below(stack.high);
        if self.options.hygiene.stacks && !had.is_empty() && self.stopped.is_none() {
            self.deliver_before_spawn();
            self.erase(had.start, had.len());
        }
        self.spawn(kind, birth, stack);
    }

    pub(crate) fn end_here(&mut self, parent: Task, by_others: bool) -> Option<Task> {
        let slot = self.tasks.slot();
        self.task_end();
        self.resume(parent.handle);
        let (handle, shadow) = (Handle::of_place(&self.tasks, slot), self.tasks.shadow_of(slot));
        if handle.was_contracted() {
            return None;
        }
        let (by, place, of_finish) = (self.tasks.current(), self.tasks.slot(), self.kind_of_explicit());
        if by_others || of_finish != TaskKind::Child || matches!(shadow, Shadow::Other(_)) {
            let of_shadow = self.kind_of_shadow(of_finish, place);
            return Some(Task {
                handle,
                shadow,
                parents: parents(of_finish, by, of_shadow, self.tasks.shadow()),
            });
        }
        if self.tasks.is_piece(place) {
            self.tiny.leaves(place, by, handle.task());
        } else {
            self.future_drop(handle);
        }
        None
    }

    /// The stream hears of a task.
    pub(crate) fn born(&mut self, parent: TaskId, kind: TaskKind, birth: Birth) -> TaskId {
        let child = TaskId(self.stream.structure().task_count());
        self.event_of_other(Event::Spawn { parent, child, kind });
        if self.stopped.is_none() {
            if self.tasks.want_collection()
                && let Some(remembered) = self.stream.consumer().remembered_tasks()
            {
                self.tasks.collect(remembered);
            }
            self.tasks.born(parent, birth);
        }
        child
    }

    pub(crate) fn get(&mut self, future: Task) {
        let task = self.told();
        let own = future.handle.task();
        self.event(Event::FutureGet { task, future: own });
        self.get_by_shadow(task, future);
    }

    /// What is the running task in the order of threads comes after what the future is there, if that has done anything.
    fn get_by_shadow(&mut self, task: TaskId, future: Task) {
        let own = future.handle.task();
        let Some(other) = future.in_order_of_threads() else { return };
        match self.shadow() {
            Some(shadow) => self.event_of_other(Event::FutureGet { task: shadow, future: other }),
            None if other != own => self.event(Event::FutureGet { task, future: other }),
            None => {}
        }
    }

    /// Children of the running task, and of its shadow, are joined by a sync, the others one by one.
    pub(crate) fn get_all(&mut self, futures: impl Iterator<Item = Task>, others: Unwaited) {
        let (mut by_task, mut by_shadow) = (false, false);
        for future in futures {
            let task = self.told();
            let [parent, of_shadow] = future.parents;
            if parent == Some(task) {
                by_task = true;
            } else {
                self.event(Event::FutureGet { task, future: future.handle.task() });
            }
            match self.tasks.shadow() {
                Shadow::Other(shadow) if of_shadow == Some(shadow) => by_shadow = true,
                _ => self.get_by_shadow(task, future),
            }
        }
        if others.of_pieces {
            let task = self.told();
            for left in self.tiny.take_left(self.tasks.slot()) {
                self.event(Event::FutureGet { task, future: left });
                self.future_drop(Handle::of_future(left));
            }
        }
        if by_task || others.own && !self.sync_tiny() {
            let task = self.told();
            self.event(Event::Sync { task });
            for joined in self.tiny.has_waited(task) {
                self.future_drop(Handle::of_future(joined));
            }
        }
        if by_shadow && let Some(shadow) = self.shadow() {
            self.event_of_other(Event::Sync { task: shadow });
        }
    }

    pub(crate) fn begin_piece(&mut self, encountering: Task, shares: bool, frame: usize) -> Option<Before> {
        let task = self.told();
        if self.stopped.is_some() {
            return None;
        }
        self.deliver();
        self.fresh.end_strand();
        let locks = self.hand_over();
        let call = self.code_of_call(frame);
        let by = self.tasks.of_handle(encountering.handle);
        let piece = self.born(by, TaskKind::Async, Birth { name: Kind::Piece.name(), place: None, call });
        let shadow = self.tasks.shadow();
        let own_heap = self.tasks.own_heap(!shares);
        let in_order_of_threads = self.shadow().unwrap_or(task);
        self.tasks.is_told(self.tasks.slot(), piece);
        self.tasks.set_shadow(self.tasks.slot(), Shadow::Other(in_order_of_threads));
        self.tasks.set_piece(true);
        self.tasks.mark();
        let top = frame + RETURN;
        self.turn_zone(top, true);
        self.take_over(locks);
        Some(Before { task, shadow, own_heap, top })
    }

    pub(crate) fn end_piece(&mut self, before: &Before) {
        let piece = self.told();
        self.deliver();
        self.fresh.end_strand();
        let locks = self.hand_over();
        self.event_of_other(Event::TaskEnd { task: piece });
        self.sync.task_ended(piece);
        self.tasks.is_told(self.tasks.slot(), before.task);
        self.tasks.set_piece(false);
        self.tasks.set_shadow(self.tasks.slot(), before.shadow);
        self.tasks.own_heap(before.own_heap);
        self.turn_zone(before.top, false);
        self.tasks.mark();
        self.take_over(locks);
    }
}

/// Whose children a task and its shadow are, if they are any.
fn parents(kind: TaskKind, parent: TaskId, of_shadow: TaskKind, shadow: Shadow) -> [Option<TaskId>; 2] {
    let shadow = match shadow {
        Shadow::Other(shadow) if of_shadow == TaskKind::Child => Some(shadow),
        _ => None,
    };
    [Some(parent).filter(|_| kind == TaskKind::Child), shadow]
}
