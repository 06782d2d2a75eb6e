//! Read/write subsumption (TaskChecker, paper 004, section 6.5): of two accesses of a strand to one location,
//! one check is enough.
//!
//! 1. A read after an access to the same location, or a write after a write, needs no check.
//! 2. A read that a write to the same location always follows needs no check.
//!
//! "The same location" is decided by value numbers: two index expressions have the same number if they
//! are built alike from the same values of locals. "Always" leaves out runs that end in an error: such a run is
//! repeated without eliminations. Both rules stop at the end of the strand, at calls that may end
//! it, and at the borders of a body.

use rustc_hash::{FxHashMap, FxHashSet};

use super::effects::{Effects, stmt_event};
use crate::hir::{
    AccessId, Binary, Body, Expr, ExprKind, FixedId, Hir, LocalId, SharedId, Stmt, Unary, visit,
};

/// The accesses that another check of the same strand covers.
pub fn subsumed(hir: &Hir, effects: &Effects) -> Vec<AccessId> {
    let mut found = Vec::new();
    for body in &hir.bodies {
        let mut forward = Forward::new(body, effects);
        forward.block(&body.block);
        let mut backward = Backward { hir, effects, locations: &forward.locations, found: Vec::new() };
        backward.block(&body.block, Written::default());
        found.extend(forward.found);
        found.extend(backward.found);
    }
    found
}

/// A value, by how it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Built {
    Value(i64),
    /// A local, and how often it had been assigned to.
    Local(LocalId, u32),
    Fixed(FixedId),
    Len(u32),
    Unary(Unary, u32),
    Binary(Binary, u32, u32),
}

/// A location, by the numbers of the values that address it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Address {
    Shared(SharedId),
    Element(u32, u32),
}

/// What the strand has done to a location so far.
type Done = FxHashMap<Address, Kind>;
/// The locations that the strand is bound to write.
type Written = FxHashSet<Address>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Read,
    Write,
}

/// Keeps what was done on both of two ways.
fn keep_common(done: &mut Done, other: &Done) {
    done.retain(|address, kind| match other.get(address) {
        Some(other) => {
            *kind = (*kind).min(*other);
            true
        }
        None => false,
    });
}

/// Rule 1, and the numbering of values and locations.
struct Forward<'a> {
    effects: &'a Effects,
    numbers: FxHashMap<Built, u32>,
    assigned: Vec<u32>,
    done: Done,
    locations: FxHashMap<AccessId, Address>,
    found: Vec<AccessId>,
}

impl<'a> Forward<'a> {
    fn new(body: &Body, effects: &'a Effects) -> Forward<'a> {
        Forward {
            effects,
            numbers: FxHashMap::default(),
            assigned: vec![0; body.locals.len()],
            done: Done::default(),
            locations: FxHashMap::default(),
            found: Vec::new(),
        }
    }

    /// The number of a value, if it is built from locals and constants only.
    fn number(&mut self, expr: &Expr) -> Option<u32> {
        let built = match &expr.kind {
            ExprKind::Value(value) => Built::Value(*value),
            ExprKind::Local(local) => Built::Local(*local, self.assigned[local.index()]),
            ExprKind::Fixed(fixed) => Built::Fixed(*fixed),
            ExprKind::Len(array) => Built::Len(self.number(array)?),
            ExprKind::Unary(operator, operand) => Built::Unary(*operator, self.number(operand)?),
            ExprKind::Binary(operator, a, b) => Built::Binary(*operator, self.number(a)?, self.number(b)?),
            _ => return None,
        };
        let next = self.numbers.len() as u32;
        Some(*self.numbers.entry(built).or_insert(next))
    }

    fn access(&mut self, access: AccessId, address: Option<Address>, kind: Kind) {
        let Some(address) = address else { return };
        self.locations.insert(access, address);
        match self.done.get_mut(&address) {
            Some(before) if *before >= kind => self.found.push(access),
            Some(before) => *before = kind,
            None => _ = self.done.insert(address, kind),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                self.expr(left);
                // What only the right side does may not have been done; that it ends the strand may.
                let before = self.done.clone();
                self.expr(right);
                let after = std::mem::replace(&mut self.done, before);
                keep_common(&mut self.done, &after);
                return;
            }
            _ => expr.parts().into_iter().for_each(|part| self.expr(part)),
        }
        match &expr.kind {
            ExprKind::ReadShared(shared, access) => {
                self.access(*access, Some(Address::Shared(*shared)), Kind::Read);
            }
            ExprKind::Load(array, index, access) => {
                let address = self.element(array, index);
                self.access(*access, address, Kind::Read);
            }
            _ => {
                if self.effects.expr_ends_strand(expr) {
                    self.done.clear();
                }
            }
        }
    }

    fn element(&mut self, array: &Expr, index: &Expr) -> Option<Address> {
        Some(Address::Element(self.number(array)?, self.number(index)?))
    }

    fn assign(&mut self, local: LocalId) {
        self.assigned[local.index()] += 1;
    }

