//! Rules about Rust sources: heads, lengths, leftovers, reasons for `unsafe`.

use super::{File, Finding};

/// A file is one mechanism. Longer ones must say why they are.
const LONGEST: usize = 600;
const LONG_BECAUSE: &str = "// tidy: long because ";

/// What is left over from writing, or hides a test. In two pieces, so that this file may name them.
const LEFTOVERS: [&str; 6] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!("),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// The word that a reason for `unsafe` starts with, and how many lines of code may follow it.
const SAFETY: &str = "SAFETY:";
const SAFETY_REACH: usize = 5;

/// All findings in a Rust source, in no order.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        findings.push(file.finding(1, "the file does not open with `//!`"));
    }
    check_length(file, &mut findings);
    for (number, line) in file.lines() {
        for word in LEFTOVERS.iter().filter(|&&word| line.contains(word)) {
            findings.push(file.finding(number, format!("`{word}` must not stay")));
        }
    }
    check_unsafe(file, &mut findings);
    findings
}

fn check_length(file: &File, findings: &mut Vec<Finding>) {
    let length = file.lines().count();
    let reason = |line: &str| line.trim().strip_prefix(LONG_BECAUSE).is_some_and(|why| !why.is_empty());
    if length > LONGEST && !file.lines().any(|(_, line)| reason(line)) {
        findings.push(file.finding(
            LONGEST + 1,
            format!("{length} lines, more than {LONGEST}; split the file, or say `{LONG_BECAUSE}…`"),
        ));
    }
}

fn check_unsafe(file: &File, findings: &mut Vec<Finding>) {
    let code = code_only(&file.text);
    let raw: Vec<&str> = file.lines().map(|(_, line)| line).collect();
    let code_lines: Vec<&str> = code.split('\n').collect();
    for at in unsafe_blocks_and_impls(&code) {
        let line = code[..at].matches('\n').count();
        if !has_reason(&raw, &code_lines, line) {
            findings.push(file.finding(
                line + 1,
                format!("unsafe without a `{SAFETY}` comment in the {SAFETY_REACH} lines before it"),
            ));
        }
    }
}

/// Is there a reason on the line (counted from 0), or a few lines of code above? Comments and blank
/// lines do not count: a long reason is no farther away than a short one.
fn has_reason(raw: &[&str], code: &[&str], line: usize) -> bool {
    let mut code_lines = 0;
    for above in (0..=line).rev() {
        let comment = raw[above].split_once("//").map(|(_, comment)| comment);
        if comment.is_some_and(|comment| comment.contains(SAFETY)) {
            return true;
        }
        let is_code = above < line && !code[above].trim().is_empty();
        code_lines += usize::from(is_code);
        if code_lines == SAFETY_REACH {
            return false;
        }
    }
    false
}

/// Where the word `unsafe` opens a block or an impl. Functions and traits only promise; their
/// `# Safety` section is clippy's to ask for.
fn unsafe_blocks_and_impls(code: &str) -> Vec<usize> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let opens = |(at, found): &(usize, &str)| {
        let after = &code[at + found.len()..];
        let next = after.trim_start();
        let ends_word = !after.starts_with(word) && !code[..*at].ends_with(word);
        let is_impl = next.strip_prefix("impl").is_some_and(|rest| !rest.starts_with(word));
        ends_word && (next.starts_with('{') || is_impl)
    };
    code.match_indices("unsafe").filter(opens).map(|(at, _)| at).collect()
}

/// The text with comments, strings and characters blanked, byte for byte; newlines stay.
fn code_only(text: &str) -> String {
    let mut blanked = text.as_bytes().to_vec();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        match not_code(&text[at..]) {
            Some(length) => {
                let span = &mut blanked[at..at + length];
                span.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at += length;
            }
            None => at += first.len_utf8(),
        }
    }
    String::from_utf8(blanked).expect("whole characters were blanked")
}

/// The length of the comment or literal that the text starts with, if it does. One that never ends
/// goes to the end of the text.
fn not_code(text: &str) -> Option<usize> {
    let length = match text.as_bytes() {
        [b'/', b'/', ..] => text.find('\n'),
        [b'/', b'*', ..] => block_comment(text),
        [b'"', ..] => quoted(text, '"'),
        [b'r', ..] => {
            // An identifier that ends in `r` never touches a quote, so this is a raw string; `r#if`
            // has no quote after the hashes.
            let hashes = text[1..].bytes().take_while(|&byte| byte == b'#').count();
            let open = 1 + hashes;
            if !text[open..].starts_with('"') {
                return None;
            }
            let close = format!("\"{}", "#".repeat(hashes));
            text[open + 1..].find(&close).map(|end| open + 1 + end + close.len())
        }
        [b'\'', b'\\', ..] => quoted(text, '\''),
        [b'\'', ..] => {
            // One character and a quote; otherwise a lifetime.
            let character = text[1..].chars().next()?;
            let end = 1 + character.len_utf8();
            return text[end..].starts_with('\'').then_some(end + 1);
        }
        _ => return None,
    };
    Some(length.unwrap_or(text.len()))
}

