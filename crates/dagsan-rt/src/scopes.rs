//! Scopes of the running task: with the outermost one a thread adopts the session, and gives it back when that closes.

use std::cell::Cell;

use dagsan_core::contract::Opened;
use dagsan_findings as findings;

use crate::events;
use crate::holder::with;
use crate::offers;
use crate::session::{Session, called};
use crate::state::worker;
use crate::tasks::Stack;
use crate::threads;
use crate::turns;

thread_local! {
    /// Scopes of this thread that are open and not checked. What is in them is not checked either, whoever has the
    /// session meanwhile: tasks that began outside of a check may still run.
    static PASSED_BY: Cell<u32> = const { Cell::new(0) };
}

/// Adopts the session for this thread's tasks. Not if somebody has it, or if the thread is in the middle of something.
#[cold]
pub fn adopt() -> bool {
    let adopted = adopt_for_thread();
    if !adopted {
        PASSED_BY.set(PASSED_BY.get() + 1);
    }
    adopted
}

/// The same, for a thread that creates another.
pub fn adopt_for_thread() -> bool {
    // If threads take turns, one that does not is none of them.
    if PASSED_BY.get() > 0 || !crate::start::is_on() || turns::are_taken() || !threads::claim() {
        return false;
    }
    events::context_is_the_runtimes();
    let stack = threads::stack();
    with(|session| {
        threads::is_checked();
        session.adopted(stack);
    });
    true
}

/// A scope opens: the session may have to be adopted for it. The number of the innermost finish then.
pub fn open_scope(frame: usize, scope: Opened) -> u32 {
    if !turns::is_mine() && !adopt() {
        return 0;
    }
    let opened = called(frame, |session| {
        session.open_scope(scope, frame);
        session.tasks.innermost_finish()
    });
    opened.unwrap_or(0)
}

/// A scope closes; with the outermost one the session is given back.
pub fn close_scope(frame: usize, scope: Opened) {
    close_after(frame, scope, |_| ());
}

/// A frame opens for a join, and something else is done.
pub fn begin_join(frame: usize, offer: impl FnOnce(&mut Session)) {
    if !turns::is_mine() && !adopt() {
        return;
    }
    let hires = called(frame, |session| {
        session.open_scope(Opened::Frame, frame);
        offer(session);
        session.share();
        // Nobody is hired for what stays here.
        if session.offers.is_empty() { None } else { session.hires.take() }
    });
    if let Some(threads) = hires.flatten() {
        offers::hire(threads);
    }
}

/// What the join has spawned has ended, and its frame closes.
pub fn end_join(frame: usize, withdraw: impl FnOnce(&mut Session)) {
    close_after(frame, Opened::Frame, |session| {
        withdraw(session);
        session.sync();
    });
}

fn close_after(frame: usize, scope: Opened, first: impl FnOnce(&mut Session)) {
    if !turns::is_mine() {
        return PASSED_BY.set(PASSED_BY.get().saturating_sub(1));
    }
    let over = called(frame, |session| {
        first(session);
        session.close_scope(scope)
    });
    if over == Some(true) {
        threads::give_back();
    }
}

/// The thread ends. If it has tasks that have not ended, nobody will ever go on with them.
pub fn thread_ends() {
    let cut_off = with(|session| {
        // One that has only run detached tasks, to their ends, leaves nothing behind.
        if session.in_scope() || session.tasks.any_lives() {
            let why = "the thread that ran the tasks has ended in the middle of them";
            session.give_up(findings::End::CutShort(why.to_owned()));
        }
    });
    if cut_off.is_some() {
        threads::give_back();
    }
}

impl Session {
    fn open_scope(&mut self, scope: Opened, frame: usize) {
        if self.tasks.is_main() {
            if self.depth == 0 {
                self.call = Some(self.stack_of_call(frame));
            }
            self.depth += 1;
        }
        if !self.open_tiny(scope) {
            let task = self.told();
            self.event(scope.begin(task));
        }
        self.shared.open(scope);
        self.tasks.open_scope(scope);
    }

    /// Was it the outermost, and the session is to be given back?
    fn close_scope(&mut self, scope: Opened) -> bool {
        if !self.close_tiny(scope) {
            let task = self.told();
            self.event(scope.end(task));
        }
        self.shared.close();
        self.tasks.close_scope();
        if self.tasks.is_main() {
            self.depth -= 1;
        }
        let over = self.depth == 0 && !self.kept;
        if over {
            self.leave_workers();
        }
        over
    }

    /// It is the session of a part, which is never given back.
    pub fn has_no_outermost_scope(&mut self) {
        (self.depth, self.kept, self.hires) = (0, true, None);
    }

    /// A part goes on here, with the scopes that its main task has open; that is the main task here, if it `is_main`.
    pub fn takes_scopes_of(&mut self, part: &mut Session, is_main: bool) {
        let depth = std::mem::take(&mut part.depth);
        self.depth += if is_main { depth } else { 0 };
    }

    fn adopted(&mut self, stack: Stack) {
        self.tasks.set_main_stack(stack);
        if self.options.hygiene.thread_locals {
            self.thread_locals = self.image.thread_locals(worker().owner.get());
        }
    }
}
