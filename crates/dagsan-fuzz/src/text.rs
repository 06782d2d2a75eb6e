//! The text form of programs.
//!
//! ```text
//! // A promise orders the two tasks.
//! finish {
//!   async { w 0x40+4; set p0 }
//!   async { get p0; r 0x42+2 }
//! }
//! ```
//!
//! Statements are separated by newlines, `;` or blanks; `//` starts a comment. Addresses and lengths
//! are decimal or `0x` hexadecimal. `p`, `f`, `r`, `l` and `s` with a number name promises, futures,
//! regions, locks and synchronisation objects. Sites are not written: they are numbered in text order.
//!
//! Programs that nest deeper than [`MAX_DEPTH`] cannot be parsed: a tree that deep could not be cloned
//! or dropped on a small stack.

use std::fmt;

use dagsan_core::{AccessKind, Bytes, LockMode};

use crate::program::{Program, Stmt};

/// How deep blocks may nest in a text.
pub const MAX_DEPTH: usize = 1000;

/// A block whose statements fit in this many columns is written on one line.
const SHORT: usize = 64;

// ---- writing ---------------------------------------------------------------------------------

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = vec![self.body.iter()];
        while let Some(body) = open.last_mut() {
            let Some(stmt) = body.next() else {
                open.pop();
                if !open.is_empty() {
                    writeln!(f, "{:1$}}}", "", 2 * (open.len() - 1))?;
                }
                continue;
            };
            write!(f, "{:1$}", "", 2 * (open.len() - 1))?;
            match (stmt.body(), one_line(stmt)) {
                (Some(inner), None) => {
                    writeln!(f, "{} {{", Head(stmt))?;
                    open.push(inner.iter());
                }
                (_, Some(line)) => writeln!(f, "{line}")?,
                (None, None) => writeln!(f, "{}", Head(stmt))?,
            }
        }
        Ok(())
    }
}

/// A block on one line, if it is short and holds no other block.
fn one_line(stmt: &Stmt) -> Option<String> {
    let body = stmt.body()?;
    let mut line = format!("{} {{", Head(stmt));
    for (at, inner) in body.iter().enumerate() {
        if inner.body().is_some() || line.len() > SHORT {
            return None;
        }
        line += if at == 0 { " " } else { "; " };
        line += &Head(inner).to_string();
    }
    line += " }";
    (line.len() <= SHORT).then_some(line)
}

/// A statement without its body.
struct Head<'p>(&'p Stmt);

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Stmt::Read { bytes, .. } => write!(f, "r {bytes:?}"),
            Stmt::Write { bytes, .. } => write!(f, "w {bytes:?}"),
            Stmt::Free { bytes, .. } => write!(f, "free {bytes:?}"),
            Stmt::Async(_) => f.write_str("async"),
            Stmt::Finish(_) => f.write_str("finish"),
            Stmt::Spawn(_) => f.write_str("spawn"),
            Stmt::Sync => f.write_str("sync"),
            Stmt::Call(_) => f.write_str("call"),
            Stmt::Future(name, _) => write!(f, "future f{name}"),
            Stmt::GetFuture(name) => write!(f, "get f{name}"),
            Stmt::Set(name) => write!(f, "set p{name}"),
            Stmt::Get(name) => write!(f, "get p{name}"),
            Stmt::Isolated(_) => f.write_str("isolated"),
            Stmt::Post(name, _) => write!(f, "post r{name}"),
            Stmt::Await(name) => write!(f, "await r{name}"),
            Stmt::Ewait(name) => write!(f, "ewait r{name}"),
            Stmt::Atomic { kind: AccessKind::Read, bytes, .. } => write!(f, "ar {bytes:?}"),
            Stmt::Atomic { kind: AccessKind::Write, bytes, .. } => write!(f, "aw {bytes:?}"),
            Stmt::Lock(name, LockMode::Exclusive) => write!(f, "lock l{name}"),
            Stmt::Lock(name, LockMode::Shared) => write!(f, "share l{name}"),
            Stmt::Unlock(name) => write!(f, "unlock l{name}"),
            Stmt::Release(name, false) => write!(f, "store s{name}"),
            Stmt::Release(name, true) => write!(f, "update s{name}"),
            Stmt::Acquire(name) => write!(f, "load s{name}"),
            Stmt::Detached(_) => f.write_str("detached"),
            Stmt::Child(name, _) => write!(f, "child f{name}"),
        }
    }
}

