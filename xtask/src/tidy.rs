//! `cargo xtask tidy`: the rules of the repository that no compiler checks.
//!
//! The rules are functions from text to findings, so each is tested on strings; only [`run`] touches
//! git and files. Rules about Rust sources are in [`rust`], about links in [`markdown`].

pub mod markdown;
mod rust;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// What is wrong, and where. Displayed as `path:line: message`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A text file: its path from the root of the repository, with `/`, and what it holds.
#[derive(Debug)]
pub struct File {
    path: String,
    text: String,
}

impl File {
    fn has_extension(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
    }

    /// The lines with their numbers. A carriage return stays, as the white space that it is.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.strip_suffix('\n').unwrap_or(&self.text).split('\n'))
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// Checks every file that git tracks or would track, and prints all findings.
pub fn run(root: &Path) -> Result<()> {
    let paths = list_files(root)?;
    let mut files = Vec::new();
    for path in &paths {
        let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        // What is not text has nothing to check; the compilers refuse a source that is not.
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: path.clone(), text });
        }
    }
    let findings = check(&files, &paths);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy has {} finding(s), listed above; fix them, then run `cargo xtask tidy`", findings.len());
    }
    println!("tidy: {} files, no findings", paths.len());
    Ok(())
}

/// The files of the working tree that git tracks, or would after `git add`.
fn list_files(root: &Path) -> Result<BTreeSet<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start git, which lists the files to check; install it")?;
    ensure!(output.status.success(), "git cannot list the files (see above); run tidy in a clone");
    let list = String::from_utf8(output.stdout).context("a path is not UTF-8; rename the file")?;
    // A file removed but not yet from the index is listed too.
    let exists = |path: &&str| root.join(path).is_file();
    Ok(list.split_terminator('\0').filter(exists).map(String::from).collect())
}

/// All findings, by path and line. `paths` holds also the files that are not text.
fn check(files: &[File], paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = check_engine_pages(paths);
    findings.extend(markdown::check_summary(files));
    let anchors = markdown::anchors(files);
    for file in files {
        findings.extend(check_foreign_paths(file));
        if file.has_extension(&["rs", "md", "toml"]) {
            findings.extend(check_white_space(file));
        }
        if file.has_extension(&["rs"]) {
            findings.extend(rust::check(file));
        }
        if file.has_extension(&["md"]) {
            findings.extend(markdown::check(file, paths, &anchors));
        }
    }
    findings.sort();
    findings
}

fn check_white_space(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        if line.contains('\t') {
            findings.push(file.finding(number, "tab; indent with spaces"));
        }
        if line.ends_with(char::is_whitespace) {
            findings.push(file.finding(number, "trailing white space"));
        }
    }
    if !file.text.ends_with('\n') {
        findings.push(file.finding(file.lines().count(), "the file does not end with a newline"));
    }
    findings
}

/// Directories of one machine. In two pieces, so that this file may name them.
const FOREIGN: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/tm", "p/")];

/// Paths that exist on the machine of the author only.
fn check_foreign_paths(file: &File) -> Vec<Finding> {
    // After one of these, the slash is inside a relative path or an address.
    let inside = |c: char| c.is_alphanumeric() || "._-*})".contains(c);
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        for path in FOREIGN {
            if line.match_indices(path).any(|(at, _)| !line[..at].ends_with(inside)) {
                findings.push(file.finding(number, format!("absolute path under {path}; make it relative")));
            }
        }
    }
    findings
}

const PAGES: &str = "docs/engines/";
/// Order engines, and graph engines.
const ENGINES: [&str; 2] = ["crates/dagsan-core/src/order/", "crates/dagsan-core/src/analysis/"];
/// Modules beside the engines that are no engines.
const NOT_ENGINES: &[&str] = &["mod", "bags", "sets", "sp", "strands", "union_find"];

