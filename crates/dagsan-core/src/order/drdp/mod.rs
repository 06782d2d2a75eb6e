//! `drdp`: Jin et al., "Dynamic determinacy race detection for task-parallel programs with promises"
//! (paper 000).
//!
//! Handles async/finish, spawn/sync, isolated (as mutual exclusion), futures and promises, with task
//! switching. A query first asks the program structure tree (`dpst`); if the steps are parallel
//! there, it searches the non-tree joins that lead to the present: those of its task, and those that
//! an ancestor had made when it created the line of tasks down to it (the *lsa*).
//!
//! # Where the paper is wrong, and what is done instead
//!
//! **A task that is still active need not precede.** Figure 9, lines 7-9, return true if the task of the
//! first step has not finished, since "either b is a's descendant, or a's task sets the promise that b
//! depends on". But with task switching any task may run while another waits; the race is missed:
//!
//! ```text
//!   async { w x; get p }                 // suspended at the get, so still active
//!   w x
//!   set p
//! ```
//!
//! **Merged sets leak knowledge backwards.** For a set event on the way, figure 9 takes the non-tree joins
//! of the disjoint set that its task is in *now* (lines 31-32, 54). A finish has merged that set with
//! others (figure 8, lines 27-38), and joins are added that came after the set event. If the empty tasks
//! of sets are among "the tasks in F", the race is missed:
//!
//! ```text
//!   async {
//!     finish { set p; w x; set q }       // merges the empty tasks with their parent
//!     get q                              // the merged set learns of q
//!   }
//!   get p                                // finds q behind p
//!   w x
//! ```
//!
//! **Merged sets lose what was inherited.** A merged set keeps the owner's lsa (lines 32, 38), so that of
//! the merged task is gone, and what its parent had joined is not found from its set events (line 45). If
//! the empty tasks are *not* merged, a race is reported that is none:
//!
//! ```text
//!   set o
//!   async { w x; set p }
//!   async {
//!     finish {
//!       get p
//!       async { get o; set q }           // inherits p; after the finish its set has the owner's lsa
//!     }
//!   }
//!   get q                                // finds o, not p
//!   w x
//! ```
//!
//! Instead, the first test is left out, and there are no disjoint sets: each source of a join keeps what
//! its task had joined *at that time*. As a task's joins are only ever appended, that is the task and a
//! length; what a task inherits never changes. At the end of a finish the joins of the tasks in it are
//! appended to those of its owner. The three programs are regression tests, together with the figures to
//! the letter, which get them wrong (`dagsan-fuzz`, `tests/published_drdp`).
//!
//! Other differences: steps are made for strands that touch memory only; a set makes a step, not an empty
//! task; a sync that something passes by makes non-tree joins ([`crate::structure`]).

mod dpst;

use std::collections::VecDeque;

use super::{JoinOrder, Options, Order, Search, Strands, Tasks, Visits};
use crate::error::Error;
use crate::event::Event;
use crate::ids::{ScopeId, StrandId, TaskId};
use crate::step::{Phase, Step};
use crate::stream::Strand;
use dpst::{Dpst, Kind, NodeId};

/// What a non-tree join comes from: the paper's empty task.
#[derive(Debug, Clone, Copy)]
struct Source {
    step: NodeId,
    /// What was known there.
    joins: Joins,
    /// The search that last visited it.
    visited: u32,
}

type SourceId = u32;

/// The first `len` non-tree joins of a task, and all that the task inherits.
#[derive(Debug, Clone, Copy)]
struct Joins {
    task: TaskId,
    len: u32,
}

#[derive(Debug)]
struct Task {
    /// Where its next child goes in the tree.
    node: NodeId,
    /// Its non-tree joins, in the order it made them (`nt`).
    joins: Vec<SourceId>,
    /// What its closest ancestor with any had joined when the line of tasks to it began (`lsa`).
    inherited: Option<Joins>,
    /// The source that its end is, once something joined it.
    end: Option<SourceId>,
    /// The search that last visited its joins, and how many of them.
    visited: (u32, u32),
}

