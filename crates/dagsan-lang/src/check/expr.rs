//! Expressions: what they are and what type they have.

use super::body::Meaning;
use super::types::{Ty, Type, Types};
use super::{Checker, Need};
use crate::hir::{BodyId, Expr, ExprKind};
use crate::span::{Diagnostic, Span};
use crate::syntax::ast::{self, Binary, Call, Name, Unary};

impl Checker<'_> {
    /// An expression that must have a value.
    pub(super) fn value(&mut self, expr: &ast::Expr) -> (Expr, Ty) {
        let (value, ty) = self.expr(expr);
        self.needs.push((ty, expr.span, Need::Value));
        (value, ty)
    }

    /// An expression that must have the type `wanted`.
    pub(super) fn expect(&mut self, wanted: Ty, expr: &ast::Expr) -> Expr {
        let (value, found) = self.expr(expr);
        self.same(wanted, found, expr.span);
        value
    }

    /// `found` must be `wanted`.
    pub(super) fn same(&mut self, wanted: Ty, found: Ty, span: Span) {
        let (wanted_text, found_text) = (self.types.describe(wanted), self.types.describe(found));
        if !self.types.unify(wanted, found) {
            let message = format!("expected {wanted_text}, found {found_text}");
            self.error(Diagnostic::new(span, message, format!("this is {found_text}")));
        }
    }

    /// An expression, with or without value.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> (Expr, Ty) {
        let span = expr.span;
        let (kind, ty) = match &expr.kind {
            ast::ExprKind::Int(value) => (ExprKind::Value(*value), Types::INT),
            ast::ExprKind::Bool(value) => (ExprKind::Value(i64::from(*value)), Types::BOOL),
            ast::ExprKind::Null => {
                let ty = self.types.unknown();
                self.needs.push((ty, span, Need::Nullable));
                (ExprKind::Value(0), ty)
            }
            ast::ExprKind::Name(name) => self.name(name, span),
            ast::ExprKind::Index(array, index) => {
                let (array, index, element, class) = self.element(array, index);
                let access = self.add_access(span, false, Err(class));
                (ExprKind::Load(Box::new(array), Box::new(index), access), element)
            }
            ast::ExprKind::Call(call) => match self.call(call) {
                Some((body, args, result)) => (ExprKind::Call(body, args), result),
                None => (ExprKind::Value(0), self.types.unknown()),
            },
            ast::ExprKind::Len(array) => {
                let element = self.types.unknown();
                let wanted = self.types.add(Type::Array(element));
                (ExprKind::Len(Box::new(self.expect(wanted, array))), Types::INT)
            }
            ast::ExprKind::New(length) => {
                let length = self.expect(Types::INT, length);
                let element = self.types.unknown();
                let maker = self.add_maker(None, span, true, Some(element));
                (ExprKind::New(Box::new(length), maker), self.types.add(Type::Array(element)))
            }
            ast::ExprKind::Get(handle) => {
                self.not_isolated("get", span);
                let (sort, gives) = (self.types.unknown(), self.types.unknown());
                let wanted = self.types.add(Type::Handle { sort, gives });
                let (value, found) = self.expr(handle);
                let found_text = self.types.describe(found);
                if !self.types.unify(wanted, found) {
                    let message = format!("expected a promise or a future, found {found_text}");
                    self.error(Diagnostic::new(handle.span, message, format!("this is {found_text}")));
                }
                (ExprKind::Get(Box::new(value), wanted), gives)
            }
            ast::ExprKind::Unary(operator, operand) => {
                let ty = if *operator == Unary::Not { Types::BOOL } else { Types::INT };
                (ExprKind::Unary(*operator, Box::new(self.expect(ty, operand))), ty)
            }
            ast::ExprKind::Binary(operator, left, right) => self.binary(*operator, left, right),
            ast::ExprKind::And(left, right) => {
                let left = Box::new(self.expect(Types::BOOL, left));
                (ExprKind::And(left, Box::new(self.expect(Types::BOOL, right))), Types::BOOL)
            }
            ast::ExprKind::Or(left, right) => {
                let left = Box::new(self.expect(Types::BOOL, left));
                (ExprKind::Or(left, Box::new(self.expect(Types::BOOL, right))), Types::BOOL)
            }
        };
        (Expr { kind, span }, ty)
    }

    fn name(&mut self, name: &str, span: Span) -> (ExprKind, Ty) {
        match self.lookup(name) {
            Some(Meaning::Local(id)) if !self.local(id).region => (ExprKind::Local(id), self.local(id).ty),
            Some(Meaning::Shared(id, ty)) => {
                let access = self.add_access(span, false, Ok(id));
                (ExprKind::ReadShared(id, access), ty)
            }
            Some(Meaning::Fixed(id, ty)) => (ExprKind::Fixed(id), ty),
            Some(Meaning::Local(_) | Meaning::Region(_) | Meaning::OutOfReach(_)) => {
                let message = format!("`{name}` is a region, not a value");
                let label = "regions can only be used by post, await and ewait";
                self.error(Diagnostic::new(span, message, label));
                (ExprKind::Value(0), self.types.unknown())
            }
            None => {
                self.unknown_variable(name, span);
                (ExprKind::Value(0), self.types.unknown())
            }
        }
    }

    pub(super) fn unknown_variable(&mut self, name: &str, span: Span) {
        let mut diagnostic = Diagnostic::new(span, format!("there is no variable `{name}` here"), "");
        if self.procs.contains_key(name) {
            diagnostic = diagnostic.help(format!("to call the procedure, write `{name}(…)`"));
        }
        self.error(diagnostic);
    }

    /// An array, an index, the type of the element and of the array.
    pub(super) fn element(&mut self, array: &ast::Expr, index: &ast::Expr) -> (Expr, Expr, Ty, Ty) {
        let element = self.types.unknown();
        let wanted = self.types.add(Type::Array(element));
        let array = self.expect(wanted, array);
        let index = self.expect(Types::INT, index);
        (array, index, element, wanted)
    }

    fn binary(&mut self, operator: Binary, left: &ast::Expr, right: &ast::Expr) -> (ExprKind, Ty) {
        use Binary::*;
        let (left, right, ty) = match operator {
            Add | Sub | Mul | Div | Rem => {
                let left = self.expect(Types::INT, left);
                (left, self.expect(Types::INT, right), Types::INT)
            }
            Lt | Le | Gt | Ge => {
                let left = self.expect(Types::INT, left);
                (left, self.expect(Types::INT, right), Types::BOOL)
            }
            Eq | Ne => {
                let (left, ty) = self.value(left);
                (left, self.expect(ty, right), Types::BOOL)
            }
        };
        (ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty)
    }

    /// The procedure and arguments of a call, and what it gives. The arguments are looked at in any case.
    pub(super) fn call(&mut self, call: &Call) -> Option<(BodyId, Vec<Expr>, Ty)> {
        let args: Vec<_> = call.args.iter().map(|arg| self.value(arg)).collect();
        let name = &call.name.text;
        let Some(signature) = self.procs.get(name).cloned() else {
            let message = format!("there is no procedure `{name}`");
            self.error(Diagnostic::new(call.name.span, message, ""));
            return None;
        };
        if args.len() != signature.params.len() {
            let wanted = signature.params.len();
            let plural = if wanted == 1 { "argument" } else { "arguments" };
            let message = format!("`{name}` takes {wanted} {plural}, found {}", args.len());
            let diagnostic = Diagnostic::new(call.span, message, "").other(signature.span, "declared here");
            self.error(diagnostic);
            return None;
        }
        for ((arg, &param), (_, found)) in call.args.iter().zip(&signature.params).zip(&args) {
            self.same(param, *found, arg.span);
        }
        let args = args.into_iter().map(|(arg, _)| arg).collect();
        Some((signature.body, args, signature.result))
    }

    /// The value of `promise p;` or `promise ps[n];`
    pub(super) fn new_promise(&mut self, name: &Name, length: Option<&ast::Expr>) -> (Expr, Ty) {
        let gives = self.types.unknown();
        let promise = self.types.add(Type::Handle { sort: Types::PROMISE, gives });
        let maker = self.add_maker(Some(name), name.span, false, None);
        let (kind, ty) = match length {
            None => (ExprKind::NewPromise(maker), promise),
            Some(length) => {
                let length = self.expect(Types::INT, length);
                (ExprKind::NewPromises(Box::new(length), maker), self.types.add(Type::Array(promise)))
            }
        };
        (Expr { kind, span: name.span }, ty)
    }

    /// An array that is bound to a variable as soon as it is made has the variable's name.
    pub(super) fn name_maker(&mut self, value: &mut Expr, name: &str) {
        if let ExprKind::New(_, maker) = value.kind {
            self.makers[maker.index()].name = Some(name.to_owned());
        }
    }

    /// `what` cannot be done in an isolated section.
    pub(super) fn not_isolated(&mut self, what: &str, span: Span) {
        if self.context().isolated > 0 {
            let message = format!("`{what}` inside an isolated section");
            let diagnostic = Diagnostic::new(span, message, "")
                .help("a section is one step: it cannot create tasks or wait for them");
            self.error(diagnostic);
        }
    }
}
