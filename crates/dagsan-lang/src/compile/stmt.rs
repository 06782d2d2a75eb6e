//! Statements.

use super::body::{BodyCompiler, Open};
use super::expr::cell;
use super::op::{Handler, Op, Piece, Reg, StartSite, Summary};
use crate::check::types::Type;
use crate::eliminate::Hoisted;
use crate::hir::{For, LoopId, Printed, RegionRef, Start, StartKind, Stmt, Target};
use crate::span::Span;

impl<'a> BodyCompiler<'a> {
    pub(super) fn stmts(&mut self, block: &'a [Stmt]) {
        for stmt in block {
            let mark = self.mark();
            self.stmt(stmt);
            self.release(mark);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(local, value) => self.value_into(value, self.local(*local)),
            Stmt::WriteShared(shared, value, access) => {
                let span = self.hir.accesses[access.index()].span;
                let (value, cell) = (self.value(value), cell(*shared));
                self.access(*access, Op::WriteCheck(value, cell, *access), Op::Write(value, cell), span);
            }
            Stmt::Fix(fixed, value) => {
                let into = self.fixed(*fixed);
                self.value_into(value, into);
                self.emit(Op::Fix(fixed.0, into), value.span);
            }
            Stmt::Store { array, index, value, access } => {
                let span = self.hir.accesses[access.index()].span;
                let (array, index, value) = (self.value(array), self.value(index), self.value(value));
                let with = Op::StoreCheck(array, index, value, *access);
                self.access(*access, with, Op::Store(array, index, value), span);
            }
            Stmt::Expr(expr) => _ = self.value(expr),
            Stmt::If(condition, then, other) => {
                let to_other = self.branch(condition, false);
                self.stmts(then);
                if other.is_empty() {
                    self.land(&to_other);
                } else {
                    let to_end = self.emit(Op::Jump(0), condition.span);
                    self.land(&to_other);
                    self.stmts(other);
                    self.land(&[to_end]);
                }
            }
            Stmt::While(id, condition, block) => {
                let to_end = self.branch(condition, false);
                self.hoisted(*id, condition.span);
                let top = self.code.here();
                self.stmts(block);
                let to_top = self.branch(condition, true);
                self.aim(&to_top, top);
                self.land(&to_end);
            }
            Stmt::For(looping) => self.for_loop(looping),
            Stmt::Start(start) => self.start(start),
            Stmt::Finish(block, span) => {
                self.emit(Op::FinishBegin, *span);
                self.open.push(Open::Finish(*span));
                self.stmts(block);
                self.open.pop();
                self.emit(Op::FinishEnd, *span);
            }
            Stmt::Isolated(block, span) => {
                self.emit(Op::IsolatedBegin, *span);
                self.open.push(Open::Isolated(*span));
                self.stmts(block);
                self.open.pop();
                self.emit(Op::IsolatedEnd, *span);
            }
            Stmt::Sync(span) => _ = self.emit(Op::Sync, *span),
            Stmt::Set(promise, value, span) => {
                let promise = self.value(promise);
                let value = match value {
                    Some(value) => self.value(value),
                    None => {
                        let nothing = self.temp();
                        self.emit(Op::Int(nothing, 0), *span);
                        nothing
                    }
                };
                self.emit(Op::Set(promise, value), *span);
            }
            Stmt::Region(local) => _ = self.emit(Op::NewRegion(self.local(*local)), self.body.end),
            Stmt::Await(region, span) => {
                self.emit(Op::Await(self.region(*region)), *span);
                self.emit(Op::Handle, *span);
            }
            Stmt::Ewait(region, span) => {
                self.emit(Op::Ewait(self.region(*region)), *span);
                self.emit(Op::Handle, *span);
            }
            Stmt::Print(printed, span) => self.print(printed, *span),
            Stmt::Assert(condition) => {
                let value = self.value(condition);
                self.emit(Op::Assert(value), condition.span);
            }
            Stmt::Return(value, span) => {
                let value = value.as_ref().map(|value| self.value(value));
                for open in self.open.clone().into_iter().rev() {
                    match open {
                        Open::Finish(span) => self.emit(Op::FinishEnd, span),
                        Open::Isolated(span) => self.emit(Op::IsolatedEnd, span),
                    };
                }
                self.close_frame(*span);
                self.emit(value.map_or(Op::ReturnNothing, Op::Return), *span);
            }
        }
    }

