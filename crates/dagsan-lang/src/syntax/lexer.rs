//! Text to tokens. Never fails: what is not a token becomes a diagnostic and is left out.

use crate::span::{Diagnostic, Span};

/// A token and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub span: Span,
}

macro_rules! tokens {
    ($($word:literal $variant:ident)* ; $($mark:literal $mark_variant:ident)*) => {
        /// What a token is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(#[doc = concat!("`", $word, "`")] $variant,)*
            $(#[doc = concat!("`", $mark, "`")] $mark_variant,)*
            /// A name.
            Name,
            /// An integer; its value is in the text.
            Int(i64),
            /// A text in quotes.
            Text,
            /// The end of the file.
            End,
        }

        impl Kind {
            fn keyword(word: &str) -> Option<Kind> {
                match word {
                    $($word => Some(Kind::$variant),)*
                    _ => None,
                }
            }

            /// The longest mark at the start of `text`, and its length.
            fn mark(text: &str) -> Option<(Kind, usize)> {
                // In the table longer marks stand before their beginnings.
                $(if text.starts_with($mark) {
                    return Some((Kind::$mark_variant, $mark.len()));
                })*
                None
            }

            /// The token in a message.
            pub fn describe(self) -> &'static str {
                match self {
                    $(Kind::$variant => concat!("`", $word, "`"),)*
                    $(Kind::$mark_variant => concat!("`", $mark, "`"),)*
                    Kind::Name => "a name",
                    Kind::Int(_) => "a number",
                    Kind::Text => "a text",
                    Kind::End => "the end of the file",
                }
            }
        }
    };
}

tokens! {
    "shared" Shared "promise" Promise "region" Region "let" Let "var" Var "proc" Proc
    "if" If "else" Else "while" While "for" For "in" In "forall" Forall "forasync" Forasync
    "async" Async "spawn" Spawn "future" Future "finish" Finish "isolated" Isolated "sync" Sync
    "set" Set "get" Get "post" Post "then" Then "await" Await "ewait" Ewait
    "print" Print "assert" Assert "skip" Skip "return" Return
    "true" True "false" False "null" Null "new" New "len" Len
    ;
    "<-" Arrow "<=" LessEqual ">=" GreaterEqual "==" Equal "!=" NotEqual "&&" And "||" Or ".." Dots
    "<" Less ">" Greater "=" Assign "!" Not "+" Plus "-" Minus "*" Star "/" Slash "%" Percent
    "(" Open ")" Close "[" OpenSquare "]" CloseSquare "{" OpenBrace "}" CloseBrace "," Comma ";" Semicolon
}

/// Cuts `source` into tokens; the last one is [`Kind::End`].
pub fn lex(source: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token> {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), diagnostics };
    while lexer.at < source.len() {
        lexer.next();
    }
    let span = lexer.span(source.len());
    lexer.tokens.push(Token { kind: Kind::End, span });
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn next(&mut self) {
        let rest = &self.source[self.at..];
        let Some(first) = rest.chars().next() else { return };
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if first.is_ascii_alphabetic() || first == '_' {
            let word = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_');
            self.push(Kind::keyword(word).unwrap_or(Kind::Name), word.len());
        } else if first.is_ascii_digit() {
            self.number(leading(rest, |c| c.is_ascii_alphanumeric() || c == '_'));
        } else if first == '"' {
            self.text(rest);
        } else if let Some((kind, len)) = Kind::mark(rest) {
            self.push(kind, len);
        } else {
            let strange = leading(rest, |c| {
                !c.is_whitespace()
                    && !c.is_ascii_alphanumeric()
                    && Kind::mark(c.encode_utf8(&mut [0; 4])).is_none()
            });
            let span = self.span(self.at + strange.len());
            let shown: String = strange.chars().take(20).collect();
            self.error(span, format!("`{shown}` means nothing here"), "");
            self.at += strange.len();
        }
    }

    fn number(&mut self, word: &str) {
        let digits: String = word.chars().filter(|&c| c != '_').collect();
        let value = match digits.parse() {
            Ok(value) => value,
            Err(_) => {
                let span = self.span(self.at + word.len());
                if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    self.error(span, "this number is too large", "the largest is 9223372036854775807");
                } else {
                    self.error(
                        span,
                        "this is not a number",
                        "numbers are decimal; a name starts with a letter",
                    );
                }
                0
            }
        };
        self.push(Kind::Int(value), word.len());
    }

    fn text(&mut self, rest: &str) {
        let inside = leading(&rest[1..], |c| c != '"' && c != '\n');
        let closed = rest[1 + inside.len()..].starts_with('"');
        if !closed {
            let span = self.span(self.at + 1 + inside.len());
            self.error(span, "this text has no end", "expected `\"` on the same line");
        }
        self.push(Kind::Text, 1 + inside.len() + usize::from(closed));
    }

    fn push(&mut self, kind: Kind, len: usize) {
        let span = self.span(self.at + len);
        self.tokens.push(Token { kind, span });
        self.at += len;
    }

    fn span(&self, end: usize) -> Span {
        Span { start: self.at as u32, end: end as u32 }
    }

    fn error(&mut self, span: Span, message: impl Into<String>, label: &str) {
        self.diagnostics.push(Diagnostic::new(span, message, label));
    }
}

/// The longest beginning of `text` whose characters are all wanted.
fn leading(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !wanted(c)).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> (Vec<Kind>, Vec<String>) {
        let mut diagnostics = Vec::new();
        let kinds = lex(source, &mut diagnostics).iter().map(|token| token.kind).collect();
        (kinds, diagnostics.into_iter().map(|d| d.message).collect())
    }

    #[test]
    fn marks_are_taken_as_long_as_possible() {
        use Kind::*;
        let (found, errors) = kinds("a<-b <=-1..2 // rest\n!x!=y");
        let expected =
            [Name, Arrow, Name, LessEqual, Minus, Int(1), Dots, Int(2), Not, Name, NotEqual, Name, End];
        assert_eq!(found, expected);
        assert_eq!(errors, [""; 0]);
    }

    #[test]
    fn what_is_no_token_is_reported_and_left_out() {
        let (found, errors) = kinds("x § \"open\n9x 99999999999999999999 é");
        assert_eq!(found.len(), 5);
        let expected = [
            "`§` means nothing here",
            "this text has no end",
            "this is not a number",
            "this number is too large",
            "`é` means nothing here",
        ];
        assert_eq!(errors, expected);
    }
}
