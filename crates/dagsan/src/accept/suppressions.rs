//! Suppressions: races that do not count, each with a reason.
//!
//! ```toml
//! [[suppress]]
//! reason = "a counter that is only shown"    # required
//! function = "stats::*"                      # a function on the call stack of either access
//! file = "src/stats/**"                      # the file of either access, from the root of the repository
//! variable = "stats::HITS"                   # a static, or a variable of the task language
//! allocation = "src/cache.rs"                # the file, or the line, that allocates the block
//! expires = 2030-12-31                       # from the next day on it is an error
//! ```
//!
//! All that is given must match, and something must be given. Patterns are globs: `*`, `?`, `[ab]`; in the names of files `*` stays in its
//! directory, `**` does not. Names and lines are full of brackets (`<[u8]>::sort`, `vec![0; n]`), so a pattern also matches what is the same as itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use dagsan_report::{Acceptance, Project, Race, Report, Side, clean, file, line_text};
use glob::{MatchOptions, Pattern};
use jiff::civil::Date;
use serde::Deserialize;
use toml::Spanned;

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    suppress: Vec<Spanned<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    reason: String,
    function: Option<String>,
    file: Option<String>,
    variable: Option<String>,
    allocation: Option<String>,
    expires: Option<toml::value::Datetime>,
}

/// An entry, ready to be asked.
#[derive(Debug)]
struct Suppression {
    /// The file and the line.
    at: String,
    reason: String,
    function: Option<Pattern>,
    file: Option<Pattern>,
    variable: Option<Pattern>,
    allocation: Option<Pattern>,
}

/// The entries of all files.
#[derive(Debug, Default)]
pub struct Suppressions {
    entries: Vec<Suppression>,
    /// So many of them are missed if they match nothing.
    missed: usize,
}

/// In names of functions and variables, and in lines, a star stands for anything.
const NAMES: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: false,
    require_literal_leading_dot: false,
};

/// In names of files, a star stays in its directory.
const FILES: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

impl Suppressions {
    /// Reads files.
    pub fn read(paths: &[PathBuf], project: &Project) -> Result<Suppressions> {
        let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let mut all = Suppressions::default();
        for path in paths {
            let name = project.name(&path.to_string_lossy());
            let text =
                fs::read_to_string(path).with_context(|| format!("cannot read the suppressions {name}"))?;
            all.entries.extend(parse(&name, &text, today)?);
        }
        all.missed = all.entries.len();
        Ok(all)
    }

    /// Adds files that are beside packages. Perhaps none of their programs runs: nobody misses an entry that matches nothing.
    pub fn add_of_packages(&mut self, paths: &[PathBuf], project: &Project) -> Result<()> {
        self.entries.extend(Suppressions::read(paths, project)?.entries);
        Ok(())
    }

    /// The first entry that matches the race.
    pub fn find(&self, report: &Report, race: &Race, project: &Project) -> Option<usize> {
        self.entries.iter().position(|entry| entry.matches(report, race, project))
    }

    /// Why a race that the entry matches does not count.
    pub fn acceptance(&self, entry: usize) -> Acceptance {
        let Suppression { at, reason, .. } = &self.entries[entry];
        Acceptance::Suppressed { entry: at.clone(), reason: reason.clone() }
    }

    /// Where the entries are that are not among these.
    pub fn unmatched(&self, matched: &BTreeSet<usize>) -> impl Iterator<Item = &str> {
        let entries = self.entries.iter().enumerate().take(self.missed);
        entries.filter(|(at, _)| !matched.contains(at)).map(|(_, entry)| entry.at.as_str())
    }
}

fn parse(name: &str, text: &str, today: Date) -> Result<Vec<Suppression>> {
    let line = |byte: usize| 1 + text.bytes().take(byte).filter(|&byte| byte == b'\n').count();
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(String::new(), |span| format!(":{}", line(span.start)));
        anyhow!("{name}{at}: {}", clean(error.message()))
    })?;
    let entries = file.suppress.into_iter();
    entries
        .map(|entry| {
            let at = format!("{name}:{}", line(entry.span().start));
            suppression(&at, entry.into_inner(), today).with_context(|| at.clone())
        })
        .collect()
}

fn suppression(at: &str, entry: Entry, today: Date) -> Result<Suppression> {
    let Entry { reason, function, file, variable, allocation, expires } = entry;
    if reason.trim().is_empty() {
        bail!("the reason is empty: say why the race does not count");
    }
    if [&function, &file, &variable, &allocation].iter().all(|pattern| pattern.is_none()) {
        bail!("it would match every race: give a function, a file, a variable or an allocation");
    }
    if let Some(expires) = expires {
        let date: Date = expires
            .to_string()
            .parse()
            .map_err(|_| anyhow!("expires is a date without a time, such as 2030-12-31, not {expires}"))?;
        if date < today {
            bail!("this suppression expired on {date}: correct the race, or give it another date");
        }
    }
    let pattern = |what: &str, text: Option<String>| {
        let compile = |text: String| {
            Pattern::new(&text).map_err(|error| {
                let hint = if text.contains('[') { "; a bracket by itself is `[[]`" } else { "" };
                anyhow!("{what} = {text:?} is no pattern: {}{hint}", error.msg)
            })
        };
        text.map(compile).transpose()
    };
    Ok(Suppression {
        at: at.to_owned(),
        reason: clean(reason.trim()).into_owned(),
        function: pattern("function", function)?,
        file: pattern("file", file)?,
        variable: pattern("variable", variable)?,
        allocation: pattern("allocation", allocation)?,
    })
}