// ---- reading ---------------------------------------------------------------------------------

/// Where a text is not a program, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What could have stood there.
    pub expected: &'static str,
    /// What stands there.
    pub found: String,
}

impl Program {
    /// The program that `text` describes, with numbered sites.
    pub fn parse(text: &str) -> Result<Program, ParseError> {
        let mut parser = Parser { text, at: 0 };
        // The blocks around the present place, each with the statements it has so far. The first is
        // the main task's body, which has no head.
        let mut bodies = vec![Vec::new()];
        let mut heads = Vec::new();
        loop {
            let token = parser.next();
            let done = match (token.text, heads.last()) {
                (";", _) => continue,
                ("", None) => break,
                ("", Some(_)) => return Err(parser.error(token, "a statement or `}`")),
                ("}", Some(_)) => close_block(&mut bodies, &mut heads),
                (keyword, _) => {
                    let Some(stmt) = parser.head(keyword)? else {
                        let expected = if heads.is_empty() { "a statement" } else { "a statement or `}`" };
                        return Err(parser.error(token, expected));
                    };
                    if stmt.body().is_none() {
                        Some(stmt)
                    } else if heads.len() >= MAX_DEPTH {
                        return Err(parser.error(token, "at most 1000 nested blocks"));
                    } else {
                        parser.expect("{", "`{`")?;
                        heads.push(stmt);
                        bodies.push(Vec::new());
                        None
                    }
                }
            };
            if let (Some(body), Some(stmt)) = (bodies.last_mut(), done) {
                body.push(stmt);
            }
        }
        let mut program = Program { body: bodies.pop().unwrap_or_default() };
        program.number_sites();
        Ok(program)
    }
}

/// Puts the innermost body into its head.
fn close_block(bodies: &mut Vec<Vec<Stmt>>, heads: &mut Vec<Stmt>) -> Option<Stmt> {
    let (mut stmt, body) = (heads.pop()?, bodies.pop()?);
    if let Some(place) = stmt.body_mut() {
        *place = body;
    }
    Some(stmt)
}

