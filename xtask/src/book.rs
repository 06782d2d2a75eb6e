//! `cargo xtask book`: the documentation as a book, by mdBook.
//!
//! The pages are those of the repository, and read well there: their links lead to other pages, and to sources. In the book there are no sources, so the pages are copied,
//! in the same directories, with their pictures, and links to what is not in the book become plain text. `docs/SUMMARY.md` says which pages there are; that none is missing, and that links in the
//! repository lead somewhere, is checked by tidy. Those of the book are checked when it is built: other files, and headings as mdBook names them.

mod built;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::tidy::markdown;

/// The list of all pages.
pub const SUMMARY: &str = "docs/SUMMARY.md";
/// Where pages are copied to: `src` of book.toml.
const PAGES: &str = "target/book/src";
const BUILT: &str = "target/book/html";

/// Builds it.
pub fn run(root: &Path) -> Result<()> {
    require_mdbook()?;
    let summary = read(root, SUMMARY)?;
    // By their names in the repository, those in the book.
    let pages: BTreeMap<String, String> =
        markdown::targets(SUMMARY, &summary).into_iter().map(|path| (path.clone(), in_book(&path))).collect();
    let directory = root.join(PAGES);
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {PAGES}"))?;
    }
    let mut kept = pages.clone();
    for path in pages.keys() {
        let pictures =
            markdown::targets(path, &read(root, path)?).into_iter().filter(|path| path.ends_with(".png"));
        kept.extend(pictures.map(|path| (path.clone(), path)));
    }
    for (path, name) in &kept {
        let bytes = match pages.contains_key(path) {
            true => rewritten(path, name, &read(root, path)?, &kept).into_bytes(),
            false => fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?,
        };
        write(&directory.join(name), &bytes)?;
    }
    write(&directory.join("SUMMARY.md"), rewritten(SUMMARY, "SUMMARY.md", &summary, &pages).as_bytes())?;
    let status =
        Command::new("mdbook").arg("build").current_dir(root).status().context("cannot start mdbook")?;
    ensure!(status.success(), "mdbook ended with {status}");
    let broken = built::broken_links(&root.join(BUILT))?;
    ensure!(broken.is_empty(), "links of the book lead nowhere:\n{}", broken.join("\n"));
    println!("the book is {BUILT}/index.html");
    Ok(())
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(path, bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// mdBook wants the page of a directory to be its index.
fn in_book(path: &str) -> String {
    match path.strip_suffix("README.md") {
        Some(directory) => format!("{directory}index.md"),
        None => path.to_owned(),
    }
}

/// A page with links that hold in the book.
fn rewritten(path: &str, name: &str, text: &str, pages: &BTreeMap<String, String>) -> String {
    markdown::with_links(text, |target| {
        let (bare, anchor) = target.split_once('#').map_or((target, ""), |(bare, anchor)| (bare, anchor));
        if bare.is_empty() || bare.contains("://") {
            return Some(target.to_owned());
        }
        let found = pages.get(&markdown::resolve(path, bare)?)?;
        // From the directory of the page up to that of all, and down again.
        let up = "../".repeat(name.matches('/').count());
        let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
        Some(format!("{up}{found}{anchor}"))
    })
}

fn require_mdbook() -> Result<()> {
    let has = || {
        let mut version = Command::new("mdbook");
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    if has() {
        return Ok(());
    }
    println!("mdbook is missing; installing it, which takes some minutes");
    let mut install = Command::new("cargo");
    install.args(["install", "mdbook", "--locked", "--no-default-features", "--features", "search"]);
    ensure!(
        install.status().is_ok_and(|status| status.success()) && has(),
        "cannot install mdbook; install it by hand, then run `cargo xtask book` again"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_stay_and_others_become_text() {
        let pages = ["README.md", "docs/a.md", "docs/engines/README.md", "docs/engines/dag.md"];
        let pages: BTreeMap<String, String> =
            pages.iter().map(|path| ((*path).to_owned(), in_book(path))).collect();
        let check = |path: &str, text: &str| rewritten(path, &in_book(path), text, &pages);
        assert_eq!(
            check(
                "docs/a.md",
                "[e](engines/README.md#x), [s](../crates/x.rs) and [o](https://example.org)\n"
            ),
            "[e](../docs/engines/index.md#x), s and [o](https://example.org)\n"
        );
        assert_eq!(
            check("docs/engines/dag.md", "[home](../../README.md), [here](#cost)\n"),
            "[home](../../index.md), [here](#cost)\n"
        );
        assert_eq!(
            check("README.md", "`[a](b)` [a](docs/a.md)\n```\n[a](b)\n```\n"),
            "`[a](b)` [a](docs/a.md)\n```\n[a](b)\n```\n"
        );
        assert_eq!(
            check("README.md", "| [`x`](gone/) | [two](docs/a.md) |\n"),
            "| `x` | [two](docs/a.md) |\n"
        );
    }
}
