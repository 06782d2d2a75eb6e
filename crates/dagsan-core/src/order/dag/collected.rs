//! Tests of what a collection leaves: little, and all that is needed.

use super::*;
use crate::structure::Structure;

const MAIN: TaskId = TaskId::MAIN;

/// A program that runs, with a structure that looks for tasks to forget all the time.
struct Case {
    structure: Structure,
    dag: Dag,
    strands: u32,
    promises: u32,
}

impl Case {
    /// In a finish with a task, number 1, that waits to the end.
    fn new() -> Case {
        let mut structure = Structure::new();
        structure.set_recent(2);
        let mut case = Case { structure, dag: Dag::new(Isolation::Ordered), strands: 0, promises: 0 };
        case.event(Event::FinishBegin { task: MAIN });
        case.spawn(MAIN, TaskKind::Async);
        case
    }

    fn event(&mut self, event: Event) {
        self.dag.event(&self.structure.apply(event).unwrap()).unwrap();
    }

    fn spawn(&mut self, parent: TaskId, kind: TaskKind) -> TaskId {
        let child = TaskId(self.structure.task_count());
        self.event(Event::Spawn { parent, child, kind });
        child
    }

    fn dropped(&mut self, what: Dropped) {
        self.structure.dropped(what).unwrap();
        self.dag.dropped(what);
    }

    fn new_promise(&mut self) -> PromiseId {
        let promise = PromiseId(self.promises);
        self.promises += 1;
        self.event(Event::PromiseNew { task: MAIN, promise });
        promise
    }

    /// A strand of `task` touches memory.
    fn touch(&mut self, task: TaskId) -> StrandId {
        let id = StrandId(self.strands);
        self.strands += 1;
        self.dag.now(&Strand { id, task, isolated: false, locks: &[], quiescent: false, depth_first: false });
        id
    }

    /// Does `strand` precede what `task` does now?
    fn precedes(&mut self, strand: StrandId, task: TaskId) -> bool {
        self.touch(task);
        self.dag.precedes(strand)
    }
}

#[test]
fn a_chain_of_futures_does_not_add_up() {
    let mut case = Case::new();
    let start = case.touch(MAIN);
    let mut last = case.spawn(MAIN, TaskKind::Future);
    case.event(Event::TaskEnd { task: last });
    let mut memory = 0;
    for round in 0..3000 {
        let next = case.spawn(MAIN, TaskKind::Future);
        case.event(Event::FutureGet { task: next, future: last });
        case.dropped(Dropped::Future(last));
        let strand = case.touch(next);
        case.event(Event::TaskEnd { task: next });
        last = next;
        if round % 100 == 99 {
            case.dag.collect(&[start, strand]);
            assert!(case.dag.knowledge.len() <= 3, "{}", case.dag.knowledge.len());
            assert!(case.dag.tasks.iter().count() <= 4);
            memory = memory.max(if round < 1000 { case.dag.memory() } else { 0 });
            assert!(case.dag.memory() <= memory);
        }
    }
    let after = case.spawn(MAIN, TaskKind::Async);
    let strand = case.touch(last);
    case.dag.collect(&[start, strand]);
    assert!(case.precedes(start, after) && !case.precedes(strand, after));
    case.event(Event::FutureGet { task: after, future: last });
    assert!(case.precedes(start, after));
}

#[test]
fn tasks_that_wait_for_each_other_in_turn_know_the_last_of_each_other() {
    let mut case = Case::new();
    let [a, b] = [0, 1].map(|_| case.spawn(MAIN, TaskKind::Async));
    let first = case.touch(a);
    for round in 0..2000 {
        let mut strands = Vec::new();
        for (from, to) in [(a, b), (b, a)] {
            let promise = case.new_promise();
            strands.push(case.touch(from));
            case.event(Event::PromiseSet { task: from, promise });
            case.event(Event::PromiseGet { task: to, promise });
            case.dropped(Dropped::Promise(promise));
            strands.push(case.touch(to));
        }
        let live = [&[first], &strands[..]].concat();
        if round % 100 == 99 {
            case.dag.collect(&live);
            assert!(case.dag.knowledge.len() <= 4, "{}", case.dag.knowledge.len());
            assert!(case.dag.sets.is_empty());
        }
        if round % 500 == 499 {
            assert!(live[..3].iter().all(|&strand| case.precedes(strand, a) && case.precedes(strand, b)));
            assert!(!case.precedes(first, TaskId(1)));
        }
    }
}

/// A future in an inner finish has got something from outside of it. A task outside gets the future, and
/// nobody else will; the finish joins it all the same.
#[test]
fn what_a_future_knew_that_was_let_go_comes_with_its_finish() {
    for let_go in [false, true] {
        let mut case = Case::new();
        let [setter, owner, getter] = [0, 1, 2].map(|_| case.spawn(MAIN, TaskKind::Async));
        let promise = case.new_promise();
        let strand = case.touch(setter);
        case.event(Event::PromiseSet { task: setter, promise });
        case.event(Event::FinishBegin { task: owner });
        let future = case.spawn(owner, TaskKind::Future);
        case.event(Event::PromiseGet { task: future, promise });
        case.event(Event::TaskEnd { task: future });
        case.event(Event::FutureGet { task: getter, future });
        assert!(!case.precedes(strand, owner));
        if let_go {
            case.dropped(Dropped::Future(future));
            case.dropped(Dropped::Promise(promise));
            case.dag.collect(&[strand]);
            assert!(case.dag.tasks.get(future).is_none());
        }
        case.event(Event::FinishEnd { task: owner });
        assert!(case.precedes(strand, owner) && !case.precedes(strand, TaskId(1)));
    }
}
