//! What the author of a program expects, and whether it is so.
//!
//! The first line of a program says it: `// expect: race x, a[3]`, the exact set of racy locations; or
//! `race-free`, `deadlock`, or `error TEXT`, where TEXT is part of the message. An engine may have its reasons
//! to see it otherwise, such as another reading of isolated. A file `exceptions.txt` in the same directory lists these:
//!
//! ```text
//! # program            engines             expectation   reason
//! hidden_race.task     esp-bags,drdp       race-free     # one schedule is not enough
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use dagsan_core::order::{self, Isolation};
use dagsan_report::{End, Report, Verdict, text};

/// The start of a program that says what is expected of it.
const PREFIX: &str = "// expect:";
/// Where exceptions are listed.
pub const EXCEPTIONS: &str = "exceptions.txt";

/// An expected verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    RaceFree,
    Race(BTreeSet<String>),
    Deadlock,
    /// The message contains this.
    Error(String),
}

impl Expected {
    /// Understands the words after `// expect:`.
    pub fn parse(text: &str) -> Result<Expected> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        match (word, rest) {
            ("race-free", "") => Ok(Expected::RaceFree),
            ("deadlock", "") => Ok(Expected::Deadlock),
            ("error", message) if !message.is_empty() => Ok(Expected::Error(message.to_owned())),
            ("race", names) if !names.is_empty() => {
                let names: BTreeSet<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
                ensure!(!names.contains(""), "`{text}` names an empty location");
                Ok(Expected::Race(names))
            }
            _ => bail!("`{text}` is none of: race LOCATION, …; race-free; deadlock; error TEXT"),
        }
    }

    /// Is it so?
    pub fn is_met(&self, report: &Report) -> bool {
        match self {
            // An engine of mutual exclusion that found no race in one order has found what it can find.
            Expected::RaceFree => match report.verdict() {
                Verdict::RaceFree => true,
                Verdict::NotExhausted => report.isolation == Isolation::MutualExclusion,
                _ => false,
            },
            Expected::Deadlock => report.verdict() == Verdict::Deadlock,
            Expected::Race(names) => {
                let found: BTreeSet<&str> = report.locations().into_iter().collect();
                found.into_iter().eq(names)
            }
            Expected::Error(text) => {
                report.verdict() == Verdict::Error && errors(report).iter().any(|error| error.contains(text))
            }
        }
    }
}

/// The error messages of a program, before or while it runs.
fn errors(report: &Report) -> Vec<&str> {
    match &report.end {
        End::Failed(failure) => vec![&failure.message],
        End::Rejected(diagnostics) => diagnostics.iter().map(|found| found.message.as_str()).collect(),
        _ => Vec::new(),
    }
}

/// What was found, in the words of an expectation where there are any.
pub fn found(report: &Report) -> String {
    match report.verdict() {
        Verdict::Race => format!("race {}", report.locations().join(", ")),
        verdict @ (Verdict::RaceFree
        | Verdict::Deadlock
        | Verdict::NotExhausted
        | Verdict::NotChecked
        | Verdict::Accepted) => verdict.name().to_owned(),
        Verdict::Error => match errors(report)[..] {
            [] => text::headline(report),
            ref errors => format!("error {}", errors.join("; ")),
        },
    }
}

/// What the first line of a program says about it.
pub fn first_line(source: &str) -> Option<&str> {
    source.lines().next()?.strip_prefix(PREFIX).map(str::trim)
}

/// What some engines see otherwise.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Exceptions {
    lines: Vec<Exception>,
}

#[derive(Debug, PartialEq, Eq)]
struct Exception {
    program: String,
    engines: Vec<String>,
    expectation: String,
}