/// Every engine has its page, and every page its engine.
fn check_engine_pages(paths: &BTreeSet<String>) -> Vec<Finding> {
    let page = |path: &str| Some(path.strip_prefix(PAGES)?.strip_suffix(".md")?.to_owned());
    let pages: BTreeSet<String> =
        paths.iter().filter_map(|path| page(path)).filter(|name| name != "README").collect();

    // An engine is a file, a directory, or both under one name.
    let engine = |path: &str| {
        let name = ENGINES.iter().find_map(|engines| path.strip_prefix(engines))?.split('/').next()?;
        Some(name.strip_suffix(".rs").unwrap_or(name).to_owned())
    };
    // Of each engine its file, or the first in its directory.
    let mut engines: BTreeMap<String, &str> = BTreeMap::new();
    for path in paths {
        if let Some(name) = engine(path).filter(|name| !NOT_ENGINES.contains(&name.as_str())) {
            engines.entry(name.replace('_', "-")).or_insert(path);
        }
    }

    let at = |path: &str, message: String| Finding { path: path.to_owned(), line: 1, message };
    let lonely_pages = pages.iter().filter(|&name| !engines.contains_key(name)).map(|name| {
        let module = name.replace('-', "_");
        let message = format!("page of an engine that is not at {}{module}.rs", ENGINES.join("… or "));
        at(&format!("{PAGES}{name}.md"), message)
    });
    let lonely_engines = engines.iter().filter(|&(name, _)| !pages.contains(name)).map(|(name, path)| {
        let message = format!(
            "engine without a page; write {PAGES}{name}.md, or if it is no engine, \
             add it to NOT_ENGINES in xtask/src/tidy.rs"
        );
        at(path, message)
    });
    lonely_pages.chain(lonely_engines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn paths(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|&path| path.to_owned()).collect()
    }

    fn shown(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn white_space() {
        let check = |text| shown(&check_white_space(&file("a.md", text)));
        assert!(check("one\n\n  two\n").is_empty());
        assert_eq!(check("one \nb\n"), ["a.md:1: trailing white space"]);
        assert_eq!(check("one\r\nb\n"), ["a.md:1: trailing white space"]);
        assert_eq!(check("one\n\ttwo\n"), ["a.md:2: tab; indent with spaces"]);
        assert_eq!(check("one\ntwo"), ["a.md:2: the file does not end with a newline"]);
        assert_eq!(check(""), ["a.md:1: the file does not end with a newline"]);
    }

    #[test]
    fn foreign_paths() {
        for path in FOREIGN {
            let check = |text: String| check_foreign_paths(&file("run", &text)).len();
            assert_eq!(check(format!("{path}x\n")), 1);
            assert_eq!(check(format!("ok\ncd \"{path}x\"; ls >{path}y\n")), 1);
            assert_eq!(check(format!("a{path}x .{path}x ..{path}x {{root}}{path}x $(pwd){path}x\n")), 0);
            assert_eq!(check(format!("see https://example.org{path}x\n")), 0);
        }
    }

    #[test]
    fn engines_and_pages() {
        let order = "crates/dagsan-core/src/order/";
        let check = |list: &[&str]| shown(&check_engine_pages(&paths(list)));
        let [helper, file, inner] =
            ["mod.rs", "esp_bags.rs", "sf_order/list.rs"].map(|f| format!("{order}{f}"));
        let [page, other] = ["docs/engines/esp-bags.md", "docs/engines/sf-order.md"];

        assert!(check(&["docs/engines/README.md", &helper, &file, &inner, page, other]).is_empty());
        let lonely = check(&[&file, other]);
        assert_eq!(lonely.len(), 2);
        assert!(lonely[0].starts_with("docs/engines/sf-order.md:1: page of an engine that is not"));
        assert!(lonely[1].starts_with(&format!("{file}:1: engine without a page; write {page}")));
        assert!(check(&[&inner])[0].starts_with(&format!("{inner}:1: engine without")));
        let graph_engine = "crates/dagsan-core/src/analysis/zipper/mod.rs";
        assert!(check(&[graph_engine, "docs/engines/zipper.md"]).is_empty());
        assert!(check(&[graph_engine])[0].starts_with(&format!("{graph_engine}:1: engine without")));
    }

    #[test]
    fn each_kind_of_file_gets_its_rules_and_findings_are_sorted() {
        let files = [
            file("b.rs", "fn main() {} \n"),
            file("a.md", "[gone](gone.md)\n"),
            file("c.toml", "x = 1 \n"),
            file("d.txt", "not ours \n"),
        ];
        let found = shown(&check(&files, &paths(&["a.md", "b.rs", "c.toml", "d.txt"])));
        assert_eq!(
            found,
            [
                "a.md:1: link to gone.md, which does not exist",
                "b.rs:1: the file does not open with `//!`",
                "b.rs:1: trailing white space",
                "c.toml:1: trailing white space",
            ]
        );
    }
}
