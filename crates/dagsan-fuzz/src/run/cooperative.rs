//! The order in which the executor of dagsan-task runs a program.
//!
//! It differs from the depth-first one in what comes after a wait: a task that can go on again joins the end of a queue,
//! and a task that must wait lets the first of the queue run on top of it before it is suspended itself. The order of
//! releases and acquires, and of frees, decides what a run shows, so a native program is compared with a run in its order.
//!
//! ```text
//!   stack     those that run, or wait and let others run     main ── t1 ── t4 (running)
//!   ready     suspended tasks that can go on                 t3, t6
//!   waiting   suspended tasks that cannot                    t2: promise 0
//! ```

use std::collections::VecDeque;

use dagsan_core::{Consumer, TaskId};

use super::{Runner, Wait};

impl<C: Consumer> Runner<'_, '_, C> {
    /// Lets the first ready task run. Not if there is none, or if the run is not cooperative.
    pub(super) fn run_ready(&mut self) -> bool {
        let first = self.ready.as_mut().and_then(VecDeque::pop_front);
        self.stack.extend(first);
        first.is_some()
    }

    /// Moves the suspended tasks for which `over` holds to the queue. The end of a task opens its future first; then its
    /// finish hears of it, then its procedure. Among those that wait for the same, the oldest is first.
    pub(super) fn make_ready(&mut self, over: impl Fn(&Self, TaskId, Wait) -> bool) {
        let waiting = std::mem::take(&mut self.waiting);
        let (mut woken, waiting): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|&(task, wait)| over(self, task, wait));
        woken.sort_by_key(|(_, wait)| match wait {
            Wait::Promise(_) | Wait::Future(_) => 0,
            Wait::Finish(_) => 1,
            Wait::Sync => 2,
            Wait::Await(_) | Wait::Ewait(_) | Wait::Isolated => 3,
        });
        self.waiting = waiting;
        self.ready.get_or_insert_default().extend(woken.into_iter().map(|(task, _)| task));
    }
}
