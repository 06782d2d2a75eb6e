//! The tree of schedules: what was chosen at each node, what is still to be tried, what need not be.
//!
//! Dynamic partial-order reduction (Flanagan and Godefroid) with sleep sets (Godefroid). A *step* is an
//! isolated section, or an ewait that joins a certain task. A run goes from the root to a leaf;
//! then, for every two of its steps that depend on each other and that nothing else orders, the tree is
//! told to try the second one before the first. A step *sleeps* at a node if it was tried at an ancestor and
//! nothing has happened since that it depends on: to run it now leads to a state that was seen.
//!
//! Which tasks an ewait can join depends on what has ended, so its steps depend on everything: where one is
//! possible all steps are tried, and none sleeps.

use std::sync::Arc;

use dagsan_core::TaskId;
use dagsan_lang::Choice;

use crate::footprint::Footprint;
use crate::observer::Made;

/// A node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// A choice that was or will be tried, and what its step touched, once that is known.
type Tried = (u32, Option<Arc<Footprint>>);

/// A step that need not be taken: who would take it, and what it touches.
type Sleeper = (TaskId, Arc<Footprint>);

#[derive(Debug)]
struct Node {
    /// The node above, and which of its choices leads here.
    parent: Option<(NodeId, u32)>,
    /// Who can take a step; a task comes as often as there are tasks for its ewait to join. Known once a run has
    /// come by.
    choices: Box<[TaskId]>,
    /// What was or will be tried, in the order in which that was decided, and what it touched.
    tried: Vec<Tried>,
    sleep: Vec<Sleeper>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// Choices that no run has taken yet.
    pending: Vec<(NodeId, u32)>,
    reduced: bool,
    /// How many bytes the nodes take, about, and how many they may.
    bytes: usize,
    most_bytes: usize,
    /// Some choice was not entered for want of room.
    pub(crate) overflowed: bool,
}

pub(crate) const ROOT: NodeId = NodeId(0);

impl Tree {
    pub(crate) fn new(reduced: bool, most_bytes: usize) -> Tree {
        let root = Node { parent: None, choices: Box::default(), tried: Vec::new(), sleep: Vec::new() };
        Tree { nodes: vec![root], pending: Vec::new(), reduced, bytes: 0, most_bytes, overflowed: false }
    }

    fn node(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    /// Is there nothing left to try?
    pub(crate) fn is_done(&self) -> bool {
        self.pending.is_empty()
    }

    /// How many states were seen.
    pub(crate) fn states(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// The next choice that no run has taken: the choices that lead to it, itself the last, each with the
    /// node in which it is one.
    pub(crate) fn next(&mut self) -> Option<Vec<(NodeId, u32)>> {
        let pending = self.pending.pop()?;
        let mut path = vec![pending];
        let mut at = pending.0;
        while let Some(above) = self.node(at).parent {
            path.push(above);
            at = above.0;
        }
        path.reverse();
        Some(path)
    }

    /// A run has come to `node` and has these choices. Returns the one to take, or `None` if all sleep.
    pub(crate) fn visit(&mut self, node: NodeId, choices: &[Choice]) -> Option<u32> {
        let every = !self.reduced || choices.iter().any(|choice| choice.joins.is_some());
        let this = self.node(node);
        if this.choices.is_empty() {
            this.choices = choices.iter().map(|choice| choice.task).collect();
        }
        if every {
            this.sleep.clear();
            for choice in 0..choices.len() as u32 {
                self.try_choice(node, choice);
            }
            self.pending.retain(|&pending| pending != (node, 0));
            return Some(0);
        }
        let awake = (0..choices.len() as u32).find(|&choice| !asleep(this, choice))?;
        this.tried.push((awake, None));
        Some(awake)
    }

    /// The node below `node` by `choice`, whose step touched `footprint`.
    pub(crate) fn descend(
        &mut self,
        node: NodeId,
        choice: u32,
        footprint: Option<&Footprint>,
    ) -> Option<NodeId> {
        let this = &mut self.nodes[node.0 as usize];
        let task = this.choices[choice as usize];
        let mut sleep = Vec::new();
        if let (Some(footprint), true) = (footprint, self.reduced) {
            let before = this.tried.iter().take_while(|(tried, _)| *tried != choice);
            let siblings = before.filter_map(|(tried, touched)| {
                Some((this.choices[*tried as usize], Arc::clone(touched.as_ref()?)))
            });
            let sleepers = this.sleep.iter().cloned().chain(siblings);
            sleep =
                sleepers.filter(|(who, touched)| *who != task && !touched.depends_on(footprint)).collect();
        }
        // What the node itself has, when it will have been visited: some choices, some of them tried.
        self.bytes += size_of::<Node>()
            + self.nodes[node.0 as usize].choices.len() * (size_of::<TaskId>() + size_of::<Tried>())
            + sleep.len() * size_of::<Sleeper>()
            + footprint.map_or(0, Footprint::memory);
        if self.bytes > self.most_bytes {
            self.overflowed = true;
            return None;
        }
        self.nodes.push(Node {
            parent: Some((node, choice)),
            choices: Box::default(),
            tried: Vec::new(),
            sleep,
        });
        Some(NodeId(self.nodes.len() as u32 - 1))
    }

    fn try_choice(&mut self, node: NodeId, choice: u32) {
        let this = self.node(node);
        if this.tried.iter().all(|(tried, _)| *tried != choice) && !asleep(this, choice) {
            this.tried.push((choice, None));
            self.pending.push((node, choice));
        }
    }

    /// After a run: `path[i]` is the node and the choice of step i.
    pub(crate) fn learn(&mut self, path: &[(NodeId, u32)], steps: &[Made]) {
        if !self.reduced {
            return;
        }
        for (&(node, choice), made) in path.iter().zip(steps) {
            let entry = self.node(node).tried.iter_mut().find(|(tried, _)| *tried == choice);
            if let (Some((_, touched)), Some(footprint)) = (entry, &made.footprint) {
                touched.get_or_insert_with(|| Arc::new(footprint.clone()));
            }
        }
        for (second, made) in steps.iter().enumerate() {
            let mut past = made.before.clone();
            for &first in &made.depends_on {
                if !past.contains(first) {
                    self.reverse(path[first].0, first, second, steps);
                    past.join(&steps[first].past);
                }
            }
        }
    }

    /// After a run that has failed: sections that it did not come to may depend on those that it has made, and nobody
    /// knows. All is tried.
    pub(crate) fn expand(&mut self, path: &[(NodeId, u32)]) {
        for &(node, _) in path {
            for choice in 0..self.node(node).choices.len() as u32 {
                self.try_choice(node, choice);
            }
        }
    }

    /// At `node`, where step `first` was taken: try what leads to step `second`.
    fn reverse(&mut self, node: NodeId, first: usize, second: usize, steps: &[Made]) {
        let choices = self.node(node).choices.clone();
        let of_task = |task: TaskId| choices.iter().position(|&other| other == task);
        // The task itself, if it is at its section already; or one that it has to wait for.
        let needed = (first + 1..second).filter(|&step| steps[second].before.contains(step));
        let candidates = std::iter::once(second).chain(needed).map(|step| steps[step].task);
        match candidates.filter(|&task| task != steps[first].task).find_map(of_task) {
            Some(choice) => self.try_choice(node, choice as u32),
            // One of them can always be the first; if not, this would still be right.
            None => (0..choices.len() as u32).for_each(|choice| self.try_choice(node, choice)),
        }
    }
}

fn asleep(node: &Node, choice: u32) -> bool {
    let task = node.choices[choice as usize];
    node.sleep.iter().any(|(who, _)| *who == task)
}
