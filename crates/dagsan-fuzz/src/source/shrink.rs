//! Shrinks a text by deleting lines and blocks: delta debugging that knows braces and nothing else of the language.
//!
//! What may go, from the line it starts with:
//!
//! ```text
//!   async {          ─┐ the block,      ─┐ or its head and tail,
//!       x = 1;        │ as a whole       │ so that the body
//!   }                ─┘                 ─┘ moves outwards
//!   } else {         ─┐ up to the closing brace, which stays
//!       x = 2;       ─┘
//!   }
//!   y = 3;           ── a line
//! ```
//!
//! In [`SourceClass::Sections`], `finish` and `isolated` keep their bodies: what moved out of them would race, and the
//! value decide something, so that the text would not be of the class any more.
//!
//! Most deletions leave what is no program; whoever asks must say that this is not what is looked for. The result is
//! minimal for single deletions, not the smallest there is.

use super::SourceClass;

/// The smallest text found of which `keep` is true, which it is of `source`, a program of that class.
pub fn shrink(source: &str, class: SourceClass, keep: &mut dyn FnMut(&str) -> bool) -> String {
    let mut lines: Vec<&str> = source.lines().collect();
    loop {
        let before = lines.len();
        let mut at = 0;
        while at < lines.len() {
            match deletions(&lines, at, class).into_iter().find(|smaller| keep(&text(smaller))) {
                // What now stands here has not been tried.
                Some(smaller) => lines = smaller,
                None => at += 1,
            }
        }
        // A deletion may make another possible, further up.
        if lines.len() == before {
            return text(&lines);
        }
    }
}

fn text(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// What is left after each deletion that starts at this line, the largest deletion first.
fn deletions<'a>(lines: &[&'a str], at: usize, class: SourceClass) -> Vec<Vec<&'a str>> {
    let without = |gone: &dyn Fn(usize) -> bool| -> Vec<&'a str> {
        lines.iter().enumerate().filter(|&(line, _)| !gone(line)).map(|(_, &line)| line).collect()
    };
    let head = lines[at].trim_start();
    let keeps_body = class == SourceClass::Sections && ["finish {", "isolated {"].contains(&head);
    match end_of_block(lines, at) {
        Some(end) if head.starts_with('}') => vec![without(&|line| (at..end).contains(&line))],
        Some(end) if keeps_body => vec![without(&|line| (at..=end).contains(&line))],
        Some(end) => {
            vec![without(&|line| (at..=end).contains(&line)), without(&|line| line == at || line == end)]
        }
        None => vec![without(&|line| line == at)],
    }
}

/// The line that closes the block which this one opens, if it does.
fn end_of_block(lines: &[&str], at: usize) -> Option<usize> {
    if !lines[at].ends_with('{') {
        return None;
    }
    let mut depth = 1_i64;
    for (line, text) in lines.iter().enumerate().skip(at + 1) {
        depth += text.chars().map(|c| i64::from(c == '{') - i64::from(c == '}')).sum::<i64>();
        if depth <= 0 {
            return Some(line);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
proc main() {
    x = 0;
    finish {
        async {
            if a {
                x = 1;
            } else {
                y = 1;
            }
        }
        { let unused = x; }
        x = 2;
    }
}
";

    /// Stands in for the compiler: no brace closes what is not open, and all are closed.
    fn is_balanced(text: &str) -> bool {
        let mut depth = 0_i64;
        let closes = text.chars().all(|c| {
            depth += i64::from(c == '{') - i64::from(c == '}');
            depth >= 0
        });
        closes && depth == 0
    }

    fn shrunk_to(words: &[&str]) -> String {
        shrunk_in(SourceClass::Tasks, words)
    }

    fn shrunk_in(class: SourceClass, words: &[&str]) -> String {
        shrink(SOURCE, class, &mut |text| is_balanced(text) && words.iter().all(|word| text.contains(word)))
    }

    #[test]
    fn blocks_go_as_wholes_and_bodies_move_outwards() {
        assert_eq!(shrunk_to(&["x = 2"]), "        x = 2;\n");
        assert_eq!(shrunk_to(&["async", "x = 1"]), "        async {\n                x = 1;\n        }\n");
    }

    #[test]
    fn an_else_goes_alone() {
        let expected = "            if a {\n                x = 1;\n            }\n";
        assert_eq!(shrunk_to(&["if a", "x = 1"]), expected);
    }

    #[test]
    fn sections_stay_in_their_class() {
        let expected = "    finish {\n        x = 2;\n    }\n";
        assert_eq!(shrunk_in(SourceClass::Sections, &["x = 2"]), expected);
    }

    #[test]
    fn what_all_lines_are_needed_for_stays() {
        assert_eq!(shrink(SOURCE, SourceClass::Tasks, &mut |text| text == SOURCE), SOURCE);
    }
}