impl Task {
    fn new(node: NodeId, inherited: Option<Joins>) -> Task {
        Task { node, joins: Vec::new(), inherited, end: None, visited: (0, 0) }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Drdp {
    options: Options,
    tree: Dpst,
    tasks: Tasks<Task>,
    sources: Vec<Source>,
    /// The node of each open scope.
    scopes: Vec<NodeId>,
    sets: Vec<Option<SourceId>>,
    strands: Strands<NodeId>,
    now: (NodeId, TaskId),
    search: u32,
    sources_ahead: VecDeque<SourceId>,
    inherited_ahead: VecDeque<Joins>,
    visits: Visits,
}

impl Drdp {
    /// At the start of a program.
    pub fn new(options: Options) -> Drdp {
        Drdp {
            options,
            tree: Dpst::new(),
            tasks: Tasks::new(Task::new(Dpst::ROOT, None)),
            sources: Vec::new(),
            scopes: Vec::new(),
            sets: Vec::new(),
            strands: Strands::new(),
            now: (Dpst::ROOT, TaskId::MAIN),
            search: 0,
            sources_ahead: VecDeque::new(),
            inherited_ahead: VecDeque::new(),
            visits: Visits::default(),
        }
    }

    /// All that `task` has joined so far.
    fn joins_of(&self, task: TaskId) -> Option<Joins> {
        let state = &self.tasks[task];
        let len = state.joins.len() as u32;
        if len > 0 { Some(Joins { task, len }) } else { state.inherited }
    }

    /// This point of `task` is where a non-tree join comes from.
    fn source(&mut self, task: TaskId) -> SourceId {
        let step = self.tree.push(self.tasks[task].node, Kind::Step);
        let joins = Joins { task, len: self.tasks[task].joins.len() as u32 };
        self.sources.push(Source { step, joins, visited: 0 });
        self.sources.len() as SourceId - 1
    }

    fn end_of(&mut self, task: TaskId) -> SourceId {
        match self.tasks[task].end {
            Some(end) => end,
            None => {
                let end = self.source(task);
                self.tasks[task].end = Some(end);
                end
            }
        }
    }

    fn open(&mut self, task: TaskId, scope: ScopeId) {
        let node = self.tree.push(self.tasks[task].node, Kind::Finish);
        self.tasks[task].node = node;
        if self.scopes.len() <= scope.index() {
            self.scopes.resize(scope.index() + 1, node);
        }
        self.scopes[scope.index()] = node;
    }

    fn join(&mut self, step: &Step<'_>) {
        let by = step.event.task();
        if let Some(scope) = step.closed {
            self.tasks[by].node = self.tree.parent(self.scopes[scope.index()]);
            // Tree joins bring the non-tree joins of the tasks that are joined.
            for &task in step.joined {
                let joins = std::mem::take(&mut self.tasks[task].joins);
                self.tasks[by].joins.extend_from_slice(&joins);
                self.tasks[task].joins = joins;
            }
        } else if let (Event::Sync { .. }, Some(&scope)) = (step.event, step.drained.first()) {
            // The block at the top of the task's stack ends without a tree join.
            let block = self.scopes[scope.index()];
            if block == self.tasks[by].node {
                self.tree.set_kind(block, Kind::Open);
                self.tasks[by].node = self.tree.parent(block);
            }
        }
        for &task in step.cross {
            let end = self.end_of(task);
            self.tasks[by].joins.push(end);
        }
        if let Event::PromiseGet { promise, .. } = step.event
            && !step.implied
        {
            let set = self.sets[promise.index()];
            self.tasks[by].joins.extend(set);
        }
    }

    /// All that was precedes all that comes: only the main task and its open scopes stay.
    fn forget(&mut self, step: &Step<'_>) {
        self.tree.clear();
        self.tasks.forget(Task::new(Dpst::ROOT, None));
        for &scope in step.open_scopes {
            self.open(TaskId::MAIN, scope);
        }
        self.sources.clear();
        self.search = 0;
        self.strands.forget();
    }

    /// Figure 9, from line 11 on: is there a non-tree join on the way from `a` to the present?
    fn search(&mut self, a: NodeId) -> bool {
        self.next_search();
        self.sources_ahead.clear();
        self.inherited_ahead.clear();
        let (_, task) = self.now;
        let mut visited = 0;
        self.expand(Joins { task, len: self.tasks[task].joins.len() as u32 });
        let found = loop {
            if let Some(source) = self.next_source() {
                visited += 1;
                let Source { step, joins, .. } = self.sources[source as usize];
                if self.tree.precedes(a, step) {
                    break true;
                }
                self.expand(joins);
            } else if let Some(joins) = self.inherited_ahead.pop_front() {
                self.expand(joins);
            } else {
                break false;
            }
        };
        self.visits.count(visited);
        found
    }

    /// Numbers the search. Should the numbers run out, those left by earlier ones are wiped.
    fn next_search(&mut self) {
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.sources.iter_mut().for_each(|source| source.visited = 0);
            self.tasks.iter_mut().for_each(|task| task.visited = (0, 0));
            self.search = 1;
        }
    }

    fn next_source(&mut self) -> Option<SourceId> {
        match self.options.search {
            Search::BreadthFirst => self.sources_ahead.pop_front(),
            Search::DepthFirst => self.sources_ahead.pop_back(),
        }
    }

    /// Puts the joins that were not visited before, and what they inherit, on the search's list.
    fn expand(&mut self, joins: Joins) {
        let task = &mut self.tasks[joins.task];
        let (search, done) = task.visited;
        let done = if search == self.search { done } else { 0 };
        if done == 0 {
            self.inherited_ahead.extend(task.inherited);
        }
        task.visited = (self.search, done.max(joins.len));
        let fresh = &task.joins[(done.min(joins.len)) as usize..joins.len as usize];
        let (search, sources, ahead) = (self.search, &mut self.sources, &mut self.sources_ahead);
        let mut visit = |&source: &SourceId| {
            let visited = &mut sources[source as usize].visited;
            if *visited != search {
                *visited = search;
                ahead.push_back(source);
            }
        };
        // A stack gives back last what was put on first.
        let latest_first = self.options.joins == JoinOrder::BackToFront;
        if latest_first == (self.options.search == Search::BreadthFirst) {
            fresh.iter().rev().for_each(&mut visit);
        } else {
            fresh.iter().for_each(&mut visit);
        }
    }
}

impl Order for Drdp {
    fn event(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let by = step.event.task();
        if let Some(scope) = step.opened {
            self.open(by, scope);
        }
        match step.event {
            Event::Spawn { .. } => {
                let inherited = self.joins_of(by);
                let node = self.tree.push(self.tasks[by].node, Kind::Async);
                self.tasks.push(Task::new(node, inherited));
            }
            Event::PromiseNew { .. } => self.sets.push(None),
            Event::PromiseSet { promise, .. } => self.sets[promise.index()] = Some(self.source(by)),
            _ => self.join(step),
        }
        if step.phase == Phase::Quiesced {
            self.forget(step);
        }
        Ok(())
    }

    fn now(&mut self, strand: &Strand) {
        if strand.id.0 == self.strands.next() || self.strands.is_empty() {
            let node = self.tree.push(self.tasks[strand.task].node, Kind::Step);
            self.strands.enter(strand.id, node);
        }
        self.now = (self.strands[strand.id], strand.task);
    }

    #[inline]
    fn precedes(&mut self, a: StrandId) -> bool {
        let a = self.strands[a];
        self.tree.precedes(a, self.now.0) || (!self.sources.is_empty() && self.search(a))
    }

    fn memory(&self) -> usize {
        self.tree.memory()
            + self.tasks.memory()
            + self.tasks.iter().map(|task| task.joins.capacity() * size_of::<SourceId>()).sum::<usize>()
            + self.sources.capacity() * size_of::<Source>()
            + self.strands.memory()
            + self.sets.capacity() * size_of::<Option<SourceId>>()
    }

    fn visits(&self) -> Option<Visits> {
        Some(self.visits)
    }
}