/// A word, a punctuation mark, or nothing at the end of the text.
#[derive(Clone, Copy)]
struct Token<'t> {
    text: &'t str,
    start: usize,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Token<'t> {
        let text = self.text;
        let mut rest = &text[self.at..];
        loop {
            rest = rest.trim_start();
            match rest.strip_prefix("//") {
                Some(comment) => rest = comment.find('\n').map_or("", |end| &comment[end..]),
                None => break,
            }
        }
        let start = text.len() - rest.len();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let len = match rest.chars().next() {
            None => 0,
            Some(first) if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            Some(other) => other.len_utf8(),
        };
        self.at = start + len;
        Token { text: &rest[..len], start }
    }

    /// The statement that starts with `keyword`, without its body; `None` if none does.
    fn head(&mut self, keyword: &str) -> Result<Option<Stmt>, ParseError> {
        Ok(Some(match keyword {
            "r" => Stmt::read(self.bytes()?),
            "w" => Stmt::write(self.bytes()?),
            "free" => Stmt::free(self.bytes()?),
            "async" => Stmt::Async(Vec::new()),
            "finish" => Stmt::Finish(Vec::new()),
            "spawn" => Stmt::Spawn(Vec::new()),
            "sync" => Stmt::Sync,
            "call" => Stmt::Call(Vec::new()),
            "future" => Stmt::Future(self.name("f", "a future: `f` and a number")?, Vec::new()),
            "get" => self.get()?,
            "set" => Stmt::Set(self.name("p", "a promise: `p` and a number")?),
            "isolated" => Stmt::Isolated(Vec::new()),
            "post" => Stmt::Post(self.name("r", "a region: `r` and a number")?, Vec::new()),
            "await" => Stmt::Await(self.name("r", "a region: `r` and a number")?),
            "ewait" => Stmt::Ewait(self.name("r", "a region: `r` and a number")?),
            "ar" => Stmt::atomic(AccessKind::Read, self.bytes()?),
            "aw" => Stmt::atomic(AccessKind::Write, self.bytes()?),
            "lock" => Stmt::Lock(self.lock()?, LockMode::Exclusive),
            "share" => Stmt::Lock(self.lock()?, LockMode::Shared),
            "unlock" => Stmt::Unlock(self.lock()?),
            "store" => Stmt::Release(self.sync_object()?, false),
            "update" => Stmt::Release(self.sync_object()?, true),
            "load" => Stmt::Acquire(self.sync_object()?),
            "detached" => Stmt::Detached(Vec::new()),
            "child" => Stmt::Child(self.name("f", "a future: `f` and a number")?, Vec::new()),
            _ => return Ok(None),
        }))
    }

    fn get(&mut self) -> Result<Stmt, ParseError> {
        let token = self.next();
        match (name(token.text, "p"), name(token.text, "f")) {
            (Some(promise), _) => Ok(Stmt::Get(promise)),
            (_, Some(future)) => Ok(Stmt::GetFuture(future)),
            _ => Err(self.error(token, "a promise or future: `p` or `f` and a number")),
        }
    }

    fn lock(&mut self) -> Result<u32, ParseError> {
        self.name("l", "a lock: `l` and a number")
    }

    fn sync_object(&mut self) -> Result<u32, ParseError> {
        self.name("s", "a synchronisation object: `s` and a number")
    }

    fn name(&mut self, prefix: &str, expected: &'static str) -> Result<u32, ParseError> {
        let token = self.next();
        name(token.text, prefix).ok_or_else(|| self.error(token, expected))
    }

    fn bytes(&mut self) -> Result<Bytes, ParseError> {
        let (start, first) = self.number("an address")?;
        self.expect("+", "`+` and a length")?;
        let (len, token) = self.number("a length")?;
        if len == 0 {
            return Err(self.error(token, "a length of at least 1"));
        }
        Bytes::new(start, len).map_err(|_| self.error(first, "a range inside the address space"))
    }

    fn number(&mut self, expected: &'static str) -> Result<(u64, Token<'t>), ParseError> {
        let token = self.next();
        let number = match token.text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => token.text.parse(),
        };
        // `from_str_radix` takes a sign, but no token that starts with one is a word.
        number.map(|number| (number, token)).map_err(|_| self.error(token, expected))
    }

    fn expect(&mut self, text: &str, expected: &'static str) -> Result<(), ParseError> {
        let token = self.next();
        if token.text == text { Ok(()) } else { Err(self.error(token, expected)) }
    }

    fn error(&self, token: Token<'_>, expected: &'static str) -> ParseError {
        let before = &self.text[..token.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let found = match token.text {
            "" => "the end of the text".to_owned(),
            text if text.chars().count() > 24 => {
                format!("`{}…`", text.chars().take(24).collect::<String>())
            }
            text => format!("`{text}`"),
        };
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            expected,
            found,
        }
    }
}

