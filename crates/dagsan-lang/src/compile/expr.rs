//! Expressions and conditions.

use super::FIRST_CELL;
use super::body::BodyCompiler;
use super::op::{Op, Reg};
use crate::check::types::Type;
use crate::hir::{AccessId, Binary, Expr, ExprKind, SharedId, Unary};
use crate::span::Span;

/// The cell of a shared scalar.
pub(super) fn cell(shared: SharedId) -> u32 {
    FIRST_CELL + shared.0
}

impl BodyCompiler<'_> {
    /// The value of an expression, in a register that must not be written to: it may be a local's.
    pub(super) fn value(&mut self, expr: &Expr) -> Reg {
        match expr.kind {
            ExprKind::Local(local) => self.local(local),
            ExprKind::Fixed(fixed) => self.fixed(fixed),
            _ => {
                let into = self.temp();
                self.value_into(expr, into);
                into
            }
        }
    }

    /// The value of an expression, in register `into`. Temporaries that were needed are free again.
    pub(super) fn value_into(&mut self, expr: &Expr, into: Reg) {
        let mark = self.mark();
        let span = expr.span;
        match &expr.kind {
            ExprKind::Value(value) => self.constant(*value, into, span),
            ExprKind::Local(local) => self.copy(self.local(*local), into, span),
            ExprKind::Fixed(fixed) => self.copy(self.fixed(*fixed), into, span),
            ExprKind::ReadShared(shared, access) => {
                let cell = cell(*shared);
                self.access(*access, Op::ReadCheck(into, cell, *access), Op::Read(into, cell), span);
            }
            ExprKind::Load(array, index, access) => {
                let (array, index) = (self.value(array), self.value(index));
                let (with, without) =
                    (Op::LoadCheck(into, array, index, *access), Op::Load(into, array, index));
                self.access(*access, with, without, span);
            }
            ExprKind::Call(body, args) => {
                let first = self.arguments(args);
                self.emit(Op::Call(body.0, first), span);
                self.copy(first, into, span);
            }
            ExprKind::Len(array) => {
                let array = self.value(array);
                self.emit(Op::Len(into, array), span);
            }
            ExprKind::New(length, maker) => {
                let length = self.value(length);
                self.emit(Op::New(into, length, *maker), span);
            }
            ExprKind::NewPromises(length, maker) => {
                let length = self.value(length);
                self.emit(Op::NewPromises(into, length, *maker), span);
            }
            ExprKind::NewPromise(maker) => _ = self.emit(Op::NewPromise(into, *maker), span),
            ExprKind::NewRegion => _ = self.emit(Op::NewRegion(into), span),
            ExprKind::Get(handle, ty) => {
                let handle = self.value(handle);
                let future = match self.hir.types.get(*ty) {
                    Type::Handle { sort, .. } => self.hir.types.get(sort) == Type::Future,
                    _ => false,
                };
                let op = if future { Op::GetFuture(into, handle) } else { Op::GetPromise(into, handle) };
                self.emit(op, span);
            }
            ExprKind::Unary(operator, operand) => {
                let operand = self.value(operand);
                let op = match operator {
                    Unary::Not => Op::Not(into, operand),
                    Unary::Neg => Op::Neg(into, operand),
                };
                self.emit(op, span);
            }
            ExprKind::Binary(operator, left, right) => self.binary(*operator, left, right, into, span),
            ExprKind::And(..) | ExprKind::Or(..) => {
                let exits = self.branch(expr, false);
                self.emit(Op::Int(into, 1), span);
                let end = self.emit(Op::Jump(0), span);
                self.land(&exits);
                self.emit(Op::Int(into, 0), span);
                self.land(&[end]);
            }
        }
        self.release(mark);
    }

    /// Arguments in consecutive registers; the first of them is also where a result comes back.
    pub(super) fn arguments(&mut self, args: &[Expr]) -> Reg {
        let registers: Vec<Reg> = (0..args.len().max(1)).map(|_| self.temp()).collect();
        for (arg, &into) in args.iter().zip(&registers) {
            self.value_into(arg, into);
        }
        registers[0]
    }

    fn constant(&mut self, value: i64, into: Reg, span: Span) {
        let op = match i32::try_from(value) {
            Ok(value) => Op::Int(into, value),
            Err(_) => {
                self.code.constants.push(value);
                Op::Constant(into, self.code.constants.len() as u32 - 1)
            }
        };
        self.emit(op, span);
    }

    pub(super) fn copy(&mut self, from: Reg, into: Reg, span: Span) {
        if from != into {
            self.emit(Op::Move(into, from), span);
        }
    }

    /// An access, with its check or without, if it needs none where it stands. In statistics, it is counted before
    /// it is made.
    pub(super) fn access(&mut self, access: AccessId, with_check: Op, without: Op, span: Span) {
        if self.mode.count {
            self.emit(Op::Count(access), span);
        }
        let checked = self.mode.checks && self.plan.needs_check(access);
        self.emit(if checked { with_check } else { without }, span);
    }

    fn binary(&mut self, operator: Binary, left: &Expr, right: &Expr, into: Reg, span: Span) {
        use Binary::*;
        if let Some(op) = self.with_constant(operator, left, right, into) {
            self.emit(op, span);
            return;
        }
        let (a, b) = (self.value(left), self.value(right));
        let op = match operator {
            Add => Op::Add(into, a, b),
            Sub => Op::Sub(into, a, b),
            Mul => Op::Mul(into, a, b),
            Div => Op::Div(into, a, b),
            Rem => Op::Rem(into, a, b),
            Eq => Op::Eq(into, a, b),
            Ne => Op::Ne(into, a, b),
            Lt => Op::Lt(into, a, b),
            Le => Op::Le(into, a, b),
            Gt => Op::Lt(into, b, a),
            Ge => Op::Le(into, b, a),
        };
        self.emit(op, span);
    }

    /// Sums and products with a small constant have operations of their own.
    fn with_constant(&mut self, operator: Binary, left: &Expr, right: &Expr, into: Reg) -> Option<Op> {
        let small = |expr: &Expr| match expr.kind {
            ExprKind::Value(value) => i32::try_from(value).ok(),
            _ => None,
        };
        match (operator, small(left), small(right)) {
            (Binary::Add, _, Some(value)) => Some(Op::AddInt(into, self.value(left), value)),
            (Binary::Add, Some(value), _) => Some(Op::AddInt(into, self.value(right), value)),
            (Binary::Sub, _, Some(value)) => Some(Op::AddInt(into, self.value(left), value.checked_neg()?)),
            (Binary::Mul, _, Some(value)) => Some(Op::MulInt(into, self.value(left), value)),
            (Binary::Mul, Some(value), _) => Some(Op::MulInt(into, self.value(right), value)),
            _ => None,
        }
    }

    // ---- conditions ------------------------------------------------------------------------------

    /// Jumps if the condition is `when`; otherwise execution goes on. Returns the jumps, not yet aimed.
    pub(super) fn branch(&mut self, condition: &Expr, when: bool) -> Vec<usize> {
        let mark = self.mark();
        let span = condition.span;
        let jumps = match &condition.kind {
            ExprKind::Unary(Unary::Not, operand) => self.branch(operand, !when),
            ExprKind::And(left, right) => self.branch_both(left, right, when, true),
            ExprKind::Or(left, right) => self.branch_both(left, right, when, false),
            ExprKind::Value(value) if (*value != 0) == when => vec![self.emit(Op::Jump(0), span)],
            ExprKind::Value(_) => Vec::new(),
            ExprKind::Binary(operator, left, right) if operator.compares() => {
                let (a, b) = (self.value(left), self.value(right));
                vec![self.emit(compare_and_jump(*operator, a, b, when), span)]
            }
            _ => {
                let value = self.value(condition);
                vec![self.emit(if when { Op::JumpIf(value, 0) } else { Op::JumpUnless(value, 0) }, span)]
            }
        };
        self.release(mark);
        jumps
    }

    /// `and`: of a conjunction; otherwise of a disjunction.
    fn branch_both(&mut self, left: &Expr, right: &Expr, when: bool, and: bool) -> Vec<usize> {
        if when != and {
            // One of the two decides alone.
            let mut jumps = self.branch(left, when);
            jumps.extend(self.branch(right, when));
            return jumps;
        }
        let out = self.branch(left, !when);
        let jumps = self.branch(right, when);
        self.land(&out);
        jumps
    }

    /// Makes the jumps lead here.
    pub(super) fn land(&mut self, jumps: &[usize]) {
        let here = self.code.here();
        self.aim(jumps, here);
    }

    pub(super) fn aim(&mut self, jumps: &[usize], target: u32) {
        for &jump in jumps {
            self.code.aim(jump, target);
        }
    }
}

impl Binary {
    fn compares(self) -> bool {
        use Binary::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }
}

fn compare_and_jump(operator: Binary, a: Reg, b: Reg, when: bool) -> Op {
    use Binary::*;
    match (operator, when) {
        (Eq, true) | (Ne, false) => Op::JumpEq(a, b, 0),
        (Ne, true) | (Eq, false) => Op::JumpNe(a, b, 0),
        (Lt, true) | (Ge, false) => Op::JumpLt(a, b, 0),
        (Le, true) | (Gt, false) => Op::JumpLe(a, b, 0),
        (Gt, true) | (Le, false) => Op::JumpLt(b, a, 0),
        (Ge, true) | (Lt, false) => Op::JumpLe(b, a, 0),
        (Add | Sub | Mul | Div | Rem, _) => unreachable!("{operator:?} does not compare"),
    }
}