    fn assign_all_in(&mut self, block: &[Stmt]) {
        assigned_in(block).into_iter().for_each(|local| self.assign(local));
    }

    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    /// A block that may be skipped, or repeated: afterwards only what held before is known.
    fn maybe(&mut self, block: &[Stmt]) {
        let before = self.done.clone();
        self.block(block);
        self.done = before;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        if let Stmt::While(_, condition, block) = stmt {
            let events = self.effects.ends_strand(std::slice::from_ref(stmt));
            self.assign_all_in(block);
            self.clear_if(events);
            self.expr(condition);
            self.maybe(block);
            self.assign_all_in(block);
            self.clear_if(events);
            return;
        }
        stmt.exprs().into_iter().for_each(|expr| self.expr(expr));
        match stmt {
            Stmt::Assign(local, _) => self.assign(*local),
            Stmt::WriteShared(shared, _, access) => {
                self.access(*access, Some(Address::Shared(*shared)), Kind::Write);
            }
            Stmt::Store { array, index, access, .. } => {
                let address = self.element(array, index);
                self.access(*access, address, Kind::Write);
            }
            Stmt::If(_, then, other) => {
                let before = self.done.clone();
                self.block(then);
                let after_then = std::mem::replace(&mut self.done, before);
                self.block(other);
                keep_common(&mut self.done, &after_then);
                // Which value a local has now depends on the branch.
                self.assign_all_in(then);
                self.assign_all_in(other);
            }
            Stmt::For(looping) => {
                let events = self.effects.ends_strand(&looping.block);
                let locals = [looping.local, looping.bound];
                locals.into_iter().for_each(|local| self.assign(local));
                self.assign_all_in(&looping.block);
                self.clear_if(events);
                self.maybe(&looping.block);
                locals.into_iter().for_each(|local| self.assign(local));
                self.assign_all_in(&looping.block);
                self.clear_if(events);
            }
            Stmt::Finish(block, _) | Stmt::Isolated(block, _) => {
                self.done.clear();
                self.block(block);
            }
            Stmt::Start(start) => {
                if let Some(handle) = start.handle {
                    self.assign(handle);
                }
                if let Some(then) = &start.then {
                    // It runs at some await, with locals as they are then.
                    self.assign_every();
                    self.done.clear();
                    self.block(&then.block);
                    self.assign_every();
                }
            }
            // Return handlers run here, and may assign to any local.
            Stmt::Await(..) | Stmt::Ewait(..) => self.assign_every(),
            Stmt::Region(local) => self.assign(*local),
            _ => {}
        }
        self.clear_if(stmt_event(stmt));
    }

    fn assign_every(&mut self) {
        self.assigned.iter_mut().for_each(|count| *count += 1);
    }

    fn clear_if(&mut self, condition: bool) {
        if condition {
            self.done.clear();
        }
    }
}

/// The locals that a block assigns to.
pub fn assigned_in(block: &[Stmt]) -> Vec<LocalId> {
    let mut assigned = Vec::new();
    visit::each_stmt(block, &mut |stmt| match stmt {
        Stmt::Assign(local, _) | Stmt::Region(local) => assigned.push(*local),
        Stmt::For(looping) => assigned.extend([looping.local, looping.bound]),
        Stmt::Start(start) => {
            assigned.extend(start.handle);
            assigned.extend(start.then.as_ref().map(|then| then.value));
        }
        _ => {}
    });
    assigned
}

/// Rule 2. Goes through a body from its end, with the locations that will be written.
struct Backward<'a> {
    hir: &'a Hir,
    effects: &'a Effects,
    locations: &'a FxHashMap<AccessId, Address>,
    found: Vec<AccessId>,
}

impl Backward<'_> {
    fn block(&mut self, block: &[Stmt], written: Written) -> Written {
        block.iter().rev().fold(written, |written, stmt| self.stmt(stmt, written))
    }

    fn access(&mut self, access: AccessId, written: &mut Written) {
        let Some(&address) = self.locations.get(&access) else { return };
        if self.hir.accesses[access.index()].write {
            written.insert(address);
        } else if written.contains(&address) {
            self.found.push(access);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, mut written: Written) -> Written {
        if stmt_event(stmt) || matches!(stmt, Stmt::Return(..)) {
            written.clear();
        }
        match stmt {
            Stmt::WriteShared(_, _, access) | Stmt::Store { access, .. } => {
                self.access(*access, &mut written);
            }
            Stmt::If(_, then, other) => {
                let then = self.block(then, written.clone());
                let other = self.block(other, written);
                written = then.intersection(&other).copied().collect();
            }
            Stmt::While(_, condition, block) => {
                if self.effects.ends_strand(std::slice::from_ref(stmt)) || visit::returns(block) {
                    written.clear();
                }
                // The loop ends sometime; until then the strand is the same.
                let before_test = self.expr(condition, written.clone());
                self.block(block, before_test);
            }
            Stmt::For(looping) => {
                if self.effects.ends_strand(&looping.block) || visit::returns(&looping.block) {
                    written.clear();
                }
                self.block(&looping.block, written.clone());
            }
            Stmt::Finish(block, _) | Stmt::Isolated(block, _) => {
                self.block(block, Written::default());
            }
            Stmt::Start(start) => {
                if let Some(then) = &start.then {
                    self.block(&then.block, Written::default());
                }
            }
            _ => {}
        }
        if matches!(stmt, Stmt::Finish(..) | Stmt::Isolated(..)) {
            return Written::default();
        }
        stmt.exprs().into_iter().rev().fold(written, |written, expr| self.expr(expr, written))
    }

    fn expr(&mut self, expr: &Expr, mut written: Written) -> Written {
        if self.effects.expr_ends_strand(expr) {
            written.clear();
        }
        if let ExprKind::ReadShared(_, access) | ExprKind::Load(_, _, access) = expr.kind {
            self.access(access, &mut written);
        }
        // The right side of && and || contains no write of its own, and clears if it may end the strand.
        expr.parts().into_iter().rev().fold(written, |written, part| self.expr(part, written))
    }
}
