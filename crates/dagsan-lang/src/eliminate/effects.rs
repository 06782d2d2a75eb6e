//! What bodies do: does a call end the strand of its caller, can it leave tasks behind, and is anybody
//! else alive when an access is made?
//!
//! The last is TaskChecker's main-task check elimination (paper 004, section 6.1), between procedures: a walk
//! along the control flow carries whether another task may be alive. `finish` restores what held before
//! it, `sync` takes away what was only spawned. The interpreter finds sequential regions while it
//! runs as well (quiescence); knowing them before lets the other analyses see which writes are parallel.

use crate::hir::{AccessId, BodyId, Expr, ExprKind, Hir, StartKind, Stmt, visit};

/// See the module's documentation.
#[derive(Debug)]
pub struct Effects {
    /// For every body: may a task event happen in it?
    events: Vec<bool>,
    /// For every access: may another task be alive?
    parallel: Vec<bool>,
}

impl Effects {
    /// Looks at a whole program.
    pub fn new(hir: &Hir) -> Effects {
        let events = events(hir);
        let parallel = Liveness::new(hir, &events).solve();
        Effects { events, parallel }
    }

    /// May another task be alive when the access is made?
    pub fn parallel(&self, access: AccessId) -> bool {
        self.parallel[access.index()]
    }

    /// May the evaluation of the expression itself, without its parts, end the strand?
    pub fn expr_ends_strand(&self, expr: &Expr) -> bool {
        expr_event(expr, &self.events)
    }

    /// May something in the block end the strand?
    pub fn ends_strand(&self, block: &[Stmt]) -> bool {
        block_event(block, &self.events)
    }
}

fn expr_event(expr: &Expr, bodies: &[bool]) -> bool {
    match expr.kind {
        ExprKind::Get(..) | ExprKind::NewPromise(_) | ExprKind::NewPromises(..) | ExprKind::NewRegion => true,
        ExprKind::Call(body, _) => bodies[body.index()],
        _ => false,
    }
}

/// Is the statement itself, without what is in it, a task event?
pub fn stmt_event(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Start(_) | Stmt::Finish(..) | Stmt::Isolated(..) | Stmt::Sync(_) => true,
        Stmt::Set(..) | Stmt::Region(_) | Stmt::Await(..) | Stmt::Ewait(..) => true,
        Stmt::Assign(..) | Stmt::WriteShared(..) | Stmt::Fix(..) | Stmt::Store { .. } => false,
        Stmt::Expr(_) | Stmt::If(..) | Stmt::While(..) | Stmt::For(_) => false,
        Stmt::Print(..) | Stmt::Assert(_) | Stmt::Return(..) => false,
    }
}

fn block_event(block: &[Stmt], bodies: &[bool]) -> bool {
    let mut found = false;
    visit::each_stmt(block, &mut |stmt| found |= stmt_event(stmt));
    visit::each_expr(block, &mut |expr| found |= expr_event(expr, bodies));
    found
}

/// The least solution over calls: a body has events if it has one of its own or calls one that has.
fn events(hir: &Hir) -> Vec<bool> {
    let mut events = vec![false; hir.bodies.len()];
    loop {
        let before = events.clone();
        for (number, body) in hir.bodies.iter().enumerate() {
            events[number] = block_event(&body.block, &before);
        }
        if events == before {
            return events;
        }
    }
}

/// Who may be alive besides the running task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Alive {
    /// Tasks that the next sync joins.
    spawned: bool,
    /// Others.
    others: bool,
}

impl Alive {
    const NOBODY: Alive = Alive { spawned: false, others: false };

    fn any(self) -> bool {
        self.spawned || self.others
    }

    fn or(self, other: Alive) -> Alive {
        Alive { spawned: self.spawned || other.spawned, others: self.others || other.others }
    }
}

struct Liveness<'a> {
    hir: &'a Hir,
    /// For every body: may its return handlers leave tasks behind at an await?
    handlers: Vec<bool>,
    /// For every body: may tasks that were started in it be alive when it has returned?
    leaves_behind: Vec<bool>,
    /// For every body: may others be alive when it starts?
    entered_parallel: Vec<bool>,
    parallel: Vec<bool>,
    /// Is the walk about what a body does to its caller? Then nothing is marked.
    dry: bool,
    /// Others may be alive at some return of the body of the walk.
    at_return: bool,
    /// The body of the walk.
    body: BodyId,
}