/// The number of a name such as `p12`.
fn name(text: &str, prefix: &str) -> Option<u32> {
    let digits = text.strip_prefix(prefix)?;
    // `parse` would also take a leading `+`, which is no part of a word.
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Size, generate};

    #[test]
    fn random_programs_are_parsed_back() {
        let mut rng = fastrand::Rng::with_seed(1);
        for class in Class::ALL {
            for _ in 0..500 {
                let size = Size::pick(&mut rng);
                let program = generate(class, &mut rng, size);
                let text = program.to_string();
                assert_eq!(Program::parse(&text).as_ref(), Ok(&program), "{text}");
            }
        }
    }

    #[test]
    fn every_statement_has_a_text() {
        let text = "\
finish {
  async { w 0x40+4; set p0 }
  async { get p0; r 0x42+2 }
}
spawn { }
sync
call {
  future f7 { }
}
get f7
isolated { r 0x0+1 }
post r2 { }
await r2
ewait r2
free 0x40+64
lock l0
share l1
ar 0x8+8
aw 0x8+8
unlock l0
store s3
update s3
load s3
";
        assert_eq!(Program::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn separators_and_numbers_are_free_form() {
        let loose = "spawn{w 64 + 0x4;;}sync // a comment } \n call { } // the end";
        assert_eq!(Program::parse(loose).unwrap().to_string(), "spawn { w 0x40+4 }\nsync\ncall { }\n");
        assert_eq!(Program::parse("").unwrap(), Program::default());
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = |text: &str| Program::parse(text).unwrap_err().to_string();
        assert_eq!(error("sync\n  bogus"), "line 2, column 3: expected a statement, found `bogus`");
        assert_eq!(
            error("async { r 0x1+1"),
            "line 1, column 16: expected a statement or `}`, found the end of the text"
        );
        assert_eq!(error("}"), "line 1, column 1: expected a statement, found `}`");
        assert_eq!(error("async sync"), "line 1, column 7: expected `{`, found `sync`");
        assert_eq!(error("r 0x40"), "line 1, column 7: expected `+` and a length, found the end of the text");
        assert_eq!(error("w 5+0"), "line 1, column 5: expected a length of at least 1, found `0`");
        assert_eq!(
            error("/* */"),
            "line 1, column 1: expected a statement, found `/`",
            "only line comments exist"
        );
        assert_eq!(
            error("r 0xffffffffffffffff+1"),
            "line 1, column 3: expected a range inside the address space, found `0xffffffffffffffff`"
        );
        assert_eq!(error("é é"), "line 1, column 1: expected a statement, found `é`");
        assert_eq!(
            error("get q1"),
            "line 1, column 5: expected a promise or future: `p` or `f` and a number, found `q1`"
        );
        assert_eq!(error("unlock s0"), "line 1, column 8: expected a lock: `l` and a number, found `s0`");
        assert_eq!(
            error("load x"),
            "line 1, column 6: expected a synchronisation object: `s` and a number, found `x`"
        );
        assert_eq!(
            error("set p4294967296"),
            "line 1, column 5: expected a promise: `p` and a number, found `p4294967296`"
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| "call {".repeat(depth) + &"}".repeat(depth);
        assert!(Program::parse(&nested(MAX_DEPTH)).is_ok());
        let error = Program::parse(&nested(100_000)).unwrap_err();
        assert_eq!((error.line, error.column), (1, 6 * MAX_DEPTH + 1));
    }

    #[test]
    fn no_text_panics() {
        let alphabet: Vec<char> = "rwpf012x+;{}/ \nasyncgtéü+-_".chars().collect();
        let words = [
            "async",
            "get",
            "lock",
            "l1",
            "load",
            "s0",
            "r",
            "0x40",
            "+",
            "{",
            "}",
            "f1",
            "//",
            ";",
            "\n",
            "p",
            "18446744073709551615",
        ];
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..rng.usize(0..20) {
                match rng.bool() {
                    true => text.extend(rng.choice(&alphabet)),
                    false => text.extend(rng.choice(&words).copied()),
                }
                text += if rng.bool() { " " } else { "" };
            }
            if let Ok(program) = Program::parse(&text) {
                assert_eq!(Program::parse(&program.to_string()), Ok(program));
            }
        }
    }
}
