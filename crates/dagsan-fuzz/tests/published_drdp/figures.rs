//! DRDP's figures 8 and 9 to the letter, for async, finish and promises: what the paper prints, with its
//! mistakes. The engine `drdp` is what we make of it.

use std::collections::{HashSet, VecDeque};

use dagsan_core::order::Order;
use dagsan_core::{Error, Event, Step, Strand, StrandId, TaskId};

/// Which of the lines in question are kept.
#[derive(Clone, Copy)]
pub struct Reading {
    /// Figure 9, lines 7-9: a step of a task that is still active precedes.
    pub active_shortcut: bool,
    /// Figure 8, line 27: the empty tasks of sets are among the tasks in a finish, and merged.
    pub merge_empty_tasks: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Step,
    Async,
    Finish,
}

struct Node {
    parent: usize,
    depth: usize,
    place: usize,
    children: usize,
    kind: Kind,
}

/// The paper's task, also for the empty tasks of sets.
struct Task {
    /// Its node in the tree, and where its next child goes.
    node: usize,
    active: bool,
    /// Its last step, for an empty task.
    last_step: usize,
    set: usize,
}

/// The information of a disjoint set: non-tree joins (as empty tasks) and least significant ancestor.
#[derive(Clone, Default)]
struct SetInfo {
    nt: Vec<usize>,
    lsa: Option<(usize, Vec<usize>)>,
}

pub struct Published {
    reading: Reading,
    nodes: Vec<Node>,
    tasks: Vec<Task>,
    /// From the stream's task numbers to ours.
    numbers: Vec<usize>,
    sets: Vec<SetInfo>,
    /// The open finishes: node, tasks in them.
    finishes: Vec<(usize, TaskId, Vec<usize>)>,
    promises: Vec<usize>,
    strands: Vec<(StrandId, usize, usize)>,
    now: (usize, usize),
}

impl Published {
    pub fn new(reading: Reading) -> Published {
        let mut published = Published {
            reading,
            nodes: vec![Node { parent: 0, depth: 0, place: 0, children: 0, kind: Kind::Finish }],
            tasks: Vec::new(),
            numbers: Vec::new(),
            sets: Vec::new(),
            finishes: vec![(0, TaskId::MAIN, Vec::new())],
            promises: Vec::new(),
            strands: Vec::new(),
            now: (0, 0),
        };
        let main = published.new_task(0, SetInfo::default());
        published.numbers.push(main);
        published
    }

    fn push(&mut self, parent: usize, kind: Kind) -> usize {
        let place = self.nodes[parent].children;
        self.nodes[parent].children += 1;
        self.nodes.push(Node { parent, depth: self.nodes[parent].depth + 1, place, children: 0, kind });
        self.nodes.len() - 1
    }

    fn new_task(&mut self, node: usize, info: SetInfo) -> usize {
        self.sets.push(info);
        self.tasks.push(Task { node, active: true, last_step: 0, set: self.sets.len() - 1 });
        self.tasks.len() - 1
    }

    /// Figure 8, lines 1-11.
    fn create(&mut self, parent: usize) -> usize {
        let above = &self.sets[self.tasks[parent].set];
        let lsa = if above.nt.is_empty() { above.lsa.clone() } else { Some((parent, above.nt.clone())) };
        let node = self.push(self.tasks[parent].node, Kind::Async);
        self.new_task(node, SetInfo { nt: Vec::new(), lsa })
    }

    /// The innermost finish around what `task` does.
    fn finish_of(&self, task: TaskId) -> usize {
        let mut node = self.tasks[self.numbers[task.index()]].node;
        loop {
            if let Some(at) = self.finishes.iter().rposition(|&(finish, ..)| finish == node) {
                return at;
            }
            node = self.nodes[node].parent;
        }
    }

    /// Is the child of the lowest common ancestor on the left side not an async?
    fn tree_precedes(&self, a: usize, b: usize) -> bool {
        let (mut x, mut y) = (a, b);
        if x == y {
            return true;
        }
        while self.nodes[x].depth > self.nodes[y].depth {
            x = self.nodes[x].parent;
        }
        while self.nodes[y].depth > self.nodes[x].depth {
            y = self.nodes[y].parent;
        }
        while self.nodes[x].parent != self.nodes[y].parent {
            (x, y) = (self.nodes[x].parent, self.nodes[y].parent);
        }
        self.nodes[x].place < self.nodes[y].place && self.nodes[x].kind != Kind::Async
    }

