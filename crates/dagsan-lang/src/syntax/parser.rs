//! Tokens to tree, by recursive descent, with recovery: after an error it goes on at the next statement
//! or item, so that one run reports all errors. The grammar is in docs/language.md.
//!
//! How deep statements and expressions may be nested is bounded, here once for all later passes, which
//! may then recurse without fear for the stack.

mod expr;

use super::ast::*;
use super::lexer::{Kind, Token, lex};
use crate::span::{Diagnostic, Span};

/// How deep blocks may be nested in each other.
const MAX_NESTING: u32 = 100;
/// How many errors are reported before giving up.
const MAX_ERRORS: usize = 50;

/// Reads a program; what is wrong with it goes to `diagnostics`.
pub fn parse(source: &str, diagnostics: &mut Vec<Diagnostic>) -> Program {
    let tokens = lex(source, diagnostics);
    let mut parser = Parser { source, tokens, at: 0, nesting: 0, diagnostics };
    parser.program()
}

/// An error was reported; the caller recovers or passes it on.
struct Failed;
type Parsed<T> = Result<T, Failed>;

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    nesting: u32,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Parser<'_> {
    // ---- tokens ----------------------------------------------------------------------------------

    fn peek(&self) -> Kind {
        self.tokens[self.at].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// The span of the token before this one.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.at];
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: Kind) -> Parsed<Span> {
        if self.peek() == kind {
            return Ok(self.advance().span);
        }
        // A missing mark is best shown where it should have been: after what came before.
        let after_last = matches!(kind, Kind::Semicolon | Kind::Close | Kind::CloseSquare | Kind::CloseBrace);
        let span = if after_last && self.at > 0 { self.last_span().after() } else { self.span() };
        Err(self.unexpected(span, kind.describe()))
    }

    fn unexpected(&mut self, span: Span, wanted: &str) -> Failed {
        let found = self.peek().describe();
        self.error(Diagnostic::new(
            span,
            format!("expected {wanted}, found {found}"),
            format!("expected {wanted}"),
        ))
    }

    fn error(&mut self, diagnostic: Diagnostic) -> Failed {
        if self.diagnostics.len() < MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
        Failed
    }

    fn name(&mut self) -> Parsed<Name> {
        if self.peek() == Kind::Name {
            let span = self.advance().span;
            return Ok(Name { text: self.source[span.start as usize..span.end as usize].to_owned(), span });
        }
        let span = self.span();
        let word = &self.source[span.start as usize..span.end as usize];
        if word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let message = format!("expected a name, found the keyword `{word}`");
            return Err(self.error(Diagnostic::new(span, message, "a keyword cannot be a name")));
        }
        Err(self.unexpected(span, "a name"))
    }

    // ---- items -----------------------------------------------------------------------------------

    fn program(&mut self) -> Program {
        let mut program = Program::default();
        while self.peek() != Kind::End {
            let before = self.at;
            if self.item(&mut program.items).is_err() {
                self.skip_to_item(before);
            }
        }
        program
    }

    fn skip_to_item(&mut self, before: usize) {
        if self.at == before {
            self.advance();
        }
        // A `let`, `promise` or `region` may as well be a statement of the procedure that went wrong.
        while !matches!(self.peek(), Kind::End | Kind::Proc | Kind::Shared) {
            self.advance();
        }
    }

    fn item(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        match self.peek() {
            Kind::Shared => {
                self.advance();
                loop {
                    let name = self.name()?;
                    items.push(match self.peek() {
                        Kind::OpenSquare => Item::SharedArray(name, self.length()?),
                        Kind::Assign => {
                            self.advance();
                            Item::Shared(name, Some(self.expr()?))
                        }
                        _ => Item::Shared(name, None),
                    });
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                }
            }
            Kind::Promise => {
                let (name, length) = self.promise()?;
                items.push(Item::Promise(name, length));
            }
            Kind::Region => {
                self.advance();
                items.push(Item::Region(self.name()?));
            }
            Kind::Let => {
                self.advance();
                let name = self.name()?;
                self.expect(Kind::Assign)?;
                items.push(Item::Let(name, self.expr()?));
            }
            Kind::Proc => {
                self.advance();
                items.push(Item::Proc(self.procedure()?));
                return Ok(());
            }
            _ => {
                let wanted = "`proc`, `shared`, `promise`, `region` or `let`";
                let found = self.peek().describe();
                let diagnostic = Diagnostic::new(
                    self.span(),
                    format!("expected {wanted}, found {found}"),
                    "not the start of a top-level item",
                )
                .help("statements belong into a procedure: `proc main() { … }`");
                return Err(self.error(diagnostic));
            }
        }
        self.expect(Kind::Semicolon)?;
        Ok(())
    }

    fn promise(&mut self) -> Parsed<(Name, Option<Expr>)> {
        self.expect(Kind::Promise)?;
        let name = self.name()?;
        let length = if self.peek() == Kind::OpenSquare { Some(self.length()?) } else { None };
        Ok((name, length))
    }

    /// `[e]`
    fn length(&mut self) -> Parsed<Expr> {
        self.expect(Kind::OpenSquare)?;
        let length = self.expr()?;
        self.expect(Kind::CloseSquare)?;
        Ok(length)
    }

    fn procedure(&mut self) -> Parsed<Proc> {
        let name = self.name()?;
        self.expect(Kind::Open)?;
        let mut params = Vec::new();
        while self.peek() != Kind::Close {
            params.push(self.name()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Close)?;
        let body = self.block()?;
        Ok(Proc { name, params, body })
    }

    // ---- statements ------------------------------------------------------------------------------

    fn block(&mut self) -> Parsed<Block> {
        let open = self.expect(Kind::OpenBrace)?;
        if self.nesting >= MAX_NESTING {
            let message = format!("blocks are nested more than {MAX_NESTING} deep");
            return Err(self.error(Diagnostic::new(open, message, "")));
        }
        self.nesting += 1;
        let mut stmts = Vec::new();
        // A procedure cannot begin inside a block: a brace is missing, and will be asked for.
        while !matches!(self.peek(), Kind::CloseBrace | Kind::End | Kind::Proc) {
            let before = self.at;
            match self.stmt() {
                Ok(stmt) => stmts.push(stmt),
                Err(Failed) => self.skip_to_stmt(before),
            }
        }
        self.nesting -= 1;
        let close = self.expect(Kind::CloseBrace)?;
        Ok(Block { stmts, span: open.to(close) })
    }

    /// After an error in a statement that began at `before`: to the statement's end, over whole blocks.
    fn skip_to_stmt(&mut self, before: usize) {
        let mut open = 0u32;
        for token in &self.tokens[before..self.at] {
            match token.kind {
                Kind::OpenBrace => open += 1,
                Kind::CloseBrace => open = open.saturating_sub(1),
                _ => {}
            }
        }
        loop {
            match self.peek() {
                Kind::End | Kind::Proc => return,
                Kind::Semicolon if open == 0 => {
                    self.advance();
                    return;
                }
                Kind::OpenBrace => open += 1,
                Kind::CloseBrace if open == 0 => return,
                Kind::CloseBrace if open == 1 => {
                    self.advance();
                    return;
                }
                Kind::CloseBrace => open -= 1,
                kind if open == 0 && self.at > before && starts_stmt(kind) => return,
                _ => {}
            }
            self.advance();
        }
    }

    fn stmt(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        let (kind, needs_semicolon) = self.stmt_kind()?;
        let mut span = start.to(self.last_span());
        if needs_semicolon {
            self.expect(Kind::Semicolon)?;
        } else if let StmtKind::Block(block) = &kind {
            span = block.span;
        }
        Ok(Stmt { kind, span })
    }

    fn stmt_kind(&mut self) -> Parsed<(StmtKind, bool)> {
        let kind = self.peek();
        // A block and a promise are read by functions that want to see their first token.
        if starts_stmt(kind) && !matches!(kind, Kind::OpenBrace | Kind::Promise) {
            self.advance();
        }
        let done = |kind| Ok((kind, false));
        let plain = |kind| Ok((kind, true));
        match kind {
            Kind::OpenBrace => done(StmtKind::Block(self.block()?)),
            Kind::Let | Kind::Var => {
                let name = self.name()?;
                self.expect(Kind::Assign)?;
                let value = self.expr()?;
                plain(if kind == Kind::Let { StmtKind::Let(name, value) } else { StmtKind::Var(name, value) })
            }
            Kind::If => done(self.if_stmt()?),
            Kind::While => {
                let condition = self.expr()?;
                done(StmtKind::While(condition, self.block()?))
            }
            Kind::For => done(self.loop_stmt(LoopKind::For)?),
            Kind::Forall => done(self.loop_stmt(LoopKind::Forall)?),
            Kind::Forasync => done(self.loop_stmt(LoopKind::Forasync)?),
            Kind::Async | Kind::Spawn => {
                let work = self.work()?;
                let semicolon = matches!(work, Work::Call(_));
                let make = if kind == Kind::Async { StmtKind::Async } else { StmtKind::Spawn };
                Ok((make(work), semicolon))
            }
            Kind::Future => {
                let name = self.name()?;
                self.expect(Kind::Assign)?;
                plain(StmtKind::Future(name, self.work()?))
            }
            Kind::Finish => done(StmtKind::Finish(self.block()?)),
            Kind::Isolated => done(StmtKind::Isolated(self.block()?)),
            Kind::Sync => plain(StmtKind::Sync),
            Kind::Promise => {
                let (name, length) = self.promise()?;
                plain(StmtKind::Promise(name, length))
            }
            Kind::Set => {
                let promise = self.postfix()?;
                let value = if self.eat(Kind::Assign) { Some(self.expr()?) } else { None };
                plain(StmtKind::Set(promise, value))
            }
            Kind::Region => plain(StmtKind::Region(self.name()?)),
            Kind::Post => self.post(),
            Kind::Await => plain(StmtKind::Await(self.name()?)),
            Kind::Ewait => plain(StmtKind::Ewait(self.name()?)),
            Kind::Print => plain(self.print()?),
            Kind::Assert => plain(StmtKind::Assert(self.expr()?)),
            Kind::Skip => plain(StmtKind::Skip),
            Kind::Return => {
                let value = if self.peek() == Kind::Semicolon { None } else { Some(self.expr()?) };
                plain(StmtKind::Return(value))
            }
            _ => plain(self.assign_or_expr()?),
        }
    }

    fn if_stmt(&mut self) -> Parsed<StmtKind> {
        let condition = self.expr()?;
        let then = self.block()?;
        if !self.eat(Kind::Else) {
            return Ok(StmtKind::If(condition, then, None));
        }
        if self.peek() != Kind::If {
            return Ok(StmtKind::If(condition, then, Some(self.block()?)));
        }
        let start = self.advance().span;
        if self.nesting >= MAX_NESTING {
            let message = format!("`else if` is nested more than {MAX_NESTING} deep");
            return Err(self.error(Diagnostic::new(start, message, "")));
        }
        self.nesting += 1;
        let kind = self.if_stmt();
        self.nesting -= 1;
        let span = start.to(self.last_span());
        let stmts = vec![Stmt { kind: kind?, span }];
        Ok(StmtKind::If(condition, then, Some(Block { stmts, span })))
    }

    fn loop_stmt(&mut self, kind: LoopKind) -> Parsed<StmtKind> {
        let name = self.name()?;
        self.expect(Kind::In)?;
        let low = self.expr()?;
        self.expect(Kind::Dots)?;
        let high = self.expr()?;
        Ok(StmtKind::Loop(kind, name, low, high, self.block()?))
    }

    fn work(&mut self) -> Parsed<Work> {
        match self.peek() {
            Kind::OpenBrace => Ok(Work::Block(self.block()?)),
            Kind::Name => Ok(Work::Call(self.call_only()?)),
            _ => Err(self.unexpected(self.span(), "a block or a call")),
        }
    }

    fn post(&mut self) -> Parsed<(StmtKind, bool)> {
        let region = self.name()?;
        self.expect(Kind::Arrow)?;
        let call = self.call_only()?;
        if !self.eat(Kind::Then) {
            return Ok((StmtKind::Post(region, call, None), true));
        }
        let value = self.name()?;
        let handler = self.block()?;
        Ok((StmtKind::Post(region, call, Some((value, handler))), false))
    }

    fn call_only(&mut self) -> Parsed<Call> {
        let name = self.name()?;
        self.call(name)
    }

    fn print(&mut self) -> Parsed<StmtKind> {
        let mut printed = Vec::new();
        loop {
            if self.peek() == Kind::Text {
                let span = self.advance().span;
                let text = &self.source[span.start as usize..span.end as usize];
                printed.push(Printed::Text(text.trim_matches('"').to_owned()));
            } else {
                printed.push(Printed::Value(self.expr()?));
            }
            if !self.eat(Kind::Comma) {
                return Ok(StmtKind::Print(printed));
            }
        }
    }

    fn assign_or_expr(&mut self) -> Parsed<StmtKind> {
        let start = self.span();
        let place = self.expr()?;
        if self.peek() == Kind::Assign {
            if !matches!(place.kind, ExprKind::Name(_) | ExprKind::Index(..)) {
                let span = place.span;
                let label = "expected a variable or an array element";
                return Err(self.error(Diagnostic::new(span, "this cannot be assigned to", label)));
            }
            self.advance();
            return Ok(StmtKind::Assign(place, self.expr()?));
        }
        match place.kind {
            ExprKind::Call(_) | ExprKind::Get(_) => Ok(StmtKind::Expr(place)),
            _ => {
                let span = start.to(self.last_span());
                let diagnostic = Diagnostic::new(span, "this is not a statement", "its value is not used")
                    .help("to assign, write `x = …;`; to call a procedure, `f(…);`");
                Err(self.error(diagnostic))
            }
        }
    }
}

