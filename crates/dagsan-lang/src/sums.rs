//! Sections that commute: what isolated sections only add to, or only multiply.
//!
//! `x = x + e` reads and writes x, so two sections with it depend on each other; but both orders give the
//! same x. If sections do nothing else to x, nobody can tell the orders apart, and one of them is enough. The same
//! holds for `a[i] = a[i] + e`, for subtraction (the sum of the negative), and for products; not for a mixture of
//! sums and products. That the result may overflow in one order and not in the other is left out.

use rustc_hash::FxHashMap;

use crate::hir::{Access, AccessId, Binary, Expr, ExprKind, Hir, Stmt, Target, visit};

/// What is done to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Sum,
    Product,
    /// Anything else.
    Other,
}

/// For every access: do isolated sections do nothing but sums, or nothing but products, to its target?
pub fn only_sums(hir: &Hir) -> Vec<bool> {
    let mut groups = FxHashMap::default();
    for body in &hir.bodies {
        visit::each_stmt(&body.block, &mut |stmt| {
            if let Some((group, accesses)) = accumulation(stmt) {
                groups.extend(accesses.map(|access| (access, group)));
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

/// If the statement is `x = x + e`: its read and its write of x. Reads of x in e are accesses of their own.
fn accumulation(stmt: &Stmt) -> Option<(Group, [AccessId; 2])> {
    let value = match stmt {
        Stmt::WriteShared(_, value, _) | Stmt::Store { value, .. } => value,
        _ => return None,
    };
    let ExprKind::Binary(operator, left, right) = &value.kind else { return None };
    let (group, commutative) = match operator {
        Binary::Add => (Group::Sum, true),
        Binary::Sub => (Group::Sum, false),
        Binary::Mul => (Group::Product, true),
        _ => return None,
    };
    let read = same_place(stmt, left).or_else(|| if commutative { same_place(stmt, right) } else { None })?;
    let (Stmt::WriteShared(_, _, write) | Stmt::Store { access: write, .. }) = stmt else { return None };
    Some((group, [read, *write]))
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
