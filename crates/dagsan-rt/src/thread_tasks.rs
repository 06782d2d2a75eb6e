//! Threads are tasks: started by whoever creates them, ended when their last thread-local variable is gone, joined by `pthread_join`.
//!
//! No scope joins a thread. Its end is a promise that it sets, and that whoever joins it gets. What else orders threads (`std::thread::scope`,
//! channels, locks) is said by atomic operations and futexes (`sync`).

use dagsan_core::{Event, TaskId, TaskKind};
use dagsan_findings as findings;

use crate::session::Session;
use crate::state::OWNER;
use crate::tasks::{Birth, Handle, Stack};
use crate::threads::End;

impl Session {
    /// The running task creates a thread; `frame` is that of the function that does. It does not run yet.
    pub fn create_thread(&mut self, frame: usize) -> Handle {
        let call = self.stack_of_call(frame);
        let parent = self.told();
        let creator = self.tasks.handle();
        let child = TaskId(self.stream.structure().task_count());
        let kind = self.for_good();
        self.deliver_before_spawn();
        self.event(Event::Spawn { parent, child, kind });
        self.tasks.born(parent, Birth { name: findings::TaskKind::Thread, place: None });
        self.found.calls.insert(child.0, call);
        let handle = self.tasks.spawn(child, kind, Stack::default());
        self.shared.spawn(kind, self.tasks.slot());
        self.tasks.resume(creator);
        self.shared.turn(self.tasks.slot());
        handle
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
        self.promise_set(end.promise);
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
            self.thread_locals = self.image.thread_locals(OWNER.get());
        }
    }

    /// The kind of a task that only the end of the program joins.
    pub fn for_good(&mut self) -> TaskKind {
        self.keep();
        // Outside of every finish it is as any other.
        if self.tasks.innermost_finish() == 0 { TaskKind::Async } else { TaskKind::Detached }
    }
}