/// Can only a statement (not an expression in the middle of one) begin with this?
fn starts_stmt(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        OpenBrace
            | Let
            | Var
            | If
            | While
            | For
            | Forall
            | Forasync
            | Async
            | Spawn
            | Future
            | Finish
            | Isolated
            | Sync
            | Promise
            | Set
            | Region
            | Post
            | Await
            | Ewait
            | Print
            | Assert
            | Skip
            | Return
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(source: &str) -> Vec<String> {
        let mut diagnostics = Vec::new();
        parse(source, &mut diagnostics);
        diagnostics
            .into_iter()
            .map(|d| format!("{} at {:?}", d.message, &source[d.span.start as usize..d.span.end as usize]))
            .collect()
    }

    #[test]
    fn every_error_is_reported_and_parsing_goes_on() {
        let found = errors(
            "shared x = ; proc main() { let = 4; x = 1 async { y 2; } if { } 5; } proc g() { skip; } }",
        );
        let expected = [
            "expected an expression, found `;` at \";\"",
            "expected a name, found `=` at \"=\"",
            "expected `;`, found `async` at \"\"",
            "this is not a statement at \"y\"",
            "expected an expression, found `{` at \"{\"",
            "this is not a statement at \"5\"",
            "expected `proc`, `shared`, `promise`, `region` or `let`, found `}` at \"}\"",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_nested_too_deep_is_an_error_and_no_overflow() {
        let deep = |open: &str, close: &str| {
            format!("proc main() {{ {}{} }}", open.repeat(100_000), close.repeat(100_000))
        };
        let sources = [
            deep("{", "}"),
            deep("if true {", "}"),
            deep("if true { } else ", ""),
            format!("proc main() {{ let x = {}1{}; }}", "(".repeat(100_000), ")".repeat(100_000)),
            format!("proc main() {{ let x = {}1; }}", "-".repeat(100_000)),
            format!("proc main() {{ let x = {}1; }}", "1 + ".repeat(100_000)),
            format!("proc main() {{ let x = a{}; }}", "[0]".repeat(100_000)),
        ];
        for source in sources {
            let found = errors(&source);
            assert!(found[0].contains("deep"), "{found:?}");
        }
    }
}
