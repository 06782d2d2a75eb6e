//! Checks before loops: loop-invariant ones (TaskChecker, paper 004, section 6.4) and affine ones (DRDP,
//! paper 000, section 4.4.2, figure 10), which are the same with and without dimensions.
//!
//! An access that every iteration makes, whose index is an affine function of the iterators of the loops
//! around it, touches elements that are known before the outermost of these loops:
//!
//! ```text
//!   for i in 0..n { for k in 0..l { … A[i*l + k] … } }
//!
//!   before the first iteration of i:   start 0*l + 0, steps (l, n times), (1, l times)
//! ```
//!
//! The coefficients are expressions, evaluated there. The loops must not end the strand and must not
//! return; bounds of inner loops must not change. DRDP computes these sets with a polyhedral library. Here
//! they are products of ranges only: a triangular nest is summarised from its inner loop on.

use super::effects::Effects;
use super::subsume::assigned_in;
use super::{Elimination, Eliminations, Hoisted};
use crate::hir::{AccessId, Binary, Expr, ExprKind, For, Hir, LocalId, LoopId, Stmt, Unary, visit};
use crate::span::Span;

/// A check that can be made before a loop.
pub struct Found {
    /// The loop.
    pub before: LoopId,
    /// The check.
    pub check: Hoisted,
    /// Which elimination it is.
    pub elimination: Elimination,
}

/// Finds the accesses that can be checked before a loop, each at the outermost one, among those that
/// `wanted` asks for.
pub fn hoistable(
    hir: &Hir,
    effects: &Effects,
    chosen: Eliminations,
    wanted: impl Fn(AccessId) -> bool,
) -> Vec<Found> {
    let mut search = Search { effects, chosen, wanted, path: Vec::new(), found: Vec::new() };
    for body in &hir.bodies {
        search.block(&body.block);
    }
    search.found
}

/// A loop around the present place.
struct Around<'a> {
    id: LoopId,
    /// `None` for a `while`, which has no iterator.
    counted: Option<&'a For>,
    /// May checks be made before it?
    quiet: bool,
    /// The locals that change while it runs.
    assigned: Vec<LocalId>,
}

struct Search<'a, W> {
    effects: &'a Effects,
    chosen: Eliminations,
    wanted: W,
    /// The loops around this place, as far as it is reached in every iteration; outermost first.
    path: Vec<Around<'a>>,
    found: Vec<Found>,
}

impl<'a, W: Fn(AccessId) -> bool> Search<'a, W> {
    fn block(&mut self, block: &'a [Stmt]) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            // The test is made once more than the body: it does not belong to every iteration.
            Stmt::While(id, condition, block) => {
                self.apart(|search| {
                    search.exprs([condition]);
                    search.looping(*id, None, stmt, block);
                });
                return;
            }
            Stmt::If(_, then, other) => {
                self.exprs(stmt.exprs());
                for block in [then, other] {
                    self.apart(|search| search.block(block));
                }
                return;
            }
            _ => self.exprs(stmt.exprs()),
        }
        match stmt {
            Stmt::WriteShared(_, _, access) => self.access(*access, None),
            Stmt::Store { array, index, access, .. } => self.access(*access, Some((array, index))),
            Stmt::For(looping) => self.looping(looping.id, Some(looping), stmt, &looping.block),
            _ => stmt.blocks().into_iter().for_each(|block| self.block(block)),
        }
    }

    /// What is not reached in every iteration of the loops around it.
    fn apart(&mut self, look: impl FnOnce(&mut Self)) {
        let path = std::mem::take(&mut self.path);
        look(self);
        self.path = path;
    }

    fn looping(&mut self, id: LoopId, counted: Option<&'a For>, stmt: &'a Stmt, block: &'a [Stmt]) {
        let quiet = !visit::returns(block) && !self.effects.ends_strand(std::slice::from_ref(stmt));
        let mut assigned = assigned_in(block);
        assigned.extend(counted.map(|looping| looping.local));
        self.path.push(Around { id, counted, quiet, assigned });
        self.block(block);
        self.path.pop();
    }

    fn exprs(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                self.expr(left);
                self.apart(|search| search.expr(right));
                return;
            }
            _ => self.exprs(expr.parts()),
        }
        match &expr.kind {
            ExprKind::ReadShared(_, access) => self.access(*access, None),
            ExprKind::Load(array, index, access) => self.access(*access, Some((array, index))),
            _ => {}
        }
    }

    /// Tries the loops around the access, outermost first.
    fn access(&mut self, access: AccessId, element: Option<(&Expr, &Expr)>) {
        if !(self.wanted)(access) {
            return;
        }
        let found = (0..self.path.len()).find_map(|from| {
            let (check, elimination) = summarise(&self.path[from..], access, element)?;
            let before = self.path[from].id;
            self.chosen.contains(elimination).then_some(Found { before, check, elimination })
        });
        self.found.extend(found);
    }
}

