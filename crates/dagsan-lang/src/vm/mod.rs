//! The interpreter: runs a compiled program serially, depth first, switching where a task must wait.
//!
//! `state` is what changes while a program runs, `execute` the operations of one task, `tasks` who runs
//! next, who waits and who is woken, `trace` what the core hears of it.

mod digest;
mod execute;
mod gate;
mod memory;
mod state;
mod tasks;
mod trace;

use dagsan_core::{Consumer, Error, TaskId};

use crate::compile::op::Code;
use crate::hir::{AccessId, Hir};
use crate::limits::Limits;
use crate::run::{Blocked, End, Failure};
use crate::schedule::Scheduler;
use crate::span::Span;
pub(crate) use gate::Gate;
pub(crate) use memory::Names;
pub(crate) use state::{NONE, State};
use state::{Running, Status, Task};
use trace::Trace;

/// Why a program stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It did something wrong.
    Failed(String),
    /// The core refused an event.
    Refused(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

/// A failure with this message.
fn fail<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(message.into()))
}

/// A running program.
pub(crate) struct Machine<'p, 'c> {
    pub(crate) hir: &'p Hir,
    code: &'p Code,
    limits: &'c Limits,
    pub(crate) state: State,
    trace: Trace<'c>,
    /// Operations so far.
    pub(crate) steps: u64,
    /// How often each access was made, if that is counted.
    pub(crate) counts: Vec<u64>,
    /// Does a scheduler decide the order of isolated sections, and what ewait joins?
    scheduled: bool,
    /// The digest of the last quiescent point, until the scheduler was told of it.
    quiescent: Option<u128>,
    /// Two accesses to be made in a certain order.
    pub(crate) gate: Option<Gate>,
    /// What tasks that ended have left, to be used again. Boxed, as tasks have them.
    #[expect(clippy::vec_box)]
    pool: Vec<Box<Running>>,
}

impl<'p, 'c> Machine<'p, 'c> {
    pub(crate) fn new(
        hir: &'p Hir,
        code: &'p Code,
        limits: &'c Limits,
        consumer: Option<&'c mut (dyn Consumer + 'c)>,
    ) -> Machine<'p, 'c> {
        let mut machine = Machine {
            hir,
            code,
            limits,
            state: State::new(hir),
            trace: Trace::new(consumer),
            steps: 0,
            counts: vec![0; hir.accesses.len()],
            scheduled: false,
            quiescent: None,
            gate: None,
            pool: Vec::new(),
        };
        machine.start_main();
        machine
    }

    /// Runs until nothing can run any more.
    pub(crate) fn run(&mut self) -> End {
        self.run_ready().unwrap_or_else(|| self.rest())
    }

    /// The same, with a scheduler for what the program leaves open.
    pub(crate) fn run_scheduled(&mut self, scheduler: &mut dyn Scheduler) -> End {
        self.scheduled = true;
        loop {
            if let Some(end) = self.run_ready() {
                return end;
            }
            let choices = self.choices();
            if choices.is_empty() {
                if self.open_gate() {
                    continue;
                }
                return self.rest();
            }
            if self.quiescent.take().is_some_and(|digest| !scheduler.reached(digest)) {
                return End::Stopped;
            }
            match scheduler.choose(&choices).and_then(|number| choices.get(number)) {
                Some(choice) => self.grant(choice),
                None => return End::Stopped,
            }
        }
    }

    /// Nothing can run any more: is anything left?
    fn rest(&self) -> End {
        if self.state.alive == 0 { End::Finished } else { End::Deadlock(self.blocked()) }
    }

    /// Runs until nothing can run; returns an end that comes before that.
    fn run_ready(&mut self) -> Option<End> {
        while let Some(task) = self.state.ready.pop() {
            let Status::Ready(mut running) =
                std::mem::replace(&mut self.state.tasks[task as usize].status, Status::Current)
            else {
                unreachable!("a task that is ready has its state");
            };
            match self.execute(task, &mut running).and_then(|pause| self.pause(task, pause)) {
                Ok(next) => self.settle(task, running, next),
                Err(stop) => {
                    let span = self.span_before(running.pc);
                    let stop = self.deliver_rest(task).err().unwrap_or(stop);
                    return Some(match stop {
                        Stop::Refused(error) => End::Refused(error),
                        Stop::Failed(message) => End::Failed(Failure { task: TaskId(task), span, message }),
                    });
                }
            }
        }
        None
    }

    /// A program that fails has done something before.
    fn deliver_rest(&mut self, task: u32) -> Result<(), Stop> {
        // After a refusal the stream takes nothing more, and its first error is the one to tell.
        match self.trace.flush(task) {
            Err(Error::Stopped) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Where the operation before `pc` stands in the source.
    fn span_before(&self, pc: u32) -> Span {
        self.code.spans.get((pc as usize).saturating_sub(1)).copied().unwrap_or_default()
    }

    fn blocked(&self) -> Vec<Blocked> {
        let tasks = self.state.tasks.iter().enumerate();
        let blocked = tasks.filter_map(|(number, task)| match &task.status {
            Status::Blocked(running, wait) => Some(Blocked {
                task: TaskId(number as u32),
                // It will repeat the operation that it waits in.
                span: self.span_before(running.pc + 1),
                waits_for: self.describe_wait(*wait),
            }),
            Status::Ready(_) | Status::Ended(_) | Status::Current => None,
        });
        blocked.collect()
    }

    pub(crate) fn strands(&self) -> u32 {
        self.trace.strands()
    }

    pub(crate) fn checks(&self) -> u64 {
        self.trace.checks
    }

    fn count(&mut self, access: AccessId) {
        self.counts[access.index()] += 1;
    }

    fn task(&mut self, task: u32) -> &mut Task {
        &mut self.state.tasks[task as usize]
    }
}
