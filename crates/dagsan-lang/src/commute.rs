//! Sections that commute: what isolated sections do to a location in the same way, whatever their order.
//!
//! `x = x + e` reads and writes x, so two sections with it depend on each other; but both orders give the
//! same x. If sections do nothing else to x, nobody can tell the orders apart, and one of them is enough. Known ways:
//!
//! | group | written as |
//! |---|---|
//! | sums | `x = x + e`, `x = e + x`, `x = x - e` |
//! | products | `x = x * e`, `x = e * x` |
//! | maximum, minimum | `if e > x { x = e; }` and the other comparisons |
//! | the same constant | `x = true` |
//!
//! x may be an array element. A mixture of groups does not commute. That a sum may overflow in one order and not in
//! another is left out.

use rustc_hash::FxHashMap;

use crate::hir::{Access, AccessId, Binary, Expr, ExprKind, Hir, Stmt, Target, visit};

/// What is done to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Sum,
    Product,
    Maximum,
    Minimum,
    Constant(i64),
    /// Anything else.
    Other,
}

/// For every access: do isolated sections do nothing to its target but what commutes?
pub fn commuting(hir: &Hir) -> Vec<bool> {
    let mut groups: FxHashMap<AccessId, Group> = FxHashMap::default();
    for body in &hir.bodies {
        visit::each_stmt(&body.block, &mut |stmt| {
            if let Some((group, accesses)) = extremum(stmt).or_else(|| accumulation(stmt)) {
                // What is part of a maximum comes before what is inside it.
                accesses.into_iter().for_each(|access| _ = groups.entry(access).or_insert(group));
            }
        });
    }
    let mut targets: FxHashMap<Target, Group> = FxHashMap::default();
    for access in isolated_accesses(hir) {
        let group = groups.get(&access).copied().unwrap_or(Group::Other);
        let target = targets.entry(hir.accesses[access.index()].target).or_insert(group);
        if *target != group {
            *target = Group::Other;
        }
    }
    let commutes = |access: &Access| targets.get(&access.target).is_some_and(|&group| group != Group::Other);
    hir.accesses.iter().map(commutes).collect()
}

/// The accesses that may be made in an isolated section: in one, or in a procedure that one calls.
fn isolated_accesses(hir: &Hir) -> Vec<AccessId> {
    let mut found = Vec::new();
    let mut called = vec![false; hir.bodies.len()];
    let mut pending: Vec<&[Stmt]> = Vec::new();
    for body in &hir.bodies {
        visit::each_stmt(&body.block, &mut |stmt| {
            if let Stmt::Isolated(block, _) = stmt {
                pending.push(block);
            }
        });
    }
    while let Some(block) = pending.pop() {
        visit::each_stmt(block, &mut |stmt| {
            if let Stmt::WriteShared(_, _, access) | Stmt::Store { access, .. } = stmt {
                found.push(*access);
            }
        });
        visit::each_expr(block, &mut |expr| match expr.kind {
            ExprKind::ReadShared(_, access) | ExprKind::Load(_, _, access) => found.push(access),
            ExprKind::Call(body, _) if !std::mem::replace(&mut called[body.index()], true) => {
                pending.push(&hir.bodies[body.index()].block);
            }
            _ => {}
        });
    }
    found
}

/// If the statement is `x = x + e` or `x = c`: its accesses to x. Reads of x in e are accesses of their own.
fn accumulation(stmt: &Stmt) -> Option<(Group, Vec<AccessId>)> {
    let (value, write) = written(stmt)?;
    let (operator, left, right) = match &value.kind {
        ExprKind::Value(constant) => return Some((Group::Constant(*constant), vec![write])),
        ExprKind::Binary(operator, left, right) => (operator, left, right),
        _ => return None,
    };
    let (group, commutative) = match operator {
        Binary::Add => (Group::Sum, true),
        Binary::Sub => (Group::Sum, false),
        Binary::Mul => (Group::Product, true),
        _ => return None,
    };
    let read = same_place(stmt, left).or_else(|| if commutative { same_place(stmt, right) } else { None })?;
    Some((group, vec![read, write]))
}

/// If the statement is `if e > x { x = e; }`: its accesses to x.
fn extremum(stmt: &Stmt) -> Option<(Group, Vec<AccessId>)> {
    let Stmt::If(condition, then, other) = stmt else { return None };
    let ([assignment], true) = (&then[..], other.is_empty()) else { return None };
    let (value, write) = written(assignment)?;
    let ExprKind::Binary(operator, left, right) = &condition.kind else { return None };
    // On which side of the comparison is x?
    let (read, new, x_is_left) = match (same_place(assignment, left), same_place(assignment, right)) {
        (Some(read), None) => (read, right, true),
        (None, Some(read)) => (read, left, false),
        _ => return None,
    };
    if !same_value(new, value) {
        return None;
    }
    let group = match (operator, x_is_left) {
        (Binary::Lt | Binary::Le, true) | (Binary::Gt | Binary::Ge, false) => Group::Maximum,
        (Binary::Gt | Binary::Ge, true) | (Binary::Lt | Binary::Le, false) => Group::Minimum,
        _ => return None,
    };
    Some((group, vec![read, write]))
}

/// The value and the access of a statement that writes to shared memory.
fn written(stmt: &Stmt) -> Option<(&Expr, AccessId)> {
    match stmt {
        Stmt::WriteShared(_, value, access) | Stmt::Store { value, access, .. } => Some((value, *access)),
        _ => None,
    }
}

/// If `expr` reads what the statement writes: the read.
fn same_place(stmt: &Stmt, expr: &Expr) -> Option<AccessId> {
    match (stmt, &expr.kind) {
        (Stmt::WriteShared(written, ..), ExprKind::ReadShared(read, access)) if written == read => {
            Some(*access)
        }
        (Stmt::Store { array, index, .. }, ExprKind::Load(from, at, access))
            if same_value(array, from) && same_value(index, at) =>
        {
            Some(*access)
        }
        _ => None,
    }
}

/// Do two expressions of one statement surely have the same value?
fn same_value(a: &Expr, b: &Expr) -> bool {
    let alike = match (&a.kind, &b.kind) {
        (ExprKind::Value(a), ExprKind::Value(b)) => a == b,
        (ExprKind::Local(a), ExprKind::Local(b)) => a == b,
        (ExprKind::Fixed(a), ExprKind::Fixed(b)) => a == b,
        (ExprKind::Unary(a, _), ExprKind::Unary(b, _)) => a == b,
        (ExprKind::Binary(a, ..), ExprKind::Binary(b, ..)) => a == b,
        (ExprKind::Len(_), ExprKind::Len(_)) => true,
        _ => false,
    };
    alike && a.parts().into_iter().zip(b.parts()).all(|(a, b)| same_value(a, b))
}
