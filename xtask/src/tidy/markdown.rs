//! The rule about Markdown: relative links lead to files of the repository.
//!
//! It sees `[text](target)`, images and `[label]: target`, each on one line, outside code. It does not
//! check the part of a link after `#`.

use std::collections::BTreeSet;

use super::{File, Finding};

/// The links that lead nowhere.
pub fn check(file: &File, paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(file) {
        let bare = target.split('#').next().unwrap_or_default();
        // A link into the same file, or with a scheme: not a path.
        if bare.is_empty() || bare.contains("://") || bare.starts_with("mailto:") {
            continue;
        }
        match resolve(&file.path, bare) {
            None => findings.push(file.finding(line, format!("link to {target}, outside the repository"))),
            Some(path) if !exists(&path, paths) => {
                findings.push(file.finding(line, format!("link to {target}, which does not exist")));
            }
            Some(_) => {}
        }
    }
    findings
}

/// The targets of all links, with their lines.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut fence = None;
    for (number, line) in file.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(_), Some(_)) if fence == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => links.extend(links_in(&without_code(line)).map(|target| (number, target))),
        }
    }
    links
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
fn resolve(from: &str, target: &str) -> Option<String> {
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
        check(&file, &paths).into_iter().map(|found| format!("{}: {}", found.line, found.message)).collect()
    }

    #[test]
    fn good_links() {
        for link in [
            "dag.md",
            "./dag.md#cost",
            "#cost",
            "../guide.md",
            "../guide/",
            "../../",
            "../../README.md",
            "/README.md",
            "<../guide.md>",
            "../guide.md \"title\"",
            "https://example.org/x.md",
            "mailto:a@example.org",
        ] {
            assert_eq!(check_text(&format!("# Dag\n\nSee [a]({link}).\n\n[b]: {link}\n")), [""; 0], "{link}");
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
    fn code_has_no_links() {
        assert_eq!(check_text("```rust\nx[0](gone)\n~~~\n[a](gone)\n```\n`v[i](gone)` ok\n"), [""; 0]);
        assert_eq!(check_text("```\n```\n`x` [a](gone) `y`\n"), ["3: link to gone, which does not exist"]);
    }
}