    /// Figure 9.
    fn precede(&self, a: usize, a_task: usize, b: usize, b_task: usize) -> bool {
        if self.tree_precedes(a, b) {
            return true;
        }
        if self.reading.active_shortcut && self.tasks[a_task].active {
            return true;
        }
        let own = &self.sets[self.tasks[b_task].set];
        let mut visited: HashSet<usize> = own.nt.iter().copied().collect();
        let mut steps: VecDeque<usize> = own.nt.iter().rev().copied().collect();
        let mut lsas: VecDeque<(usize, Vec<usize>)> = own.lsa.iter().cloned().collect();
        loop {
            while let Some(step) = steps.pop_front() {
                if self.tree_precedes(a, self.tasks[step].last_step) {
                    return true;
                }
                let info = &self.sets[self.tasks[step].set];
                steps.extend(info.nt.iter().rev().copied().filter(|&t| visited.insert(t)));
                lsas.extend(info.lsa.clone());
            }
            while let Some((task, nts)) = lsas.pop_front() {
                lsas.extend(self.sets[self.tasks[task].set].lsa.clone());
                for t in nts.into_iter().filter(|&t| visited.insert(t)).collect::<Vec<_>>() {
                    if self.tree_precedes(a, self.tasks[t].last_step) {
                        return true;
                    }
                    let info = &self.sets[self.tasks[t].set];
                    steps.extend(info.nt.iter().rev().copied().filter(|&t| visited.insert(t)));
                    lsas.extend(info.lsa.clone());
                }
            }
            if steps.is_empty() {
                return false;
            }
        }
    }
}

impl Order for Published {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let by = self.numbers[step.event.task().index()];
        match step.event {
            Event::Spawn { parent, .. } => {
                let finish = self.finish_of(parent);
                let task = self.create(by);
                self.numbers.push(task);
                self.finishes[finish].2.push(task);
            }
            Event::TaskEnd { .. } => self.tasks[by].active = false,
            Event::FinishBegin { task } => {
                let node = self.push(self.tasks[by].node, Kind::Finish);
                self.tasks[by].node = node;
                self.finishes.push((node, task, Vec::new()));
            }
            Event::FinishEnd { task } => {
                let at = self.finishes.iter().rposition(|&(_, owner, _)| owner == task).expect("open");
                let (node, _, members) = self.finishes.remove(at);
                self.tasks[by].node = self.nodes[node].parent;
                // Lines 26-39: union, joining the non-tree joins, keeping the owner's lsa.
                let own = self.tasks[by].set;
                for member in members {
                    let set = self.tasks[member].set;
                    if set == own {
                        continue;
                    }
                    for task in self.tasks.iter_mut().filter(|task| task.set == set) {
                        task.set = own;
                    }
                    let nt = std::mem::take(&mut self.sets[set].nt);
                    for t in nt {
                        if !self.sets[own].nt.contains(&t) {
                            self.sets[own].nt.push(t);
                        }
                    }
                }
            }
            Event::PromiseNew { .. } => self.promises.push(usize::MAX),
            Event::PromiseSet { task, promise } => {
                let finish = self.finish_of(task);
                let empty = self.create(by);
                self.tasks[empty].last_step = self.push(self.tasks[empty].node, Kind::Step);
                self.tasks[empty].active = false;
                self.promises[promise.index()] = empty;
                if self.reading.merge_empty_tasks {
                    self.finishes[finish].2.push(empty);
                }
            }
            Event::PromiseGet { promise, .. } => {
                let own = self.tasks[by].set;
                self.sets[own].nt.push(self.promises[promise.index()]);
            }
            _ => {}
        }
        Ok(())
    }

    fn now(&mut self, strand: &Strand) {
        let task = self.numbers[strand.task.index()];
        let step = self.push(self.tasks[task].node, Kind::Step);
        self.strands.push((strand.id, step, task));
        self.now = (step, task);
    }

    fn precedes(&mut self, a: StrandId) -> bool {
        let &(_, step, task) = self.strands.iter().find(|&&(strand, ..)| strand == a).expect("told of");
        self.precede(step, task, self.now.0, self.now.1)
    }

    fn memory(&self) -> usize {
        0
    }
}