impl Exceptions {
    /// The exceptions for the programs of a directory; none if there is no such file.
    pub fn load(directory: &Path) -> Result<Exceptions> {
        let path = directory.join(EXCEPTIONS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Exceptions::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let exceptions = Exceptions::parse(&text).with_context(|| format!("in {}", path.display()))?;
        for line in &exceptions.lines {
            let exists = directory.join(&line.program).is_file();
            ensure!(exists, "{} speaks of {}, which does not exist", path.display(), line.program);
        }
        Ok(exceptions)
    }

    fn parse(text: &str) -> Result<Exceptions> {
        let mut exceptions = Exceptions::default();
        for (number, line) in (1..).zip(text.lines()) {
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                exceptions.add(line).with_context(|| format!("line {number}"))?;
            }
        }
        Ok(exceptions)
    }

    fn add(&mut self, line: &str) -> Result<()> {
        const FORM: &str = "write `FILE.task  ENGINE[,ENGINE]  EXPECTATION  # REASON`";
        let (line, reason) = line.split_once('#').with_context(|| format!("there is no reason; {FORM}"))?;
        ensure!(!reason.trim().is_empty(), "the reason is empty; {FORM}");
        let mut words = line.trim().splitn(2, char::is_whitespace);
        let program = words.next().unwrap_or_default().to_owned();
        let rest = words.next().unwrap_or_default().trim();
        let (engines, expectation) = rest
            .split_once(char::is_whitespace)
            .with_context(|| format!("there is no expectation; {FORM}"))?;
        Expected::parse(expectation)?;
        let engines: Vec<String> = engines.split(',').map(str::to_owned).collect();
        for engine in &engines {
            order::find(engine)?;
            let twice = self.find(&program, engine).is_some();
            ensure!(!twice, "a second exception for {program} with engine `{engine}`");
        }
        self.lines.push(Exception { program, engines, expectation: expectation.trim().to_owned() });
        Ok(())
    }

    /// What is expected of the program with the engine, if it is not what its first line says.
    pub fn find(&self, program: &str, engine: &str) -> Option<&str> {
        let mut lines = self.lines.iter();
        let line =
            lines.find(|line| line.program == program && line.engines.iter().any(|name| name == engine))?;
        Some(&line.expectation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations() {
        assert_eq!(Expected::parse(" race-free ").unwrap(), Expected::RaceFree);
        assert_eq!(Expected::parse("deadlock").unwrap(), Expected::Deadlock);
        let names = BTreeSet::from(["a[3]".to_owned(), "x".to_owned()]);
        assert_eq!(Expected::parse("race x, a[3] ,x").unwrap(), Expected::Race(names));
        assert_eq!(Expected::parse("error  already set").unwrap(), Expected::Error("already set".to_owned()));
        for bad in ["", "race", "race x,", "error", "race-free x", "deadlock p", "rase x"] {
            assert!(Expected::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn first_lines() {
        assert_eq!(first_line("// expect: race x\nshared x;"), Some("race x"));
        assert_eq!(first_line("shared x;\n// expect: race x"), None);
        assert_eq!(first_line(""), None);
    }

    #[test]
    fn exceptions_are_for_a_program_and_engines() {
        let text = "# head\n\na.task  dag,closure  race x, y  # why\na.task esp-bags race-free # why\n";
        let exceptions = Exceptions::parse(text).unwrap();
        assert_eq!(exceptions.find("a.task", "closure"), Some("race x, y"));
        assert_eq!(exceptions.find("a.task", "esp-bags"), Some("race-free"));
        assert_eq!(exceptions.find("a.task", "drdp"), None);
        assert_eq!(exceptions.find("b.task", "dag"), None);
    }

    #[test]
    fn bad_exceptions_are_told_with_their_line() {
        for (line, message) in [
            ("a.task dag race-free", "line 2: there is no reason"),
            ("a.task dag race-free #", "line 2: the reason is empty"),
            ("a.task dag # why", "line 2: there is no expectation"),
            ("a.task dog race-free # why", "line 2: no engine is called `dog`"),
            ("a.task dag maybe # why", "line 2: `maybe` is none of"),
            (
                "a.task dag,dag race-free # why\na.task dag race x # why",
                "line 3: a second exception for a.task",
            ),
        ] {
            let error = Exceptions::parse(&format!("\n{line}\n")).unwrap_err();
            assert!(format!("{error:#}").starts_with(message), "{error:#}");
        }
    }
}