impl Suppression {
    fn matches(&self, report: &Report, race: &Race, project: &Project) -> bool {
        let sides = [&race.first, &race.second];
        let is = |pattern: &Pattern, name: &str, options| {
            pattern.as_str() == name || pattern.matches_with(name, options)
        };
        let function = |pattern: &Pattern| {
            let on_stack =
                |side: &&Side| side.detail.stack.iter().any(|frame| is(pattern, &frame.function, NAMES));
            sides.iter().any(on_stack)
        };
        let in_file = |pattern: &Pattern| {
            sides.iter().any(|side| is(pattern, &file(report, &side.place, project), FILES))
        };
        let variable = |pattern: &Pattern| match &race.object {
            Some(object) => {
                let name = object.strip_prefix("static `").and_then(|name| name.strip_suffix('`'));
                name.is_some_and(|name| is(pattern, name, NAMES))
            }
            None => race.locations.iter().any(|name| {
                let array = name.split('[').next().unwrap_or_default();
                is(pattern, name, NAMES) || is(pattern, array, NAMES)
            }),
        };
        let allocation = |pattern: &Pattern| {
            race.allocated.as_ref().is_some_and(|place| {
                is(pattern, &file(report, place, project), FILES)
                    || is(pattern, &line_text(report, place), NAMES)
            })
        };
        // What is not given does not matter.
        self.function.as_ref().is_none_or(function)
            && self.file.as_ref().is_none_or(in_file)
            && self.variable.as_ref().is_none_or(variable)
            && self.allocation.as_ref().is_none_or(allocation)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TODAY: Date = Date::constant(2026, 5, 1);

    fn error(text: &str) -> String {
        format!("{:#}", parse("dagsan.toml", text, TODAY).unwrap_err())
    }

    #[test]
    fn entries_know_their_lines() {
        let text = "# Ours.\n\n[[suppress]]\nreason = \"why\"\nfile = \"a\"\n\n[[suppress]]\nreason = \" b \"\nvariable = \"x\"\n";
        let entries = parse("dagsan.toml", text, TODAY).unwrap();
        let seen: Vec<(&str, &str)> = entries.iter().map(|entry| (&*entry.at, &*entry.reason)).collect();
        assert_eq!(seen, [("dagsan.toml:3", "why"), ("dagsan.toml:7", "b")]);
        assert!(parse("dagsan.toml", "", TODAY).unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert_eq!(error("[[suppress]]\nfile = \"a\"\n"), "dagsan.toml:1: missing field `reason`");
        assert!(error("[[suppress]]\nreason = \"\"\nfile = \"a\"\n").contains(":1: the reason is empty"));
        assert!(error("[[suppress]]\nreason = \"r\"\n").contains("it would match every race"));
        assert!(
            error("[[suppress]]\nreason = \"r\"\nfunktion = \"a\"\n")
                .contains(":3: unknown field `funktion`")
        );
        let bracket = error("[[suppress]]\nreason = \"r\"\nfile = \"[\"\n");
        assert!(bracket.contains("file = \"[\" is no pattern"), "{bracket}");
        assert!(bracket.ends_with("; a bracket by itself is `[[]`"), "{bracket}");
        assert!(error("suppress = 1\n").starts_with("dagsan.toml:1: "));
        let expired = error("[[suppress]]\nreason = \"r\"\nfile = \"a\"\nexpires = 2026-04-30\n");
        assert_eq!(
            expired,
            "dagsan.toml:1: this suppression expired on 2026-04-30: correct the race, or give it another date"
        );
        let time = error("[[suppress]]\nreason = \"r\"\nfile = \"a\"\nexpires = 2026-05-01T01:00:00Z\n");
        assert!(time.contains("expires is a date without a time"), "{time}");
        assert!(
            parse("x", "[[suppress]]\nreason = \"r\"\nfile = \"a\"\nexpires = 2026-05-01\n", TODAY).is_ok()
        );
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in any::<String>()) {
            _ = parse("x", &text, TODAY);
        }

        #[test]
        fn no_entry_is_a_panic(reason in any::<String>(), file in any::<String>(), date in "[0-9]{1,5}-[0-9]{2}-[0-9]{2}") {
            let text = format!("[[suppress]]\nreason = {reason:?}\nfile = {file:?}\nexpires = {date}\n");
            _ = parse("x", &text, TODAY);
        }
    }
}
