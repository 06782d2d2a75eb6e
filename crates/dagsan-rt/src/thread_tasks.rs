//! Threads are tasks: started by whoever creates them, ended when their last thread-local variable is gone, joined by `pthread_join`.
//!
//! A thread is a future, and a join gets it: when all were joined, nothing is parallel any more, and the past is forgotten. A finish
//! around it would join it, too, which is not so; there it is a detached task with a promise that it sets at its end. What else orders
//! threads (`std::thread::scope`, channels, locks) is said by atomic operations and futexes (`sync`).

use dagsan_core::{Event, TaskId, TaskKind};
use dagsan_findings as findings;

use crate::events;
use crate::session::Session;
use crate::state::worker;
use crate::tasks::{Birth, Handle, Shadow, Stack};
use crate::threads::End;

/// How a thread is joined.
#[derive(Debug, Clone, Copy)]
pub struct Joined {
    pub task: Handle,
    /// What it sets at its end, if it is not a future.
    promise: Option<u64>,
    /// The same of its shadow, if it was created in a piece of a team's work.
    of_shadow: Option<u64>,
}

impl Session {
    /// The running task creates a thread; `frame` is that of the function that does. It does not run yet.
    pub fn create_thread(&mut self, frame: usize) -> Joined {
        let call = self.stack_of_call(frame);
        let parent = self.told();
        let creator = self.tasks.handle();
        let child = TaskId(self.stream.structure().task_count());
        self.keep();
        let outside = self.tasks.innermost_finish() == 0;
        let kind = if outside { TaskKind::Future } else { TaskKind::Detached };
        self.deliver_before_spawn();
        self.event(Event::Spawn { parent, child, kind });
        let birth = Birth { name: findings::TaskKind::Thread, place: None, call: None };
        self.tasks.born(parent, birth);
        self.found.calls.insert(child.0, call);
        let shadow = self.shadow().map(|parent| self.born(parent, kind, birth));
        let task = self.tasks.spawn(child, kind, Stack::default());
        self.tasks.set_shadow(self.tasks.slot(), shadow.map_or(Shadow::Itself, Shadow::Other));
        self.shared.spawn(kind, self.tasks.slot());
        self.tasks.resume(creator);
        self.shared.turn(self.tasks.slot());
        let promise = || if outside { None } else { Some(events::__dagsan_promise_new()) };
        Joined { task, promise: promise(), of_shadow: shadow.and_then(|_| promise()) }
    }

    /// The running task joins a thread that has ended.
    pub fn join_thread(&mut self, thread: Joined) {
        let task = self.told();
        if let Some(promise) = thread.of_shadow {
            let shadow = self.shadow().unwrap_or(task);
            self.promise_get_by(shadow, promise);
            self.promise_drop(promise);
        }
        if let Some(promise) = thread.promise {
            self.promise_get_by(task, promise);
            return self.promise_drop(promise);
        }
        self.event(Event::FutureGet { task, future: thread.task.task() });
        self.future_drop(thread.task);
    }

    /// Nobody will join it.
    pub fn detach_thread(&mut self, thread: Joined) {
        if thread.promise.is_none() {
            self.future_drop(thread.task);
        }
    }

    /// The thread of the running task begins, on its stack.
    pub fn thread_begins(&mut self, stack: Stack) {
        self.begin_on(stack);
        self.tasks.begin_on(stack);
        self.tasks.mark();
    }

    /// It ends, and tells who waits for that.
    pub fn thread_ends(&mut self, end: End) {
        if self.tasks.has_open_scope() {
            let why = "a thread that ran tasks has ended in the middle of them";
            self.give_up(findings::End::CutShort(why.to_owned()));
        }
        if let Some(promise) = end.joined.promise {
            self.promise_set(promise);
        }
        if let Some((promise, shadow)) = end.joined.of_shadow.zip(self.shadow()) {
            self.promise_set_by(shadow, promise);
        }
        if let Some(scope) = end.scope {
            self.scope_left(scope.get());
        }
        self.task_end();
    }

    /// Another thread has the turn, and goes on with its task.
    pub fn takes_turn(&mut self, task: Handle) {
        self.resume(task);
        // What was the other thread's alone is not this one's.
        self.owned.clear();
        if self.options.hygiene.thread_locals {
            self.thread_locals = self.image.thread_locals(worker().owner.get());
        }
    }
}