/// The length of a literal with escapes, quotes included.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    while at + 1 < text.len() {
        match &text.as_bytes()[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings, as `line: message`.
    fn check_text(text: &str) -> Vec<String> {
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        check(&file).into_iter().map(|found| format!("{}: {}", found.line, found.message)).collect()
    }

    #[test]
    fn head() {
        assert!(check_text("//! Purpose.\nfn f() {}\n").is_empty());
        for text in ["", "\n//! Late.\n", "// Plain.\n", "use std::fmt;\n"] {
            assert_eq!(check_text(text), ["1: the file does not open with `//!`"]);
        }
    }

    #[test]
    fn length() {
        let lines = |count: usize| format!("//! Long.\n{}", "x();\n".repeat(count - 1));
        assert!(check_text(&lines(600)).is_empty());
        assert!(check_text(&lines(601))[0].starts_with("601: 601 lines, more than 600;"));
        assert!(check_text(&format!("{}{LONG_BECAUSE}it is a table\n", lines(700))).is_empty());
        assert_eq!(check_text(&format!("{}{LONG_BECAUSE}\n", lines(700))).len(), 1);
        // Only a comment counts, not the words somewhere in the code.
        assert_eq!(check_text(&format!("{}f(\"{LONG_BECAUSE}x\");\n", lines(700))).len(), 1);
    }

    #[test]
    fn leftovers() {
        for word in LEFTOVERS {
            assert_eq!(
                check_text(&format!("//! A.\n\n    {word}\n")),
                [format!("3: `{word}` must not stay")]
            );
        }
    }

    #[test]
    fn unsafe_needs_a_reason() {
        let missing = |text: &str| check_text(&format!("//! A.\n{text}\n")).len();
        assert_eq!(missing("let x = unsafe { *p };"), 1);
        assert_eq!(missing("unsafe\n{ f() }"), 1);
        assert_eq!(missing("unsafe impl Send for A {}"), 1);
        assert_eq!(missing("unsafe impl<T> Send for A<T> {}"), 1);
        assert_eq!(missing("let s = \"SAFETY: //\"; unsafe { f() }"), 1);
        assert_eq!(missing("// SAFETY: p is valid.\nlet x = unsafe { *p };"), 0);
        assert_eq!(missing("// SAFETY: p is valid.\n// The caller says so.\n\nunsafe impl Send for A {}"), 0);
        assert_eq!(missing("// SAFETY: both are.\na();\nb();\nc();\nd();\nunsafe { f() }"), 0);
        assert_eq!(missing("// SAFETY: too far.\na();\nb();\nc();\nd();\ne();\nunsafe { f() }"), 1);
        let long = "// more\n".repeat(9);
        assert_eq!(missing(&format!("// SAFETY: long.\n{long}unsafe {{ f() }}")), 0);
    }

    #[test]
    fn only_blocks_and_impls_need_a_reason() {
        for text in [
            "unsafe fn f() {}",
            "unsafe trait T {}",
            "#[unsafe(no_mangle)] fn f() {}",
            "fn is_unsafe() {}",
            "let unsafe_ = not_unsafe {};",
            "// unsafe { }",
            "/* /* unsafe { } */ unsafe { } */",
            "let s = \"unsafe { \\\" unsafe { \";",
            "let s = r#\"unsafe { \" unsafe { \"#;",
            "let c = ('\"', '\\'', 'é', \"unsafe {\");",
        ] {
            assert_eq!(check_text(&format!("//! A.\n{text}\n")), [""; 0], "{text}");
        }
    }

    #[test]
    fn code_is_what_remains() {
        let code = |text: &str| code_only(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code("a /* é */ b // c\nd"), "a b d");
        assert_eq!(code("fn f<'a>(x: &'a str) -> r#if { 'é' }"), "fn f<'a>(x: &'a str) -> r#if { }");
        assert_eq!(code("f(b\"x\", br##\"y\"#\"##, '\\u{1}') + g"), "f(b , b , ) + g");
        assert_eq!(code("a \"never ends"), "a");
        assert_eq!(code("a /* never /* ends */"), "a");
    }
}
