//! A baseline: the races that are known, by their fingerprints.
//!
//! A file of JSON, sorted, with a line per race in words, so that a change of it can be reviewed. Two races between lines with the same text
//! in the same functions have one fingerprint, and are known or new together.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use dagsan_findings::output;
use dagsan_report::{Project, Race, Report, Side, file, function, line_text};
use serde::{Deserialize, Serialize};

/// The form of the file, and the recipe of its fingerprints.
const VERSION: u32 = 1;

/// Fingerprints, and what they are in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    races: BTreeMap<String, String>,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    races: BTreeMap<String, String>,
}

impl Baseline {
    /// Reads a file.
    pub fn read(path: &Path, project: &Project) -> Result<Baseline> {
        let name = project.name(&path.to_string_lossy());
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                bail!("there is no baseline {name}: --update-baseline writes one, of the races of the run")
            }
            other => other.with_context(|| format!("cannot read the baseline {name}"))?,
        };
        Baseline::parse(&text).with_context(|| format!("{name} is no baseline"))
    }

    fn parse(text: &str) -> Result<Baseline> {
        let file: File = serde_json::from_str(text)?;
        ensure!(
            file.version == VERSION,
            "it has version {}, and this is version {VERSION}: --update-baseline writes it again",
            file.version
        );
        if let Some(print) = file.races.keys().find(|print| !is_fingerprint(print)) {
            bail!("`{}` is no fingerprint", dagsan_report::clean(print));
        }
        Ok(Baseline { races: file.races })
    }

    /// Replaces a file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let file = File { version: VERSION, races: self.races.clone() };
        let text = serde_json::to_string_pretty(&file)? + "\n";
        output::write(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Is it known?
    pub fn has(&self, print: &str) -> bool {
        self.races.contains_key(print)
    }

    /// Makes it known.
    pub fn insert(&mut self, print: String, words: String) {
        self.races.insert(print, words);
    }

    /// Makes all of another one's known.
    pub fn add(&mut self, other: &Baseline) {
        self.races.extend(other.races.clone());
    }

    /// How many of these are not among others.
    pub fn without(&self, others: &Baseline) -> usize {
        self.races.keys().filter(|print| !others.has(print)).count()
    }
}

fn is_fingerprint(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A race, in words that stay the same when lines move.
pub fn words(report: &Report, race: &Race, project: &Project) -> String {
    let side = |side: &Side| {
        let function = function(side).map_or(String::new(), |function| format!(" in {function}"));
        let (file, text) = (file(report, &side.place, project), line_text(report, &side.place));
        format!("{file}{function}: {text}")
    };
    format!("{} | {} | {}", race.kind(), side(&race.first), side(&race.second))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_baseline_says_why() {
        let error = |text: &str| format!("{:#}", Baseline::parse(text).unwrap_err());
        assert!(error("").contains("EOF"));
        assert!(
            error(r#"{"version": 2, "races": {}}"#).starts_with("it has version 2, and this is version 1")
        );
        assert_eq!(
            error(r#"{"version": 1, "races": {"\u001b[31m": ""}}"#),
            "`\\u{1b}[31m` is no fingerprint"
        );
        assert!(error(r#"{"version": 1, "races": {}, "more": 1}"#).contains("unknown field `more`"));
        assert!(error(&"[".repeat(100_000)).contains("invalid type"));
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in any::<String>()) {
            _ = Baseline::parse(&text);
        }

        #[test]
        fn what_is_written_is_read(prints in proptest::collection::btree_map("[0-9a-f]{32}", any::<String>(), 0..8)) {
            let file = File { version: VERSION, races: prints.clone() };
            let read = Baseline::parse(&serde_json::to_string(&file).unwrap()).unwrap();
            prop_assert_eq!(read.races, prints);
        }
    }
}
