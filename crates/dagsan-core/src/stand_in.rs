//! When one reader stands for another: readers of ended subtrees, of which one is enough.
//!
//! A history that is asked about any graph must keep all readers that are parallel to each other, for a later write may
//! follow one and not the other. For series-parallel programs that run depth first, the first of them is enough
//! (SP-bags; ESP-bags, paper 004). Here the same is done wherever a program behaves that way for a while:
//!
//! Let reader `r` come before reader `s`, parallel to it, in a run that was depth first so far. Then `r`'s task is not
//! one of those that contain `s`; so the whole subtree has ended that holds `r` and was started by a task that contains
//! `s`. Suppose there was no *exit* since `r`: no event from which an edge may lead elsewhere than to a tree join. Exits are
//! the set of a promise, the release of an atomic, the end of an isolated section or of a future, and a sync that joins from
//! inside of another scope. Then every path from `r` to what is still to come leads through the end of the scope that joins
//! `r`'s task. That scope is still open, or `r` would precede `s`, and its end comes after `s` too: a finish joins all that
//! is started while it is open. So does a sync block, if nothing is started in it that outlives it, which is certain where a
//! program has no asyncs beside its spawns. Hence whatever comes later and follows `r` follows `s`: what is parallel to `s`
//! is parallel to `r`, and `s` need not be remembered.

use crate::event::{Event, TaskKind};
use crate::step::{Phase, Step};
use crate::stream::Strand;

/// Counts exits, and knows whether the argument above holds. See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    /// Events so far from which an edge may lead elsewhere than a tree join.
    exits: u32,
    asyncs: bool,
    spawns: bool,
    /// Was a task started whose end may be waited for by others than the scope it is in?
    futures: bool,
}

/// How many exits there were before a strand; `None` if it, or what follows, has no stand-in.
pub(crate) type Exits = Option<u32>;

impl StandIns {
    pub(crate) fn event(&mut self, step: &Step<'_>) {
        use Event::*;
        match step.event {
            Spawn { kind: TaskKind::Async, .. } => self.asyncs = true,
            Spawn { kind: TaskKind::Spawn, .. } => self.spawns = true,
            Spawn { kind: TaskKind::Future | TaskKind::Child | TaskKind::Post(_), .. } => {
                (self.asyncs, self.futures) = (true, true);
            }
            TaskEnd { .. } if self.futures => self.exits += 1,
            PromiseSet { .. } | Release { .. } | IsolatedEnd { .. } => self.exits += 1,
            // A sync that joins others than a tree join would.
            Sync { .. } if !step.cross.is_empty() => self.exits += 1,
            _ => {}
        }
        if step.phase == Phase::Quiesced {
            (self.asyncs, self.spawns, self.futures) = (false, false, false);
        }
    }

    /// The exits before a strand that is now.
    #[inline]
    pub(crate) fn exits(&self, now: &Strand<'_>) -> Exits {
        (now.depth_first && !(self.asyncs && self.spawns)).then_some(self.exits)
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, TaskKind};
    use crate::access::{AccessKind, AccessSet};
    use crate::bytes::Bytes;
    use crate::ids::{PromiseId, SiteId, SyncId, TaskId};
    use crate::{Detector, Stream, order};

    const MAIN: TaskId = TaskId(0);
    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);

    /// What a task does.
    enum Step {
        Read(TaskId),
        Write(TaskId),
        Does(Event),
    }

    use Step::*;

    /// Bytes found to race.
    fn races(steps: impl IntoIterator<Item = Step>) -> usize {
        let mut stream = Stream::new(Detector::new(order::default_engine(), order::Options::default()));
        for step in steps {
            let (task, kind) = match step {
                Does(event) => {
                    stream.event(event).unwrap();
                    continue;
                }
                Read(task) => (task, AccessKind::Read),
                Write(task) => (task, AccessKind::Write),
            };
            let mut set = AccessSet::new();
            set.record(Bytes::new(8, 1).unwrap(), kind, SiteId::new(1).unwrap());
            stream.accesses(task, &set).unwrap();
        }
        stream.consumer().races().len()
    }

    fn spawn(child: TaskId, kind: TaskKind) -> Step {
        Does(Event::Spawn { parent: MAIN, child, kind })
    }

    fn end(task: TaskId) -> Step {
        Does(Event::TaskEnd { task })
    }

    /// `A` reads and is followed by what comes last, through `exit` and `entry`. `B` reads and is not.
    fn only_a_is_followed(kind: TaskKind, before: Option<Event>, exit: Option<Event>, entry: Event) {
        let steps = before.into_iter().map(Does);
        let steps = steps.chain([spawn(A, kind), Read(A)]).chain(exit.map(Does)).chain([end(A)]);
        let steps = steps.chain([spawn(B, TaskKind::Async), Read(B), end(B), Does(entry), Write(MAIN)]);
        assert_eq!(races(steps), 1, "{entry:?}");
    }

    #[test]
    fn a_reader_with_an_exit_stands_for_nobody() {
        let (promise, sync) = (PromiseId(0), SyncId(0));
        only_a_is_followed(
            TaskKind::Async,
            Some(Event::PromiseNew { task: MAIN, promise }),
            Some(Event::PromiseSet { task: A, promise }),
            Event::PromiseGet { task: MAIN, promise },
        );
        only_a_is_followed(
            TaskKind::Async,
            None,
            Some(Event::Release { task: A, sync, keep: false }),
            Event::Acquire { task: MAIN, sync },
        );
        only_a_is_followed(TaskKind::Future, None, None, Event::FutureGet { task: MAIN, future: A });
        only_a_is_followed(TaskKind::Spawn, None, None, Event::Sync { task: MAIN });
    }

    /// `a` is joined from inside of a finish. `b` follows it and is parallel to `c`, which follows `a` too.
    #[test]
    fn a_reader_that_was_joined_across_scopes_stands_for_nobody() {
        let [open, a, other, b, c] = [1, 2, 3, 4, 5].map(TaskId);
        let steps = [
            spawn(open, TaskKind::Spawn),
            end(open),
            Does(Event::FrameBegin { task: MAIN }),
            spawn(a, TaskKind::Spawn),
            Read(a),
            end(a),
            spawn(other, TaskKind::Spawn),
            end(other),
            Does(Event::FinishBegin { task: MAIN }),
            Does(Event::Sync { task: MAIN }),
            spawn(b, TaskKind::Spawn),
            Read(b),
            end(b),
            spawn(c, TaskKind::Spawn),
            Write(c),
        ];
        assert_eq!(races(steps), 1);
    }

    #[test]
    fn the_first_of_many_readers_is_enough() {
        let reader = |number| {
            let task = TaskId(number);
            [spawn(task, TaskKind::Async), Read(task), end(task)]
        };
        let readers = || (1..100).flat_map(reader);
        assert_eq!(races(readers().chain([Write(MAIN)])), 1);
        let joined = [Does(Event::FinishEnd { task: MAIN }), Write(MAIN)];
        let begin = [Does(Event::FinishBegin { task: MAIN })];
        assert_eq!(races(begin.into_iter().chain(readers()).chain(joined)), 0);
    }
}