    fn for_loop(&mut self, looping: &'a For) {
        let iterator = self.local(looping.local);
        let high = self.local(looping.bound);
        self.value_into(&looping.low, iterator);
        self.value_into(&looping.high, high);
        let to_end = self.emit(Op::JumpLe(high, iterator, 0), looping.span);
        self.hoisted(looping.id, looping.span);
        let top = self.code.here();
        self.stmts(&looping.block);
        self.emit(Op::Next(iterator, high, top), looping.span);
        self.land(&[to_end]);
    }

    /// The checks that are made once, before the loop's first iteration.
    fn hoisted(&mut self, id: LoopId, span: Span) {
        if !self.mode.checks {
            return;
        }
        let plan = self.plan;
        for hoisted in plan.hoisted(id) {
            let mark = self.mark();
            let Hoisted { access, array, start, dimensions } = hoisted;
            match (array, self.hir.accesses[access.index()].target) {
                (Some(array), _) => {
                    let (array, start) = (self.value(array), self.value(start));
                    let dimensions =
                        dimensions.iter().map(|(step, count)| (self.value(step), self.value(count)));
                    let dimensions = dimensions.collect();
                    self.code.summaries.push(Summary { array, start, dimensions, access: *access });
                    self.emit(Op::Summary(self.code.summaries.len() as u32 - 1), span);
                }
                (None, Target::Shared(shared)) => _ = self.emit(Op::Check(cell(shared), *access), span),
                (None, Target::Class(_)) => unreachable!("an access to an array has an array"),
            }
            self.release(mark);
        }
    }

    fn region(&self, region: RegionRef) -> Reg {
        match region {
            RegionRef::Local(local) => self.local(local),
            RegionRef::Fixed(fixed) => self.fixed(fixed),
        }
    }

    fn start(&mut self, start: &'a Start) {
        let handler = start.then.as_ref().map(|then| {
            // Where it begins is known when the body is done.
            self.code.handlers.push(Handler { entry: 0, value: 0 });
            let number = self.code.handlers.len() as u32 - 1;
            self.handlers.push((number, then));
            number
        });
        let site = StartSite {
            kind: start.kind,
            function: start.body.0,
            args: start.args.len() as u32,
            handler,
            span: start.span,
        };
        self.code.starts.push(site);
        let site = self.code.starts.len() as u32 - 1;
        let first = self.arguments(&start.args);
        let op = match (start.kind, start.region) {
            (StartKind::Post, Some(region)) => Op::Post(self.region(region), first, site),
            _ => Op::Start(start.handle.map_or(first, |handle| self.local(handle)), first, site),
        };
        self.emit(op, start.span);
    }

    fn print(&mut self, printed: &'a [Printed], span: Span) {
        let mut pieces = Vec::new();
        let values = printed.iter().filter(|printed| matches!(printed, Printed::Value(..))).count();
        let registers: Vec<Reg> = (0..values.max(1)).map(|_| self.temp()).collect();
        let mut next = registers.iter();
        for printed in printed {
            match printed {
                Printed::Text(text) => pieces.push(Piece::Text(text.clone())),
                Printed::Value(value, ty) => {
                    pieces.push(match self.hir.types.get(*ty) {
                        Type::Bool => Piece::Bool,
                        _ => Piece::Int,
                    });
                    if let Some(&into) = next.next() {
                        self.value_into(value, into);
                    }
                }
            }
        }
        self.code.prints.push(pieces);
        self.emit(Op::Print(registers[0], self.code.prints.len() as u32 - 1), span);
    }
}
