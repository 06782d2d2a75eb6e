//! Walks over a checked program: what statements and expressions are made of.

use super::{Expr, ExprKind, FixedId, Printed, RegionRef, Stmt};

impl Stmt {
    /// The expressions that are directly in the statement.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Stmt::Assign(_, value) | Stmt::WriteShared(_, value, _) | Stmt::Fix(_, value) => vec![value],
            Stmt::Store { array, index, value, .. } => vec![array, index, value],
            Stmt::Expr(expr) | Stmt::Assert(expr) => vec![expr],
            Stmt::If(condition, ..) | Stmt::While(_, condition, _) => vec![condition],
            Stmt::For(looping) => vec![&looping.low, &looping.high],
            Stmt::Start(start) => start.args.iter().collect(),
            Stmt::Set(promise, value, _) => std::iter::once(promise).chain(value).collect(),
            Stmt::Return(value, _) => value.iter().collect(),
            Stmt::Print(printed, _) => {
                let values = printed.iter().filter_map(|printed| match printed {
                    Printed::Value(value, _) => Some(value),
                    Printed::Text(_) => None,
                });
                values.collect()
            }
            Stmt::Finish(..) | Stmt::Isolated(..) | Stmt::Sync(_) => Vec::new(),
            Stmt::Region(_) | Stmt::Await(..) | Stmt::Ewait(..) => Vec::new(),
        }
    }

    /// The blocks that are directly in the statement. The body of a task is not one.
    pub fn blocks(&self) -> Vec<&[Stmt]> {
        match self {
            Stmt::If(_, then, other) => vec![then, other],
            Stmt::While(_, _, block) | Stmt::Finish(block, _) | Stmt::Isolated(block, _) => vec![block],
            Stmt::For(looping) => vec![&looping.block],
            Stmt::Start(start) => start.then.iter().map(|then| &then.block[..]).collect(),
            _ => Vec::new(),
        }
    }
}

impl Expr {
    /// The expressions that are directly in this one, in the order of their evaluation.
    pub fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Load(a, b, _) | ExprKind::Binary(_, a, b) => vec![a, b],
            ExprKind::And(a, b) | ExprKind::Or(a, b) => vec![a, b],
            ExprKind::Call(_, args) => args.iter().collect(),
            ExprKind::Len(a) | ExprKind::New(a, _) | ExprKind::NewPromises(a, _) => vec![a],
            ExprKind::Get(a, _) | ExprKind::Unary(_, a) => vec![a],
            ExprKind::Value(_) | ExprKind::Local(_) | ExprKind::Fixed(_) => Vec::new(),
            ExprKind::ReadShared(..) | ExprKind::NewPromise(_) | ExprKind::NewRegion => Vec::new(),
        }
    }
}

/// Calls `visit` with every statement of the block, those inside others too.
pub fn each_stmt<'a>(block: &'a [Stmt], visit: &mut impl FnMut(&'a Stmt)) {
    for stmt in block {
        visit(stmt);
        for inner in stmt.blocks() {
            each_stmt(inner, visit);
        }
    }
}

/// Calls `visit` with every expression of the block, those inside others too.
pub fn each_expr<'a>(block: &'a [Stmt], visit: &mut impl FnMut(&'a Expr)) {
    each_stmt(block, &mut |stmt| {
        for expr in stmt.exprs() {
            each_part(expr, visit);
        }
    });
}

/// Calls `visit` with an expression and all inside it.
pub fn each_part<'a>(expr: &'a Expr, visit: &mut impl FnMut(&'a Expr)) {
    visit(expr);
    for part in expr.parts() {
        each_part(part, visit);
    }
}

/// Can the block return from its body?
pub fn returns(block: &[Stmt]) -> bool {
    let mut found = false;
    each_stmt(block, &mut |stmt| found |= matches!(stmt, Stmt::Return(..)));
    found
}

/// The fixed globals that a block uses; some may come twice.
pub fn fixeds(block: &[Stmt]) -> Vec<FixedId> {
    let mut used = Vec::new();
    each_expr(block, &mut |expr| {
        if let ExprKind::Fixed(id) = expr.kind {
            used.push(id);
        }
    });
    each_stmt(block, &mut |stmt| match stmt {
        Stmt::Fix(id, _) => used.push(*id),
        Stmt::Await(RegionRef::Fixed(id), _) | Stmt::Ewait(RegionRef::Fixed(id), _) => used.push(*id),
        Stmt::Start(start) => {
            if let Some(RegionRef::Fixed(id)) = start.region {
                used.push(id);
            }
        }
        _ => {}
    });
    used
}
