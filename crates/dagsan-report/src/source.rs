//! Source texts, and places in them.
//!
//! A place is a range of bytes that exists in its text, whatever was asked for: reports must not fail over a file that
//! has changed, or that is not there.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// No source has more bytes.
pub(crate) const LARGEST: u64 = 64 << 20;

/// The file, if it is one: a name from a file that somebody else has written may be that of a device, which never ends, or of a pipe that
/// nobody writes to.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let known = fs::metadata(path)?;
    if !known.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if known.len() > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    let mut bytes = Vec::new();
    // Those of /proc say that they are empty, and some are not, or never end.
    File::open(path)?.take(known.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A source file.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: String,
    /// Is there no text to show?
    absent: bool,
    /// Where each line starts.
    lines: Vec<usize>,
}

impl Source {
    /// The file called `name`, as the user wrote it.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Source { name: name.into(), text, absent: false, lines }
    }

    /// A file that cannot be shown.
    pub fn absent(name: impl Into<String>) -> Source {
        Source { absent: true, ..Source::new(name, "") }
    }

    /// Is there no text to show?
    pub fn is_absent(&self) -> bool {
        self.absent
    }

    /// Gives it another name.
    pub(crate) fn rename(&mut self, name: &str) {
        self.name = name.to_owned();
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where `span` is, if this is source number `source` of its report. A span that is not in the text is
    /// cut to what is.
    pub fn place(&self, source: usize, span: Range<usize>) -> Place {
        let start = self.border(span.start);
        let end = self.border(span.end).max(start);
        // Line 1 starts at 0, so there is always one that starts no later.
        let line = self.lines.partition_point(|&line| line <= start);
        let column = 1 + self.text[self.lines[line - 1]..start].chars().count();
        Place { source, span: start..end, line, column }
    }

    /// Where a line and a column are, as a compiler names them: the expression that starts there, as far as it can be
    /// told without a parser. The line is kept even if the text is not there or has changed.
    pub fn place_at(&self, source: usize, line: usize, column: usize) -> Place {
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index));
        let Some(&start) = start.filter(|_| !self.text.is_empty()) else {
            return Place { source, span: 0..0, line, column };
        };
        let text = self.text[start..].lines().next().unwrap_or_default();
        let before = text.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>();
        let (from, length) = match text.get(before..).filter(|_| column > 0) {
            Some(rest) if !rest.trim().is_empty() => (before, expression(rest)),
            _ => (text.len() - text.trim_start().len(), text.trim().len()),
        };
        Place { source, span: start + from..start + from + length, line, column }
    }

    /// The last border between characters at or before the byte.
    fn border(&self, byte: usize) -> usize {
        let byte = byte.min(self.text.len());
        // Zero is always one.
        (0..=byte).rev().find(|&at| self.text.is_char_boundary(at)).unwrap_or(0)
    }
}

/// How long the expression at the start of the text is: a path with what is indexed and selected. What a function is
/// called with may be long, and is left out.
fn expression(text: &str) -> usize {
    let mut open = 0_usize;
    let mut after_word = false;
    for (at, c) in text.char_indices() {
        match c {
            '[' if open > 0 || after_word => open += 1,
            ']' if open > 0 => open -= 1,
            _ if open > 0 => {}
            '*' | '&' if !after_word => {}
            '.' | ':' | '!' | '?' | '_' => {}
            c if c.is_alphanumeric() => after_word = true,
            _ if at == 0 => return c.len_utf8(),
            _ => return at,
        }
    }
    text.trim_end().len()
}

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which of [`Report::sources`](crate::Report::sources).
    pub source: usize,
    /// The bytes of its text: made by [`Source::place`], so that they exist and are whole characters.
    pub span: Range<usize>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_read_and_no_more_than_they_have() {
        let why = |path: &str, most| read_regular(Path::new(path), most).unwrap_err().to_string();
        assert_eq!(why("/dev/zero", 9), "it is not a file");
        assert_eq!(why("/", 9), "it is not a file");
        let this = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(why(this.to_str().unwrap(), 9), "it has more than 9 bytes");
        assert_eq!(read_regular(&this, LARGEST).unwrap(), fs::read(&this).unwrap());
        assert_eq!(
            read_regular(Path::new("/proc/self/status"), LARGEST).unwrap(),
            b"",
            "a file of /proc says so"
        );
    }

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let source = Source::new("a.task", "x\n  é = y;\n");
        let at = |span| {
            let place = source.place(0, span);
            (place.line, place.column, place.span)
        };
        assert_eq!(at(0..1), (1, 1, 0..1));
        assert_eq!(at(1..2), (1, 2, 1..2));
        assert_eq!(at(4..6), (2, 3, 4..6));
        assert_eq!(at(9..10), (2, 7, 9..10), "é is one character of two bytes");
        assert_eq!(at(12..99), (3, 1, 12..12));
    }

    #[test]
    fn spans_outside_the_text_and_inside_a_character_are_cut() {
        let source = Source::new("a.task", "é");
        assert_eq!(source.place(0, 1..2).span, 0..2);
        assert_eq!(source.place(0, 7..9).span, 2..2);
        assert_eq!(Source::absent("gone.rs").place(0, 5..9).line, 1);
    }

    #[test]
    fn places_of_compilers_cover_the_expression() {
        let source = Source::new("a.rs", "fn f() {\n    v[g(1)].é += 1;\n    *p = 2;\n    (a) + b\n\n}\n");
        let at = |line, column| {
            let place = source.place_at(0, line, column);
            assert_eq!((place.line, place.column), (line, column));
            source.text()[place.span].to_owned()
        };
        assert_eq!(at(2, 5), "v[g(1)].é");
        assert_eq!(at(2, 7), "g");
        assert_eq!(at(3, 5), "*p");
        assert_eq!(at(3, 0), "*p = 2;", "a line without a column is meant as a whole");
        assert_eq!(at(4, 5), "(");
        assert_eq!(at(5, 3), "");
        assert_eq!(at(99, 1), "");
        assert_eq!(
            Source::new("gone.rs", "").place_at(3, 7, 2),
            Place { source: 3, span: 0..0, line: 7, column: 2 }
        );
    }
}