/// The check of an access before the first of the loops.
fn summarise(
    loops: &[Around<'_>],
    access: AccessId,
    element: Option<(&Expr, &Expr)>,
) -> Option<(Hoisted, Elimination)> {
    let (outermost, inner) = loops.split_first()?;
    if !outermost.quiet {
        return None;
    }
    let fixed = |local: LocalId| !outermost.assigned.contains(&local);
    // A `while` inside would have been looked at apart.
    let inner: Vec<&For> = inner.iter().map(|around| around.counted).collect::<Option<_>>()?;
    if !inner.iter().all(|looping| is_fixed(&looping.low, &fixed) && is_fixed(&looping.high, &fixed)) {
        return None;
    }
    // The bounds of the outermost are in its locals, whatever they were computed from.
    let counted = outermost.counted.map(|looping| {
        let (low, high) = (local(looping.local, looping.span), local(looping.bound, looping.span));
        (looping.local, low, high)
    });
    let ranges: Vec<(LocalId, Expr, Expr)> = counted
        .into_iter()
        .chain(inner.iter().map(|looping| (looping.local, looping.low.clone(), looping.high.clone())))
        .collect();
    let iterators: Vec<LocalId> = ranges.iter().map(|&(iterator, ..)| iterator).collect();
    let (array, index) = match element {
        None => (None, Affine::constant(value(0, Span::default()), &iterators)),
        Some((array, index)) => {
            if !is_fixed(array, &fixed) {
                return None;
            }
            (Some(array.clone()), affine(index, &iterators, &fixed)?)
        }
    };
    let affine = index.steps.iter().any(|step| !matches!(step.kind, ExprKind::Value(0)));
    let mut start = index.constant;
    let mut dimensions = Vec::new();
    for ((_, low, high), step) in ranges.into_iter().zip(index.steps) {
        start = add(start, multiply(step.clone(), low.clone()));
        dimensions.push((step, subtract(high, low)));
    }
    let elimination = if affine { Elimination::Affine } else { Elimination::LoopInvariant };
    // A scalar has no elements, but if an inner loop makes no iteration it is not accessed.
    if array.is_none() && dimensions.len() > usize::from(outermost.counted.is_some()) {
        return None;
    }
    Some((Hoisted { access, array, start, dimensions }, elimination))
}

/// Does the expression have the same value whenever it is evaluated, and no effect?
fn is_fixed(expr: &Expr, fixed: &impl Fn(LocalId) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Value(_) | ExprKind::Fixed(_) => true,
        ExprKind::Local(local) => fixed(*local),
        ExprKind::Len(_) | ExprKind::Unary(..) | ExprKind::Binary(..) => {
            expr.parts().into_iter().all(|part| is_fixed(part, fixed))
        }
        _ => false,
    }
}

/// `constant + Σ steps[k] * iterator k`
struct Affine {
    constant: Expr,
    steps: Vec<Expr>,
}

impl Affine {
    fn constant(constant: Expr, iterators: &[LocalId]) -> Affine {
        let steps = iterators.iter().map(|_| value(0, constant.span)).collect();
        Affine { constant, steps }
    }

    fn has_steps(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step.kind, ExprKind::Value(0)))
    }

    fn combine(self, other: Affine, combine: fn(Expr, Expr) -> Expr) -> Affine {
        let steps = self.steps.into_iter().zip(other.steps).map(|(a, b)| combine(a, b)).collect();
        Affine { constant: combine(self.constant, other.constant), steps }
    }

    fn scale(self, factor: &Expr) -> Affine {
        let steps = self.steps.into_iter().map(|step| multiply(step, factor.clone())).collect();
        Affine { constant: multiply(self.constant, factor.clone()), steps }
    }
}

fn affine(expr: &Expr, iterators: &[LocalId], fixed: &impl Fn(LocalId) -> bool) -> Option<Affine> {
    if is_fixed(expr, fixed) {
        return Some(Affine::constant(expr.clone(), iterators));
    }
    let span = expr.span;
    let part = |expr: &Expr| affine(expr, iterators, fixed);
    match &expr.kind {
        ExprKind::Local(local) => {
            let place = iterators.iter().position(|iterator| iterator == local)?;
            let mut index = Affine::constant(value(0, span), iterators);
            index.steps[place] = value(1, span);
            Some(index)
        }
        ExprKind::Unary(Unary::Neg, operand) => Some(part(operand)?.scale(&value(-1, span))),
        ExprKind::Binary(Binary::Add, a, b) => Some(part(a)?.combine(part(b)?, add)),
        ExprKind::Binary(Binary::Sub, a, b) => Some(part(a)?.combine(part(b)?, subtract)),
        ExprKind::Binary(Binary::Mul, a, b) => {
            let (a, b) = (part(a)?, part(b)?);
            match (a.has_steps(), b.has_steps()) {
                (_, false) => Some(a.scale(&b.constant)),
                (false, true) => Some(b.scale(&a.constant)),
                (true, true) => None,
            }
        }
        _ => None,
    }
}

// ---- expressions, folded where a part is 0 or 1 ------------------------------------------------------

fn value(value: i64, span: Span) -> Expr {
    Expr { kind: ExprKind::Value(value), span }
}

fn local(local: LocalId, span: Span) -> Expr {
    Expr { kind: ExprKind::Local(local), span }
}

fn binary(operator: Binary, a: Expr, b: Expr) -> Expr {
    let span = a.span;
    Expr { kind: ExprKind::Binary(operator, Box::new(a), Box::new(b)), span }
}

fn add(a: Expr, b: Expr) -> Expr {
    match (&a.kind, &b.kind) {
        (ExprKind::Value(0), _) => b,
        (_, ExprKind::Value(0)) => a,
        _ => binary(Binary::Add, a, b),
    }
}

fn subtract(a: Expr, b: Expr) -> Expr {
    match b.kind {
        ExprKind::Value(0) => a,
        _ => binary(Binary::Sub, a, b),
    }
}

fn multiply(a: Expr, b: Expr) -> Expr {
    match (&a.kind, &b.kind) {
        (ExprKind::Value(0), _) | (_, ExprKind::Value(1)) => a,
        (_, ExprKind::Value(0)) | (ExprKind::Value(1), _) => b,
        _ => binary(Binary::Mul, a, b),
    }
}