impl Liveness<'_> {
    fn new<'a>(hir: &'a Hir, events: &[bool]) -> Liveness<'a> {
        let bodies = hir.bodies.len();
        let handlers = hir.bodies.iter().map(|body| {
            let mut found = false;
            visit::each_stmt(&body.block, &mut |stmt| {
                if let Stmt::Start(start) = stmt {
                    found |= start.then.as_ref().is_some_and(|then| block_event(&then.block, events));
                }
            });
            found
        });
        Liveness {
            hir,
            handlers: handlers.collect(),
            leaves_behind: vec![false; bodies],
            entered_parallel: vec![false; bodies],
            parallel: vec![false; hir.accesses.len()],
            dry: true,
            at_return: false,
            body: hir.setup,
        }
    }

    /// Both tables only grow, and each round is a function of them: rounds end.
    fn solve(mut self) -> Vec<bool> {
        loop {
            let before = (self.leaves_behind.clone(), self.entered_parallel.clone());
            for number in 0..self.hir.bodies.len() {
                let block = &self.hir.bodies[number].block;
                self.body = BodyId(number as u32);
                self.dry = true;
                self.at_return = false;
                let end = self.block(block, Alive::NOBODY);
                self.leaves_behind[number] |= end.others || self.at_return;
                self.dry = false;
                self.block(block, Alive { spawned: false, others: self.entered_parallel[number] });
            }
            // The set-up runs before main.
            self.entered_parallel[self.hir.main.index()] |= self.leaves_behind[self.hir.setup.index()];
            if before == (self.leaves_behind.clone(), self.entered_parallel.clone()) {
                return self.parallel;
            }
        }
    }

    fn enter(&mut self, body: BodyId, parallel: bool) {
        if !self.dry {
            self.entered_parallel[body.index()] |= parallel;
        }
    }

    fn access(&mut self, access: AccessId, alive: Alive) {
        if !self.dry {
            self.parallel[access.index()] |= alive.any();
        }
    }

    fn block(&mut self, block: &[Stmt], mut alive: Alive) -> Alive {
        for stmt in block {
            alive = self.stmt(stmt, alive);
        }
        alive
    }

    fn stmt(&mut self, stmt: &Stmt, mut alive: Alive) -> Alive {
        match stmt {
            Stmt::While(_, _, block) => {
                // Twice: the second time with what the first may have left behind.
                for _ in 0..2 {
                    alive = self.exprs(stmt, alive);
                    alive = alive.or(self.block(block, alive));
                }
                return self.exprs(stmt, alive);
            }
            _ => alive = self.exprs(stmt, alive),
        }
        match stmt {
            Stmt::WriteShared(_, _, access) | Stmt::Store { access, .. } => self.access(*access, alive),
            Stmt::If(_, then, other) => {
                let after_then = self.block(then, alive);
                alive = after_then.or(self.block(other, alive));
            }
            Stmt::For(looping) => {
                for _ in 0..2 {
                    alive = alive.or(self.block(&looping.block, alive));
                }
            }
            Stmt::Finish(block, _) => _ = self.block(block, alive),
            Stmt::Isolated(block, _) => alive = self.block(block, alive),
            Stmt::Sync(_) => alive.spawned = false,
            Stmt::Await(..) | Stmt::Ewait(..) => alive.others |= self.handlers[self.body.index()],
            Stmt::Start(start) => {
                self.enter(start.body, true);
                match start.kind {
                    StartKind::Spawn => {
                        alive.spawned = true;
                        alive.others |= self.leaves_behind[start.body.index()];
                    }
                    _ => alive.others = true,
                }
                if let Some(then) = &start.then {
                    // It runs at some await: nothing is known of who is alive then.
                    self.block(&then.block, Alive { spawned: true, others: true });
                }
            }
            Stmt::Return(..) => self.at_return |= alive.others,
            _ => {}
        }
        alive
    }

    fn exprs(&mut self, stmt: &Stmt, mut alive: Alive) -> Alive {
        for expr in stmt.exprs() {
            alive = self.expr(expr, alive);
        }
        alive
    }

    fn expr(&mut self, expr: &Expr, mut alive: Alive) -> Alive {
        for part in expr.parts() {
            // Whether the right side of && and || is evaluated makes no difference to "may".
            alive = self.expr(part, alive);
        }
        match expr.kind {
            ExprKind::ReadShared(_, access) | ExprKind::Load(_, _, access) => self.access(access, alive),
            ExprKind::Call(body, _) => {
                self.enter(body, alive.any());
                alive.others |= self.leaves_behind[body.index()];
            }
            _ => {}
        }
        alive
    }
}
