//! Statements.

use super::body::{Context, Meaning};
use super::types::{Ty, Type, Types};
use super::{Checker, Need, closing_brace};
use crate::hir::{BodyId, Expr, For, Printed, RegionRef, Start, StartKind, Stmt, Then};
use crate::span::{Diagnostic, Span};
use crate::syntax::ast::{self, Block, Call, ExprKind, LoopKind, Name, StmtKind, Work};

/// Can execution reach the end of the block?
pub(super) fn falls_through(block: &Block) -> bool {
    !block.stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Return(_) => true,
        StmtKind::Block(block) | StmtKind::Finish(block) | StmtKind::Isolated(block) => !falls_through(block),
        StmtKind::If(_, then, Some(other)) => !falls_through(then) && !falls_through(other),
        StmtKind::While(condition, _) => matches!(condition.kind, ExprKind::Bool(true)),
        _ => false,
    })
}

impl Checker<'_> {
    /// A block, in a scope of its own.
    pub(super) fn block(&mut self, block: &Block) -> Vec<Stmt> {
        self.open_scope();
        let mut stmts = Vec::new();
        for stmt in &block.stmts {
            self.stmt(stmt, &mut stmts);
        }
        self.close_scope();
        stmts
    }

    fn stmt(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Block(block) => out.extend(self.block(block)),
            StmtKind::Let(name, value) | StmtKind::Var(name, value) => {
                let (mut value, ty) = self.value(value);
                self.name_maker(&mut value, &name.text);
                let local = self.declare_local(name, ty, matches!(stmt.kind, StmtKind::Var(..)));
                out.push(Stmt::Assign(local, value));
            }
            StmtKind::Assign(place, value) => self.assign(place, value, out),
            StmtKind::Expr(expr) => out.push(Stmt::Expr(self.expr(expr).0)),
            StmtKind::If(condition, then, other) => {
                let condition = self.expect(Types::BOOL, condition);
                let then = self.block(then);
                let other = other.as_ref().map_or(Vec::new(), |other| self.block(other));
                out.push(Stmt::If(condition, then, other));
            }
            StmtKind::While(condition, block) => {
                let condition = self.expect(Types::BOOL, condition);
                let id = self.add_loop();
                out.push(Stmt::While(id, condition, self.block(block)));
            }
            StmtKind::Loop(kind, name, low, high, block) => {
                self.loop_stmt(*kind, name, (low, high), block, span, out);
            }
            StmtKind::Async(work) => self.start(StartKind::Async, work, span, out),
            StmtKind::Spawn(work) => self.start(StartKind::Spawn, work, span, out),
            StmtKind::Future(name, work) => self.future(name, work, span, out),
            StmtKind::Finish(block) => {
                self.not_isolated("finish", span);
                let block = self.block(block);
                out.push(Stmt::Finish(block, span));
            }
            StmtKind::Isolated(block) => {
                self.context().isolated += 1;
                let block = self.block(block);
                self.context().isolated -= 1;
                out.push(Stmt::Isolated(block, span));
            }
            StmtKind::Sync => {
                self.not_isolated("sync", span);
                out.push(Stmt::Sync(span));
            }
            StmtKind::Promise(name, length) => {
                let (value, ty) = self.new_promise(name, length.as_ref());
                let local = self.declare_local(name, ty, false);
                out.push(Stmt::Assign(local, value));
            }
            StmtKind::Set(promise, value) => self.set(promise, value.as_ref(), span, out),
            StmtKind::Region(name) => {
                let local = self.declare_region(name);
                out.push(Stmt::Region(local));
            }
            StmtKind::Post(region, call, then) => self.post(region, call, then.as_ref(), span, out),
            StmtKind::Await(name) | StmtKind::Ewait(name) => {
                let is_await = matches!(stmt.kind, StmtKind::Await(_));
                self.not_isolated(if is_await { "await" } else { "ewait" }, span);
                if self.context().handler {
                    self.in_handler("wait for a region", span);
                }
                if let Some(region) = self.region(name) {
                    out.push(if is_await { Stmt::Await(region, span) } else { Stmt::Ewait(region, span) });
                }
            }
            StmtKind::Print(printed) => {
                let printed = printed.iter().map(|printed| match printed {
                    ast::Printed::Text(text) => Printed::Text(text.clone()),
                    ast::Printed::Value(expr) => {
                        let (value, ty) = self.expr(expr);
                        self.needs.push((ty, expr.span, Need::Printable));
                        Printed::Value(value, ty)
                    }
                });
                let printed = printed.collect();
                out.push(Stmt::Print(printed, span));
            }
            StmtKind::Assert(condition) => out.push(Stmt::Assert(self.expect(Types::BOOL, condition))),
            StmtKind::Skip => {}
            StmtKind::Return(value) => self.return_stmt(value.as_ref(), span, out),
        }
    }

    fn assign(&mut self, place: &ast::Expr, value: &ast::Expr, out: &mut Vec<Stmt>) {
        match &place.kind {
            ExprKind::Index(array, index) => {
                let (array, index, element, class) = self.element(array, index);
                let value = self.expect(element, value);
                let access = self.add_access(place.span, true, Err(class));
                out.push(Stmt::Store { array, index, value, access });
            }
            ExprKind::Name(name) => self.assign_name(name, place.span, value, out),
            _ => unreachable!("the parser lets only names and elements be assigned to"),
        }
    }

    fn assign_name(&mut self, name: &str, span: Span, value: &ast::Expr, out: &mut Vec<Stmt>) {
        let (mut new, ty) = self.value(value);
        self.name_maker(&mut new, name);
        match self.lookup(name) {
            Some(Meaning::Local(id)) => {
                let local = self.local(id);
                if local.mutable {
                    self.same(local.ty, ty, value.span);
                    out.push(Stmt::Assign(id, new));
                } else {
                    let diagnostic =
                        Diagnostic::new(span, format!("`{name}` cannot be assigned to"), "it is fixed")
                            .other(local.span, "declared here")
                            .help("what changes is declared by `var`");
                    self.error(diagnostic);
                }
            }
            Some(Meaning::Shared(id, wanted)) => {
                self.same(wanted, ty, value.span);
                let access = self.add_access(span, true, Ok(id));
                out.push(Stmt::WriteShared(id, new, access));
            }
            Some(Meaning::Fixed(..) | Meaning::Region(_) | Meaning::OutOfReach(_)) => {
                let message = format!("`{name}` cannot be assigned to");
                let diagnostic = Diagnostic::new(span, message, "it is fixed")
                    .help("only `shared` variables, `var`s and array elements can be assigned to");
                self.error(diagnostic);
            }
            None => self.unknown_variable(name, span),
        }
    }

    fn loop_stmt(
        &mut self,
        kind: LoopKind,
        name: &Name,
        (low, high): (&ast::Expr, &ast::Expr),
        block: &Block,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let high_end = high.span;
        let low = self.expect(Types::INT, low);
        let high = self.expect(Types::INT, high);
        let id = self.add_loop();
        let head = span.to(high_end);
        self.open_scope();
        let local = self.declare_local(name, Types::INT, false);
        let bound = self.unnamed_local(Types::INT, high_end);
        let mut body = Vec::new();
        match kind {
            LoopKind::For => body = self.block(block),
            LoopKind::Forall => self.start_block(StartKind::Forall, block, head, &mut body),
            LoopKind::Forasync => self.start_block(StartKind::Forasync, block, head, &mut body),
        }
        self.close_scope();
        let stmt = Stmt::For(For { id, local, low, high, bound, block: body, span: head });
        out.push(if kind == LoopKind::Forall { Stmt::Finish(vec![stmt], head) } else { stmt });
    }

    // ---- tasks -----------------------------------------------------------------------------------

    fn start(&mut self, kind: StartKind, work: &Work, span: Span, out: &mut Vec<Stmt>) {
        match work {
            Work::Block(block) => {
                let keyword = Span { end: span.start + kind.name().len() as u32, ..span };
                self.start_block(kind, block, keyword, out);
            }
            Work::Call(call) => {
                self.note_start(kind, span);
                if let Some((body, args, _)) = self.task_call(call) {
                    out.push(start(kind, body, args, span));
                }
            }
        }
    }

    fn start_block(&mut self, kind: StartKind, block: &Block, span: Span, out: &mut Vec<Stmt>) {
        self.note_start(kind, span);
        let (body, args) = self.task_block(block, Types::NOTHING);
        out.push(start(kind, body, args, span));
    }

    fn future(&mut self, name: &Name, work: &Work, span: Span, out: &mut Vec<Stmt>) {
        self.note_start(StartKind::Future, span);
        let mut head = span;
        let found = match work {
            Work::Block(block) => {
                head = span.to(name.span);
                let result = self.types.unknown();
                let (body, args) = self.task_block(block, result);
                Some((body, args, result))
            }
            Work::Call(call) => self.task_call(call),
        };
        let gives = found.as_ref().map_or_else(|| self.types.unknown(), |&(_, _, result)| result);
        let ty = self.types.add(Type::Handle { sort: Types::FUTURE, gives });
        let handle = self.declare_local(name, ty, false);
        if let Some((body, args, _)) = found {
            let mut stmt = new_start(StartKind::Future, body, args, head);
            stmt.handle = Some(handle);
            out.push(Stmt::Start(Box::new(stmt)));
        }
    }

    fn post(
        &mut self,
        region: &Name,
        call: &Call,
        then: Option<&(Name, Block)>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        self.note_start(StartKind::Post, span);
        let region_ref = self.region(region);
        let found = self.task_call(call);
        let then = then.map(|(name, block)| {
            if let Some(RegionRef::Fixed(_)) = region_ref {
                let message =
                    format!("`{}` is a global region: its tasks have no return handlers", region.text);
                let diagnostic = Diagnostic::new(name.span, message, "")
                    .help("a handler runs in the body that posts and awaits: declare the region there");
                self.error(diagnostic);
            }
            let ty = found.as_ref().map_or_else(|| self.types.unknown(), |&(_, _, result)| result);
            self.needs.push((ty, call.span, Need::Value));
            self.crossing.push(ty);
            self.open_scope();
            let value = self.declare_local(name, ty, false);
            let outer = std::mem::replace(&mut self.context().handler, true);
            let block = self.block(block);
            self.context().handler = outer;
            self.close_scope();
            Then { value, block }
        });
        if let (Some((body, args, _)), Some(region)) = (found, region_ref) {
            let mut stmt = new_start(StartKind::Post, body, args, span.to(call.span));
            (stmt.region, stmt.then) = (Some(region), then);
            out.push(Stmt::Start(Box::new(stmt)));
        }
    }

    fn note_start(&mut self, kind: StartKind, span: Span) {
        self.not_isolated(kind.name(), span);
        if kind == StartKind::Spawn {
            self.context().spawns = true;
        }
    }

    /// The block of a task: a body of its own, and the locals it takes along.
    fn task_block(&mut self, block: &Block, result: Ty) -> (BodyId, Vec<Expr>) {
        self.contexts.push(Context::new(None, result));
        let stmts = self.block(block);
        self.check_result(block, result);
        self.close_body(None, stmts, closing_brace(block.span))
    }

    /// A call in a new task: its arguments reach another task.
    fn task_call(&mut self, call: &Call) -> Option<(BodyId, Vec<Expr>, Ty)> {
        let found = self.call(call);
        if let Some(signature) = self.procs.get(&call.name.text) {
            self.crossing.extend(&signature.params);
        }
        found
    }

    fn set(&mut self, promise: &ast::Expr, value: Option<&ast::Expr>, span: Span, out: &mut Vec<Stmt>) {
        let gives = match value {
            None => Types::NOTHING,
            Some(_) => self.types.unknown(),
        };
        let value = value.map(|value| {
            let (new, ty) = self.value(value);
            self.types.unify(gives, ty);
            new
        });
        let wanted = self.types.add(Type::Handle { sort: Types::PROMISE, gives });
        let (handle, found) = self.expr(promise);
        let found_text = self.types.describe(found);
        if !self.types.unify(wanted, found) {
            let wanted = match gives {
                Types::NOTHING => "a promise set without a value".to_owned(),
                _ => format!("a promise of {}", self.types.describe(gives)),
            };
            let message = format!("expected {wanted}, found {found_text}");
            self.error(Diagnostic::new(promise.span, message, format!("this is a {found_text}")));
        }
        out.push(Stmt::Set(handle, value, span));
    }

    fn region(&mut self, name: &Name) -> Option<RegionRef> {
        let message = match self.lookup(&name.text) {
            Some(Meaning::Local(id)) if self.local(id).region => return Some(RegionRef::Local(id)),
            Some(Meaning::Region(id)) => return Some(RegionRef::Fixed(id)),
            Some(Meaning::OutOfReach(declared)) => {
                let message = format!("region `{}` can only be used by the body that declares it", name.text);
                let diagnostic = Diagnostic::new(name.span, message, "this is another task")
                    .other(declared, "declared here")
                    .help("a region that several tasks use is declared at the top level");
                self.error(diagnostic);
                return None;
            }
            Some(_) => format!("`{}` is not a region", name.text),
            None => format!("there is no region `{}` here", name.text),
        };
        let help = format!("declare it: `region {};`", name.text);
        self.error(Diagnostic::new(name.span, message, "").help(help));
        None
    }

    fn return_stmt(&mut self, value: Option<&ast::Expr>, span: Span, out: &mut Vec<Stmt>) {
        if self.context().handler {
            self.in_handler("return from the procedure", span);
        }
        let result = self.context().result;
        let value = value.map(|value| {
            let (new, ty) = self.value(value);
            self.same(result, ty, value.span);
            new
        });
        if value.is_none() && !self.types.unify(result, Types::NOTHING) {
            let message = format!("expected a value of type {} after `return`", self.types.describe(result));
            self.error(Diagnostic::new(span, message, ""));
        }
        out.push(Stmt::Return(value, span));
    }

    fn in_handler(&mut self, what: &str, span: Span) {
        self.error(Diagnostic::new(span, format!("a return handler cannot {what}"), ""));
    }
}

impl StartKind {
    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            StartKind::Async => "async",
            StartKind::Forall => "forall",
            StartKind::Forasync => "forasync",
            StartKind::Spawn => "spawn",
            StartKind::Future => "future",
            StartKind::Post => "post",
        }
    }
}

fn new_start(kind: StartKind, body: BodyId, args: Vec<Expr>, span: Span) -> Start {
    Start { kind, body, args, handle: None, region: None, then: None, span }
}

fn start(kind: StartKind, body: BodyId, args: Vec<Expr>, span: Span) -> Stmt {
    Stmt::Start(Box::new(new_start(kind, body, args, span)))
}
