//! Sections that commute: what isolated sections do to a location in the same way, whatever their order.
//!
//! `x = x + e` reads and writes x, so two sections with it depend on each other; but both orders give the
//! same x. If sections do nothing else to x, nobody can tell the orders apart, and one of them is enough. Known ways:
//!
//! | group | written as |
//! |---|---|
//! | sums | `x = x + e`, `x = e + x`, `x = x - e` |
//! | products | `x = x * e`, `x = e * x` |
//! | the same constant | `x = true` |
//!
//! x may be an array element. A mixture of groups does not commute. That a sum may overflow in one order and not in
//! another is left out.
//!
//! A maximum (`if e > x { x = e; }`) is not among them, though both orders give the same x: in one order both
//! sections write, in the other only one does. Plain code that touches x beside one of them races in one order
//! and not in the other.

use rustc_hash::FxHashMap;

use crate::hir::{Access, AccessId, Binary, Expr, ExprKind, Hir, Stmt, Target, visit};

/// What is done to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Sum,
    Product,
    Constant(i64),
    /// Anything else.
    Other,
}

/// For every access: do isolated sections do nothing to its target but what commutes?
pub fn commuting(hir: &Hir) -> Vec<bool> {
    let mut groups: FxHashMap<AccessId, Group> = FxHashMap::default();
    for body in &hir.bodies {
        visit::each_stmt(&body.block, &mut |stmt| {
            if let Some((group, accesses)) = accumulation(stmt) {
                groups.extend(accesses.into_iter().map(|access| (access, group)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, syntax};

    /// Does what this program's sections do to `x` or `x[…]` commute?
    fn commutes(sections: &str) -> bool {
        let source = format!(
            "shared x = 0; shared a[4]; shared y = 1; proc add(n) {{ x = x + n; }} proc main() {{ let i = 1; {sections} }}"
        );
        let mut diagnostics = Vec::new();
        let tree = syntax::parse(&source, &mut diagnostics);
        let hir = check::check(&tree, &mut diagnostics).unwrap_or_else(|| panic!("{diagnostics:?}"));
        let commuting = commuting(&hir);
        let written = |access: &Access| {
            access.write && !matches!(access.target, Target::Shared(shared) if shared.0 > 0)
        };
        let found: Vec<bool> = hir
            .accesses
            .iter()
            .zip(commuting)
            .filter(|(access, _)| written(access))
            .map(|(_, c)| c)
            .collect();
        // The initialiser of x and the write in `add` come first.
        *found.last().unwrap()
    }

    #[test]
    fn sums_products_and_constants_commute_with_their_like() {
        assert!(commutes("isolated { x = x + 1; } isolated { x = 2 + x; x = x - y; }"));
        assert!(commutes("isolated { x = x * 2; } isolated { x = y * x; }"));
        assert!(commutes("isolated { x = 7; } isolated { x = 7; }"));
        assert!(commutes("isolated { add(2); x = x + 1; }"));
        assert!(commutes("isolated { a[i] = a[i] + 1; } isolated { a[i + 1] = a[i + 1] + 2; }"));
        assert!(commutes("isolated { x = x + 1; } x = 5;"), "what is not in a section does not count");
    }

    #[test]
    fn mixtures_and_reads_do_not_commute() {
        assert!(!commutes("isolated { x = x * 2; } isolated { x = x + 1; }"));
        assert!(!commutes("isolated { x = 7; } isolated { x = 8; }"));
        assert!(!commutes("isolated { x = 7; } isolated { x = x + 1; }"));
        assert!(!commutes("isolated { x = x + x; }"), "the second read is another one");
        assert!(!commutes("isolated { x = y - x; }"));
        assert!(!commutes("isolated { if x > 0 { x = x + 1; } }"));
        assert!(!commutes("isolated { if 3 > x { x = 3; } }"), "a maximum may not write");
        assert!(!commutes("isolated { add(x); x = x + 1; }"));
        assert!(!commutes("isolated { a[i] = a[1] + 1; }"));
    }
}
