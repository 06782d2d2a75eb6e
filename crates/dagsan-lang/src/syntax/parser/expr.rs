//! Expressions, by precedence climbing.

use super::{Failed, Parsed, Parser};
use crate::span::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Kind;

/// How deep expressions may be nested in each other.
const MAX_DEPTH: u32 = 200;

/// What stands between two operands.
#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Binary(Binary),
}

/// How strongly an operator binds, and whether it can stand in a row with others of its strength.
struct Strength {
    level: u32,
    chains: bool,
}

fn operator(kind: Kind) -> Option<(Operator, Strength)> {
    let binary = |operator, level, chains| Some((Operator::Binary(operator), Strength { level, chains }));
    match kind {
        Kind::Or => Some((Operator::Or, Strength { level: 1, chains: true })),
        Kind::And => Some((Operator::And, Strength { level: 2, chains: true })),
        Kind::Equal => binary(Binary::Eq, 3, false),
        Kind::NotEqual => binary(Binary::Ne, 3, false),
        Kind::Less => binary(Binary::Lt, 4, false),
        Kind::LessEqual => binary(Binary::Le, 4, false),
        Kind::Greater => binary(Binary::Gt, 4, false),
        Kind::GreaterEqual => binary(Binary::Ge, 4, false),
        Kind::Plus => binary(Binary::Add, 5, true),
        Kind::Minus => binary(Binary::Sub, 5, true),
        Kind::Star => binary(Binary::Mul, 6, true),
        Kind::Slash => binary(Binary::Div, 6, true),
        Kind::Percent => binary(Binary::Rem, 6, true),
        _ => None,
    }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.climb(0)
    }

    /// An expression of operators that bind more strongly than `level`.
    fn climb(&mut self, level: u32) -> Parsed<Expr> {
        let mut left = self.unary()?;
        let mut last_level = None;
        while let Some((operator, strength)) = operator(self.peek()).filter(|(_, s)| s.level > level) {
            let sign = self.advance().span;
            if !strength.chains && last_level == Some(strength.level) {
                let diagnostic = Diagnostic::new(sign, "comparisons do not chain", "a second comparison")
                    .help("write `a < b && b < c`, or use parentheses");
                return Err(self.error(diagnostic));
            }
            last_level = Some(strength.level);
            let right = self.climb(strength.level)?;
            let span = left.span.to(right.span);
            let (left_box, right_box) = (Box::new(left), Box::new(right));
            left = self.build(
                match operator {
                    Operator::Or => ExprKind::Or(left_box, right_box),
                    Operator::And => ExprKind::And(left_box, right_box),
                    Operator::Binary(operator) => ExprKind::Binary(operator, left_box, right_box),
                },
                span,
            )?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = self.peek();
        if !matches!(kind, Kind::Not | Kind::Minus | Kind::Get) {
            return self.postfix();
        }
        self.advance();
        let operand = Box::new(self.nested(start, Parser::unary)?);
        let span = start.to(operand.span);
        self.build(
            match kind {
                Kind::Not => ExprKind::Unary(Unary::Not, operand),
                Kind::Minus => ExprKind::Unary(Unary::Neg, operand),
                _ => ExprKind::Get(operand),
            },
            span,
        )
    }

    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary()?;
        while self.peek() == Kind::OpenSquare {
            let index = self.nested(expr.span, Parser::length)?;
            let span = expr.span.to(self.last_span());
            expr = self.build(ExprKind::Index(Box::new(expr), Box::new(index)), span)?;
        }
        Ok(expr)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.peek() {
            Kind::Int(value) => ExprKind::Int(value),
            Kind::True => ExprKind::Bool(true),
            Kind::False => ExprKind::Bool(false),
            Kind::Null => ExprKind::Null,
            Kind::Name => {
                let name = self.name()?;
                if self.peek() != Kind::Open {
                    return self.build(ExprKind::Name(name.text), span);
                }
                let call = self.call(name)?;
                let span = call.span;
                return self.build(ExprKind::Call(call), span);
            }
            Kind::Len => {
                self.advance();
                self.expect(Kind::Open)?;
                let array = self.nested(span, Parser::expr)?;
                let end = self.expect(Kind::Close)?;
                return self.build(ExprKind::Len(Box::new(array)), span.to(end));
            }
            Kind::New => {
                self.advance();
                let length = self.nested(span, Parser::length)?;
                let span = span.to(self.last_span());
                return self.build(ExprKind::New(Box::new(length)), span);
            }
            Kind::Open => {
                self.advance();
                let mut inner = self.nested(span, Parser::expr)?;
                inner.span = span.to(self.expect(Kind::Close)?);
                return Ok(inner);
            }
            Kind::Text => {
                let diagnostic = Diagnostic::new(span, "a text is not a value", "texts can only be printed");
                return Err(self.error(diagnostic));
            }
            _ => return Err(self.unexpected(span, "an expression")),
        };
        self.advance();
        self.build(kind, span)
    }

    /// The arguments of a call of `name`.
    pub(super) fn call(&mut self, name: Name) -> Parsed<Call> {
        self.expect(Kind::Open)?;
        let mut args = Vec::new();
        while self.peek() != Kind::Close {
            args.push(self.nested(name.span, Parser::expr)?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        let end = self.expect(Kind::Close)?;
        let span = name.span.to(end);
        Ok(Call { name, args, span })
    }

    /// Reads what is inside something that began at `start`, unless that is too deep.
    fn nested(&mut self, start: Span, read: fn(&mut Self) -> Parsed<Expr>) -> Parsed<Expr> {
        if self.nesting > MAX_DEPTH {
            return Err(self.too_deep(start));
        }
        self.nesting += 1;
        let expr = read(self);
        self.nesting -= 1;
        expr
    }

    fn build(&mut self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let inner = match &kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Null | ExprKind::Name(_) => 0,
            ExprKind::Len(a) | ExprKind::New(a) | ExprKind::Get(a) | ExprKind::Unary(_, a) => a.depth,
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) | ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                a.depth.max(b.depth)
            }
            ExprKind::Call(call) => call.args.iter().map(|arg| arg.depth).max().unwrap_or(0),
        };
        if inner >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        Ok(Expr { kind, span, depth: inner + 1 })
    }

    fn too_deep(&mut self, span: Span) -> Failed {
        let message = format!("this expression is nested more than {MAX_DEPTH} deep");
        self.error(Diagnostic::new(span, message, "").help("name a part of it with `let`"))
    }
}
