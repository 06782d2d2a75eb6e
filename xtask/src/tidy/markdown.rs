//! The rules about Markdown: relative links lead to files of the repository, and to headings that are there; every page of the documentation is in the book.
//!
//! They see `[text](target)`, images and `[label]: target`, each on one line, outside code.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding};
use crate::book::SUMMARY;

/// The headings of pages, as links name them.
pub type Anchors = BTreeMap<String, BTreeSet<String>>;

/// Those of all pages.
pub fn anchors(files: &[File]) -> Anchors {
    let pages = files.iter().filter(|file| file.has_extension(&["md"]));
    pages.map(|file| (file.path.clone(), headings(&file.text))).collect()
}

/// As GitHub and mdBook name them.
fn headings(text: &str) -> BTreeSet<String> {
    let mut fence = Fence::default();
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| !fence.hides(line)) {
        let Some((marks, title)) = line.split_once(' ') else { continue };
        if marks.is_empty() || marks.bytes().any(|byte| byte != b'#') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let name: String = title.trim().to_lowercase().chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        // The second one of a name has a number.
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let free = [name.clone()].into_iter().chain(numbered).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

/// The pages that the book does not have.
pub fn check_summary(files: &[File]) -> Vec<Finding> {
    let Some(summary) = files.iter().find(|file| file.path == SUMMARY) else { return Vec::new() };
    let listed = targets(SUMMARY, &summary.text);
    let is_page =
        |file: &&File| file.path.starts_with("docs/") && file.has_extension(&["md"]) && file.path != SUMMARY;
    let missing = files.iter().filter(is_page).filter(|file| !listed.contains(&file.path));
    missing.map(|file| file.finding(1, format!("the page is not in the book; add it to {SUMMARY}"))).collect()
}

/// The links that lead nowhere.
pub fn check(file: &File, paths: &BTreeSet<String>, anchors: &Anchors) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(file) {
        let (bare, anchor) = target.split_once('#').unwrap_or((&target, ""));
        // With a scheme it is not a path.
        if bare.contains("://") || bare.starts_with("mailto:") {
            continue;
        }
        let path = match bare {
            "" => Some(file.path.clone()),
            _ => resolve(&file.path, bare),
        };
        let has_no_anchor = |path: &String| {
            !anchor.is_empty() && anchors.get(path).is_some_and(|known| !known.contains(anchor))
        };
        match path {
            None => findings.push(file.finding(line, format!("link to {target}, outside the repository"))),
            Some(path) if !exists(&path, paths) => {
                findings.push(file.finding(line, format!("link to {target}, which does not exist")));
            }
            Some(path) if has_no_anchor(&path) => {
                findings.push(file.finding(line, format!("link to {target}, and there is no such heading")));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Blocks of code, line by line.
#[derive(Debug, Default)]
struct Fence(Option<&'static str>);

impl Fence {
    /// Is the line part of a block?
    fn hides(&mut self, line: &str) -> bool {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (self.0, mark) {
            (None, Some(_)) => self.0 = mark,
            (Some(_), Some(_)) if self.0 == mark => self.0 = None,
            (Some(_), _) => {}
            (None, None) => return false,
        }
        true
    }
}

/// The targets of all links, with their lines.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut fence = Fence::default();
    let prose = file.lines().filter(|(_, line)| !fence.hides(line));
    prose
        .flat_map(|(number, line)| {
            links_in(&without_code(line)).map(|target| (number, target)).collect::<Vec<_>>()
        })
        .collect()
}

/// The files that a page leads to, in the order of its links.
pub fn targets(path: &str, text: &str) -> Vec<String> {
    let file = File { path: path.to_owned(), text: text.to_owned() };
    let bare = |target: String| target.split('#').next().map(str::to_owned);
    let found = links(&file).into_iter().filter_map(|(_, target)| bare(target));
    found
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .filter_map(|target| resolve(path, &target))
        .collect()
}

/// The text with other targets of its links, those of `[label]: target` left out; a link without one becomes its text.
pub fn with_links(text: &str, mut change: impl FnMut(&str) -> Option<String>) -> String {
    let mut fence = Fence::default();
    let mut changed = |line: &str| match fence.hides(line) {
        true => line.to_owned(),
        false => line_with_links(line, &mut change),
    };
    text.lines().map(|line| changed(line) + "\n").collect()
}

fn line_with_links(line: &str, change: &mut impl FnMut(&str) -> Option<String>) -> String {
    let (mut done, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("](") {
        done += before;
        let in_code = done.matches('`').count() % 2 == 1;
        match (after.split_once(')'), opening(&done)) {
            (Some((target, after)), Some(start)) if !in_code => {
                match change(target) {
                    Some(target) => done += &format!("]({target})"),
                    None => done.replace_range(start..=start, ""),
                }
                rest = after;
            }
            _ => {
                done += "](";
                rest = after;
            }
        }
    }
    done + rest
}

/// Where the bracket is that belongs to one which follows the text.
fn opening(text: &str) -> Option<usize> {
    let mut closed = 0;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b']' => closed += 1,
            b'[' if closed == 0 => return Some(at),
            b'[' => closed -= 1,
            _ => {}
        }
    }
    None
}

/// The line without what stands between backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn links_in(line: &str) -> impl Iterator<Item = String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    // After the target there may be a title.
    let target = |text: &str| Some(text.split_whitespace().next()?.trim_matches(['<', '>']).to_owned());
    inline.chain(definition).filter_map(target)
}

/// The path from the root of what `target`, in the file `from`, means; `None` outside the repository.
pub fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Is it a file, or a directory with a file in it?
fn exists(path: &str, paths: &BTreeSet<String>) -> bool {
    let inside = if path.is_empty() { String::new() } else { format!("{path}/") };
    paths.contains(path) || paths.range(inside.clone()..).next().is_some_and(|next| next.starts_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings in a page `docs/engines/dag.md`, as `line: message`.
    fn check_text(text: &str) -> Vec<String> {
        let paths = ["README.md", "docs/engines/dag.md", "docs/guide.md", "docs/guide/a.md"];
        let paths = paths.into_iter().map(String::from).collect();
        let file = File { path: "docs/engines/dag.md".to_owned(), text: text.to_owned() };
        let guide = File {
            path: "docs/guide.md".to_owned(),
            text: "# Two `words`, here\n# Two words here\n".to_owned(),
        };
        let files = [file, guide];
        check(&files[0], &paths, &anchors(&files))
            .into_iter()
            .map(|found| format!("{}: {}", found.line, found.message))
            .collect()
    }

    #[test]
    fn good_links() {
        for link in [
            "dag.md",
            "./dag.md#cost",
            "#cost",
            "../guide.md",
            "../guide.md#two-words-here",
            "../guide.md#two-words-here-1",
            "../guide/",
            "../../",
            "../../README.md",
            "/README.md",
            "<../guide.md>",
            "../guide.md \"title\"",
            "https://example.org/x.md",
            "mailto:a@example.org",
        ] {
            let text = format!("# Dag\n## Cost\n\nSee [a]({link}).\n\n[b]: {link}\n");
            assert_eq!(check_text(&text), [""; 0], "{link}");
        }
    }

    #[test]
    fn bad_links() {
        assert_eq!(
            check_text("[a](dag.md) and [b](gone.md#x)\n\n![c](../dag.md)\n[d]: ../guid\n"),
            [
                "1: link to gone.md#x, which does not exist",
                "3: link to ../dag.md, which does not exist",
                "4: link to ../guid, which does not exist",
            ]
        );
        assert_eq!(
            check_text("[a](../../../main/README.md)\n"),
            ["1: link to ../../../main/README.md, outside the repository"]
        );
    }

    #[test]
    fn headings_that_are_not_there() {
        assert_eq!(
            check_text("# Dag\n[a](#dag) [b](#cost) [c](../guide.md#words)\n```\n# Cost\n```\n"),
            [
                "2: link to #cost, and there is no such heading",
                "2: link to ../guide.md#words, and there is no such heading"
            ]
        );
    }

    #[test]
    fn every_page_is_in_the_book() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file(SUMMARY, "# Summary\n- [a](a.md)\n  - [b](engines/b.md)\n- [c](../c.md)\n"),
            file("docs/a.md", ""),
            file("docs/engines/b.md", ""),
            file("docs/engines/new.md", ""),
            file("other/d.md", ""),
        ];
        let found: Vec<String> = check_summary(&files).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["docs/engines/new.md:1: the page is not in the book; add it to docs/SUMMARY.md"]);
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(check_text("```rust\nx[0](gone)\n~~~\n[a](gone)\n```\n`v[i](gone)` ok\n"), [""; 0]);
        assert_eq!(check_text("```\n```\n`x` [a](gone) `y`\n"), ["3: link to gone, which does not exist"]);
    }
}
