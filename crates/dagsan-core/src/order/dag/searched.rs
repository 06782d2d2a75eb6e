//! Tests of how far searches go: not with the size of the program.

use super::*;
use crate::structure::Structure;

const MAIN: TaskId = TaskId::MAIN;

struct Case {
    structure: Structure,
    dag: Dag,
    strands: u32,
}

impl Case {
    /// In a finish with a task, number 1, that waits to the end.
    fn new() -> Case {
        let mut case = Case { structure: Structure::new(), dag: Dag::new(Isolation::Ordered), strands: 0 };
        case.event(Event::FinishBegin { task: MAIN });
        case.spawn(TaskKind::Async);
        case
    }

    fn event(&mut self, event: Event) {
        self.dag.event(&self.structure.apply(event).unwrap()).unwrap();
    }

    fn spawn(&mut self, kind: TaskKind) -> TaskId {
        let child = TaskId(self.structure.task_count());
        self.event(Event::Spawn { parent: MAIN, child, kind });
        child
    }

    /// A strand of `task` touches memory.
    fn touch(&mut self, task: TaskId) -> StrandId {
        let id = StrandId(self.strands);
        self.strands += 1;
        self.dag.now(&Strand { id, task, isolated: false, locks: &[], quiescent: false, depth_first: false });
        id
    }

    fn most_visited(&self) -> u64 {
        self.dag.visits().unwrap().max
    }
}

/// Each future gets the one above it and the one before it in its row, in this order or the other.
fn most_visited_in_grid(side: usize, above_first: bool) -> u64 {
    let mut case = Case::new();
    let start = case.touch(MAIN);
    let mut above: Vec<(TaskId, StrandId)> = Vec::new();
    for row in 0..side {
        let mut this: Vec<(TaskId, StrandId)> = Vec::new();
        for column in 0..side {
            let task = case.spawn(TaskKind::Future);
            let mut before: Vec<_> = above.get(column).into_iter().chain(this.last()).copied().collect();
            if !above_first {
                before.reverse();
            }
            for &(future, _) in &before {
                case.event(Event::FutureGet { task, future });
            }
            let strand = case.touch(task);
            assert!(before.iter().all(|&(_, strand)| case.dag.precedes(strand)));
            assert!(case.dag.precedes(start));
            for beyond in [column + 1, column + 2, side - 1] {
                if beyond > column
                    && let Some(&(_, strand)) = above.get(beyond)
                {
                    assert!(!case.dag.precedes(strand), "{row} {column} {beyond}");
                }
            }
            case.event(Event::TaskEnd { task });
            this.push((task, strand));
        }
        above = this;
    }
    case.most_visited()
}

#[test]
fn in_a_grid_of_futures_no_search_goes_through_a_row() {
    for above_first in [true, false] {
        let most = [50, 100].map(|side| most_visited_in_grid(side, above_first));
        assert!(most[1] < most[0] + 10 && most[1] < 50, "{most:?}");
    }
}

/// Jobs that nothing joins, each of which follows the one before by what that has released last, and earlier.
#[test]
fn jobs_that_follow_each_other_do_not_go_through_all_of_them() {
    let mut case = Case::new();
    let mut strands = Vec::new();
    for number in 0..1000 {
        let by_main = case.touch(MAIN);
        let task = case.spawn(TaskKind::Detached);
        for sync in [SyncId(1), SyncId(2)] {
            case.event(Event::Acquire { task, sync });
            strands.push(case.touch(task));
            assert!(case.dag.precedes(by_main));
            for before in [2, 4, 8, 100] {
                let asked = strands.iter().rev().nth(before);
                assert!(asked.is_none_or(|&asked| case.dag.precedes(asked)), "{number} {before}");
            }
            case.event(Event::Release { task, sync, keep: true });
        }
        case.event(Event::TaskEnd { task });
        let after = case.touch(MAIN);
        assert!(!case.dag.precedes(strands[strands.len() - 1]) && after > by_main);
    }
    assert!(case.most_visited() < 50, "{}", case.most_visited());
}

/// A chain of tasks, each of which gets a promise that the one before sets, and sets the next. What tasks share besides are the counts of
/// the references to each promise: who drops the last follows the others.
struct Promises {
    case: Case,
    strands: Vec<StrandId>,
}

impl Promises {
    fn new(count: u32) -> Promises {
        let mut case = Case::new();
        (0..=count)
            .for_each(|promise| case.event(Event::PromiseNew { task: MAIN, promise: PromiseId(promise) }));
        case.event(Event::PromiseSet { task: MAIN, promise: PromiseId(0) });
        Promises { case, strands: Vec::new() }
    }

    fn release(&mut self, task: TaskId, count: u32) {
        self.strands.push(self.case.touch(task));
        self.case.event(Event::Release { task, sync: SyncId(count), keep: true });
    }

    fn acquire(&mut self, task: TaskId, count: u32) {
        self.case.event(Event::Acquire { task, sync: SyncId(count) });
        self.case.touch(task);
    }

    /// A task gets the promise `at`, sets the next one, and drops both.
    fn hand_on(&mut self, task: TaskId, at: u32, is_last: bool) {
        self.case.event(Event::PromiseGet { task, promise: PromiseId(at) });
        self.strands.push(self.case.touch(task));
        self.case.event(Event::PromiseSet { task, promise: PromiseId(at + 1) });
        self.release(task, at);
        if is_last {
            self.acquire(task, at);
        }
        self.release(task, at + 1);
        self.case.event(Event::TaskEnd { task });
    }
}

/// All tasks wait, and the main task drops its promises before it lets the first of them go on.
fn most_visited_where_tasks_wait(count: u32) -> u64 {
    let mut promises = Promises::new(count);
    let tasks: Vec<TaskId> = (0..count).map(|_| promises.case.spawn(TaskKind::Async)).collect();
    (0..=count).for_each(|at| promises.release(MAIN, at));
    tasks.into_iter().zip(0..).for_each(|(task, at)| promises.hand_on(task, at, true));
    promises.case.most_visited()
}

/// None waits, and the main task drops its promises at last.
fn most_visited_by_who_follows_all(count: u32, last_first: bool) -> u64 {
    let mut promises = Promises::new(count);
    for at in 0..count {
        let task = promises.case.spawn(TaskKind::Async);
        promises.hand_on(task, at, false);
    }
    for at in 0..=count {
        promises.acquire(MAIN, if last_first { count - at } else { at });
    }
    for strand in std::mem::take(&mut promises.strands) {
        assert!(promises.case.dag.precedes(strand));
    }
    promises.case.most_visited()
}

#[test]
fn who_follows_a_chain_of_promises_does_not_go_through_all_of_them() {
    let follows_all = |last_first| move |count| most_visited_by_who_follows_all(count, last_first);
    for most_visited in
        [&most_visited_where_tasks_wait as &dyn Fn(u32) -> u64, &follows_all(false), &follows_all(true)]
    {
        let most = [300, 600].map(most_visited);
        println!("{most:?}");
        assert!(most[1] < most[0] + 10 && most[1] < 50, "{most:?}");
    }
}
