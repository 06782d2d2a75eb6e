//! The links of the book as it is built: each leads to a file that is there, and to an element that has its name.
//!
//! mdBook writes attributes in double quotes. Pages that it makes for itself (all pages in one for the printer, the one for errors, the list of all) have the links of
//! others, and are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::tidy::markdown;

/// Pages that mdBook makes for itself.
const MADE: [&str; 3] = ["404.html", "print.html", "toc.html"];

/// What leads nowhere, as `page: link`.
pub fn broken_links(directory: &Path) -> Result<Vec<String>> {
    let mut files = BTreeMap::new();
    read(directory, "", &mut files)?;
    ensure!(files.keys().any(|name| name == "index.html"), "{} has no index.html", directory.display());
    Ok(broken(&files))
}

/// All files below, by their names from there; of pages the text.
fn read(directory: &Path, name: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    let cannot = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        let name = if name.is_empty() { last.into_owned() } else { format!("{name}/{last}") };
        if path.is_dir() {
            read(&path, &name, files)?;
        } else {
            let text = match name.ends_with(".html") {
                true => {
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?
                }
                false => String::new(),
            };
            files.insert(name, text);
        }
    }
    Ok(())
}

fn broken(files: &BTreeMap<String, String>) -> Vec<String> {
    let pages = files.iter().filter(|(name, _)| name.ends_with(".html"));
    let named: BTreeMap<&str, BTreeSet<&str>> =
        pages.clone().map(|(name, text)| (&**name, values(text, "id").collect())).collect();
    let leads = |page: &str, link: &str| {
        let (bare, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match bare {
            "" => Some(page.to_owned()),
            _ => markdown::resolve(page, bare),
        };
        let Some(target) = target.filter(|target| files.contains_key(target)) else { return false };
        anchor.is_empty() || named.get(&*target).is_some_and(|ids| ids.contains(anchor))
    };
    let own = pages.filter(|(name, _)| !MADE.contains(&&***name));
    let links = own.flat_map(|(page, text)| {
        let all: BTreeSet<&str> = values(text, "href").chain(values(text, "src")).collect();
        all.into_iter().map(move |link| (page, link))
    });
    let inside = links.filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:"));
    inside.filter(|(page, link)| !leads(page, link)).map(|(page, link)| format!("{page}: {link}")).collect()
}

/// The values of an attribute.
fn values<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let starts = text.match_indices(name).filter(move |&(at, _)| {
        text[..at].ends_with([' ', '\n']) && text[at + name.len()..].starts_with("=\"")
    });
    starts.filter_map(move |(at, _)| text[at + name.len() + 2..].split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_files_and_to_names() {
        let page = r##"<h1 id="top">x</h1><a class="header" href="#top">x</a> <img src="a.png">
            <a href="docs/a.html#there">a</a> <a href="https://example.org/#x">o</a>"##;
        let other = r##"<p id="there"></p><a href="../index.html#gone">a</a><a
href="b.html">b</a><a href="#there">c</a>"##;
        let files = [("index.html", page), ("docs/a.html", other), ("a.png", "")];
        let files: BTreeMap<String, String> =
            files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        assert_eq!(broken(&files), ["docs/a.html: ../index.html#gone", "docs/a.html: b.html"]);
    }
}
