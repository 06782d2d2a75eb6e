//! The part of the generator that joins tasks: syncs, gets, regions; and isolated sections.

use super::{Node, Simulation, Wait};
use crate::program::{Program, Stmt};

impl Simulation<'_> {
    // ---- spawns and futures ----------------------------------------------------------------------

    /// The task has synced.
    pub(super) fn join_spawns(&mut self, task: usize) {
        let joined = std::mem::take(&mut self.procedure(task).unsynced);
        self.take_leftovers(task, &joined);
        self.learn_from(task, &joined);
    }

    /// What joined tasks have left over goes to the innermost procedure instance.
    pub(super) fn take_leftovers(&mut self, task: usize, joined: &[usize]) {
        for &other in joined {
            let mut leftover = std::mem::take(&mut self.tasks[other].leftover);
            self.procedure(task).handles.append(&mut leftover);
        }
    }

    pub(super) fn get_future(&mut self, task: usize) -> bool {
        if !self.structured {
            let drawn = [self.recent(self.futures.len()), self.recent(self.futures.len())];
            let mut ended = drawn.into_iter().flatten().filter(|&at| self.tasks[self.futures[at]].ended);
            let Some(future) = ended.next() else { return false };
            let target = self.futures[future];
            self.leaf(task, Stmt::GetFuture(future as u32));
            self.learn_from(task, &[target]);
            return true;
        }
        let held = self.procedure(task).handles.len();
        if held == 0 {
            return false;
        }
        // The one holder of a handle may well wait: nothing that the future waits for can wait for it.
        let at = self.rng.usize(0..held);
        let future = self.procedure(task).handles.swap_remove(at);
        self.leaf(task, Stmt::GetFuture(future));
        if self.tasks[self.futures[future as usize]].ended {
            self.join_future(task, future);
        } else {
            self.tasks[task].wait = Some(Wait::Get(future));
        }
        true
    }

    pub(super) fn join_future(&mut self, task: usize, future: u32) {
        let joined = [self.futures[future as usize]];
        self.take_leftovers(task, &joined);
        self.learn_from(task, &joined);
    }

    /// One of `count` things in order of age, rather a young one.
    fn recent(&mut self, count: usize) -> Option<usize> {
        if count == 0 {
            return None;
        }
        let window = if self.rng.bool() { count } else { count.min(3) };
        Some(count - 1 - self.rng.usize(0..window))
    }

    // ---- promises and isolated sections ----------------------------------------------------------

    /// The set of a new promise.
    pub(super) fn fresh_set(&mut self, task: usize) -> Stmt {
        self.promises.push((task, self.tasks[task].known.clone()));
        Stmt::Set(self.promises.len() as u32 - 1)
    }

    pub(super) fn get(&mut self, task: usize) -> bool {
        let Some(mut promise) = self.recent(self.promises.len()) else { return false };
        // One's own promise is dull: another is looked for, once.
        if let (true, Some(other)) = (self.promises[promise].0 == task, self.recent(self.promises.len())) {
            promise = other;
        }
        self.leaf(task, Stmt::Get(promise as u32));
        let told = self.promises[promise].1.clone();
        self.learn(task, &told);
        true
    }

    pub(super) fn isolated(&mut self, task: usize) -> bool {
        let mut section = Vec::new();
        for _ in 0..self.rng.u32(0..4) {
            // What isolated sections are for is shared.
            let bytes = self.pool.shared(self.rng);
            section.push(match self.rng.u32(0..5) {
                0 => self.pool.access(self.rng, self.pool.own(task), &self.tasks[task].known),
                1 | 2 => Stmt::read(bytes),
                _ => Stmt::write(bytes),
            });
        }
        if self.mix.has_promises() && self.rng.u32(0..6) == 0 {
            let set = self.fresh_set(task);
            section.insert(self.rng.usize(0..=section.len()), set);
        }
        let body = self.block(task, Stmt::Isolated(Vec::new()));
        self.bodies[body].nodes.extend(section.into_iter().map(Node::Leaf));
        true
    }

    // ---- regions ---------------------------------------------------------------------------------

    pub(super) fn post(&mut self, task: usize) -> bool {
        let open: Vec<usize> =
            (0..self.regions.len()).filter(|&region| self.regions[region].open_to(task)).collect();
        let region = match self.rng.choice(&open) {
            Some(&region) if self.rng.u32(0..4) > 0 => region,
            _ => {
                self.regions.push(super::Region::default());
                self.regions.len() - 1
            }
        };
        self.create(task, Stmt::Post(region as u32, Vec::new()))
    }

    pub(super) fn await_region(&mut self, task: usize) -> bool {
        let Some(at) = self.recent(self.regions.len()) else { return false };
        let region = &mut self.regions[at];
        let allowed = region.open_to(task) || !region.ewaited;
        if !allowed || !region.tasks.iter().all(|&posted| self.tasks[posted].ended) {
            return false;
        }
        region.closed |= !region.open_to(task);
        region.owner = Some(task);
        let joined = std::mem::take(&mut region.tasks);
        self.leaf(task, Stmt::Await(at as u32));
        self.learn_from(task, &joined);
        true
    }

    pub(super) fn ewait(&mut self, task: usize) -> bool {
        let Some(at) = self.recent(self.regions.len()) else { return false };
        let region = &mut self.regions[at];
        let ended = region.tasks.iter().position(|&posted| self.tasks[posted].ended);
        let (true, Some(ended)) = (region.open_to(task), ended) else { return false };
        region.owner = Some(task);
        region.ewaited = true;
        let joined = [region.tasks.remove(ended)];
        self.leaf(task, Stmt::Ewait(at as u32));
        // In another schedule it may be another task that is joined: little is known.
        if self.rng.u32(0..3) == 0 {
            self.learn_from(task, &joined);
        }
        true
    }

    // ---- the program -----------------------------------------------------------------------------

    /// Puts the bodies into their blocks. A body was begun after the one around it, so going backwards
    /// finds every body complete.
    pub(super) fn into_program(mut self) -> Program {
        let mut built: Vec<Vec<Stmt>> = vec![Vec::new(); self.bodies.len()];
        while let Some(body) = self.bodies.pop() {
            let stmts = body.nodes.into_iter().map(|node| match node {
                Node::Leaf(stmt) => stmt,
                Node::Block(mut stmt, inner) => {
                    if let Some(place) = stmt.body_mut() {
                        *place = std::mem::take(&mut built[inner]);
                    }
                    stmt
                }
            });
            let stmts = stmts.collect();
            built[self.bodies.len()] = stmts;
        }
        let mut program = Program { body: built.swap_remove(0) };
        program.number_sites();
        program
    }
}
